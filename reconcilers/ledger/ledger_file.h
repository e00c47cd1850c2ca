// The files of a ledger: lock, schema and its migrations, ballast, and what is said of a damaged one.
//
// Ownership: LedgerLock owns its descriptor. Threads: one at a time. Failure: as sqlite_ledger.h says.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "api/base/sqlite.h"
#include "api/base/status.h"
#include "api/base/unique_fd.h"
#include "reconcilers/ports/ledger.h"

namespace lockkeeper::ledger_internal {

// flock on PATH.lock, closed on exec. kBusy names the holder.
Result<UniqueFd> TakeLock(const std::string& path);

// kCorrupt with the way out; other errors pass.
Status ExplainDamage(const std::string& path, const Status& status);

// Whether the file passes SQLite's own check.
Status CheckFile(sqlite::Db& db, const std::string& path);

// Schema version, 0 for a file without one, and who wrote it.
struct Written {
  int schema = 0;
  std::string by;
};
Result<Written> ReadWritten(sqlite::Db& db);

// Brings the file to the newest schema, a copy first when it held an older one. kUnsupported for a newer one.
// `created` runs in the same transaction as the first schema.
Status Migrate(sqlite::Db& db, const std::string& path, const std::string& lockkeeper_version,
               const std::vector<std::string>& later, const std::function<Status()>& created);

Result<std::string> GetMeta(sqlite::Db& db, const std::string& key);
Status PutMeta(sqlite::Db& db, const std::string& key, const std::string& value);

// Lays PATH.ballast down when the filesystem has ten times its size left.
Status LayBallast(const std::string& path, int64_t bytes);
Status DropBallast(const std::string& path);

}  // namespace lockkeeper::ledger_internal
