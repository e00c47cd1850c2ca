#include "api/server/kcp/gate.h"

#include <chrono>
#include <thread>
#include <utility>

#include "api/base/log.h"
#include "api/server/kcp/build_version.h"
#include "api/server/kcp/clusters.h"

namespace lockkeeper::kcp {
namespace {

using apiserver::ApiError;
using apiserver::RequestInfo;
using apiserver::Target;

constexpr Duration kStallLook = Milliseconds(2);
constexpr char kDraining[] = "The apiserver is shutting down, please try again later.";

// Every cluster but the shard's own system:* ones has a context that a SIGTERM ends; the wildcard, too (2.11).
bool IsWorkspaceRequest(const RequestInfo& info) {
  return info.has_cluster && info.cluster_path.rfind("system:", 0) != 0;
}

ApiError ContextGone() {
  ApiError error;
  error.code = 504;
  error.reason = "Timeout";
  error.message = "Timeout: request did not complete within the allotted timeout: context canceled";
  return error;
}

ApiError ForbiddenFor(const apiserver::User& user, const HttpRequest& request, const RequestInfo& info) {
  ApiError error;
  error.code = 403;
  error.reason = "Forbidden";
  const std::string what = info.target == Target::kResource
                               ? info.verb + " resource \"" + info.resource + "\" in API group \"" + info.group + "\""
                               : request.method + " path \"" + info.path + "\"";
  error.message = "forbidden: User \"" + user.name + "\" cannot " + what +
                  (info.has_cluster ? " in cluster \"" + info.cluster_path + "\": access denied" : "");
  return error;
}

bool IsWorkspaceCreate(const RequestInfo& info) {
  return info.target == Target::kResource && info.resource == "workspaces" && info.verb == "create";
}

// A Workspace as kcp admits it: typed, and in phase Scheduling.
std::optional<ApiError> AdmitWorkspace(apiserver::Admission& admission) {
  if (admission.operation != apiserver::Admission::Operation::kCreate || admission.key.resource != kWorkspaces) {
    return std::nullopt;
  }
  if (admission.object->At({"spec", "type", "name"}).AsString().empty()) {
    return apiserver::Forbidden(*admission.resource->kind, admission.key.name,
                                "spec.defaultChildWorkspaceType of workspace type root:root must be set");
  }
  (*admission.object)["status"].Set("phase", "Scheduling");
  return std::nullopt;
}

}  // namespace

Status StoreStall::Wait(Duration patience, const std::atomic<bool>& cancelled) const {
  const Duration until = SystemClock().Read().boot + patience;
  while (Stalls()) {
    if (cancelled) return Status(Code::kCancelled, "waiting for the store: stopped");
    if (SystemClock().Read().boot >= until)
      return Status(Code::kTimeout, "waiting for the store: it stalls on purpose");
    std::this_thread::sleep_for(kStallLook);
  }
  return Status::Ok();
}

class Gate::NoTokens : public apiserver::Authenticator {
 public:
  std::optional<apiserver::User> Authenticate(const HttpRequest&) const override { return std::nullopt; }
};

// One request on its way.
struct Gate::Visit {
  const HttpRequest& request;
  HttpResponse& response;
  RequestInfo info;
  Caller caller{};
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
};

// The chunks of one watch. Says that the client is gone once the watch must end.
class Gate::WatchWriter : public ChunkWriter {
 public:
  WatchWriter(ChunkWriter& to, const std::function<bool()>& over) : to_(to), over_(over) {}
  bool Write(std::string_view chunk) override {
    if (over_()) return false;
    ++writes_;
    return to_.Write(chunk);
  }
  bool Alive() override { return !over_() && to_.Alive(); }
  int64_t writes() const { return writes_; }

