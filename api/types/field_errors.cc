#include "api/types/field_errors.h"

#include <regex.h>

#include <array>
#include <map>
#include <memory>

#include "api/base/sync.h"

namespace lockkeeper {

std::string_view FieldReasonName(FieldReason reason) {
  static constexpr std::array<std::string_view, 8> kNames = {
      "FieldValueInvalid",   "FieldValueTypeInvalid", "FieldValueRequired", "FieldValueNotSupported",
      "FieldValueDuplicate", "FieldValueTooLong",     "FieldValueTooMany",  "FieldValueForbidden"};
  return kNames[static_cast<size_t>(reason)];
}

namespace types_internal {

std::string GoQuote(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
          out += "\\x";
          out += kHex[static_cast<unsigned char>(c) >> 4];
          out += kHex[static_cast<unsigned char>(c) & 15];
        } else {
          out += c;
        }
    }
  }
  return out + "\"";
}

namespace {

FieldError Make(FieldReason reason, std::string field, std::string message) {
  FieldError error;
  error.reason = reason;
  error.field = std::move(field);
  error.message = std::move(message);
  return error;
}

class Pattern {
 public:
  explicit Pattern(const std::string& text) {
    LK_CHECK(regcomp(&compiled_, text.c_str(), REG_EXTENDED | REG_NOSUB) == 0);
  }
  ~Pattern() { regfree(&compiled_); }
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;

  bool Matches(std::string_view text) const {
    regmatch_t range = {};
    range.rm_so = 0;
    range.rm_eo = static_cast<regoff_t>(text.size());
    return regexec(&compiled_, text.data() == nullptr ? "" : text.data(), 1, &range, REG_STARTEND) == 0;
  }

 private:
  regex_t compiled_;
};

}  // namespace

std::string GoValue(const Json& value) {
  if (value.IsString()) return GoQuote(value.AsString());
  if (value.IsNull()) return "null";
  return value.DumpCanonical();
}

FieldError InvalidError(std::string field, const Json& value, std::string_view why) {
  // Objects and lists are not shown.
  if (value.IsObject() || value.IsArray()) {
    return Make(FieldReason::kInvalid, std::move(field), "Invalid value: " + std::string(why));
  }
  return Make(FieldReason::kInvalid, std::move(field), "Invalid value: " + GoValue(value) + ": " + std::string(why));
}
FieldError TypeError(std::string field, const Json& value, std::string_view why) {
  return Make(FieldReason::kTypeInvalid, std::move(field),
              "Invalid value: " + GoValue(value) + ": " + std::string(why));
}
FieldError RequiredError(std::string field) { return Make(FieldReason::kRequired, std::move(field), "Required value"); }
FieldError NotSupportedError(std::string field, const Json& value, const std::vector<std::string>& supported) {
  std::string message = "Unsupported value: " + GoValue(value) + ": supported values: ";
  for (size_t i = 0; i < supported.size(); ++i) message += (i == 0 ? "" : ", ") + GoQuote(supported[i]);
  return Make(FieldReason::kNotSupported, std::move(field), std::move(message));
}
FieldError DuplicateError(std::string field, const Json& value) {
  return Make(FieldReason::kDuplicate, std::move(field), "Duplicate value: " + GoValue(value));
}
FieldError TooLongError(std::string field, int64_t maximum) {
  return Make(FieldReason::kTooLong, std::move(field),
              "Too long: may not be more than " + std::to_string(maximum) + " bytes");
}
FieldError TooManyError(std::string field, int64_t found, int64_t maximum) {
  return Make(FieldReason::kTooMany, std::move(field),
              "Too many: " + std::to_string(found) + ": must have at most " + std::to_string(maximum) + " items");
}

bool MatchesPattern(const std::string& pattern, std::string_view text) {
  struct Cache {
    Mutex mutex;
    std::map<std::string, std::unique_ptr<Pattern>> patterns LK_GUARDED_BY(mutex);
  };
  static Cache* cache = new Cache;
  const Pattern* compiled = nullptr;
  {
    MutexLock lock(cache->mutex);
    std::unique_ptr<Pattern>& entry = cache->patterns[pattern];
    if (!entry) entry = std::make_unique<Pattern>(pattern);
    compiled = entry.get();
  }
  return compiled->Matches(text);
}

}  // namespace types_internal
}  // namespace lockkeeper
