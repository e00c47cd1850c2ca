#include "reconcilers/server/reconciler.h"

#include <algorithm>

#include "api/base/log.h"
#include "reconcilers/server/expand.h"
#include "reconcilers/server/steps.h"

namespace lockkeeper::roll {
namespace {

constexpr Duration kAtOnce = Milliseconds(1);
constexpr Duration kIdle = Seconds(5);

ServerKey KeyOf(const ObjectKey& key) { return {key.namespace_, key.name}; }

// How soon a failed step is tried again: 50 ms, doubling to 500 ms while an operation has deadlines to keep, else to 10
// s.
Duration RetryAfter(int failures, bool operating) {
  const Duration cap = operating ? Milliseconds(500) : Seconds(10);
  return std::min(cap, Milliseconds(50) * (int64_t{1} << std::min(failures - 1, 10)));
}

}  // namespace

Reconciler::Reconciler(Dependencies deps)
    : deps_(std::move(deps)),
      observer_(deps_.host, deps_.ledger, deps_.objects, deps_.units, deps_.fronts, deps_.peer, deps_.files),
      actor_(deps_.ledger, deps_.fronts, deps_.peer, deps_.files) {
  actor_.requested = [this](const std::string& kind, const std::string& key) { deps_.requested(kind, key); };
  actor_.committed = [this](const ServerRecord& before, const ServerRecord& after) { Tell(after.key, before, after); };
}

Result<bool> Reconciler::LoadIntent(const ServerKey& key) {
  const Result<Server> object = deps_.objects.GetServer({key.ns, key.name});
  if (!object.ok()) return false;  // away or absent: what the ledger holds goes on being wanted
  if (object->spec.host != deps_.host.name) return false;
  const Result<ServerRecord> record = deps_.ledger.Get(key);
  if (!record.ok() && record.code() != Code::kNotFound) return record.status();
  const ObjectMeta& meta = object->metadata;
  if (!record.ok() && meta.Deleting()) return false;
  const ServerRecord none;
  const ServerRecord& was = record.ok() ? *record : none;
  const bool same = record.ok() && was.uid == meta.uid;
  if (was.released && meta.Deleting()) return false;
  const bool newer = !same || meta.generation > was.generation || was.released;
  const bool deletes = same && meta.Deleting() && !was.deleting;
  if (!newer && !deletes) return false;
  // Repeating: an equal record is no change. A commit in between is refused by the revision.
  const Result<ServerRecord> after = deps_.ledger.Update(key, [&](ServerRecord& r) -> Status {
    if (r.revision != was.revision) return Status(Code::kConflict, "the record moved while the spec was loaded");
    r.key = key;
    r.deleting = meta.Deleting();
    if (newer) {
      r.uid = meta.uid;
      r.generation = meta.generation;
      r.spec = ExpandSpec(object->spec, deps_.host.data_dir, key);
      r.released = false;
    }
    return Status::Ok();
  });
  if (!after.ok()) return after.status();
  return true;
}

Reconciler::Last Reconciler::LastOf(const ServerKey& key) {
  const MutexLock lock(mutex_);
  return last_[key];
}

void Reconciler::Keep(const ServerKey& key, Last last) {
  const MutexLock lock(mutex_);
  last.mirrored_at = last_[key].mirrored_at;
  last_[key] = std::move(last);
}

Result<Duration> Reconciler::Reconcile(const ObjectKey& object_key) {
  const ServerKey key = KeyOf(object_key);
  Duration again = kIdle;
  for (int pass = 0; pass < std::max(1, deps_.passes); ++pass) {
    const Result<bool> loaded = LoadIntent(key);
    if (!loaded.ok() && loaded.code() != Code::kConflict)
      LogWarn("the spec was not loaded", {{"server", key.ToString()}, {"error", loaded.status().message()}});
    Last last = LastOf(key);
    last.now = deps_.clock.Read();
    last.snapshot = observer_.Observe(key, last.now);
    // Looking takes time where a peer hangs: what was seen is as of its end, not of its beginning.
    last.now = deps_.clock.Read();
    if (last.snapshot.record.absent() && !last.snapshot.object.known()) return kIdle;
    const LedgerVerdict trouble = deps_.trouble();
    if (trouble.reason.empty()) {
      last.plan = Decide(last.snapshot, last.now);
    } else {
      last.plan = Plan{};
      last.plan.rule = "TheHostMustBeOurs";
      last.plan.reason = trouble.reason;
      last.plan.message = trouble.message;
      last.plan.stalled = last.plan.waiting = true;
      last.plan.requeue_after = Seconds(1);
    }
    again = last.plan.requeue_after.value_or(kIdle);
    if (last.plan.step) {
      last.error = actor_.Act(last.snapshot, *last.plan.step);
      const bool conflict = last.error.code() == Code::kConflict;
      if (conflict) last.error = Status::Ok();
      last.failures = last.error.ok() ? 0 : last.failures + 1;
      again = kAtOnce;
      if (!last.error.ok()) {
        again = RetryAfter(last.failures, last.snapshot.record.known() && last.snapshot.record->operation.has_value());
        LogWarn("a step failed",
                {{"server", key.ToString()}, {"reason", last.plan.step->reason}, {"error", last.error.message()}});
      } else if (!conflict) {
        LogInfo(last.plan.step->message.empty() ? last.plan.step->reason : last.plan.step->message,
                {{"server", key.ToString()}, {"reason", last.plan.step->reason}, {"rule", last.plan.rule}});
      }
    } else {
      last.error = Status::Ok();
      last.failures = 0;
    }
    Keep(key, last);
    if (again > kAtOnce) break;
  }
  if (deps_.mirror) {
    deps_.mirror(key);
  } else {
    const Result<Duration> mirrored = Mirror(object_key);
    if (!mirrored.ok()) {
      LogDebug("the status was not written", {{"server", key.ToString()}, {"error", mirrored.status().message()}});
      again = std::min(again, Milliseconds(500));
    }
  }
  return again;
}

void Reconciler::Tell(const ServerKey& key, const ServerRecord& before, const ServerRecord& after) {
  if (deps_.recorder == nullptr) return;
  static constexpr const char* kServerTells[] = {"Admitted",    "Recorded",  "Flipped",  "EmergencyFlip",
                                                 "FlippedBack", "Repairing", "Repaired", "Released"};
  const std::optional<OperationRecord>& op = after.operation ? after.operation : before.operation;
  const auto target = [&](std::string_view kind, const std::string& name, const std::string& uid) {
    EventTarget t;
    t.api_version = kApiVersion;
    t.kind = kind;
    t.key = {key.ns, name};
    t.uid = uid;
    return t;
  };
  for (const StoryEvent& event : StoryOf(before, after)) {
    const EventType type = event.warning ? EventType::kWarning : EventType::kNormal;
    const bool on_server =
        event.warning || !op || op->kind == kKindInstall ||
        std::find(std::begin(kServerTells), std::end(kServerTells), event.reason) != std::end(kServerTells) ||
        ParseEnum<Outcome>(event.reason).has_value();
    if (on_server)
      deps_.recorder->Record(target(Server::kKind, key.name, after.uid), type, event.reason, event.message);
    if (!op || op->kind == kKindInstall) continue;
    if (!op->roll_uid.empty()) {
      deps_.recorder->Record(target(Roll::kKind, op->roll_name, op->roll_uid), type, event.reason, event.message);
    }
    if (op->kind == kKindUpgrade) {
      deps_.recorder->Record(target(Upgrade::kKind, op->name, op->uid), type, event.reason, event.message);
    }
  }
}

}  // namespace lockkeeper::roll
