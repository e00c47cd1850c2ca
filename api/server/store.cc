#include "api/server/store.h"

#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "api/server/watch_hub.h"

namespace lockkeeper::apiserver {
namespace {

constexpr int kSchemaVersion = 1;
constexpr int kApplicationId = 0x4c4b5354;  // "LKST"
// Up to this size a start reads the whole file for damage; SQLite checks some 200 MB a second.
constexpr int64_t kQuickCheckBytes = 16 << 20;
constexpr int kCompactStep = 500;

constexpr const char* kSchema = R"sql(
CREATE TABLE counter(id INTEGER PRIMARY KEY CHECK(id=1), revision INTEGER NOT NULL, compacted INTEGER NOT NULL);
INSERT INTO counter VALUES(1, 1, 0);
CREATE TABLE objects(
  cluster TEXT NOT NULL, resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
  uid TEXT NOT NULL, revision INTEGER NOT NULL, updated_ms INTEGER NOT NULL,
  labels TEXT NOT NULL, owners TEXT NOT NULL, value TEXT NOT NULL,
  UNIQUE(cluster, resource, namespace, name));
CREATE INDEX objects_uid ON objects(uid);
CREATE TABLE events(
  revision INTEGER PRIMARY KEY, type INTEGER NOT NULL,
  cluster TEXT NOT NULL, resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
  at_ms INTEGER NOT NULL, prev_revision INTEGER, prev TEXT);
CREATE INDEX events_prev ON events(prev_revision) WHERE prev_revision IS NOT NULL;
CREATE TABLE owners(
  cluster TEXT NOT NULL, resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, owner TEXT NOT NULL,
  PRIMARY KEY(cluster, resource, namespace, name, owner)) WITHOUT ROWID;
CREATE INDEX owners_owner ON owners(owner);
)sql";

// SQLite's own busy handler sleeps up to 100 ms a time; two servers on one store take turns of some
// milliseconds, so short sleeps keep both quick. 5 s in all, as the wrapper's default.
int BusyHandler(void*, int tries) {
  const int sleep_us = tries < 20 ? 500 : 2000;
  if (tries > 2500) return 0;
  ::usleep(static_cast<useconds_t>(sleep_us));
  return 1;
}

sqlite::OpenOptions ConnectionOptions(const StoreOptions& options, int64_t cache_kib) {
  sqlite::OpenOptions open;
  open.synchronous = sqlite::Synchronous::kFull;
  open.cache_kib = cache_kib;
  open.vfs = options.vfs;
  return open;
}

}  // namespace

struct Store::Waiting {
  const std::function<Status(Txn&)>* body;
  Status status;
  bool done = false;
};

Store::Store(StoreOptions options) : options_(std::move(options)) {}

Store::~Store() {
  if (hub_) hub_->Stop();
}

