#include "reconcilers/upgrade/status.h"

#include "api/types/conditions.h"

namespace lockkeeper::upgrade {
namespace {

OperationPhase PhaseOf(Outcome outcome) {
  switch (outcome) {
    case Outcome::kSucceeded: return OperationPhase::kSucceeded;
    case Outcome::kRolledBack: return OperationPhase::kRolledBack;
    case Outcome::kAborted:
    case Outcome::kAbandoned:
    case Outcome::kFailed: return OperationPhase::kFailed;
  }
  return OperationPhase::kFailed;
}

// Opens the record of the phase we are in and closes the ones before it.
void RecordPhase(std::vector<PhaseRecord>& phases, OperationPhase phase, const std::string& message, Time now) {
  if (phases.empty() || phases.back().name != phase) {
    if (!phases.empty() && !phases.back().finished_at) phases.back().finished_at = now;
    PhaseRecord record;
    record.name = phase;
    record.started_at = now;
    phases.push_back(record);
  }
  phases.back().message = message;
  if (IsTerminal(phase) && !phases.back().finished_at) phases.back().finished_at = now;
}

// What a column has room for: no time in it, which would be a write a pass.
Progress InShort(const Plan& plan) {
  Progress p;
  // The whole of it stands in the conditions.
  p.message = plan.stalled ? "stalled: " + plan.reason : plan.message.substr(0, plan.message.find_first_of(",;"));
  return p;
}

std::optional<Progress> ProgressOf(const Snapshot& s, const Plan& plan) {
  std::optional<Progress> childs;
  if (s.roll.known()) {
    childs = s.roll->status.progress;
  } else if (s.backup.known() && plan.phase == OperationPhase::kBackingUp) {
    childs = s.backup->status.progress;
  } else if (s.release.known() && plan.phase == OperationPhase::kDownloading) {
    childs = s.release->status.progress;
  }
  return childs && !plan.stalled ? childs : InShort(plan);
}

void CopyChildren(const Snapshot& s, UpgradeStatus& status) {
  const auto ref = [](const ObjectMeta& meta) {
    LocalRef r;
    r.name = meta.name;
    return r;
  };
  if (s.release.known()) {
    status.release_ref = ref(s.release->metadata);
    if (s.release->status.resolved && !status.resolved) status.resolved = s.release->status.resolved;
  }
  if (s.backup.known()) status.backup_ref = ref(s.backup->metadata);
  if (!s.roll.known()) return;
  const Roll& roll = *s.roll;
  status.roll_ref = ref(roll.metadata);
  status.checks = roll.status.checks;
  status.plan = roll.status.plan;
  // A preflight brings nothing up.
  if (s.upgrade.spec.mode != OperationMode::kPreflight) status.new_version = roll.status.version;
  status.new_instance_id = roll.status.report.new_invocation_id;
  if (!roll.status.previous_version.empty()) status.previous_version = roll.status.previous_version;
}

}  // namespace

UpgradeStatus Summarize(const Snapshot& s, const Plan& plan, const Now& now) {
  const Upgrade& u = s.upgrade;
  UpgradeStatus status = u.status;
  const int64_t generation = u.metadata.generation;
  status.observed_generation = generation;
  if (plan.finish && !status.outcome) {
    status.outcome = plan.finish->outcome;
    status.finished_at = now.wall;
    status.error = plan.finish->outcome == Outcome::kSucceeded ? "" : plan.finish->message;
  }
  const bool finished = status.outcome.has_value();
  const OperationPhase phase = finished ? PhaseOf(*status.outcome) : plan.phase;
  status.phase = phase;
  if (plan.admitted && !status.started_at) status.started_at = now.wall;
  CopyChildren(s, status);
  // Who waits does not know yet what it will find.
  if (!finished && plan.admitted && status.previous_version.empty() && s.server.known()) {
    status.previous_version = s.server->status.version;
    status.previous_commit = s.server->status.commit;
    status.previous_instance_id = s.server->status.instance_id;
  }
  const auto requested = u.metadata.annotations.find("lockkeeper.dev/requested-by");
  status.requested_by = requested != u.metadata.annotations.end() ? requested->second : u.spec.requested_by;
  status.progress = finished ? std::nullopt : ProgressOf(s, plan);
  status.next_actions = finished ? std::vector<NextAction>{} : plan.next_actions;

  const bool succeeded = finished && *status.outcome == Outcome::kSucceeded;
  const bool stalled = (finished && !succeeded) || (!finished && plan.stalled);
  // A finished Upgrade keeps what its end said; later passes only let go.
  std::string reason = plan.reason;
  std::string message = plan.message;
  if (finished && !plan.finish) {
    if (const Condition* old = FindCondition(u.status.conditions, "Finished")) {
      reason = old->reason;
      message = old->message;
    }
  }
  RecordPhase(status.phases, phase, message, now.wall);
  const auto add = [&](std::string_view type, bool value, std::string_view why, std::string_view text) {
    Condition c;
    c.type = type;
    c.status = value ? ConditionStatus::kTrue : ConditionStatus::kFalse;
    c.reason = why;
    c.message = text;
    status.conditions.push_back(std::move(c));
  };
  const auto set = [&](std::string_view type, bool value) { add(type, value, reason, message); };
  status.conditions.clear();
  const bool admitted = plan.admitted || finished;
  if (admitted) {
    add(condition::kAdmitted, true, "Admitted", "the host's ledger holds it");
  } else {
    set(condition::kAdmitted, false);
  }
  set(condition::kProgressing, !finished && !stalled && admitted);
  set(condition::kComplete, succeeded);
  set(condition::kFailed, finished && !succeeded);
  set(condition::kFinished, finished);
  if (s.roll.known()) {
    const Condition* refused = FindCondition(s.roll->status.conditions, condition::kAbortRefused);
    if (refused != nullptr && refused->status == ConditionStatus::kTrue) {
      add(condition::kAbortRefused, true, refused->reason, refused->message);
    }
  }
  ReadySummary ready;
  ready.ready = succeeded ? ConditionStatus::kTrue : ConditionStatus::kFalse;
  ready.settling = stalled ? Settling::kStalled : finished ? Settling::kCurrent : Settling::kReconciling;
  ready.reason = reason;
  ready.message = message;
  SetReady(status.conditions, ready, generation, now.wall);
  status.conditions = CarryConditions(u.status.conditions, std::move(status.conditions), generation, now.wall);
  return status;
}

std::vector<StoryEvent> EventsBetween(const UpgradeStatus& before, const UpgradeStatus& after) {
  std::vector<StoryEvent> events;
  // Once there is a Roll the agent tells the story, step by step.
  if (after.phase && before.phase != after.phase && !after.roll_ref && !IsTerminal(*after.phase) &&
      *after.phase != OperationPhase::kPending) {
    events.push_back({false, std::string(EnumName(*after.phase)),
                      after.phases.empty() ? std::string() : after.phases.back().message});
  }
  const Condition* stalled = FindCondition(after.conditions, "Stalled");
  const Condition* was = FindCondition(before.conditions, "Stalled");
  if (stalled != nullptr && !after.outcome && (was == nullptr || was->reason != stalled->reason)) {
    events.push_back({true, stalled->reason, stalled->message});
  }
  if (after.outcome && !before.outcome) {
    const Condition* finished = FindCondition(after.conditions, "Finished");
    const bool ok = *after.outcome == Outcome::kSucceeded;
    std::string message = ok && !after.new_version.empty() ? "now runs " + after.new_version
                          : finished != nullptr            ? finished->message
                                                           : after.error;
    events.push_back({!ok, std::string(EnumName(*after.outcome)), std::move(message)});
  }
  return events;
}

}  // namespace lockkeeper::upgrade
