// Store: all objects of the API server in one SQLite file, with a log of changes for watches.
//
// Purpose:   create, read, list at a snapshot, compare-and-swap and delete by key; one revision counter that is
//            every resourceVersion; an event log that watches read. Two processes may open one file: the
//            compare-and-swap runs inside SQLite's write lock, so it holds across them, and each sees the
//            other's changes in its WatchHub.
// Ownership: a Store owns its connections and its hub. A Session or Txn is borrowed for one call.
// Threads:   thread-safe. Writers that wait at the same time share one commit, hence one fsync.
// Failure:   kNotFound, kAlreadyExists, kConflict (revision differs), kExpired (history compacted),
//            kExhausted (disk full, the message names the file), kCorrupt, kBusy (another process kept the
//            write lock for 5 s). An answered Write is on disk: WAL with synchronous FULL.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/sqlite.h"
#include "api/base/status.h"
#include "api/base/sync.h"
#include "api/base/time.h"

namespace lockkeeper::apiserver {

// Where an object lives. `cluster` is "" but for logical clusters; `resource` is "group/plural", for the core
// group "/configmaps"; `ns` is "" for cluster-scoped objects.
struct Key {
  std::string cluster;
  std::string resource;
  std::string ns;
  std::string name;

  auto operator<=>(const Key&) const = default;
};

// One object: compact JSON without metadata.resourceVersion, which is `revision`.
struct Record {
  Key key;
  std::string uid;
  int64_t revision = 0;
  std::string value;
};

enum class EventType { kAdded = 1, kModified = 2, kDeleted = 3 };

// One change. `value` is the object after it (of a deletion: its last state), `prev` before it.
struct StoredEvent {
  int64_t revision = 0;
  EventType type = EventType::kAdded;
  Key key;
  std::string value;
  std::string prev;
};

struct ListQuery {
  std::string cluster;
  std::string resource;
  std::string ns;        // "": all namespaces
  std::string after_ns;  // continue strictly behind this key
  std::string after_name;
  bool has_after = false;
  int64_t at = 0;  // the state at this revision; 0: now
};

// What to write beside the JSON.
struct PutOptions {
  std::string uid;
  std::string labels;               // compact JSON of metadata.labels, "" for none
  std::vector<std::string> owners;  // uids of metadata.ownerReferences
};

// One connection with its prepared statements: reads. All reads of one Session call see one snapshot.
class Session {
 public:
  static Result<std::unique_ptr<Session>> Open(const std::string& path, const sqlite::OpenOptions& options);

  Result<int64_t> Revision();
  // The newest revision whose event is gone; a watch from a lower one has a gap.
  Result<int64_t> Compacted();
  Result<Record> Get(const Key& key);
  // Calls `each` in order of (namespace, name) until it answers false. kExpired when `at` was compacted.
  Status List(const ListQuery& query, const std::function<bool(Record&&, std::string_view labels)>& each);
  // Events with after < revision <= upto, in order, until `each` answers false. "" as resource: all of all
  // clusters; "*" as cluster: all clusters.
  Status Events(int64_t after, int64_t upto, const std::string& cluster, const std::string& resource,
                const std::function<bool(StoredEvent&&)>& each);
  // Objects that name `uid` as an owner.
  Result<std::vector<Key>> OwnedBy(const std::string& uid);
  // Every key with an owner.
  Result<std::vector<Key>> Owned();
  // Where the object with this uid is; nullopt when there is none.
  Result<std::optional<Key>> FindUid(const std::string& uid);
  // Every object with a deletionTimestamp.
  Result<std::vector<Key>> BeingDeleted();
  Result<std::vector<Key>> InNamespace(const std::string& cluster, const std::string& ns);
  // Objects of `resource` (all clusters) last written before `before_ms`, at most `limit`.
  Result<std::vector<Record>> OlderThan(const std::string& resource, int64_t before_ms, int limit);
  // SQLite's counter that changes when another connection commits; cheap.
  Result<int64_t> DataVersion();

  sqlite::Db& db() { return db_; }

 protected:
  friend class Store;
  Result<sqlite::Stmt*> Cached(const char* sql);
  // The rest of a statement whose columns are cluster, resource, namespace, name.
  static Result<std::vector<Key>> ReadKeys(sqlite::Stmt& stmt);
  Status ListAt(const ListQuery& query, const std::function<bool(Record&&, std::string_view)>& each);

  sqlite::Db db_;
  std::map<const char*, sqlite::Stmt> statements_;  // after db_: finalised before it closes
};

// A Session inside the write lock.
class Txn : public Session {
 public:
  // Creates (expected 0; kAlreadyExists) or replaces (kConflict when the revision is another, kNotFound).
  // Answers the new revision.
  Result<int64_t> Put(const Key& key, int64_t expected, std::string_view value, const PutOptions& options);
  // Removes and logs the deletion; answers the deletion's revision. `expected` 0: whatever is there.
  Result<int64_t> Delete(const Key& key, int64_t expected);

 private:
  friend class Store;
  Status ReplaceOwners(const Key& key, const std::vector<std::string>& owners);
  Result<int64_t> NextRevision();
  Status AppendEvent(int64_t revision, EventType type, const Key& key, const Record* prev);
  int64_t now_ms_ = 0;
};

struct StoreOptions {
  std::string path;
  std::string vfs;               // tests name a faulty one
  const Clock* clock = nullptr;  // default: the system's
  int max_readers = 4;           // connections for reads, opened when needed
};

// How much history watches can resume from.
struct Retention {
  int64_t max_events = 10000;
  int64_t min_events = 1000;  // kept whatever their age
  Duration max_age = Seconds(600);
};

class WatchHub;

class Store {
 public:
  // Makes the file when absent. Refuses a damaged one (kCorrupt) and one of a newer schema (kUnsupported);
  // both messages name the file and the way out.
  static Result<std::unique_ptr<Store>> Open(StoreOptions options);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // Runs `body` in a write transaction, maybe on the thread of another writer, maybe in one commit with
  // others. Ok means on disk; an error of `body` rolls back what it did and nothing else.
  Status Write(const std::function<Status(Txn&)>& body) LK_EXCLUDES(mutex_);
  // Runs `body` on a read connection inside one snapshot.
  Status Read(const std::function<Status(Session&)>& body) LK_EXCLUDES(mutex_);

  Result<Record> Get(const Key& key);
  Result<int64_t> Revision();
  // Deletes history that `retention` does not ask for, in small transactions.
  Status Compact(const Retention& retention);
  const std::string& path() const { return options_.path; }
  // SQLite pages of the file in use, in bytes.
  Result<int64_t> SizeBytes();

  WatchHub& hub() { return *hub_; }

 private:
  struct Waiting;
  explicit Store(StoreOptions options);
  Status Init();
  Status Upgrade();
  void Commit(const std::vector<Waiting*>& batch);
  Status Explain(Status status) const;

  const StoreOptions options_;
  std::unique_ptr<Txn> writer_;  // used by the thread that set writing_
  std::unique_ptr<WatchHub> hub_;

  Mutex mutex_;
  CondVar changed_;
  bool writing_ LK_GUARDED_BY(mutex_) = false;
  std::vector<Waiting*> waiting_ LK_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Session>> idle_readers_ LK_GUARDED_BY(mutex_);
  int readers_ LK_GUARDED_BY(mutex_) = 0;
};

}  // namespace lockkeeper::apiserver
