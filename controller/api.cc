#include "controller/api.h"

#include <charconv>

namespace lockkeeper {

namespace {

Code CodeOfReason(const std::string& reason, int http_status) {
  static const std::map<std::string, Code, std::less<>> kReasons = {
      {"NotFound", Code::kNotFound},
      {"AlreadyExists", Code::kAlreadyExists},
      {"Conflict", Code::kConflict},
      {"Gone", Code::kExpired},
      {"Expired", Code::kExpired},
      {"Invalid", Code::kInvalid},
      {"BadRequest", Code::kInvalid},
      {"RequestEntityTooLarge", Code::kInvalid},
      {"Unauthorized", Code::kUnauthorized},
      {"Forbidden", Code::kForbidden},
      {"MethodNotAllowed", Code::kUnsupported},
      {"NotAcceptable", Code::kUnsupported},
      {"UnsupportedMediaType", Code::kUnsupported},
      {"TooManyRequests", Code::kUnavailable},
      {"ServiceUnavailable", Code::kUnavailable},
      {"ServerTimeout", Code::kUnavailable},
      {"Timeout", Code::kTimeout},
      {"InternalError", Code::kInternal},
  };
  if (const auto it = kReasons.find(reason); it != kReasons.end()) return it->second;
  switch (http_status) {
    case 400:
    case 413:
    case 422: return Code::kInvalid;
    case 401: return Code::kUnauthorized;
    case 403: return Code::kForbidden;
    case 404: return Code::kNotFound;
    case 405:
    case 406:
    case 415: return Code::kUnsupported;
    case 409: return Code::kConflict;
    case 410: return Code::kExpired;
    case 429:
    case 502:
    case 503: return Code::kUnavailable;
    case 408:
    case 504: return Code::kTimeout;
    default: return Code::kInternal;
  }
}

}  // namespace

ObjectKey ObjectKey::Of(const Json& object) {
  const Json& metadata = object.Get("metadata");
  return {metadata.Get("namespace").AsString(), metadata.Get("name").AsString()};
}

Result<ObjectList> Api::List(const Resource& resource, const std::string& namespace_, ListOptions options) {
  ObjectList out;
  while (true) {
    LK_ASSIGN_OR_RETURN(
        out.meta, ListEach(resource, namespace_, options, [&out](Json item) { out.items.push_back(std::move(item)); }));
    if (out.meta.continue_token.empty()) return out;
    options.continue_token = out.meta.continue_token;
    options.resource_version.clear();
    options.resource_version_match.clear();
  }
}

const std::string& ResourceVersionOf(const Json& object) {
  return object.Get("metadata").Get("resourceVersion").AsString();
}

const std::string& UidOf(const Json& object) { return object.Get("metadata").Get("uid").AsString(); }

int64_t ResourceVersionNumber(std::string_view resource_version) {
  int64_t out = -1;
  const auto [end, error] =
      std::from_chars(resource_version.data(), resource_version.data() + resource_version.size(), out);
  if (error != std::errc() || end != resource_version.data() + resource_version.size()) return -1;
  return out;
}

Status StatusOfAnswer(int http_status, const Json& body, std::string_view attempt) {
  std::string message = body.Get("message").AsString();
  if (message.empty()) message = "HTTP status " + std::to_string(http_status);
  Code code = CodeOfReason(body.Get("reason").AsString(), http_status);
  for (const Json& cause : body.At({"details", "causes"}).AsArray()) {
    const std::string& reason = cause.Get("reason").AsString();
    // A version from the future: reading at any version again is what helps, as with one from too far back.
    if (reason == "ResourceVersionTooLarge") code = Code::kExpired;
    const std::string& text = cause.Get("message").AsString();
    const std::string& field = cause.Get("field").AsString();
    if (!text.empty() && message.find(text) == std::string::npos) {
      message.append("; ").append(field).append(field.empty() ? "" : ": ").append(text);
    }
  }
  return Status(code, std::move(message)).Annotate(attempt);
}

}  // namespace lockkeeper
