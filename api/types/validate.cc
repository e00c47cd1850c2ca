// Validate: the schema, then the rules across fields, in kube-apiserver's order and words (1.37's; tests/data/verdicts
// is run against both). As kube-apiserver does since 1.30, an update does not fail for what it leaves as it was: a
// check that a newer build adds must not hold up the status or the finalizers of objects that are older.
#include <algorithm>
#include <cmath>
#include <map>

#include "api/base/time.h"
#include "api/types/field_errors.h"
#include "api/types/kind.h"
#include "api/types/type_info.h"

namespace lockkeeper {

using namespace types_internal;  // NOLINT(google-build-using-namespace)

namespace {

std::string Below(const std::string& path, const std::string& name) { return path.empty() ? name : path + "." + name; }
std::string At(const std::string& path, size_t index) { return path + "[" + std::to_string(index) + "]"; }

std::string_view SchemaType(const ValueInfo& info) {
  switch (info.kind) {
    case ValueKind::kString:
    case ValueKind::kTime: return "string";
    case ValueKind::kInteger: return "integer";
    case ValueKind::kNumber: return "number";
    case ValueKind::kBoolean: return "boolean";
    case ValueKind::kList: return "array";
    case ValueKind::kObject:
    case ValueKind::kMap: return "object";
    case ValueKind::kAny: break;
  }
  return "";
}

bool IsWhole(const Json& value) {
  return value.IsInt() || (value.IsDouble() && std::trunc(value.AsDouble()) == value.AsDouble());
}

bool HasType(const ValueInfo& info, const Json& value) {
  switch (info.kind) {
    case ValueKind::kString:
    case ValueKind::kTime: return value.IsString();
    case ValueKind::kInteger: return IsWhole(value);
    case ValueKind::kNumber: return value.IsNumber();
    case ValueKind::kBoolean: return value.IsBool();
    case ValueKind::kList: return value.IsArray();
    case ValueKind::kObject:
    case ValueKind::kMap: return value.IsObject();
    case ValueKind::kAny: break;
  }
  return true;
}

int64_t CodePoints(const std::string& text) {
  int64_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xc0) != 0x80 ? 1 : 0;
  return count;
}

// The key members of a list-map's item.
Json KeyOf(const ValueInfo& list, const Json& item) {
  Json key = Json::MakeObject();
  for (const std::string& name : list.list_map_keys) key.Set(name, item.Get(name));
  return key;
}

// Only items of a list-map have a former self.
const Json* OldItem(const ValueInfo& list, const Json& item, const Json* old) {
  if (old == nullptr || list.list_type != ListType::kMap) return nullptr;
  const Json key = KeyOf(list, item);
  for (const Json& candidate : old->AsArray()) {
    if (KeyOf(list, candidate) == key) return &candidate;
  }
  return nullptr;
}

class SchemaPass {
 public:
  SchemaPass(bool status_only, std::vector<FieldError>* errors) : status_only_(status_only), errors_(errors) {}

  void Struct(const TypeInfo& type, const Json& object, const Json* old, const std::string& path) {
    for (const FieldInfo& field : type.fields) {
      if (path.empty() && (field.name == "metadata" || (status_only_ && field.name != "status"))) continue;
      const Json* value = object.Find(field.name);
      if (value == nullptr) {
        if (field.required) errors_->push_back(RequiredError(Below(path, field.name)));
        continue;
      }
      Value(field.value, *value, old == nullptr ? nullptr : old->Find(field.name), Below(path, field.name));
    }
  }

 private:
  // A status write is checked by its status alone, and speaks of paths in it.
  std::string BodyPath(const std::string& path) const {
    return status_only_ ? path.substr(std::min(path.size(), std::string_view("status.").size())) : path;
  }
  std::string Body(const std::string& path) const { return BodyPath(path) + " in body "; }

