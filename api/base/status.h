// Status and Result<T>: how every fallible call of lockkeeper answers.
//
// Purpose:   an error is a value that says what was attempted, on what, and what the other side said.
// Ownership: plain values; copying is cheap enough for error paths.
// Threads:   values, no shared state.
// Failure:   a Status or Result must be looked at ([[nodiscard]], -Werror=unused-result). No exception
//            crosses an adapter: libraries that throw are wrapped where they are called.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace lockkeeper {

// The kind of an error. It decides what a reconcile loop does next (see DispositionOf).
enum class Code {
  kOk,
  kInvalid,        // the input can never succeed as it stands
  kNotFound,       // the thing named does not exist
  kAlreadyExists,  // a create met an existing thing
  kConflict,       // optimistic lock lost: read again, decide again
  kExpired,        // a resourceVersion or token is too old: list again
  kPrecondition,   // a named precondition (uid, resourceVersion, state) does not hold
  kUnauthorized,   // no or wrong credentials
  kForbidden,      // credentials are known but not allowed
  kUnavailable,    // nobody answers, or the answer was "not now"
  kTimeout,        // no answer within the deadline; the effect is unknown
  kBusy,           // another holder has it
  kExhausted,      // disk full, no descriptors, quota
  kCorrupt,        // stored data is damaged
  kUnsupported,    // this build or driver cannot do it
  kCancelled,      // the caller asked to stop
  kInternal,       // a defect of ours, or an answer that makes no sense
};

std::string_view CodeName(Code code);

// What a loop does after an error of this kind.
enum class Disposition {
  kRetry,      // again with back-off
  kReobserve,  // at once, from a fresh observation
  kStalled,    // not before something changes
  kStop,       // the loop is ending
};
Disposition DispositionOf(Code code);

class [[nodiscard]] Status {
 public:
  Status() = default;  // ok
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  static Status Ok() { return {}; }

  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }

  // The same error with what was being attempted in front: "ATTEMPT: message".
  Status Annotate(std::string_view attempt) const;

  // "NotFound: message", or "Ok".
  std::string ToString() const;

  bool operator==(const Status&) const = default;

 private:
  Code code_ = Code::kOk;
  std::string message_;
};

// Prints the message and aborts. For broken invariants of our own, never for input.
[[noreturn]] void Die(const char* file, int line, std::string_view what);

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}         // NOLINT(google-explicit-constructor)
  Result(Status status) : status_(std::move(status)) {  // NOLINT(google-explicit-constructor)
    if (status_.ok()) Die(__FILE__, __LINE__, "Result made from an ok Status");
  }
  Result(Code code, std::string message) : status_(code, std::move(message)) {}

  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }
  Code code() const { return status_.code(); }

  // REQUIRES: ok().
  T& operator*() & { return Value(); }
  const T& operator*() const& { return const_cast<Result*>(this)->Value(); }
  T&& operator*() && { return std::move(Value()); }
  T* operator->() { return &Value(); }
  const T* operator->() const { return &const_cast<Result*>(this)->Value(); }

  T value_or(T other) const { return ok() ? *value_ : std::move(other); }

 private:
  T& Value() {
    if (!value_) Die(__FILE__, __LINE__, status_.ToString());
    return *value_;
  }
  std::optional<T> value_;
  Status status_;
};

#define LK_CHECK(cond)                                                          \
  do {                                                                          \
    if (!(cond)) ::lockkeeper::Die(__FILE__, __LINE__, "CHECK failed: " #cond); \
  } while (0)

#define LK_RETURN_IF_ERROR(expr)              \
  do {                                        \
    ::lockkeeper::Status lk_status_ = (expr); \
    if (!lk_status_.ok()) return lk_status_;  \
  } while (0)

#define LK_CONCAT_INNER(a, b) a##b
#define LK_CONCAT(a, b) LK_CONCAT_INNER(a, b)
// LK_ASSIGN_OR_RETURN(auto x, Call());
#define LK_ASSIGN_OR_RETURN(lhs, expr) LK_ASSIGN_OR_RETURN_IMPL(LK_CONCAT(lk_result_, __LINE__), lhs, expr)
#define LK_ASSIGN_OR_RETURN_IMPL(result, lhs, expr) \
  auto result = (expr);                             \
  if (!result.ok()) return result.status();         \
  lhs = std::move(*result)

}  // namespace lockkeeper
