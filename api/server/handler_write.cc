// The handler's writes: create, update, patch, delete, deletecollection, and the reviews.
#include <utility>

#include "api/server/handler_call.h"
#include "api/server/protobuf.h"
#include "api/server/watch_hub.h"

namespace lockkeeper::apiserver {
namespace {

constexpr const char* kMergePatch = "application/merge-patch+json";
constexpr const char* kJsonPatch = "application/json-patch+json";
constexpr const char* kStrategicPatch = "application/strategic-merge-patch+json";

// A 422 about an option of the request rather than about the object.
ApiError InvalidOption(const char* field, const std::string& value, const char* supported) {
  KindInfo options;
  options.group = "meta.k8s.io";
  options.kind = "WriteOptions";
  return Invalid(options, "", FieldReason::kNotSupported, field,
                 "Unsupported value: \"" + value + "\": supported values: " + supported);
}

// As the Warning header wants it: 299, no agent, a quoted text.
std::string WarningHeader(const std::string& text) {
  std::string quoted;
  for (char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) quoted += c;
  }
  return "299 - \"" + quoted + "\"";
}

}  // namespace

bool ApiHandler::ReadWriteOptions(Call& call, WriteContext& context) {
  context.cluster = call.info.cluster;
  context.user = call.user.name;
  const std::string dry_run = call.request.Query("dryRun");
  context.dry_run = dry_run == "All";
  if (!dry_run.empty() && !context.dry_run) {
    Respond(call, InvalidOption("dryRun", dry_run, "\"All\""));
    return false;
  }
  const std::string validation = call.request.Query("fieldValidation");
  if (validation == "Strict") {
    context.body.validation = FieldValidation::kStrict;
  } else if (validation == "Ignore") {
    context.body.validation = FieldValidation::kIgnore;
  } else if (!validation.empty() && validation != "Warn") {
    Respond(call, InvalidOption("fieldValidation", validation, "\"Ignore\", \"Strict\", \"Warn\""));
    return false;
  }
  return true;
}

bool ApiHandler::ReadBody(Call& call, WriteContext& context, Json& body) {
  const std::string type = MediaType(call.request.Header("content-type"));
  if (type == kProtobufType) {
    Result<Json> decoded = DecodeProtobuf(call.request.body);
    if (!decoded.ok()) {
      ApiError error = UnsupportedMediaType({"application/json"});
      error.message += ": " + decoded.status().message();
      Respond(call, error);
      return false;
    }
    body = std::move(*decoded);
    return true;
  }
  if (!type.empty() && type != "application/json" && type != kMergePatch && type != kJsonPatch &&
      type != kStrategicPatch) {
    Respond(call, UnsupportedMediaType({"application/json", std::string(kProtobufType) + " (a few kinds)"}));
    return false;
  }
  Result<Json> parsed = Json::Parse(call.request.body, &context.body.duplicates);
  if (!parsed.ok()) {
    Respond(call, BadRequest("the body is no valid JSON: " + parsed.status().message()));
    return false;
  }
  body = std::move(*parsed);
  return true;
}

void ApiHandler::RespondObject(Call& call, int code, const Json& object, const WriteContext* context) {
  if (context != nullptr) {
    for (const std::string& warning : context->warnings)
      call.response.headers.emplace_back("Warning", WarningHeader(warning));
  }
  if (call.shape == Shape::kPlain) return RespondJson(call, code, object);
  RespondWith(call, code, Presenter(*call.resource, call.shape, IncludeObject::kMetadata, clock_).Object(object, true));
}

void ApiHandler::Create(Call& call) {
  WriteContext context;
  Json body;
  if (!ReadWriteOptions(call, context) || !ReadBody(call, context, body)) return;
  Outcome<Json> created = objects_.Create(context, *call.resource, call.info.ns, body);
  if (!created.ok()) return Respond(call, created.error());
  RespondObject(call, 201, *created, &context);
}

