// The roll, steps 2 to 6, 11, 15 to 17, 20 and 21, and the chain that takes them in order.
#include <algorithm>

#include "reconcilers/server/draft.h"
#include "reconcilers/server/report.h"

namespace lockkeeper::roll {
namespace {

struct Handler {
  std::string_view step;
  HandlerResult (*handle)(const Context&, Draft&);
};

HandlerResult DoAdmit(const Context&, Draft&) { return StepDone(); }

constexpr Handler kHandlers[] = {
    {kStepAdmit, DoAdmit},
    {kStepPreflight, DoPreflight},
    {kStepNoteHolder, DoNoteHolder},
    {kStepBackUp, DoBackUp},
    {kStepRender, DoRender},
    {kStepGates, DoGates},
    {kStepHold, DoHold},
    {kStepDrain, DoDrain},
    {kStepStopOld, DoStopOld},
    {kStepSeed, DoSeed},
    {kStepStart, DoStart},
    {kStepListen, DoListen},
    {kStepReady, DoReady},
    {kStepRecord, DoRecord},
    {kStepFlip, DoFlip},
    {kStepHarvest, DoHarvest},
    {kStepMemberToken, DoMemberToken},
    {kStepSoak, DoSoak},
    {kStepLease, DoLease},
    {kStepProbe, DoProbe},
    {kStepRetire, DoRetire},
    {kStepDone, DoDone},
};

const Handler& HandlerOf(std::string_view step) {
  return *std::find_if(std::begin(kHandlers), std::end(kHandlers), [&](const Handler& h) { return h.step == step; });
}

// A first install renders again after every edit: there is nothing that serves to protect.
RuleResult RenderTheInstallAgain(const Context& c) {
  const OperationRecord& op = *c.op;
  if (op.kind != kKindInstall || Finished(op, kStepRecord) || c.rec.generation <= op.root_generation) return {};
  ServerRecord next = c.rec;
  next.operation.reset();  // the rule for first installs takes it up with the edited spec
  return c.Do(std::move(next), "SpecEdited", "the spec was edited before the first Ready; rendered again");
}

std::string GateText(const Context& c) {
  std::string text = "waits for approval of gate BeforeFlip";
  if (c.s.backup.known() && c.s.backup->state == BackupFact::State::kReady) {
    text += "; backup " + c.s.backup->name + " is " + SecondsText(c.now.wall - c.s.backup->finished_at) + " old";
    if (c.s.backup->writes_since) text += ", " + std::to_string(*c.s.backup->writes_since) + " writes since";
  }
  return text;
}

bool BackupTooOld(const Context& c) {
  return c.s.backup.known() && c.s.backup->state == BackupFact::State::kReady &&
         c.now.wall - c.s.backup->finished_at > Seconds(static_cast<double>(c.spec.backup.max_age_seconds));
}

bool WantsBackup(const Context& c) { return StepApplies(kStepBackUp, *c.op, c.spec); }

// "NAME-backup", then "NAME-backup-2" …
std::string NextBackupName(const Context& c) {
  const std::string base = c.op->roll_name + "-backup";
  const std::string last = c.Note("backup");
  if (last.rfind(base, 0) != 0) return base;
  const int n = last.size() > base.size() + 1 ? std::atoi(last.c_str() + base.size() + 1) : 1;
  return base + "-" + std::to_string(n + 1);
}

}  // namespace

RuleResult CarryTheOperationOn(const Context& c) {
  if (c.op == nullptr || c.op->undoing) return {};
  if (c.op->roll_outcome) {
    return c.Wait("RollEnded", "the Roll has ended; the Upgrade " + c.op->name + " holds the place until it is closed");
  }
  if (c.op->kind == kKindUpgrade && c.op->roll_name.empty()) {
    return c.Wait("WaitingForRoll", "Upgrade " + c.op->name + " is admitted and has no Roll yet");
  }
  if (RuleResult again = RenderTheInstallAgain(c)) return again;
  Draft d{c.rec, false, "", ""};
  for (std::string_view step : StepsOf(*c.op, c.spec.template_.stop.order)) {
    if (Finished(d.op(), step)) continue;
    HandlerResult result = HandlerOf(step).handle(c, d);
    if (result.kind == HandlerResult::Kind::kFinal) return std::move(result.plan);
    if (result.kind == HandlerResult::Kind::kObserved) {
      c.FinishStep(d.next, step);
      if (!d.dirty) d.Say(std::string(step) + "Done", "");
      d.dirty = true;
      continue;
    }
    if (!d.dirty) return std::move(result.plan);
    Plan plan = c.Do(std::move(d.next), d.reason, d.message);
    plan.checks = std::move(result.plan->checks);
    plan.steps_ahead = std::move(result.plan->steps_ahead);
    return plan;
  }
  return {};
}

bool Paused(const Context& c) { return c.op->paused || c.spec.paused; }

bool Hurried(const Context& c) { return c.op->abandon || c.Settling(); }

HandlerResult WaitAtGate(const Context& c, Draft& d, const char* step, std::string reason, std::string message,
                         std::vector<NextAction> actions) {
  c.BeginStep(d.next, step);
  if (!d.op().waiting_since) {
    d.op().waiting_since = c.now;
    d.Say(reason, message);
  }
  return NotYet(c.WaitForPerson(std::move(reason), std::move(message), std::move(actions)));
}

void LeaveGate(const Context& c, Draft& d) {
  OperationRecord& op = d.op();
  if (!op.waiting_since) return;
  const Duration before = op.waited;
  c.EndWait(d.next);
  // A pause in the soak is time that both slots ran on: it is the soak's already.
  const bool soaking = Started(op, kStepSoak) && !Finished(op, kStepSoak);
  if (!soaking) op.report.gate_seconds = op.report.gate_seconds.value_or(0) + ReportSeconds(op.waited - before);
  d.Say("WaitEnded", "goes on after waiting " + SecondsText(op.waited));
}

HandlerResult DoNoteHolder(const Context& c, Draft& d) {
  if (!c.spec.lease) return StepDone();
  Begin(c, d, kStepNoteHolder, Seconds(static_cast<double>(c.timeouts().lease_seconds)), "looking who holds the lease");
  const Fact<LeaseFact>& lease = c.s.lease.lease;
  if (lease.unknown() && c.Slot(c.op->from).Ready()) {
    if (!c.DeadlinePassed(kStepNoteHolder)) {
      return NotYet(
          c.Wait("LeaseUnreadable", "the controller lease cannot be read: " + lease.why(), Milliseconds(200)));
    }
    return Final(Fail(c, std::move(d.next), kStepNoteHolder,
                      {"LeaseUnreadable",
                       "slot " + c.op->from + " is ready and its controller lease cannot be read: " + lease.why()}));
  }
  // A dead server must be upgradable: its holder stays unknown.
  d.op().notes["oldHolder"] = lease.known() ? lease->holder : lease.absent() ? "" : "Unknown";
  if (lease.known()) d.op().report.old_holder = lease->holder;
  return StepDone();
}

HandlerResult DoBackUp(const Context& c, Draft& d) {
  if (!WantsBackup(c)) return StepDone();
  const Duration limit = Seconds(static_cast<double>(c.spec.backup.timeout_seconds));
  const std::string name = BackupOf(d.op());
  if (name.empty() || (BackupTooOld(c) && !Started(d.op(), kStepBackUp))) {
    const std::string fresh = NextBackupName(c);
    Begin(c, d, kStepBackUp, limit, "");
    d.op().notes["backup"] = fresh;
    d.Say("BackingUp", "the store is backed up as " + fresh);
    return NotYet(c.Wait("BackingUp", d.message, Milliseconds(100)));
  }
  Begin(c, d, kStepBackUp, limit, "waiting for backup " + name);
  const Fact<BackupFact>& backup = c.s.backup;
  const bool named = backup.known() && backup->name == name;
  if (named && backup->state == BackupFact::State::kReady) {
    if (BackupTooOld(c)) {
      d.op().notes["backup"] = NextBackupName(c);
      d.Say("BackupTooOld", "backup " + name + " is older than " + std::to_string(c.spec.backup.max_age_seconds) +
                                " s; a new one is taken");
      return NotYet(c.Wait("BackingUp", d.message, Milliseconds(100)));
    }
    d.op().report.store_backup = backup->reference;
    d.op().report.backup_seconds = ReportSeconds(c.now.wall - d.op().started[kStepBackUp]);
    return StepDone();
  }
  if (named && backup->state == BackupFact::State::kFailed) {
    return Final(
        Fail(c, std::move(d.next), kStepBackUp, {"BackupFailed", "backup " + name + " failed: " + backup->message}));
  }
  if (c.DeadlinePassed(kStepBackUp)) {
    return Final(Fail(c, std::move(d.next), kStepBackUp,
                      {"BackupFailed", "backup " + name + " is not ready after " +
                                           std::to_string(c.spec.backup.timeout_seconds) + " s"}));
  }
  if (backup.absent()) {
    return NotYet(c.Effect(RequestBackup{name, "before " + c.op->roll_name}, "BackingUp", "requests backup " + name));
  }
  return NotYet(c.Wait("BackingUp", "waits for backup " + name, Milliseconds(100)));
}

std::optional<HandlerResult> RetakeOldBackup(const Context& c, Draft& d) {
  if (!WantsBackup(c) || !BackupTooOld(c)) return std::nullopt;
  d.op().finished.erase(kStepBackUp);
  d.op().started.erase(kStepBackUp);
  d.Say("BackupTooOld", "the backup grew older than " + std::to_string(c.spec.backup.max_age_seconds) +
                            " s while the roll waited; a new one is taken");
  return NotYet(c.Wait("BackingUp", d.message, Milliseconds(100)));
}

HandlerResult DoGates(const Context& c, Draft& d) {
  const OperationRecord& op = *c.op;
  if (!op.outage) {
    if (auto trouble = NewSlotTrouble(c, d, kStepGates)) return std::move(*trouble);
    if (!c.Slot(op.to).Ready()) return ReadyNoMore(c, d);
  }
  const bool gated = std::find(op.spec.gates.begin(), op.spec.gates.end(), Gate::kBeforeFlip) != op.spec.gates.end();
  const bool approved =
      std::find(op.approved.begin(), op.approved.end(), EnumName(Gate::kBeforeFlip)) != op.approved.end();
  const std::string tail = " " + op.name + " -n " + c.rec.key.ns;
  // Rule A: the active slot does not come back, and the new one is ready and waits.
  const SlotView active = c.Active();
  const bool emergency = !op.outage && !active.Ready() && op.deadlines.count(kActiveRepair) != 0 &&
                         c.DeadlinePassed(kActiveRepair) && (gated || Paused(c));
  if (emergency) {
    LeaveGate(c, d);
    d.op().emergency_flip = true;
    d.Say("EmergencyFlip", "slot " + active.name + " is not ready since " + SecondsText(c.ReadyTimeout()) +
                               " and slot " + op.to + " is: flipped without waiting for the gate");
    return StepDone();
  }
  if (gated && !approved) {
    return WaitAtGate(c, d, kStepGates, "WaitingForApproval", GateText(c),
                      {c.MakeAction("Approve", "lockkeeper approve" + tail, "clients move to the new build"),
                       c.MakeAction("Abort", "lockkeeper abort" + tail, "none: the old slot goes on serving")});
  }
  if (Paused(c)) {
    return WaitAtGate(c, d, kStepGates, "Paused", "paused before the flip",
                      {c.MakeAction("Resume", "lockkeeper resume" + tail, "none")});
  }
  LeaveGate(c, d);
  if (op.outage) {
    if (auto retaken = RetakeOldBackup(c, d)) return std::move(*retaken);
  }
  return StepDone();
}

HandlerResult DoHold(const Context& c, Draft& d) {
  if (c.FrontSilent()) return NotYet(c.FrontSilentPlan());  // nothing is stopped
  if (!Started(d.op(), kStepHold)) {
    Begin(c, d, kStepHold, Seconds(static_cast<double>(c.timeouts().flip_seconds)), "the front holds new connections");
    d.next.hold = c.HasFront();
    // On hold nobody reaches the lease through the front, so the holder is noted before.
    if (c.s.lease.lease.known()) d.op().notes["holderAtStop"] = c.s.lease.lease->holder;
    if (c.HasFront()) return NotYet(c.Wait("Holding", d.message, Milliseconds(20)));
  }
  if (c.FrontHolds()) return StepDone();
  if (!c.DeadlinePassed(kStepHold)) return NotYet(c.Wait("Holding", "waits until the front holds", Milliseconds(50)));
  return Final(Fail(c, std::move(d.next), kStepHold,
                    {"FrontNotObserved",
                     "the front answers and does not hold after " + std::to_string(c.timeouts().flip_seconds) + " s"}));
}

// A front that was started anew meanwhile counts from zero: a total below the earlier one is all there is.
int64_t CountedSince(const std::string& before, int64_t total) {
  const int64_t then = std::atoll(before.c_str());
  return total >= then ? total - then : total;
}

HandlerResult DoDrain(const Context& c, Draft& d) {
  const SlotView old = c.Slot(c.op->from);
  if (!c.HasFront() || old.entry == nullptr) return StepDone();
  const FrontState* front = c.s.front.get();
  const Duration limit = Seconds(static_cast<double>(c.timeouts().drain_seconds));
  if (Begin(c, d, kStepDrain, limit, "connections of slot " + old.name + " are drained") && front != nullptr) {
    d.op().notes["drainedBefore"] = std::to_string(front->drained_total);
    d.op().notes["cutBefore"] = std::to_string(front->cut_total);
  }
  int open = 0;
  int draining = 0;
  if (front != nullptr) {
    for (const FrontBackendOpen& b : front->open) {
      if (b.slot != old.name || b.incarnation != old.intent().incarnation) continue;
      open += std::max(b.open, b.draining);
      draining += b.draining;
    }
  }
  const bool over = Started(*c.op, kStepDrain) && c.DeadlinePassed(kStepDrain);
  const bool spread_over = over && c.DeadlineLeft(kStepDrain) < -Seconds(1.5);  // cuts are spread over a second
  if ((front != nullptr && open == 0) || spread_over || (over && front == nullptr)) {
    RollReport& report = d.op().report;
    report.drained_at = c.now.wall;
    report.drain_seconds = ReportSeconds(c.now.wall - d.op().started[kStepDrain]);
    if (front != nullptr) {
      report.drained = CountedSince(d.op().notes["drainedBefore"], front->drained_total);
      report.cut_connections = CountedSince(d.op().notes["cutBefore"], front->cut_total);
    }
    d.Say("Drained", "slot " + old.name + " has no connection left, " + std::to_string(report.drained.value_or(0)) +
                         " drained, " + std::to_string(report.cut_connections.value_or(0)) + " cut");
    return StepDone();
  }
  if (front != nullptr && open > 0 && draining == 0 && !over) {
    const Duration left = Started(*c.op, kStepDrain) ? std::max(Duration::zero(), c.DeadlineLeft(kStepDrain)) : limit;
    return NotYet(c.Effect(DrainBackend{c.FrontName(), old.name, old.intent().incarnation, left}, "Draining",
                           std::to_string(open) + " connections of slot " + old.name + " are drained"));
  }
  return NotYet(
      c.Wait("Draining", std::to_string(open) + " connections are still open on slot " + old.name, Milliseconds(50)));
}

HandlerResult DoSoak(const Context& c, Draft& d) {
  if (c.spec.soak_seconds == 0 || Hurried(c)) return StepDone();
  const Duration soak = Seconds(static_cast<double>(c.spec.soak_seconds));
  const SlotView old = c.Slot(c.op->from);
  const bool begun = Begin(c, d, kStepSoak, soak, "both slots run on for " + SecondsText(soak));
  if (old.entry == nullptr || old.Dead()) {
    d.Say("SoakEnded", "slot " + c.op->from + " is gone, so there is nothing left to soak for");
    return StepDone();
  }
  if (Paused(c)) {
    return WaitAtGate(c, d, kStepSoak, "Paused", "paused before the old slot is stopped",
                      {c.MakeAction("Resume", "lockkeeper resume " + c.op->name + " -n " + c.rec.key.ns, "none")});
  }
  LeaveGate(c, d);
  if (c.Slot(c.op->to).NotReady()) {
    c.SetDeadline(d.next, kStepSoak, soak);
    if (c.DeadlineLeft(kStepSoak) < soak - Seconds(1)) d.Say("SoakBeginsAgain", "slot " + c.op->to + " was not ready");
    return NotYet(c.Wait("Soaking", "slot " + c.op->to + " is not ready; the soak begins again", Milliseconds(200)));
  }
  if (begun || !c.DeadlinePassed(kStepSoak)) {
    const Duration left = begun ? soak : c.DeadlineLeft(kStepSoak);
    return NotYet(c.Wait("Soaking", SecondsText(left) + " of the soak left", std::min(left, Seconds(1))));
  }
  d.op().report.soak_seconds = ReportSeconds(c.now.wall - d.op().started[kStepSoak]);
  return StepDone();
}

HandlerResult DoStopOld(const Context& c, Draft& d) {
  const SlotView old = c.Slot(c.op->from);
  const SlotView fresh = c.Slot(c.op->to);
  if (!Started(d.op(), kStepStopOld)) {
    if (!c.op->outage && !fresh.Ready()) {
      return NotYet(c.Wait("NewSlotNotReady",
                           "the old slot is stopped only while the new one is ready: " + fresh.readyz_text,
                           Milliseconds(100)));
    }
    if (c.FrontSilent()) return NotYet(c.FrontSilentPlan());
    if (c.op->outage ? !c.FrontHolds() : !c.FrontOn(fresh)) {
      return NotYet(
          c.Wait("FrontNotObserved", "the old slot is stopped only when the front is seen off it", Milliseconds(50)));
    }
    Begin(c, d, kStepStopOld, std::nullopt, "slot " + c.op->from + " is stopped");
    if (c.s.lease.lease.known()) d.op().notes["holderAtStop"] = c.s.lease.lease->holder;
    if (old.entry != nullptr) d.next.slots[old.name].intent.running = false;
    if (old.entry != nullptr) return NotYet(c.Wait("StoppingOld", d.message, Milliseconds(50)));
  }
  RollReport& report = d.op().report;
  if (old.entry != nullptr) {
    const bool same =
        old.actual().incarnation == old.intent().incarnation && old.actual().invocation == old.intent().invocation;
    if (old.life != Life::kGone) {
      const Duration since = c.now.wall - d.op().started[kStepStopOld];
      const std::string text = "slot " + old.name + " has not ended yet, " + SecondsText(since);
      if (since > Seconds(static_cast<double>(old.intent().stop_seconds) + 10)) {
        return NotYet(c.Stall("StopIncomplete",
                              "slot " + old.name + " was killed at " + std::to_string(old.intent().stop_seconds) +
                                  " s and is not gone yet",
                              {}, Milliseconds(500)));
      }
      return NotYet(c.Wait("StoppingOld", text, c.Poll(d.op().started[kStepStopOld])));
    }
    const Time exited = old.exited_at.value_or(c.now.wall);
    if (same && old.actual().sigterm_at != Time{}) report.sigterm_at = old.actual().sigterm_at;
    report.old_exited_at = exited;
    report.old_exit_seconds =
        std::max(0.0, ReportSeconds(exited - report.sigterm_at.value_or(d.op().started[kStepStopOld])));
    if (c.s.front.known()) report.open_on_old_at_exit = c.s.front->OpenOn(old.name, old.intent().incarnation);
    d.next.last_exit_at = std::max(d.next.last_exit_at, exited);
    // No way leads back to this start of it; its unit and companions go while the lease is waited for. An outage may
    // still be undone into it.
    if (!c.op->outage) d.next.slots[old.name].intent.forget = true;
  }
  report.holder_at_stop = d.op().notes["holderAtStop"];
  d.Say("OldStopped", "slot " + c.op->from + " has ended");
  return StepDone();
}

HandlerResult DoRetire(const Context& c, Draft& d) {
  const OperationRecord& op = *c.op;
  Begin(c, d, kStepRetire, std::nullopt, IsInstall(op) ? "tidying up" : "slot " + op.from + " is retired");
  const bool old_stays = !IsInstall(op) && op.from != op.to && d.next.slots.count(op.from) != 0;
  if (old_stays && !d.next.slots[op.from].intent.forget) {
    d.next.slots[op.from].intent.forget = true;
    d.dirty = true;
    return NotYet(c.Wait("Retiring", d.message, Milliseconds(20)));
  }
  if (!c.rec.probe_name.empty() && op.notes.count("probeSwept") == 0) {
    // What this pass has found is noted with it: that an object goes rests on no note.
    ServerRecord done = d.next;
    done.probe_name.clear();
    done.operation->notes["probeSwept"] = "yes";
    ServerRecord failed = d.next;  // best effort: the next roll sweeps it
    failed.operation->notes["probeSwept"] = "{error}";
    return Final(c.Effect(DeleteProbes{c.rec.probe_name}, "SweepingProbe", "probe object " + c.rec.probe_name,
                          std::move(done), std::move(failed)));
  }
  if (old_stays) {
    if (!c.Slot(op.from).unit_absent) {
      const Duration since = c.now.wall - d.op().started[kStepRetire];
      const std::string text = "the unit or a companion of slot " + op.from + " still exists";
      if (since > Seconds(30)) return NotYet(c.Stall("RetireIncomplete", text, {}, Milliseconds(500)));
      return NotYet(c.Wait("Retiring", text, Milliseconds(20)));
    }
    d.next.slots.erase(op.from);
  }
  if (op.from == op.to && !IsInstall(op)) d.next.slots[op.to].previous.reset();
  return StepDone();
}

HandlerResult DoDone(const Context& c, Draft& d) {
  const OperationRecord& op = d.op();
  c.FinishStep(d.next, kStepDone);
  d.next.degraded = !op.failure_reason.empty();
  d.next.degraded_reason = op.failure_reason;
  d.next.degraded_message = op.failure_message;
  if (op.abandon) {
    return Final(
        Finish(c, std::move(d.next), Outcome::kAbandoned, "Abandoned", "abandoned; what was begun is finished"));
  }
  if (!op.failure_reason.empty()) {
    if (c.spec.rollback.after_flip == AfterFlip::kAutomatic && RollbackReady(c, op)) {
      return Final(ReverseRoll(c, std::move(d.next)));
    }
    const std::string reason = op.failure_reason;
    const std::string message = op.failure_message + "; the new build stays active";
    return Final(Finish(c, std::move(d.next), Outcome::kFailed, reason, message));
  }
  d.next.store_touched_by_new_build = false;
  const std::string verb = IsInstall(op) ? "installed " : op.action == "Restart" ? "restarted " : "rolled to ";
  const std::string message = verb + c.rec.version + " in slot " + op.to;
  return Final(Finish(c, std::move(d.next), Outcome::kSucceeded, "Succeeded", message));
}

}  // namespace lockkeeper::roll
