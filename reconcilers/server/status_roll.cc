// The status of a Roll: the report, its steps, phase, outcome and conditions.
#include <algorithm>
#include <functional>

#include "api/types/codec.h"
#include "api/types/conditions.h"
#include "api/types/reasons.h"
#include "reconcilers/server/rules.h"
#include "reconcilers/server/status.h"

namespace lockkeeper::roll {
namespace {

void Add(std::vector<Condition>& out, std::string_view type, bool yes, std::string_view why, std::string message = "") {
  Condition c;
  c.type = type;
  c.status = yes ? ConditionStatus::kTrue : ConditionStatus::kFalse;
  c.reason = why;
  c.message = std::move(message);
  out.push_back(std::move(c));
}

std::vector<RollStep> StepLines(const std::vector<std::string_view>& steps, const std::map<std::string, Time>& started,
                                const std::map<std::string, Time>& finished, const std::string& failed_step,
                                const std::string& failure, const std::function<bool(std::string_view)>& applies) {
  std::vector<RollStep> lines;
  for (std::string_view step : steps) {
    RollStep line;
    line.name = step;
    const auto begin = started.find(line.name);
    const auto end = finished.find(line.name);
    if (begin != started.end()) {
      line.started_at = begin->second;
      line.state = StepState::kRunning;
      line.attempt = 1;
    }
    if (end != finished.end()) {
      line.finished_at = end->second;
      line.state = applies(step) ? StepState::kDone : StepState::kSkipped;
    }
    if (line.name == failed_step) {
      line.state = StepState::kFailed;
      line.message = failure;
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

// The conditions that speak of single steps.
void StepConditions(std::vector<Condition>& out, const RollReport& r, const std::map<std::string, Time>& finished) {
  const auto done = [&](const char* step) { return finished.count(step) != 0; };
  const auto step = [&](std::string_view type, bool yes) {
    Add(out, type, yes, yes ? reason::kAsDesired : reason::kPending);
  };
  step(condition::kBackendFlipped, r.flipped_at.has_value());
  step(condition::kDrained, done(kStepDrain));
  step(condition::kOldStopped, done(kStepStopOld));
  step(condition::kLeaseHeld, r.lease_held_at.has_value());
  step(condition::kProbeReady, r.probe_ready_at.has_value());
}

OperationPhase PhaseOf(Outcome outcome) {
  switch (outcome) {
    case Outcome::kSucceeded: return OperationPhase::kSucceeded;
    case Outcome::kRolledBack: return OperationPhase::kRolledBack;
    case Outcome::kAborted:
    case Outcome::kAbandoned:
    case Outcome::kFailed: break;
  }
  return OperationPhase::kFailed;
}

// Of an operation that is over: Finished, and Complete or Failed with Stalled beside it.
std::vector<Condition> EndedConditions(Outcome outcome, std::string_view why, const std::string& message,
                                       int64_t generation, const Now& now) {
  std::vector<Condition> out;
  const bool good = outcome == Outcome::kSucceeded;
  Add(out, condition::kAdmitted, true, reason::kAdmitted);
  Add(out, condition::kProgressing, false, reason::kNoOperation);
  Add(out, condition::kComplete, good, why, message);
  Add(out, condition::kFailed, !good, why, message);
  Add(out, condition::kFinished, true, why, message);
  ReadySummary sum;
  sum.ready = good ? ConditionStatus::kTrue : ConditionStatus::kFalse;
  sum.settling = good ? Settling::kCurrent : Settling::kStalled;
  sum.reason = why;
  sum.message = message;
  SetReady(out, sum, generation, now.wall);
  return out;
}

// That the holder of the place does not go on by itself, and how a person ends it; "" while it does.
std::string StalledHolder(const StatusInput& in, const OperationRecord& holder) {
  std::string why = in.plan.stalled ? in.plan.message : std::string();
  if (why.empty() && in.snapshot.candidates.known()) {
    for (const Candidate& x : *in.snapshot.candidates) {
      if (x.uid == holder.uid && !x.uid.empty() && !x.closed) why = x.stalled;
    }
  }
  if (why.empty()) return "";
  const std::string tail = " " + holder.name + " -n " + in.snapshot.key.ns;
  return ", which is stalled: " + why + "; mend that, or end it with `lockkeeper abort" + tail + "`";
}

}  // namespace

OperationPhase PhaseOf(const OperationRecord& op, StopOrder order) {
  if (op.roll_outcome) return PhaseOf(*op.roll_outcome);
  if (op.kind == kKindUpgrade && op.roll_name.empty()) return OperationPhase::kDownloading;
  if (op.undoing) return OperationPhase::kRollingBack;
  const std::string_view step = CurrentStep(op, order);
  if (step == kStepBackUp) return OperationPhase::kBackingUp;
  if (Finished(op, kStepFlip)) return OperationPhase::kVerifying;
  if (Started(op, kStepStart) || Started(op, kStepHold)) return OperationPhase::kRestarting;
  return OperationPhase::kInstalling;
}

RollStatus SummarizeRoll(const StatusInput& in, const RollStatus& before, int64_t generation) {
  const Context c(in.snapshot, in.now);
  const OperationRecord& op = *c.op;
  const StopOrder order = c.spec.template_.stop.order;
  RollStatus out;
  out.extra = before.extra;
  out.observed_generation = generation;
  out.phase = PhaseOf(op, order);
  out.version = op.target.version;
  const auto from_version = op.notes.find(kFromVersion);
  out.previous_version = from_version != op.notes.end() ? from_version->second : std::string();
  out.requested_by = op.requested_by;
  out.error = op.failure_message;
  out.report = op.report;
  const auto admitted = op.started.find(kStepAdmit);
  if (admitted != op.started.end()) out.report.started_at = admitted->second;
  out.steps = StepLines(StepsOf(op, order), op.started, op.finished, op.failed_step, op.failure_message,
                        [&](std::string_view step) { return StepApplies(step, op, c.spec); });
  const std::string_view current = CurrentStep(op, order);
  for (RollStep& line : out.steps) {
    if (line.name != current || line.state == StepState::kDone || line.state == StepState::kFailed) continue;
    if (in.plan.for_a_person) line.state = StepState::kWaiting;
    if (in.plan.waiting) line.message = in.plan.message;
  }
  // Until the preflight has ended each pass finds them anew; one that did something else first goes on telling them.
  const bool preflight = !Finished(op, kStepPreflight);
  out.checks = !in.plan.checks.empty() ? in.plan.checks : preflight ? before.checks : op.checks;
  out.plan = !in.plan.steps_ahead.empty() ? in.plan.steps_ahead : preflight ? before.plan : std::vector<PlanStep>{};
  out.next_actions = in.plan.next_actions;
  Progress progress;
  progress.step = op.undoing ? "Undo" : std::string(current);
  progress.message = in.plan.message;
  const auto done =
      std::count_if(out.steps.begin(), out.steps.end(), [](const RollStep& l) { return l.finished_at.has_value(); });
  progress.done = done;
  progress.total = static_cast<int64_t>(out.steps.size());
  progress.percent = out.steps.empty() ? 0 : done * 100 / static_cast<int64_t>(out.steps.size());
  progress.unit = "steps";
  progress.updated_at = in.now.wall;
  out.progress = progress;

  std::vector<Condition> conditions;
  Add(conditions, condition::kAdmitted, true, reason::kAdmitted);
  Add(conditions, condition::kProgressing, true, reason::kOperationRunning, "step " + progress.step);
  Add(conditions, condition::kComplete, false, reason::kOperationRunning);
  Add(conditions, condition::kFailed, false, reason::kOperationRunning);
  Add(conditions, condition::kFinished, false, reason::kOperationRunning);
  StepConditions(conditions, op.report, op.finished);
  if (const auto refused = op.notes.find("abortRefused"); refused != op.notes.end()) {
    Add(conditions, condition::kAbortRefused, true, reason::kAbortRefused, refused->second);
  }
  ReadySummary sum;
  sum.ready = ConditionStatus::kFalse;
  const bool error_stalls = !in.last_error.ok() && DispositionOf(in.last_error.code()) == Disposition::kStalled;
  sum.settling = in.plan.stalled || error_stalls ? Settling::kStalled : Settling::kReconciling;
  sum.reason = in.plan.stalled || in.plan.for_a_person ? in.plan.reason
               : error_stalls                          ? std::string(CodeName(in.last_error.code()))
                                                       : std::string(reason::kOperationRunning);
  sum.message = in.plan.stalled || in.plan.for_a_person ? in.plan.message
                : error_stalls                          ? in.last_error.message()
                                                        : "step " + progress.step + LastTry(in.last_error);
  // How long a gate has waited is a number: it stands in progress.
  if (in.plan.for_a_person && in.plan.reason == reason::kWaitingForApproval)
    sum.message = "waits for approval of gate BeforeFlip";
  SetReady(conditions, sum, generation, in.now.wall);
  out.conditions = CarryConditions(before.conditions, std::move(conditions), generation, in.now.wall);
  return out;
}

RollStatus SummarizeWaiting(const StatusInput& in, const RollStatus& before, int64_t generation) {
  RollStatus out = before;
  out.observed_generation = generation;
  out.phase = OperationPhase::kPending;
  std::string_view why = reason::kQueued;
  std::string message = "waits to be admitted";
  if (in.snapshot.record.known()) {
    const ServerRecord& rec = *in.snapshot.record;
    if (rec.operation) {
      // Not at which phase that is: each would be a write for each that waits.
      message = "waits for " + rec.operation->kind + " " + rec.operation->name + StalledHolder(in, *rec.operation);
    } else if (rec.spec.paused) {
      why = reason::kServerPaused;
      message = "spec.paused of Server " + rec.key.name + " is true; set it to false to go on";
    } else if (rec.spec.maintenance.freeze) {
      why = reason::kFrozen;
      message = "spec.maintenance.freeze of Server " + rec.key.name + " is true; set it to false to go on";
    } else if (rec.stopped) {
      why = reason::kServerStopped;
      message = "Server " + rec.key.name + " is stopped; `lockkeeper start " + rec.key.name + " -n " + rec.key.ns +
                "` starts it";
    } else if (in.plan.stalled) {
      why = in.plan.reason;
      message = in.plan.message;
    }
  }
  out.progress = Progress{};
  out.progress->message = message.substr(0, message.find_first_of(",;"));
  std::vector<Condition> conditions;
  Add(conditions, condition::kAdmitted, false, why, message);
  Add(conditions, condition::kProgressing, false, why, message);
  Add(conditions, condition::kComplete, false, reason::kPending);
  Add(conditions, condition::kFailed, false, reason::kPending);
  Add(conditions, condition::kFinished, false, reason::kPending);
  ReadySummary sum;
  sum.ready = ConditionStatus::kFalse;
  sum.reason = why;
  sum.message = message;
  SetReady(conditions, sum, generation, in.now.wall);
  out.conditions = CarryConditions(before.conditions, std::move(conditions), generation, in.now.wall);
  return out;
}

RollStatus SummarizeEnded(const OutcomeRecord& o, const RollStatus& before, int64_t generation, const Now& now,
                          bool applied_before) {
  RollStatus out;
  out.extra = before.extra;
  out.observed_generation = generation;
  out.phase = PhaseOf(o.outcome);
  out.outcome = o.outcome;
  out.version = o.version;
  out.previous_version = o.previous_version;
  out.requested_by = o.requested_by;
  if (o.outcome != Outcome::kSucceeded) out.error = o.message;
  if (o.report) out.report = *o.report;
  out.finished_at = o.finished_at;
  out.checks = o.checks;
  out.plan = o.steps_ahead;
  OperationRecord op;
  op.from = out.report.from;
  op.outage = out.report.planned_outage.value_or(false);
  const StopOrder order = o.steps_started.count(kStepDrain) != 0 && o.steps_started.count(kStepStopOld) != 0 &&
                                  o.steps_started.at(kStepStopOld) < o.steps_started.at(kStepDrain)
                              ? StopOrder::kStopThenDrain
                              : StopOrder::kDrainThenStop;
  out.steps = StepLines(
      StepsOf(op, order), o.steps_started, o.steps_finished, o.failed_step, o.message, [&](std::string_view step) {
        return std::find(o.steps_skipped.begin(), o.steps_skipped.end(), step) == o.steps_skipped.end();
      });
  for (RollStep& line : out.steps) {
    if (line.state == StepState::kRunning) line.state = StepState::kSkipped;
  }
  const std::string_view why = applied_before ? reason::kAlreadyApplied : std::string_view(o.reason);
  std::string message = o.message;
  if (applied_before) {
    message = "an operation of this name and spec ended before: " + std::string(EnumName(o.outcome)) +
              "; nothing was touched, use a new name to do it once more";
  }
  std::vector<Condition> conditions = EndedConditions(o.outcome, why, message, generation, now);
  if (o.report) StepConditions(conditions, *o.report, o.steps_finished);
  if (const Condition* refused = FindCondition(before.conditions, condition::kAbortRefused)) {
    conditions.push_back(*refused);
  }
  out.conditions = CarryConditions(before.conditions, std::move(conditions), generation, now.wall);
  return out;
}

RollStatus SummarizeNameReused(const OutcomeRecord& o, const RollStatus& before, int64_t generation, const Now& now) {
  RollStatus out = before;
  out.observed_generation = generation;
  out.phase = OperationPhase::kFailed;
  out.outcome = Outcome::kFailed;
  out.error = "the name was used by another spec, which ended " + std::string(EnumName(o.outcome)) +
              "; use a new name, nothing was touched";
  if (!out.finished_at) out.finished_at = now.wall;
  out.conditions = CarryConditions(before.conditions,
                                   EndedConditions(Outcome::kFailed, reason::kNameReused, out.error, generation, now),
                                   generation, now.wall);
  return out;
}

bool SameButProgress(const RollStatus& a, const RollStatus& b) {
  RollStatus x = a;
  x.progress = b.progress;
  for (size_t i = 0; i < x.steps.size() && i < b.steps.size(); ++i) x.steps[i].message = b.steps[i].message;
  return x == b || ToJson(x) == ToJson(b);
}

}  // namespace lockkeeper::roll
