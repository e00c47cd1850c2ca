// TypeInfo: a struct's field table at run time. One table gives JSON in and out, defaults, validation, schema, CRD and
// reference page.
//
// Purpose:   each struct names its fields once, in its .cc, by TypeBuilder (type_builder.h); all else walks these.
// Ownership: tables are static and never destroyed.
// Threads:   immutable once built.
// Failure:   a broken table (a duplicate name, a rule text twice) aborts when it is built: a defect of ours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/json.h"
#include "api/types/enums.h"

namespace lockkeeper {

// Integers above this are no longer exact as JSON numbers.
inline constexpr int64_t kMaxSafeInteger = (int64_t{1} << 53) - 1;

struct TypeInfo;

// A rule that CEL runs in kube-apiserver and its C++ twin runs in the embedded server.
struct Rule {
  std::string cel;      // one that names oldSelf runs on updates only
  std::string message;  // no line break
  // Whether the rule holds. `old` is set exactly for a rule that names oldSelf.
  std::function<bool(const Json& self, const Json* old)> holds;

  bool IsTransition() const { return cel.find("oldSelf") != std::string::npos; }
};

enum class ValueKind { kString, kInteger, kNumber, kBoolean, kTime, kObject, kList, kMap, kAny };
enum class ListType { kAtomic, kSet, kMap };

// The schema of one value. Unset bounds are not checked.
struct ValueInfo {
  ValueKind kind = ValueKind::kAny;
  const TypeInfo* type = nullptr;    // kObject
  std::shared_ptr<ValueInfo> items;  // kList: item; kMap: value
  const EnumInfo* enum_info = nullptr;
  std::optional<int64_t> minimum, maximum;
  std::optional<int64_t> min_length, max_length;
  std::optional<int64_t> min_items, max_items;
  std::optional<int64_t> max_properties;  // kMap
  std::string pattern;                    // RE2 and ECMAScript alike
  std::string pattern_hint;               // what the reference page says of it
  ListType list_type = ListType::kAtomic;
  std::vector<std::string> list_map_keys;
  bool micro = false;  // kTime: written with microseconds
  std::vector<Rule> rules;
};

struct FieldInfo;

// How one C++ member type is read and written. One per member type.
struct ValueCodec {
  // Null when the member is unset or empty.
  Json (*encode)(const ValueInfo& info, const void* member);
  // Fills `where` (a path below the member, "" for itself) and `what` on failure.
  bool (*decode)(const ValueInfo& info, const Json& json, void* member, std::string* where, std::string* what);
  bool (*is_zero)(const void* member);
};

struct FieldInfo {
  std::string name;  // JSON
  std::string doc;
  ValueInfo value;
  bool required = false;
  bool immutable = false;
  bool keep_zero = false;  // written when zero, false or empty too
  Json default_value;      // null: none
  size_t offset = 0;
  const ValueCodec* codec = nullptr;
};

struct TypeInfo {
  std::string name;
  std::string doc;
  std::vector<FieldInfo> fields;
  std::vector<Rule> rules;
  // The gvk of a kind, written first; empty for other structs.
  std::string api_version;
  std::string kind;
  std::optional<size_t> extra_offset;  // a Json member that keeps what the table does not know

  const FieldInfo* Find(std::string_view field) const;
};

// A field's default with the defaults below it filled in; null when it has none. CRDs must show it so: rules are
// checked on a default as it stands.
Json FilledDefault(const FieldInfo& field);

// A name as CEL reads it: "namespace" is "__namespace__".
std::string CelName(std::string_view json_name);
// "string", "integer", "number", "boolean", "array", "object", "null": a JSON value's type as schemas call it.
std::string_view SchemaTypeOf(const Json& value);

}  // namespace lockkeeper
