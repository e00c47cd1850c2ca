#include "reconcilers/ledger/sqlite_ledger.h"

#include <map>
#include <utility>

#include "api/base/file.h"
#include "api/base/id.h"
#include "api/base/log.h"
#include "api/base/sync.h"
#include "reconcilers/ledger/ledger_file.h"
#include "reconcilers/ledger/records_json.h"

namespace lockkeeper {
namespace {

using ledger_internal::GetMeta;
using ledger_internal::PutMeta;

constexpr Duration kBallastPause = Seconds(60);  // between two attempts to lay it down again

class SqliteLedger final : public Ledger {
 public:
  SqliteLedger(SqliteLedgerOptions options, bool read_only) : options_(std::move(options)), read_only_(read_only) {}

  Status Open() {
    const MutexLock lock(mutex_);
    const bool was_there = PathExists(options_.path);
    if (read_only_) {
      if (!was_there) return Status(Code::kNotFound, "there is no ledger " + options_.path);
    } else {
      LK_RETURN_IF_ERROR(MakeDirs(DirName(options_.path), 0700));
      LK_ASSIGN_OR_RETURN(lock_file_, ledger_internal::TakeLock(options_.path));
    }
    sqlite::OpenOptions open;
    open.synchronous = sqlite::Synchronous::kFull;
    open.vfs = options_.vfs;
    open.read_only = read_only_;
    Result<sqlite::Db> db = sqlite::Db::Open(options_.path, open);
    if (!db.ok()) return ledger_internal::ExplainDamage(options_.path, db.status());
    db_ = std::move(*db);
    LK_RETURN_IF_ERROR(ledger_internal::CheckFile(db_, options_.path));
    if (!read_only_) {
      LK_RETURN_IF_ERROR(ledger_internal::Migrate(db_, options_.path, options_.lockkeeper_version,
                                                  options_.later_migrations, [this] { return Claim(); }));
      if (!was_there) LK_RETURN_IF_ERROR(FsyncDir(DirName(options_.path)));
      TryBallast();
    }
    return ledger_internal::ExplainDamage(options_.path, Load());
  }

  LedgerInfo Info() override {
    const MutexLock lock(mutex_);
    return info_;
  }

  Result<std::vector<ServerKey>> Servers() override {
    const MutexLock lock(mutex_);
    std::vector<ServerKey> keys;
    for (const auto& [key, record] : records_) keys.push_back(key);
    return keys;
  }

  Result<ServerRecord> Get(const ServerKey& key) override {
    const MutexLock lock(mutex_);
    const auto it = records_.find(key);
    if (it == records_.end()) return Status(Code::kNotFound, "the ledger has no Server " + key.ToString());
    return it->second;
  }

  Result<ServerRecord> Update(const ServerKey& key, const std::function<Status(ServerRecord&)>& change) override {
    return Change(key, nullptr, change);
  }

  Result<ServerRecord> Finish(const ServerKey& key, const OutcomeRecord& outcome,
                              const std::function<Status(ServerRecord&)>& change) override {
    return Change(key, &outcome, change);
  }

  Status Remove(const ServerKey& key) override {
    LK_RETURN_IF_ERROR(Writable());
    {
      const MutexLock lock(mutex_);
      if (records_.count(key) == 0) return Status::Ok();
      LK_RETURN_IF_ERROR(Commit([&](sqlite::Db& db) -> Status {
        LK_ASSIGN_OR_RETURN(sqlite::Stmt remove, db.Prepare("DELETE FROM servers WHERE ns = ?1 AND name = ?2"));
        return remove.Bind(1, key.ns).Bind(2, key.name).Run();
      }));
      records_.erase(key);
    }
    Notify(key);
    return Status::Ok();
  }

