// Enums of the resources: each enum class has one table of its wire names.
//
// Purpose:   LK_TYPES_ENUM(E) beside the enum declares its table; EnumName and ParseEnum read it.
// Ownership: tables are static and never destroyed.
// Threads:   thread-safe.
// Failure:   ParseEnum answers nullopt for a name that the table does not hold (names are case-sensitive).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockkeeper {

struct EnumInfo {
  std::string name;
  std::vector<std::string> values;  // by the enum's number, from 0 without gaps
};

#define LK_TYPES_ENUM(E) const ::lockkeeper::EnumInfo& EnumInfoOf(E)

template <typename E>
std::string_view EnumName(E e) {
  return EnumInfoOf(e).values[static_cast<size_t>(e)];
}

template <typename E>
std::optional<E> ParseEnum(std::string_view text) {
  const auto& values = EnumInfoOf(E{}).values;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] == text) return static_cast<E>(i);
  }
  return std::nullopt;
}

}  // namespace lockkeeper
