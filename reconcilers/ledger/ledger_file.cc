#include "reconcilers/ledger/ledger_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <cstdlib>

#include "api/base/file.h"

namespace lockkeeper::ledger_internal {
namespace {

// Schema 1. Later ones are appended as migrations that only add; none is ever edited.
constexpr char kSchema1[] = R"(
CREATE TABLE servers (ns TEXT NOT NULL, name TEXT NOT NULL, json TEXT NOT NULL, PRIMARY KEY (ns, name)) WITHOUT ROWID;
CREATE TABLE outcomes (seq INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, ns TEXT NOT NULL, name TEXT NOT NULL,
                       server TEXT NOT NULL, json TEXT NOT NULL);
CREATE INDEX outcomes_by_name ON outcomes (kind, ns, name, seq);
CREATE INDEX outcomes_by_server ON outcomes (server, seq);
CREATE TABLE documents (kind TEXT NOT NULL, key TEXT NOT NULL, json TEXT NOT NULL, PRIMARY KEY (kind, key))
  WITHOUT ROWID;
)";

std::string BallastPath(const std::string& path) { return path + ".ballast"; }

}  // namespace

Result<UniqueFd> TakeLock(const std::string& path) {
  const std::string lock_path = path + ".lock";
  UniqueFd fd(open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return ErrnoStatus("open", lock_path, errno);
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return ErrnoStatus("lock", lock_path, errno);
    const std::string holder = ReadFile(lock_path).value_or("");
    return Status(Code::kBusy, "the ledger " + path + " is held by the agent with process id " +
                                   (holder.empty() ? "unknown" : holder.substr(0, holder.find('\n'))) +
                                   ": stop that one first, or give this one a data directory of its own");
  }
  const std::string self = std::to_string(getpid()) + "\n";
  // For the message of the next one; the lock itself holds without it, on a full disk for instance.
  if (ftruncate(fd.get(), 0) == 0 && pwrite(fd.get(), self.data(), self.size(), 0) < 0) errno = 0;
  return fd;
}

Status ExplainDamage(const std::string& path, const Status& status) {
  if (status.code() != Code::kCorrupt) return status;
  return Status(
      Code::kCorrupt,
      "the ledger " + path + " is damaged (" + status.message() +
          "). Nothing was started or stopped, what runs keeps running. Way out: put a copy back (a file " + path +
          ".schemaN, or one of your backups, as " + path + ", without " + path +
          "-wal and -shm); or, only if no slot of this host runs any more, move the file away and start anew");
}

Status CheckFile(sqlite::Db& db, const std::string& path) {
  Result<sqlite::Stmt> check = db.Prepare("PRAGMA quick_check(1)");
  if (!check.ok()) return ExplainDamage(path, check.status());
  Result<bool> row = check->Step();
  if (!row.ok()) return ExplainDamage(path, row.status());
  if (*row && check->TextView(0) == "ok") return Status::Ok();
  return ExplainDamage(path, Status(Code::kCorrupt, *row ? check->Text(0) : "no answer from quick_check"));
}

Result<std::string> GetMeta(sqlite::Db& db, const std::string& key) {
  LK_ASSIGN_OR_RETURN(sqlite::Stmt get, db.Prepare("SELECT value FROM meta WHERE key = ?1"));
  LK_ASSIGN_OR_RETURN(const bool found, get.Bind(1, key).Step());
  if (!found) return Status(Code::kNotFound, "the ledger has no " + key);
  return get.Text(0);
}

Status PutMeta(sqlite::Db& db, const std::string& key, const std::string& value) {
  LK_ASSIGN_OR_RETURN(sqlite::Stmt put, db.Prepare("INSERT INTO meta (key, value) VALUES (?1, ?2) "
                                                   "ON CONFLICT (key) DO UPDATE SET value = excluded.value"));
  return put.Bind(1, key).Bind(2, value).Run();
}

