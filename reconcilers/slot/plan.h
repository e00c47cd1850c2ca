// Plan of one slot: what its process and companions need next, to be as the ledger wants them. Pure.
//
// Purpose:   converges processes to SlotIntent. Observations go into SlotActual first; then at most one effect. It
// never
//            starts a dead server by itself: a higher invocation in the intent is the order to (the Server plan gives
//            it). Companions of a slot that is wanted are started again, with back-off.
// Order:     companions, then the server; the server's stop, then the companions'; resets only when all is gone.
// SIGTERM:   at most once per invocation. sigterm_at is written before the signal. After a restart of the agent a
//            signal that may have been sent counts as sent when /readyz says shutdown or the listener is closed; a
//            second one would make kcp exit at once.
// Threads:   pure. Failure: total.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "reconcilers/ports/fact.h"
#include "reconcilers/ports/records.h"

namespace lockkeeper::slot {

// What this process did for a companion; not persisted: after a restart of the agent it begins anew.
struct CompanionTry {
  int failures = 0;       // starts since it last stayed up
  Duration started{};     // boot clock of the last one
  Duration terminated{};  // boot clock of our SIGTERM
  bool operator==(const CompanionTry&) const = default;
};

struct Snapshot {
  ServerKey key;
  std::string slot;
  SlotEntry entry;
  Fact<UnitStatus> unit;   // of intent.unit
  Fact<UnitStatus> stale;  // of actual.id.unit when that is another one: an earlier incarnation's
  std::map<std::string, Fact<UnitStatus>> companions;        // by name, of the intent
  std::map<std::string, Fact<UnitStatus>> stale_companions;  // by unit, of actual.companions that the intent lacks
  Fact<std::string> exec_sha256;                             // of the running process
  // Whether this process sent the SIGTERM that sigterm_at speaks of.
  bool sigterm_sent = false;
  // Asked only when sigterm_at stands and this process did not send it.
  Fact<bool> says_shutting_down;
  std::map<std::string, CompanionTry> tries;  // by unit
  // Nothing may be started or stopped on this host, and why (LedgerLost and the like); "": it may.
  std::string forbidden;
  bool operator==(const Snapshot&) const = default;
};

enum class StepKind {
  kNone,
  kNote,   // write `actual`, nothing else
  kStart,  // the server's process
  kStartCompanion,
  kTerminate,  // write `actual`, then the signal
  kKill,       // write `actual`, then SIGKILL to the session
  kReset,      // forget a unit
};
std::string_view StepKindName(StepKind kind);

struct Plan {
  StepKind step = StepKind::kNone;
  std::optional<SlotActual> actual;
  UnitSpec spec;  // of a start: placeholders filled in
  int64_t invocation = 0;
  UnitIdentity target;  // of a signal
  int signal = 0;
  std::string unit;  // of a reset; of any effect, for its reader
  std::string reason = "AsDesired";
  std::string message;
  Duration requeue_after{};  // zero: on the next event
  bool operator==(const Plan&) const = default;
};

Plan Decide(const Snapshot& snapshot, const Now& now);

// The actual as the facts say it now is.
SlotActual Noted(const Snapshot& snapshot, const Now& now);
// The intent's unit with {companion.NAME.port} filled in; nullopt while a port that it names is not known.
std::optional<UnitSpec> FillPorts(const SlotIntent& intent, const std::map<std::string, int>& ports);
// Whether an error of Units::Start ends this invocation (a person or a new invocation mends it), or is tried again.
bool EndsTheStart(Code code);

inline constexpr int kCompanionTries = 3;  // starts of a companion before its slot's start is given up
inline constexpr Duration kCompanionStop = Seconds(10);
inline constexpr Duration kCompanionSettled = Seconds(10);  // up this long: its failures are forgotten
inline constexpr Duration kResumePatience = Seconds(10);  // for a /readyz that does not answer, before a second SIGTERM

}  // namespace lockkeeper::slot
