#include "reconcilers/slot/reconciler.h"

#include <algorithm>

#include "api/base/log.h"

namespace lockkeeper::slot {
namespace {

constexpr int kPasses = 16;  // steps of one Reconcile: a start with companions takes a handful

std::string SentKey(const UnitIdentity& id) { return id.unit + "." + std::to_string(id.invocation); }

bool Running(const Fact<UnitStatus>& fact) { return fact.known() && fact->state == UnitStatus::State::kRunning; }

}  // namespace

Reconciler::Memory& Reconciler::MemoryOf(const ServerKey& key, const std::string& slot) { return memory_[{key, slot}]; }

Snapshot Reconciler::Observe(const ServerRecord& record, const std::string& slot) {
  Snapshot s;
  s.key = record.key;
  s.slot = slot;
  s.entry = record.slots.at(slot);
  s.forbidden = deps_.forbidden();
  const SlotIntent& intent = s.entry.intent;
  const SlotActual& actual = s.entry.actual;
  const auto inspect = [&](const std::string& unit) { return Fact<UnitStatus>::Of(deps_.units.Inspect(unit)); };
  if (intent.incarnation == 0) return s;
  s.unit = inspect(intent.unit.name);
  const bool stale = !actual.id.unit.empty() && actual.id.unit != intent.unit.name;
  s.stale = stale ? inspect(actual.id.unit) : Fact<UnitStatus>(Absent{});
  for (const CompanionIntent& c : intent.companions) s.companions[c.name] = inspect(c.unit.name);
  for (const CompanionActual& c : actual.companions) {
    const bool wanted = std::any_of(intent.companions.begin(), intent.companions.end(),
                                    [&](const CompanionIntent& i) { return i.unit.name == c.id.unit; });
    if (!wanted && !c.id.unit.empty()) s.stale_companions[c.id.unit] = inspect(c.id.unit);
  }
  {
    const MutexLock lock(mutex_);
    Memory& memory = MemoryOf(record.key, slot);
    const Duration now = deps_.clock.Read().boot;
    for (const auto& [name, fact] : s.companions) {
      if (!Running(fact)) continue;
      CompanionTry& t = memory.tries[fact->id.unit];
      if (t.failures > 0 && now - t.started >= kCompanionSettled) t.failures = 0;
    }
    s.tries = memory.tries;
    const Fact<UnitStatus>& stopping = stale ? s.stale : s.unit;
    s.sigterm_sent = stopping.known() && memory.sigterm_sent == SentKey(stopping->id);
  }
  const bool ours =
      Running(s.unit) && s.unit->id.invocation == actual.invocation && actual.incarnation == intent.incarnation;
  if (ours && actual.exec_sha256.empty()) {
    s.exec_sha256 = Fact<std::string>::Of(deps_.units.ExecutableSha256(s.unit->id));
  }
  if (ours && !intent.running && actual.sigterm_at != Time{} && !s.sigterm_sent && deps_.says_shutting_down) {
    s.says_shutting_down = Fact<bool>::Of(deps_.says_shutting_down(record, slot));
  }
  return s;
}

// The one writer of `actual`. Refused when the record moved since it was looked at: a stop that was taken back must
// not be carried out.
Status Reconciler::Write(const Snapshot& s, const SlotActual& actual) {
  const auto write = [&] {
    return deps_.ledger
        .Update(s.key,
                [&](ServerRecord& record) -> Status {
                  const auto it = record.slots.find(s.slot);
                  if (it == record.slots.end() || it->second.intent != s.entry.intent ||
                      it->second.actual != s.entry.actual) {
                    return Status(Code::kConflict,
                                  "slot " + s.slot + " of " + s.key.ToString() + " moved: looked at again");
                  }
                  it->second.actual = actual;
                  return Status::Ok();
                })
        .status();
  };
  const Status written = write();
  // A slot that cannot be noted cannot be stopped or repaired: on a full disk the ballast is for this.
  return written.code() == Code::kExhausted && deps_.ledger.RepairSpace().ok() ? write() : written;
}

Status Reconciler::Refused(const Snapshot& s, const std::string& what, const Status& status) {
  if (!EndsTheStart(status.code())) return status;
  LogWarn("a start was refused", {{"server", s.key.ToString()}, {"slot", s.slot}, {"why", status.message()}});
  SlotActual actual = s.entry.actual;
  actual.error = what + status.message();
  actual.error_code = std::string(CodeName(status.code()));
  return Write(s, actual);
}

Status Reconciler::Act(const Snapshot& s, const Plan& plan) {
  if (plan.actual) LK_RETURN_IF_ERROR(Write(s, *plan.actual));
  if (plan.step != StepKind::kNote && plan.step != StepKind::kNone) {
    LogInfo(plan.message, {{"server", s.key.ToString()}, {"slot", s.slot}, {"step", StepKindName(plan.step)}});
  }
  switch (plan.step) {
    case StepKind::kNone:
    case StepKind::kNote: return Status::Ok();
    case StepKind::kStart: {
      const Status started = deps_.units.Start(plan.spec, plan.invocation);
      return started.ok() ? started : Refused(s, "", started);
    }
    case StepKind::kStartCompanion: {
      {
        const MutexLock lock(mutex_);
        CompanionTry& t = MemoryOf(s.key, s.slot).tries[plan.unit];
        ++t.failures;
        t.started = deps_.clock.Read().boot;
        t.terminated = Duration{};
      }
      const Status started = deps_.units.Start(plan.spec, plan.invocation);
      if (started.ok() || Running(s.unit)) return started;
      return Refused(s, "companion " + plan.unit + ": ", started);
    }
    case StepKind::kTerminate: {
      LK_RETURN_IF_ERROR(deps_.units.Terminate(plan.target, plan.signal));
      const MutexLock lock(mutex_);
      Memory& memory = MemoryOf(s.key, s.slot);
      if (plan.actual) {
        memory.sigterm_sent = SentKey(plan.target);
      } else {
        memory.tries[plan.unit].terminated = deps_.clock.Read().boot;
      }
      return Status::Ok();
    }
    case StepKind::kKill: return deps_.units.Kill(plan.target);
    case StepKind::kReset: return deps_.units.Reset(plan.unit);
  }
  return Status::Ok();
}

Result<Plan> Reconciler::Pass(const ServerKey& key, const std::string& slot) {
  LK_ASSIGN_OR_RETURN(const ServerRecord record, deps_.ledger.Get(key));
  if (record.slots.count(slot) == 0) return Plan{};
  const Snapshot snapshot = Observe(record, slot);
  Plan plan = Decide(snapshot, deps_.clock.Read());
  const Status acted = Act(snapshot, plan);
  if (acted.ok()) return plan;
  return acted.Annotate("slot " + slot + " of " + key.ToString());
}

Result<Duration> Reconciler::Reconcile(const ObjectKey& server) {
  const ServerKey key{server.namespace_, server.name};
  const Result<ServerRecord> record = deps_.ledger.Get(key);
  if (record.code() == Code::kNotFound) return Duration{};
  if (!record.ok()) return record.status();
  Duration soonest{};
  Status first_error;
  for (const auto& [slot, entry] : record->slots) {
    Duration after{};
    for (int i = 0; i < kPasses; ++i) {
      const Result<Plan> plan = Pass(key, slot);
      if (plan.code() == Code::kConflict) {
        after = Milliseconds(1);
        break;
      }
      if (!plan.ok()) {
        if (first_error.ok()) first_error = plan.status();  // the other slot is not held up by this one
        break;
      }
      after = plan->requeue_after;
      if (plan->step == StepKind::kNone) break;
    }
    if (after != Duration{} && (soonest == Duration{} || after < soonest)) soonest = after;
  }
  if (!first_error.ok()) return first_error;
  return soonest;
}

std::vector<ServerKey> Reconciler::OwnersOf(const std::string& unit) {
  std::vector<ServerKey> owners;
  const Result<std::vector<ServerKey>> keys = deps_.ledger.Servers();
  if (!keys.ok()) return owners;
  for (const ServerKey& key : *keys) {
    const Result<ServerRecord> record = deps_.ledger.Get(key);
    if (!record.ok()) continue;
    for (const auto& [name, entry] : record->slots) {
      bool owns = entry.intent.unit.name == unit || entry.actual.id.unit == unit;
      for (const CompanionIntent& c : entry.intent.companions) owns = owns || c.unit.name == unit;
      for (const CompanionActual& c : entry.actual.companions) owns = owns || c.id.unit == unit;
      if (!owns) continue;
      owners.push_back(key);
      break;
    }
  }
  return owners;
}

}  // namespace lockkeeper::slot
