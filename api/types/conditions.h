// Conditions: setting them, the kstatus rules, and the lists of types and reasons that the reference prints.
//
// Purpose:   every status is written by these rules: lastTransitionTime moves only with the status, each condition
//            carries observedGeneration, Reconciling and Stalled stand only while True and never both, a terminal
//            failure sets Stalled beside Failed.
// Ownership: values; the lists are static.
// Threads:   pure functions.
// Failure:   none.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/types/meta.h"

namespace lockkeeper {

// Name, kinds it stands on, sentence.
#define LK_CONDITION_TYPES(X)                                                                                         \
  X(Ready, "all", "It is as its spec wants it; an operation: it ended well.")                                         \
  X(Reconciling, "all", "It is on its way to its spec. Present only while True, never beside Stalled.")               \
  X(Stalled, "all",                                                                                                   \
    "It goes no further by itself; status.nextActions says what a person can do. Present only while "                 \
    "True, never beside Reconciling.")                                                                                \
  X(Available, "Server", "The front answers through a ready slot.")                                                   \
  X(Progressing, "Server, Upgrade, Roll", "An operation is under way.")                                               \
  X(Degraded, "Server", "Trouble that persists; never during a normal roll.")                                         \
  X(Upgradeable, "Server", "An operation could start now; the reason names what blocks it.")                          \
  X(LeaseHeld, "Server, Roll", "The controllers' Lease is held by a process of the active slot.")                     \
  X(FrontInSync, "Server", "The front's backend is the recorded active slot.")                                        \
  X(TemplateDrift, "Server", "The active slot runs an older rendering than the template now gives.")                  \
  X(RestorePending, "Server", "A StoreRestore is unanswered; the build it names does not start until it is settled.") \
  X(RollbackReady, "Server",                                                                                          \
    "Going back would work: the previous release is kept, no one-way storage change is known.")                       \
  X(StoreTouchedByNewBuild, "Server", "A build that was undone wrote to the shared store.")                           \
  X(Admitted, "Upgrade, Roll", "The agent took the operation up; only one of a Server is at a time.")                 \
  X(Complete, "Upgrade, Roll", "It ended well.")                                                                      \
  X(Failed, "Upgrade, Roll", "It did not end well; status.outcome says how it ended.")                                \
  X(Finished, "Upgrade, Roll", "It ended, well or not: what kubectl wait --for=condition=Finished waits for.")        \
  X(AbortRefused, "Upgrade, Roll", "An abort came too late.")                                                         \
  X(AbandonRefused, "Upgrade, Roll", "There was nothing to abandon.")                                                 \
  X(BackendFlipped, "Roll", "The front was observed on the new slot.")                                                \
  X(Drained, "Roll", "The old slot has no connections left.")                                                         \
  X(OldStopped, "Roll", "The old process is gone.")                                                                   \
  X(ProbeReady, "Roll", "The probe object made through the front became Ready.")

namespace condition {
#define LK_CONDITION_CONSTANT(name, kinds, doc) inline constexpr std::string_view k##name = #name;
LK_CONDITION_TYPES(LK_CONDITION_CONSTANT)
#undef LK_CONDITION_CONSTANT
}  // namespace condition

struct ConditionTypeInfo {
  std::string_view name;
  std::string_view kinds;
  std::string_view doc;
};
const std::vector<ConditionTypeInfo>& ConditionTypes();

// nullptr when it is not there.
const Condition* FindCondition(const std::vector<Condition>& conditions, std::string_view type);
bool IsConditionTrue(const std::vector<Condition>& conditions, std::string_view type);

// Sets or adds the condition of `wanted.type`. last_transition_time becomes `now` (whole seconds) when the status
// differs from what stood, else stays. Answers whether anything changed but observed_generation.
bool SetCondition(std::vector<Condition>& conditions, Condition wanted, Time now);
// Answers whether it was there.
bool RemoveCondition(std::vector<Condition>& conditions, std::string_view type);

// The conditions as computed anew, with the transition times of `before` where the status is the same. Types that
// `computed` lacks are gone. Sets observed_generation on each.
std::vector<Condition> CarryConditions(const std::vector<Condition>& before, std::vector<Condition> computed,
                                       int64_t generation, Time now);

// Where an object stands for kstatus, kubectl wait and Helm.
enum class Settling {
  kCurrent,      // Ready as `ready` says, neither Reconciling nor Stalled
  kReconciling,  // on its way
  kStalled,      // goes no further by itself
};
struct ReadySummary {
  ConditionStatus ready = ConditionStatus::kUnknown;
  Settling settling = Settling::kReconciling;
  std::string reason;
  std::string message;
};
// Sets Ready, and Reconciling or Stalled or neither. Stalled comes with Ready not True; a summary that says both is
// written as Ready False.
void SetReady(std::vector<Condition>& conditions, const ReadySummary& summary, int64_t generation, Time now);

// What kstatus makes of an object: "Terminating", "InProgress", "Failed" or "Current", in its order (crd-idioms 3.3).
std::string_view KstatusOf(const Json& object);

}  // namespace lockkeeper
