#include "reconcilers/upgrade/plan.h"

#include <algorithm>
#include <cctype>

#include "api/base/hash.h"
#include "api/types/build.h"
#include "reconcilers/upgrade/declared.h"

namespace lockkeeper::upgrade {
namespace {

constexpr Duration kHostPoll = Seconds(1);
// Who waits looks again this often for whom it waits: a change of the place wakes nobody else (wake.h).
constexpr Duration kHolderPoll = Seconds(5);

const Condition* Find(const std::vector<Condition>& conditions, std::string_view type) {
  for (const Condition& c : conditions) {
    if (c.type == type) return &c;
  }
  return nullptr;
}

// True when the child's own controller says so for the generation it has.
bool IsTrue(const std::vector<Condition>& conditions, std::string_view type, int64_t generation) {
  const Condition* c = Find(conditions, type);
  return c != nullptr && c->status == ConditionStatus::kTrue && c->observed_generation >= generation;
}

const HistoryEntry* HistoryOf(const Server& server, const std::string& uid) {
  for (const HistoryEntry& h : server.status.history) {
    if (h.kind == Upgrade::kKind && h.uid == uid && h.outcome) return &h;
  }
  return nullptr;
}

// The ledger has settled it: its history shows it, or only what ended later, which pushed it out.
bool Settled(const std::vector<HistoryEntry>& history, const Upgrade& upgrade) {
  const auto of_it = [&](const HistoryEntry& h) { return h.kind == Upgrade::kKind && h.uid == upgrade.metadata.uid; };
  if (std::any_of(history.begin(), history.end(), of_it)) return true;
  const auto& end = upgrade.status.finished_at;
  return !history.empty() && end && std::all_of(history.begin(), history.end(), [&](const HistoryEntry& h) {
    return h.finished_at && *h.finished_at > *end;
  });
}

OwnerReference OwnerOf(const Upgrade& upgrade) {
  OwnerReference ref;
  ref.api_version = Upgrade::kApiVersion;
  ref.kind = Upgrade::kKind;
  ref.name = upgrade.metadata.name;
  ref.uid = upgrade.metadata.uid;
  ref.controller = true;
  ref.block_owner_deletion = true;
  return ref;
}

ObjectMeta ChildMeta(const Upgrade& upgrade, std::string name) {
  ObjectMeta meta;
  meta.name = std::move(name);
  meta.namespace_ = upgrade.metadata.namespace_;
  return meta;
}

// One pass over one snapshot. Rules in their order; the first that fills the plan ends it.
class Decider {
 public:
  Decider(const Snapshot& s, const Now& now) : s_(s), u_(s.upgrade), now_(now) {}

  Plan Run() {
    if (Finished() || Deleted() || NeedsFinalizer() || ServerMissing() || Recorded() || HostAway() || Waiting() ||
        Mirrored() || Controls() || Refused() || Releasing() || BackingUp()) {
      return std::move(plan_);
    }
    StartRoll();
    return std::move(plan_);
  }

 private:
  bool Wait(OperationPhase phase, std::string reason, std::string message) {
    plan_.phase = phase;
    plan_.reason = std::move(reason);
    plan_.message = std::move(message);
    return true;
  }
  bool Stall(OperationPhase phase, std::string reason, std::string message, std::vector<NextAction> actions = {}) {
    plan_.stalled = true;
    plan_.next_actions = std::move(actions);
    return Wait(phase, std::move(reason), std::move(message));
  }
  bool Do(Step step, OperationPhase phase, std::string reason, std::string message) {
    plan_.step = std::move(step);
    return Wait(phase, std::move(reason), std::move(message));
  }
  bool End(Outcome outcome, std::string reason, std::string message) {
    plan_.finish = Finish{outcome, reason, message};
    const OperationPhase phase = outcome == Outcome::kSucceeded    ? OperationPhase::kSucceeded
                                 : outcome == Outcome::kRolledBack ? OperationPhase::kRolledBack
                                                                   : OperationPhase::kFailed;
    return Wait(phase, std::move(reason), std::move(message));
  }
  NextAction Action(const char* code, const std::string& verb, const char* risk) const {
    NextAction a;
    a.code = code;
    a.command = "lockkeeper " + verb + " -n " + u_.metadata.namespace_;
    a.risk = risk;
    return a;
  }
  const Server& server() const { return *s_.server; }
  // The ledger's place for operations is held by this Upgrade.
  bool HoldsPlace() const {
    return s_.server.known() && server().status.operation && server().status.operation->uid == u_.metadata.uid;
  }