 private:
  ChunkWriter& to_;
  const std::function<bool()>& over_;
  int64_t writes_ = 0;
};

Gate::Gate(Parts parts)
    : parts_(parts), stall_(parts.faults), no_tokens_(std::make_unique<NoTokens>()), random_(std::random_device()()) {
  apiserver::HandlerOptions options;
  options.clusters = true;
  options.git_version = "v1.33.3+kcp-" + BuildVersion();
  apiserver::Hooks hooks;
  hooks.resolve_cluster = [this](const std::string& path) -> std::optional<std::string> {
    std::string cluster;
    const Status status = parts_.store.Read([&](apiserver::Session& session) {
      LK_ASSIGN_OR_RETURN(cluster, ResolveCluster(session, path));
      return Status::Ok();
    });
    return status.ok() ? std::optional<std::string>(cluster) : std::nullopt;
  };
  hooks.admit = AdmitWorkspace;
  hooks.aborted = [this](const RequestInfo& info) { return ending_watches_ || Aborted(info); };
  api_ = std::make_unique<apiserver::ApiHandler>(parts_.store, parts_.catalog, *no_tokens_, parts_.clock,
                                                 std::move(options), std::move(hooks));
}

Gate::~Gate() = default;

bool Gate::Aborted(const RequestInfo& info) const { return aborted_ && IsWorkspaceRequest(info); }

void Gate::AbortWorkspaces() {
  aborted_ = true;
  api_->WakeWatches();
}

void Gate::EndWatches() {
  ending_watches_ = true;
  api_->WakeWatches();
}

void Gate::Handle(const HttpRequest& request, HttpResponse& response) {
  Visit visit{request, response, apiserver::ParseRequest(request, true)};
  ++running_;
  if (!Refused(visit)) Serve(visit);
  if (DrawGoaway()) response.close = true;
  if (response.stream) {
    WrapWatch(visit);
  } else {
    Record(visit, "");
  }
  --running_;
}

bool Gate::Refused(Visit& visit) {
  if (visit.info.target == Target::kHealth) return AnswerHealth(visit);
  if (refusing_) {
    visit.response.status = 429;
    visit.response.content_type = "text/plain; charset=utf-8";
    visit.response.headers.emplace_back("Retry-After", "5");
    visit.response.close = true;
    visit.response.body = std::string(kDraining) + "\n";
    return true;
  }
  return !CheckCaller(visit);
}

// Exactly /healthz, /livez and /readyz are for all; one check alone is for administrators (2.1).
bool Gate::AnswerHealth(Visit& visit) {
  const std::string& path = visit.info.path;
  const size_t slash = path.find('/', 1);
  const std::string probe = path.substr(1, slash == std::string::npos ? slash : slash - 1);
  const std::string sub = slash == std::string::npos ? "" : path.substr(slash + 1);
  if (!sub.empty() && !CheckCaller(visit)) return true;
  std::vector<std::string> exclude;
  const auto [first, last] = visit.request.query.equal_range("exclude");
  for (auto it = first; it != last; ++it) exclude.push_back(it->second);
  HealthAnswer answer = parts_.health.Answer(probe, sub, visit.request.HasQuery("verbose"), exclude);
  visit.response.status = answer.status;
  visit.response.content_type = "text/plain; charset=utf-8";
  visit.response.body = std::move(answer.body);
  return true;
}

// False: refused, and the answer is written.
bool Gate::CheckCaller(Visit& visit) {
  std::optional<Caller> caller = parts_.tokens.Find(visit.request);
  const std::string rejected = parts_.faults.Value("reject-token");
  if (!caller || (!rejected.empty() && rejected == TokenClassName(caller->token_class))) {
    Reply(visit, apiserver::Unauthorized());
    return false;
  }
  visit.caller = std::move(*caller);
  const bool known = visit.caller.token_class != TokenClass::kNone;
  // Discovery's root and the version are for everybody who is somebody.
  if (known && visit.info.target == Target::kVersion) return true;
  if (MayUse(visit.caller.user, visit.info.cluster_path)) return true;
  Reply(visit, ForbiddenFor(visit.caller.user, visit.request, visit.info));
  return false;
}

void Gate::Serve(Visit& visit) {
  const RequestInfo& info = visit.info;
  if (info.target == Target::kResource && !info.has_cluster) {
    visit.response.status = 404;
    visit.response.content_type = "text/plain; charset=utf-8";
    visit.response.body = "404 page not found: kcp serves resources below /clusters/\n";
    return;
  }
  if (Aborted(info)) return Reply(visit, ContextGone());
  if (info.target == Target::kResource) {
    if (stall_.Stalls()) LogInfo("a request waits for the store", {{"path", info.path}});
    const std::atomic<bool> never{false};
    const Status store = stall_.Wait(parts_.request_timeout, IsWorkspaceRequest(info) ? aborted_ : never);
    if (!store.ok()) return Reply(visit, ContextGone());
  }
  if (IsWorkspaceCreate(info)) {
    const Duration ready(parts_.ready_since.load());
    const auto slow = parts_.faults.Time("slow-admission");
    const bool young = slow && parts_.clock.Read().boot - ready < *slow;
    if (ready == Duration::zero() || young) {
      ApiError error = ForbiddenFor(visit.caller.user, visit.request, info);
      error.message = "workspaces.tenancy.kcp.io is forbidden: not yet ready to handle request";
      return Reply(visit, error);
    }
  }
  api_->HandleAs(visit.caller.user, visit.request, visit.response);
  // In flight when the context ended: the write may be done, the client is told that it does not know (2.11).
  if (Aborted(info)) {
    visit.response.stream = nullptr;
    Reply(visit, ContextGone());
  } else if (visit.response.status / 100 == 2 && parts_.faults.Has("storage-flip") &&
             WrittenByNewer(visit.response.body)) {
    ApiError error;
    error.reason = "InternalError";
    error.message = "Internal error occurred: no kind is registered for the stored version of the object";
    Reply(visit, error);
  }
}

void Gate::WrapWatch(Visit& visit) {
  auto stream = std::move(visit.response.stream);
  visit.response.stream = [this, stream = std::move(stream), info = visit.info, request = visit.request,
                           status = visit.response.status, caller = visit.caller,
                           start = visit.start](ChunkWriter& writer) {
    ++watches_;
    const std::function<bool()> over = [this, &info] { return ending_watches_ || Aborted(info); };
    WatchWriter watch_writer(writer, over);
    const bool ended = stream(watch_writer);
    HttpResponse response;
    response.status = status;
    const Visit visit_of_watch{request, response, info, caller, start};
    Record(visit_of_watch, over() ? "ended by the server" : ended ? "ended" : "cut");
    --watches_;
    return ended || over();  // in order: the client sees the end of the stream
  };
}

void Gate::Reply(Visit& visit, const ApiError& error) {
  HttpResponse& response = visit.response;
  response.status = error.code;
  response.content_type = "application/json";
  response.body = error.Body().Dump();
  if (error.retry_after_seconds > 0) {
    response.headers.emplace_back("Retry-After", std::to_string(error.retry_after_seconds));
  }
}

bool IsNewerVersion(const std::string& a, const std::string& b) {
  const auto numbers = [](const std::string& text) {
    std::vector<long> list;
    for (size_t i = 0; i < text.size();) {
      if (!std::isdigit(static_cast<unsigned char>(text[i]))) {
        ++i;
        continue;
      }
      size_t end = i;
      while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end]))) ++end;
      list.push_back(std::strtol(text.substr(i, end - i).c_str(), nullptr, 10));
      i = end;
    }
    return list;
  };
  return numbers(a) > numbers(b);
}