  void Value(const ValueInfo& info, const Json& value, const Json* old, const std::string& path) {
    if (old != nullptr && value == *old) return;
    const bool fits = HasType(info, value);
    if (!fits) WrongType(info, value, path);
    if (info.enum_info != nullptr) Enum(info, value, path);
    // Bounds hold for a fraction too.
    if (value.IsNumber() && (info.kind == ValueKind::kInteger || info.kind == ValueKind::kNumber))
      Number(info, value, path);
    if (!fits) return;
    switch (info.kind) {
      case ValueKind::kString: String(info, value.AsString(), path); break;
      case ValueKind::kTime:
        if (!ParseTime(value.AsString()).ok()) {
          errors_->push_back(
              TypeError(path, value, Body(path) + "must be of type date-time: " + GoQuote(value.AsString())));
        }
        break;
      case ValueKind::kObject: Struct(*info.type, value, old, path); break;
      case ValueKind::kList: List(info, value, old, path); break;
      case ValueKind::kMap:
        for (const auto& [key, item] : value.AsObject()) {
          Value(*info.items, item, old == nullptr ? nullptr : old->Find(key), Below(path, key));
        }
        if (info.max_properties && static_cast<int64_t>(value.size()) > *info.max_properties) {
          errors_->push_back(TooManyError(path, static_cast<int64_t>(value.size()), *info.max_properties));
        }
        break;
      default: break;
    }
  }

  void WrongType(const ValueInfo& info, const Json& value, const std::string& path) {
    std::string expected(SchemaType(info)), found(SchemaTypeOf(value));
    if (info.kind == ValueKind::kTime) {  // where a format is asked for, formats are named
      expected = "date-time";
      found = value.IsInt() ? "int64" : value.IsDouble() ? "float64" : "";
    }
    errors_->push_back(
        TypeError(path, Json(found), Body(path) + "must be of type " + expected + ": \"" + found + "\""));
    if (info.kind == ValueKind::kInteger && value.IsDouble()) {  // said twice, once without the field
      errors_->push_back(InvalidError(status_only_ ? "status" : "<nil>", Json(""),
                                      "Checked value must be of type integer (default format) in " + BodyPath(path)));
    }
  }

  void Enum(const ValueInfo& info, const Json& value, const std::string& path) {
    for (const std::string& allowed : info.enum_info->values) {
      if (value.IsString() && value.AsString() == allowed) return;
    }
    errors_->push_back(NotSupportedError(path, value, info.enum_info->values));
  }

  // One error a string, the first that applies.
  void String(const ValueInfo& info, const std::string& text, const std::string& path) {
    if (info.max_length && CodePoints(text) > *info.max_length) {
      errors_->push_back(TooLongError(path, *info.max_length));
    } else if (info.min_length && CodePoints(text) < *info.min_length) {
      errors_->push_back(InvalidError(
          path, Json(text), Body(path) + "should be at least " + std::to_string(*info.min_length) + " chars long"));
    } else if (!info.pattern.empty() && !MatchesPattern(info.pattern, text)) {
      errors_->push_back(InvalidError(path, Json(text), Body(path) + "should match '" + info.pattern + "'"));
    }
  }

  void Number(const ValueInfo& info, const Json& value, const std::string& path) {
    if (info.maximum && value.AsDouble() > static_cast<double>(*info.maximum)) {
      errors_->push_back(
          InvalidError(path, value, Body(path) + "should be less than or equal to " + std::to_string(*info.maximum)));
    }
    if (info.minimum && value.AsDouble() < static_cast<double>(*info.minimum)) {
      errors_->push_back(InvalidError(
          path, value, Body(path) + "should be greater than or equal to " + std::to_string(*info.minimum)));
    }
  }

  void List(const ValueInfo& info, const Json& value, const Json* old, const std::string& path) {
    const auto size = static_cast<int64_t>(value.size());
    for (size_t i = 0; i < value.size(); ++i) {
      Value(*info.items, value.AsArray()[i], OldItem(info, value.AsArray()[i], old), At(path, i));
    }
    if (info.min_items && size < *info.min_items) {
      errors_->push_back(InvalidError(
          path, Json(size), Body(path) + "should have at least " + std::to_string(*info.min_items) + " items"));
    }
    if (info.max_items && size > *info.max_items) errors_->push_back(TooManyError(path, size, *info.max_items));
  }

