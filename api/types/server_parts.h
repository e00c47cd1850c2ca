// The parts of a Server's spec that are not its template: source, store, seed, probe, backup, time limits.
// Ownership: values. Threads: values. Failure: none here.
#pragma once

#include "api/types/meta.h"
#include "api/types/operation.h"

namespace lockkeeper {

enum class ChecksumType { kFile, kValue, kNone };
LK_TYPES_ENUM(ChecksumType);

struct BuildChecksum {
  ChecksumType type = ChecksumType::kFile;
  std::string url;    // File; empty: the artifact's URL with .sha256 behind it
  std::string value;  // Value: SHA-256 of the artifact, lower-case hexadecimal
  bool allow_unverified = false;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const BuildChecksum&) const = default;
};

struct BuildSignature {
  std::string url;
  std::string public_key;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const BuildSignature&) const = default;
};

// Where builds come from.
struct BuildSource {
  std::string url;    // https, http, file or an absolute path; {version} {os} {arch} {artifact} are filled in
  std::string index;  // resolves latest and main
  BuildChecksum checksum;
  std::optional<BuildSignature> signature;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const BuildSource&) const = default;
};

struct LayoutSpec {
  std::string data_dir;
  std::string path_link;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const LayoutSpec&) const = default;
};

struct StoreUnit {
  std::string name;
  std::vector<std::string> command;
  std::string data_dir;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const StoreUnit&) const = default;
};

// What the slots share and what is never rolled.
struct StoreSpec {
  std::vector<StoreUnit> units;
  std::string url;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const StoreSpec&) const = default;
};

struct SeedSpec {
  std::string shared;
  std::vector<std::string> files = {"apiserver.crt", "apiserver.key", "sa.key", ".admin-token-store",
                                    "admin.kubeconfig"};
  bool harvest = true;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const SeedSpec&) const = default;
};

struct MemberToken {
  std::string file;
  std::string context;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const MemberToken&) const = default;
};

enum class AdoptType { kUnit, kPid };
LK_TYPES_ENUM(AdoptType);

struct AdoptSpec {
  AdoptType type = AdoptType::kUnit;
  std::string unit;
  std::optional<int64_t> pid;
  int64_t port = 0;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const AdoptSpec&) const = default;
};

struct AccessSpec {
  std::string kubeconfig_file;
  std::string context;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const AccessSpec&) const = default;
};

// The controller Lease inside the rolled server.
struct LeaseRef {
  std::string path;  // prefix of the API's URL, such as /clusters/system:admin
  std::string namespace_ = "kube-system";
  std::string name;
  bool expect_handover = true;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const LeaseRef&) const = default;
};

enum class ProbeType { kNone, kWorkspace, kConfigMap };
LK_TYPES_ENUM(ProbeType);

struct WorkspaceType {
  std::string name = "universal";
  std::string path = "root";
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const WorkspaceType&) const = default;
};

struct WorkspaceProbe {
  std::string parent = "root";
  WorkspaceType type;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const WorkspaceProbe&) const = default;
};

struct ConfigMapProbe {
  std::string namespace_ = "default";
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const ConfigMapProbe&) const = default;
};

struct ProbeSpec {
  ProbeType type = ProbeType::kNone;
  std::optional<WorkspaceProbe> workspace;   // unset with type Workspace: its defaults
  std::optional<ConfigMapProbe> config_map;  // unset with type ConfigMap: its defaults
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const ProbeSpec&) const = default;
};

enum class BackupDriver { kNone, kEtcd, kSqlite, kCommand };
LK_TYPES_ENUM(BackupDriver);

struct EtcdBackup {
  std::vector<std::string> endpoints;
  std::string ca_file;
  std::string cert_file;
  std::string key_file;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const EtcdBackup&) const = default;
};

struct SqliteBackup {
  std::string file;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const SqliteBackup&) const = default;
};

struct CommandBackup {
  std::vector<std::string> backup;
  std::vector<std::string> restore;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const CommandBackup&) const = default;
};

struct BackupPolicy {
  BackupDriver driver = BackupDriver::kNone;
  std::optional<EtcdBackup> etcd;
  std::optional<SqliteBackup> sqlite;
  std::optional<CommandBackup> command;
  int64_t retain = 3;
  int64_t max_age_seconds = 600;
  int64_t timeout_seconds = 300;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const BackupPolicy&) const = default;
};

struct RestorePolicy {
  OnRollback on_rollback = OnRollback::kWhenStopped;
  int64_t timeout_seconds = 600;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const RestorePolicy&) const = default;
};

// Zero means the default; below zero is refused.
struct Timeouts {
  int64_t ready_seconds = 60;
  int64_t lease_seconds = 30;
  int64_t probe_seconds = 10;
  int64_t drain_seconds = 5;
  int64_t stop_seconds = 75;
  int64_t flip_seconds = 5;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const Timeouts&) const = default;
};

enum class AfterFlip { kManual, kAutomatic };
LK_TYPES_ENUM(AfterFlip);

struct RollbackPolicy {
  AfterFlip after_flip = AfterFlip::kManual;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const RollbackPolicy&) const = default;
};

struct MaintenanceWindow {
  std::string start;  // cron, five fields
  int64_t duration_minutes = 0;
  std::string time_zone = "UTC";
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const MaintenanceWindow&) const = default;
};

struct Maintenance {
  std::vector<MaintenanceWindow> windows;
  bool freeze = false;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const Maintenance&) const = default;
};

struct LabelSelector {
  std::map<std::string, std::string> match_labels;
  Json extra;

  // Every match_labels entry stands in `labels`. An empty selector matches nothing here: no Runner is walked.
  bool Matches(const std::map<std::string, std::string>& labels) const;

  static const TypeInfo& Type();
  bool operator==(const LabelSelector&) const = default;
};

}  // namespace lockkeeper
