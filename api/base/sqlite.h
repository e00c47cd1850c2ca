// Sqlite: a thin, must-check wrapper of SQLite for the API store and the ledger.
//
// Purpose:   open with WAL and the wanted synchronous level, prepared statements, transactions.
// Ownership: a Db owns its connection; a Stmt is borrowed from its Db and dies before it.
// Threads:   one thread at a time per Db (opened with NOMUTEX); open one Db per thread to share a file.
// Failure:   Status with the SQL's purpose and SQLite's text. SQLITE_FULL is kExhausted, BUSY is kBusy,
//            CORRUPT and NOTADB are kCorrupt, CONSTRAINT is kAlreadyExists, CANTOPEN is kUnavailable.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "api/base/status.h"

struct sqlite3;
struct sqlite3_stmt;

namespace lockkeeper::sqlite {

enum class Synchronous { kNormal, kFull };

class Stmt {
 public:
  Stmt() = default;
  ~Stmt();
  Stmt(Stmt&& other) noexcept;
  Stmt& operator=(Stmt&& other) noexcept;
  Stmt(const Stmt&) = delete;
  Stmt& operator=(const Stmt&) = delete;

  // Parameters are counted from 1. A refused value is reported by the next Step() or Run().
  Stmt& Bind(int index, int64_t value);
  Stmt& Bind(int index, std::string_view value);  // text, copied
  Stmt& BindNull(int index);

  // True with a row, false at the end. After the end or an error the statement is reset.
  Result<bool> Step();
  // Runs to the end and resets; for statements without rows.
  Status Run();
  void Reset();

  // Columns are counted from 0. REQUIRES: Step() answered true.
  int64_t Int(int column) const;
  std::string Text(int column) const;
  std::string_view TextView(int column) const;  // until the next Step
  bool IsNull(int column) const;

 private:
  friend class Db;
  sqlite3* db_ = nullptr;
  sqlite3_stmt* stmt_ = nullptr;
  int bind_error_ = 0;
};

struct OpenOptions {
  Synchronous synchronous = Synchronous::kFull;
  int busy_timeout_ms = 5000;
  int64_t cache_kib = 1024;
  std::string vfs;  // "" is the default one; tests name a faulty one
  bool read_only = false;
};

class Db {
 public:
  Db() = default;
  ~Db();
  Db(Db&& other) noexcept;
  Db& operator=(Db&& other) noexcept;
  Db(const Db&) = delete;
  Db& operator=(const Db&) = delete;

  static Result<Db> Open(const std::string& path, const OpenOptions& options);

  Result<Stmt> Prepare(std::string_view sql);
  Status Exec(const std::string& sql);
  // BEGIN IMMEDIATE, body, COMMIT; ROLLBACK when the body answers an error.
  Status Transaction(const std::function<Status()>& body);
  int64_t LastInsertRowid() const;
  int64_t Changes() const;
  // Copies the whole database, live, to a new file at `path` (online backup), in steps of `pages` so that
  // writers are not held up longer than a step. fsyncs the copy.
  Status BackupTo(const std::string& path, int pages = 256);
  sqlite3* handle() { return db_; }

 private:
  sqlite3* db_ = nullptr;
};

// SQLite's error of `db` as a Status about `attempt`.
Status ErrorOf(sqlite3* db, int rc, std::string_view attempt);

}  // namespace lockkeeper::sqlite
