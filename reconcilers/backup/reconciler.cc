#include "reconcilers/backup/reconciler.h"

#include "api/base/log.h"
#include "controller/typed.h"
#include "reconcilers/server/layout.h"

namespace lockkeeper::backup {

Snapshot Reconciler::Observe(const ObjectKey& key) {
  Snapshot s;
  s.host = deps_.host;
  const Result<std::string> text = deps_.ledger.GetDocument(kBackupDocument, key.ToString());
  s.document = text.ok() ? Fact<BackupDocument>::Of(BackupDocument::FromJson(*text))
                         : Fact<BackupDocument>::Of(Result<BackupDocument>(text.status()));
  s.object = Fact<StoreBackup>::Of(Get<StoreBackup>(deps_.api, key));
  std::string server;
  if (s.document.known()) {
    server = s.document->server;
  } else if (s.object.known()) {
    server = s.object->spec.server_ref.name;
  }
  s.server = Fact<ServerRecord>::Of(deps_.ledger.Get(ServerKey{key.namespace_, server}));
  const auto all = deps_.ledger.ListDocuments(kBackupDocument);
  if (all.ok()) {
    for (const auto& [name, json] : *all) {
      const Result<BackupDocument> d = BackupDocument::FromJson(json);
      if (d.ok() && d->ns == key.namespace_ && d->server == server && d->state == DocumentState::kReady) {
        s.of_server.push_back(*d);
      }
    }
  }
  return s;
}

Status Reconciler::Put(const BackupDocument& document) {
  LK_RETURN_IF_ERROR(deps_.ledger.PutDocument(kBackupDocument, document.Key(), document.ToJson().Dump()));
  deps_.changed(ServerKey{document.ns, document.server});
  return Status::Ok();
}

Result<SnapshotInfo> Reconciler::Snap(const BackupDocument& d, const ServerRecord& server) {
  const BackupPolicy& policy = server.spec.backup;
  if (policy.driver != BackupDriver::kSqlite) {
    return Status(Code::kUnsupported, "spec.backup.driver: " + std::string(EnumName(policy.driver)) +
                                          " is not built in yet; SQLite and None are");
  }
  if (!policy.sqlite || policy.sqlite->file.empty()) {
    return Status(Code::kInvalid, "spec.backup.sqlite.file: names no store file");
  }
  const roll::Layout layout = roll::LayoutOf(deps_.data_dir, server.key, server.spec);
  // One backup a Server at a time: what an interrupted one left there is nobody's, and may be as large as the store.
  const Status swept = deps_.snapshotter.Sweep(layout.backups);
  if (!swept.ok()) {
    LogWarn("what an interrupted backup left was not swept", {{"folder", layout.backups}, {"error", swept.message()}});
  }
  return deps_.snapshotter.Take(policy.sqlite->file, layout.backups, d.name);
}

Status Reconciler::Take(BackupDocument d, const ServerRecord& server) {
  d.started_at = deps_.clock.Read().wall;
  const Result<SnapshotInfo> taken = Snap(d, server);
  d.finished_at = deps_.clock.Read().wall;
  if (taken.ok()) {
    d.state = DocumentState::kReady;
    d.reference = taken->reference;
    d.size = taken->size;
    d.sha256 = taken->sha256;
    const Result<int64_t> revision = deps_.snapshotter.RevisionOf(*taken);
    if (revision.ok() && *revision != 0) d.revision = *revision;
    d.reason.clear();
    d.message.clear();
    LogInfo("store backed up", {{"backup", d.Key()}, {"file", d.reference}, {"bytes", d.size}});
  } else {
    d.state = DocumentState::kFailed;
    d.reason = taken.code() == Code::kExhausted     ? "DiskFull"
               : taken.code() == Code::kUnsupported ? "NoBackupDriver"
                                                    : "BackupFailed";
    d.message = taken.status().message();
    LogWarn("store backup failed", {{"backup", d.Key()}, {"error", d.message}});
  }
  return Put(d);
}

Status Reconciler::Act(const ObjectKey& key, const Snapshot& s, const Plan& plan) {
  switch (plan.step) {
    case StepKind::kNone: return Status::Ok();
    case StepKind::kAdopt: {
      BackupDocument d;
      d.ns = key.namespace_;
      d.name = key.name;
      d.uid = s.object->metadata.uid;
      d.server = s.object->spec.server_ref.name;
      d.why = s.object->spec.reason;
      return Put(d);
    }
    case StepKind::kTake:
      // A crash in between leaves no file of that name; the snapshot is simply taken again.
      return Take(*s.document, *s.server);
    case StepKind::kCreateObject: {
      StoreBackup object;
      object.metadata.namespace_ = key.namespace_;
      object.metadata.name = key.name;
      object.spec.server_ref.name = s.document->server;
      object.spec.reason = s.document->why;
      const Result<StoreBackup> made = Create<StoreBackup>(deps_.api, object);
      if (!made.ok() && made.code() != Code::kAlreadyExists) return made.status();
      BackupDocument d = *s.document;
      d.uid = made.ok() ? made->metadata.uid : "unknown";
      return Put(d);
    }
    case StepKind::kPrune:
      for (const BackupDocument& old : plan.prune) {
        SnapshotInfo info;
        info.reference = old.reference;
        info.size = old.size;
        info.sha256 = old.sha256;
        // File first: a document without a file would be believed; a file without a document is swept.
        LK_RETURN_IF_ERROR(deps_.snapshotter.Delete(info));
        LK_RETURN_IF_ERROR(deps_.ledger.RemoveDocument(kBackupDocument, old.Key()));
        const Status gone = Delete<StoreBackup>(deps_.api, {old.ns, old.name});
        if (!gone.ok() && gone.code() != Code::kNotFound) {
          LogWarn("the object of an old backup stays", {{"backup", old.Key()}, {"error", gone.message()}});
        }
      }
      return Status::Ok();
  }
  return Status::Ok();
}

Status Reconciler::Mirror(const Snapshot& s) {
  if (!s.object.known() || !s.document.known()) return Status::Ok();
  StoreBackup object = *s.object;
  object.status = Summarize(s, deps_.clock.Read());
  if (object.status == s.object->status) return Status::Ok();
  return UpdateStatus<StoreBackup>(deps_.api, object).status();
}

Result<Duration> Reconciler::Reconcile(const ObjectKey& key) {
  const Snapshot snapshot = Observe(key);
  LK_RETURN_IF_ERROR(Mirror(snapshot));
  const Plan plan = Decide(snapshot);
  if (plan.step == StepKind::kNone) return plan.requeue_after;
  LK_RETURN_IF_ERROR(Act(key, snapshot, plan));
  return Milliseconds(1);
}

}  // namespace lockkeeper::backup
