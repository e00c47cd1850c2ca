// The roll, steps 5 and 7 to 10: render, clear and seed, start, listen, ready and the right build.
#include <algorithm>

#include "reconcilers/server/draft.h"
#include "reconcilers/server/render.h"
#include "reconcilers/server/report.h"

namespace lockkeeper::roll {
namespace {

constexpr Duration kSeedPatience = Seconds(5);  // of the shared files, local writes of a few kilobytes

// A step that brings the new slot up has failed. A first install never ends by it: it tries again, more slowly each
// time, and an edit of the spec renders it again.
HandlerResult FailStart(const Context& c, Draft& d, const char* step, const Failure& failure) {
  if (c.op->kind != kKindInstall) return Final(Fail(c, std::move(d.next), step, failure));
  OperationRecord& op = d.op();
  if (op.failure_reason != failure.reason || op.failure_message != failure.message) {
    op.failure_reason = failure.reason;
    op.failure_message = failure.message;
    op.failed_step = step;
    d.Say(failure.reason, failure.message);
  }
  const SlotView fresh = c.Slot(op.to);
  const std::vector<NextAction> actions = {
      c.MakeAction("Logs", LogsCommand(c, op.to), "none"),
      c.MakeAction("EditServer", "kubectl edit server " + c.rec.key.name + " -n " + c.rec.key.ns,
                   "none: nothing serves yet, and the edit is rendered again")};
  if (!fresh.Dead()) return NotYet(c.Stall(failure.reason, failure.message, actions));
  const bool back_off = c.rec.repair_not_before.IsSet() && !c.rec.repair_not_before.Passed(c.now);
  if (back_off) {
    return NotYet(c.Stall(failure.reason, failure.message, actions, c.rec.repair_not_before.Left(c.now)));
  }
  c.StartAgain(d.next, op.to);
  ++d.next.repairs;
  d.next.last_repair_at = c.now.wall;
  const Duration pause = std::min(Seconds(60), Seconds(1) * (int64_t{1} << std::min<int64_t>(d.next.repairs, 6)));
  d.next.repair_not_before = Deadline::After(c.now, pause);
  for (const char* s : {kStepStart, kStepListen, kStepReady}) op.finished.erase(s), op.started.erase(s);
  c.BeginStep(d.next, kStepStart);
  c.SetDeadline(d.next, kStepStart, c.ReadyTimeout());
  d.Say("StartingAgain", failure.message + "; started again");
  return NotYet(c.Stall(failure.reason, failure.message, actions, Milliseconds(100)));
}

// Never executed, or lost with the host: a new invocation, and nobody is blamed.
HandlerResult StartWithoutBlame(const Context& c, Draft& d) {
  c.StartAgain(d.next, c.op->to);
  for (const char* s : {kStepStart, kStepListen, kStepReady}) d.op().finished.erase(s);
  const auto it = d.op().deadlines.find(kStepStart);
  const bool other_boot = it != d.op().deadlines.end() && it->second.boot_id != c.now.boot_id;
  if (it == d.op().deadlines.end() || other_boot) c.SetDeadline(d.next, kStepStart, c.ReadyTimeout());
  d.Say("StartingAgain", "slot " + c.op->to + " was never executed or ended with the host; started again");
  return NotYet(c.Wait("Starting", d.message, Milliseconds(20)));
}

// Step Start begins: the slot's intent is the frozen rendering, wanted running.
void OrderStart(const Context& c, ServerRecord& next) {
  c.BeginStep(next, kStepStart);
  c.SetDeadline(next, kStepStart, c.ReadyTimeout());
  SlotEntry& entry = next.slots[c.op->to];
  if (c.op->to == c.op->from) entry.previous = entry.intent;
  entry.intent = *next.operation->rendered;
  entry.intent.running = true;
  entry.intent.invocation = 1;
  entry.ready_at = Time{};
}

std::string DiedText(const SlotView& fresh) {
  return "slot " + fresh.name + " of the new build died: " + (fresh.exit_text.empty() ? "it is gone" : fresh.exit_text);
}

}  // namespace

std::optional<HandlerResult> NewSlotTrouble(const Context& c, Draft& d, const char* step) {
  const SlotView fresh = c.Slot(c.op->to);
  switch (fresh.life) {
    case Life::kDead: return FailStart(c, d, step, {"NewSlotDied", DiedText(fresh), true});
    case Life::kStartFailed:
      return FailStart(c, d, step,
                       {"StartFailed", "slot " + fresh.name + " cannot be started: " + fresh.actual().error});
    case Life::kForeign:
      return FailStart(c, d, step,
                       {"ForeignProcess", "another start of " + fresh.intent().unit.name +
                                              " runs than the one asked for; it is not adopted"});
    case Life::kNeverStarted:
      if (Started(*c.op, kStepStart) && c.DeadlinePassed(kStepStart) && !Finished(*c.op, kStepStart)) {
        return FailStart(
            c, d, step,
            {"StartFailed", "slot " + fresh.name + " was not executed within " + SecondsText(c.ReadyTimeout())});
      }
      return StartWithoutBlame(c, d);
    case Life::kNone:
    case Life::kStarting:
    case Life::kRunning:
    case Life::kStopping:
    case Life::kGone:
    case Life::kUnknown: break;
  }
  return std::nullopt;
}

HandlerResult ReadyNoMore(const Context& c, Draft& d) {
  const SlotView fresh = c.Slot(c.op->to);
  if (fresh.readiness == Readiness::kUnknown) {
    return NotYet(c.Wait("NewSlotUnknown", "slot " + fresh.name + ": " + fresh.readyz_text, Milliseconds(100)));
  }
  d.op().finished.erase(kStepReady);
  d.next.slots[fresh.name].ready_at = Time{};
  c.SetDeadline(d.next, kStepReady, c.ReadyTimeout());
  d.Say("NotReadyAgain", "slot " + fresh.name + " was ready and is not: " + fresh.readyz_text);
  return NotYet(c.Wait("NotReadyAgain", d.message, Milliseconds(50)));
}

HandlerResult DoRender(const Context& c, Draft& d) {
  if (Paused(c)) {
    return WaitAtGate(c, d, kStepRender, "Paused", "paused before anything is touched",
                      {c.MakeAction("Resume", "lockkeeper resume " + c.op->name + " -n " + c.rec.key.ns, "none")});
  }
  LeaveGate(c, d);
  if (auto retaken = RetakeOldBackup(c, d)) return std::move(*retaken);
  Result<SlotIntent> rendered = RenderTarget(c);
  if (!rendered.ok()) {
    return Final(Fail(c, std::move(d.next), kStepRender, {"InvalidSpec", rendered.status().message()}));
  }
  OperationRecord& op = d.op();
  ++d.next.incarnations;
  const auto sha = c.s.files.commands.find(rendered->unit.argv[0]);
  if (sha != c.s.files.commands.end() && sha->second.known()) rendered->build.exec_sha256 = *sha->second;
  op.target = rendered->build;
  op.rendered = std::move(*rendered);
  RollReport& report = op.report;
  report.from = op.from;
  report.to = op.to;
  report.new_unit = op.rendered->unit.name;
  if (op.outage) report.planned_outage = true;
  if (const SlotView old = c.Slot(op.from); old.entry != nullptr) {
    report.old_unit = old.intent().unit.name;
    if (old.port != 0) report.old_port = old.port;
  }
  d.Say("Rendered", "slot " + op.to + " gets " + op.target.version + " as " + op.rendered->unit.name);
  return StepDone();
}

HandlerResult DoSeed(const Context& c, Draft& d) {
  const OperationRecord& op = *c.op;
  Begin(c, d, kStepSeed, kSeedPatience, "slot " + op.to + " is cleared and seeded");
  const SlotView stale = c.Slot(op.to);
  if (stale.entry != nullptr) {
    SlotIntent& intent = d.next.slots[op.to].intent;
    if (intent.running || !intent.forget) {
      intent.running = false;
      intent.forget = true;
      d.Say("ClearingSlot", "an earlier unit of slot " + op.to + " is stopped and reset");
      return NotYet(c.Wait("ClearingSlot", d.message, Milliseconds(20)));
    }
    if (!stale.unit_absent) {
      return NotYet(c.Wait("ClearingSlot", "an earlier unit of slot " + op.to + " still exists", Milliseconds(20)));
    }
  }
  if (d.dirty) return NotYet(c.Wait("Seeding", d.message, Milliseconds(20)));
  SeedSlot effect;
  effect.plan = SeedOf(c, op.to);
  effect.user = op.rendered ? op.rendered->unit.user : "";
  effect.group = op.rendered ? op.rendered->unit.group : "";
  effect.clear = op.kind == kKindInstall;
  const bool observed = c.spec.seed && !effect.clear && c.s.files.seeded.known() && *c.s.files.seeded;
  if (observed) return StepDone();
  // Nothing is left to look at before the start, so the commit that ends this step orders it.
  ServerRecord done = c.rec;
  c.FinishStep(done, kStepSeed);
  OrderStart(c, done);
  std::optional<ServerRecord> failed;
  // One write that fails may be a moment's trouble; one that still fails after its time is not.
  if (op.kind != kKindInstall && c.DeadlinePassed(kStepSeed)) {
    failed = Undoing(c, c.rec, kStepSeed, {"SeedFailed", "slot " + op.to + " cannot be seeded: {error}"});
  }
  return NotYet(c.Effect(std::move(effect), "Seeding", "the shared files go to slot " + op.to, std::move(done),
                         std::move(failed)));
}

HandlerResult DoStart(const Context& c, Draft& d) {
  if (!Started(d.op(), kStepStart)) {
    OrderStart(c, d.next);
    d.Say(kStepStart, "slot " + c.op->to + " is started");
    return NotYet(c.Wait("Starting", d.message, Milliseconds(20)));
  }
  if (auto trouble = NewSlotTrouble(c, d, kStepStart)) return std::move(*trouble);
  const SlotView fresh = c.Slot(c.op->to);
  if (fresh.life != Life::kRunning) {
    if (c.DeadlinePassed(kStepStart) && fresh.life != Life::kUnknown) {
      return FailStart(
          c, d, kStepStart,
          {"StartFailed", "slot " + fresh.name + " was not executed within " + SecondsText(c.ReadyTimeout())});
    }
    return NotYet(c.Wait("Starting", "slot " + fresh.name + " is being started", c.Poll(d.op().started[kStepStart])));
  }
  const UnitStatus& unit = *c.s.slots.at(fresh.name).unit;
  d.op().report.new_pid = unit.id.pid;
  d.op().report.new_invocation_id = unit.id.unit + "." + std::to_string(unit.id.invocation);
  c.SetDeadline(d.next, kStepReady, c.ReadyTimeout());
  d.Say("Started", "slot " + fresh.name + " runs as pid " + std::to_string(unit.id.pid));
  return StepDone();
}

HandlerResult DoListen(const Context& c, Draft& d) {
  if (auto trouble = NewSlotTrouble(c, d, kStepListen)) return std::move(*trouble);
  const SlotView fresh = c.Slot(c.op->to);
  if (fresh.port == 0) {
    if (Finished(*c.op, kStepStart) && c.DeadlinePassed(kStepReady) && fresh.life != Life::kUnknown) {
      return FailStart(c, d, kStepListen,
                       {"NewSlotNotReady",
                        "slot " + fresh.name + " listens on no port after " + SecondsText(c.ReadyTimeout()), true});
    }
    return NotYet(c.Wait("WaitingForPort", "slot " + fresh.name + " does not listen yet", Milliseconds(20)));
  }
  RollReport& report = d.op().report;
  report.new_port = fresh.port;
  report.port_at = fresh.actual().listening_at == Time{} ? c.now.wall : fresh.actual().listening_at;
  d.Say("Listening", "slot " + fresh.name + " listens on port " + std::to_string(fresh.port));
  return StepDone();
}

HandlerResult DoReady(const Context& c, Draft& d) {
  if (auto trouble = NewSlotTrouble(c, d, kStepReady)) return std::move(*trouble);
  const SlotView fresh = c.Slot(c.op->to);
  SlotEntry& entry = d.next.slots[fresh.name];
  const bool late = Finished(*c.op, kStepListen) && c.DeadlinePassed(kStepReady);
  if (!fresh.Ready()) {
    if (fresh.NotReady() && entry.ready_at != Time{}) {
      entry.ready_at = Time{};
      d.Say("NotReadyAgain", "slot " + fresh.name + ": " + fresh.readyz_text);
    }
    if (late) {
      return FailStart(c, d, kStepReady,
                       {"NewSlotNotReady",
                        "slot " + fresh.name + " on port " + std::to_string(fresh.port) + " is not ready after " +
                            SecondsText(c.ReadyTimeout()) + ": " + fresh.readyz_text,
                        true});
    }
    return NotYet(c.Wait("WaitingForReady", "slot " + fresh.name + ": " + fresh.readyz_text,
                         c.Poll(c.op->finished.count(kStepListen) != 0 ? c.op->finished.at(kStepListen) : Time{})));
  }
  if (entry.ready_at == Time{}) {
    entry.ready_at = c.now.wall;
    d.dirty = true;
    d.reason = "Ready";
    d.message = "slot " + fresh.name + " is ready";
  }
  const Duration min_ready = Seconds(static_cast<double>(c.spec.template_.readiness.min_ready_seconds));
  const Duration steady = c.now.wall - entry.ready_at;
  if (steady < min_ready) {
    return NotYet(
        c.Wait("StayingReady",
               "slot " + fresh.name + " has been ready for " + SecondsText(steady) + " of " + SecondsText(min_ready),
               std::min(min_ready - steady, Milliseconds(200))));
  }
  const std::string& wanted = entry.intent.build.exec_sha256;
  if (!wanted.empty()) {
    if (!fresh.exec_sha256->known()) {
      if (late) {
        return FailStart(
            c, d, kStepReady,
            {"WrongBuild", "the build of slot " + fresh.name + " cannot be read: " + fresh.exec_sha256->why()});
      }
      return NotYet(
          c.Wait("ReadingBuild", "the executable of slot " + fresh.name + " is being read", Milliseconds(50)));
    }
    if (**fresh.exec_sha256 != wanted) {
      return FailStart(
          c, d, kStepReady,
          {"WrongBuild",
           "slot " + fresh.name + " runs an executable with sha256 " + (**fresh.exec_sha256).substr(0, 12) + ", and " +
               entry.intent.build.version + " is " + wanted.substr(0, 12),
           true});
    }
  }
  RollReport& report = d.op().report;
  report.ready_at = entry.ready_at;
  const Time go = fresh.actual().started_at == Time{} ? d.op().finished[kStepStart] : fresh.actual().started_at;
  report.start_to_ready_seconds = std::max(0.0, ReportSeconds(entry.ready_at - go));
  d.Say("Ready", "slot " + fresh.name + " is ready on port " + std::to_string(fresh.port) + " with build " +
                     entry.intent.build.version);
  return StepDone();
}

}  // namespace lockkeeper::roll
