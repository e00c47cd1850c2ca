#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "api/base/file.h"
#include "api/base/sqlite.h"
#include "reconcilers/host/file_ops.h"
#include "reconcilers/host/host_files.h"

namespace lockkeeper {
namespace {

constexpr char kTemporaryPrefix[] = ".taking-";

Result<sqlite::Db> OpenForReading(const std::string& path) {
  sqlite::OpenOptions options;
  options.read_only = true;
  return sqlite::Db::Open(path, options);
}

// lockkeeper's own store counts its writes in counter.revision; another database is not known.
Result<int64_t> RevisionIn(sqlite::Db& db) {
  LK_ASSIGN_OR_RETURN(sqlite::Stmt has,
                      db.Prepare("SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name IN "
                                 "('counter', 'objects', 'events')"));
  LK_ASSIGN_OR_RETURN(const bool row, has.Step());
  if (!row || has.Int(0) != 3) return 0;
  LK_ASSIGN_OR_RETURN(sqlite::Stmt get, db.Prepare("SELECT revision FROM counter WHERE id = 1"));
  LK_ASSIGN_OR_RETURN(const bool found, get.Step());
  return found ? get.Int(0) : 0;
}

class SqliteSnapshotter final : public Snapshotter {
 public:
  Result<SnapshotInfo> Take(const std::string& store_path, const std::string& into_dir,
                            const std::string& name) override {
    if (!host_internal::IsInnerPath(name) || name.find('/') != std::string::npos) {
      return Status(Code::kInvalid, "\"" + name + "\" is no name for a snapshot");
    }
    if (!PathExists(store_path)) return Status(Code::kNotFound, "there is no store " + store_path);
    LK_RETURN_IF_ERROR(MakeDirs(into_dir, 0700));
    const std::string part = JoinPath(into_dir, kTemporaryPrefix + name);
    LK_RETURN_IF_ERROR(RemoveParts(part));
    SnapshotInfo info;
    info.reference = JoinPath(into_dir, name + ".db");
    const Status taken = TakeInto(store_path, part, &info);
    if (!taken.ok()) {
      const Status swept = RemoveParts(part);
      return swept.ok() ? taken : Status(taken.code(), taken.message() + "; and " + swept.message());
    }
    return info;
  }

  Result<int64_t> WritesSince(const std::string& store_path, const SnapshotInfo& snapshot) override {
    LK_ASSIGN_OR_RETURN(const int64_t then, RevisionOf(snapshot));
    if (then == 0) return -1;
    if (!PathExists(store_path)) return Status(Code::kNotFound, "there is no store " + store_path);
    LK_ASSIGN_OR_RETURN(sqlite::Db db, OpenForReading(store_path));
    LK_ASSIGN_OR_RETURN(const int64_t now, RevisionIn(db));
    return now < then ? -1 : now - then;  // lower: it is another store, or was put back in time
  }

  Result<int64_t> RevisionOf(const SnapshotInfo& snapshot) override {
    if (!PathExists(snapshot.reference)) return Status(Code::kNotFound, "there is no snapshot " + snapshot.reference);
    LK_ASSIGN_OR_RETURN(sqlite::Db db, OpenForReading(snapshot.reference));
    return RevisionIn(db);
  }

  Status Delete(const SnapshotInfo& snapshot) override {
    LK_RETURN_IF_ERROR(RemoveParts(snapshot.reference));
    return FsyncDir(DirName(snapshot.reference));
  }

  Status Sweep(const std::string& into_dir) override {
    return host_internal::SweepTemporary(into_dir, kTemporaryPrefix);
  }

 private:
  static Status RemoveParts(const std::string& path) {
    for (const char* suffix : {"", ".part", ".part-journal", "-wal", "-shm", "-journal"}) {
      LK_RETURN_IF_ERROR(RemoveFile(path + suffix));
    }
    return Status::Ok();
  }

  static Status TakeInto(const std::string& store_path, const std::string& part, SnapshotInfo* info) {
    {
      LK_ASSIGN_OR_RETURN(sqlite::Db store, OpenForReading(store_path));
      LK_RETURN_IF_ERROR(store.BackupTo(part));
    }
    {
      LK_ASSIGN_OR_RETURN(sqlite::Db copy, sqlite::Db::Open(part, {}));
      std::string verdict = "no answer";
      {
        LK_ASSIGN_OR_RETURN(sqlite::Stmt check, copy.Prepare("PRAGMA integrity_check(1)"));
        LK_ASSIGN_OR_RETURN(const bool row, check.Step());
        if (row) verdict = check.Text(0);
      }
      if (verdict != "ok") {
        return Status(Code::kCorrupt, "the snapshot of " + store_path + " does not pass its integrity check: " +
                                          verdict + "; the store itself may be damaged");
      }
      // One file, that can be read without making others beside it; a store that is put back turns WAL on again.
      LK_RETURN_IF_ERROR(copy.Exec("PRAGMA journal_mode=DELETE"));
    }
    struct stat st = {};
    if (stat(part.c_str(), &st) != 0) return ErrnoStatus("look at", part, errno);
    info->size = st.st_size;
    LK_ASSIGN_OR_RETURN(info->sha256, Sha256File(part));
    if (rename(part.c_str(), info->reference.c_str()) != 0) return ErrnoStatus("rename to", info->reference, errno);
    LK_RETURN_IF_ERROR(RemoveParts(part));
    return FsyncDir(DirName(info->reference));
  }
};

}  // namespace

std::unique_ptr<Snapshotter> NewSqliteSnapshotter() { return std::make_unique<SqliteSnapshotter>(); }

}  // namespace lockkeeper
