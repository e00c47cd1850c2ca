// Records: what the agent's ledger holds. The ledger is the truth about its host; resources only mirror it.
//
// Purpose: one ServerRecord per Server of the host (slots, active slot, the operation in flight, history), and one
//          Outcome per operation id ever finished. Plain values with a JSON form (records_json.h).
// Writers: one per field. Marked [plan]: the Server reconciler; [slot]: the Slot reconciler; [intent]: whoever
//          loads resources into the ledger. All run in the agent.
// A new member needs its line in reconcilers/ledger/records_json.cc, which does not build without it.
// Threads: values. Failure: none.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/types/roll.h"
#include "api/types/server.h"
#include "api/types/slot.h"
#include "reconcilers/ports/host_files.h"
#include "reconcilers/ports/units.h"

namespace lockkeeper {

struct ServerKey {
  std::string ns;
  std::string name;
  std::string ToString() const { return ns + "/" + name; }
  auto operator<=>(const ServerKey&) const = default;
};

// One build on this host.
struct HostBuild {
  std::string version;
  std::string commit;
  std::string sha256;       // of the artifact
  std::string path;         // unpacked release
  std::string exec_sha256;  // of the executable that argv[0] names
  bool operator==(const HostBuild&) const = default;
};

struct CompanionIntent {
  std::string name;
  UnitSpec unit;
  int port = 0;  // 0: from the process
  bool operator==(const CompanionIntent&) const = default;
};

// What the ledger wants of a slot. [plan]
struct SlotIntent {
  int64_t incarnation = 0;  // numbers a frozen rendering; never reused within a Server; 0: none yet
  int64_t invocation = 0;   // numbers a start of it, from 1; a higher one is a new start
  UnitSpec unit;            // argv and env may hold {companion.NAME.port}: filled in before the go
  std::vector<CompanionIntent> companions;
  HostBuild build;
  std::string root;
  std::string store_url;
  bool running = false;  // desired: the process of `invocation` runs / nothing of this slot runs
  int stop_signal = 15;
  int64_t stop_seconds = 75;
  bool forget = false;  // once stopped: unit, companions and run folders go
  bool operator==(const SlotIntent&) const = default;
};

struct CompanionActual {
  std::string name;
  UnitIdentity id;
  int port = 0;
  std::optional<UnitExit> exit;
  bool operator==(const CompanionActual&) const = default;
};

// What the host was last seen to run for that intent. [slot]
struct SlotActual {
  int64_t incarnation = 0;
  int64_t invocation = 0;
  UnitIdentity id;  // pid 0: never started
  int port = 0;     // first listening port of the process
  std::string executable;
  std::string exec_sha256;  // of the running bytes
  Time started_at{};        // exec
  Time listening_at{};
  Time stop_asked_at{};  // when `running` false was first seen
  Time sigterm_at{};     // written before the signal is sent; sent at most once per invocation
  Deadline kill_at;      // of that stop: when SIGKILL goes to the whole session
  Time killed_at{};
  std::optional<UnitExit> exit;
  Time exited_at{};
  std::optional<StopReason> stop_reason;
  std::vector<CompanionActual> companions;
  std::string error;       // why it could not be started: names the file or the errno
  std::string error_code;  // CodeName of it
  int64_t boots = 0;       // starts of this incarnation
  bool operator==(const SlotActual&) const = default;
};

struct SlotEntry {
  SlotIntent intent;
  SlotActual actual;
  // The rendering before this one, for an undo in the same slot (shape Single). [plan]
  std::optional<SlotIntent> previous;
  Time ready_at{};  // first Ready of the present invocation [plan]
  bool operator==(const SlotEntry&) const = default;
};

// A stop of ours in the plan: deadlines, notes and findings of the one operation in flight. [plan]
struct OperationRecord {
  std::string kind;           // Install, Upgrade, Roll
  std::string ns, name, uid;  // of the root object; uid may be empty when made here
  std::string spec_hash;      // of the root's spec without controls
  std::string roll_name;      // the Roll object that reports it (== name for kind Roll)
  std::string roll_uid;
  std::string action;  // Upgrade, Restart
  std::string requested_by;
  std::string from, to;  // slots
  bool outage = false;
  HostBuild target;
  RollSpec spec;                              // resolved: timeouts, gates, backup, restore
  std::string step;                           // name of the step being taken, of roll.md's table ("Admit" … "Done")
  std::map<std::string, Deadline> deadlines;  // by step
  std::map<std::string, Time> started, finished;  // by step
  std::map<std::string, std::string> notes;       // oldHolder, holderAtStop, probe, …
  std::vector<std::string> approved;              // or-ed from all sources
  bool abort = false;
  bool abandon = false;
  bool paused = false;
  std::optional<Now> waiting_since;  // for a person: deadlines stand still
  Duration waited{};                 // at gates and paused so far
  // Undo
  bool undoing = false;
  std::string failure_reason;  // CamelCase, first cause
  std::string failure_message;
  bool failure_is_the_builds = false;  // enters `rejected`
  std::vector<std::string> undo_errors;
  bool flipped_back = false;            // rule B used
  bool emergency_flip = false;          // rule A's flip used
  std::vector<PreflightCheck> checks;   // as the finished preflight left them
  RollReport report;                    // the report as far as known
  std::optional<SlotIntent> rendered;   // the new slot's frozen rendering, before it becomes the slot's intent
  std::string failed_step;              // the step that the failure ended
  std::optional<Outcome> roll_outcome;  // the root Upgrade holds the place after its Roll ended so
  int64_t root_generation = 0;          // of the root and the Roll when their controls were last read
  int64_t roll_generation = 0;
  bool operator==(const OperationRecord&) const = default;
};

struct OutcomeRecord {
  std::string kind, ns, name, uid, spec_hash, server;
  std::string version;
  OperationMode mode = OperationMode::kExecute;  // Preflight: it looked at `version` and brought up nothing
  Outcome outcome = Outcome::kFailed;
  std::string reason, message;
  std::string requested_by;
  Time started_at{}, finished_at{};
  std::optional<RollReport> report;
  std::string failed_step;
  std::map<std::string, Time> steps_started, steps_finished;
  std::string previous_version;            // what ran when it began
  std::vector<std::string> steps_skipped;  // finished with nothing to do
  // Not in ServerRecord.history: that is written at each step.
  std::vector<PreflightCheck> checks;
  std::vector<PlanStep> steps_ahead;  // of mode Preflight
  bool operator==(const OutcomeRecord&) const = default;
};

struct RejectedEntry {
  std::string version, exec_sha256, reason;
  Time at{};
  bool operator==(const RejectedEntry&) const = default;
};

struct ServerRecord {
  ServerKey key;
  std::string uid;         // of the Server object last loaded [intent]
  int64_t generation = 0;  // highest loaded [intent]
  ServerSpec spec;         // last loaded [intent]
  bool deleting = false;   // a deletionTimestamp was seen [intent]
  bool stopped = false;    // `lockkeeper stop` [intent]
  bool released = false;   // deleted with Orphan: kept, not acted on [plan]

