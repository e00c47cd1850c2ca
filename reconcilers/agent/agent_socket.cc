#include "reconcilers/agent/agent_socket.h"

#include <unistd.h>

#include <algorithm>

#include "api/base/file.h"

namespace lockkeeper {
namespace {

int HttpStatusOf(Code code) {
  switch (code) {
    case Code::kInvalid: return 400;
    case Code::kForbidden: return 403;
    case Code::kNotFound: return 404;
    case Code::kPrecondition:
    case Code::kConflict: return 409;
    default: return 500;
  }
}

const char* StateOf(const SlotEntry& slot) {
  const SlotActual& a = slot.actual;
  const bool current = a.incarnation == slot.intent.incarnation && a.invocation == slot.intent.invocation;
  const bool runs = current && a.id.pid != 0 && !a.exit && a.exited_at == Time{};
  if (!slot.intent.running) return runs ? "Stopping" : "Stopped";
  if (!current || a.id.pid == 0) return a.error.empty() ? "Starting" : "Failed";
  if (!runs) return "Failed";
  if (slot.ready_at != Time{}) return "Ready";
  return a.port != 0 ? "Listening" : "Starting";
}

Json TimeJson(Time t) { return t == Time{} ? Json() : Json(FormatTime(t)); }

Result<ServerKey> ParseKey(const std::string& text) {
  const size_t slash = text.find('/');
  if (slash == std::string::npos) return ServerKey{"default", text};
  return ServerKey{text.substr(0, slash), text.substr(slash + 1)};
}

int64_t QueryInt(const HttpRequest& request, const char* name, int64_t fallback, int64_t max) {
  const Result<Json> value = Json::Parse(request.Query(name));
  return value.ok() ? std::clamp<int64_t>(value->AsInt(fallback), 1, max) : fallback;
}

}  // namespace

Json OutcomeView(const OutcomeRecord& o) {
  Json view = Json::MakeObject({{"kind", o.kind},
                                {"namespace", o.ns},
                                {"name", o.name},
                                {"outcome", EnumName(o.outcome)},
                                {"reason", o.reason},
                                {"message", o.message},
                                {"version", o.version},
                                {"mode", EnumName(o.mode)},
                                {"requestedBy", o.requested_by},
                                {"startedAt", TimeJson(o.started_at)},
                                {"finishedAt", TimeJson(o.finished_at)}});
  if (o.report) view.Set("report", ToJson(*o.report));
  return view;
}

Json ServerView(const ServerRecord& r, const Now& now) {
  Json slots = Json::MakeArray();
  for (const auto& [name, slot] : r.slots) {
    slots.Push(Json::MakeObject({{"name", name},
                                 {"state", StateOf(slot)},
                                 {"active", name == r.active},
                                 {"unit", slot.intent.unit.name},
                                 {"incarnation", slot.intent.incarnation},
                                 {"pid", static_cast<int64_t>(slot.actual.id.pid)},
                                 {"port", slot.actual.port},
                                 {"version", slot.intent.build.version},
                                 {"startedAt", TimeJson(slot.actual.started_at)},
                                 {"error", slot.actual.error}}));
  }
  Json view = Json::MakeObject({{"namespace", r.key.ns},
                                {"name", r.key.name},
                                {"shape", EnumName(r.spec.shape)},
                                {"front", r.spec.front_ref ? r.spec.front_ref->name : std::string()},
                                {"active", r.active},
                                {"version", r.version},
                                {"hold", r.hold},
                                {"stopped", r.stopped},
                                {"released", r.released},
                                {"degraded", r.degraded_message},
                                {"slots", std::move(slots)}});
  if (r.operation) {
    const OperationRecord& op = *r.operation;
    Json json = Json::MakeObject({{"kind", op.kind},
                                  {"name", op.name},
                                  {"step", op.step},
                                  {"undoing", op.undoing},
                                  {"failure", op.failure_message},
                                  {"paused", op.paused}});
    const auto started = op.started.find(op.step);
    if (started != op.started.end()) json.Set("stepSeconds", ToSeconds(now.wall - started->second));
    view.Set("operation", std::move(json));
  }
  return view;
}

AgentSocket::AgentSocket(std::string path, Ledger& ledger, Units& units, const Clock& clock, std::string version)
    : path_(std::move(path)),
      ledger_(ledger),
      units_(units),
      clock_(clock),
      version_(std::move(version)),
      started_(clock.Read()) {}

AgentSocket::~AgentSocket() { Stop(); }

Status AgentSocket::Start() {
  HttpServerConfig config;
  config.unix_path = path_;
  server_ = std::make_unique<HttpServer>(
      std::move(config), [this](const HttpRequest& request, HttpResponse& response) { Handle(request, response); });
  return server_->Start().Annotate("starting the agent's socket");
}

void AgentSocket::Stop() {
  if (server_) server_->Stop();
}

void AgentSocket::Handle(const HttpRequest& request, HttpResponse& response) {
  const bool allowed = request.peer_uid == 0 || request.peer_uid == ::geteuid();
  const Result<Json> answer =
      allowed ? Route(request) : Result<Json>(Code::kForbidden, "only root and the agent's own user may ask the agent");
  if (answer.ok()) {
    response.body = answer->Dump();
    return;
  }
  response.status = HttpStatusOf(answer.code());
  response.body = Json::MakeObject({{"code", CodeName(answer.code())}, {"message", answer.status().message()}}).Dump();
}

Result<Json> AgentSocket::Route(const HttpRequest& request) {
  if (request.method == "GET" && request.path == "/v1/status") return StatusJson();
  if (request.method == "GET" && request.path == "/v1/history") return History(request);
  if (request.method == "GET" && request.path == "/v1/logs") return Logs(request);
  constexpr std::string_view kServers = "/v1/servers/";
  if (request.method == "POST" && request.path.starts_with(kServers)) {
    const std::string rest = request.path.substr(kServers.size());
    const size_t verb = rest.rfind('/');
    if (verb != std::string::npos) {
      LK_ASSIGN_OR_RETURN(const ServerKey key, ParseKey(rest.substr(0, verb)));
      return Control(key, rest.substr(verb + 1), request);
    }
  }
  return Status(Code::kNotFound, request.method + " " + request.path + " is not served here");
}

Result<Json> AgentSocket::StatusJson() {
  const Now now = clock_.Read();
  const LedgerInfo info = ledger_.Info();
  LK_ASSIGN_OR_RETURN(const std::vector<ServerKey> keys, ledger_.Servers());
  Json servers = Json::MakeArray();
  for (const ServerKey& key : keys) {
    const Result<ServerRecord> record = ledger_.Get(key);
    if (record.ok()) servers.Push(ServerView(*record, now));
  }
  return Json::MakeObject({{"host", info.host},
                           {"version", version_},
                           {"uptimeSeconds", ToSeconds(now.boot - started_.boot)},
                           {"ledger", Json::MakeObject({{"id", info.id}, {"revision", info.revision}})},
                           {"trouble", trouble_ ? trouble_() : std::string()},
                           {"servers", std::move(servers)}});
}

Result<Json> AgentSocket::History(const HttpRequest& request) {
  const int limit = static_cast<int>(QueryInt(request, "limit", 20, 1000));
  LK_ASSIGN_OR_RETURN(const std::vector<OutcomeRecord> outcomes, ledger_.Outcomes(request.Query("server"), limit));
  Json items = Json::MakeArray();
  for (const OutcomeRecord& o : outcomes) items.Push(OutcomeView(o));
  return Json::MakeObject({{"items", std::move(items)}});
}

Result<Json> AgentSocket::Logs(const HttpRequest& request) {
  LK_ASSIGN_OR_RETURN(const ServerKey key, ParseKey(request.Query("server")));
  LK_ASSIGN_OR_RETURN(const ServerRecord record, ledger_.Get(key));
  const std::string slot = request.HasQuery("slot") ? request.Query("slot") : record.active;
  const auto it = record.slots.find(slot);
  UnitSpec unit = it != record.slots.end() ? it->second.intent.unit : UnitSpec{};
  const bool undone = it == record.slots.end() && !record.slots.empty() && (slot == "blue" || slot == "green");
  if (undone) {  // its record is gone, and its logs stay beside the other slot's
    unit = record.slots.begin()->second.intent.unit;
    unit.log_dir = JoinPath(DirName(unit.log_dir), slot);
  }
  if (it == record.slots.end() && (!undone || !PathExists(unit.log_dir))) {
    return Status(Code::kNotFound, "Server " + key.ToString() + " has no slot \"" + slot + "\"");
  }
  LK_ASSIGN_OR_RETURN(const std::vector<std::string> lines,
                      units_.LastOutput(unit, static_cast<int>(QueryInt(request, "lines", 50, 10000))));
  Json items = Json::MakeArray();
  for (const std::string& line : lines) items.Push(line);
  return Json::MakeObject({{"slot", slot}, {"folder", unit.log_dir}, {"lines", std::move(items)}});
}

Result<Json> AgentSocket::Control(const ServerKey& key, const std::string& verb, const HttpRequest& request) {
  const std::string wanted = request.Query("operation");
  const std::string gate = request.HasQuery("gate") ? request.Query("gate") : "BeforeFlip";
  const bool on_server = verb == "stop" || verb == "start";
  if (!on_server && verb != "approve" && verb != "abort" && verb != "abandon") {
    return Status(Code::kNotFound, "no such verb: " + verb);
  }
  // Update makes a fresh record where there is none; a control is for what exists.
  LK_RETURN_IF_ERROR(ledger_.Get(key).status());
  // Repeating is harmless: each verb sets what may already be set.
  LK_ASSIGN_OR_RETURN(const ServerRecord record, ledger_.Update(key, [&](ServerRecord& r) {
    if (on_server) {
      if (r.released) {
        return Status(Code::kPrecondition, "Server " + key.ToString() +
                                               " was deleted with deletionPolicy Orphan and is left alone; apply it "
                                               "again, then `lockkeeper " +
                                               verb + " " + key.name + "`");
      }
      if (verb == "stop" && r.operation) {
        return Status(Code::kPrecondition, "operation " + r.operation->name + " is in flight (step " +
                                               r.operation->step + "); abort it first, or wait for it");
      }
      r.stopped = verb == "stop";
      return Status::Ok();
    }
    if (!r.operation) return Status(Code::kPrecondition, "no operation is in flight on Server " + key.ToString());
    OperationRecord& op = *r.operation;
    if (!wanted.empty() && wanted != op.name) {
      return Status(Code::kPrecondition, "operation " + op.name + " is in flight, not " + wanted);
    }
    if (verb == "abort") op.abort = true;
    if (verb == "abandon") op.abandon = true;
    if (verb == "approve" && std::find(op.approved.begin(), op.approved.end(), gate) == op.approved.end()) {
      op.approved.push_back(gate);
    }
    return Status::Ok();
  }));
  return ServerView(record, clock_.Read());
}

}  // namespace lockkeeper
