#include "reconcilers/slot/reconciler.h"

#include "api/base/log.h"
#include "controller/typed.h"
#include "reconcilers/slot/status.h"

namespace lockkeeper::slot {
namespace {

constexpr int kShownLines = 20;
// A pass that keeps finding something to do is a fault of ours; the queue brings the rest.
constexpr int kMostSteps = 32;

Fact<UnitStatus> Look(Units& units, const std::string& unit) { return Fact<UnitStatus>::Of(units.Inspect(unit)); }

}  // namespace

Snapshot Reconciler::Observe(const ServerRecord& record, const std::string& name) {
  Snapshot s;
  s.server = record.key.ToString();
  s.slot = name;
  s.entry = record.slots.at(name);
  const SlotIntent& intent = s.entry.intent;
  if (intent.incarnation == 0) return s;
  s.unit = Look(deps_.units, intent.unit.name);
  for (const CompanionIntent& c : intent.companions) s.companions[c.name] = Look(deps_.units, c.unit.name);
  const UnitStatus* unit = s.unit.get();
  if (unit == nullptr || unit->state != UnitStatus::State::kRunning) return s;
  if (s.entry.actual.exec_sha256.empty() || s.entry.actual.id != unit->id) {
    s.exec_sha256 = Fact<std::string>::Of(deps_.units.ExecutableSha256(unit->id));
  }
  {
    MutexLock lock(mutex_);
    const auto done = done_.find(intent.unit.name);
    if (done != done_.end()) {
      s.asked = done->second.asked == unit->id;
      s.signalled = done->second.signalled == unit->id;
      if (done->second.killed == unit->id) s.last_kill = done->second.killed_at;
    }
  }
  // Asked for only where it decides: a stop that another agent process began.
  const bool resumed = !intent.running && s.entry.actual.sigterm_at != Time{} && !s.asked && !s.signalled;
  if (resumed) {
    s.shutting_down =
        s.entry.actual.port == 0 ? Fact<bool>(false) : deps_.shutting_down(record.spec, s.entry.actual.port);
  }
  return s;
}

Status Reconciler::Write(const ServerKey& key, const Snapshot& s, const SlotActual& actual) {
  // Refused when the slot moved since it was looked at; an equal record is no change.
  return deps_.ledger
      .Update(key,
              [&](ServerRecord& r) -> Status {
                const auto entry = r.slots.find(s.slot);
                if (entry == r.slots.end() || entry->second.intent != s.entry.intent ||
                    entry->second.actual != s.entry.actual) {
                  return Status(Code::kConflict, "slot " + s.slot + " moved");
                }
                entry->second.actual = actual;
                return Status::Ok();
              })
      .status();
}

Status Reconciler::Act(const ServerKey& key, const Snapshot& s, const Plan& plan, const Now& now) {
  if (const auto* record = std::get_if<Record>(&plan.step)) {
    LK_RETURN_IF_ERROR(Write(key, s, record->actual));
    if (record->actual.sigterm_at != Time{} && s.entry.actual.sigterm_at == Time{}) {
      MutexLock lock(mutex_);
      done_[record->actual.id.unit].asked = record->actual.id;
    }
    return Status::Ok();
  }
  if (const auto* start = std::get_if<StartUnit>(&plan.step)) {
    LogInfo("starting", {{"server", s.server}, {"unit", start->unit.name}, {"invocation", start->invocation}});
    // The same invocation again is no second start.
    const Status started = deps_.units.Start(start->unit, start->invocation);
    if (started.ok() || DispositionOf(started.code()) == Disposition::kReobserve) return Status::Ok();
    SlotActual next = s.entry.actual;
    next.error = (start->companion.empty() ? "" : "companion " + start->companion + ": ") + started.message();
    next.error_code = CodeName(started.code());
    LogWarn("start refused", {{"unit", start->unit.name}, {"error", next.error}});
    return Write(key, s, next);
  }
  if (const auto* signal = std::get_if<SignalUnit>(&plan.step)) {
    LogInfo("stopping", {{"server", s.server}, {"unit", signal->id.unit}, {"pid", signal->id.pid}});
    // Named by pid and start time: never a successor. Gone already is ok.
    LK_RETURN_IF_ERROR(deps_.units.Terminate(signal->id, signal->signal));
    MutexLock lock(mutex_);
    done_[signal->id.unit].signalled = signal->id;
    return Status::Ok();
  }
  if (const auto* kill = std::get_if<KillUnit>(&plan.step)) {
    LogWarn("killing", {{"server", s.server}, {"unit", kill->id.unit}, {"why", plan.why}});
    LK_RETURN_IF_ERROR(deps_.units.Kill(kill->id));
    MutexLock lock(mutex_);
    done_[kill->id.unit].killed = kill->id;
    done_[kill->id.unit].killed_at = now.wall;
    return Status::Ok();
  }
  if (const auto* reset = std::get_if<ResetUnit>(&plan.step)) {
    // An absent unit is forgotten already.
    const Status status = deps_.units.Reset(reset->unit);
    if (!status.ok() && status.code() != Code::kNotFound) return status;
    MutexLock lock(mutex_);
    done_.erase(reset->unit);
  }
  return Status::Ok();
}

Result<Duration> Reconciler::Converge(const ServerKey& key) {
  if (const std::string trouble = deps_.trouble(); !trouble.empty()) return Seconds(1);
  Duration again{};
  const auto sooner = [&again](Duration d) {
    if (d > Duration::zero() && (again == Duration::zero() || d < again)) again = d;
  };
  Result<ServerRecord> record = deps_.ledger.Get(key);
  if (record.code() == Code::kNotFound) return again;
  if (!record.ok()) return record.status();
  if (record->released) return again;
  std::vector<std::string> names;
  for (const auto& [name, entry] : record->slots) names.push_back(name);
  for (const std::string& name : names) {
    for (int step = 0; step < kMostSteps; ++step) {
      record = deps_.ledger.Get(key);
      if (!record.ok()) return record.status();
      if (record->slots.count(name) == 0) break;
      const Snapshot snapshot = Observe(*record, name);
      const Now now = deps_.clock.Read();
      const Plan plan = Decide(snapshot, now);
      sooner(plan.requeue_after);
      if (std::holds_alternative<std::monostate>(plan.step)) break;
      LK_RETURN_IF_ERROR(Act(key, snapshot, plan, now));
      // A start or a signal shows its effect in its own time.
      if (plan.requeue_after > Duration::zero()) break;
    }
  }
  return again;
}

Result<Duration> Reconciler::Mirror(const ServerKey& key) {
  Result<ServerRecord> record = deps_.ledger.Get(key);
  if (record.code() == Code::kNotFound) return Duration{};
  if (!record.ok()) return record.status();
  for (const auto& [name, entry] : record->slots) {
    if (entry.intent.incarnation == 0) continue;
    const Result<Slot> old = Get<Slot>(deps_.api, {key.ns, SlotName(key.name, name)});
    if (!old.ok() && old.code() != Code::kNotFound) return old.status();
    const Result<std::vector<std::string>> output = deps_.units.LastOutput(entry.intent.unit, kShownLines);
    const Slot* stood = old.ok() ? &*old : nullptr;
    Slot object = ObjectOf(*record, name, stood, output.value_or({}), deps_.clock.Read());
    if (stood == nullptr) {
      OwnerReference owner;
      owner.api_version = Server::kApiVersion;
      owner.kind = Server::kKind;
      owner.name = key.name;
      owner.uid = record->uid;
      owner.controller = true;
      object.metadata.owner_references = {owner};
      const SlotStatus status = object.status;
      LK_ASSIGN_OR_RETURN(object, Create<Slot>(deps_.api, object));
      object.status = status;
      object.status.observed_generation = object.metadata.generation;
    } else if (object.spec != stood->spec) {
      const SlotStatus status = object.status;
      LK_ASSIGN_OR_RETURN(object, Update<Slot>(deps_.api, object));
      object.status = status;
      object.status.observed_generation = object.metadata.generation;
    } else if (object.status == stood->status) {
      continue;
    }
    for (Condition& c : object.status.conditions) c.observed_generation = object.metadata.generation;
    LK_RETURN_IF_ERROR(UpdateStatus<Slot>(deps_.api, object).status());
  }
  return Duration{};
}

}  // namespace lockkeeper::slot
