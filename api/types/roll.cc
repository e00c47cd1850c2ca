#include "api/types/roll.h"

#include "api/types/field_limits.h"

namespace lockkeeper {

using namespace types_internal;  // NOLINT(google-build-using-namespace)

const EnumInfo& EnumInfoOf(RollBackup) {
  static const EnumInfo info{"RollBackup", {"Required", "None"}};
  return info;
}
const EnumInfo& EnumInfoOf(StepState) {
  static const EnumInfo info{"StepState", {"Pending", "Running", "Waiting", "Done", "Skipped", "Failed"}};
  return info;
}

const TypeInfo& TimeoutOverrides::Type() {
  static const TypeInfo* type = [] {
    using S = TimeoutOverrides;
    TypeBuilder<S> b("TimeoutOverrides", "Timeouts of one operation. Unset or 0: the Server's.");
    b.Field(&S::ready_seconds, "readySeconds", "Start to ready.").Range(0, kDaySeconds);
    b.Field(&S::lease_seconds, "leaseSeconds", "Exit of the old holder to a renewal by the new one.")
        .Range(0, kDaySeconds);
    b.Field(&S::probe_seconds, "probeSeconds", "Creation of the probe object to its Ready.").Range(0, kDaySeconds);
    b.Field(&S::drain_seconds, "drainSeconds", "Flip to the cut of the last old connection.").Range(0, kDaySeconds);
    b.Field(&S::stop_seconds, "stopSeconds", "Stop signal to the kill.").Range(0, kDaySeconds);
    b.Field(&S::flip_seconds, "flipSeconds", "Record to the front's answer.").Range(0, kDaySeconds);
    return b.Build();
  }();
  return *type;
}

const TypeInfo& RollRestore::Type() {
  static const TypeInfo* type = [] {
    TypeBuilder<RollRestore> b("RollRestore", "The restore that is armed before anything stops.");
    b.Field(&RollRestore::backup_ref, "backupRef", "The StoreBackup to put back.").Required();
    b.Field(&RollRestore::on_rollback, "onRollback",
            "WhenStopped: an undo with every slot stopped puts the data back. Never: it does not.")
        .Default("WhenStopped");
    return b.Build();
  }();
  return *type;
}

const TypeInfo& RollSpec::Type() {
  static const TypeInfo* type = [] {
    using S = RollSpec;
    TypeBuilder<S> b("RollSpec",
                     "The roll. Immutable but for paused, approve, abort, abandon and ttlSecondsAfterFinished.");
    b.Field(&S::server_ref, "serverRef", "The Server to roll.").Required();
    b.Field(&S::release_ref, "releaseRef", "The Release to bring up. Unset: the active one, in a fresh process.");
    b.Field(&S::backup, "backup", "Required without backupRef: the agent takes one. None: the store is not backed up.")
        .Default("Required");
    b.Field(&S::backup_ref, "backupRef", "A StoreBackup that was taken for this roll.");
    b.Field(&S::restore, "restore", "The restore that is armed before anything stops.");
    b.Field(&S::planned_outage, "plannedOutage",
            "Stop the old process before the new one starts, with new connections held by the front.")
        .Default(false);
    b.Field(&S::allow_downgrade, "allowDowngrade", "Whether an older version than the running one may be brought up.")
        .Default(false);
    b.Field(&S::timeouts, "timeouts", "The timeouts as resolved from Upgrade, Roll, Server and defaults.")
        .Default(Json::MakeObject());
    b.Field(&S::gates, "gates", "Where to stop until spec.approve names the gate.")
        .Set()
        .Items(0, 16)
        .Length(1, 64)
        .Default(Json::MakeArray());
    b.Field(&S::when_busy, "whenBusy",
            "While another operation of the Server runs: Wait for it, oldest first, or Fail.")
        .Default("Wait");
    b.Field(&S::mode, "mode",
            "Preflight checks everything and writes the ordered plan to the status, and touches nothing.")
        .Default("Execute");
    b.Field(&S::requested_by, "requestedBy", "Who asked, as a hint.").Length(1, 256);
    b.ImmutableBut({}, "a Roll is one operation, closed over its name; ask for another one under a new name");
    b.Inline(&S::controls);
    b.Field(&S::ttl_seconds_after_finished, "ttlSecondsAfterFinished",
            "Seconds after its end until the object is deleted. Unset: kept.")
        .Range(0, 365 * kDaySeconds);
    b.Check("self.backup != 'None' || !has(self.backupRef)", "backupRef is only allowed when backup is Required",
            [](const Json& self, const Json*) {
              return self.Get("backup").AsString() != "None" || !self.Has("backupRef");
            });
    return b.Build();
  }();
  return *type;
}

const TypeInfo& RollReport::Type() {
  static const TypeInfo* type = [] {
    using S = RollReport;
    TypeBuilder<S> b("RollReport", "What happened, when, and how long it took.");
    b.Field(&S::from, "from", "The slot it rolls from.").Length(0, 64);
    b.Field(&S::to, "to", "The slot it rolls to.").Length(0, 64);
    b.Field(&S::planned_outage, "plannedOutage", "Whether the old process was stopped first.");
    b.Field(&S::outage_seconds, "outageSeconds", "Seconds from the hold observed to the flip.");
    b.Field(&S::old_unit, "oldUnit", "The old process's unit.").Length(0, 256);
    b.Field(&S::new_unit, "newUnit", "The new process's unit.").Length(0, 256);
    b.Field(&S::old_port, "oldPort", "The port that the old process served on.").Range(0, 65535);
    b.Field(&S::new_port, "newPort", "The port that the new process serves on.").Range(0, 65535);
    b.Field(&S::new_pid, "newPID", "The new process.").Range(0, kMaxPid);
    b.Field(&S::new_invocation_id, "newInvocationID", "Identity of the new process's start.").Length(0, 128);
    b.Field(&S::old_holder, "oldHolder", "Who held the lease before.").Length(0, 512);
    b.Field(&S::new_holder, "newHolder", "Who holds the lease now.").Length(0, 512);
    b.Field(&S::holder_at_stop, "holderAtStop", "Who held the lease when the old process was told to stop.")
        .Length(0, 512);
    b.Field(&S::store_backup, "storeBackup", "Where the backup lies.").Length(0, kPathLength);
    b.Field(&S::backup_seconds, "backupSeconds", "Seconds the backup took.");
    b.Field(&S::started_at, "startedAt", "When it was admitted.").Micro();
    b.Field(&S::port_at, "portAt", "When the new process listened.").Micro();
    b.Field(&S::ready_at, "readyAt", "When the new process was ready.").Micro();
    b.Field(&S::persisted_at, "persistedAt", "When the new slot was recorded as the active one.").Micro();
    b.Field(&S::flipped_at, "flippedAt", "When the front was observed on the new slot.").Micro();
    b.Field(&S::member_token_at, "memberTokenAt", "When the members' token was refreshed.").Micro();
    b.Field(&S::drained_at, "drainedAt", "When the old slot had no connection left.").Micro();
    b.Field(&S::sigterm_at, "sigtermAt", "When the old process was told to stop.").Micro();
    b.Field(&S::old_exited_at, "oldExitedAt", "When the old process was gone.").Micro();
    b.Field(&S::lease_deleted_at, "leaseDeletedAt", "When the old holder's lease was deleted.").Micro();
    b.Field(&S::lease_held_at, "leaseHeldAt", "When a renewal after the old exit was seen.").Micro();
    b.Field(&S::probe_ready_at, "probeReadyAt", "When the probe object was Ready.").Micro();
    b.Field(&S::done_at, "doneAt", "When all was done.").Micro();
    b.Field(&S::start_to_ready_seconds, "startToReadySeconds", "Seconds from the go to ready.");
    b.Field(&S::drain_seconds, "drainSeconds", "Seconds from the flip to the last old connection's end.");
    b.Field(&S::soak_seconds, "soakSeconds", "Seconds both ran while the new one was watched.");
    b.Field(&S::gate_seconds, "gateSeconds", "Seconds spent waiting at gates, windows and pauses.");
    b.Field(&S::old_exit_seconds, "oldExitSeconds", "Seconds from the stop signal to the old exit.");
    b.Field(&S::lease_handover_seconds, "leaseHandoverSeconds",
            "Seconds from the old exit to a renewal by the new one.");
    b.Field(&S::leaderless_seconds, "leaderlessSeconds", "Seconds without a reconciler.");
    b.Field(&S::probe_seconds, "probeSeconds", "Seconds until the probe object was Ready.");
    b.Field(&S::overhead_seconds, "overheadSeconds",
            "Total less backup, start to ready, gates, drain, soak, old exit, lease hand-over and probe.");
    b.Field(&S::total_seconds, "totalSeconds", "Seconds from start to done.");
    Count(
        b.Field(&S::open_on_old_at_exit, "openOnOldAtExit", "Connections still on the old slot when it was stopped."));
    Count(b.Field(&S::drained, "drained", "Connections that ended on the old slot after the flip."));
    Count(b.Field(&S::cut_connections, "cutConnections", "Of those, connections that were cut."));
    return b.Build();
  }();
  return *type;
}

const TypeInfo& RollStep::Type() {
  static const TypeInfo* type = [] {
    TypeBuilder<RollStep> b("RollStep", "One step of the roll.");
    b.Field(&RollStep::name, "name", "Name of the step.").Required().Length(1, 64);
    b.Field(&RollStep::state, "state", "Where the step stands.").Required();
    b.Field(&RollStep::attempt, "attempt", "Which try it is.").Range(0, 1000000);
    b.Field(&RollStep::started_at, "startedAt", "When it began.").Micro();
    b.Field(&RollStep::finished_at, "finishedAt", "When it ended.").Micro();
    b.Field(&RollStep::message, "message", "How it went, for a person.").Length(0, kTextLength);
    return b.Build();
  }();
  return *type;
}

const TypeInfo& RollStatus::Type() {
  static const TypeInfo* type = [] {
    using S = RollStatus;
    TypeBuilder<S> b("RollStatus", "The roll report; written by the agent from its ledger.");
    ObservedGeneration(b);
    Conditions(b);
    FinalPhase(b);
    b.Field(&S::progress, "progress", "The numbers of what it is doing.");
    b.Field(&S::error, "error", "The first error and what came of it.").Length(0, 4 * kTextLength);
    b.Field(&S::version, "version", "The version it brings up.").Length(0, kVersionLength);
    b.Field(&S::previous_version, "previousVersion", "The version it replaces.").Length(0, kVersionLength);
    b.Field(&S::requested_by, "requestedBy", "Who asked.").Length(0, 256);
    b.Inline(&S::report);
    b.Field(&S::steps, "steps", "The steps, in order.").Items(0, 64);
    b.Field(&S::checks, "checks", "The preconditions and whether they hold.").Items(0, 64);
    b.Field(&S::plan, "plan", "The ordered plan, in mode Preflight.").Items(0, 64);
    NextActions(b);
    b.Field(&S::finished_at, "finishedAt", "When it ended.").Micro();
    FinalPhaseStays(b);
    return b.Build();
  }();
  return *type;
}

const TypeInfo& Roll::Type() {
  static const TypeInfo* type = [] {
    TypeBuilder<Roll> b("Roll", "One roll of a Server, undo included; its status is the roll report.");
    KindFields(b, "The roll. Immutable but for the controls.", "The roll report.");
    return b.Build();
  }();
  return *type;
}

}  // namespace lockkeeper
