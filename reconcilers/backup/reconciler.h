// StoreBackup reconciler: takes the snapshots that are wanted of this host's stores, keeps the newest.
//
// Ownership: borrows all; they outlive it.
// Threads:   one pass per key at a time; a snapshot blocks its worker for as long as it takes.
// Failure:   Status of what failed on the way; a snapshot that fails is a document with a reason.
#pragma once

#include <functional>
#include <string>

#include "controller/api.h"
#include "reconcilers/backup/plan.h"
#include "reconcilers/ports/ledger.h"

namespace lockkeeper::backup {

struct Dependencies {
  Api& api;
  const Clock& clock;
  Ledger& ledger;
  Snapshotter& snapshotter;  // driver SQLite
  std::string host;
  std::string data_dir;
  std::function<void(const ServerKey&)> changed;
};

class Reconciler {
 public:
  explicit Reconciler(Dependencies deps) : deps_(std::move(deps)) {}
  Result<Duration> Reconcile(const ObjectKey& key);

 private:
  Snapshot Observe(const ObjectKey& key);
  Status Act(const ObjectKey& key, const Snapshot& snapshot, const Plan& plan);
  Status Take(BackupDocument document, const ServerRecord& server);
  Result<SnapshotInfo> Snap(const BackupDocument& document, const ServerRecord& server);
  Status Put(const BackupDocument& document);
  Status Mirror(const Snapshot& snapshot);

  Dependencies deps_;
};

}  // namespace lockkeeper::backup
