// Draft: the record as one pass's finished steps leave it, until it is committed. Internal to reconcilers/server.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "reconcilers/server/rules.h"

namespace lockkeeper::roll {

// What a step's handler says.
struct HandlerResult {
  enum class Kind {
    kObserved,  // observed to be done: the next step's turn, in the same pass
    kNotYet,    // `plan` waits or acts; edits of the draft are committed before it
    kFinal,     // `plan` is the pass's plan and holds the draft's edits, or its effect's commit does
  };
  Kind kind = Kind::kObserved;
  std::optional<Plan> plan;
};

struct Draft {
  ServerRecord next;
  bool dirty = false;
  std::string reason, message;  // of the last edit

  OperationRecord& op() { return *next.operation; }
  void Say(std::string why, std::string text) {
    dirty = true;
    reason = std::move(why);
    message = std::move(text);
  }
};

inline HandlerResult StepDone() { return {HandlerResult::Kind::kObserved, std::nullopt}; }
inline HandlerResult NotYet(Plan plan) { return {HandlerResult::Kind::kNotYet, std::move(plan)}; }
inline HandlerResult Final(Plan plan) { return {HandlerResult::Kind::kFinal, std::move(plan)}; }
// Begins a step once, with its deadline; answers whether it began in this pass.
inline bool Begin(const Context& c, Draft& d, const char* step, std::optional<Duration> deadline, std::string message) {
  if (Started(d.op(), step)) return false;
  c.BeginStep(d.next, step);
  if (deadline) c.SetDeadline(d.next, step, *deadline);
  d.Say(step, std::move(message));
  return true;
}

// plan_roll.cc, plan_start.cc, plan_flip.cc, plan_lease.cc, plan_preflight.cc: one handler a step.
HandlerResult DoPreflight(const Context& c, Draft& d);
HandlerResult DoNoteHolder(const Context& c, Draft& d);
HandlerResult DoBackUp(const Context& c, Draft& d);
HandlerResult DoRender(const Context& c, Draft& d);
HandlerResult DoGates(const Context& c, Draft& d);
HandlerResult DoHold(const Context& c, Draft& d);
HandlerResult DoDrain(const Context& c, Draft& d);
HandlerResult DoStopOld(const Context& c, Draft& d);
HandlerResult DoSeed(const Context& c, Draft& d);
HandlerResult DoStart(const Context& c, Draft& d);
HandlerResult DoListen(const Context& c, Draft& d);
HandlerResult DoReady(const Context& c, Draft& d);
HandlerResult DoRecord(const Context& c, Draft& d);
HandlerResult DoFlip(const Context& c, Draft& d);
HandlerResult DoHarvest(const Context& c, Draft& d);
HandlerResult DoMemberToken(const Context& c, Draft& d);
HandlerResult DoSoak(const Context& c, Draft& d);
HandlerResult DoLease(const Context& c, Draft& d);
HandlerResult DoProbe(const Context& c, Draft& d);
HandlerResult DoRetire(const Context& c, Draft& d);
HandlerResult DoDone(const Context& c, Draft& d);

// plan_start.cc. The new slot's process died, was never executed, or is not ours; nothing when it is well.
std::optional<HandlerResult> NewSlotTrouble(const Context& c, Draft& d, const char* step);
// The new slot was ready and is not: its steps from Ready on are due again.
HandlerResult ReadyNoMore(const Context& c, Draft& d);

// plan_roll.cc. The backup grew too old while the roll waited for a person: BackUp is due again.
std::optional<HandlerResult> RetakeOldBackup(const Context& c, Draft& d);

// Paused by the operation, its root or its Server.
bool Paused(const Context& c);
// Abandoned, or its Server goes: it is finished without what only proves or waits.
bool Hurried(const Context& c);
// Waits for a person: the first time it is noted, so that deadlines stand still.
HandlerResult WaitAtGate(const Context& c, Draft& d, const char* step, std::string reason, std::string message,
                         std::vector<NextAction> actions);
// Ends such a wait, if there is one.
void LeaveGate(const Context& c, Draft& d);

}  // namespace lockkeeper::roll
