// FromJson and ToJson: the structs of api/types to and from JSON, by their field tables.
//
// Purpose:   one way in, one way out. ToJson of a kind writes apiVersion and kind first. Members that a struct does
//            not know are kept in its `extra` and written back, so a read-modify-write loses nothing.
// What is written: required and defaulted members always; other members unless they are unset, zero, false or empty.
// What is read: null counts as absent; an absent member keeps the value the C++ struct starts with, which is its
//            schema default.
// Threads:   thread-safe.
// Failure:   kInvalid with the field's path and what was found: "spec.timeouts.readySeconds: expected an integer,
//            found a string". Bounds and rules are not checked here: see Validate in kind.h.
#pragma once

#include "api/base/json.h"
#include "api/base/status.h"

namespace lockkeeper {

struct TypeInfo;

namespace types_internal {
Json EncodeStruct(const TypeInfo& type, const void* object);
Status DecodeStruct(const TypeInfo& type, const Json& json, void* object);
}  // namespace types_internal

template <typename T>
Json ToJson(const T& value) {
  return types_internal::EncodeStruct(T::Type(), &value);
}

template <typename T>
Result<T> FromJson(const Json& json) {
  T value;
  LK_RETURN_IF_ERROR(types_internal::DecodeStruct(T::Type(), json, &value));
  return value;
}

}  // namespace lockkeeper
