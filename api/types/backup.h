// StoreBackup: one snapshot of a Server's store. StoreRestore: one request to put a snapshot back, and its answer.
// Ownership: values. Threads: values. Failure: none here.
#pragma once

#include "api/types/operation.h"

namespace lockkeeper {

struct StoreBackupSpec {
  LocalRef server_ref;
  std::string reason;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const StoreBackupSpec&) const = default;
};

struct StoreBackupStatus {
  int64_t observed_generation = -1;
  std::string reference;  // where it lies on the host
  std::optional<int64_t> size;
  std::optional<Time> started_at;
  std::optional<Time> finished_at;
  std::optional<int64_t> revision;
  bool verified = false;
  std::optional<int64_t> writes_since;
  std::string error;
  std::optional<Progress> progress;
  std::vector<Condition> conditions;
  std::vector<NextAction> next_actions;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const StoreBackupStatus&) const = default;
};

struct StoreBackup {
  static constexpr std::string_view kApiVersion = lockkeeper::kApiVersion;
  static constexpr std::string_view kKind = "StoreBackup";
  static constexpr std::string_view kPlural = "storebackups";

  ObjectMeta metadata;
  StoreBackupSpec spec;
  StoreBackupStatus status;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const StoreBackup&) const = default;
};

struct StoreRestoreSpec {
  LocalRef server_ref;
  LocalRef backup_ref;
  std::optional<BuildRef> build;  // unset: whoever boots
  bool abandon = false;           // false to true only
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const StoreRestoreSpec&) const = default;
};

struct RestoreAttempt {
  std::optional<Time> started_at;
  std::optional<Time> finished_at;
  std::string error;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const RestoreAttempt&) const = default;
};

struct StoreRestoreStatus {
  int64_t observed_generation = -1;
  std::vector<RestoreAttempt> attempts;
  std::optional<Time> restored_at;
  std::string error;
  bool abandoned = false;
  std::optional<int64_t> revision_pushed_to;
  std::vector<Condition> conditions;
  std::vector<NextAction> next_actions;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const StoreRestoreStatus&) const = default;
};

struct StoreRestore {
  static constexpr std::string_view kApiVersion = lockkeeper::kApiVersion;
  static constexpr std::string_view kKind = "StoreRestore";
  static constexpr std::string_view kPlural = "storerestores";

  ObjectMeta metadata;
  StoreRestoreSpec spec;
  StoreRestoreStatus status;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const StoreRestore&) const = default;
};

}  // namespace lockkeeper
