// Fact<T>: what one observation says of one thing: known, absent, or unknown since a time with the reason.
//
// Purpose: unknown never reads as absent. A plan must say what it does in all three cases.
// Threads: a value. Failure: none.
#pragma once

#include <string>
#include <utility>
#include <variant>

#include "api/base/time.h"

namespace lockkeeper {

struct Absent {
  bool operator==(const Absent&) const = default;
};
struct Unknown {
  std::string why;  // what the other side said
  bool operator==(const Unknown&) const = default;
};

template <typename T>
class Fact {
 public:
  Fact() : state_(Unknown{"not observed"}) {}
  Fact(T value) : state_(std::move(value)) {}            // NOLINT(google-explicit-constructor)
  Fact(Absent) : state_(Absent{}) {}                     // NOLINT(google-explicit-constructor)
  Fact(Unknown unknown) : state_(std::move(unknown)) {}  // NOLINT(google-explicit-constructor)
  // kNotFound is absent, every other error is unknown.
  static Fact Of(Result<T> result) {
    if (result.ok()) return Fact(std::move(*result));
    if (result.code() == Code::kNotFound) return Fact(Absent{});
    return Fact(Unknown{result.status().message()});
  }

  bool known() const { return std::holds_alternative<T>(state_); }
  bool absent() const { return std::holds_alternative<Absent>(state_); }
  bool unknown() const { return std::holds_alternative<Unknown>(state_); }
  // The value, or nullptr.
  const T* get() const { return std::get_if<T>(&state_); }
  T* get() { return std::get_if<T>(&state_); }
  const T& operator*() const { return std::get<T>(state_); }    // REQUIRES: known()
  const T* operator->() const { return &std::get<T>(state_); }  // REQUIRES: known()
  T& operator*() { return std::get<T>(state_); }                // REQUIRES: known()
  T* operator->() { return &std::get<T>(state_); }              // REQUIRES: known()
  // Why it is unknown, or "".
  std::string why() const {
    const Unknown* u = std::get_if<Unknown>(&state_);
    return u != nullptr ? u->why : std::string();
  }
  const std::variant<T, Absent, Unknown>& state() const { return state_; }

  bool operator==(const Fact&) const = default;

 private:
  std::variant<T, Absent, Unknown> state_;
};

}  // namespace lockkeeper
