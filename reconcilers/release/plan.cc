#include "reconcilers/release/plan.h"

#include <algorithm>

#include "api/types/conditions.h"

namespace lockkeeper::release {

Plan Decide(const Snapshot& s, const Now& now) {
  Plan plan;
  if (s.document.unknown()) {
    plan.message = "the ledger cannot be read: " + s.document.why();
    plan.requeue_after = Seconds(1);
    return plan;
  }
  if (s.document.absent()) {
    const Release* object = s.object.get();
    if (object != nullptr && !object->metadata.Deleting() && object->spec.host == s.host) {
      plan.step = StepKind::kAdopt;
      plan.message = "takes up Release " + object->metadata.name;
    }
    return plan;
  }
  const ReleaseDocument& d = *s.document;
  switch (d.state) {
    case DocumentState::kPending:
      if (!s.server.known()) {
        plan.message = "Server " + d.server + " is not in the ledger yet";
        plan.requeue_after = Seconds(1);
        return plan;
      }
      plan.step = StepKind::kFetch;
      plan.message = "fetching " + d.version;
      return plan;
    case DocumentState::kFailed:
      if (d.next_try > now.wall) {
        plan.message = d.message;
        plan.requeue_after = d.next_try - now.wall;
        return plan;
      }
      plan.step = s.server.known() ? StepKind::kFetch : StepKind::kNone;
      plan.message = "fetching " + d.version + " again";
      return plan;
    case DocumentState::kReady:
      if (s.unpacked_is_there.known() && !*s.unpacked_is_there) {
        plan.step = StepKind::kFetchAgain;
        plan.message = d.build.path + " is gone";
        return plan;
      }
      if (s.object.absent()) {
        plan.step = StepKind::kCreateObject;
        plan.message = "shows the release of the host in the API";
      }
      return plan;
  }
  return plan;
}

ReleaseStatus Summarize(const Snapshot& s, const Now& now) {
  const Release& object = *s.object;
  ReleaseStatus status = object.status;
  const int64_t generation = object.metadata.generation;
  status.observed_generation = generation;
  status.next_actions.clear();
  ReadySummary ready;
  ready.ready = ConditionStatus::kFalse;
  ready.reason = "Pending";
  ready.message = "not taken up yet";
  status.progress.reset();
  if (s.document.known()) {
    const ReleaseDocument& d = *s.document;
    if (!d.build.sha256.empty()) {
      ResolvedBuild resolved;
      resolved.version = d.build.version;
      resolved.commit = d.build.commit;
      resolved.sha256 = d.build.sha256;
      resolved.url = d.url;
      status.resolved = resolved;
      status.size = d.size;
    }
    switch (d.state) {
      case DocumentState::kPending:
        ready.reason = "Downloading";
        ready.message = "fetching " + d.version;
        status.progress = s.progress;
        break;
      case DocumentState::kFailed: {
        ready.settling = Settling::kStalled;
        ready.reason = d.reason;
        ready.message = d.message;
        NextAction action;
        action.code = "MendSource";
        action.command = "kubectl edit server " + d.server + " -n " + d.ns;
        action.risk = "none; it is tried again by itself every 30 s";
        status.next_actions.push_back(action);
        break;
      }
      case DocumentState::kReady:
        status.path = d.build.path;
        status.executable = d.executable;
        status.sha256 = d.build.exec_sha256;
        status.files = s.files;
        status.verified_by = ParseEnum<VerifiedBy>(d.verified_by);
        ready.ready = ConditionStatus::kTrue;
        ready.settling = Settling::kCurrent;
        ready.reason = "Unpacked";
        ready.message = d.build.version + " is on the host";
        break;
    }
  }
  std::vector<Condition> conditions;
  SetReady(conditions, ready, generation, now.wall);
  status.conditions = CarryConditions(object.status.conditions, std::move(conditions), generation, now.wall);
  return status;
}

std::string ExecutableOf(const ServerSpec& spec) {
  if (spec.template_.command.empty()) return "";
  std::string command = spec.template_.command[0];
  constexpr std::string_view kRelease = "{release}/";
  if (command.starts_with(kRelease)) return command.substr(kRelease.size());
  return command.starts_with("/") ? "" : command;
}

Duration RetryAfter(int64_t failures) {
  Duration wait = Seconds(2);
  for (int64_t i = 1; i < failures && wait < Seconds(30); ++i) wait *= 2;
  return std::min(wait, Seconds(30));
}

std::string ReasonOf(const Status& status) {
  switch (status.code()) {
    case Code::kNotFound: return "VersionNotFound";
    case Code::kExhausted: return "DiskFull";
    case Code::kPrecondition: return "ChecksumMismatch";
    case Code::kInvalid:
    case Code::kCorrupt: return "ArtifactInvalid";
    default: return "SourceUnreachable";
  }
}

}  // namespace lockkeeper::release