Result<Written> ReadWritten(sqlite::Db& db) {
  Written written;
  {
    LK_ASSIGN_OR_RETURN(sqlite::Stmt has,
                        db.Prepare("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'meta'"));
    LK_ASSIGN_OR_RETURN(const bool found, has.Step());
    if (!found) return written;
  }
  LK_ASSIGN_OR_RETURN(const std::string schema, GetMeta(db, "schema"));
  written.schema = atoi(schema.c_str());
  written.by = GetMeta(db, "lockkeeper").value_or("an unknown version");
  return written;
}

Status Migrate(sqlite::Db& db, const std::string& path, const std::string& lockkeeper_version,
               const std::vector<std::string>& later, const std::function<Status()>& created) {
  LK_ASSIGN_OR_RETURN(const Written written, ReadWritten(db));
  const int newest = 1 + static_cast<int>(later.size());
  if (written.schema > newest) {
    return Status(Code::kUnsupported, "the ledger " + path + " was written by lockkeeper " + written.by + " (schema " +
                                          std::to_string(written.schema) + "); this is lockkeeper " +
                                          lockkeeper_version + ", which knows schema " + std::to_string(newest) +
                                          ". Nothing was changed: install lockkeeper " + written.by + " or newer");
  }
  if (written.schema > 0 && written.schema < newest) {
    const std::string copy = path + ".schema" + std::to_string(written.schema);
    if (!PathExists(copy)) {
      // Whole or not there: a later start must not take a half copy for one.
      LK_RETURN_IF_ERROR(RemoveFile(copy + ".tmp"));
      LK_RETURN_IF_ERROR(db.BackupTo(copy + ".tmp").Annotate("keep a copy of the ledger before its migration"));
      if (rename((copy + ".tmp").c_str(), copy.c_str()) != 0) return ErrnoStatus("rename", copy, errno);
      LK_RETURN_IF_ERROR(FsyncDir(DirName(path)));
    }
  }
  if (written.schema == newest && written.by == lockkeeper_version) return Status::Ok();
  return db.Transaction([&]() -> Status {
    if (written.schema == 0) {
      LK_RETURN_IF_ERROR(db.Exec("CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID"));
      LK_RETURN_IF_ERROR(db.Exec(kSchema1));
      LK_RETURN_IF_ERROR(created());
    }
    for (int to = std::max(2, written.schema + 1); to <= newest; ++to) {
      LK_RETURN_IF_ERROR(
          db.Exec(later[static_cast<size_t>(to - 2)]).Annotate("bring the ledger to schema " + std::to_string(to)));
    }
    LK_RETURN_IF_ERROR(PutMeta(db, "schema", std::to_string(newest)));
    return PutMeta(db, "lockkeeper", lockkeeper_version);
  });
}

Status LayBallast(const std::string& path, int64_t bytes) {
  const std::string ballast = BallastPath(path);
  struct stat st = {};
  if (bytes <= 0 || (stat(ballast.c_str(), &st) == 0 && st.st_size == bytes)) return Status::Ok();
  struct statvfs fs = {};
  if (statvfs(DirName(path).c_str(), &fs) != 0) return ErrnoStatus("ask for free space at", path, errno);
  if (static_cast<int64_t>(fs.f_bavail) * static_cast<int64_t>(fs.f_frsize) < bytes * 10) {
    return Status(Code::kExhausted, "too little room on the filesystem of " + path + " for its ballast");
  }
  const UniqueFd fd(open(ballast.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return ErrnoStatus("create", ballast, errno);
  const int rc = posix_fallocate(fd.get(), 0, bytes);
  if (rc != 0) {
    const Status gone = RemoveFile(ballast);
    return gone.ok() ? ErrnoStatus("reserve room in", ballast, rc) : gone;
  }
  return Status::Ok();
}

Status DropBallast(const std::string& path) { return RemoveFile(BallastPath(path)); }

}  // namespace lockkeeper::ledger_internal
