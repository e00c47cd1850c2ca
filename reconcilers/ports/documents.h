// Documents: what the ledger keeps of Releases and StoreBackups, so that a roll needs no API for them.
//
// Purpose:   one small record a Release and a StoreBackup of this host, under Ledger::PutDocument(kind, "NS/NAME").
//            Written by their reconcilers and by the Server's act when a plan requests one; read by the Server's
//            observe.
// Threads:   values. Failure: FromJson answers kCorrupt for text that is no such document.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "api/base/json.h"
#include "reconcilers/ports/records.h"

namespace lockkeeper {

inline constexpr char kReleaseDocument[] = "release";
inline constexpr char kBackupDocument[] = "backup";

enum class DocumentState { kPending, kReady, kFailed };

struct ReleaseDocument {
  std::string ns, name;
  std::string uid;      // of the Release object; "" while it has none
  std::string server;   // whose source and command it is for
  std::string version;  // as asked for
  std::string artifact;
  DocumentState state = DocumentState::kPending;
  HostBuild build;  // once resolved; exec_sha256 once Ready
  std::string url;
  std::string executable;  // below build.path
  int64_t size = 0;
  std::string verified_by;      // of VerifiedBy
  std::string reason, message;  // while not Ready
  Time next_try{};              // of a failed one
  int64_t failures = 0;
  bool operator==(const ReleaseDocument&) const = default;

  std::string Key() const { return ns + "/" + name; }
  Json ToJson() const;
  static Result<ReleaseDocument> FromJson(const std::string& text);
};

struct BackupDocument {
  std::string ns, name;
  std::string uid;
  std::string server;
  std::string why;  // spec.reason
  DocumentState state = DocumentState::kPending;
  std::string reference;
  std::string sha256;
  int64_t size = 0;
  std::optional<int64_t> revision;  // of the store in it, where it can be told
  std::optional<int64_t> writes_since;
  Time started_at{}, finished_at{};
  std::string reason, message;
  bool operator==(const BackupDocument&) const = default;

  std::string Key() const { return ns + "/" + name; }
  Json ToJson() const;
  static Result<BackupDocument> FromJson(const std::string& text);
};

}  // namespace lockkeeper
