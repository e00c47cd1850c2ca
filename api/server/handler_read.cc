// The handler's reads: get and list, and what they share with watches.
#include <cstdlib>
#include <utility>

#include "api/server/handler_call.h"
#include "api/server/watch_hub.h"

namespace lockkeeper::apiserver {
namespace {

// A decimal number, nothing else around it.
std::optional<int64_t> ParseNumber(const std::string& text) {
  if (text.empty() || text.size() > 18) return std::nullopt;
  int64_t value = 0;
  for (char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
  }
  return value;
}

constexpr const char* kInitialEventsEnd = "k8s.io/initial-events-end";

}  // namespace

std::string ContinueToken::Encode() const {
  // URL-safe base64, so that clients may paste it into a query as it is.
  std::string text = Base64(Json::MakeObject({{"rv", revision}, {"ns", ns}, {"name", name}}).Dump());
  while (!text.empty() && text.back() == '=') text.pop_back();
  for (char& c : text) c = c == '+' ? '-' : c == '/' ? '_' : c;
  return text;
}

std::optional<ContinueToken> ContinueToken::Decode(const std::string& text) {
  std::string standard = text;
  for (char& c : standard) c = c == '-' ? '+' : c == '_' ? '/' : c;
  while (standard.size() % 4 != 0) standard += '=';
  const Result<std::string> raw = FromBase64(standard);
  if (!raw.ok()) return std::nullopt;
  const Result<Json> json = Json::Parse(*raw);
  if (!json.ok() || !json->Get("name").IsString()) return std::nullopt;
  return ContinueToken{json->Get("rv").AsInt(), json->Get("ns").AsString(), json->Get("name").AsString()};
}

std::string Presenter::Item(const Json& object) const {
  switch (shape_) {
    case Shape::kTable: return table_->Row(object, clock_.Read().wall, include_).Dump();
    case Shape::kPartialMetadata: return PartialObjectMetadata(object).Dump();
    default: return object.Dump();
  }
}

std::string Presenter::List(const std::string& items, const std::string& resource_version,
                            const std::string& continue_token) const {
  Json metadata = Json::MakeObject({{"resourceVersion", resource_version}});
  // CustomResources have it even when it is empty.
  const bool plain = shape_ != Shape::kTable && shape_ != Shape::kPartialMetadata;
  if (!continue_token.empty() || (resource_.custom && plain)) metadata["continue"] = continue_token;
  const KindInfo& kind = *resource_.kind;
  std::string text;
  std::string member = "items";
  if (shape_ == Shape::kTable) {
    text = R"({"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":)" + metadata.Dump() +
           R"(,"columnDefinitions":)" + table_->Columns().Dump();
    member = "rows";
  } else if (shape_ == Shape::kPartialMetadata) {
    text = R"({"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":)" + metadata.Dump();
  } else {
    text = R"({"kind":)" + Json(kind.ListKind()).Dump() + R"(,"apiVersion":)" + Json(kind.ApiVersion()).Dump() +
           R"(,"metadata":)" + metadata.Dump();
  }
  return text + ",\"" + member + "\":[" + items + "]}";
}

std::string Presenter::Object(const Json& object, bool first) const {
  if (shape_ != Shape::kTable) return Item(object);
  Json rows = Json::MakeArray({table_->Row(object, clock_.Read().wall, include_)});
  return table_->Make(std::move(rows), object.At({"metadata", "resourceVersion"}).AsString(), first).Dump();
}

std::string Presenter::Bookmark(int64_t revision, bool initial_events_end) const {
  const std::string version = std::to_string(revision);
  Json metadata = Json::MakeObject({{"resourceVersion", version}});
  if (initial_events_end) metadata["annotations"] = Json::MakeObject({{kInitialEventsEnd, "true"}});
  Json object = Json::MakeObject({{"kind", resource_.kind->kind}, {"apiVersion", resource_.kind->ApiVersion()}});
  object["metadata"] = std::move(metadata);
  if (shape_ == Shape::kTable) return table_->Make(Json::MakeArray(), version, false).Dump();
  if (shape_ == Shape::kPartialMetadata) return PartialObjectMetadata(object).Dump();
  return object.Dump();
}

Outcome<ApiHandler::ListOptions> ApiHandler::ReadListOptions(Call& call) {
  const HttpRequest& request = call.request;
  ListOptions options;
  Result<LabelSelector> labels = LabelSelector::Parse(request.Query("labelSelector"));
  if (!labels.ok()) return BadRequest(labels.status().message());
  options.labels = std::move(*labels);
  Result<FieldSelector> fields = FieldSelector::Parse(request.Query("fieldSelector"), call.kind());
  if (!fields.ok()) return BadRequest(fields.status().message());
  options.fields = std::move(*fields);
  if (const std::string limit = request.Query("limit"); !limit.empty()) {
    const std::optional<int64_t> number = ParseNumber(limit);
    if (!number) return BadRequest("limit: Invalid value: \"" + limit + "\": a whole number is needed");
    options.limit = *number;
  }
  if (const std::string version = request.Query("resourceVersion"); !version.empty()) {
    const std::optional<int64_t> number = ParseNumber(version);
    if (!number) return BadRequest("resourceVersion: Invalid value: \"" + version + "\": a whole number is needed");
    options.revision = *number;
    options.any = *number == 0;
  }
  const std::string include = request.Query("includeObject");
  if (include == "None") options.include = IncludeObject::kNone;
  if (include == "Object") options.include = IncludeObject::kObject;
  if (!include.empty() && include != "None" && include != "Metadata" && include != "Object") {
    return BadRequest("includeObject: Unsupported value: \"" + include +
                      "\": supported values: None, Metadata, Object");
  }
  const std::string match = request.Query("resourceVersionMatch");
  if (!match.empty() && match != "Exact" && match != "NotOlderThan") {
    return BadRequest("resourceVersionMatch: Unsupported value: \"" + match +
                      "\": supported values: Exact, NotOlderThan");
  }
  options.exact = match == "Exact" && options.revision > 0;
  options.query.cluster = call.info.cluster;
  options.query.resource = call.resource->storage;
  options.query.ns = call.info.ns;
  if (call.kind().namespaced && options.query.ns.empty()) options.query.ns = options.fields.ns();
  if (options.exact) options.query.at = options.revision;
  if (const std::string token = request.Query("continue"); !token.empty()) {
    if (options.revision > 0) return BadRequest("resourceVersion must not be set together with continue");
    const std::optional<ContinueToken> at = ContinueToken::Decode(token);
    if (!at) return BadRequest("continue: the token is not one of this server");
    options.continued = true;
    options.query.at = at->revision;
    options.query.has_after = true;
    options.query.after_ns = at->ns;
    options.query.after_name = at->name;
  }
  return options;
}

std::optional<ApiError> ApiHandler::AwaitRevision(int64_t revision) {
  if (store_.hub().revision() >= revision) return std::nullopt;
  // Maybe another process is a little ahead of what this one has seen.
  if (store_.hub().WaitFor(revision, options_.future_patience)) return std::nullopt;
  return TooLargeResourceVersion(revision, store_.hub().revision());
}

void ApiHandler::Get(Call& call) {
  Outcome<ListOptions> options = ReadListOptions(call);
  if (!options.ok()) return Respond(call, options.error());
  if (options->revision > 0) {
    if (auto error = AwaitRevision(options->revision)) return Respond(call, *error);
  }
  Outcome<Json> object = objects_.Get(call.info.cluster, *call.resource, call.info.ns, call.info.name);
  if (!object.ok()) return Respond(call, object.error());
  if (call.shape == Shape::kPlain) return RespondJson(call, 200, *object);
  RespondWith(call, 200, Presenter(*call.resource, call.shape, options->include, clock_).Object(*object, true));
}

void ApiHandler::List(Call& call) {
  Outcome<ListOptions> read = ReadListOptions(call);
  if (!read.ok()) return Respond(call, read.error());
  const ListOptions& options = *read;
  if (options.revision > 0) {
    if (auto error = AwaitRevision(options.revision)) return Respond(call, *error);
  }
  const Presenter presenter(*call.resource, call.shape, options.include, clock_);
  const std::string& only = options.fields.name();
  std::string items;
  int64_t count = 0;
  int64_t revision = 0;
  bool more = false;
  Key last;
  const Status status = store_.Read([&](Session& session) -> Status {
    LK_ASSIGN_OR_RETURN(revision, session.Revision());
    if (options.query.at != 0) revision = options.query.at;
    auto add = [&](Record&& record) {
      const Json object = FromRecord(*call.resource, record);
      if (!options.Matches(object)) return true;
      if (options.limit > 0 && count == options.limit) {
        more = true;
        return false;
      }
      if (count++ > 0) items += ',';
      items += presenter.Item(object);
      last = std::move(record.key);
      return true;
    };
    if (!only.empty() && options.query.at == 0 && !options.continued &&
        (!options.query.ns.empty() || !call.kind().namespaced)) {
      Result<Record> record = session.Get({options.query.cluster, options.query.resource, options.query.ns, only});
      if (record.code() == Code::kNotFound) return Status::Ok();
      if (!record.ok()) return record.status();
      add(std::move(*record));
      return Status::Ok();
    }
    return session.List(options.query, [&](Record&& record, std::string_view labels) {
      if (!only.empty() && record.key.name != only) return true;
      if (!options.labels.empty() && !labels.empty()) {
        const Result<Json> parsed = Json::Parse(labels);
        if (parsed.ok() && !options.labels.Matches(*parsed)) return true;
      }
      return add(std::move(record));
    });
  });
  if (!status.ok()) {
    ApiError error = FromStore(status);
    if (status.code() == Code::kExpired && options.continued) {
      // Go on from the same key at whatever is there now: not one snapshot any more, but nothing is listed anew.
      const ContinueToken fresh{0, options.query.after_ns, options.query.after_name};
      error.message =
          "the continue token is too old (" + status.message() +
          "): list again without it, or go on with metadata.continue of this answer, whose rest may not fit "
          "what was listed before";
      error.metadata = Json::MakeObject({{"continue", fresh.Encode()}});
    }
    return Respond(call, error);
  }
  const std::string token = more ? ContinueToken{revision, last.ns, last.name}.Encode() : "";
  RespondWith(call, 200, presenter.List(items, std::to_string(revision), token));
}

}  // namespace lockkeeper::apiserver
