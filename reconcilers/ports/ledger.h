// Ledger: the port to the agent's durable record of its host.
//
// Purpose:   intent is persisted here before any effect on the host. One writer process (flock), WAL,
//            synchronous FULL; an acknowledged change survives kill -9 and power loss.
// Ownership: the implementation owns file and lock; callers borrow it and are gone before it.
// Threads:   thread-safe; Update serialises read, change and commit. Listeners are called after the commit, on
//            the committing thread: enqueue only.
// Failure:   kExhausted: the disk is full, nothing changed (the ballast is freed by RepairSpace only);
//            kCorrupt: the file is damaged, with its path and the way out; kBusy: another agent holds it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "reconcilers/ports/records.h"

namespace lockkeeper {

struct LedgerInfo {
  std::string id;        // UUID, made once
  int64_t revision = 0;  // rises with every commit
  int schema_version = 0;
  std::string host;
  std::string machine_id;
  bool created = false;  // this opening made it: nothing was there
  bool operator==(const LedgerInfo&) const = default;
};

class Ledger {
 public:
  virtual ~Ledger() = default;

  virtual LedgerInfo Info() = 0;

  virtual Result<std::vector<ServerKey>> Servers() = 0;
  // kNotFound when there is no record.
  virtual Result<ServerRecord> Get(const ServerKey& key) = 0;
  // Reads (a fresh record when absent), lets `change` edit, commits when the record differs: its revision and the
  // ledger's become the next one. A change of posted_revision alone is committed without moving either revision and
  // without calling listeners: it says what was mirrored, it is nothing to mirror. An error of `change` commits
  // nothing and is answered. `change` must not call the ledger. Answers the record as it now stands.
  virtual Result<ServerRecord> Update(const ServerKey& key, const std::function<Status(ServerRecord&)>& change) = 0;
  // Update, and in the same commit the outcome of a finished operation, for ever.
  virtual Result<ServerRecord> Finish(const ServerKey& key, const OutcomeRecord& outcome,
                                      const std::function<Status(ServerRecord&)>& change) = 0;
  virtual Status Remove(const ServerKey& key) = 0;

  // The newest outcome of an operation by namespace, name and kind; kNotFound when none was ever finished.
  virtual Result<OutcomeRecord> FindOutcome(const std::string& kind, const std::string& ns,
                                            const std::string& name) = 0;
  // Newest first.
  virtual Result<std::vector<OutcomeRecord>> Outcomes(const std::string& server, int limit) = 0;

  // Small documents of other reconcilers (releases, backups, fronts): kind and key to JSON text.
  virtual Result<std::string> GetDocument(const std::string& kind, const std::string& key) = 0;
  virtual Result<std::vector<std::pair<std::string, std::string>>> ListDocuments(const std::string& kind) = 0;
  virtual Status PutDocument(const std::string& kind, const std::string& key, const std::string& json) = 0;
  virtual Status RemoveDocument(const std::string& kind, const std::string& key) = 0;

  // Gives the ballast back to the filesystem, for the writes that mend a full disk. It is laid down again by itself
  // once there is room. kNotFound: there is none to give.
  virtual Status RepairSpace() { return Status(Code::kNotFound, "no ballast"); }

  // Called with the key of each changed record.
  virtual void AddListener(std::function<void(const ServerKey&)> listener) = 0;
};

}  // namespace lockkeeper
