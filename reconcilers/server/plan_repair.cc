// Rules A, B and F: the recorded active slot runs, a dead new slot is left again, a slot nobody wants is retired.
#include <algorithm>

#include "reconcilers/server/rules.h"

namespace lockkeeper::roll {
namespace {

constexpr int kUnreadyTries = 3;
constexpr Duration kOldSlotPatience = Seconds(1);  // a readiness try, and one more
constexpr Duration kRepairForgotten = Seconds(600);

// 0 (at once), then 1, 2, 4 … 60 s between restarts of the active slot.
Duration BackOff(int64_t repairs) {
  if (repairs <= 0) return Duration::zero();
  return std::min(Seconds(60), Seconds(1) * (int64_t{1} << std::min<int64_t>(repairs - 1, 6)));
}

// The outage has taken the active slot's desire back, or its undo decides when it is served again.
bool OutageDecides(const Context& c) {
  return c.op != nullptr && c.op->outage && Started(*c.op, kStepHold) &&
         (!Finished(*c.op, kStepRecord) || c.op->undoing);
}

// The stop of the old slot was recorded, and its signal has been noted or the process has ended: there is no way back.
bool StopIsUnderWay(const OperationRecord& op, const SlotView& from) {
  if (!Started(op, kStepStopOld)) return false;
  if (Finished(op, kStepStopOld) || from.entry == nullptr) return true;
  const bool ours =
      from.actual().incarnation == from.intent().incarnation && from.actual().invocation == from.intent().invocation;
  return !ours || from.actual().sigterm_at != Time{};
}

// Whether the old slot is still ready, and so rule B's way open, could not be looked at just now.
bool OldSlotIsToBeSeen(const Context& c, const SlotView& active) {
  const OperationRecord* op = c.op;
  if (op == nullptr || op->undoing || op->outage || op->flipped_back || op->roll_outcome || IsInstall(*op))
    return false;
  if (!Finished(*op, kStepRecord) || active.name != op->to) return false;
  const SlotView from = c.Slot(op->from);
  if (from.entry == nullptr || from.readiness != Readiness::kUnknown || StopIsUnderWay(*op, from)) return false;
  return active.exited_at && c.now.wall - *active.exited_at < kOldSlotPatience;
}

std::string Described(const SlotView& slot) {
  std::string text = "slot " + slot.name;
  if (slot.life == Life::kStartFailed) return text + " cannot be started: " + slot.actual().error;
  if (slot.life == Life::kNeverStarted) return text + " is not running since the host or its shim went away";
  return text + " died: " + (slot.exit_text.empty() ? "it is gone" : slot.exit_text);
}

Plan Restart(const Context& c, const SlotView& active, const char* reason, std::string message) {
  ServerRecord next = c.rec;
  c.StartAgain(next, active.name);
  // Clients wait in the front instead of being refused; it is pointed again when the slot is ready.
  next.hold = c.HasFront();
  if (active.life != Life::kNeverStarted && active.life != Life::kGone) ++next.repairs;
  next.last_repair_at = c.now.wall;
  next.repair_not_before = Deadline::After(c.now, BackOff(next.repairs));
  if (next.operation && next.operation->deadlines.count(kActiveRepair) == 0) {
    c.SetDeadline(next, kActiveRepair, c.ReadyTimeout());
  }
  return c.Do(std::move(next), reason, std::move(message));
}

}  // namespace

RuleResult FlipBackToTheOldSlot(const Context& c) {
  const OperationRecord* op = c.op;
  if (op == nullptr || op->undoing || op->outage || op->flipped_back || op->roll_outcome) return {};
  if (IsInstall(*op) || !Finished(*op, kStepRecord) || c.rec.active != op->to) return {};
  const SlotView from = c.Slot(op->from);
  const SlotView to = c.Slot(op->to);
  if (!from.Live() || !from.Ready() || StopIsUnderWay(*op, from)) return {};
  const bool unready = to.life == Life::kRunning && to.NotReady() && to.unready_tries >= kUnreadyTries;
  const bool dead = to.Dead() || to.life == Life::kForeign;
  if (!dead && !unready) return {};
  Failure failure{"NewSlotDied", "", true};
  if (unready) {
    failure = {"NewSlotNotReady",
               "slot " + to.name + " was not ready " + std::to_string(to.unready_tries) + " tries running while slot " +
                   from.name + " was: " + to.readyz_text,
               true};
  } else if (to.life == Life::kForeign) {
    failure.message = "slot " + to.name + " was started again by something else after it had been ready";
  } else {
    failure.message = Described(to) + " after the flip";
  }
  ServerRecord next = Undoing(c, c.rec, CurrentStep(*op, c.spec.template_.stop.order), failure);
  next.operation->flipped_back = true;
  // A stop that was recorded and not yet signalled is taken back. The Slot reconciler notes its signal before it sends
  // it, so a note that came first refuses this commit.
  next.slots[from.name].intent.running = true;
  next.operation->started.erase(kStepStopOld);
  return c.Do(std::move(next), "FlippedBack", failure.message + "; slot " + from.name + " still serves");
}

RuleResult RepairTheActiveSlot(const Context& c) {
  if (c.rec.active.empty() || c.rec.stopped) return {};
  if (c.rec.deleting && c.op == nullptr) return {};
  const SlotView active = c.Active();
  if (active.entry == nullptr) {
    return c.Stall("ActiveSlotUnknown", "the ledger names active slot " + c.rec.active + ", which it does not record");
  }
  if (!active.intent().running) {
    // Only an outage withdraws the desire, and only its undo or its end gives it back.
    if (c.op != nullptr && !c.op->roll_outcome) return {};
    return Restart(c, active, "StartingAgain", "slot " + active.name + " is wanted and is not running");
  }
  if (active.Dead()) {
    if (OldSlotIsToBeSeen(c, active)) {
      return c.Wait("OldSlotUnknown",
                    Described(active) + "; whether slot " + c.op->from + " still serves is not known yet",
                    Milliseconds(20));
    }
    if (c.rec.repair_not_before.IsSet() && !c.rec.repair_not_before.Passed(c.now)) {
      if (c.op != nullptr) return {};
      const Duration left = c.rec.repair_not_before.Left(c.now);
      Plan plan = active.life == Life::kStartFailed ? c.Stall("SlotCannotStart", Described(active), {}, left)
                                                    : c.Wait("RepairBackOff", Described(active), left);
      return plan;
    }
    return Restart(c, active, "Repairing", Described(active) + "; started again");
  }
  if (!active.Ready() || OutageDecides(c)) return {};
  const bool first_ready = active.entry->ready_at == Time{};
  if (!c.rec.hold && !first_ready) return {};
  ServerRecord next = c.rec;
  next.hold = false;
  next.slots[active.name].ready_at = first_ready ? c.now.wall : active.entry->ready_at;
  if (next.operation) next.operation->deadlines.erase(kActiveRepair);
  return c.Do(std::move(next), "Repaired",
              "slot " + active.name + " is ready again on port " + std::to_string(active.port));
}

RuleResult RetireStraySlots(const Context& c) {
  if (c.op != nullptr) return {};
  for (const auto& [name, entry] : c.rec.slots) {
    if (name == c.rec.active) continue;
    const SlotView stray = c.Slot(name);
    ServerRecord next = c.rec;
    SlotEntry& slot = next.slots[name];
    if (stray.unit_absent && !entry.intent.running) {
      next.slots.erase(name);
      return c.Do(std::move(next), "StrayRetired", "nothing of slot " + name + " is left");
    }
    if (entry.intent.running) {
      const SlotView active = c.Active();
      const bool serves = active.Ready() && c.FrontOn(active);
      if (!c.rec.active.empty() && !serves && !stray.NotReady()) continue;
      slot.intent.running = false;
      slot.intent.forget = true;
      return c.Do(std::move(next), "RetiringStray", "slot " + name + " is neither active nor being rolled to");
    }
    if (!entry.intent.forget) {
      slot.intent.forget = true;
      return c.Do(std::move(next), "RetiringStray", "slot " + name + " is stopped; its unit goes");
    }
    return c.Wait("RetiringStray", "slot " + name + " is being stopped", Milliseconds(200));
  }
  return {};
}

RuleResult ForgetOldRepairs(const Context& c) {
  if (c.rec.repairs == 0 || !c.Active().Ready() || c.now.wall - c.rec.last_repair_at < kRepairForgotten) return {};
  ServerRecord next = c.rec;
  next.repairs = 0;
  next.repair_not_before = Deadline{};
  return c.Do(std::move(next), "RepairsForgotten", "slot " + c.rec.active + " has been ready for ten minutes");
}

}  // namespace lockkeeper::roll