  // Closed over the id: an outcome is never changed. What is left is letting go.
  bool Finished() {
    if (!u_.status.outcome) return false;
    const Outcome outcome = *u_.status.outcome;
    plan_.admitted = true;
    plan_.phase = u_.status.phase.value_or(OperationPhase::kFailed);
    if (!IsTerminal(plan_.phase)) {
      plan_.phase = outcome == Outcome::kSucceeded    ? OperationPhase::kSucceeded
                    : outcome == Outcome::kRolledBack ? OperationPhase::kRolledBack
                                                      : OperationPhase::kFailed;
    }
    plan_.reason = std::string(EnumName(outcome));
    plan_.message = u_.status.error;
    const bool server_gone = s_.server.absent();
    const bool recorded = s_.server.known() && s_.server_is_current && Settled(server().status.history, u_);
    const bool holding = HoldsPlace();
    if (u_.metadata.HasFinalizer(kFinalizer) && !holding && (server_gone || recorded)) {
      plan_.step = RemoveFinalizer{};
      return true;
    }
    if (u_.metadata.Deleting() || !u_.spec.ttl_seconds_after_finished || !u_.status.finished_at) return true;
    const Duration left =
        *u_.status.finished_at + Seconds(static_cast<double>(*u_.spec.ttl_seconds_after_finished)) - now_.wall;
    if (left > Duration::zero()) {
      plan_.requeue_after = left;
    } else if (!u_.metadata.HasFinalizer(kFinalizer)) {
      plan_.step = DeleteSelf{};
    }
    return true;
  }

  // Deleted before it has an outcome. The agent settles what it admitted; the rest simply goes.
  bool Deleted() {
    if (!u_.metadata.Deleting()) return false;
    if (!u_.metadata.HasFinalizer(kFinalizer)) return Wait(OperationPhase::kPending, "Deleting", "being deleted");
    if (s_.server.unknown()) return Wait(OperationPhase::kPending, "Unreadable", s_.server.why());
    if (s_.server.absent()) {
      return Do(RemoveFinalizer{}, OperationPhase::kFailed, "ServerDeleted", "deleted; its Server is gone too");
    }
    if (const HistoryEntry* h = HistoryOf(server(), u_.metadata.uid)) {
      return End(*h->outcome, std::string(EnumName(*h->outcome)), "settled after it was deleted");
    }
    if (!HoldsPlace()) {
      return Do(RemoveFinalizer{}, OperationPhase::kFailed, "Deleting", "deleted before it was admitted");
    }
    if (s_.roll.absent()) return End(Outcome::kAborted, "Deleting", "deleted before anything was changed");
    return false;  // the roll is undone or completed first; Mirrored() tells of it
  }

  // The agent admits only what already carries it.
  bool NeedsFinalizer() {
    if (u_.metadata.HasFinalizer(kFinalizer)) return false;
    return Do(AddFinalizer{}, OperationPhase::kPending, "Pending", "not admitted yet");
  }

  bool ServerMissing() {
    const std::string& name = u_.spec.server_ref.name;
    if (s_.server.unknown()) {
      return Wait(OperationPhase::kPending, "Unreadable", "Server " + name + " cannot be read: " + s_.server.why());
    }
    if (!s_.server.absent()) return false;
    // Nobody else could have admitted it.
    if (u_.spec.controls.abort || u_.spec.controls.abandon) return Controls();
    return Stall(OperationPhase::kPending, "ServerNotFound",
                 "spec.serverRef.name: Server \"" + name +
                     "\" does not exist in this namespace; create it, or delete "
                     "this Upgrade");
  }

