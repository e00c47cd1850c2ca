// SqliteLedger: the ledger on one SQLite file, held by one process.
//
// Purpose:   Ledger (reconcilers/ports/ledger.h) with WAL and synchronous FULL. Beside PATH stand PATH.lock (flock,
//            with the holder's process id), PATH.ballast (1 MiB, given back by RepairSpace) and, after a migration,
//            PATH.schemaN (the copy that was kept).
// Ownership: owns lock, connection and the records in memory; the lock goes with the process, never to a child.
// Threads:   thread-safe.
// Failure:   open: kBusy names the process that holds it; kUnsupported: a newer lockkeeper wrote it, which one;
//            kCorrupt: path and way out. Nothing is started or stopped by an agent without its ledger.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "reconcilers/ports/ledger.h"

namespace lockkeeper {

struct SqliteLedgerOptions {
  std::string path;
  std::string host;
  std::string machine_id;
  std::string lockkeeper_version;  // written into the file, for the message of an older one
  std::string vfs;                 // tests name a faulty one
  int64_t ballast_bytes = 1 << 20;
  std::vector<std::string> later_migrations;  // tests: SQL that makes schema 2, 3 …
};

// Opens or makes the ledger and takes its lock.
Result<std::unique_ptr<Ledger>> OpenLedger(SqliteLedgerOptions options);

// Reads a ledger that an agent may hold, as it stands now: for `status` and `history` when nobody answers. Changes are
// refused (kForbidden). kNotFound when there is none.
Result<std::unique_ptr<Ledger>> OpenLedgerReadOnly(const std::string& path);

}  // namespace lockkeeper
