// Upgrade: one durable operation on a Server, an upgrade or a restart. Its name is its id.
//
// Purpose:   spec is written by the user or, for declarative Servers and runners, by the manager; status by the
//            manager. The spec is immutable from creation but for `controls` and ttl_seconds_after_finished.
// Ownership: values. Threads: values. Failure: none here.
#pragma once

#include "api/types/operation.h"

namespace lockkeeper {

enum class UpgradeAction { kUpgrade, kRestart };
LK_TYPES_ENUM(UpgradeAction);

enum class RollbackMode { kEnabled, kDisabled };
LK_TYPES_ENUM(RollbackMode);

enum class RunnerFailurePolicy { kStopBeforeFirstSuccess, kStop, kContinue };
LK_TYPES_ENUM(RunnerFailurePolicy);

struct RunnerWalk {
  RunnerFailurePolicy on_failure = RunnerFailurePolicy::kStopBeforeFirstSuccess;
  int64_t step_timeout_seconds = 1200;
  int64_t rejoin_timeout_seconds = 180;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const RunnerWalk&) const = default;
};

struct UpgradeSpec {
  LocalRef server_ref;
  UpgradeAction action = UpgradeAction::kUpgrade;
  std::string version;  // a tag, latest or main
  std::string artifact;
  bool allow_downgrade = false;
  RollbackMode rollback = RollbackMode::kEnabled;
  std::optional<int64_t> ready_timeout_seconds;
  RunnerWalk runners;
  std::vector<Gate> gates;
  WhenBusy when_busy = WhenBusy::kWait;
  OperationMode mode = OperationMode::kExecute;
  std::string requested_by;
  Controls controls;  // inlined: paused, approve, abort, abandon
  std::optional<int64_t> ttl_seconds_after_finished;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const UpgradeSpec&) const = default;
};

struct PhaseRecord {
  OperationPhase name = OperationPhase::kPending;
  std::optional<Time> started_at;
  std::optional<Time> finished_at;
  std::optional<Time> deadline;
  std::optional<double> paused_seconds;
  std::string message;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const PhaseRecord&) const = default;
};

// One runner of the walk.
struct NodeStep {
  std::string name;
  std::string uid;
  std::string operation;  // the child Upgrade's name
  OperationPhase phase = OperationPhase::kPending;
  std::string error;
  std::string progress;
  std::string previous_version;
  std::string new_version;
  std::optional<Time> started_at;
  std::optional<Time> finished_at;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const NodeStep&) const = default;
};

struct UpgradeStatus {
  int64_t observed_generation = -1;
  std::vector<Condition> conditions;
  std::optional<OperationPhase> phase;
  std::optional<Outcome> outcome;
  std::optional<Progress> progress;
  std::string error;
  std::optional<ResolvedBuild> resolved;
  std::string previous_version;
  std::string previous_commit;
  std::string previous_instance_id;
  std::string new_version;
  std::string new_instance_id;
  std::map<std::string, std::string> components;
  std::optional<LocalRef> release_ref;
  std::optional<LocalRef> backup_ref;
  std::optional<LocalRef> restore_ref;
  std::optional<LocalRef> roll_ref;
  std::string driven_by;
  std::string requested_by;  // the user that the API knows, else the spec's hint
  std::vector<PhaseRecord> phases;
  std::vector<NodeStep> nodes;
  std::vector<PreflightCheck> checks;
  std::vector<PlanStep> plan;
  std::vector<NextAction> next_actions;
  std::optional<Time> started_at;
  std::optional<Time> finished_at;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const UpgradeStatus&) const = default;
};

struct Upgrade {
  static constexpr std::string_view kApiVersion = lockkeeper::kApiVersion;
  static constexpr std::string_view kKind = "Upgrade";
  static constexpr std::string_view kPlural = "upgrades";

  ObjectMeta metadata;
  UpgradeSpec spec;
  UpgradeStatus status;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const Upgrade&) const = default;
};

}  // namespace lockkeeper