  // The ledger already knows how this uid ended: refused as busy, answered from an earlier object, settled.
  bool Recorded() {
    const HistoryEntry* h = HistoryOf(server(), u_.metadata.uid);
    if (h == nullptr) return false;
    plan_.admitted = true;
    if (s_.roll.known() && s_.roll->status.outcome) return MirrorOutcome(*s_.roll);
    // What ended after this object was made was no earlier object's: the agent turned it away without a roll.
    const bool its_own =
        h->finished_at && u_.metadata.creation_timestamp && *h->finished_at >= *u_.metadata.creation_timestamp;
    if (its_own && (*h->outcome == Outcome::kAborted || *h->outcome == Outcome::kAbandoned)) {
      const bool aborted = *h->outcome == Outcome::kAborted;
      return End(*h->outcome, std::string(EnumName(*h->outcome)),
                 std::string(aborted ? "aborted" : "abandoned") + " while it waited; nothing was changed");
    }
    if (its_own && *h->outcome == Outcome::kFailed) {
      if (server().metadata.Deleting()) {
        return End(*h->outcome, "ServerDeleted", "its Server is being deleted; nothing was changed");
      }
      if (u_.spec.when_busy == WhenBusy::kFail) {
        return End(*h->outcome, "Busy",
                   "Server " + server().metadata.name +
                       " was busy with another operation, and spec.whenBusy is Fail; nothing was changed; make another "
                       "one, under a new name, once that has ended");
      }
    }
    return End(*h->outcome, "AlreadyApplied",
               "the host's ledger answers for this name and spec: " + std::string(EnumName(*h->outcome)) +
                   "; use a new name to do it once more");
  }

  bool HostAway() {
    plan_.requeue_after = kHostPoll;
    const std::string& host = server().spec.host;
    const bool place = HoldsPlace();
    const OperationPhase phase = place ? CurrentPhase() : OperationPhase::kPending;
    switch (s_.host) {
      case HostState::kFresh: plan_.requeue_after = {}; break;
      case HostState::kUndetermined:
        return Wait(phase, "HostUndetermined", "waiting for the heartbeat of host " + host);
      case HostState::kNeverSeen:
        return Stall(phase, "HostUnknown",
                     "no agent ever reported from host \"" + host + "\"; start `lockkeeper agent --host " + host +
                         "` there, or mend spec.host of the Server");
      case HostState::kLost:
        return Stall(phase, "AgentLost",
                     "the agent of host \"" + host + "\" has been silent for 40 s; the operation stands as it is",
                     {Action("Abandon", "abandon " + u_.metadata.name,
                             "ends the waiting; the host finishes or undoes it when it is back")});
    }
    if (!s_.server_is_current) {
      plan_.requeue_after = Milliseconds(200);
      return Wait(phase, "StatusBehind", "waiting for host " + host + " to post its last change");
    }
    return false;
  }

  bool Waiting() {
    if (HoldsPlace()) {
      plan_.admitted = true;
      return false;
    }
    if (const auto& op = server().status.operation) {
      plan_.requeue_after = kHolderPoll;
      // Not at which phase that is: each would be a write for each that waits.
      return Wait(OperationPhase::kPending, "Busy", "waits for " + op->kind + " " + op->name + StalledHolder(op->name));
    }
    if (server().spec.paused) {
      return Wait(OperationPhase::kPending, "ServerPaused",
                  "spec.paused of Server " + server().metadata.name + " is true; set it to false to go on");
    }
    const Condition* ready = Find(server().status.conditions, "Ready");
    if (ready != nullptr && ready->reason == "ServerStopped") {
      return Wait(OperationPhase::kPending, "ServerStopped",
                  "Server " + server().metadata.name + " is stopped; `lockkeeper start " + server().metadata.name +
                      " -n " + u_.metadata.namespace_ + "` starts it, and this goes on");
    }
    plan_.requeue_after = kHolderPoll;
    return Wait(OperationPhase::kPending, "Pending", "waits for the agent of host " + server().spec.host);
  }

