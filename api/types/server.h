// Server: one API server installation on one host, or one runner.
//
// Purpose:   spec is written by the user; status by the agent (Ready and Available on a silent host: the manager).
// Ownership: values. Threads: values. Failure: none here.
#pragma once

#include "api/types/roll.h"
#include "api/types/server_parts.h"
#include "api/types/server_template.h"

namespace lockkeeper {

enum class ServerRole { kServer, kRunner };
LK_TYPES_ENUM(ServerRole);

enum class ServerShape { kBlueGreen, kSingle };
LK_TYPES_ENUM(ServerShape);

enum class ServerDriver { kProcess, kSystemd, kContainer };
LK_TYPES_ENUM(ServerDriver);

enum class UpdatePolicy { kOnNextOperation, kImmediately };
LK_TYPES_ENUM(UpdatePolicy);

enum class DeletionPolicy { kOrphan, kStop };
LK_TYPES_ENUM(DeletionPolicy);

struct ServerSpec {
  ServerRole role = ServerRole::kServer;
  std::string host;
  ServerShape shape = ServerShape::kBlueGreen;
  ServerDriver driver = ServerDriver::kProcess;
  bool allow_downgrade = false;
  std::string install_version;
  std::string version;  // set: declarative mode
  UpdatePolicy update_policy = UpdatePolicy::kOnNextOperation;
  std::optional<LabelSelector> runner_selector;
  bool unschedulable = false;
  std::optional<LocalRef> node_ref;
  std::optional<BuildSource> source;
  LayoutSpec layout;
  ServerTemplate template_;
  std::optional<StoreSpec> store;
  std::optional<SeedSpec> seed;
  std::optional<MemberToken> member_token;
  std::optional<AdoptSpec> adopt;
  std::optional<LocalRef> front_ref;
  std::optional<AccessSpec> access;
  std::optional<LeaseRef> lease;
  ProbeSpec probe;
  BackupPolicy backup;
  RestorePolicy restore;
  Timeouts timeouts;
  RollbackPolicy rollback;
  int64_t soak_seconds = 0;
  std::optional<Time> restarted_at;
  Maintenance maintenance;
  bool paused = false;
  DeletionPolicy deletion_policy = DeletionPolicy::kOrphan;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const ServerSpec&) const = default;
};

struct LedgerRef {
  std::string id;
  int64_t revision = 0;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const LedgerRef&) const = default;
};

struct CompanionRecord {
  std::string name;
  std::string unit;
  std::optional<int64_t> pid;
  std::optional<int64_t> port;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const CompanionRecord&) const = default;
};

// One line of the seed's slots file.
struct SlotRecord {
  std::string name;
  std::string unit;
  std::optional<int64_t> incarnation;
  std::string root;
  std::optional<int64_t> port;
  std::optional<int64_t> pid;
  std::string invocation_id;
  std::string exec;
  std::string sha256;
  std::string version;
  std::optional<Time> started_at;
  std::optional<Time> ready_at;
  std::vector<CompanionRecord> companions;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const SlotRecord&) const = default;
};

struct LeaseView {
  std::string holder;
  std::optional<Time> acquire_time;  // microseconds
  std::optional<Time> renew_time;    // microseconds
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const LeaseView&) const = default;
};

struct OperationRef {
  std::string kind;
  std::string name;
  std::string uid;
  std::optional<OperationPhase> phase;
  std::optional<Time> started_at;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const OperationRef&) const = default;
};

struct HistoryEntry {
  std::string kind;
  std::string name;
  std::string uid;
  std::string spec_hash;
  std::string version;
  std::optional<OperationMode> mode;
  std::optional<Outcome> outcome;
  std::optional<Time> started_at;
  std::optional<Time> finished_at;
  std::string requested_by;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const HistoryEntry&) const = default;
};

struct RejectedBuild {
  std::string version;
  std::string sha256;
  std::string reason;
  std::optional<Time> at;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const RejectedBuild&) const = default;
};

enum class InstallKind { kUnknown, kProcess, kSystemd, kContainer };
LK_TYPES_ENUM(InstallKind);

struct ServerStatus {
  int64_t observed_generation = -1;
  std::optional<LedgerRef> ledger;
  int64_t declared_attempts = 0;
  std::vector<Condition> conditions;
  std::string version;
  std::string commit;
  std::optional<InstallKind> install_kind;
  std::string active_slot;
  std::string store_url;
  std::string instance_id;
  std::string host_id;
  std::optional<Time> last_restarted_at;
  std::vector<SlotRecord> slots;
  std::optional<LeaseView> lease;
  std::optional<OperationRef> operation;
  std::optional<Progress> progress;
  std::vector<HistoryEntry> history;  // newest first
  std::vector<RejectedBuild> rejected;
  std::vector<NextAction> next_actions;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const ServerStatus&) const = default;
};

struct Server {
  static constexpr std::string_view kApiVersion = lockkeeper::kApiVersion;
  static constexpr std::string_view kKind = "Server";
  static constexpr std::string_view kPlural = "servers";

  ObjectMeta metadata;
  ServerSpec spec;
  ServerStatus status;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const Server&) const = default;
};

// The timeouts one operation works with: the override where set and above zero, else the Server's where above zero,
// else the default.
Timeouts ResolveTimeouts(const TimeoutOverrides& overrides, const Timeouts& server);

}  // namespace lockkeeper
