// Json: one JSON value, and the only door to the JSON library.
//
// Purpose:   parse, build, read and print JSON. Object members keep their order; integers up to 64 bits
//            stay integers.
// Ownership: a value; it owns all below it. Pointers from Find() live as long as the value is unchanged.
// Threads:   a value: no concurrent change.
// Failure:   Parse answers a Result with offset and reason. Reading a member of another type answers the
//            given default or nullptr; nothing throws, nothing asserts on input.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "api/base/status.h"

namespace lockkeeper {

class Json {
 public:
  using Member = std::pair<std::string, Json>;
  using Array = std::vector<Json>;
  using Object = std::vector<Member>;

  Json() = default;                                           // null
  Json(std::nullptr_t) {}                                     // NOLINT(google-explicit-constructor)
  Json(bool b) : value_(b) {}                                 // NOLINT(google-explicit-constructor)
  Json(int i) : value_(static_cast<int64_t>(i)) {}            // NOLINT(google-explicit-constructor)
  Json(unsigned i) : value_(static_cast<int64_t>(i)) {}       // NOLINT(google-explicit-constructor)
  Json(long i) : value_(static_cast<int64_t>(i)) {}           // NOLINT(google-explicit-constructor)
  Json(long long i) : value_(static_cast<int64_t>(i)) {}      // NOLINT(google-explicit-constructor)
  Json(unsigned long i) : value_(static_cast<int64_t>(i)) {}  // NOLINT(google-explicit-constructor)
  Json(double d) : value_(d) {}                               // NOLINT(google-explicit-constructor)
  Json(const char* s) : value_(std::string(s)) {}             // NOLINT(google-explicit-constructor)
  Json(std::string_view s) : value_(std::string(s)) {}        // NOLINT(google-explicit-constructor)
  Json(std::string s) : value_(std::move(s)) {}               // NOLINT(google-explicit-constructor)
  Json(Array a) : value_(std::move(a)) {}                     // NOLINT(google-explicit-constructor)
  Json(Object o) : value_(std::move(o)) {}                    // NOLINT(google-explicit-constructor)
  // A pointer would be taken for a bool.
  template <typename T>
  requires(!std::is_same_v<std::remove_cv_t<T>, char>) Json(T*)
  = delete;  // NOLINT(google-explicit-constructor)

  static Json MakeObject(std::initializer_list<Member> members = {}) { return Json(Object(members)); }
  static Json MakeArray(std::initializer_list<Json> items = {}) { return Json(Array(items)); }

  // Refuses invalid JSON, invalid UTF-8, trailing text, and nesting deeper than 200.
  // A member that stands twice keeps its last value; `duplicates`, when given, gets its dotted path.
  static Result<Json> Parse(std::string_view text, std::vector<std::string>* duplicates = nullptr);

  // Compact, members in their order. Bytes that are no UTF-8 become U+FFFD; NaN and infinities become null.
  std::string Dump() const;
  std::string DumpPretty() const;  // indented by 2
  // Compact with members sorted by name at each level: for hashing and comparing.
  std::string DumpCanonical() const;

  bool IsNull() const { return std::holds_alternative<std::monostate>(value_); }
  bool IsBool() const { return std::holds_alternative<bool>(value_); }
  bool IsInt() const { return std::holds_alternative<int64_t>(value_); }
  bool IsDouble() const { return std::holds_alternative<double>(value_); }
  bool IsNumber() const { return IsInt() || IsDouble(); }
  bool IsString() const { return std::holds_alternative<std::string>(value_); }
  bool IsArray() const { return std::holds_alternative<Array>(value_); }
  bool IsObject() const { return std::holds_alternative<Object>(value_); }

  // Read with a default, for a value of another type too.
  bool AsBool(bool other = false) const;
  int64_t AsInt(int64_t other = 0) const;  // a double without fraction counts
  double AsDouble(double other = 0) const;
  const std::string& AsString() const;  // "" for another type
  const Array& AsArray() const;         // empty for another type
  const Object& AsObject() const;       // empty for another type

  // REQUIRES: IsArray() / IsObject(); a null becomes one.
  Array& MutableArray();
  Object& MutableObject();

  size_t size() const;  // members or items, else 0
  bool empty() const { return size() == 0; }

  // The member, or nullptr when absent or when this is no object.
  const Json* Find(std::string_view key) const;
  Json* Find(std::string_view key);
  bool Has(std::string_view key) const { return Find(key) != nullptr; }
  // The member, or a shared null.
  const Json& Get(std::string_view key) const;
  // Follows members: At({"spec", "serverRef", "name"}); a shared null where one is missing.
  const Json& At(std::initializer_list<std::string_view> path) const;

  // The member, made when absent. A null becomes an object. REQUIRES: null or object.
  Json& operator[](std::string_view key);
  void Set(std::string_view key, Json value) { (*this)[key] = std::move(value); }
  bool Remove(std::string_view key);  // whether it was there
  void Push(Json value) { MutableArray().push_back(std::move(value)); }

  // Equal as JSON: order of members does not count, 1 and 1.0 are equal.
  bool operator==(const Json& other) const;

 private:
  std::variant<std::monostate, bool, int64_t, double, std::string, Array, Object> value_;
};

}  // namespace lockkeeper
