#include "api/types/upgrade.h"

#include "api/types/field_limits.h"

namespace lockkeeper {

using namespace types_internal;  // NOLINT(google-build-using-namespace)

const EnumInfo& EnumInfoOf(UpgradeAction) {
  static const EnumInfo info{"UpgradeAction", {"Upgrade", "Restart"}};
  return info;
}
const EnumInfo& EnumInfoOf(RollbackMode) {
  static const EnumInfo info{"RollbackMode", {"Enabled", "Disabled"}};
  return info;
}
const EnumInfo& EnumInfoOf(RunnerFailurePolicy) {
  static const EnumInfo info{"RunnerFailurePolicy", {"StopBeforeFirstSuccess", "Stop", "Continue"}};
  return info;
}

const TypeInfo& RunnerWalk::Type() {
  static const TypeInfo* type = [] {
    TypeBuilder<RunnerWalk> b("RunnerWalk", "How the Runners are walked after their Server, one at a time.");
    b.Field(&RunnerWalk::on_failure, "onFailure",
            "What a failed runner does to the walk. StopBeforeFirstSuccess: stop while no runner has succeeded, go on "
            "afterwards. Stop: stop. Continue: go on.")
        .Default("StopBeforeFirstSuccess");
    b.Field(&RunnerWalk::step_timeout_seconds, "stepTimeoutSeconds", "Seconds one runner may take, download included.")
        .Range(0, kDaySeconds)
        .Default(1200);
    b.Field(&RunnerWalk::rejoin_timeout_seconds, "rejoinTimeoutSeconds",
            "Seconds until an upgraded runner must be Ready on the right build.")
        .Range(0, kDaySeconds)
        .Default(180);
    return b.Build();
  }();
  return *type;
}

const TypeInfo& UpgradeSpec::Type() {
  static const TypeInfo* type = [] {
    TypeBuilder<UpgradeSpec> b("UpgradeSpec",
                               "The operation. Immutable but for paused, approve, abort, abandon and "
                               "ttlSecondsAfterFinished.");
    b.Field(&UpgradeSpec::server_ref, "serverRef", "The Server to work on.").Required();
    b.Field(&UpgradeSpec::action, "action",
            "Upgrade brings another build up; Restart starts the active build in a fresh process.")
        .Default("Upgrade");
    Version(
        b.Field(&UpgradeSpec::version, "version",
                "The build to bring up: a tag, latest or main. Required for Upgrade. Resolved once, at the start."));
    b.Field(&UpgradeSpec::artifact, "artifact", "Which artifact of the source's index.")
        .Length(1, 64)
        .Pattern(kVersionPattern, kVersionHint);
    b.Field(&UpgradeSpec::allow_downgrade, "allowDowngrade",
            "Whether an older version than the running one may be installed.")
        .Default(false);
    b.Field(&UpgradeSpec::rollback, "rollback",
            "Disabled takes no backup and arms no restore. The undo before the flip stays.")
        .Default("Enabled");
    b.Field(&UpgradeSpec::ready_timeout_seconds, "readyTimeoutSeconds",
            "Seconds until the new process must be ready. Unset or 0: the Server's timeouts.readySeconds.")
        .Range(0, kDaySeconds);
    b.Field(&UpgradeSpec::runners, "runners", "How the Runners are walked after their Server.")
        .Default(Json::MakeObject());
    b.Field(&UpgradeSpec::gates, "gates", "Where to stop until spec.approve names the gate.")
        .Set()
        .Items(0, 16)
        .Length(1, 64)
        .Default(Json::MakeArray());
    b.Field(&UpgradeSpec::when_busy, "whenBusy",
            "While another operation of the Server runs: Wait for it, oldest first, or Fail.")
        .Default("Wait");
    b.Field(&UpgradeSpec::mode, "mode",
            "Preflight checks everything and writes the ordered plan to the status, and touches nothing.")
        .Default("Execute");
    b.Field(&UpgradeSpec::requested_by, "requestedBy", "Who asked, as a hint; a user that the API knows goes first.")
        .Length(1, 256);
    b.ImmutableBut({}, "an Upgrade is one operation, closed over its name; ask for another one under a new name");
    b.Inline(&UpgradeSpec::controls);
    b.Field(&UpgradeSpec::ttl_seconds_after_finished, "ttlSecondsAfterFinished",
            "Seconds after its end until the object is deleted. Unset: kept, since a GitOps tool would apply it again.")
        .Range(0, 365 * kDaySeconds);
    b.Check("self.action != 'Upgrade' || has(self.version)", "version is required when action is Upgrade",
            [](const Json& self, const Json*) {
              return self.Get("action").AsString() != "Upgrade" || self.Has("version");
            });
    b.Check("self.action != 'Restart' || !has(self.version)",
            "version is only allowed when action is Upgrade: a "
            "Restart keeps the active build",
            [](const Json& self, const Json*) {
              return self.Get("action").AsString() != "Restart" || !self.Has("version");
            });
    return b.Build();
  }();
  return *type;
}

const TypeInfo& PhaseRecord::Type() {
  static const TypeInfo* type = [] {
    TypeBuilder<PhaseRecord> b("PhaseRecord", "One phase the operation went through.");
    b.Field(&PhaseRecord::name, "name", "The phase.").Required();
    b.Field(&PhaseRecord::started_at, "startedAt", "When it began.").Micro();
    b.Field(&PhaseRecord::finished_at, "finishedAt", "When it ended.").Micro();
    b.Field(&PhaseRecord::deadline, "deadline", "When it is failed, moved by the time spent paused.").Micro();
    b.Field(&PhaseRecord::paused_seconds, "pausedSeconds", "Seconds it was paused or waited for a person.");
    b.Field(&PhaseRecord::message, "message", "How it went, for a person.").Length(0, kTextLength);
    return b.Build();
  }();
  return *type;
}

const TypeInfo& NodeStep::Type() {
  static const TypeInfo* type = [] {
    TypeBuilder<NodeStep> b("NodeStep", "One runner of the walk.");
    b.Field(&NodeStep::name, "name", "The Runner's name.").Required().Length(1, kNameLength);
    b.Field(&NodeStep::uid, "uid", "The Runner's uid when the walk began.").Length(0, 64);
    b.Field(&NodeStep::operation, "operation", "The child Upgrade's name.").Length(0, kNameLength);
    b.Field(&NodeStep::phase, "phase", "Where the step stands; Skipped when it was not tried.").Required();
    b.Field(&NodeStep::error, "error", "Why it did not succeed.").Length(0, kTextLength);
    b.Field(&NodeStep::progress, "progress", "What it is doing.").Length(0, kTextLength);
    b.Field(&NodeStep::previous_version, "previousVersion", "Version before.").Length(0, kVersionLength);
    b.Field(&NodeStep::new_version, "newVersion", "Version after.").Length(0, kVersionLength);
    b.Field(&NodeStep::started_at, "startedAt", "When it began.").Micro();
    b.Field(&NodeStep::finished_at, "finishedAt", "When it ended.").Micro();
    return b.Build();
  }();
  return *type;
}

const TypeInfo& UpgradeStatus::Type() {
  static const TypeInfo* type = [] {
    using S = UpgradeStatus;
    TypeBuilder<S> b("UpgradeStatus", "Where the operation stands; written by the manager.");
    ObservedGeneration(b);
    Conditions(b);
    FinalPhase(b);
    b.Field(&S::progress, "progress", "The numbers of what it is doing.");
    b.Field(&S::error, "error", "The first error and what came of it.").Length(0, 4 * kTextLength);
    b.Field(&S::resolved, "resolved", "The build that the version stands for.");
    b.Field(&S::previous_version, "previousVersion", "Version before.").Length(0, kVersionLength);
    b.Field(&S::previous_commit, "previousCommit", "Commit before.").Length(0, 64);
    b.Field(&S::previous_instance_id, "previousInstanceID", "Identity of the process before.").Length(0, 128);
    b.Field(&S::new_version, "newVersion", "Version after.").Length(0, kVersionLength);
    b.Field(&S::new_instance_id, "newInstanceID", "Identity of the process after.").Length(0, 128);
    b.Field(&S::components, "components", "Versions of the server's components, as it reports them.")
        .Keys(64)
        .Length(0, kVersionLength);
    b.Field(&S::release_ref, "releaseRef", "The Release it installs.");
    b.Field(&S::backup_ref, "backupRef", "The StoreBackup taken for it.");
    b.Field(&S::restore_ref, "restoreRef", "The StoreRestore made for its way back.");
    b.Field(&S::roll_ref, "rollRef", "The Roll that carries it out.");
    b.Field(&S::driven_by, "drivenBy", "The manager that walks its runners.").Length(0, kNameLength);
    b.Field(&S::requested_by, "requestedBy", "Who asked.").Length(0, 256);
    b.Field(&S::phases, "phases", "The phases it went through, in order.").Items(0, 32);
    b.Field(&S::nodes, "nodes", "The runners of its walk, in order.").ListMap({"name"}).Items(0, 1024);
    b.Field(&S::checks, "checks", "The preconditions of its Roll.").Items(0, 64);
    b.Field(&S::plan, "plan", "The ordered plan, in mode Preflight.").Items(0, 64);
    NextActions(b);
    b.Field(&S::started_at, "startedAt", "When it was admitted.").Micro();
    b.Field(&S::finished_at, "finishedAt", "When it ended.").Micro();
    FinalPhaseStays(b);
    return b.Build();
  }();
  return *type;
}

const TypeInfo& Upgrade::Type() {
  static const TypeInfo* type = [] {
    TypeBuilder<Upgrade> b("Upgrade",
                           "One durable operation on a Server: an upgrade or a restart. Its name is its id: applying "
                           "the same object again changes nothing, also after it was deleted.");
    KindFields(b, "The operation. Immutable but for the controls.", "Where the operation stands.");
    return b.Build();
  }();
  return *type;
}

}  // namespace lockkeeper