  // That the holder does not go on by itself, and how a person ends it; "" while it does.
  std::string StalledHolder(const std::string& name) const {
    if (s_.holder.known() && s_.holder->status.outcome) return "";  // it is about to let go
    const std::vector<Condition>& conditions =
        s_.holder.known() ? s_.holder->status.conditions : server().status.conditions;
    const Condition* stalled = Find(conditions, "Stalled");
    if (stalled == nullptr || stalled->status != ConditionStatus::kTrue) return "";
    return ", which is stalled: " + stalled->message + "; mend that, or end it with `lockkeeper abort " + name +
           " -n " + u_.metadata.namespace_ + "`";
  }

  OperationPhase CurrentPhase() const {
    if (s_.roll.known()) return RollPhase(*s_.roll);
    if (s_.backup.known()) return OperationPhase::kBackingUp;
    if (s_.release.known()) return OperationPhase::kDownloading;
    return OperationPhase::kPending;
  }

  static OperationPhase RollPhase(const Roll& roll) {
    const OperationPhase p = roll.status.phase.value_or(OperationPhase::kInstalling);
    // What comes before Installing was this Upgrade's own; a Roll only looks at it again.
    return p < OperationPhase::kInstalling ? OperationPhase::kInstalling : p;
  }

  bool MirrorOutcome(const Roll& roll) {
    const Outcome outcome = *roll.status.outcome;
    const Condition* failed = Find(roll.status.conditions, "Failed");
    const Condition* ready = Find(roll.status.conditions, "Ready");
    std::string reason = failed != nullptr && failed->status == ConditionStatus::kTrue ? failed->reason
                         : ready != nullptr                                            ? ready->reason
                                                                                       : std::string();
    if (reason.empty()) reason = std::string(EnumName(outcome));
    std::string message = roll.status.error;
    if (message.empty()) {
      const bool looked = outcome == Outcome::kSucceeded && u_.spec.mode == OperationMode::kPreflight;
      message = looked                           ? "every precondition holds; nothing was changed"
                : outcome == Outcome::kSucceeded ? "runs " + roll.status.version
                                                 : std::string(EnumName(outcome));
    }
    return End(outcome, std::move(reason), std::move(message));
  }

  bool Mirrored() {
    if (s_.roll.unknown()) return Wait(CurrentPhase(), "Unreadable", s_.roll.why());
    if (!s_.roll.known()) return false;
    const Roll& roll = *s_.roll;
    if (roll.status.outcome) return MirrorOutcome(roll);
    const Condition* stalled = Find(roll.status.conditions, "Stalled");
    if (stalled != nullptr && stalled->status == ConditionStatus::kTrue) {
      return Stall(RollPhase(roll), stalled->reason, stalled->message, roll.status.next_actions);
    }
    const Condition* ready = Find(roll.status.conditions, "Ready");
    plan_.next_actions = roll.status.next_actions;
    // It can only be queued behind this very Upgrade, which holds the place until its Roll takes it over.
    if (ready != nullptr && ready->reason == "Queued" && HoldsPlace()) {
      return Wait(RollPhase(roll), "OperationRunning", RollText());
    }
    return Wait(RollPhase(roll), ready != nullptr ? ready->reason : "OperationRunning",
                ready != nullptr ? ready->message : "the roll has not reported yet");
  }

  // Before there is a roll the controls are answered here; afterwards the agent reads them itself.
  bool Controls() {
    if (u_.spec.controls.abandon) {
      return End(Outcome::kAbandoned, "Abandoned", "abandoned before anything was changed");
    }
    if (u_.spec.controls.abort) return End(Outcome::kAborted, "Aborted", "aborted before anything was changed");
    if (u_.spec.controls.paused) {
      return Wait(CurrentPhase(), "Paused", "spec.paused is true; set it to false to go on");
    }
    return false;
  }

