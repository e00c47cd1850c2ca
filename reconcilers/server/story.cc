// The story of a Server and its operations, as events tell it in order.
#include <algorithm>

#include "reconcilers/server/context.h"
#include "reconcilers/server/status.h"

namespace lockkeeper::roll {
namespace {

std::string Number(const std::optional<double>& seconds) {
  return seconds ? SecondsText(Seconds(*seconds)) : std::string("0.0 s");
}

// What a finished step tells; an empty reason tells nothing.
StoryEvent TellStep(std::string_view step, const OperationRecord& op) {
  const RollReport& r = op.report;
  const std::string to = "slot " + op.to;
  const std::string from = "slot " + op.from;
  if (step == kStepPreflight) return {false, "PreflightPassed", "every precondition holds"};
  if (step == kStepBackUp && !r.store_backup.empty())
    return {false, "BackedUp", "store backed up in " + Number(r.backup_seconds)};
  if (step == kStepRender) return {false, "Rendered", to + " gets " + op.target.version + " as " + r.new_unit};
  if (step == kStepHold) return {false, "Holding", "the front holds new connections"};
  if (step == kStepSeed) return {false, "Seeded", to + " holds the shared files"};
  if (step == kStepStart) return {false, "Started", to + " runs as pid " + std::to_string(r.new_pid.value_or(0))};
  if (step == kStepListen)
    return {false, "Listening", to + " listens on port " + std::to_string(r.new_port.value_or(0))};
  if (step == kStepReady)
    return {false, "Ready", to + " is ready after " + Number(r.start_to_ready_seconds) + ", the right build"};
  if (step == kStepRecord) return {false, "Recorded", to + " is the active slot, " + op.target.version};
  if (step == kStepFlip && r.flipped_at) {
    std::string text = "new connections go to " + to;
    if (r.outage_seconds) text += "; the outage took " + Number(r.outage_seconds);
    return {false, "Flipped", text};
  }
  if (step == kStepMemberToken && r.member_token_at)
    return {false, "MemberToken", "the members' token is the new slot's"};
  if (step == kStepDrain && r.drained_at) {
    return {false, "Drained",
            from + " drained in " + Number(r.drain_seconds) + ": " + std::to_string(r.drained.value_or(0)) +
                (r.drained == 1 ? " connection, " : " connections, ") + std::to_string(r.cut_connections.value_or(0)) +
                " cut"};
  }
  if (step == kStepStopOld)
    return {false, "OldStopped", from + " ended " + Number(r.old_exit_seconds) + " after its signal"};
  if (step == kStepLease && r.lease_held_at) {
    return {false, "LeaseHeld",
            "the controller lease went over in " + Number(r.lease_handover_seconds) + " to " + r.new_holder};
  }
  if (step == kStepProbe && r.probe_ready_at)
    return {false, "ProbeReady", "a new object reconciled in " + Number(r.probe_seconds)};
  if (step == kStepRetire && !op.from.empty() && op.from != op.to) return {false, "Retired", from + " is retired"};
  return {};
}

// Whose outcome it is and how it came: a person's control names its operation already.
std::string NamedOnce(const OutcomeRecord& o) {
  const std::string whose = o.kind + " " + o.name;
  const bool named = o.message.rfind(whose + " ", 0) == 0;
  return named || o.message.empty() ? (named ? o.message : whose) : whose + ": " + o.message;
}

void TellOperation(const OperationRecord& before, const OperationRecord& after, std::vector<StoryEvent>& story) {
  std::vector<std::pair<Time, std::string>> fresh;
  // The order of the steps, for those that ended in the same commit.
  for (StopOrder order : {StopOrder::kDrainThenStop}) {
    for (std::string_view step : StepsOf(after, order)) {
      const std::string name(step);
      const auto end = after.finished.find(name);
      if (end != after.finished.end() && before.finished.count(name) == 0) fresh.emplace_back(end->second, name);
    }
  }
  for (const auto& [at, step] : fresh) {
    StoryEvent event = TellStep(step, after);
    if (!event.reason.empty()) story.push_back(std::move(event));
  }
  if (after.waiting_since && !before.waiting_since) {
    story.push_back({false, after.paused ? "Paused" : "WaitingForApproval", "waits for a person before it goes on"});
  }
  if (!after.waiting_since && before.waiting_since) {
    story.push_back({false, "GoesOn", "goes on after waiting " + SecondsText(after.waited - before.waited)});
  }
  if (after.emergency_flip && !before.emergency_flip) {
    story.push_back(
        {true, "EmergencyFlip", "slot " + after.from + " did not come back; flipped without waiting for the gate"});
  }
  if (after.flipped_back && !before.flipped_back) {
    story.push_back({true, "FlippedBack", after.failure_message + "; slot " + after.from + " serves again"});
  } else if (after.undoing && !before.undoing) {
    story.push_back({true, after.failure_reason, after.failure_message + "; undoing"});
  } else if (!after.failure_reason.empty() && before.failure_reason != after.failure_reason) {
    story.push_back({true, after.failure_reason, after.failure_message});
  }
  const auto refused = after.notes.find("abortRefused");
  if (refused != after.notes.end() && before.notes.count("abortRefused") == 0) {
    story.push_back({true, "AbortRefused", "abort came too late: " + refused->second});
  }
}

}  // namespace

std::vector<StoryEvent> StoryOf(const ServerRecord& before, const ServerRecord& after) {
  std::vector<StoryEvent> story;
  const bool same = before.operation && after.operation && before.operation->name == after.operation->name &&
                    before.operation->roll_name == after.operation->roll_name && !after.operation->roll_outcome;
  if (after.operation && !before.operation) {
    story.push_back({false, "Admitted", after.operation->kind + " " + after.operation->name + " is admitted"});
  }
  if (after.operation && !after.operation->roll_outcome) {
    TellOperation(same ? *before.operation : OperationRecord{}, *after.operation, story);
  }
  if (!after.history.empty() && (before.history.empty() || !(after.history.front() == before.history.front()))) {
    const OutcomeRecord& o = after.history.front();
    if (before.operation && !same && o.report) {  // the steps that ended in the commit that ended the operation
      OperationRecord last = *before.operation;
      last.finished = o.steps_finished;
      last.report = *o.report;
      last.failure_reason = before.operation->failure_reason;
      TellOperation(*before.operation, last, story);
    }
    story.push_back({o.outcome != Outcome::kSucceeded, std::string(EnumName(o.outcome)), NamedOnce(o)});
  }
  if (after.repairs > before.repairs ||
      (after.hold && !before.hold && !after.operation && !after.stopped && !after.deleting)) {
    story.push_back({true, "Repairing", "slot " + after.active + " is started again; the front holds new connections"});
  }
  if (before.hold && !after.hold && after.active == before.active && !after.operation) {
    story.push_back({false, "Repaired", "slot " + after.active + " is ready again"});
  }
  if (after.released && !before.released) story.push_back({false, "Released", "what runs is left as it is"});
  return story;
}

}  // namespace lockkeeper::roll
