// ApiError and Outcome: an answer that is no success, in the words of the Kubernetes API.
//
// Purpose:   the Status bodies that kubectl and client-go understand: code, reason, message, details, causes.
// Ownership: values. Threads: values. Failure: none.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/base/json.h"
#include "api/base/status.h"
#include "api/types/kind.h"

namespace lockkeeper::apiserver {

struct ApiError {
  int code = 500;
  std::string reason;
  std::string message;
  Json details;                 // null, or {name, group, kind, causes, …}
  Json metadata;                // null for the usual empty one
  int retry_after_seconds = 0;  // 0: no Retry-After

  // {"kind":"Status", …, "status":"Failure"}
  Json Body() const;
};

// Either a T or an ApiError.
template <typename T>
class [[nodiscard]] Outcome {
 public:
  Outcome(T value) : value_(std::move(value)) {}         // NOLINT(google-explicit-constructor)
  Outcome(ApiError error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)
  bool ok() const { return value_.has_value(); }
  // REQUIRES: ok().
  T& operator*() { return *value_; }
  T* operator->() { return &*value_; }
  // REQUIRES: !ok().
  const ApiError& error() const { return error_; }

 private:
  std::optional<T> value_;
  ApiError error_;
};

ApiError NotFound(const KindInfo& kind, std::string_view name);
ApiError AlreadyExists(const KindInfo& kind, std::string_view name);
// 409 with the sentence that client-go's retries look for.
ApiError Conflict(const KindInfo& kind, std::string_view name, std::string_view why = {});
// 422 with a cause per error.
ApiError Invalid(const KindInfo& kind, std::string_view name, const std::vector<FieldError>& errors);
// 422 about one field.
ApiError Invalid(const KindInfo& kind, std::string_view name, FieldReason reason, std::string field,
                 std::string message);
ApiError BadRequest(std::string message);
ApiError Forbidden(const KindInfo& kind, std::string_view name, std::string_view why);
ApiError Unauthorized();
ApiError MethodNotAllowed(std::string message);
ApiError NotAcceptable();
ApiError UnsupportedMediaType(const std::vector<std::string>& accepted);
// 410: the history does not reach back. `metadata` may carry a fresh continue token.
ApiError Expired(std::string message);
// 504 for a resourceVersion of the future (crd-idioms 10.6).
ApiError TooLargeResourceVersion(int64_t asked, int64_t current);
ApiError TooLarge(std::string message);
// What the store answered, as a client sees it: a full disk is 507, a damaged store 500, a lock held too long 503.
ApiError FromStore(const Status& status);

// {"kind":"Status","status":"Success","details":{name, group, kind, uid}}: the answer of a finished DELETE.
Json SuccessBody(const KindInfo& kind, std::string_view name, std::string_view uid);

}  // namespace lockkeeper::apiserver