bool Gate::WrittenByNewer(const std::string& body) const {
  const std::string mark = "\"" + std::string(kVersionAnnotation) + "\":\"";
  for (size_t at = body.find(mark); at != std::string::npos; at = body.find(mark, at + 1)) {
    const size_t begin = at + mark.size();
    if (IsNewerVersion(body.substr(begin, body.find('"', begin) - begin), BuildVersion())) return true;
  }
  return false;
}

bool Gate::DrawGoaway() {
  if (parts_.options.goaway_chance <= 0) return false;
  MutexLock lock(mutex_);
  return std::uniform_real_distribution<double>(0, 1)(random_) < parts_.options.goaway_chance;
}

void Gate::Record(const Visit& visit, std::string_view outcome) {
  if (!parts_.request_log.enabled()) return;
  const auto took =
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - visit.start);
  Json line = Json::MakeObject({{"event", "request"},
                                {"method", visit.request.method},
                                {"path", visit.request.target},
                                {"verb", visit.info.verb},
                                {"status", visit.response.status},
                                {"user", visit.caller.user.name},
                                {"micros", static_cast<int64_t>(took.count())},
                                {"connection", static_cast<int64_t>(visit.request.connection)}});
  if (!outcome.empty()) line.Set("watch", outcome);
  if (visit.response.close) line.Set("close", true);
  parts_.request_log.Append(std::move(line));
}

}  // namespace lockkeeper::kcp
