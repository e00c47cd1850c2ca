#include "reconcilers/server/plan.h"

#include <algorithm>

#include "reconcilers/server/rules.h"

namespace lockkeeper::roll {
namespace {

struct Rule {
  const char* name;
  RuleResult (*apply)(const Context&);
};

// First match decides. Safety of what serves comes before any operation; new work comes last.
constexpr Rule kRules[] = {
    {"FlipBackToTheOldSlot", FlipBackToTheOldSlot},
    {"RepairTheActiveSlot", RepairTheActiveSlot},
    {"RecordControls", RecordControls},
    {"EndTheServer", EndTheServer},
    {"CloseTheUpgrade", CloseTheUpgrade},
    {"ObeyAbortAndAbandon", ObeyAbortAndAbandon},
    {"Undo", Undo},
    {"CarryTheOperationOn", CarryTheOperationOn},
    {"BeginTheInstall", BeginTheInstall},
    {"RetireStraySlots", RetireStraySlots},
    {"FreeTheLeaseOfADeadHolder", FreeTheLeaseOfADeadHolder},
    {"ForgetOldRepairs", ForgetOldRepairs},
    {"ForgetWhatWasStopped", ForgetWhatWasStopped},
    {"SeeRestartedAt", SeeRestartedAt},
    {"ApplyTheEditedTemplate", ApplyTheEditedTemplate},
    {"EndTheAbortedWhoWait", EndTheAbortedWhoWait},
    {"AdmitTheNextOperation", AdmitTheNextOperation},
    {"FollowTheActiveSlot", FollowTheActiveSlot},
    {"WatchTheActiveSlot", WatchTheActiveSlot},
};

// What may act while a rule above only waits.
constexpr Rule kBeside[] = {
    {"FreeTheLeaseOfADeadHolder", FreeTheLeaseOfADeadHolder},
    {"FollowTheActiveSlot", FollowTheActiveSlot},
    {"EndTheAbortedWhoWait", EndTheAbortedWhoWait},
    {"RefuseWhoWillNotWait", RefuseWhoWillNotWait},
};

constexpr Duration kIdle = Seconds(5);  // how often a Server at rest is compared with the host

std::optional<Duration> Sooner(std::optional<Duration> a, std::optional<Duration> b) {
  if (!a) return b;
  if (!b) return a;
  return std::min(*a, *b);
}

Plan Named(const char* rule, Plan plan) {
  plan.rule = rule;
  return plan;
}

Plan Nothing(const char* rule, std::string reason, std::string message, bool stalled) {
  Plan plan;
  plan.rule = rule;
  plan.reason = std::move(reason);
  plan.message = std::move(message);
  plan.stalled = stalled;
  plan.waiting = stalled;
  if (stalled) plan.requeue_after = Seconds(5);
  return plan;
}

}  // namespace

LedgerVerdict JudgeLedger(const Snapshot& s) {
  const std::string way_out =
      "; nothing is started or stopped until `lockkeeper agent rebuild` or the old ledger is back";
  for (const LedgerWitness& w : s.witnesses) {
    if (!w.id.empty() && w.id != s.ledger.id) {
      return {"LedgerLost", w.where + " was set by ledger " + w.id + ", and this one is " + s.ledger.id + way_out};
    }
    if (w.revision > s.ledger.revision) {
      return {"LedgerOlderThanHost", w.where + " carries ledger revision " + std::to_string(w.revision) +
                                         ", and this ledger is at " + std::to_string(s.ledger.revision) + way_out};
    }
  }
  const ServerRecord* rec = s.record.get();
  const bool blank = rec == nullptr || rec->incarnations == 0;
  if (!s.unrecorded_units.empty()) {
    return {blank ? "LedgerLost" : "LedgerOlderThanHost",
            "the host runs " + s.unrecorded_units.front() + ", which the ledger does not name" + way_out};
  }
  if (blank && s.files.base_empty.known() && !*s.files.base_empty) {
    return {"LedgerLost", "the data directory is not empty and the ledger has no record of this Server" + way_out};
  }
  return {};
}

Plan Decide(const Snapshot& snapshot, const Now& now) {
  if (snapshot.record.unknown()) {
    return Nothing("LedgerMustBeReadable", "LedgerUnreadable", snapshot.record.why(), true);
  }
  if (snapshot.record.absent()) return Nothing("NoRecord", "NoRecord", "this host has no record of the Server", false);
  if (snapshot.record->released) {
    return Nothing("ReleasedIsLeftAlone", "Released", "deleted with deletionPolicy Orphan: what runs is left as it is",
                   false);
  }
  if (LedgerVerdict verdict = JudgeLedger(snapshot); !verdict.reason.empty()) {
    return Nothing("LedgerMustBeTheHosts", verdict.reason, verdict.message, true);
  }
  const Context c(snapshot, now);
  for (const Rule& rule : kRules) {
    RuleResult result = rule.apply(c);
    if (!result) continue;
    Plan plan = Named(rule.name, std::move(*result));
    if (plan.step) return plan;
    for (const Rule& beside : kBeside) {
      RuleResult other = beside.apply(c);
      if (!other) continue;
      plan.requeue_after = Sooner(plan.requeue_after, other->requeue_after);
      if (!other->step) continue;
      plan.rule = beside.name;
      plan.step = std::move(other->step);
      break;
    }
    return plan;
  }
  Plan plan = Nothing("AsDesired", "AsDesired", "", false);
  plan.requeue_after = kIdle;
  return plan;
}

std::optional<FrontTarget> WantedFrontTarget(const ServerRecord& record, const Now& now, const LedgerInfo& ledger) {
  if (record.released) return std::nullopt;
  FrontTarget target;
  target.boot_id = now.boot_id;
  target.revision = ledger.revision;
  target.ledger_id = ledger.id;
  target.hold = true;
  const auto it = record.slots.find(record.active);
  if (record.hold || it == record.slots.end()) return target;
  const SlotIntent& intent = it->second.intent;
  const SlotActual& actual = it->second.actual;
  const bool there = actual.incarnation == intent.incarnation && actual.invocation == intent.invocation &&
                     actual.port != 0 && !actual.exit && actual.id.boot_id == now.boot_id;
  if (!there) return target;
  target.hold = false;
  target.slot = record.active;
  target.incarnation = intent.incarnation;
  target.invocation = intent.invocation;
  target.address = "127.0.0.1:" + std::to_string(actual.port);
  return target;
}

}  // namespace lockkeeper::roll