  Result<OutcomeRecord> FindOutcome(const std::string& kind, const std::string& ns, const std::string& name) override {
    const MutexLock lock(mutex_);
    LK_ASSIGN_OR_RETURN(sqlite::Stmt find,
                        db_.Prepare("SELECT json FROM outcomes WHERE kind = ?1 AND ns = ?2 AND name = ?3 "
                                    "ORDER BY seq DESC LIMIT 1"));
    LK_ASSIGN_OR_RETURN(const bool found, find.Bind(1, kind).Bind(2, ns).Bind(3, name).Step());
    if (!found) return Status(Code::kNotFound, "no " + kind + " " + ns + "/" + name + " was ever finished here");
    return ParseOutcome(find.Text(0));
  }

  Result<std::vector<OutcomeRecord>> Outcomes(const std::string& server, int limit) override {
    const MutexLock lock(mutex_);
    LK_ASSIGN_OR_RETURN(sqlite::Stmt list, db_.Prepare("SELECT json FROM outcomes WHERE ?1 = '' OR server = ?1 "
                                                       "ORDER BY seq DESC LIMIT ?2"));
    list.Bind(1, server).Bind(2, static_cast<int64_t>(limit <= 0 ? -1 : limit));
    std::vector<OutcomeRecord> out;
    while (true) {
      LK_ASSIGN_OR_RETURN(const bool more, list.Step());
      if (!more) return out;
      LK_ASSIGN_OR_RETURN(OutcomeRecord outcome, ParseOutcome(list.Text(0)));
      out.push_back(std::move(outcome));
    }
  }

  Result<std::string> GetDocument(const std::string& kind, const std::string& key) override {
    const MutexLock lock(mutex_);
    LK_ASSIGN_OR_RETURN(sqlite::Stmt get, db_.Prepare("SELECT json FROM documents WHERE kind = ?1 AND key = ?2"));
    LK_ASSIGN_OR_RETURN(const bool found, get.Bind(1, kind).Bind(2, key).Step());
    if (!found) return Status(Code::kNotFound, "the ledger has no document " + kind + " " + key);
    return get.Text(0);
  }

  Result<std::vector<std::pair<std::string, std::string>>> ListDocuments(const std::string& kind) override {
    const MutexLock lock(mutex_);
    LK_ASSIGN_OR_RETURN(sqlite::Stmt list, db_.Prepare("SELECT key, json FROM documents WHERE kind = ?1 ORDER BY key"));
    list.Bind(1, kind);
    std::vector<std::pair<std::string, std::string>> out;
    while (true) {
      LK_ASSIGN_OR_RETURN(const bool more, list.Step());
      if (!more) return out;
      out.emplace_back(list.Text(0), list.Text(1));
    }
  }

  Status PutDocument(const std::string& kind, const std::string& key, const std::string& json) override {
    LK_RETURN_IF_ERROR(Writable());
    const Result<std::string> old = GetDocument(kind, key);
    if (old.ok() && *old == json) return Status::Ok();
    if (!old.ok() && old.code() != Code::kNotFound) return old.status();
    const MutexLock lock(mutex_);
    return Commit([&](sqlite::Db& db) -> Status {
      LK_ASSIGN_OR_RETURN(sqlite::Stmt put, db.Prepare("INSERT INTO documents (kind, key, json) VALUES (?1, ?2, ?3) "
                                                       "ON CONFLICT (kind, key) DO UPDATE SET json = excluded.json"));
      return put.Bind(1, kind).Bind(2, key).Bind(3, json).Run();
    });
  }

  Status RemoveDocument(const std::string& kind, const std::string& key) override {
    LK_RETURN_IF_ERROR(Writable());
    if (GetDocument(kind, key).code() == Code::kNotFound) return Status::Ok();
    const MutexLock lock(mutex_);
    return Commit([&](sqlite::Db& db) -> Status {
      LK_ASSIGN_OR_RETURN(sqlite::Stmt remove, db.Prepare("DELETE FROM documents WHERE kind = ?1 AND key = ?2"));
      return remove.Bind(1, kind).Bind(2, key).Run();
    });
  }

