#include "api/types/codec.h"

#include <cmath>

#include "api/types/type_builder.h"

namespace lockkeeper {

std::string_view SchemaTypeOf(const Json& value) {
  if (value.IsString()) return "string";
  if (value.IsInt()) return "integer";
  if (value.IsDouble()) return "number";
  if (value.IsBool()) return "boolean";
  if (value.IsArray()) return "array";
  if (value.IsObject()) return "object";
  return "null";
}

namespace types_internal {

bool Mismatch(std::string_view expected, const Json& found, std::string* what) {
  *what = "expected " + std::string(expected) + ", found ";
  const std::string_view type = SchemaTypeOf(found);
  what->append(type == "null" ? "" : (type == "array" || type == "integer" || type == "object") ? "an " : "a ");
  what->append(type);
  return false;
}

void PrependIndex(size_t index, std::string* where) {
  const std::string rest = where->empty() || where->front() == '[' ? *where : "." + *where;
  *where = "[" + std::to_string(index) + "]" + rest;
}

void PrependKey(std::string_view key, std::string* where) {
  const std::string rest = where->empty() || where->front() == '[' ? *where : "." + *where;
  *where = std::string(key) + rest;
}

bool DecodeEnum(const EnumInfo& info, const Json& json, size_t* index, std::string* what) {
  if (!json.IsString()) return Mismatch("a string", json, what);
  for (size_t i = 0; i < info.values.size(); ++i) {
    if (info.values[i] == json.AsString()) {
      *index = i;
      return true;
    }
  }
  *what = "this build does not know the value \"" + json.AsString() + "\" of " + info.name;
  return false;
}

bool DecodeTime(const Json& json, Time* out, std::string* what) {
  if (!json.IsString()) return Mismatch("a time as a string", json, what);
  Result<Time> time = ParseTime(json.AsString());
  if (!time.ok()) {
    *what = time.status().message();
    return false;
  }
  *out = *time;
  return true;
}

Json EncodeTime(const ValueInfo& info, Time time) {
  return Json(info.micro ? FormatMicroTime(time) : FormatTime(time));
}

static ValueInfo ScalarSchema(ValueKind kind) {
  ValueInfo info;
  info.kind = kind;
  return info;
}

ValueInfo Codec<std::string>::Schema() { return ScalarSchema(ValueKind::kString); }
Json Codec<std::string>::Encode(const ValueInfo&, const std::string& value) { return Json(value); }
bool Codec<std::string>::Decode(const ValueInfo&, const Json& json, std::string* value, std::string*,
                                std::string* what) {
  if (!json.IsString()) return Mismatch("a string", json, what);
  *value = json.AsString();
  return true;
}
bool Codec<std::string>::IsZero(const std::string& value) { return value.empty(); }

ValueInfo Codec<int64_t>::Schema() { return ScalarSchema(ValueKind::kInteger); }
Json Codec<int64_t>::Encode(const ValueInfo&, const int64_t& value) { return Json(value); }
bool Codec<int64_t>::Decode(const ValueInfo&, const Json& json, int64_t* value, std::string*, std::string* what) {
  const bool whole =
      json.IsDouble() && std::abs(json.AsDouble()) < 9e15 && std::trunc(json.AsDouble()) == json.AsDouble();
  if (!json.IsInt() && !whole) return Mismatch("an integer", json, what);
  *value = whole ? static_cast<int64_t>(json.AsDouble()) : json.AsInt();
  return true;
}
bool Codec<int64_t>::IsZero(const int64_t& value) { return value == 0; }

ValueInfo Codec<double>::Schema() { return ScalarSchema(ValueKind::kNumber); }
Json Codec<double>::Encode(const ValueInfo&, const double& value) { return Json(value); }
bool Codec<double>::Decode(const ValueInfo&, const Json& json, double* value, std::string*, std::string* what) {
  if (!json.IsNumber()) return Mismatch("a number", json, what);
  *value = json.IsInt() ? static_cast<double>(json.AsInt()) : json.AsDouble();
  return true;
}
bool Codec<double>::IsZero(const double& value) { return value == 0; }

ValueInfo Codec<bool>::Schema() { return ScalarSchema(ValueKind::kBoolean); }
Json Codec<bool>::Encode(const ValueInfo&, const bool& value) { return Json(value); }
bool Codec<bool>::Decode(const ValueInfo&, const Json& json, bool* value, std::string*, std::string* what) {
  if (!json.IsBool()) return Mismatch("true or false", json, what);
  *value = json.AsBool();
  return true;
}
bool Codec<bool>::IsZero(const bool& value) { return !value; }

ValueInfo Codec<Time>::Schema() { return ScalarSchema(ValueKind::kTime); }
Json Codec<Time>::Encode(const ValueInfo& info, const Time& value) { return EncodeTime(info, value); }
bool Codec<Time>::Decode(const ValueInfo&, const Json& json, Time* value, std::string*, std::string* what) {
  return DecodeTime(json, value, what);
}
bool Codec<Time>::IsZero(const Time& value) { return value == Time{}; }

ValueInfo Codec<Json>::Schema() { return ScalarSchema(ValueKind::kAny); }
Json Codec<Json>::Encode(const ValueInfo&, const Json& value) { return value; }
bool Codec<Json>::Decode(const ValueInfo&, const Json& json, Json* value, std::string*, std::string*) {
  *value = json;
  return true;
}
bool Codec<Json>::IsZero(const Json& value) { return value.IsNull(); }

Json EncodeStruct(const TypeInfo& type, const void* object) {
  const char* base = static_cast<const char*>(object);
  Json::Object out;
  if (!type.kind.empty()) {
    out.emplace_back("apiVersion", type.api_version);
    out.emplace_back("kind", type.kind);
  }
  for (const FieldInfo& field : type.fields) {
    const void* member = base + field.offset;
    if (!field.keep_zero && field.codec->is_zero(member)) continue;
    Json value = field.codec->encode(field.value, member);
    if (!value.IsNull()) out.emplace_back(field.name, std::move(value));
  }
  if (type.extra_offset) {
    for (const auto& member : reinterpret_cast<const Json*>(base + *type.extra_offset)->AsObject())
      out.push_back(member);
  }
  return Json(std::move(out));
}

bool DecodeStructAt(const TypeInfo& type, const Json& json, void* object, std::string* where, std::string* what) {
  if (!json.IsObject()) return Mismatch("an object", json, what);
  char* base = static_cast<char*>(object);
  if (!type.kind.empty()) {
    const Json* kind = json.Find("kind");
    const Json* version = json.Find("apiVersion");
    // Items of a list may lack both.
    if ((kind != nullptr && kind->AsString() != type.kind) ||
        (version != nullptr && version->AsString() != type.api_version)) {
      *what = "expected " + type.kind + " " + type.api_version + ", found " + json.Get("kind").Dump() + " " +
              json.Get("apiVersion").Dump();
      return false;
    }
  }
  for (const auto& [name, value] : json.AsObject()) {
    if (const FieldInfo* field = type.Find(name)) {
      if (value.IsNull()) continue;
      if (!field->codec->decode(field->value, value, base + field->offset, where, what)) {
        PrependKey(name, where);
        return false;
      }
    } else if (type.extra_offset && (type.kind.empty() || (name != "kind" && name != "apiVersion"))) {
      reinterpret_cast<Json*>(base + *type.extra_offset)->Set(name, value);
    }
  }
  return true;
}

Status DecodeStruct(const TypeInfo& type, const Json& json, void* object) {
  std::string where;
  std::string what;
  if (DecodeStructAt(type, json, object, &where, &what)) return Status::Ok();
  return Status(Code::kInvalid, "reading " + type.name + ": " + (where.empty() ? "" : where + ": ") + what);
}

}  // namespace types_internal
}  // namespace lockkeeper
