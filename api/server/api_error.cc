#include "api/server/api_error.h"

namespace lockkeeper::apiserver {
namespace {

// "upgrades.lockkeeper.dev", "configmaps".
std::string Qualified(const KindInfo& kind, const std::string& word) {
  return kind.group.empty() ? word : word + "." + kind.group;
}

std::string Quoted(std::string_view name) { return "\"" + std::string(name) + "\""; }

Json Details(const KindInfo& kind, std::string_view name, const std::string& word) {
  Json details = Json::MakeObject();
  if (!name.empty()) details["name"] = name;
  if (!kind.group.empty()) details["group"] = kind.group;
  details["kind"] = word;
  return details;
}

Json Cause(std::string_view reason, std::string_view message, std::string_view field) {
  Json cause = Json::MakeObject();
  if (!reason.empty()) cause["reason"] = reason;
  if (!message.empty()) cause["message"] = message;
  if (!field.empty()) cause["field"] = field;
  return cause;
}

ApiError Make(int code, std::string reason, std::string message) {
  ApiError error;
  error.code = code;
  error.reason = std::move(reason);
  error.message = std::move(message);
  return error;
}

}  // namespace

Json ApiError::Body() const {
  Json body = Json::MakeObject({{"kind", "Status"},
                                {"apiVersion", "v1"},
                                {"metadata", metadata.IsNull() ? Json::MakeObject() : metadata},
                                {"status", "Failure"},
                                {"message", message},
                                {"reason", reason}});
  if (!details.IsNull()) body["details"] = details;
  if (retry_after_seconds > 0) body["details"]["retryAfterSeconds"] = retry_after_seconds;
  body["code"] = code;
  return body;
}

ApiError NotFound(const KindInfo& kind, std::string_view name) {
  ApiError error = Make(404, "NotFound", Qualified(kind, kind.plural) + " " + Quoted(name) + " not found");
  error.details = Details(kind, name, kind.plural);
  return error;
}

ApiError AlreadyExists(const KindInfo& kind, std::string_view name) {
  ApiError error = Make(409, "AlreadyExists", Qualified(kind, kind.plural) + " " + Quoted(name) + " already exists");
  error.details = Details(kind, name, kind.plural);
  return error;
}

ApiError Conflict(const KindInfo& kind, std::string_view name, std::string_view why) {
  if (why.empty()) {
    why = "the object has been modified; please apply your changes to the latest version and try again";
  }
  ApiError error = Make(409, "Conflict",
                        "Operation cannot be fulfilled on " + Qualified(kind, kind.plural) + " " + Quoted(name) + ": " +
                            std::string(why));
  error.details = Details(kind, name, kind.plural);
  return error;
}

ApiError Invalid(const KindInfo& kind, std::string_view name, const std::vector<FieldError>& errors) {
  std::string text;
  Json causes = Json::MakeArray();
  for (const FieldError& e : errors) {
    if (!text.empty()) text += ", ";
    text += e.ToString();
    causes.Push(Cause(FieldReasonName(e.reason), e.message, e.field));
  }
  if (errors.size() > 1) text = "[" + text + "]";
  ApiError error = Make(422, "Invalid", Qualified(kind, kind.kind) + " " + Quoted(name) + " is invalid: " + text);
  error.details = Details(kind, name, kind.kind);
  if (!errors.empty()) error.details["causes"] = std::move(causes);
  return error;
}

ApiError Invalid(const KindInfo& kind, std::string_view name, FieldReason reason, std::string field,
                 std::string message) {
  return Invalid(kind, name, {FieldError{reason, std::move(field), std::move(message)}});
}

ApiError BadRequest(std::string message) { return Make(400, "BadRequest", std::move(message)); }

ApiError Forbidden(const KindInfo& kind, std::string_view name, std::string_view why) {
  ApiError error =
      Make(403, "Forbidden", Qualified(kind, kind.plural) + " " + Quoted(name) + " is forbidden: " + std::string(why));
  error.details = Details(kind, name, kind.plural);
  return error;
}

ApiError Unauthorized() { return Make(401, "Unauthorized", "Unauthorized: send a bearer token of the token file"); }

ApiError MethodNotAllowed(std::string message) { return Make(405, "MethodNotAllowed", std::move(message)); }

ApiError NotAcceptable() {
  return Make(406, "NotAcceptable", "only the following media types are accepted: application/json");
}

ApiError UnsupportedMediaType(const std::vector<std::string>& accepted) {
  std::string list;
  for (const std::string& type : accepted) {
    if (!list.empty()) list += ", ";
    list += type;
  }
  return Make(415, "UnsupportedMediaType",
              "the body of the request was in an unknown format - accepted media types include: " + list);
}

ApiError Expired(std::string message) { return Make(410, "Expired", std::move(message)); }

ApiError TooLargeResourceVersion(int64_t asked, int64_t current) {
  ApiError error =
      Make(504, "Timeout",
           "Timeout: Too large resource version: " + std::to_string(asked) + ", current: " + std::to_string(current));
  error.details = Json::MakeObject(
      {{"causes", Json::MakeArray({Cause("ResourceVersionTooLarge", "Too large resource version", "")})}});
  error.retry_after_seconds = 1;
  return error;
}

ApiError TooLarge(std::string message) { return Make(413, "RequestEntityTooLarge", std::move(message)); }

ApiError FromStore(const Status& status) {
  switch (status.code()) {
    case Code::kExhausted: return Make(507, "InsufficientStorage", status.message());
    case Code::kExpired: return Expired(status.message());
    case Code::kBusy:
    case Code::kCancelled: {
      ApiError error = Make(503, "ServiceUnavailable", status.message());
      error.retry_after_seconds = 1;
      return error;
    }
    case Code::kInvalid: return BadRequest(status.message());
    default: return Make(500, "InternalError", status.message());
  }
}

Json SuccessBody(const KindInfo& kind, std::string_view name, std::string_view uid) {
  Json details = Details(kind, name, kind.plural);
  if (!uid.empty()) details["uid"] = uid;
  return Json::MakeObject({{"kind", "Status"},
                           {"apiVersion", "v1"},
                           {"metadata", Json::MakeObject()},
                           {"status", "Success"},
                           {"details", std::move(details)}});
}

}  // namespace lockkeeper::apiserver