void ApiHandler::Replace(Call& call) {
  WriteContext context;
  Json body;
  if (!ReadWriteOptions(call, context) || !ReadBody(call, context, body)) return;
  bool created = false;
  Outcome<Json> replaced = objects_.Replace(context, *call.resource, call.info.ns, call.info.name,
                                            call.info.subresource == "status", body, &created);
  if (!replaced.ok()) return Respond(call, replaced.error());
  RespondObject(call, created ? 201 : 200, *replaced, &context);
}

void ApiHandler::Patch(Call& call) {
  WriteContext context;
  if (!ReadWriteOptions(call, context)) return;
  const std::string type = MediaType(call.request.Header("content-type"));
  PatchType patch_type = PatchType::kMerge;
  if (type == kJsonPatch) {
    patch_type = PatchType::kJson;
  } else if (type == kStrategicPatch && !call.resource->custom) {
    patch_type = PatchType::kStrategic;
  } else if (type != kMergePatch) {
    std::vector<std::string> accepted = {kJsonPatch, kMergePatch};
    if (!call.resource->custom) accepted.emplace_back(kStrategicPatch);
    return Respond(call, UnsupportedMediaType(accepted));
  }
  Json body;
  if (!ReadBody(call, context, body)) return;
  Outcome<Json> patched = objects_.Patch(context, *call.resource, call.info.ns, call.info.name,
                                         call.info.subresource == "status", patch_type, body);
  if (!patched.ok()) return Respond(call, patched.error());
  RespondObject(call, 200, *patched, &context);
}

namespace {

// DeleteOptions of the body and, for what it leaves out, of the query.
Outcome<DeleteOptions> ReadDeleteOptions(const HttpRequest& request, bool* dry_run) {
  DeleteOptions options;
  Json body;
  if (!request.body.empty()) {
    const bool protobuf = MediaType(request.Header("content-type")) == kProtobufType;
    Result<Json> parsed = protobuf ? DecodeProtobuf(request.body) : Json::Parse(request.body);
    if (!parsed.ok()) return BadRequest("the body cannot be read: " + parsed.status().message());
    if (!parsed->IsObject()) return BadRequest("the body is no DeleteOptions object");
    body = std::move(*parsed);
  }
  options.uid = body.At({"preconditions", "uid"}).AsString();
  options.resource_version = body.At({"preconditions", "resourceVersion"}).AsString();
  options.propagation = body.Get("propagationPolicy").AsString();
  if (options.propagation.empty()) options.propagation = request.Query("propagationPolicy");
  if (options.propagation.empty() && body.Has("orphanDependents")) {
    options.propagation = body.Get("orphanDependents").AsBool() ? "Orphan" : "Background";
  }
  for (const char* known : {"", "Background", "Foreground", "Orphan"}) {
    if (options.propagation != known) continue;
    for (const Json& item : body.Get("dryRun").AsArray()) {
      if (item.AsString() != "All") return InvalidOption("dryRun", item.AsString(), "\"All\"");
      *dry_run = true;
    }
    return options;
  }
  return InvalidOption("propagationPolicy", options.propagation, "\"Background\", \"Foreground\", \"Orphan\"");
}

}  // namespace

void ApiHandler::Delete(Call& call) {
  WriteContext context;
  if (!ReadWriteOptions(call, context)) return;
  Outcome<DeleteOptions> options = ReadDeleteOptions(call.request, &context.dry_run);
  if (!options.ok()) return Respond(call, options.error());
  Outcome<Deleted> deleted = objects_.Delete(context, *call.resource, call.info.ns, call.info.name, *options);
  if (!deleted.ok()) return Respond(call, deleted.error());
  if (!deleted->gone) return RespondObject(call, 200, deleted->object, nullptr);
  RespondJson(call, 200, SuccessBody(call.kind(), call.info.name, deleted->object.At({"metadata", "uid"}).AsString()));
}

