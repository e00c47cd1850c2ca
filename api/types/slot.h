// Slot: one place a server process runs; desired and actual, a mirror of the agent's ledger.
// Ownership: values. Threads: values. Failure: none here.
#pragma once

#include "api/types/server_template.h"

namespace lockkeeper {

// A companion as it is run.
struct RenderedCompanion {
  std::string name;
  std::string unit;
  std::vector<std::string> command;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const RenderedCompanion&) const = default;
};

// What is run, frozen for one incarnation.
struct RenderedUnit {
  std::string name;
  std::vector<std::string> command;
  std::vector<EnvVar> env;
  std::string working_directory;
  std::string root;
  std::string user;
  std::string group;
  std::optional<int64_t> port;  // unset: read from the process
  std::optional<ResourceLimits> limits;
  std::vector<RenderedCompanion> companions;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const RenderedUnit&) const = default;
};

struct SlotSpec {
  LocalRef server_ref;
  std::string host;
  bool running = false;
  std::optional<LocalRef> release_ref;
  int64_t incarnation = 0;
  std::optional<RenderedUnit> unit;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const SlotSpec&) const = default;
};

enum class SlotState { kStopped, kStarting, kListening, kReady, kStopping, kFailed };
LK_TYPES_ENUM(SlotState);

enum class StopReason { kRequested, kExit, kSignal, kOom, kWatchdog, kTimeout, kHostReboot };
LK_TYPES_ENUM(StopReason);

struct SlotStatus {
  int64_t observed_generation = -1;
  std::optional<SlotState> state;
  std::string unit;
  std::optional<int64_t> pid;
  std::string invocation_id;
  std::optional<int64_t> port;
  std::optional<int64_t> incarnation;
  std::string exec;
  std::string sha256;
  std::string version;
  std::optional<Time> started_at;    // microseconds
  std::optional<Time> listening_at;  // microseconds
  std::optional<Time> ready_at;      // microseconds
  std::optional<Time> exited_at;     // microseconds
  std::optional<int64_t> exit_code;
  std::optional<int64_t> exit_signal;
  std::optional<StopReason> stop_reason;
  int64_t boots = 0;
  int64_t restarts = 0;
  std::vector<std::string> last_output;  // 20 lines, secrets masked
  std::vector<Condition> conditions;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const SlotStatus&) const = default;
};

struct Slot {
  static constexpr std::string_view kApiVersion = lockkeeper::kApiVersion;
  static constexpr std::string_view kKind = "Slot";
  static constexpr std::string_view kPlural = "slots";

  ObjectMeta metadata;
  SlotSpec spec;
  SlotStatus status;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const Slot&) const = default;
};

}  // namespace lockkeeper
