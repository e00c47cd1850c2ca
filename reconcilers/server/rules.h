// The rules of the plan, by file. Internal to reconcilers/server.
// Each answers a plan when it applies, else nothing. Pure; total.
#pragma once

#include <optional>

#include "reconcilers/server/context.h"

namespace lockkeeper::roll {

using RuleResult = std::optional<Plan>;

// plan_repair.cc
RuleResult FlipBackToTheOldSlot(const Context& c);  // rule B
RuleResult RepairTheActiveSlot(const Context& c);   // rule A
RuleResult RetireStraySlots(const Context& c);      // rule F
RuleResult ForgetOldRepairs(const Context& c);

// plan_undo.cc
RuleResult ObeyAbortAndAbandon(const Context& c);  // rules G and H
RuleResult Undo(const Context& c);
// The plan after a failed step: untouched ends as Failed, else the undo begins. `next` holds this pass's edits.
Plan Fail(const Context& c, ServerRecord next, std::string_view step, const Failure& failure);
// What shows the last words of a slot, of one that is undone already too.
std::string LogsCommand(const Context& c, const std::string& slot);
// The record with which the undo begins.
ServerRecord Undoing(const Context& c, ServerRecord next, std::string_view step, const Failure& failure);

// plan_roll.cc
RuleResult CarryTheOperationOn(const Context& c);

// plan_lease.cc
RuleResult FreeTheLeaseOfADeadHolder(const Context& c);  // rule C

// plan_admit.cc
RuleResult RecordControls(const Context& c);
RuleResult CloseTheUpgrade(const Context& c);
RuleResult AdmitTheNextOperation(const Context& c);  // rule E
RuleResult EndTheAbortedWhoWait(const Context& c);
RuleResult RefuseWhoWillNotWait(const Context& c);  // rule E: whenBusy Fail
RuleResult BeginTheInstall(const Context& c);
RuleResult SeeRestartedAt(const Context& c);
RuleResult ApplyTheEditedTemplate(const Context& c);  // updatePolicy: Immediately
RuleResult ForgetWhatWasStopped(const Context& c);
// In `rejected` because a person aborted or abandoned it: that stands until spec.version changes.
bool StoppedByAPerson(const RejectedEntry& entry);
bool TemplateDrifts(const Context& c);
// An API that went back in time: what it says was wanted before what the ledger has loaded.
bool SpecOlderThanHost(const Context& c);
bool AnythingWaits(const Context& c);  // an operation that has not been admitted
bool RollbackReady(const Context& c, const OperationRecord& op);
// The failed operation's outcome is kept open, and the way back to the build before it begins.
Plan ReverseRoll(const Context& c, ServerRecord next);
OutcomeRecord OutcomeOf(const Context& c, const OperationRecord& op, Outcome outcome, const std::string& reason,
                        const std::string& message);
// The plan that ends the operation in flight.
Plan Finish(const Context& c, ServerRecord next, Outcome outcome, const std::string& reason,
            const std::string& message);

// plan_idle.cc
RuleResult EndTheServer(const Context& c);         // deletion and `stop`
RuleResult FollowTheActiveSlot(const Context& c);  // token, link, harvest
RuleResult WatchTheActiveSlot(const Context& c);

// plan_preflight.cc
struct Check {
  PreflightCheck check;
  std::string reason;    // of the documented list, when it failed
  bool by_spec = false;  // the specs alone decide it: no waiting mends it
  NextAction action;
};
std::vector<Check> RunPreflight(const Context& c);
std::vector<PlanStep> StepsAhead(const Context& c);
// The rendering of the new slot of the operation in flight, with the next incarnation.
Result<SlotIntent> RenderTarget(const Context& c);
// What the new slot would be built from: the release asked for, or the active build.
Fact<HostBuild> TargetBuild(const Context& c);

// Seed files of a slot's root. For a first install only those that are there.
SeedPlan SeedOf(const Context& c, const std::string& slot);
// "SLOT#INCARNATION.INVOCATION": whose token a member file may hold.
std::string TokenOwner(const std::string& slot, const SlotIntent& intent);
// The effect that makes the members' file hold the active slot's token; `finish` is the step it ends, or "".
Plan RefreshMemberToken(const Context& c, const SlotView& active, ServerRecord next, std::string_view finish);

}  // namespace lockkeeper::roll
