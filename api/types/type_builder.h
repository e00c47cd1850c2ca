// TypeBuilder: writes a struct's field table. Included by the .cc files that hold a table, by nobody else.
//
//   const TypeInfo& LogPolicy::Type() {
//     static const TypeInfo* type = [] {
//       TypeBuilder<LogPolicy> b("LogPolicy", "How a slot's output is kept.");
//       b.Field(&LogPolicy::keep, "keep", "Files kept beside the current one.").Range(0, 100).Default(3);
//       return b.Build();
//     }();
//     return *type;
//   }
//
// Templates only pick the codec of the member's type and its offset; all else is compiled once.
// Ownership, threads, failure: see type_info.h.
#pragma once

#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "api/base/time.h"
#include "api/types/codec.h"
#include "api/types/type_info.h"

namespace lockkeeper {

namespace types_internal {

bool DecodeStructAt(const TypeInfo& type, const Json& json, void* object, std::string* where, std::string* what);
bool Mismatch(std::string_view expected, const Json& found, std::string* what);
bool DecodeEnum(const EnumInfo& info, const Json& json, size_t* index, std::string* what);
bool DecodeTime(const Json& json, Time* out, std::string* what);
Json EncodeTime(const ValueInfo& info, Time time);
void PrependIndex(size_t index, std::string* where);
void PrependKey(std::string_view key, std::string* where);

template <typename T>
struct Codec {  // enums and structs
  static ValueInfo Schema() {
    ValueInfo v;
    if constexpr (std::is_enum_v<T>) {
      v.kind = ValueKind::kString;
      v.enum_info = &EnumInfoOf(T{});
    } else {
      v.kind = ValueKind::kObject;
      v.type = &T::Type();
    }
    return v;
  }
  static Json Encode(const ValueInfo&, const T& value) {
    if constexpr (std::is_enum_v<T>) {
      return Json(EnumName(value));
    } else {
      return EncodeStruct(T::Type(), &value);
    }
  }
  static bool Decode(const ValueInfo&, const Json& json, T* value, std::string* where, std::string* what) {
    if constexpr (std::is_enum_v<T>) {
      size_t index = 0;
      if (!DecodeEnum(EnumInfoOf(T{}), json, &index, what)) return false;
      *value = static_cast<T>(index);
      return true;
    } else {
      return DecodeStructAt(T::Type(), json, value, where, what);
    }
  }
  static bool IsZero(const T& value) {
    if constexpr (std::is_enum_v<T>) {
      return false;  // an enum has no zero that may be left out
    } else {
      return EncodeStruct(T::Type(), &value).empty();
    }
  }
};

#define LK_TYPES_SCALAR(T)                                                                             \
  template <>                                                                                          \
  struct Codec<T> {                                                                                    \
    static ValueInfo Schema();                                                                         \
    static Json Encode(const ValueInfo& info, const T& value);                                         \
    static bool Decode(const ValueInfo&, const Json& json, T* value, std::string*, std::string* what); \
    static bool IsZero(const T& value);                                                                \
  }
LK_TYPES_SCALAR(std::string);
LK_TYPES_SCALAR(int64_t);
LK_TYPES_SCALAR(double);
LK_TYPES_SCALAR(bool);
LK_TYPES_SCALAR(Time);
LK_TYPES_SCALAR(Json);
#undef LK_TYPES_SCALAR

template <typename T>
struct Codec<std::optional<T>> {
  static ValueInfo Schema() { return Codec<T>::Schema(); }
  static Json Encode(const ValueInfo& info, const std::optional<T>& value) {
    return value ? Codec<T>::Encode(info, *value) : Json();
  }
  static bool Decode(const ValueInfo& info, const Json& json, std::optional<T>* value, std::string* where,
                     std::string* what) {
    return Codec<T>::Decode(info, json, &value->emplace(), where, what);
  }
  static bool IsZero(const std::optional<T>& value) { return !value.has_value(); }
};

template <typename T>
struct Codec<std::vector<T>> {
  static ValueInfo Schema() {
    ValueInfo v;
    v.kind = ValueKind::kList;
    v.items = std::make_shared<ValueInfo>(Codec<T>::Schema());
    return v;
  }
  static Json Encode(const ValueInfo& info, const std::vector<T>& value) {
    Json::Array out;
    out.reserve(value.size());
    for (const T& item : value) out.push_back(Codec<T>::Encode(*info.items, item));
    return Json(std::move(out));
  }
  static bool Decode(const ValueInfo& info, const Json& json, std::vector<T>* value, std::string* where,
                     std::string* what) {
    if (!json.IsArray()) return Mismatch("a list", json, what);
    value->clear();
    for (size_t i = 0; i < json.AsArray().size(); ++i) {
      if (!Codec<T>::Decode(*info.items, json.AsArray()[i], &value->emplace_back(), where, what)) {
        PrependIndex(i, where);
        return false;
      }
    }
    return true;
  }
  static bool IsZero(const std::vector<T>& value) { return value.empty(); }
};

template <typename T>
struct Codec<std::map<std::string, T>> {
  static ValueInfo Schema() {
    ValueInfo v;
    v.kind = ValueKind::kMap;
    v.items = std::make_shared<ValueInfo>(Codec<T>::Schema());
    return v;
  }
  static Json Encode(const ValueInfo& info, const std::map<std::string, T>& value) {
    Json::Object out;
    for (const auto& [key, item] : value) out.emplace_back(key, Codec<T>::Encode(*info.items, item));
    return Json(std::move(out));
  }
  static bool Decode(const ValueInfo& info, const Json& json, std::map<std::string, T>* value, std::string* where,
                     std::string* what) {
    if (!json.IsObject()) return Mismatch("an object", json, what);
    value->clear();
    for (const auto& [key, item] : json.AsObject()) {
      if (!Codec<T>::Decode(*info.items, item, &(*value)[key], where, what)) {
        PrependKey(key, where);
        return false;
      }
    }
    return true;
  }
  static bool IsZero(const std::map<std::string, T>& value) { return value.empty(); }
};

template <typename T>
const ValueCodec* CodecOf() {
  static constexpr ValueCodec kCodec = {
      [](const ValueInfo& info, const void* member) { return Codec<T>::Encode(info, *static_cast<const T*>(member)); },
      [](const ValueInfo& info, const Json& json, void* member, std::string* where, std::string* what) {
        return Codec<T>::Decode(info, json, static_cast<T*>(member), where, what);
      },
      [](const void* member) { return Codec<T>::IsZero(*static_cast<const T*>(member)); },
  };
  return &kCodec;
}

}  // namespace types_internal

// Chained options of one field.
class FieldRef {
 public:
  explicit FieldRef(FieldInfo* field) : field_(field) {}