  std::string active;        // the recorded active slot: the only flip intent; "" before the first install [plan]
  bool hold = false;         // the front is to hold (outage, undo of one, active slot has no address) [plan]
  int64_t incarnations = 0;  // counter [plan]
  std::map<std::string, SlotEntry> slots;
  std::string store_url;                             // follows the active slot [plan]
  std::string member_token_of;                       // slot#incarnation whose token the member file holds [plan]
  bool installed = false;                            // was Ready once [plan]
  bool harvested = false;                            // [plan]
  std::map<std::string, std::string> shared_hashes;  // [plan]
  std::string version;                               // of the active build [plan]
  std::optional<OperationRecord> operation;          // [plan]
  std::vector<OutcomeRecord> history;                // newest first, at most 20 here; all are in outcomes [plan]
  std::vector<RejectedEntry> rejected;               // [plan]
  std::optional<std::string> last_restarted_at;      // first sight only records it [plan]
  int64_t declared_attempts = 0;                     // counter for names of declared Upgrades [plan]
  bool store_touched_by_new_build = false;           // [plan]
  bool degraded = false;                             // persisting trouble after a roll [plan]
  std::string degraded_reason, degraded_message;     // [plan]
  std::string probe_name;                            // one that may still stand in the peer [plan]
  int64_t repairs = 0;                               // restarts of the active slot, for back-off [plan]
  Time last_repair_at{};                             // [plan]
  Deadline repair_not_before;                        // back-off of the next restart [plan]
  Time last_exit_at{};                               // when a process of a slot last ended [plan]
  std::string member_token_error;                    // why the file is behind; empty: it is not [plan]
  Deadline member_token_retry;                       // [plan]
  std::string link_of;                               // release path that `current` was last pointed to [plan]
  std::optional<HostBuild> previous_build;           // what a rollback goes back to; its release is kept [plan]
  std::string previous_slot;                         // where it ran [plan]
  // An outcome that waits for its reverse Roll (rollback.afterFlip: Automatic), or for a second commit. [plan]
  std::optional<OutcomeRecord> open_outcome;
  int64_t posted_revision = 0;  // ledger revision of the last change mirrored to the API
  int64_t revision = 0;         // ledger revision of the last change of this record
  bool operator==(const ServerRecord&) const = default;
};

}  // namespace lockkeeper