  Status RepairSpace() override {
    LK_RETURN_IF_ERROR(Writable());
    const MutexLock lock(mutex_);
    if (!PathExists(options_.path + ".ballast")) {
      return Status(Code::kNotFound, "the ballast of " + options_.path + " was given back already");
    }
    ballast_try_ = SystemClock().Read().boot;
    LogWarn("the disk is full: the ledger's ballast is given back for repair", {{"ledger", options_.path}});
    return ledger_internal::DropBallast(options_.path);
  }

  void AddListener(std::function<void(const ServerKey&)> listener) override {
    const MutexLock lock(mutex_);
    listeners_.push_back(std::move(listener));
  }

 private:
  Status Writable() const {
    if (!read_only_) return Status::Ok();
    return Status(Code::kForbidden, "the ledger " + options_.path + " is open for reading only: its agent writes it");
  }

  // First opening: the identity that stands in Server.status, the heartbeat, units and fronts.
  Status Claim() LK_NO_TSA {
    info_.created = true;
    LK_RETURN_IF_ERROR(PutMeta(db_, "id", NewUuid()));
    LK_RETURN_IF_ERROR(PutMeta(db_, "host", options_.host));
    LK_RETURN_IF_ERROR(PutMeta(db_, "machine_id", options_.machine_id));
    return PutMeta(db_, "revision", "0");
  }

  // A record that cannot be read stops the opening: nothing may be started that it might speak of.
  Status Load() LK_REQUIRES(mutex_) {
    LK_ASSIGN_OR_RETURN(const ledger_internal::Written written, ledger_internal::ReadWritten(db_));
    if (written.schema == 0) return Status(Code::kNotFound, "the ledger " + options_.path + " is empty");
    info_.schema_version = written.schema;
    LK_ASSIGN_OR_RETURN(info_.id, GetMeta(db_, "id"));
    LK_ASSIGN_OR_RETURN(info_.host, GetMeta(db_, "host"));
    LK_ASSIGN_OR_RETURN(info_.machine_id, GetMeta(db_, "machine_id"));
    LK_ASSIGN_OR_RETURN(const std::string revision, GetMeta(db_, "revision"));
    info_.revision = strtoll(revision.c_str(), nullptr, 10);
    LK_ASSIGN_OR_RETURN(sqlite::Stmt list, db_.Prepare("SELECT ns, name, json FROM servers"));
    while (true) {
      LK_ASSIGN_OR_RETURN(const bool more, list.Step());
      if (!more) return Status::Ok();
      const ServerKey key{list.Text(0), list.Text(1)};
      const Result<Json> json = Json::Parse(list.TextView(2));
      if (!json.ok()) return Status(Code::kCorrupt, "record of " + key.ToString() + ": " + json.status().message());
      Result<ServerRecord> record = RecordFromJson(*json);
      if (!record.ok()) return Status(Code::kCorrupt, "record of " + key.ToString() + ": " + record.status().message());
      records_[key] = std::move(*record);
    }
  }

  static Result<OutcomeRecord> ParseOutcome(const std::string& text) {
    LK_ASSIGN_OR_RETURN(const Json json, Json::Parse(text));
    return OutcomeFromJson(json);
  }

  Result<ServerRecord> Change(const ServerKey& key, const OutcomeRecord* outcome,
                              const std::function<Status(ServerRecord&)>& change) {
    LK_RETURN_IF_ERROR(Writable());
    ServerRecord next;
    bool mirrored_only = false;
    {
      const MutexLock lock(mutex_);
      const auto it = records_.find(key);
      if (it != records_.end()) next = it->second;
      next.key = key;
      LK_RETURN_IF_ERROR(change(next));
      if (it != records_.end() && outcome == nullptr) {
        if (next == it->second) return next;
        ServerRecord posted = it->second;
        posted.posted_revision = next.posted_revision;
        mirrored_only = next == posted;
      }
      if (!mirrored_only) next.revision = info_.revision + 1;
      LK_RETURN_IF_ERROR(Commit([&](sqlite::Db& db) { return Write(db, next, outcome); }, !mirrored_only));
      records_[key] = next;
    }
    if (!mirrored_only) Notify(key);
    return next;
  }