void ApiHandler::DeleteCollection(Call& call) {
  if (!HasDeleteCollection(call.kind())) {
    return Respond(call, MethodNotAllowed("the server does not allow this method on the requested resource"));
  }
  WriteContext context;
  if (!ReadWriteOptions(call, context)) return;
  Outcome<DeleteOptions> options = ReadDeleteOptions(call.request, &context.dry_run);
  if (!options.ok()) return Respond(call, options.error());
  Outcome<ListOptions> selection = ReadListOptions(call);
  if (!selection.ok()) return Respond(call, selection.error());
  std::vector<std::string> names;
  std::vector<std::string> namespaces;
  const Status status = store_.Read([&](Session& session) {
    return session.List(selection->query, [&](Record&& record, std::string_view) {
      if (selection->Matches(FromRecord(*call.resource, record))) {
        names.push_back(record.key.name);
        namespaces.push_back(record.key.ns);
      }
      return true;
    });
  });
  if (!status.ok()) return Respond(call, FromStore(status));
  Json items = Json::MakeArray();
  for (size_t i = 0; i < names.size(); ++i) {
    Outcome<Deleted> deleted = objects_.Delete(context, *call.resource, namespaces[i], names[i], *options);
    if (!deleted.ok() && deleted.error().code != 404) return Respond(call, deleted.error());
    if (deleted.ok()) items.Push(std::move(deleted->object));
  }
  RespondJson(
      call, 200,
      Json::MakeObject({{"kind", call.kind().ListKind()},
                        {"apiVersion", call.kind().ApiVersion()},
                        {"metadata", Json::MakeObject({{"resourceVersion", std::to_string(store_.hub().revision())}})},
                        {"items", std::move(items)}}));
}

// SelfSubjectAccessReview and SelfSubjectReview: who may do what, and who asks.
void ApiHandler::Review(Call& call) {
  const bool access = call.info.resource == "selfsubjectaccessreviews" && call.info.group == "authorization.k8s.io";
  const bool subject = call.info.resource == "selfsubjectreviews" && call.info.group == "authentication.k8s.io";
  if (call.info.version != "v1" || (!access && !subject)) {
    call.response.status = 404;
    call.response.content_type = "text/plain; charset=utf-8";
    call.response.body = "404 page not found\n";
    return;
  }
  if (call.info.verb != "create") return Respond(call, MethodNotAllowed("only POST is served on " + call.info.path));
  WriteContext context;
  Json body;
  if (!ReadBody(call, context, body)) return;
  if (!body.IsObject()) return Respond(call, BadRequest("the body is no JSON object"));
  body["apiVersion"] = call.info.group + "/v1";
  body["kind"] = access ? "SelfSubjectAccessReview" : "SelfSubjectReview";
  body["metadata"] = Json::MakeObject();
  if (access) {
    bool allowed = true;
    if (hooks_.authorize) {
      const Json& asked = body.At({"spec", "resourceAttributes"});
      RequestInfo info = call.info;
      info.target = Target::kResource;
      info.verb = asked.Get("verb").AsString();
      info.group = asked.Get("group").AsString();
      info.resource = asked.Get("resource").AsString();
      info.subresource = asked.Get("subresource").AsString();
      info.ns = asked.Get("namespace").AsString();
      info.name = asked.Get("name").AsString();
      allowed = !hooks_.authorize(call.user, info).has_value();
    }
    body["status"] = Json::MakeObject(
        {{"allowed", allowed},
         {"reason", allowed ? "every authenticated user may do everything here" : "refused by this server"}});
  } else {
    Json groups = Json::MakeArray();
    for (const std::string& group : call.user.groups) groups.Push(group);
    Json user = Json::MakeObject({{"username", call.user.name}, {"uid", call.user.uid}, {"groups", std::move(groups)}});
    body["status"] = Json::MakeObject({{"userInfo", std::move(user)}});
  }
  RespondJson(call, 201, body);
}

}  // namespace lockkeeper::apiserver