  const bool status_only_;
  std::vector<FieldError>* errors_;
};

// Sets and list-maps hold nothing twice.
void Duplicates(const ValueInfo& info, const Json& value, const std::string& path, std::vector<FieldError>* errors) {
  if (info.kind == ValueKind::kObject && value.IsObject()) {
    for (const FieldInfo& field : info.type->fields) {
      if (const Json* member = value.Find(field.name))
        Duplicates(field.value, *member, Below(path, field.name), errors);
    }
  } else if (info.kind == ValueKind::kMap && value.IsObject()) {
    for (const auto& [key, item] : value.AsObject()) Duplicates(*info.items, item, path + "[" + key + "]", errors);
  } else if (info.kind == ValueKind::kList && value.IsArray()) {
    std::map<std::string, int> seen;
    for (size_t i = 0; i < value.size(); ++i) {
      const Json& item = value.AsArray()[i];
      Duplicates(*info.items, item, At(path, i), errors);
      if (info.list_type == ListType::kAtomic) continue;
      if (info.list_type == ListType::kMap && !item.IsObject()) {
        if (!item.IsNull())
          errors->push_back(InvalidError(At(path, i), item, "must be an object for an array of list-type map"));
        continue;
      }
      const Json key = info.list_type == ListType::kMap ? KeyOf(info, item) : item;
      if (++seen[key.DumpCanonical()] == 2) errors->push_back(DuplicateError(At(path, i), key));
    }
  }
}

class RulePass {
 public:
  explicit RulePass(std::vector<FieldError>* errors) : errors_(errors) {}

  void Struct(const TypeInfo& type, const Json& object, const Json* old, const std::string& path) {
    Run(type.rules, object, old, path);
    for (const FieldInfo& field : type.fields) {
      if (path.empty() && field.name == "metadata") continue;
      const Json* value = object.Find(field.name);
      if (value == nullptr) continue;
      Value(field.value, *value, old == nullptr ? nullptr : old->Find(field.name), Below(path, field.name));
    }
  }

 private:
  void Value(const ValueInfo& info, const Json& value, const Json* old, const std::string& path) {
    if (old != nullptr && old->IsNull()) old = nullptr;
    Run(info.rules, value, old, path);
    if (info.kind == ValueKind::kObject) {
      Struct(*info.type, value, old, path);
    } else if (info.kind == ValueKind::kMap) {
      for (const auto& [key, item] : value.AsObject()) {
        Value(*info.items, item, old == nullptr ? nullptr : old->Find(key), path + "[" + key + "]");
      }
    } else if (info.kind == ValueKind::kList) {
      for (size_t i = 0; i < value.size(); ++i) {
        Value(*info.items, value.AsArray()[i], OldItem(info, value.AsArray()[i], old), At(path, i));
      }
    }
  }

  void Run(const std::vector<Rule>& rules, const Json& value, const Json* old, const std::string& path) {
    for (const Rule& rule : rules) {
      if (rule.IsTransition() && old == nullptr) continue;
      if (!rule.IsTransition() && old != nullptr && value == *old) continue;
      if (rule.holds(value, rule.IsTransition() ? old : nullptr)) continue;
      errors_->push_back(InvalidError(path.empty() ? "<nil>" : path, value, rule.message));
    }
  }

  std::vector<FieldError>* errors_;
};

bool BlocksRules(const FieldError& error) {
  switch (error.reason) {
    case FieldReason::kNotSupported:
    case FieldReason::kRequired:
    case FieldReason::kTooLong:
    case FieldReason::kTooMany:
    case FieldReason::kTypeInvalid: return true;
    default: return false;
  }
}

}  // namespace

std::vector<FieldError> Validate(const KindInfo& kind, const Json& object, const Json* old, bool status_subresource) {
  std::vector<FieldError> errors;
  if (kind.type == nullptr) return errors;
  SchemaPass(status_subresource, &errors).Struct(*kind.type, object, old, "");
  for (const FieldInfo& field : kind.type->fields) {
    const Json* value = object.Find(field.name);
    if (value != nullptr && field.name != "metadata") Duplicates(field.value, *value, field.name, &errors);
  }
  for (const FieldError& error : errors) {
    if (!BlocksRules(error)) continue;
    errors.push_back(InvalidError("<nil>", Json(),
                                  "some validation rules were not checked because the object was invalid; correct the "
                                  "existing errors to complete validation"));
    return errors;
  }
  RulePass(&errors).Struct(*kind.type, object, old, "");
  return errors;
}

}  // namespace lockkeeper
