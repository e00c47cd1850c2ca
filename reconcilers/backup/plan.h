// Plan of one StoreBackup on this host. Pure.
//
// Purpose:   document first, then one snapshot, then its mirror; old ones beyond spec.backup.retain go, newest kept. A
//            backup that failed stays failed: the operation that wanted it has been told.
// Threads:   pure. Failure: total.
#pragma once

#include <string>
#include <vector>

#include "api/types/backup.h"
#include "reconcilers/ports/documents.h"
#include "reconcilers/ports/fact.h"

namespace lockkeeper::backup {

struct Snapshot {
  Fact<BackupDocument> document;
  Fact<StoreBackup> object;
  Fact<ServerRecord> server;
  std::string host;
  std::vector<BackupDocument> of_server;  // all Ready ones of the same Server, any order
  bool operator==(const Snapshot&) const = default;
};

enum class StepKind { kNone, kAdopt, kTake, kCreateObject, kPrune };

struct Plan {
  StepKind step = StepKind::kNone;
  std::string message;
  std::vector<BackupDocument> prune;  // oldest first
  Duration requeue_after{};
  bool operator==(const Plan&) const = default;
};

Plan Decide(const Snapshot& snapshot);
StoreBackupStatus Summarize(const Snapshot& snapshot, const Now& now);

}  // namespace lockkeeper::backup
