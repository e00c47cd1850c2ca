// Step and Plan: what one pass decides. Values only.
//
// Purpose:   at most one mutating step a pass, with the reason and the sentence that go to conditions, events, log and
//            metrics alike. A step is one commit to the ledger, or one effect on the world, each with what the ledger
//            says once it succeeded.
// Threads:   values. Failure: none.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "reconcilers/server/snapshot.h"

namespace lockkeeper::roll {

// The whole change of one ledger commit. It is refused (look again) when the record is not `base_revision` any more.
struct Commit {
  int64_t base_revision = 0;
  ServerRecord record;
  std::optional<OutcomeRecord> outcome;  // of an operation that ends by it, kept for ever
  bool remove = false;                   // the record goes
  bool operator==(const Commit&) const = default;
};

// Effects. Each names its target exactly; repeating any of them is harmless.
struct SeedSlot {
  SeedPlan plan;
  std::string user, group;
  bool clear = false;  // the files of a first start that never became ready go first
  bool operator==(const SeedSlot&) const = default;
};
struct HarvestShared {
  SeedPlan plan;
  bool operator==(const HarvestShared&) const = default;
};
struct RefreshToken {
  std::string kubeconfig, context, file;
  std::string differs_from;  // a kubeconfig whose token the new one must differ from; "": any will do
  bool operator==(const RefreshToken&) const = default;
};
struct PointCurrent {
  std::string link, target;
  std::string path_link, path_target;  // the second link, or ""
  bool operator==(const PointCurrent&) const = default;
};
struct RequestRelease {
  std::string name, version;
  bool operator==(const RequestRelease&) const = default;
};
struct RequestBackup {
  std::string name, reason;
  bool operator==(const RequestBackup&) const = default;
};
struct DrainBackend {
  std::string front, slot;
  int64_t incarnation = 0;
  Duration deadline{};
  bool operator==(const DrainBackend&) const = default;
};
struct DeleteLease {
  LeaseFact lease;  // uid and resourceVersion are the preconditions
  bool operator==(const DeleteLease&) const = default;
};
struct CreateProbe {
  std::string name;
  bool operator==(const CreateProbe&) const = default;
};
struct DeleteProbes {
  std::string name;  // and every older probe that still stands
  bool operator==(const DeleteProbes&) const = default;
};

using Action = std::variant<Commit, SeedSlot, HarvestShared, RefreshToken, PointCurrent, RequestRelease, RequestBackup,
                            DrainBackend, DeleteLease, CreateProbe, DeleteProbes>;

// What a step is to a reader: of a commit, its most telling change.
enum class StepKind {
  kNote,  // progress, deadlines, controls
  kAdmitOperation,
  kStartSlot,
  kStopSlot,
  kForgetSlot,
  kRecordActive,
  kHoldFront,
  kPointFront,
  kBeginUndo,
  kFinish,
  kRelease,
  kEffect,
};
std::string_view StepKindName(StepKind kind);
// The most telling change from `before` to `after`.
StepKind KindOf(const ServerRecord& before, const Commit& commit);

struct Step {
  Action action;
  StepKind kind = StepKind::kNote;
  std::string reason;  // CamelCase
  std::string message;
  std::optional<Commit> then;       // once the effect succeeded
  std::optional<Commit> otherwise;  // once it failed, where failing must not stop the plan
  bool operator==(const Step&) const = default;
};

struct Plan {
  std::string rule;  // that decided
  std::optional<Step> step;
  std::string reason = "AsDesired";  // why there is a step, or why there is none
  std::string message;
  bool waiting = false;                   // for time or the world
  bool for_a_person = false;              // waits for a person: a gate, a pause
  bool stalled = false;                   // nothing goes on before something outside is mended
  std::optional<Duration> requeue_after;  // unset: on the next event
  std::vector<PreflightCheck> checks;
  std::vector<PlanStep> steps_ahead;  // of a preflight
  std::vector<NextAction> next_actions;
  bool operator==(const Plan&) const = default;
};

std::string DebugString(const Step& step);
std::string DebugString(const Plan& plan);

}  // namespace lockkeeper::roll
