#include "reconcilers/front/front_service.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "api/base/file.h"
#include "api/base/log.h"
#include "reconcilers/front/front_json.h"

namespace lockkeeper::front {
namespace {

constexpr int64_t kSpareFiles = 64;  // log, state, epoll, admin connections
constexpr double kMaxWaitSeconds = 60;
constexpr double kMaxDrainSeconds = 86400;
constexpr size_t kMaxAdminConnections = 32;

void Answer(HttpResponse& response, int status, const Json& body) {
  response.status = status;
  response.body = body.Dump() + "\n";
}

void Refuse(HttpResponse& response, const Status& status) {
  Answer(response, HttpStatusOf(status.code()), ErrorToJson(status));
}

void Answer(HttpResponse& response, const Result<FrontState>& state) {
  if (!state.ok()) return Refuse(response, state.status());
  Answer(response, 200, StateToJson(*state));
}

std::string Describe(const FrontTarget& t) {
  return t.hold ? std::string("hold") : t.slot + "#" + std::to_string(t.incarnation) + "@" + t.address;
}

// "openZero:SLOT#INCARNATION"
bool ParseWait(const std::string& text, std::string* slot, int64_t* incarnation) {
  const std::string prefix = "openZero:";
  const size_t hash = text.rfind('#');
  if (text.rfind(prefix, 0) != 0 || hash == std::string::npos || hash <= prefix.size()) return false;
  *slot = text.substr(prefix.size(), hash - prefix.size());
  char* end = nullptr;
  *incarnation = std::strtoll(text.c_str() + hash + 1, &end, 10);
  return end != text.c_str() + hash + 1 && *end == '\0';
}

FrontLimits Fit(FrontLimits limits) {
  const int64_t files = RaiseFileLimit();
  const int64_t most = std::max<int64_t>((files - kSpareFiles) / 2, 1);
  if (limits.max_connections > most) {
    LogWarn("fewer connections than asked for: each takes two descriptors",
            {{"asked", limits.max_connections}, {"now", most}, {"RLIMIT_NOFILE", files}});
    limits.max_connections = static_cast<int>(most);
  }
  // Every connection passes through the queue: one place is the least.
  limits.hold_connections = std::max(limits.hold_connections, 1);
  return limits;
}

}  // namespace

FrontService::FrontService(FrontConfig config)
    : config_(std::move(config)),
      file_(config_.state_dir),
      plane_(Fit(config_.limits), config_.version, SettingsHash(config_)) {}

FrontService::~FrontService() {
  if (admin_ != nullptr) admin_->Stop();
}

Status FrontService::Start() {
  LK_ASSIGN_OR_RETURN(UniqueFd listener, TakePassedListener());
  passed_ = static_cast<bool>(listener);
  if (!passed_) {
    if (config_.listen.empty()) return {Code::kInvalid, "--listen ADDRESS is missing, and no listener was passed"};
    LK_ASSIGN_OR_RETURN(const SocketAddress address, ParseAddress(config_.listen));
    LK_ASSIGN_OR_RETURN(listener, Listen(address));
  }
  LK_RETURN_IF_ERROR(plane_.Init(std::move(listener)));
  if (passed_ && !config_.listen.empty() && config_.listen != plane_.listen()) {
    LogWarn("the listener that was passed is bound elsewhere than asked for",
            {{"asked", config_.listen}, {"bound", plane_.listen()}});
  }
  {
    const MutexLock lock(set_mutex_);
    std::string trouble;
    state_ = file_.Load(BootId(), &trouble);
    if (!trouble.empty()) {
      LogWarn("no target to resume: new connections are held until the agent sets one", {{"reason", trouble}});
    }
    // Before the admin socket opens: no Set can come in between.
    if (state_.target) {
      plane_.Resume(*state_.target, state_.generation);
      LogInfo("resumed", {{"target", Describe(*state_.target)}, {"generation", state_.generation}});
    } else {
      plane_.ResumeHolding(state_.generation);
    }
  }
  LK_RETURN_IF_ERROR(MakeDirs(DirName(config_.admin_path), 0700));
  HttpServerConfig http;
  http.unix_path = config_.admin_path;
  http.max_connections = kMaxAdminConnections;
  http.max_body_bytes = 64u << 10;
  http.idle_timeout = std::chrono::minutes(5);
  admin_ = std::make_unique<HttpServer>(
      std::move(http), [this](const HttpRequest& request, HttpResponse& response) { Serve(request, response); });
  LK_RETURN_IF_ERROR(admin_->Start().Annotate("admin socket"));
  LogInfo("front started",
          {{"front", config_.name}, {"listen", plane_.listen()}, {"passed", passed_}, {"admin", config_.admin_path}});
  return Status::Ok();
}

void FrontService::Run() {
  plane_.Run();
  admin_->Stop();
}

Result<FrontState> FrontService::Set(const FrontTarget& target) {
  const auto asked = std::chrono::steady_clock::now();
  bool changed = false;
  std::string from = "nothing";
  {
    const MutexLock lock(set_mutex_);
    auto decision = DecideSet(state_, target, BootId());
    if (!decision.ok()) {
      LogWarn("a target was refused", {{"target", Describe(target)}, {"reason", decision.status().message()}});
      return decision.status();
    }
    if (decision->persist) {
      LK_RETURN_IF_ERROR(file_.Save(decision->next));
      if (state_.target) from = Describe(*state_.target);
      changed = decision->changed;
      state_ = std::move(decision->next);
    }
    // A repeat too: a backend that did not answer is dialled again at once.
    LK_RETURN_IF_ERROR(plane_.Publish(*state_.target, state_.generation, asked));
  }
  if (changed) {
    LogInfo("front flipped", {{"from", from}, {"to", Describe(target)}, {"revision", target.revision}});
  }
  return plane_.Get();
}

Result<int> FrontService::Drain(const std::string& slot, int64_t incarnation, Duration deadline) {
  auto n = plane_.Drain(slot, incarnation, deadline);
  const std::string name = slot + "#" + std::to_string(incarnation);
  if (n.ok()) {
    LogInfo("drain", {{"backend", name}, {"connections", *n}, {"seconds", ToSeconds(deadline)}});
  } else {
    LogWarn("a drain was refused", {{"backend", name}, {"reason", n.status().message()}});
  }
  return n;
}

Status FrontService::Restart() {
  if (!passed_) {
    return {Code::kPrecondition,
            "restart the front: it bound its address itself, so nobody would start it again; end "
            "and start it by hand"};
  }
  LogInfo("restart: nothing is accepted any more, connections drain", {{"seconds", ToSeconds(kRestartDeadline)}});
  plane_.BeginStop(kRestartDeadline);
  return Status::Ok();
}

void FrontService::Serve(const HttpRequest& request, HttpResponse& response) {
  const bool reads = request.method == "GET";
  // The file's mode keeps others out already; this holds where somebody widened it.
  if (!reads && request.peer_uid != ::geteuid() && request.peer_uid != 0) {
    const Status status(Code::kForbidden, request.method + " " + request.path + ": user " +
                                              std::to_string(request.peer_uid) +
                                              " is neither root nor the front's own");
    LogWarn("an admin request was refused", {{"reason", status.message()}});
    return Refuse(response, status);
  }
  if (reads && request.path == "/healthz") {
    response.content_type = "text/plain";
    response.body = "ok\n";
  } else if (reads && request.path == "/metrics") {
    const auto text = plane_.MetricsText();
    if (!text.ok()) return Refuse(response, text.status());
    response.content_type = "text/plain; version=0.0.4";
    response.body = *text;
  } else if (reads && request.path == "/status") {
    ServeStatus(request, response);
  } else if (request.method == "PUT" && request.path == "/target") {
    ServeTarget(request, response);
  } else if (request.method == "POST" && request.path == "/drain") {
    ServeDrain(request, response);
  } else if (request.method == "POST" && request.path == "/restart") {
    const Status status = Restart();
    if (!status.ok()) return Refuse(response, status);
    Answer(response, 200, Json::MakeObject({{"stopping", true}}));
  } else {
    Refuse(response,
           {Code::kNotFound,
            request.method + " " + request.path +
                ": a front answers GET /status, /metrics, /healthz, PUT /target, POST /drain, POST /restart"});
  }
}

void FrontService::ServeStatus(const HttpRequest& request, HttpResponse& response) {
  if (request.HasQuery("wait")) {
    std::string slot;
    int64_t incarnation = 0;
    const std::string text = request.HasQuery("timeout") ? request.Query("timeout") : "5";
    char* end = nullptr;
    const double seconds = std::strtod(text.c_str(), &end);
    if (!ParseWait(request.Query("wait"), &slot, &incarnation) || *end != '\0' || !(seconds >= 0) ||
        seconds > kMaxWaitSeconds) {
      return Refuse(response, {Code::kInvalid, "wait=openZero:SLOT%23INCARNATION&timeout=SECONDS, at most 60"});
    }
    // A wait that ends without a zero is no error: the counts say it.
    const Status waited = plane_.WaitOpenZero(slot, incarnation, Seconds(seconds));
    if (!waited.ok() && waited.code() != Code::kTimeout) return Refuse(response, waited);
  }
  Answer(response, plane_.Get());
}

void FrontService::ServeTarget(const HttpRequest& request, HttpResponse& response) {
  const auto json = Json::Parse(request.body);
  if (!json.ok()) return Refuse(response, json.status());
  const auto target = TargetFromJson(*json);
  if (!target.ok()) return Refuse(response, target.status());
  Answer(response, Set(*target));
}

void FrontService::ServeDrain(const HttpRequest& request, HttpResponse& response) {
  const auto json = Json::Parse(request.body);
  if (!json.ok()) return Refuse(response, json.status());
  const double seconds = json->Get("deadlineSeconds").AsDouble(-1);
  if (json->Get("slot").AsString().empty() || json->Get("incarnation").AsInt() <= 0 || !(seconds >= 0) ||
      seconds > kMaxDrainSeconds) {
    return Refuse(response, {Code::kInvalid, "a drain needs slot, incarnation and deadlineSeconds from 0 to 86400"});
  }
  const auto n = Drain(json->Get("slot").AsString(), json->Get("incarnation").AsInt(), Seconds(seconds));
  if (!n.ok()) return Refuse(response, n.status());
  Answer(response, 200, Json::MakeObject({{"draining", *n}}));
}

}  // namespace lockkeeper::front