  FieldRef& Required();
  FieldRef& Immutable();
  FieldRef& Default(Json value);  // written always; shown on read
  FieldRef& Range(int64_t minimum, int64_t maximum);
  FieldRef& Length(int64_t minimum, int64_t maximum);  // strings; of the items on a list, of the values on a map
  // Strings; of the items on a list, of the values on a map. `hint` says it in words for the reference page.
  FieldRef& Pattern(std::string pattern, std::string hint = "");
  FieldRef& Items(int64_t minimum, int64_t maximum);
  FieldRef& Keys(int64_t maximum);  // maps
  FieldRef& Set();
  FieldRef& ListMap(std::vector<std::string> keys);
  FieldRef& Micro();  // times with microseconds
  FieldRef& Check(std::string cel, std::string message, std::function<bool(const Json&, const Json*)> holds);

 private:
  ValueInfo& Leaf();  // the items of a list or map, else the value
  FieldInfo* field_;
};

class TypeBuilderBase {
 public:
  // A rule across fields.
  void Check(std::string cel, std::string message, std::function<bool(const Json&, const Json*)> holds);
  // `member` stands exactly when `discriminator` is `value`.
  void Member(std::string_view discriminator, std::string_view value, std::string_view member);
  // `member` may stand only when `discriminator` is `value`.
  void MemberOnlyWith(std::string_view discriminator, std::string_view value, std::string_view member);
  // All fields named so far that are not excepted get Immutable(); `hint` follows "F is immutable: ".
  void ImmutableBut(std::vector<std::string> mutable_fields, std::string hint);
  // What follows "F is immutable: " in the message of the fields marked Immutable().
  void ImmutableHint(std::string hint) { immutable_hint_ = std::move(hint); }

  const TypeInfo* Build();

 protected:
  TypeBuilderBase(std::string name, std::string doc);
  FieldRef Add(std::string name, std::string doc, size_t offset, ValueInfo schema, const ValueCodec* codec);
  void AddInline(const TypeInfo& type, size_t offset);
  std::unique_ptr<TypeInfo> type_;
  std::string immutable_hint_;
};

template <typename S>
class TypeBuilder : public TypeBuilderBase {
 public:
  TypeBuilder(std::string name, std::string doc) : TypeBuilderBase(std::move(name), std::move(doc)) {
    if constexpr (requires { &S::extra; }) type_->extra_offset = Offset(&S::extra);
    if constexpr (requires { S::kKind; }) {
      type_->api_version = S::kApiVersion;
      type_->kind = S::kKind;
    }
  }

  template <typename T>
  FieldRef Field(T S::*member, std::string name, std::string doc) {
    return Add(std::move(name), std::move(doc), Offset(member), types_internal::Codec<T>::Schema(),
               types_internal::CodecOf<T>());
  }
  // The fields of a member struct stand among the fields of this one.
  template <typename T>
  void Inline(T S::*member) {
    AddInline(T::Type(), Offset(member));
  }

 private:
  template <typename T>
  size_t Offset(T S::*member) const {
    return static_cast<size_t>(reinterpret_cast<const char*>(&(probe_.*member)) -
                               reinterpret_cast<const char*>(&probe_));
  }
  const S probe_{};
};

}  // namespace lockkeeper
