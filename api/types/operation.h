// What Upgrade and Roll share: phases, outcomes, controls, checks and plans.
//
// Purpose:   one vocabulary for the durable operation, whoever carries it.
// Ownership: values. Threads: values. Failure: none here.
#pragma once

#include "api/types/meta.h"

namespace lockkeeper {

enum class OperationPhase {
  kPending,
  kDownloading,
  kBackingUp,
  kInstalling,
  kRestarting,
  kVerifying,
  kUpgradingRunners,
  kRollingBack,
  kSucceeded,
  kFailed,
  kRolledBack,
  kSkipped,  // a node step only
};
LK_TYPES_ENUM(OperationPhase);
// Succeeded, Failed, RolledBack, Skipped.
bool IsTerminal(OperationPhase phase);

enum class Outcome { kSucceeded, kRolledBack, kAborted, kAbandoned, kFailed };
LK_TYPES_ENUM(Outcome);

enum class WhenBusy { kWait, kFail };
LK_TYPES_ENUM(WhenBusy);

enum class OperationMode { kExecute, kPreflight };
LK_TYPES_ENUM(OperationMode);

enum class Gate { kBeforeFlip };
LK_TYPES_ENUM(Gate);

enum class OnRollback { kWhenStopped, kNever };
LK_TYPES_ENUM(OnRollback);

// The mutable part of an operation's spec, on Upgrade and on Roll alike; the agent reads and ors both.
struct Controls {
  bool paused = false;
  std::vector<Gate> approve;  // grows only
  bool abort = false;         // false to true only
  bool abandon = false;       // false to true only

  static const TypeInfo& Type();
  bool operator==(const Controls&) const = default;
};

// A build: what SameBuild compares (build.h).
struct BuildRef {
  std::string version;
  std::string commit;
  std::string sha256;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const BuildRef&) const = default;
};

// What was asked for, resolved once.
struct ResolvedBuild {
  std::string version;
  std::string commit;
  std::string sha256;
  std::string url;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const ResolvedBuild&) const = default;
};

enum class CheckState { kUnknown, kPassed, kFailed };
LK_TYPES_ENUM(CheckState);

// One precondition of the preflight.
struct PreflightCheck {
  std::string name;
  CheckState state = CheckState::kUnknown;
  std::string field;  // the field path it is about, when there is one
  std::string message;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const PreflightCheck&) const = default;
};

// One step of the ordered plan that a preflight shows.
struct PlanStep {
  std::string name;
  std::string description;
  std::optional<double> expected_seconds;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const PlanStep&) const = default;
};

}  // namespace lockkeeper