  // What the specs alone decide.
  bool Refused() {
    if (u_.spec.action != UpgradeAction::kUpgrade) return false;
    const std::string& declared = server().spec.version;
    if (!declared.empty() && declared != u_.spec.version) {
      return End(Outcome::kFailed, "DeclaredVersionDiffers",
                 "Server " + server().metadata.name + " declares version " + declared +
                     "; change its spec.version, or remove it to let Upgrades decide");
    }
    const std::string& running = server().status.version;
    if (IsDowngrade(running, u_.spec.version) && !u_.spec.allow_downgrade && !server().spec.allow_downgrade) {
      const bool by_server = u_.metadata.labels.count(kDeclaredLabel) != 0;
      return End(Outcome::kFailed, "DowngradeRefused",
                 u_.spec.version + " is older than the running " + running + "; set spec.allowDowngrade " +
                     (by_server ? "of Server " + server().metadata.name : std::string("under a new name")) +
                     " to go back");
    }
    if (!server().spec.source) {
      return End(Outcome::kFailed, "NoSource",
                 "Server " + server().metadata.name + " has no spec.source to fetch " + u_.spec.version + " from");
    }
    return false;
  }

  bool Releasing() {
    if (u_.spec.action != UpgradeAction::kUpgrade) return false;
    if (s_.release.unknown()) return Wait(OperationPhase::kDownloading, "Unreadable", s_.release.why());
    if (s_.release.absent()) {
      CreateRelease step;
      step.release.metadata = ChildMeta(u_, ReleaseName(u_, server().metadata.name));
      step.release.spec.server_ref = u_.spec.server_ref;
      step.release.spec.host = server().spec.host;
      step.release.spec.version = u_.spec.version;
      step.release.spec.artifact = u_.spec.artifact;
      return Do(std::move(step), OperationPhase::kDownloading, "Downloading", "fetching " + u_.spec.version);
    }
    const Release& r = *s_.release;
    if (!IsTrue(r.status.conditions, "Ready", r.metadata.generation)) {
      const Condition* stalled = Find(r.status.conditions, "Stalled");
      if (stalled != nullptr && stalled->status == ConditionStatus::kTrue) {
        const std::string why = "Release " + r.metadata.name + ": " + stalled->message;
        // What is only looked at has its answer, and keeps nobody waiting for a build that may never come.
        if (u_.spec.mode == OperationMode::kPreflight) {
          return End(Outcome::kFailed, stalled->reason, why + "; nothing was changed");
        }
        std::vector<NextAction> actions = r.status.next_actions;
        actions.push_back(Action("Abort", "abort " + u_.metadata.name, "none; nothing was changed yet"));
        return Stall(OperationPhase::kDownloading, stalled->reason, why, std::move(actions));
      }
      return Wait(OperationPhase::kDownloading, "Downloading", "fetching " + u_.spec.version);
    }
    return AlreadyThere(r);
  }

  // The executable that would be started is the one that runs: nothing is stopped for it. G2
  bool AlreadyThere(const Release& release) {
    if (release.status.sha256.empty() || u_.spec.mode != OperationMode::kExecute) return false;
    for (const auto& slot : server().status.slots) {
      if (slot.name == server().status.active_slot && slot.sha256 == release.status.sha256 && slot.ready_at) {
        return End(Outcome::kSucceeded, "AlreadyOnTarget", u_.spec.version + " is what runs already");
      }
    }
    return false;
  }

  bool BackingUp() {
    const bool wanted = u_.spec.action == UpgradeAction::kUpgrade && u_.spec.rollback == RollbackMode::kEnabled &&
                        u_.spec.mode == OperationMode::kExecute && server().spec.backup.driver != BackupDriver::kNone;
    if (!wanted) return false;
    if (s_.backup.unknown()) return Wait(OperationPhase::kBackingUp, "Unreadable", s_.backup.why());
    if (s_.backup.absent()) {
      CreateBackup step;
      step.backup.metadata = ChildMeta(u_, ChildName(u_));
      step.backup.metadata.owner_references.push_back(OwnerOf(u_));
      step.backup.spec.server_ref = u_.spec.server_ref;
      step.backup.spec.reason = "before Upgrade " + u_.metadata.name;
      return Do(std::move(step), OperationPhase::kBackingUp, "BackingUp", "taking a snapshot of the store");
    }
    const StoreBackup& b = *s_.backup;
    if (IsTrue(b.status.conditions, "Ready", b.metadata.generation)) return false;
    if (IsTrue(b.status.conditions, "Failed", b.metadata.generation)) {
      return End(Outcome::kFailed, "BackupFailed", "the store backup failed, nothing was changed: " + b.status.error);
    }
    const Condition* stalled = Find(b.status.conditions, "Stalled");
    if (stalled != nullptr && stalled->status == ConditionStatus::kTrue) {
      return Stall(OperationPhase::kBackingUp, stalled->reason,
                   "StoreBackup " + b.metadata.name + ": " + stalled->message, b.status.next_actions);
    }
    return Wait(OperationPhase::kBackingUp, "BackingUp", "taking a snapshot of the store");
  }

