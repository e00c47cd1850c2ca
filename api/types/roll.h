// Roll: one roll of a Server, undo included; its status is the roll report.
//
// Purpose:   spec is written by the manager (for an Upgrade), a user, or the agent with the API away; status by the
//            agent, from its ledger. The spec is immutable but for `controls` and ttl_seconds_after_finished.
// Ownership: values. Threads: values. Failure: none here.
#pragma once

#include "api/types/operation.h"

namespace lockkeeper {

enum class RollBackup { kRequired, kNone };
LK_TYPES_ENUM(RollBackup);

// Timeouts of one operation; an unset or zero one comes from the Server (see ResolveTimeouts in server.h).
struct TimeoutOverrides {
  std::optional<int64_t> ready_seconds;
  std::optional<int64_t> lease_seconds;
  std::optional<int64_t> probe_seconds;
  std::optional<int64_t> drain_seconds;
  std::optional<int64_t> stop_seconds;
  std::optional<int64_t> flip_seconds;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const TimeoutOverrides&) const = default;
};

struct RollRestore {
  LocalRef backup_ref;
  OnRollback on_rollback = OnRollback::kWhenStopped;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const RollRestore&) const = default;
};

struct RollSpec {
  LocalRef server_ref;
  std::optional<LocalRef> release_ref;  // none: the active release
  RollBackup backup = RollBackup::kRequired;
  std::optional<LocalRef> backup_ref;
  std::optional<RollRestore> restore;  // armed before anything stops
  bool planned_outage = false;
  bool allow_downgrade = false;
  TimeoutOverrides timeouts;
  std::vector<Gate> gates;
  WhenBusy when_busy = WhenBusy::kWait;
  OperationMode mode = OperationMode::kExecute;
  std::string requested_by;
  Controls controls;  // inlined: paused, approve, abort, abandon
  std::optional<int64_t> ttl_seconds_after_finished;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const RollSpec&) const = default;
};

// The seed's report, times with microseconds, and what it leaves out. Inlined in status.
struct RollReport {
  std::string from;
  std::string to;
  std::optional<bool> planned_outage;
  std::optional<double> outage_seconds;  // hold observed to flipped
  std::string old_unit;
  std::string new_unit;
  std::optional<int64_t> old_port;
  std::optional<int64_t> new_port;
  std::optional<int64_t> new_pid;
  std::string new_invocation_id;
  std::string old_holder;
  std::string new_holder;
  std::string holder_at_stop;
  std::string store_backup;
  std::optional<double> backup_seconds;
  std::optional<Time> started_at;
  std::optional<Time> port_at;
  std::optional<Time> ready_at;
  std::optional<Time> persisted_at;
  std::optional<Time> flipped_at;
  std::optional<Time> member_token_at;
  std::optional<Time> drained_at;
  std::optional<Time> sigterm_at;
  std::optional<Time> old_exited_at;
  std::optional<Time> lease_deleted_at;
  std::optional<Time> lease_held_at;
  std::optional<Time> probe_ready_at;
  std::optional<Time> done_at;
  std::optional<double> start_to_ready_seconds;  // go to ready
  std::optional<double> drain_seconds;
  std::optional<double> soak_seconds;
  std::optional<double> gate_seconds;
  std::optional<double> old_exit_seconds;
  std::optional<double> lease_handover_seconds;
  std::optional<double> leaderless_seconds;
  std::optional<double> probe_seconds;
  std::optional<double> overhead_seconds;
  std::optional<double> total_seconds;
  std::optional<int64_t> open_on_old_at_exit;
  std::optional<int64_t> drained;
  std::optional<int64_t> cut_connections;

  static const TypeInfo& Type();
  bool operator==(const RollReport&) const = default;
};

enum class StepState { kPending, kRunning, kWaiting, kDone, kSkipped, kFailed };
LK_TYPES_ENUM(StepState);

struct RollStep {
  std::string name;
  StepState state = StepState::kPending;
  int64_t attempt = 0;
  std::optional<Time> started_at;   // microseconds
  std::optional<Time> finished_at;  // microseconds
  std::string message;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const RollStep&) const = default;
};

struct RollStatus {
  int64_t observed_generation = -1;
  std::vector<Condition> conditions;
  std::optional<OperationPhase> phase;
  std::optional<Outcome> outcome;
  std::optional<Progress> progress;
  std::string error;
  std::string version;  // of the build it brings up
  std::string previous_version;
  std::string requested_by;
  RollReport report;  // inlined
  std::vector<RollStep> steps;
  std::vector<PreflightCheck> checks;
  std::vector<PlanStep> plan;
  std::vector<NextAction> next_actions;
  std::optional<Time> finished_at;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const RollStatus&) const = default;
};

struct Roll {
  static constexpr std::string_view kApiVersion = lockkeeper::kApiVersion;
  static constexpr std::string_view kKind = "Roll";
  static constexpr std::string_view kPlural = "rolls";

  ObjectMeta metadata;
  RollSpec spec;
  RollStatus status;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const Roll&) const = default;
};

}  // namespace lockkeeper
