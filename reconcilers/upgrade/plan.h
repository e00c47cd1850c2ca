// Plan of one Upgrade: Decide(Snapshot, now) names at most one mutation and what the status has to say.
//
// Purpose:   resolve, fetch, back up, roll, mirror, finish, in that order (upgrade.md). Conditions and phases are
//            never read: the plan is a function of the spec, the children, the Server's ledger view and the recorded
//            outcome, so wiping the rest changes nothing.
// Threads:   pure. Failure: total; there is no input without a plan.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "reconcilers/upgrade/snapshot.h"

namespace lockkeeper::upgrade {

// On every Upgrade from its first pass; goes when the Server's history shows the final outcome.
inline constexpr char kFinalizer[] = "lockkeeper.dev/operation";

struct AddFinalizer {
  bool operator==(const AddFinalizer&) const = default;
};
struct RemoveFinalizer {
  bool operator==(const RemoveFinalizer&) const = default;
};
struct CreateRelease {
  Release release;
  bool operator==(const CreateRelease&) const = default;
};
struct CreateBackup {
  StoreBackup backup;
  bool operator==(const CreateBackup&) const = default;
};
struct CreateRoll {
  Roll roll;
  bool operator==(const CreateRoll&) const = default;
};
// The object's time to live has passed.
struct DeleteSelf {
  bool operator==(const DeleteSelf&) const = default;
};
using Step =
    std::variant<std::monostate, AddFinalizer, RemoveFinalizer, CreateRelease, CreateBackup, CreateRoll, DeleteSelf>;

struct Finish {
  Outcome outcome = Outcome::kFailed;
  std::string reason;   // CamelCase, of the documented list
  std::string message;  // one sentence
  bool operator==(const Finish&) const = default;
};

struct Plan {
  Step step;
  OperationPhase phase = OperationPhase::kPending;
  std::string reason;  // of the Ready condition: why it stands where it stands
  std::string message;
  bool admitted = false;
  bool stalled = false;          // needs something to change outside
  std::optional<Finish> finish;  // the outcome to record now
  std::vector<NextAction> next_actions;
  Duration requeue_after{};  // zero: on the next event
  bool operator==(const Plan&) const = default;
};

Plan Decide(const Snapshot& snapshot, const Now& now);

// "NAME-" and eight characters of the uid: the same for every pass, another for a re-created Upgrade.
std::string ChildName(const Upgrade& upgrade);
// What of a version can stand in an object's name: lower case, "-" for what is not allowed there.
std::string NamePart(std::string_view version);
// One Release for each version and artifact of a Server; of its own for a moving target (latest, main).
std::string ReleaseName(const Upgrade& upgrade, const std::string& server);

}  // namespace lockkeeper::upgrade
