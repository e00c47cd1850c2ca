#include "reconcilers/server/reconciler.h"

#include <algorithm>

#include "api/base/log.h"
#include "reconcilers/server/expand.h"
#include "reconcilers/server/steps.h"

namespace lockkeeper::roll {
namespace {

constexpr Duration kAtOnce = Milliseconds(1);
constexpr Duration kIdle = Seconds(5);
constexpr Duration kUnderWay = Milliseconds(20);

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

Result<bool> Reconciler::LoadIntent(const Snapshot& s) {
  const ServerObject* object = s.object.get();
  if (object == nullptr) return false;  // away or absent: what the ledger holds goes on being wanted
  if (object->spec.host != deps_.host.name) return false;
  if (s.record.unknown()) return Status(Code::kUnavailable, s.record.why());
  const ServerRecord* was = s.record.get();
  if (was == nullptr && object->deleting) return false;
  if (was != nullptr && was->released && object->deleting) return false;
  const bool same = was != nullptr && was->uid == object->uid;
  const bool newer = !same || object->generation > was->generation || was->released;
  const bool deletes = same && object->deleting && !was->deleting;
  if (!newer && !deletes) return false;
  const int64_t revision = was == nullptr ? 0 : was->revision;
  // Repeating: an equal record is no change. A commit in between is refused by the revision.
  const Result<ServerRecord> after = deps_.ledger.Update(s.key, [&](ServerRecord& r) -> Status {
    if (r.revision != revision) return Status(Code::kConflict, "the record moved while the spec was loaded");
    r.key = s.key;
    r.deleting = object->deleting;
    if (newer) {
      r.uid = object->uid;
      r.generation = object->generation;
      r.spec = ExpandSpec(object->spec, deps_.host.data_dir, s.key);
      r.released = false;
    }
    return Status::Ok();
  });
  if (!after.ok()) return after.status();
  return true;
}

std::shared_ptr<const Reconciler::Last> Reconciler::LastOf(const ServerKey& key) {
  const MutexLock lock(mutex_);
  std::shared_ptr<const Last>& last = last_[key];
  if (!last) last = std::make_shared<const Last>();
  return last;
}

void Reconciler::Keep(const ServerKey& key, Last last) {
  auto kept = std::make_shared<const Last>(std::move(last));
  const MutexLock lock(mutex_);
  last_[key].swap(kept);
}

Time Reconciler::MirroredAt(const ServerKey& key) {
  const MutexLock lock(mutex_);
  return mirrored_at_[key];
}

Plan Reconciler::DecideOn(const Snapshot& snapshot, const Now& now) {
  LedgerVerdict trouble = deps_.trouble();
  if (trouble.reason.empty()) return Decide(snapshot, now);
  Plan plan;
  plan.rule = "TheHostMustBeOurs";
  plan.reason = std::move(trouble.reason);
  plan.message = std::move(trouble.message);
  plan.stalled = plan.waiting = true;
  plan.requeue_after = Seconds(1);
  return plan;
}

Duration Reconciler::Act(Last& last) {
  if (!last.plan.step) {
    last.error = Status::Ok();
    last.failures = 0;
    return last.plan.requeue_after.value_or(kIdle);
  }
  const Step& step = *last.plan.step;
  const std::string server = last.snapshot.key.ToString();
  last.error = actor_.Act(last.snapshot, step);
  // The other side has not answered yet: the world is looked at again before it is waited for again.
  const bool under_way = last.error.code() == Code::kBusy;
  const bool conflict = last.error.code() == Code::kConflict;
  if (conflict || under_way) last.error = Status::Ok();
  if (under_way) return kUnderWay;
  if (last.error.ok()) {
    last.failures = 0;
    if (!conflict) {
      LogInfo(step.message.empty() ? step.reason : step.message,
              {{"server", server}, {"reason", step.reason}, {"rule", last.plan.rule}});
    }
    return kAtOnce;
  }
  ++last.failures;
  LogWarn("a step failed", {{"server", server}, {"reason", step.reason}, {"error", last.error.message()}});
  const ServerRecord* record = last.snapshot.record.get();
  return RetryAfter(last.failures, record != nullptr && record->operation.has_value());
}

Result<Duration> Reconciler::Reconcile(const ObjectKey& object_key) {
  const ServerKey key = KeyOf(object_key);
  Duration again = kIdle;
  int failures = LastOf(key)->failures;
  for (int pass = 0; pass < std::max(1, deps_.passes); ++pass) {
    Last last;
    last.failures = failures;
    last.now = deps_.clock.Read();
    last.snapshot = observer_.Observe(key, last.now);
    const Result<bool> loaded = LoadIntent(last.snapshot);
    if (loaded.ok() ? *loaded : loaded.code() == Code::kConflict) {
      last.snapshot = observer_.Observe(key, deps_.clock.Read());
    } else if (!loaded.ok()) {
      LogWarn("the spec was not loaded", {{"server", key.ToString()}, {"error", loaded.status().message()}});
    }
    // Looking takes time where a peer hangs: what was seen is as of its end, not of its beginning.
    last.now = deps_.clock.Read();
    if (last.snapshot.record.absent() && !last.snapshot.object.known()) return kIdle;
    last.plan = DecideOn(last.snapshot, last.now);
    again = Act(last);
    failures = last.failures;
    Keep(key, std::move(last));
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
