// Undo, and rules G and H: what a failure, an abort or an abandonment does.
#include "reconcilers/server/rules.h"

namespace lockkeeper::roll {
namespace {

constexpr char kProbeSwept[] = "probeSwept";
constexpr char kAbortRefused[] = "abortRefused";

std::string ServerGoing(const Context& c) {
  return c.rec.stopped && !c.rec.deleting ? "ServerStopped" : "ServerDeleted";
}

// While the undo still works at something: plain waiting, or UndoIncomplete once its own deadline has passed.
Plan StillStanding(const Context& c, std::string reason, std::string message) {
  if (!c.DeadlinePassed(kUndo)) return c.Wait(std::move(reason), std::move(message), Milliseconds(100));
  const std::string verb = " " + c.op->roll_name + " -n " + c.rec.key.ns;
  return c.Stall("UndoIncomplete", "the undo is past its deadline and goes on; still standing: " + message,
                 {c.MakeAction("Logs", LogsCommand(c, c.op->to), "none"),
                  c.MakeAction("Abandon", "lockkeeper abandon" + verb,
                               "ends the operation; what still stands is put right as repair")},
                 Milliseconds(500));
}

// Whether the undo's new slot has the place in the record.
bool NewSlotStands(const Context& c) {
  const auto it = c.rec.slots.find(c.op->to);
  return c.op->rendered && it != c.rec.slots.end() && it->second.intent.incarnation == c.op->rendered->incarnation;
}

// Stops and forgets the new slot. Nothing once nothing of it is left.
RuleResult StopTheNewSlot(const Context& c) {
  const SlotView fresh = c.Slot(c.op->to);
  ServerRecord next = c.rec;
  SlotIntent& intent = next.slots[fresh.name].intent;
  if (intent.running || !intent.forget) {
    intent.running = false;
    intent.forget = true;
    return c.Do(std::move(next), "StoppingNew", "slot " + fresh.name + " of the new build is stopped");
  }
  if (fresh.unit_absent) return {};
  return StillStanding(c, "StoppingNew",
                       "slot " + fresh.name + " of the new build (" + std::string(LifeName(fresh.life)) + ")");
}

RuleResult SweepTheProbe(const Context& c) {
  if (c.rec.probe_name.empty() || c.op->notes.count(kProbeSwept) != 0) return {};
  ServerRecord done = c.rec;
  done.probe_name.clear();
  done.operation->notes[kProbeSwept] = "yes";
  ServerRecord failed = c.rec;
  failed.operation->notes[kProbeSwept] = "{error}";
  return c.Effect(DeleteProbes{c.rec.probe_name}, "SweepingProbe", "probe object " + c.rec.probe_name, std::move(done),
                  std::move(failed));
}

Plan EndUndone(const Context& c, ServerRecord next) {
  const OperationRecord& op = *c.op;
  Outcome outcome = Outcome::kRolledBack;
  if (IsInstall(op)) outcome = Outcome::kFailed;
  if (op.abort) outcome = Outcome::kAborted;
  if (op.abandon) outcome = Outcome::kAbandoned;
  std::string message = op.failure_message;
  for (const std::string& error : op.undo_errors) message += "; " + error;
  // What a build said before it failed is the first thing anybody asks for.
  if (op.failure_is_the_builds && op.rendered) message += "; `" + LogsCommand(c, op.to) + "` shows its last words";
  const auto from = c.rec.slots.find(op.from);
  const bool other_build =
      op.rendered && from != c.rec.slots.end() && from->second.intent.build.sha256 != op.rendered->build.sha256;
  if (Finished(op, kStepStart) && other_build) next.store_touched_by_new_build = true;
  if (op.failure_is_the_builds && outcome == Outcome::kRolledBack && other_build) {
    RejectedEntry entry;
    entry.version = op.rendered->build.version;
    entry.exec_sha256 = op.rendered->build.exec_sha256;
    entry.reason = op.failure_reason;
    entry.at = c.now.wall;
    next.rejected.push_back(std::move(entry));
  }
  return Finish(c, std::move(next), outcome, op.failure_reason, message);
}

Plan FrontGoingBack(const Context& c) {
  if (c.FrontSilent()) return c.FrontSilentPlan();
  return StillStanding(c, "FrontGoingBack", "the front is not yet seen on slot " + c.op->from);
}

RuleResult UndoBlueGreen(const Context& c) {
  const OperationRecord& op = *c.op;
  if (c.rec.active != op.from) {
    ServerRecord next = c.rec;
    next.active = op.from;
    return c.Do(std::move(next), "RecordedBack", "slot " + op.from + " is the active slot again");
  }
  const SlotView old = c.Slot(op.from);
  if (NewSlotStands(c) && !op.from.empty()) {
    const SlotView fresh = c.Slot(op.to);
    if (fresh.intent().running && !fresh.NotReady() && !c.FrontOn(old)) return FrontGoingBack(c);
  }
  if (NewSlotStands(c)) {
    if (RuleResult stop = StopTheNewSlot(c)) return stop;
  }
  if (!op.from.empty() && !c.FrontOn(old)) return FrontGoingBack(c);
  if (RuleResult sweep = SweepTheProbe(c)) return sweep;
  ServerRecord next = c.rec;
  if (NewSlotStands(c)) next.slots.erase(op.to);
  return EndUndone(c, std::move(next));
}

// The record with which the old slot is wanted again, from its kept rendering.
ServerRecord OldWantedAgain(const Context& c) {
  const OperationRecord& op = *c.op;
  ServerRecord next = c.rec;
  if (NewSlotStands(c)) {
    SlotEntry& entry = next.slots[op.to];
    if (op.to == op.from && entry.previous) {
      entry.intent = *entry.previous;
      entry.previous.reset();
    } else if (op.to != op.from) {
      next.slots.erase(op.to);
    }
  }
  c.StartAgain(next, op.from);
  next.active = op.from;
  return next;
}

RuleResult UndoOutage(const Context& c) {
  const OperationRecord& op = *c.op;
  if (!c.rec.hold && c.HasFront() && (NewSlotStands(c) || c.Slot(op.from).life == Life::kGone)) {
    ServerRecord next = c.rec;
    next.hold = true;
    return c.Do(std::move(next), "HoldingForUndo",
                "the front holds new connections until slot " + op.from + " is back");
  }
  if (NewSlotStands(c)) {
    const SlotView fresh = c.Slot(op.to);
    if (fresh.intent().running && !fresh.NotReady() && !c.FrontHolds()) {
      if (c.FrontSilent()) return c.FrontSilentPlan();
      return StillStanding(c, "FrontGoingToHold", "the front is not yet seen on hold");
    }
    if (RuleResult stop = StopTheNewSlot(c)) return stop;
    return c.Do(OldWantedAgain(c), "StartingOld", "slot " + op.from + " is started again from its kept rendering");
  }
  const SlotView old = c.Slot(op.from);
  if (old.entry != nullptr && !old.intent().running) {
    if (old.life != Life::kGone) return StillStanding(c, "OldStopping", "slot " + op.from + " is still stopping");
    return c.Do(OldWantedAgain(c), "StartingOld", "slot " + op.from + " is started again");
  }
  if (!old.Ready()) {
    return StillStanding(c, "OldStarting",
                         "slot " + op.from + " is not ready yet: " + (old.Dead() ? old.exit_text : old.readyz_text));
  }
  if (c.rec.hold || c.rec.active != op.from) {
    ServerRecord next = c.rec;
    next.hold = false;
    next.active = op.from;
    next.slots[op.from].ready_at = c.now.wall;
    return c.Do(std::move(next), "RecordedBack",
                "slot " + op.from + " serves again on port " + std::to_string(old.port));
  }
  if (!c.FrontOn(old)) return FrontGoingBack(c);
  if (RuleResult sweep = SweepTheProbe(c)) return sweep;
  return EndUndone(c, c.rec);
}

}  // namespace

std::string LogsCommand(const Context& c, const std::string& slot) {
  return "lockkeeper logs " + c.rec.key.name + " -n " + c.rec.key.ns + " --slot " + slot;
}

ServerRecord Undoing(const Context& c, ServerRecord next, std::string_view step, const Failure& failure) {
  OperationRecord& op = *next.operation;
  c.EndWait(next);
  op.undoing = true;
  op.failed_step = step;
  op.failure_reason = failure.reason;
  op.failure_message = failure.message;
  op.failure_is_the_builds = failure.builds;
  op.deadlines.erase(kActiveRepair);
  const Timeouts t = c.timeouts();
  c.SetDeadline(next, kUndo, Seconds(static_cast<double>(t.stop_seconds + t.ready_seconds)));
  if (!op.outage && !op.from.empty()) next.active = op.from;  // record back, in the same commit
  return next;
}

Plan Fail(const Context& c, ServerRecord next, std::string_view step, const Failure& failure) {
  OperationRecord& op = *next.operation;
  if (!Touched(op)) {
    op.failed_step = step;
    return Finish(c, std::move(next), Outcome::kFailed, failure.reason, failure.message + "; nothing was changed");
  }
  return c.Do(Undoing(c, std::move(next), step, failure), failure.reason, failure.message + "; undoing");
}

RuleResult ObeyAbortAndAbandon(const Context& c) {
  if (c.op == nullptr) return {};
  const OperationRecord& op = *c.op;
  const bool settle = c.Settling();
  if (!op.abort && !op.abandon && !settle) return {};
  const bool no_roll = op.kind == kKindUpgrade && op.roll_name.empty();
  const std::string why = op.abandon                ? "Abandoned"
                          : op.abort                ? "Aborted"
                          : c.Note("deleted") != "" ? "Deleted"
                                                    : ServerGoing(c);
  const Outcome plain = op.abandon ? Outcome::kAbandoned : op.abort ? Outcome::kAborted : Outcome::kFailed;
  if (op.roll_outcome) {
    // The Roll has ended; what is left is the manager's. Only abandoning frees the place.
    if (!op.abandon && !c.rec.deleting) return {};
    return Finish(c, c.rec, plain, why, "ended after its Roll: " + std::string(EnumName(*op.roll_outcome)));
  }
  if (no_roll) return Finish(c, c.rec, plain, why, "ended before it had a Roll; nothing was changed");
  if (op.undoing) {
    if (!op.abandon || !c.DeadlinePassed(kUndo)) return {};
    return Finish(c, c.rec, Outcome::kAbandoned, "Abandoned", op.failure_message + "; the undo goes on as repair");
  }
  const bool recorded = Finished(op, kStepRecord);
  const bool undoable = op.abort ? !PastReturn(op) : !recorded;
  const bool old_serves = !recorded || op.outage || c.Slot(op.from).Ready();
  if (undoable && old_serves) {
    if (!Touched(op)) return Finish(c, c.rec, plain, why, "ended before anything was touched; nothing was changed");
    const std::string step(CurrentStep(op, c.spec.template_.stop.order));
    const std::string said = op.kind + " " + op.name + " was " +
                             (why == "Abandoned" ? "abandoned"
                              : why == "Aborted" ? "aborted"
                              : why == "Deleted" ? "deleted"
                                                 : "ended with its Server (" + why + ")") +
                             " at step " + step;
    return c.Do(Undoing(c, c.rec, step, {why, said, false}), why, said + "; undoing");
  }
  if (!op.abort || op.notes.count(kAbortRefused) != 0) return {};
  ServerRecord next = c.rec;
  next.operation->notes[kAbortRefused] =
      PastReturn(op)
          ? std::string(op.outage ? "the new slot is recorded already" : "the old slot is being stopped already") +
                "; once it has ended, `lockkeeper rollback " + c.rec.key.name + "` goes back"
      : IsInstall(op) ? "there is no earlier slot to go back to"
                      : "slot " + op.from + " is not ready, so there is nothing to go back to";
  std::string message = "abort came too late: " + next.operation->notes[kAbortRefused];
  return c.Do(std::move(next), "AbortRefused", std::move(message));
}

RuleResult Undo(const Context& c) {
  if (c.op == nullptr || !c.op->undoing) return {};
  return c.op->outage ? UndoOutage(c) : UndoBlueGreen(c);
}

}  // namespace lockkeeper::roll
