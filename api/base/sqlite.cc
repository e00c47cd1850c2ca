#include "api/base/sqlite.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "api/base/file.h"
#include "api/base/unique_fd.h"

namespace lockkeeper::sqlite {
namespace {

Code CodeOf(int rc, int system_errno) {
  if (system_errno == ENOSPC || system_errno == EDQUOT) {
    // A full disk met while growing the -shm file is an I/O error to SQLite.
    if ((rc & 0xff) == SQLITE_IOERR) return Code::kExhausted;
  }
  switch (rc & 0xff) {
    case SQLITE_OK:
    case SQLITE_ROW:
    case SQLITE_DONE: return Code::kInternal;
    case SQLITE_FULL:
    case SQLITE_NOMEM: return Code::kExhausted;
    case SQLITE_BUSY:
    case SQLITE_LOCKED: return Code::kBusy;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB: return Code::kCorrupt;
    case SQLITE_CONSTRAINT: return Code::kAlreadyExists;
    case SQLITE_CANTOPEN:
    case SQLITE_IOERR: return Code::kUnavailable;
    case SQLITE_PERM:
    case SQLITE_AUTH:
    case SQLITE_READONLY: return Code::kForbidden;
    case SQLITE_TOOBIG: return Code::kInvalid;
    case SQLITE_INTERRUPT: return Code::kCancelled;
    default: return Code::kInternal;
  }
}

// What a statement is for, as far as its text tells: enough to find it, short enough for a log line.
std::string PurposeOf(sqlite3_stmt* stmt) {
  const char* sql = sqlite3_sql(stmt);
  std::string text = sql == nullptr ? "statement" : sql;
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

}  // namespace

Status ErrorOf(sqlite3* db, int rc, std::string_view attempt) {
  std::string message(attempt);
  message += ": ";
  int system_errno = 0;
  if (db != nullptr) {
    system_errno = sqlite3_system_errno(db);
    const bool current = (sqlite3_errcode(db) & 0xff) == (rc & 0xff);
    message += current ? sqlite3_errmsg(db) : sqlite3_errstr(rc);
  } else {
    message += sqlite3_errstr(rc);
  }
  if ((rc & 0xff) == SQLITE_IOERR || (rc & 0xff) == SQLITE_CANTOPEN) {
    message += " (SQLite code " + std::to_string(rc);
    if (system_errno != 0) message += ", errno " + std::to_string(system_errno);
    message += ")";
  }
  return {CodeOf(rc, system_errno), std::move(message)};
}

Stmt::~Stmt() { sqlite3_finalize(stmt_); }

Stmt::Stmt(Stmt&& other) noexcept
    : db_(std::exchange(other.db_, nullptr)),
      stmt_(std::exchange(other.stmt_, nullptr)),
      bind_error_(std::exchange(other.bind_error_, 0)) {}

Stmt& Stmt::operator=(Stmt&& other) noexcept {
  if (this != &other) {
    sqlite3_finalize(stmt_);
    db_ = std::exchange(other.db_, nullptr);
    stmt_ = std::exchange(other.stmt_, nullptr);
    bind_error_ = std::exchange(other.bind_error_, 0);
  }
  return *this;
}

Stmt& Stmt::Bind(int index, int64_t value) {
  const int rc = sqlite3_bind_int64(stmt_, index, value);
  if (rc != SQLITE_OK && bind_error_ == 0) bind_error_ = rc;
  return *this;
}

Stmt& Stmt::Bind(int index, std::string_view value) {
  // A null pointer would bind NULL, and an empty string_view may hold one.
  const char* data = value.data() == nullptr ? "" : value.data();
  const int rc = sqlite3_bind_text64(stmt_, index, data, value.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  if (rc != SQLITE_OK && bind_error_ == 0) bind_error_ = rc;
  return *this;
}

Stmt& Stmt::BindNull(int index) {
  const int rc = sqlite3_bind_null(stmt_, index);
  if (rc != SQLITE_OK && bind_error_ == 0) bind_error_ = rc;
  return *this;
}

Result<bool> Stmt::Step() {
  if (stmt_ == nullptr) return Status(Code::kInternal, "a step of a statement that was never prepared");
  if (bind_error_ != 0) {
    Status status = ErrorOf(db_, bind_error_, "bind a value of \"" + PurposeOf(stmt_) + "\"");
    Reset();
    return status;
  }
  const int rc = sqlite3_step(stmt_);
  if (rc == SQLITE_ROW) return true;
  if (rc == SQLITE_DONE) {
    sqlite3_reset(stmt_);
    return false;
  }
  Status status = ErrorOf(db_, rc, "run \"" + PurposeOf(stmt_) + "\"");
  Reset();
  return status;
}

Status Stmt::Run() {
  while (true) {
    Result<bool> more = Step();
    if (!more.ok()) return more.status();
    if (!*more) return Status::Ok();
  }
}

void Stmt::Reset() {
  bind_error_ = 0;
  sqlite3_reset(stmt_);
}

int64_t Stmt::Int(int column) const { return sqlite3_column_int64(stmt_, column); }

std::string Stmt::Text(int column) const { return std::string(TextView(column)); }

std::string_view Stmt::TextView(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(stmt_, column));
  if (text == nullptr) return {};
  return {text, static_cast<size_t>(sqlite3_column_bytes(stmt_, column))};
}

bool Stmt::IsNull(int column) const { return sqlite3_column_type(stmt_, column) == SQLITE_NULL; }

// close_v2 would keep a connection with a live statement as a zombie, with its locks; a Stmt dies before
// its Db, so close() succeeds.
Db::~Db() { sqlite3_close(db_); }

Db::Db(Db&& other) noexcept : db_(std::exchange(other.db_, nullptr)) {}

Db& Db::operator=(Db&& other) noexcept {
  if (this != &other) {
    sqlite3_close(db_);
    db_ = std::exchange(other.db_, nullptr);
  }
  return *this;
}

Result<Db> Db::Open(const std::string& path, const OpenOptions& options) {
  if (!options.read_only) {
    // Made here, since SQLite would make it readable for all. O_EXCL: closing a descriptor of a file that
    // another connection of this process has open would drop that connection's locks.
    UniqueFd created(::open(path.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!created && errno != EEXIST) return ErrnoStatus("create", path, errno);
  }
  Db db;
  const int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE |
                    (options.read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
  const char* vfs = options.vfs.empty() ? nullptr : options.vfs.c_str();
  const int rc = sqlite3_open_v2(path.c_str(), &db.db_, flags, vfs);
  if (rc != SQLITE_OK) return ErrorOf(db.db_, rc, "open " + path);
  sqlite3_busy_timeout(db.db_, options.busy_timeout_ms);
  // Cheap, and each of them must hold before the first write.
  std::string setup = "PRAGMA cache_size=-" + std::to_string(options.cache_kib) + ";";
  setup += options.synchronous == Synchronous::kFull ? "PRAGMA synchronous=FULL;" : "PRAGMA synchronous=NORMAL;";
  if (!options.read_only) setup += "PRAGMA journal_size_limit=4194304;";
  if (Status status = db.Exec(setup); !status.ok()) return status.Annotate("open " + path);
  if (!options.read_only) {
    Result<Stmt> wal = db.Prepare("PRAGMA journal_mode=WAL");
    if (!wal.ok()) return wal.status().Annotate("open " + path);
    Result<bool> row = wal->Step();
    if (!row.ok()) return row.status().Annotate("open " + path);
    if (!*row || wal->TextView(0) != "wal") {
      return Status(Code::kUnsupported, "open " + path +
                                            ": this file system cannot hold a write-ahead log (journal mode " +
                                            wal->Text(0) + "); put it on a local file system");
    }
  }
  return db;
}

Result<Stmt> Db::Prepare(std::string_view sql) {
  Stmt stmt;
  stmt.db_ = db_;
  const int rc = sqlite3_prepare_v3(db_, sql.data(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT,
                                    &stmt.stmt_, nullptr);
  if (rc != SQLITE_OK) return ErrorOf(db_, rc, "prepare \"" + std::string(sql.substr(0, 60)) + "\"");
  return stmt;
}

Status Db::Exec(const std::string& sql) {
  const int rc = sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr);
  if (rc != SQLITE_OK) return ErrorOf(db_, rc, "run \"" + sql.substr(0, 60) + "\"");
  return Status::Ok();
}

Status Db::Transaction(const std::function<Status()>& body) {
  LK_RETURN_IF_ERROR(Exec("BEGIN IMMEDIATE"));
  Status status = body();
  if (status.ok()) status = Exec("COMMIT");
  if (!status.ok() && sqlite3_get_autocommit(db_) == 0) {
    // Some errors (a full disk) have rolled back by themselves; then there is nothing left to do.
    Status rolled_back = Exec("ROLLBACK");
    if (!rolled_back.ok()) return status.Annotate("and " + rolled_back.message());
  }
  return status;
}

int64_t Db::LastInsertRowid() const { return sqlite3_last_insert_rowid(db_); }
int64_t Db::Changes() const { return sqlite3_changes64(db_); }

Status Db::BackupTo(const std::string& path, int pages) {
  const std::string attempt = "back up to " + path;
  if (PathExists(path)) return {Code::kAlreadyExists, attempt + ": the file exists already"};
  const std::string part = path + ".part";
  for (const char* suffix : {"", "-journal", "-wal", "-shm"}) LK_RETURN_IF_ERROR(RemoveFile(part + suffix));
  // A read transaction over all steps: one snapshot, so that other connections' writes do not make the copy
  // start over. In WAL mode it holds up no writer.
  const bool own_read = sqlite3_get_autocommit(db_) != 0;
  if (own_read) {
    LK_RETURN_IF_ERROR(Exec("BEGIN; SELECT count(*) FROM sqlite_master").Annotate(attempt));
  }
  Status status = [&]() -> Status {
    UniqueFd created(::open(part.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
    if (!created) return ErrnoStatus("create", part, errno);
    created.Reset();
    Db target;
    int rc = sqlite3_open_v2(part.c_str(), &target.db_,
                             SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nullptr);
    if (rc != SQLITE_OK) return ErrorOf(target.db_, rc, attempt);
    LK_RETURN_IF_ERROR(target.Exec("PRAGMA synchronous=FULL"));
    sqlite3_backup* backup = sqlite3_backup_init(target.db_, "main", db_, "main");
    if (backup == nullptr) return ErrorOf(target.db_, sqlite3_errcode(target.db_), attempt);
    // Busy: a checkpoint at work. 5 s of it, as the busy timeout of a connection.
    int waits = 0;
    do {
      rc = sqlite3_backup_step(backup, pages);
      if (rc == SQLITE_BUSY || rc == SQLITE_LOCKED) {
        if (++waits > 500) break;
        sqlite3_sleep(10);
      }
    } while (rc == SQLITE_OK || rc == SQLITE_BUSY || rc == SQLITE_LOCKED);
    const int finished = sqlite3_backup_finish(backup);
    if (rc != SQLITE_DONE) return ErrorOf(target.db_, rc, attempt);
    if (finished != SQLITE_OK) return ErrorOf(target.db_, finished, attempt);
    return Status::Ok();
  }();
  if (own_read) {
    Status ended = Exec("COMMIT");
    if (status.ok()) status = ended;
  }
  if (status.ok()) {
    UniqueFd copy(::open(part.c_str(), O_RDONLY | O_CLOEXEC));
    if (!copy) {
      status = ErrnoStatus("open", part, errno);
    } else if (::fsync(copy.get()) != 0) {
      status = ErrnoStatus("sync", part, errno);
    } else if (::rename(part.c_str(), path.c_str()) != 0) {
      status = ErrnoStatus("rename", part, errno);
    } else {
      status = FsyncDir(DirName(path));
    }
  }
  if (!status.ok()) (void)RemoveFile(part).ok();
  return status;
}

}  // namespace lockkeeper::sqlite
