#include "reconcilers/backup/plan.h"

#include <algorithm>

#include "api/types/conditions.h"
#include "reconcilers/server/steps.h"

namespace lockkeeper::backup {
namespace {

std::vector<BackupDocument> BeyondRetain(std::vector<BackupDocument> all, int64_t retain, const OperationRecord* op) {
  std::sort(all.begin(), all.end(),
            [](const BackupDocument& a, const BackupDocument& b) { return a.finished_at < b.finished_at; });
  // What the operation in flight counts on is not counted and never goes.
  const std::string needed = op != nullptr ? roll::BackupOf(*op) : "";
  std::vector<BackupDocument> out;
  const int64_t keep = std::max<int64_t>(retain, 1);
  for (size_t i = 0; i + static_cast<size_t>(keep) < all.size(); ++i) {
    if (all[i].name != needed) out.push_back(all[i]);
  }
  return out;
}

}  // namespace

Plan Decide(const Snapshot& s) {
  Plan plan;
  if (s.document.unknown()) {
    plan.message = "the ledger cannot be read: " + s.document.why();
    plan.requeue_after = Seconds(1);
    return plan;
  }
  if (s.document.absent()) {
    // Only what runs on this host is ours to back up, and an answered request is not asked again.
    const StoreBackup* object = s.object.get();
    if (object != nullptr && !object->metadata.Deleting() && s.server.known() && s.server->spec.host == s.host &&
        !object->status.finished_at) {
      plan.step = StepKind::kAdopt;
      plan.message = "takes up StoreBackup " + object->metadata.name;
    }
    return plan;
  }
  switch (s.document->state) {
    case DocumentState::kPending:
      if (s.server.known()) {
        plan.step = StepKind::kTake;
        plan.message = "taking a snapshot of the store";
      } else {
        plan.requeue_after = Seconds(1);
      }
      return plan;
    case DocumentState::kFailed: return plan;
    case DocumentState::kReady: break;
  }
  if (s.server.known()) {
    const OperationRecord* op = s.server->operation ? &*s.server->operation : nullptr;
    plan.prune = BeyondRetain(s.of_server, s.server->spec.backup.retain, op);
    if (!plan.prune.empty()) {
      plan.step = StepKind::kPrune;
      plan.message = "keeps " + std::to_string(s.server->spec.backup.retain) + " backups";
      return plan;
    }
  }
  if (s.object.absent() && s.document->uid.empty()) {
    plan.step = StepKind::kCreateObject;
    plan.message = "shows the backup in the API";
  }
  return plan;
}

StoreBackupStatus Summarize(const Snapshot& s, const Now& now) {
  const StoreBackup& object = *s.object;
  StoreBackupStatus status = object.status;
  const int64_t generation = object.metadata.generation;
  status.observed_generation = generation;
  ReadySummary ready;
  ready.ready = ConditionStatus::kFalse;
  ready.reason = "BackingUp";
  ready.message = "taking a snapshot of the store";
  bool failed = false;
  if (s.document.known()) {
    const BackupDocument& d = *s.document;
    const auto set = [](std::optional<Time>& to, Time from) {
      if (from != Time{}) to = from;
    };
    set(status.started_at, d.started_at);
    set(status.finished_at, d.finished_at);
    if (d.state == DocumentState::kReady) {
      status.reference = d.reference;
      status.size = d.size;
      status.verified = true;
      status.revision = d.revision;
      status.writes_since = d.writes_since;
      ready.ready = ConditionStatus::kTrue;
      ready.settling = Settling::kCurrent;
      ready.reason = "Verified";
      ready.message = "the snapshot is whole and passed its check";
    } else if (d.state == DocumentState::kFailed) {
      failed = true;
      status.error = d.message;
      ready.settling = Settling::kStalled;
      ready.reason = d.reason;
      ready.message = d.message;
    }
  }
  std::vector<Condition> conditions;
  if (failed) {
    Condition c;
    c.type = condition::kFailed;
    c.status = ConditionStatus::kTrue;
    c.reason = ready.reason;
    c.message = ready.message;
    conditions.push_back(std::move(c));
  }
  SetReady(conditions, ready, generation, now.wall);
  status.conditions = CarryConditions(object.status.conditions, std::move(conditions), generation, now.wall);
  return status;
}

}  // namespace lockkeeper::backup