Result<std::unique_ptr<Store>> Store::Open(StoreOptions options) {
  if (options.clock == nullptr) options.clock = &SystemClock();
  std::unique_ptr<Store> store(new Store(std::move(options)));
  Status status;
  // Two processes that make one store at once may find the change to WAL locked; SQLite then answers busy
  // without waiting.
  for (int tries = 0; tries < 50; ++tries) {
    status = store->Init();
    if (status.code() != Code::kBusy) break;
    ::usleep(20'000);
  }
  if (!status.ok()) return store->Explain(std::move(status)).Annotate("open the store");
  return store;
}

Status Store::Init() {
  writer_ = std::make_unique<Txn>();
  LK_ASSIGN_OR_RETURN(writer_->db_, sqlite::Db::Open(options_.path, ConnectionOptions(options_, 512)));
  sqlite3_busy_handler(writer_->db_.handle(), BusyHandler, nullptr);
  LK_RETURN_IF_ERROR(Upgrade());
  struct stat file {};
  if (::stat(options_.path.c_str(), &file) == 0 && file.st_size <= kQuickCheckBytes) {
    LK_ASSIGN_OR_RETURN(sqlite::Stmt check, writer_->db_.Prepare("PRAGMA quick_check(1)"));
    LK_ASSIGN_OR_RETURN(bool row, check.Step());
    if (row && check.TextView(0) != "ok") return {Code::kCorrupt, check.Text(0)};
  }
  LK_ASSIGN_OR_RETURN(const int64_t revision, writer_->Revision());
  hub_ = std::make_unique<WatchHub>(options_.path, ConnectionOptions(options_, 128));
  return hub_->Start(revision);
}

Status Store::Upgrade() {
  return writer_->db_.Transaction([&]() -> Status {
    int64_t version = 0;
    int64_t application = 0;
    int64_t tables = 0;
    {
      LK_ASSIGN_OR_RETURN(sqlite::Stmt stmt,
                          writer_->db_.Prepare("SELECT (SELECT user_version FROM pragma_user_version), (SELECT "
                                               "application_id FROM pragma_application_id), (SELECT count(*) FROM "
                                               "sqlite_master)"));
      LK_ASSIGN_OR_RETURN(bool row, stmt.Step());
      if (!row) return {Code::kCorrupt, "the schema version cannot be read"};
      version = stmt.Int(0);
      application = stmt.Int(1);
      tables = stmt.Int(2);
    }
    if (tables != 0 && application != kApplicationId) {
      return {Code::kUnsupported, options_.path + " is an SQLite file of another program; name another data directory"};
    }
    if (version > kSchemaVersion) {
      return {Code::kUnsupported, options_.path + " has schema " + std::to_string(version) +
                                      ", made by a newer lockkeeper; this one reads up to " +
                                      std::to_string(kSchemaVersion) +
                                      ": start the newer one, or put back a copy from before it"};
    }
    if (version == kSchemaVersion) return Status::Ok();
    return writer_->db_.Exec(std::string(kSchema) + "PRAGMA application_id=" + std::to_string(kApplicationId) +
                             "; PRAGMA user_version=" + std::to_string(kSchemaVersion) + ";");
  });
}

Status Store::Explain(Status status) const {
  switch (status.code()) {
    case Code::kExhausted:
      return {status.code(), "the store " + options_.path + " cannot grow (" + status.message() +
                                 "): nothing was changed; free space on its file system and try again"};
    case Code::kCorrupt:
      return {
          status.code(),
          "the store " + options_.path + " is damaged (" + status.message() +
              "): nothing was changed; move it and its -wal and -shm files away, then put back a copy of it, or start "
              "with an empty one and apply the manifests again (running servers are not touched by that)"};
    case Code::kBusy:
      return {status.code(),
              "the store " + options_.path + " was locked by another process for 5 s (" + status.message() + ")"};
    case Code::kForbidden:
    case Code::kUnavailable:
      return {status.code(), "the store " + options_.path + " cannot be used: " + status.message()};
    default: return status;
  }
}

Status Store::Write(const std::function<Status(Txn&)>& body) {
  Waiting self{&body, {}, false};
  std::vector<Waiting*> batch;
  {
    MutexLock lock(mutex_);
    waiting_.push_back(&self);
    while (!self.done && writing_) changed_.Wait(mutex_);
    if (self.done) return self.status;
    // Nobody writes: this thread commits for all that wait by now, itself included.
    writing_ = true;
    batch.swap(waiting_);
  }
  Commit(batch);
  MutexLock lock(mutex_);
  writing_ = false;
  for (Waiting* waiting : batch) waiting->done = true;
  changed_.NotifyAll();
  return self.status;
}

void Store::Commit(const std::vector<Waiting*>& batch) {
  Txn& txn = *writer_;
  txn.now_ms_ =
      std::chrono::duration_cast<std::chrono::milliseconds>(options_.clock->Read().wall.time_since_epoch()).count();
  int64_t before = 0;
  int64_t after = 0;
  const Status committed = txn.db_.Transaction([&]() -> Status {
    LK_ASSIGN_OR_RETURN(before, txn.Revision());
    for (Waiting* waiting : batch) {
      LK_RETURN_IF_ERROR(txn.db_.Exec("SAVEPOINT one"));
      waiting->status = (*waiting->body)(txn);
      if (!waiting->status.ok()) {
        // A full disk may have rolled back the whole transaction; then the savepoint is gone with it.
        if (sqlite3_get_autocommit(txn.db_.handle()) != 0) return waiting->status;
        LK_RETURN_IF_ERROR(txn.db_.Exec("ROLLBACK TO one"));
      }
      LK_RETURN_IF_ERROR(txn.db_.Exec("RELEASE one"));
    }
    LK_ASSIGN_OR_RETURN(after, txn.Revision());
    return Status::Ok();
  });
  for (Waiting* waiting : batch) {
    if (waiting->status.ok() && !committed.ok()) waiting->status = committed;
    if (!waiting->status.ok()) waiting->status = Explain(std::move(waiting->status));
  }
  if (committed.ok() && after != before) hub_->Notify();
}

Status Store::Read(const std::function<Status(Session&)>& body) {
  std::unique_ptr<Session> session;
  {
    MutexLock lock(mutex_);
    while (idle_readers_.empty() && readers_ >= options_.max_readers) changed_.Wait(mutex_);
    if (!idle_readers_.empty()) {
      session = std::move(idle_readers_.back());
      idle_readers_.pop_back();
    } else {
      ++readers_;
    }
  }
  Status status;
  if (!session) {
    Result<std::unique_ptr<Session>> opened = Session::Open(options_.path, ConnectionOptions(options_, 256));
    if (opened.ok()) {
      session = std::move(*opened);
      sqlite3_busy_handler(session->db_.handle(), BusyHandler, nullptr);
    } else {
      status = opened.status();
    }
  }
  if (session) {
    status = session->db_.Exec("BEGIN");
    if (status.ok()) {
      status = body(*session);
      Status ended = session->db_.Exec("COMMIT");
      if (status.ok()) status = ended;
    }
  }
  {
    MutexLock lock(mutex_);
    if (session) {
      idle_readers_.push_back(std::move(session));
    } else {
      --readers_;
    }
    changed_.NotifyAll();
  }
  return Explain(std::move(status));
}

Result<Record> Store::Get(const Key& key) {
  Record record;
  LK_RETURN_IF_ERROR(Read([&](Session& session) -> Status {
    LK_ASSIGN_OR_RETURN(record, session.Get(key));
    return Status::Ok();
  }));
  return record;
}

Result<int64_t> Store::Revision() {
  int64_t revision = 0;
  LK_RETURN_IF_ERROR(Read([&](Session& session) -> Status {
    LK_ASSIGN_OR_RETURN(revision, session.Revision());
    return Status::Ok();
  }));
  return revision;
}

Result<int64_t> Store::SizeBytes() {
  int64_t bytes = 0;
  LK_RETURN_IF_ERROR(Read([&](Session& session) -> Status {
    LK_ASSIGN_OR_RETURN(sqlite::Stmt stmt,
                        session.db().Prepare("SELECT (SELECT page_count FROM pragma_page_count)*(SELECT page_size FROM "
                                             "pragma_page_size)"));
    LK_ASSIGN_OR_RETURN(bool row, stmt.Step());
    if (row) bytes = stmt.Int(0);
    return Status::Ok();
  }));
  return bytes;
}

Status Store::Compact(const Retention& retention) {
  const int64_t old_ms = std::chrono::duration_cast<std::chrono::milliseconds>(
                             (options_.clock->Read().wall - retention.max_age).time_since_epoch())
                             .count();
  // The newest revision to forget: older than the newest max_events, or older than max_age and than the
  // newest min_events.
  int64_t upto = 0;
  LK_RETURN_IF_ERROR(Read([&](Session& session) -> Status {
    LK_ASSIGN_OR_RETURN(
        sqlite::Stmt stmt,
        session.db().Prepare(
            "SELECT max(coalesce((SELECT revision FROM events ORDER BY revision DESC LIMIT 1 OFFSET ?1), 0), "
            "min(coalesce((SELECT revision FROM events ORDER BY revision DESC LIMIT 1 OFFSET ?2), 0), "
            "coalesce((SELECT max(revision) FROM events WHERE at_ms<?3), 0)))"));
    stmt.Bind(1, retention.max_events).Bind(2, retention.min_events).Bind(3, old_ms);
    LK_ASSIGN_OR_RETURN(bool row, stmt.Step());
    if (row) upto = stmt.Int(0);
    return Status::Ok();
  }));
  bool more = upto > 0;
  while (more) {
    const Status written = Write([&](Txn& txn) -> Status {
      LK_ASSIGN_OR_RETURN(sqlite::Stmt last,
                          txn.db().Prepare("SELECT max(revision), count(*) FROM (SELECT revision FROM events WHERE "
                                           "revision<=?1 ORDER BY revision LIMIT ?2)"));
      last.Bind(1, upto).Bind(2, static_cast<int64_t>(kCompactStep));
      LK_ASSIGN_OR_RETURN(bool row, last.Step());
      const int64_t step = row ? last.Int(0) : 0;
      more = row && last.Int(1) == kCompactStep;
      if (step == 0) return Status::Ok();
      LK_ASSIGN_OR_RETURN(sqlite::Stmt drop, txn.db().Prepare("DELETE FROM events WHERE revision<=?1"));
      LK_RETURN_IF_ERROR(drop.Bind(1, step).Run());
      LK_ASSIGN_OR_RETURN(sqlite::Stmt mark, txn.db().Prepare("UPDATE counter SET compacted=max(compacted, ?1)"));
      return mark.Bind(1, step).Run();
    });
    if (!written.ok()) return written;
  }
  return Status::Ok();
}

}  // namespace lockkeeper::apiserver
