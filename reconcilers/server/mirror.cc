// The mirror: what the ledger says, written into Server and Roll objects. Late, lost or rewound it is written again.
#include <algorithm>

#include "controller/typed.h"
#include "reconcilers/server/reconciler.h"
#include "reconcilers/server/steps.h"

namespace lockkeeper::roll {
namespace {

constexpr Duration kProgressPeriod = Seconds(1);

// Guarded by the resourceVersion that was read; repeating it finds the finalizer as wanted.
template <typename T>
Status SetFinalizer(Api& api, T object, bool wanted) {
  std::vector<std::string>& list = object.metadata.finalizers;
  const bool there = object.metadata.HasFinalizer(kFinalizer);
  if (there == wanted) return Status::Ok();
  if (wanted) {
    list.emplace_back(kFinalizer);
  } else {
    std::erase(list, kFinalizer);
  }
  const Status status = Update<T>(api, object).status();
  return status.code() == Code::kNotFound ? Status::Ok() : status;
}

bool IsOperationsRoll(const ServerRecord& rec, const Roll& roll) {
  return rec.operation && !rec.operation->roll_outcome && rec.operation->roll_name == roll.metadata.name &&
         (rec.operation->roll_uid.empty() || rec.operation->roll_uid == roll.metadata.uid);
}

}  // namespace

ServerStatus Reconciler::LastStatus(const ServerKey& key) {
  const std::shared_ptr<const Last> kept = LastOf(key);
  const Last& last = *kept;
  const int64_t generation = last.snapshot.object.known() ? last.snapshot.object->generation : 0;
  return SummarizeServer({last.snapshot, last.plan, last.now, last.error}, ServerStatus{}, generation);
}

Result<Duration> Reconciler::Mirror(const ObjectKey& object_key) {
  const ServerKey key{object_key.namespace_, object_key.name};
  const std::shared_ptr<const Last> kept = LastOf(key);
  const Last& last = *kept;
  if (last.now.wall == Time{}) return kProgressPeriod;  // nothing was looked at yet
  LK_RETURN_IF_ERROR(MirrorRolls(key, last));
  bool behind = false;
  LK_RETURN_IF_ERROR(MirrorServer(key, last, behind));
  return behind ? kProgressPeriod : Seconds(30);
}

Status Reconciler::MirrorServer(const ServerKey& key, const Last& last, bool& behind) {
  const Result<Server> object = deps_.objects.GetServer({key.ns, key.name});
  if (object.code() == Code::kNotFound) return Status::Ok();
  if (!object.ok()) return object.status();
  if (object->spec.host != deps_.host.name) return Status::Ok();
  const Result<ServerRecord> record = deps_.ledger.Get(key);
  if (object->metadata.Deleting()) {
    const bool let_go = record.code() == Code::kNotFound || (record.ok() && record->released);
    if (let_go) return SetFinalizer(deps_.api, *object, false);
  } else if (!object->metadata.HasFinalizer(kFinalizer)) {
    return SetFinalizer(deps_.api, *object, true);  // the write wakes the next pass, which writes the status
  }
  const StatusInput in{last.snapshot, last.plan, last.now, last.error};
  const int64_t loaded = last.snapshot.record.known() && last.snapshot.record->uid == object->metadata.uid
                             ? std::min(object->metadata.generation, last.snapshot.record->generation)
                             : object->metadata.generation;
  // A generation that was refused as older is observed, too.
  const ServerStatus after = SummarizeServer(in, object->status, loaded);
  if (after != object->status) {
    const bool progress_only = SameButProgress(after, object->status);
    if (progress_only && SameProgress(after.progress, object->status.progress)) {
      // Nothing that a reader would see.
    } else if (progress_only && last.now.wall - MirroredAt(key) < kProgressPeriod) {
      behind = true;
      return Status::Ok();
    } else {
      Server next = *object;
      next.status = after;
      // Guarded by the resourceVersion that was read; an equal status is not written again.
      LK_RETURN_IF_ERROR(UpdateStatus<Server>(deps_.api, next).status());
      const MutexLock lock(mutex_);
      mirrored_at_[key] = last.now.wall;
    }
  }
  if (last.snapshot.record.known()) deps_.posted(object->metadata.uid, last.snapshot.record->revision);
  return Status::Ok();
}

Status Reconciler::MirrorRolls(const ServerKey& key, const Last& last) {
  const Result<std::vector<Roll>> rolls = deps_.objects.RollsOf({key.ns, key.name});
  if (!rolls.ok()) return rolls.status();
  if (!last.snapshot.record.known()) return Status::Ok();
  if (last.snapshot.record->operation) {
    LK_RETURN_IF_ERROR(MakeRollObject(key, *last.snapshot.record->operation, *rolls));
  }
  Status first;
  for (const Roll& roll : *rolls) {
    const Status status = MirrorRoll(key, last, roll);
    if (!status.ok() && first.ok()) first = status;
  }
  return first;
}

Status Reconciler::MakeRollObject(const ServerKey& key, const OperationRecord& op, const std::vector<Roll>& rolls) {
  if (op.kind == kKindInstall || op.roll_name.empty() || !op.roll_uid.empty() || op.roll_outcome) return Status::Ok();
  for (const Roll& roll : rolls) {
    if (roll.metadata.name == op.roll_name) return Status::Ok();
  }
  Roll roll;
  roll.metadata.namespace_ = key.ns;
  roll.metadata.name = op.roll_name;
  roll.metadata.finalizers = {kFinalizer};
  roll.spec = op.spec;
  roll.spec.server_ref.name = key.name;
  roll.spec.requested_by = op.requested_by;
  if (op.kind == kKindUpgrade) {
    OwnerReference owner;
    owner.api_version = Upgrade::kApiVersion;
    owner.kind = Upgrade::kKind;
    owner.name = op.name;
    owner.uid = op.uid;
    owner.controller = true;
    roll.metadata.owner_references.push_back(std::move(owner));
  }
  const Status status = Create<Roll>(deps_.api, roll).status();
  return status.code() == Code::kAlreadyExists ? Status::Ok() : status;
}

Status Reconciler::MirrorRoll(const ServerKey& key, const Last& last, Roll roll) {
  const ServerRecord& rec = *last.snapshot.record;
  const StatusInput in{last.snapshot, last.plan, last.now, last.error};
  const ObjectMeta& meta = roll.metadata;
  const bool parentless = meta.ControllerRef() == nullptr;
  if (roll.status.outcome) {
    if (meta.HasFinalizer(kFinalizer)) return SetFinalizer(deps_.api, roll, false);
    if (meta.Deleting() || !roll.spec.ttl_seconds_after_finished || !roll.status.finished_at) return Status::Ok();
    const Duration ttl = Seconds(static_cast<double>(*roll.spec.ttl_seconds_after_finished));
    if (last.now.wall - *roll.status.finished_at < ttl) return Status::Ok();
    DeleteOptions options;
    options.uid = meta.uid;
    const Status gone = Delete<Roll>(deps_.api, {key.ns, meta.name}, options);
    return gone.code() == Code::kNotFound ? Status::Ok() : gone;
  }
  RollStatus after;
  const Result<OutcomeRecord> ended = deps_.ledger.FindOutcome(kKindRoll, key.ns, meta.name);
  if (IsOperationsRoll(rec, roll)) {
    after = SummarizeRoll(in, roll.status, meta.generation);
  } else if (ended.ok()) {
    const bool same = ended->uid == meta.uid || ended->uid.empty();
    if (same || ended->spec_hash == SpecHash(roll)) {
      after = SummarizeEnded(*ended, roll.status, meta.generation, last.now, !same);
    } else {
      after = SummarizeNameReused(*ended, roll.status, meta.generation, last.now);
    }
  } else if (ended.code() != Code::kNotFound) {
    return ended.status();
  } else if (meta.Deleting()) {
    return SetFinalizer(deps_.api, roll, false);  // it never began
  } else if (parentless && !meta.HasFinalizer(kFinalizer)) {
    return SetFinalizer(deps_.api, roll, true);  // only what carries it is admitted
  } else {
    after = SummarizeWaiting(in, roll.status, meta.generation);
  }
  if (after == roll.status) return Status::Ok();
  if (SameButProgress(after, roll.status)) {
    const bool soon = last.now.wall - MirroredAt(key) < kProgressPeriod;
    if (soon || SameProgress(after.progress, roll.status.progress)) return Status::Ok();
  }
  roll.status = std::move(after);
  return UpdateStatus<Roll>(deps_.api, roll).status();
}

}  // namespace lockkeeper::roll