  void StartRoll() {
    CreateRoll step;
    Roll& roll = step.roll;
    roll.metadata = ChildMeta(u_, ChildName(u_));
    roll.metadata.owner_references.push_back(OwnerOf(u_));
    roll.spec.server_ref = u_.spec.server_ref;
    roll.spec.allow_downgrade = u_.spec.allow_downgrade || server().spec.allow_downgrade;
    roll.spec.when_busy = u_.spec.when_busy;
    roll.spec.mode = u_.spec.mode;
    roll.spec.gates = u_.spec.gates;
    roll.spec.requested_by = u_.spec.requested_by;
    roll.spec.planned_outage = server().spec.shape == ServerShape::kSingle;
    TimeoutOverrides overrides;
    overrides.ready_seconds = u_.spec.ready_timeout_seconds;
    const Timeouts resolved = ResolveTimeouts(overrides, server().spec.timeouts);
    roll.spec.timeouts.ready_seconds = resolved.ready_seconds;
    roll.spec.timeouts.lease_seconds = resolved.lease_seconds;
    roll.spec.timeouts.probe_seconds = resolved.probe_seconds;
    roll.spec.timeouts.drain_seconds = resolved.drain_seconds;
    roll.spec.timeouts.stop_seconds = resolved.stop_seconds;
    roll.spec.timeouts.flip_seconds = resolved.flip_seconds;
    roll.spec.backup = RollBackup::kNone;
    if (u_.spec.action == UpgradeAction::kUpgrade) {
      LocalRef release;
      release.name = s_.release->metadata.name;
      roll.spec.release_ref = release;
      if (s_.backup.known()) {
        LocalRef backup;
        backup.name = s_.backup->metadata.name;
        roll.spec.backup = RollBackup::kRequired;
        roll.spec.backup_ref = backup;
      }
    }
    Do(std::move(step), OperationPhase::kInstalling, "Installing", RollText());
  }
  std::string RollText() const {
    return u_.spec.action == UpgradeAction::kRestart ? "starting the restart"
                                                     : "starting the roll to " + u_.spec.version;
  }

  const Snapshot& s_;
  const Upgrade& u_;
  const Now& now_;
  Plan plan_;
};

}  // namespace

Plan Decide(const Snapshot& snapshot, const Now& now) { return Decider(snapshot, now).Run(); }

std::string ChildName(const Upgrade& upgrade) {
  const std::string suffix = "-" + upgrade.metadata.uid.substr(0, 8);
  return upgrade.metadata.name.substr(0, 253 - suffix.size()) + suffix;
}

std::string NamePart(std::string_view version) {
  std::string part;
  for (const char c : version) {
    const char low = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const bool allowed = (low >= 'a' && low <= 'z') || (low >= '0' && low <= '9') || low == '.' || low == '-';
    part += allowed ? low : '-';
  }
  return part;
}

std::string ReleaseName(const Upgrade& upgrade, const std::string& server) {
  const std::string& version = upgrade.spec.version;
  // A moving target is resolved once for each Upgrade.
  if (version == "latest" || version == "main") return ChildName(upgrade);
  std::string name = server + "-" + NamePart(version);
  const bool changed = !upgrade.spec.artifact.empty() || NamePart(version) != version;
  if (changed || !std::isalnum(static_cast<unsigned char>(name.back()))) {
    name += "-" + Sha256Hex(version + "\n" + upgrade.spec.artifact).substr(0, 8);
  }
  return name;
}

}  // namespace lockkeeper::upgrade
