#include <algorithm>

#include "api/base/id.h"
#include "api/types/conditions.h"
#include "api/types/reasons.h"
#include "controller/typed.h"
#include "reconcilers/cli/commands.h"
#include "reconcilers/cli/target.h"
#include "reconcilers/upgrade/plan.h"

namespace lockkeeper::cli {
namespace {

std::string MintName(const std::string& server) {
  std::string id = NewUlid(SystemClock().Read().wall);
  std::transform(id.begin(), id.end(), id.begin(), [](unsigned char c) { return std::tolower(c); });
  return server + "-" + id;
}

// Merge patch of spec members under the resourceVersion that was read.
template <typename T>
Status PatchSpec(Api& api, const T& object, Json spec) {
  const Json patch =
      Json::MakeObject({{"metadata", Json::MakeObject({{"resourceVersion", object.metadata.resource_version}})},
                        {"spec", std::move(spec)}});
  return api.Patch(ResourceOf<T>(), {object.metadata.namespace_, object.metadata.name}, PatchType::kMerge, patch, "")
      .status();
}

const char* VerbOf(Control control) {
  switch (control) {
    case Control::kApprove: return "approve";
    case Control::kPause: return "pause";
    case Control::kResume: return "resume";
    case Control::kAbort: return "abort";
    case Control::kAbandon: return "abandon";
  }
  return "";
}

template <typename T>
Status Apply(Api& api, const T& object, Control control) {
  switch (control) {
    case Control::kPause: return PatchSpec(api, object, Json::MakeObject({{"paused", true}}));
    case Control::kResume: return PatchSpec(api, object, Json::MakeObject({{"paused", false}}));
    case Control::kAbort: return PatchSpec(api, object, Json::MakeObject({{"abort", true}}));
    case Control::kAbandon: return PatchSpec(api, object, Json::MakeObject({{"abandon", true}}));
    case Control::kApprove: {
      Json approve = Json::MakeArray();
      for (const Gate gate : object.spec.gates) approve.Push(EnumName(gate));
      if (approve.empty()) {
        return {Code::kPrecondition, object.metadata.name + " has no gates, there is nothing to approve"};
      }
      return PatchSpec(api, object, Json::MakeObject({{"approve", std::move(approve)}}));
    }
  }
  return {Code::kInternal, "unknown control"};
}

// Someone else wrote in between: read again, a few times.
template <typename T>
Status ApplyTo(Api& api, const ObjectKey& key, Control control) {
  Status status;
  for (int i = 0; i < 5; ++i) {
    const Result<T> object = Get<T>(api, key);
    if (!object.ok()) return object.status();
    if (object->status.outcome) {
      return {Code::kPrecondition, std::string(T::kKind) + " " + key.name + " has finished (" +
                                       std::string(EnumName(*object->status.outcome)) + "); there is nothing to " +
                                       VerbOf(control)};
    }
    status = Apply(api, *object, control);
    if (status.code() != Code::kConflict) return status;
  }
  return status;
}

// Through the agent's socket, to whichever Server has this operation in flight.
Status ControlByAgent(Session& session, const std::string& name, Control control, const Status& why, const Out& out) {
  if (control == Control::kPause || control == Control::kResume) return why;
  const Result<Json> status = session.agent().Get("/v1/status");
  if (!status.ok()) return why;
  for (const Json& server : status->Get("servers").AsArray()) {
    if (server.At({"operation", "name"}).AsString() != name) continue;
    const std::string key = server.Get("namespace").AsString() + "/" + server.Get("name").AsString();
    LK_RETURN_IF_ERROR(session.agent()
                           .Post("/v1/servers/" + key + "/" + VerbOf(control) + "?operation=" + PercentEncode(name))
                           .status());
    out(std::string(VerbOf(control)) + " of " + name + " recorded in the ledger of Server " + key +
        " (the API does not answer)\n");
    return Status::Ok();
  }
  return {Code::kNotFound,
          "no operation named " + name + " is in flight on this host, and the API does not answer: " + why.message()};
}

}  // namespace

Result<std::string> MakeUpgrade(Session& session, const UpgradeRequest& request, const Out& out) {
  LK_ASSIGN_OR_RETURN(Api * api, session.api());
  LK_ASSIGN_OR_RETURN(const std::string name, ParseServer(request.server));
  LK_ASSIGN_OR_RETURN(const Server server, FindServer(*api, session.ns(), name));
  Upgrade upgrade;
  upgrade.metadata.namespace_ = session.ns();
  upgrade.metadata.name = request.name.empty() ? MintName(name) : request.name;
  upgrade.spec.server_ref.name = name;
  upgrade.spec.action = request.restart ? UpgradeAction::kRestart : UpgradeAction::kUpgrade;
  upgrade.spec.version = request.version;
  upgrade.spec.allow_downgrade = request.allow_downgrade;
  upgrade.spec.mode = request.preflight ? OperationMode::kPreflight : OperationMode::kExecute;
  upgrade.spec.rollback = request.no_rollback ? RollbackMode::kDisabled : RollbackMode::kEnabled;
  if (request.gate) upgrade.spec.gates.push_back(Gate::kBeforeFlip);
  if (request.ready_timeout_seconds > 0) upgrade.spec.ready_timeout_seconds = request.ready_timeout_seconds;
  const Status made = Create<Upgrade>(*api, upgrade).status();
  if (made.code() == Code::kAlreadyExists) {
    return Status(made.code(), "there is an Upgrade " + upgrade.metadata.name +
                                   " already, and its name is its id: look at " + "it with `lockkeeper watch " +
                                   upgrade.metadata.name + "`, or give another --name");
  }
  LK_RETURN_IF_ERROR(made);
  out("upgrade/" + upgrade.metadata.name + " created\n");
  const Condition* ready = FindCondition(server.status.conditions, condition::kReady);
  if (ready != nullptr && ready->reason == reason::kServerStopped && !request.preflight) {
    out("Server " + name + " is stopped; it begins after `lockkeeper start " + name + "`\n");
  }
  return upgrade.metadata.name;
}

Result<std::string> MakeRollback(Session& session, const std::string& of_server, bool allow_outage, const Out& out) {
  LK_ASSIGN_OR_RETURN(Api * api, session.api());
  LK_ASSIGN_OR_RETURN(const std::string server_name, ParseServer(of_server));
  LK_ASSIGN_OR_RETURN(const Server server, FindServer(*api, session.ns(), server_name));
  std::string previous;
  for (const HistoryEntry& h : server.status.history) {
    if (h.mode == OperationMode::kPreflight) continue;  // it looked at a version that never ran
    if (h.outcome == Outcome::kSucceeded && !h.version.empty() && h.version != server.status.version) {
      previous = h.version;
      break;
    }
  }
  if (previous.empty() && !server.spec.install_version.empty() &&
      server.spec.install_version != server.status.version) {
    previous = server.spec.install_version;
  }
  if (previous.empty()) {
    return Status(Code::kPrecondition, "Server " + server_name + " has run no other version than " +
                                           server.status.version + "; name one: lockkeeper upgrade " + server_name +
                                           " --version V --allow-downgrade");
  }
  if (!server.spec.version.empty() && server.spec.version != previous) {
    return Status(Code::kPrecondition,
                  "Server " + server_name + " declares version " + server.spec.version +
                      ", which would be rolled out again at once; declare the one before: kubectl patch srv " +
                      server_name + " -n " + session.ns() + " --type=merge -p '{\"spec\":{\"version\":\"" + previous +
                      "\",\"allowDowngrade\":true}}'");
  }
  Upgrade probe;
  probe.spec.version = previous;
  Roll roll;
  roll.metadata.namespace_ = session.ns();
  roll.metadata.name = MintName(server_name);
  roll.spec.server_ref.name = server_name;
  LocalRef release;
  release.name = upgrade::ReleaseName(probe, server_name);
  LK_RETURN_IF_ERROR(Get<Release>(*api, {session.ns(), release.name})
                         .status()
                         .Annotate("the release of " + previous + " is not kept as an object any more"));
  roll.spec.release_ref = release;
  roll.spec.allow_downgrade = true;
  roll.spec.planned_outage = allow_outage || server.spec.shape == ServerShape::kSingle;
  roll.spec.backup = server.spec.backup.driver == BackupDriver::kNone ? RollBackup::kNone : RollBackup::kRequired;
  LK_RETURN_IF_ERROR(Create<Roll>(*api, roll).status());
  out("roll/" + roll.metadata.name + " created: back to " + previous + "\n");
  return roll.metadata.name;
}

Result<std::string> Retry(Session& session, const std::string& text, const Out& out) {
  LK_ASSIGN_OR_RETURN(const OperationTarget target, ParseOperation(text));
  const std::string& name = target.name;
  LK_ASSIGN_OR_RETURN(Api * api, session.api());
  const auto copy = [&](auto object) -> Result<std::string> {
    using T = decltype(object);
    if (!object.status.outcome)
      return Status(Code::kPrecondition, name + " has not finished; there is nothing to retry");
    T again;
    again.metadata.namespace_ = object.metadata.namespace_;
    again.metadata.name = MintName(object.spec.server_ref.name);
    again.spec = object.spec;
    again.spec.controls = Controls{};
    LK_RETURN_IF_ERROR(Create<T>(*api, again).status());
    std::string kind(T::kKind);
    kind[0] = static_cast<char>(std::tolower(kind[0]));
    out(kind + "/" + again.metadata.name + " created: " + name + " once more\n");
    return again.metadata.name;
  };
  if (target.kind != Roll::kKind) {
    const Result<Upgrade> upgrade = Get<Upgrade>(*api, {session.ns(), name});
    if (upgrade.ok()) return copy(*upgrade);
    if (upgrade.code() != Code::kNotFound) return upgrade.status();
  }
  if (target.kind != Upgrade::kKind) {
    const Result<Roll> roll = Get<Roll>(*api, {session.ns(), name});
    if (roll.ok()) return copy(*roll);
    if (roll.code() != Code::kNotFound) return roll.status();
  }
  return NoSuchOperation(session.ns(), target);
}

Status SetControl(Session& session, const std::string& text, Control control, const Out& out) {
  LK_ASSIGN_OR_RETURN(const OperationTarget target, ParseOperation(text));
  const std::string& name = target.name;
  const auto api = session.api();
  if (!api.ok()) return ControlByAgent(session, name, control, api.status(), out);
  const ObjectKey key{session.ns(), name};
  Status status(Code::kNotFound, "");
  if (target.kind != Roll::kKind) status = ApplyTo<Upgrade>(**api, key, control);
  if (status.code() == Code::kNotFound && target.kind != Upgrade::kKind) status = ApplyTo<Roll>(**api, key, control);
  if (status.code() == Code::kNotFound) return NoSuchOperation(key.namespace_, target);
  if (status.ok()) {
    out(std::string(VerbOf(control)) + " of " + name + " recorded\n");
    return status;
  }
  if (status.code() == Code::kUnavailable || status.code() == Code::kTimeout) {
    return ControlByAgent(session, name, control, status, out);
  }
  return status;
}

Status StopOrStart(Session& session, const std::string& of_server, bool stop, const Out& out) {
  LK_ASSIGN_OR_RETURN(const std::string server, ParseServer(of_server));
  const std::string target = "/v1/servers/" + session.ns() + "/" + server + (stop ? "/stop" : "/start");
  LK_ASSIGN_OR_RETURN(const Json view, session.agent().Post(target));
  if (!stop) {
    out("Server " + server + ": starting\n");
    return Status::Ok();
  }
  const std::string& front = view.Get("front").AsString();
  out("Server " + server + ": stopping; it stays stopped, also over a restart of lockkeeper, until `lockkeeper start " +
      server + "`" +
      (front.empty() ? ""
                     : ". Its front " + front + " holds each new connection for its hold.seconds, then closes it") +
      "\n");
  return Status::Ok();
}

}  // namespace lockkeeper::cli