  static Status Write(sqlite::Db& db, const ServerRecord& record, const OutcomeRecord* outcome) {
    LK_ASSIGN_OR_RETURN(sqlite::Stmt put, db.Prepare("INSERT INTO servers (ns, name, json) VALUES (?1, ?2, ?3) "
                                                     "ON CONFLICT (ns, name) DO UPDATE SET json = excluded.json"));
    LK_RETURN_IF_ERROR(put.Bind(1, record.key.ns).Bind(2, record.key.name).Bind(3, RecordToJson(record).Dump()).Run());
    if (outcome == nullptr) return Status::Ok();
    LK_ASSIGN_OR_RETURN(sqlite::Stmt add, db.Prepare("INSERT INTO outcomes (kind, ns, name, server, json) "
                                                     "VALUES (?1, ?2, ?3, ?4, ?5)"));
    return add.Bind(1, outcome->kind)
        .Bind(2, outcome->ns)
        .Bind(3, outcome->name)
        .Bind(4, outcome->server)
        .Bind(5, OutcomeToJson(*outcome).Dump())
        .Run();
  }

  // `revision` 0: it stays as it is.
  static Status CommitOn(sqlite::Db& db, const std::function<Status(sqlite::Db&)>& body, int64_t revision) {
    return db.Transaction([&]() -> Status {
      LK_RETURN_IF_ERROR(body(db));
      return revision != 0 ? PutMeta(db, "revision", std::to_string(revision)) : Status::Ok();
    });
  }

  // One transaction that also moves the ledger's revision.
  Status Commit(const std::function<Status(sqlite::Db&)>& body, bool moves_revision = true) LK_REQUIRES(mutex_) {
    const int64_t next = info_.revision + (moves_revision ? 1 : 0);
    const Status status = CommitOn(db_, body, moves_revision ? next : 0);
    if (!status.ok()) {
      return ledger_internal::ExplainDamage(options_.path, status.Annotate("write the ledger " + options_.path));
    }
    info_.revision = next;
    TryBallast();
    return status;
  }

  void TryBallast() LK_REQUIRES(mutex_) {
    const Duration now = SystemClock().Read().boot;
    if (ballast_try_ != Duration{} && now - ballast_try_ < kBallastPause) return;
    ballast_try_ = now;
    const Status laid = ledger_internal::LayBallast(options_.path, options_.ballast_bytes);
    if (!laid.ok()) LogWarn("the ledger has no ballast", {{"ledger", options_.path}, {"why", laid.message()}});
  }

  void Notify(const ServerKey& key) {
    std::vector<std::function<void(const ServerKey&)>> listeners;
    {
      const MutexLock lock(mutex_);
      listeners = listeners_;
    }
    for (const auto& listener : listeners) listener(key);
  }

  const SqliteLedgerOptions options_;
  const bool read_only_;
  Mutex mutex_;
  UniqueFd lock_file_;  // before db_: released after it is closed
  sqlite::Db db_ LK_GUARDED_BY(mutex_);
  LedgerInfo info_ LK_GUARDED_BY(mutex_);
  std::map<ServerKey, ServerRecord> records_ LK_GUARDED_BY(mutex_);
  std::vector<std::function<void(const ServerKey&)>> listeners_ LK_GUARDED_BY(mutex_);
  Duration ballast_try_ LK_GUARDED_BY(mutex_){};
};

Result<std::unique_ptr<Ledger>> Open(SqliteLedgerOptions options, bool read_only) {
  auto ledger = std::make_unique<SqliteLedger>(std::move(options), read_only);
  LK_RETURN_IF_ERROR(ledger->Open());
  return std::unique_ptr<Ledger>(std::move(ledger));
}

}  // namespace

Result<std::unique_ptr<Ledger>> OpenLedger(SqliteLedgerOptions options) { return Open(std::move(options), false); }

Result<std::unique_ptr<Ledger>> OpenLedgerReadOnly(const std::string& path) {
  SqliteLedgerOptions options;
  options.path = path;
  return Open(std::move(options), true);
}

}  // namespace lockkeeper
