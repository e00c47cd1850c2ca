// Context: one pass's reading of a Snapshot, for the rules of the plan. Internal to reconcilers/server.
//
// Purpose:   says in one place what "runs", "ready", "gone" and "the front is on it" mean; builds plans; and holds the
//            one guard that no rule can pass: a Ready slot is not stopped before the front is observed elsewhere.
// Threads:   a value over a Snapshot that outlives it. Failure: none; total.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reconcilers/server/layout.h"
#include "reconcilers/server/step.h"
#include "reconcilers/server/steps.h"

namespace lockkeeper::roll {

// What the process of a slot's present invocation is doing.
enum class Life {
  kNone,      // nothing of it is wanted or there
  kStarting,  // wanted; not executed yet
  kRunning,
  kDead,          // it ran, and is gone though it is wanted
  kNeverStarted,  // gone without having been executed, or gone with an earlier boot: no blame
  kStartFailed,   // the host could not execute it: actual.error says why
  kForeign,       // a process of a later invocation than ours stands there: refused, never adopted
  kStopping,      // unwanted, and still there
  kGone,          // unwanted, and gone
  kUnknown,
};
std::string_view LifeName(Life life);

enum class Readiness { kUnknown, kYes, kNo };

struct SlotView {
  std::string name;
  const SlotEntry* entry = nullptr;  // nullptr: no such slot in the record
  Life life = Life::kNone;
  Readiness readiness = Readiness::kUnknown;
  int port = 0;
  int unready_tries = 0;
  bool unit_absent = true;        // known: no unit and no companion of it is left
  std::optional<Time> exited_at;  // of the present invocation
  std::string exit_text;          // "exit code 1", "signal 11", "with the host"
  std::string readyz_text;        // "500, failed: etcd", why it is unknown
  const Fact<std::string>* exec_sha256 = nullptr;

  bool Ready() const { return readiness == Readiness::kYes; }
  bool NotReady() const { return readiness == Readiness::kNo; }
  bool Dead() const { return life == Life::kDead || life == Life::kNeverStarted || life == Life::kStartFailed; }
  bool Live() const { return life == Life::kRunning || life == Life::kStopping; }
  const SlotIntent& intent() const { return entry->intent; }
  const SlotActual& actual() const { return entry->actual; }
};

struct Failure {
  std::string reason;  // CamelCase
  std::string message;
  bool builds = false;  // the cause is the build's: it is not tried again by itself
};

class Context {
 public:
  // REQUIRES: snapshot.record is known; both outlive this.
  Context(const Snapshot& snapshot, const Now& now);

  const Snapshot& s;
  const Now& now;
  const ServerRecord& rec;
  const ServerSpec& spec;
  const OperationRecord* op;  // nullptr: none in flight
  const Layout layout;

  SlotView Slot(const std::string& name) const;
  SlotView Active() const { return Slot(rec.active); }

  bool HasFront() const { return spec.front_ref.has_value(); }
  std::string FrontName() const { return rec.key.ns + "/" + (spec.front_ref ? spec.front_ref->name : std::string()); }
  // It should answer and does not.
  bool FrontSilent() const { return HasFront() && !s.front.known(); }
  // Observed on hold, or there is no front that could send anything.
  bool FrontHolds() const;
  // Observed on the present invocation of this slot at its port; true without a front.
  bool FrontOn(const SlotView& slot) const;
  // Observed on another backend than any of this slot's present incarnation.
  bool FrontElsewhere(const SlotView& slot) const;
  // Rule D.
  bool MayStop(const SlotView& slot) const;

  Duration ReadyTimeout() const;
  Timeouts timeouts() const;  // of the operation in flight, else the Server's
  bool Settling() const { return rec.deleting || rec.stopped || (op != nullptr && op->notes.count("deleted") != 0); }

  // Plans.
  Plan Do(ServerRecord next, std::string reason, std::string message, std::optional<OutcomeRecord> outcome = {}) const;
  Plan Effect(Action action, std::string reason, std::string message, std::optional<ServerRecord> then = {},
              std::optional<ServerRecord> otherwise = {}) const;
  Plan Wait(std::string reason, std::string message, std::optional<Duration> requeue = {}) const;
  Plan WaitForPerson(std::string reason, std::string message, std::vector<NextAction> actions) const;
  Plan Stall(std::string reason, std::string message, std::vector<NextAction> actions = {},
             std::optional<Duration> requeue = {}) const;
  Plan FrontSilentPlan() const;
  // The command that shows what the front says of itself.
  std::string LookAtFront() const;
  NextAction MakeAction(std::string code, std::string command, std::string risk) const;

  // How soon a wait looks again where nothing wakes it: 50 ms first, then 200 ms (the seed's poll).
  Duration Poll(std::optional<Time> since) const;

  // Editing the operation of a record that will be committed.
  void FinishStep(ServerRecord& next, std::string_view step) const;
  void BeginStep(ServerRecord& next, std::string_view step) const;
  void SetDeadline(ServerRecord& next, std::string_view name, Duration after) const;
  bool DeadlinePassed(std::string_view name) const;
  Duration DeadlineLeft(std::string_view name) const;
  std::string Note(const std::string& name) const;
  // A new start of a slot's present incarnation.
  void StartAgain(ServerRecord& next, const std::string& slot) const;
  // Ends a wait for a person: the deadlines move by its length.
  void EndWait(ServerRecord& next) const;

 private:
  Commit MakeCommit(ServerRecord next, std::optional<OutcomeRecord> outcome = {}) const;
  // The first Ready slot that `next` stops against rule D; "" when there is none.
  std::string Unstoppable(const ServerRecord& next) const;
  Plan NotStoppedYet(const std::string& slot) const;
};

// Text for a person.
std::string SecondsText(Duration d);
std::string ExitText(const SlotActual& actual, const UnitStatus* unit);

}  // namespace lockkeeper::roll
