#include "controller/yaml.h"

#include <yaml-cpp/yaml.h>

#include <charconv>
#include <string_view>

namespace lockkeeper {

namespace {

constexpr int kMaxDepth = 100;
constexpr int kMaxValues = 100000;

bool IsOneOf(const std::string& text, std::initializer_list<std::string_view> lower) {
  for (std::string_view word : lower) {
    if (text.size() != word.size()) continue;
    std::string upper(word), title(word);
    for (char& c : upper) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
    title[0] = upper[0];
    if (text == word || text == upper || text == title) return true;
  }
  return false;
}

bool ParseInteger(const std::string& text, int64_t* out) {
  std::string_view digits = text;
  bool negative = false;
  if (!digits.empty() && (digits[0] == '-' || digits[0] == '+')) {
    negative = digits[0] == '-';
    digits.remove_prefix(1);
  }
  int base = 10;
  if (digits.size() > 2 && digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'o' || digits[1] == 'b')) {
    base = digits[1] == 'x' ? 16 : digits[1] == 'o' ? 8 : 2;
    digits.remove_prefix(2);
  } else if (digits.size() > 1 && digits[0] == '0') {
    base = 8;
    digits.remove_prefix(1);
  }
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size()) return false;
  if (value > static_cast<uint64_t>(INT64_MAX)) return false;
  *out = negative ? -static_cast<int64_t>(value) : static_cast<int64_t>(value);
  return true;
}

bool ParseFloat(const std::string& text, double* out) {
  if (text.find_first_of("0123456789") == std::string::npos) return false;
  if (text.find_first_not_of("0123456789+-.eE") != std::string::npos) return false;
  std::string_view digits = text;
  if (digits[0] == '+') digits.remove_prefix(1);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), *out);
  return error == std::errc() && end == digits.data() + digits.size();
}

Json PlainScalar(const std::string& text) {
  if (text.empty() || text == "~" || IsOneOf(text, {"null"})) return {};
  if (IsOneOf(text, {"true", "yes", "on"})) return true;
  if (IsOneOf(text, {"false", "no", "off"})) return false;
  const char c = text[0];
  if ((c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.') {
    int64_t integer = 0;
    if (ParseInteger(text, &integer)) return integer;
    double number = 0;
    if (ParseFloat(text, &number)) return number;
  }
  return text;
}

class Converter {
 public:
  explicit Converter(const std::string& source) : source_(source) {}

  Result<Json> Convert(const YAML::Node& node, int depth) {
    if (depth > kMaxDepth) return Refuse(node, "nested deeper than 100");
    if (++values_ > kMaxValues) return Refuse(node, "more than 100000 values");
    switch (node.Type()) {
      case YAML::NodeType::Undefined:
      case YAML::NodeType::Null: return Json();
      case YAML::NodeType::Scalar:
        // "!" marks a quoted scalar.
        return node.Tag() == "!" || node.Tag() == "tag:yaml.org,2002:str" ? Json(node.Scalar())
                                                                          : PlainScalar(node.Scalar());
      case YAML::NodeType::Sequence: {
        Json out = Json::MakeArray();
        for (const auto& item : node) {
          LK_ASSIGN_OR_RETURN(Json value, Convert(item, depth + 1));
          out.Push(std::move(value));
        }
        return out;
      }
      case YAML::NodeType::Map: return ConvertMap(node, depth);
    }
    return Refuse(node, "of no known kind");
  }

 private:
  Result<Json> ConvertMap(const YAML::Node& node, int depth) {
    Json own = Json::MakeObject();
    Json merged = Json::MakeObject();
    for (const auto& member : node) {
      if (!member.first.IsScalar()) return Refuse(member.first, "a key that is no scalar");
      const std::string key = member.first.Scalar();
      LK_ASSIGN_OR_RETURN(Json value, Convert(member.second, depth + 1));
      if (key == "<<" && member.first.Tag() != "!") {
        LK_RETURN_IF_ERROR(Merge(member.first, value, merged));
        continue;
      }
      if (own.Has(key)) return Refuse(member.first, "the key \"" + key + "\" stands twice");
      own.Set(key, std::move(value));
    }
    for (auto& [key, value] : merged.MutableObject()) {
      if (!own.Has(key)) own.Set(key, std::move(value));
    }
    return own;
  }

  Status Merge(const YAML::Node& at, const Json& value, Json& into) {
    const auto add = [&into](const Json& map) {
      for (const auto& [key, item] : map.AsObject()) {
        if (!into.Has(key)) into.Set(key, item);
      }
    };
    if (value.IsObject()) {
      add(value);
      return {};
    }
    if (!value.IsArray()) return Refuse(at, "\"<<\" needs a map");
    for (const Json& item : value.AsArray()) {
      if (!item.IsObject()) return Refuse(at, "\"<<\" needs maps");
      add(item);
    }
    return {};
  }

  Status Refuse(const YAML::Node& node, const std::string& what) const {
    const YAML::Mark mark = node.Mark();
    return {Code::kInvalid, source_ + ": line " + std::to_string(mark.line + 1) + ", column " +
                                std::to_string(mark.column + 1) + ": " + what};
  }

  const std::string& source_;
  int values_ = 0;
};

}  // namespace

Result<std::vector<Json>> ParseYamlStream(const std::string& text, const std::string& source) {
  std::vector<Json> out;
  try {
    for (const YAML::Node& node : YAML::LoadAll(text)) {
      LK_ASSIGN_OR_RETURN(Json value, Converter(source).Convert(node, 0));
      if (!value.IsNull()) out.push_back(std::move(value));
    }
  } catch (const std::exception& error) {
    return Status(Code::kInvalid, source + ": " + error.what());
  }
  return out;
}

Result<Json> ParseYaml(const std::string& text, const std::string& source) {
  LK_ASSIGN_OR_RETURN(std::vector<Json> documents, ParseYamlStream(text, source));
  if (documents.size() > 1) return Status(Code::kInvalid, source + ": more than one document");
  return documents.empty() ? Json() : std::move(documents[0]);
}

}  // namespace lockkeeper
