// Rule C and the roll's steps 18 and 19: the controller lease and the probe object.
#include <algorithm>

#include "reconcilers/server/draft.h"
#include "reconcilers/server/report.h"

namespace lockkeeper::roll {
namespace {

constexpr Duration kProvenDead = Seconds(5);  // without a renewal: client-go's RenewDeadline in kcp
constexpr Duration kOneRenewal = Seconds(5);
constexpr char kProbeAgain[] = "probeAgain";
constexpr Duration kOneQuestion = Seconds(5);  // what a call to the server may take (ports/peer.h)
constexpr int64_t kDeathsForgiven = 1;         // of the new slot in one of these steps: a second one is the build's

bool HostIsOurs(const Context& c, const std::string& holder) {
  const size_t cut = holder.rfind('_');
  return cut != std::string::npos && holder.substr(0, cut) == c.s.host.hostname;
}

bool HandsOver(const Context& c) { return c.spec.lease && c.spec.lease->expect_handover; }

std::string Micros(Time t) { return std::to_string(t.time_since_epoch().count()); }

// What a lease said at one reading; any later reading that differs is a renewal or a new holder.
std::string Mark(const LeaseFact& lease) { return lease.uid + " " + lease.holder + " " + Micros(lease.renew_time); }

// When the process of a slot was executed; nothing when it does not run.
std::optional<Time> LiveSince(const Context& c, const SlotView& slot) {
  if (!slot.Live()) return std::nullopt;
  const auto facts = c.s.slots.find(slot.name);
  if (facts != c.s.slots.end() && facts->second.unit.known()) return facts->second.unit->started_at;
  return slot.actual().started_at;
}

// A holder of this host that nothing alive of ours can be.
bool ProvenDead(const Context& c, const LeaseFact& lease) {
  if (lease.holder.empty() || !HostIsOurs(c, lease.holder) || c.s.lease.unchanged_for < kProvenDead) return false;
  bool before_all_live = true;
  Time last_exit = c.rec.last_exit_at;
  for (const auto& [name, entry] : c.rec.slots) {
    const SlotView slot = c.Slot(name);
    if (slot.life == Life::kUnknown) return false;
    if (const auto since = LiveSince(c, slot); since && *since <= lease.acquire_time) before_all_live = false;
    if (slot.exited_at) last_exit = std::max(last_exit, *slot.exited_at);
  }
  return before_all_live || last_exit > lease.renew_time;
}

// Steps 18 and 19 do not undo anything: the new build stays, and the operation ends as failed.
void Missed(const Context& c, Draft& d, const char* step, const Failure& failure) {
  if (d.op().failure_reason.empty()) {
    d.op().failure_reason = failure.reason;
    d.op().failure_message = failure.message;
    d.op().failure_is_the_builds = failure.builds;
    d.op().failed_step = step;
  }
  (void)c;
  d.Say(failure.reason, failure.message);
}

std::string DeathsNote(const char* step) { return std::string(step) + "RepairsBefore"; }
std::string PatienceOf(const char* step) { return std::string(step) + "StandStill"; }

// How often the active slot has died since the step began.
int64_t Deaths(const Context& c, const char* step) {
  const std::string before = c.Note(DeathsNote(step));
  return before.empty() ? 0 : c.rec.repairs - std::atoll(before.c_str());
}

// Whether it dies again and again, or did not come back: that is the build's, however little was heard of it.
bool DiesOfItself(const Context& c, const char* step) {
  const int64_t deaths = Deaths(c, step);
  return deaths > kDeathsForgiven || (deaths > 0 && !c.Active().Ready());
}

std::string DeathsText(const Context& c, const char* step) {
  const int64_t deaths = Deaths(c, step);
  if (deaths <= 0) return "";
  const SlotView active = c.Active();
  return "; slot " + active.name + " ended " + (deaths == 1 ? "once" : std::to_string(deaths) + " times") +
         " meanwhile" + (active.exit_text.empty() ? "" : ", last with " + active.exit_text);
}

void NoteRepairs(Draft& d, const char* step) { d.op().notes[DeathsNote(step)] = std::to_string(d.next.repairs); }

// Why the server cannot be asked through its front just now; "" when it can, or when nobody is doing anything about it.
std::string NotToBeAsked(const Context& c) {
  const SlotView active = c.Active();
  if (c.FrontSilent()) return c.FrontSilentPlan().message;
  const auto repair = c.op->deadlines.find(kActiveRepair);
  if (!active.Ready()) {
    const bool repaired = repair != c.op->deadlines.end() && !repair->second.Passed(c.now);
    return repaired ? "slot " + active.name + " is started again: " + active.readyz_text : "";
  }
  if (!c.FrontOn(active)) return "the front " + c.FrontName() + " does not send to slot " + active.name + " yet";
  return "";
}

// Time in which nobody could ask the server says nothing of it: half a step's time is left, at least, when it can be
// asked again. Answers the plan where the step has nothing better to say.
std::optional<Plan> StandStill(const Context& c, Draft& d, const char* step, Duration limit) {
  if (!Started(*c.op, step) || Hurried(c)) return std::nullopt;
  const std::string why = NotToBeAsked(c);
  if (why.empty()) return std::nullopt;
  // A silent front is told to a person; for everything else there is as long as a start may take, in all, and what
  // dies again and again is given no more time than what lives.
  const std::string patience = PatienceOf(step);
  if (!c.FrontSilent() && (Deaths(c, step) > kDeathsForgiven || c.DeadlinePassed(patience))) return std::nullopt;
  const bool late = c.DeadlineLeft(step) < limit / 2;
  if (late) {
    if (!c.FrontSilent() && c.op->deadlines.count(patience) == 0) c.SetDeadline(d.next, patience, c.ReadyTimeout());
    c.SetDeadline(d.next, step, limit);
    d.Say("ServerNotAsked", "the time of step " + std::string(step) + " stands still: " + why);
  }
  if (c.FrontSilent()) return c.FrontSilentPlan();
  return late ? std::optional<Plan>(c.Wait("ServerNotAsked", why, Milliseconds(50))) : std::nullopt;
}

std::string ProbeName(const Now& now) {
  int64_t ms = now.wall.time_since_epoch().count() / 1000;
  std::string text;
  for (; ms > 0; ms /= 36) text.insert(text.begin(), "0123456789abcdefghijklmnopqrstuvwxyz"[ms % 36]);
  return "roll-probe-" + text;
}

}  // namespace

RuleResult FreeTheLeaseOfADeadHolder(const Context& c) {
  if (!HandsOver(c) || !c.s.lease.lease.known() || !c.Active().Ready()) return {};
  const LeaseFact& lease = *c.s.lease.lease;
  if (ProvenDead(c, lease)) {
    return c.Effect(DeleteLease{lease}, "FreeingLease",
                    "lease holder " + lease.holder + " is dead; the lease is freed for slot " + c.rec.active);
  }
  if (!lease.holder.empty() && HostIsOurs(c, lease.holder) && c.s.lease.unchanged_for < kProvenDead) {
    // Quiet until it has been without a change for long enough to be judged.
    if (lease.renew_time < c.rec.last_exit_at) {
      return c.Wait("WatchingLease", "the lease has not been renewed since a process ended",
                    kProvenDead - c.s.lease.unchanged_for + Milliseconds(50));
    }
  }
  return {};
}

HandlerResult DoLease(const Context& c, Draft& d) {
  if (!HandsOver(c)) return StepDone();
  const Duration limit = Seconds(static_cast<double>(c.timeouts().lease_seconds));
  if (Begin(c, d, kStepLease, limit, "waiting for a renewal after the old slot's exit")) NoteRepairs(d, kStepLease);
  OperationRecord& op = d.op();
  const Fact<LeaseFact>& fact = c.s.lease.lease;
  const Time exit = op.finished.count(kStepStopOld) != 0 ? op.finished[kStepStopOld] : Time{};
  const std::string held_before = c.Note("leaseMark");
  const SlotView fresh = c.Slot(op.to);

  const auto mark = [&](const std::string& text, const char* why) {
    // Whoever was away for the whole time has seen no renewal that may have been there: one is waited for.
    if (c.DeadlinePassed(kStepLease)) c.SetDeadline(d.next, kStepLease, 2 * kOneRenewal);
    op.notes["leaseMark"] = text;
    op.notes["leaseMarkAt"] = Micros(c.now.wall);
    d.Say("WatchingLease", why);
  };
  if (held_before.empty()) {
    // "Since the exit" is measured from a reading that was sent after the exit had been observed.
    if (fact.known() && fact->read_at >= exit) mark(Mark(*fact), "the lease as it was after the old slot's exit");
    if (fact.absent()) mark("none", "there is no lease after the old slot's exit");
  } else if (fact.known() && Mark(*fact) != held_before && !fact->holder.empty()) {
    const auto since = LiveSince(c, fresh);
    const bool late_renewal = fact->holder == c.Note("holderAtStop") && since && fact->acquire_time < *since;
    if (!late_renewal) {
      RollReport& report = op.report;
      report.new_holder = fact->holder;
      report.lease_held_at = c.now.wall;
      const Time from = report.old_exited_at.value_or(exit);
      report.lease_handover_seconds = std::max(0.0, ReportSeconds(c.now.wall - from));
      report.leaderless_seconds = report.lease_handover_seconds;
      d.Say("LeaseHeld", "the controller lease is held by " + fact->holder);
      return StepDone();
    }
    mark(Mark(*fact), "a renewal of the old holder arrived late");
  }
  const bool unchanged = fact.known() && op.notes["leaseMark"] == Mark(*fact);
  if (unchanged && !fact->holder.empty() && fact->holder == c.Note("holderAtStop") && HostIsOurs(c, fact->holder)) {
    const auto since = LiveSince(c, fresh);
    const bool may_be_new = since && fact->acquire_time >= *since;
    const Time marked{Duration(std::atoll(op.notes["leaseMarkAt"].c_str()))};
    if (!may_be_new || c.now.wall - marked >= kOneRenewal) {
      if (!op.report.lease_deleted_at) {
        op.report.lease_deleted_at = c.now.wall;
        op.notes["leaseDeletedAt"] = Micros(c.now.wall);
        d.Say("FreeingLease", "the lease of the ended slot is freed");
      } else if (!d.dirty) {
        return NotYet(c.Effect(DeleteLease{*fact}, "FreeingLease", "deletes the lease of " + fact->holder));
      }
    }
  }
  if (auto wait = StandStill(c, d, kStepLease, limit)) return NotYet(std::move(*wait));
  const bool unreadable = fact.unknown();
  const bool judged = unreadable ? c.DeadlineLeft(kStepLease) < -kOneQuestion : !held_before.empty();
  if (Started(*c.op, kStepLease) && c.DeadlinePassed(kStepLease) && judged) {
    std::string what = fact.known()    ? "its holder is " + fact->holder
                       : fact.absent() ? "nobody made it again"
                                       : "it cannot be read: " + fact.why();
    Missed(c, d, kStepLease,
           {"LeaseNotTaken",
            "no renewal of the controller lease within " + SecondsText(limit) + " of the old slot's end; " + what +
                DeathsText(c, kStepLease),
            DiesOfItself(c, kStepLease)});
    return StepDone();
  }
  return NotYet(c.Wait("WaitingForLease", "waits for a renewal of the controller lease", Milliseconds(50)));
}

HandlerResult DoProbe(const Context& c, Draft& d) {
  if (c.spec.probe.type == ProbeType::kNone || Hurried(c) ||
      (c.op->kind != kKindInstall && !d.op().failure_reason.empty())) {
    return StepDone();
  }
  const Duration limit = Seconds(static_cast<double>(c.timeouts().probe_seconds));
  if (Begin(c, d, kStepProbe, limit, "a probe object is made through the front")) {
    d.next.probe_name = ProbeName(c.now);
    NoteRepairs(d, kStepProbe);
  }
  const Time since = d.op().report.lease_held_at.value_or(d.op().started[kStepProbe]);
  const Fact<ProbeFact>& probe = c.s.probe;
  const bool ours = probe.known() && probe->name == c.rec.probe_name;
  if (ours && probe->ready) {
    d.op().report.probe_ready_at = c.now.wall;
    d.op().report.probe_seconds = std::max(0.0, ReportSeconds(c.now.wall - since));
    d.Say("ProbeReady", "probe object " + c.rec.probe_name + " is ready");
    return StepDone();
  }
  if (auto wait = StandStill(c, d, kStepProbe, limit)) return NotYet(std::move(*wait));
  // An agent that was away for the whole time has not made it: it gets its time once more.
  if (Started(*c.op, kStepProbe) && c.DeadlinePassed(kStepProbe) && probe.absent() && c.Note(kProbeAgain).empty()) {
    d.op().notes[kProbeAgain] = "yes";
    c.SetDeadline(d.next, kStepProbe, limit);
    d.Say("Probing", "probe object " + c.rec.probe_name + " is not there: it is made once more");
    return NotYet(c.Wait("Probing", d.message, Milliseconds(1)));
  }
  // What was never answered is not held against the build.
  const bool answered = ours || probe.absent();
  if (Started(*c.op, kStepProbe) && c.DeadlinePassed(kStepProbe) &&
      (answered || c.DeadlineLeft(kStepProbe) < -kOneQuestion)) {
    const std::string what = ours             ? "it says " + probe->phase
                             : probe.absent() ? "it was not made"
                                              : "it could not be asked for: " + probe.why();
    Missed(c, d, kStepProbe,
           {"ProbeFailed",
            "probe object " + c.rec.probe_name + " was not ready within " + SecondsText(limit) + ": " + what +
                DeathsText(c, kStepProbe),
            answered || DiesOfItself(c, kStepProbe)});
    return StepDone();
  }
  if (Started(*c.op, kStepProbe) && probe.absent()) {
    return NotYet(c.Effect(CreateProbe{c.rec.probe_name}, "Probing", "makes probe object " + c.rec.probe_name));
  }
  return NotYet(c.Wait("Probing", "probe object " + c.rec.probe_name + " is not ready yet", Milliseconds(50)));
}

}  // namespace lockkeeper::roll
