// Reasons: the documented list that conditions and events take their reasons from.
//
// Purpose:   one name for one thing, in code and in the reference. A new reason is a row here.
// Ownership: constants. Threads: thread-safe. Failure: none.
#pragma once

#include <string_view>
#include <vector>

namespace lockkeeper {

// Name, sentence with the way out where there is one. By topic.
#define LK_REASONS(X)                                                                                              \
  /* where it stands */                                                                                            \
  X(AsDesired, "It is as its spec wants it.")                                                                      \
  X(Pending, "It was not looked at yet.")                                                                          \
  X(Reconciling, "It is on its way to its spec.")                                                                  \
  X(Installing, "The first install is under way.")                                                                 \
  X(NotInstalled, "Nothing is installed: set version or installVersion, or make an Upgrade.")                      \
  X(OperationRunning, "An operation is under way; status.operation names it.")                                     \
  X(NoOperation, "No operation is under way.")                                                                     \
  X(Deleting, "It is being deleted.")                                                                              \
  X(Released, "Its Server was deleted with deletionPolicy Orphan; what runs was left alone.")                      \
  X(ServerStopped, "It was stopped by lockkeeper stop; lockkeeper start starts it.")                               \
  X(ServerPaused, "spec.paused is true: nothing is started or advanced.")                                          \
  X(ServerDeleted, "Its Server was deleted before it began.")                                                      \
  X(ServerNotFound, "spec.serverRef names no Server of its namespace.")                                            \
  X(Unreadable, "Something that decides could not be read; it is tried again.")                                    \
  X(HostUndetermined, "The host's heartbeat was not watched for long enough to call it fresh or lost.")            \
  X(StatusBehind, "The host has recorded more than its Server's status says; waiting for it.")                     \
  X(InvalidSpec, "The spec cannot work as it stands; the message names the field.")                                \
  /* hosts and ledgers */                                                                                          \
  X(AgentLost, "The host's agent was silent for 40 s; what it reported last is unknown now.")                      \
  X(HostUnknown, "No agent of that name was ever seen: start one, or correct spec.host.")                          \
  X(HostNameTaken,                                                                                                 \
    "Another machine's agent has this host name; lockkeeper agent --take-over takes it after 40 s of "             \
    "silence.")                                                                                                    \
  X(LedgerLost, "The host runs things that the ledger does not know: lockkeeper agent rebuild.")                   \
  X(LedgerOlderThanHost, "The ledger is older than what it left on the host: put the newer one back, or rebuild.") \
  X(LedgerUnreadable, "The ledger cannot be read; nothing it may speak of is started.")                            \
  X(SpecOlderThanHost,                                                                                             \
    "The object is older than the one the host last loaded, as after a restore of the API; edit it "               \
    "to go on.")                                                                                                   \
  X(DiskFull, "The host's disk is full; free some space and it goes on.")                                          \
  /* what the host must have */                                                                                    \
  X(CommandNotFound, "The program of template.command is not on the host.")                                        \
  X(PortTaken, "Another process listens on the port.")                                                             \
  X(SharedFileMissing, "A file of seed.files is not in seed.shared.")                                              \
  X(SharedFilesDiffer, "A slot's copy of a shared file differs from the shared one.")                              \
  X(UserNotFound, "The host does not know template.user or template.group.")                                       \
  X(KubeconfigInvalid, "The kubeconfig of spec.access cannot be used; the message says why.")                      \
  X(AccessDenied, "The rolled server refused the credentials of spec.access.")                                     \
  X(DriverUnsupported, "This host cannot run the driver; the message says what is missing.")                       \
  X(Unsupervised, "Nothing would start the server again; run it under a supervisor.")                              \
  X(StoreNotShared, "Two slots need a store outside the process.")                                                 \
  X(StoreBusy, "The store's options would stall the slot that serves; the message names the option.")              \
  X(HoldTooShort, "The front's hold.seconds is shorter than the outage may last.")                                 \
  /* slots */                                                                                                      \
  X(Running, "The process runs.")                                                                                  \
  X(Stopped, "The process is stopped, as desired.")                                                                \
  X(StartFailed, "The process could not be started; the message says why.")                                        \
  X(CrashLooping, "The process keeps ending; status.lastOutput shows its last words.")                             \
  X(NewSlotNotReady, "The new process was not ready in time.")                                                     \
  X(NewSlotDied, "The new process ended before it was done.")                                                      \
  X(WrongBuild, "What runs is not the build that was asked for.")                                                  \
  X(ActiveSlotDown, "The active slot does not run; it is being started again.")                                    \
  X(EmergencyFlip, "The old slot died while the new one waited ready at a gate, so the front was moved to it.")    \
  X(FlippedBack, "The new slot died while the old one was still ready, so the front was moved back.")              \
  X(UndoIncomplete, "The undo did not end in its time; the message says what still stands.")                       \
  X(RenderedOlder, "The active slot runs the template as it was; the next operation takes the new one.")           \
  X(RenderedAsTemplate, "The active slot runs the template as it is.")                                             \
  X(OldBootstrapNeeded, "A build that was undone wrote its bootstrap objects; restart the old one or restore.")    \
  /* fronts */                                                                                                     \
  X(InSync, "The front's backend is the recorded active slot.")                                                    \
  X(FrontSilent, "The front does not answer; its connections are left alone. Look at its process.")                \
  X(FrontDown, "The front's process is gone; it is being started again.")                                          \
  X(FrontNotFound, "spec.frontRef names no Front of its namespace on the host.")                                   \
  X(FrontClaimed, "Another Server claims the Front.")                                                              \
  X(FrontOutdated, "The front runs an older lockkeeper; restart it when its connections may end.")                 \
  X(FrontNotObserved, "The front was not observed on the new slot in time.")                                       \
  X(FrontHolding, "New connections are held.")                                                                     \
  X(ListenFailed, "The listen address cannot be bound; the message says why.")                                     \
  X(Unclaimed, "No Server claims the front.")                                                                      \
  X(NoReadySlot, "No slot is ready.")                                                                              \
  /* lease and probe */                                                                                            \
  X(Held, "A process of the active slot holds the lease.")                                                         \
  X(LeaseNotTaken, "The new process did not renew the lease in time; the build stays active.")                     \
  X(LeaseUnreadable, "The lease cannot be read; the message says why.")                                            \
  X(OldBuild, "An old build holds the lease after the roll.")                                                      \
  X(ProbeFailed, "The probe object did not become ready in time; the build stays active.")                         \
  X(ProbePassed, "The probe object became ready.")                                                                 \
  /* operations */                                                                                                 \
  X(Queued, "Another operation of the Server runs; the message names it.")                                         \
  X(Busy, "Another operation of the Server ran, and whenBusy is Fail.")                                            \
  X(Admitted, "The agent took it up.")                                                                             \
  X(Paused, "spec.paused is true: it waits at the next point where that is safe.")                                 \
  X(WaitingForApproval, "It waits at a gate: lockkeeper approve.")                                                 \
  X(OutsideWindow, "It waits for a maintenance window.")                                                           \
  X(Frozen, "maintenance.freeze is true: no operation is admitted.")                                               \
  X(PreflightFailed, "A precondition does not hold; status.checks names all that do not.")                         \
  X(PreflightPassed, "Every precondition holds; nothing was touched.")                                             \
  X(Succeeded, "It ended well.")                                                                                   \
  X(RolledBack, "It was undone; status.error says why.")                                                           \
  X(Aborted, "It was undone because a person asked for it.")                                                       \
  X(Abandoned, "A person gave it up; what runs was left as it was.")                                               \
  X(Failed, "It failed; status.error says why.")                                                                   \
  X(AlreadyApplied,                                                                                                \
    "An operation of this name and spec ended before; its outcome is shown and nothing was touched. "              \
    "Use a new name to do it once more.")                                                                          \
  X(AlreadyOnTarget, "The build that was asked for runs already.")                                                 \
  X(NameReused, "An operation of this name with another spec ended before: use a new name.")                       \
  X(DeclaredVersionDiffers, "The Server declares another version: change spec.version there.")                     \
  X(VersionRejected, "This build was rolled back before; change spec.version, or retry it by name.")               \
  X(DowngradeRefused, "It is older than what runs: set allowDowngrade if that is meant.")                          \
  X(AbortRefused, "The old slot is being stopped or is gone; use lockkeeper rollback.")                            \
  X(AbandonRefused, "The operation ended by itself.")                                                              \
  X(NothingToAbandon, "Nothing is unfinished or pending.")                                                         \
  X(NotUpgradeable, "Something blocks the next operation; the message names it.")                                  \
  X(NobodyDrives, "No manager took the walk over in 2 min.")                                                       \
  /* releases */                                                                                                   \
  X(Downloading, "The build is being fetched.")                                                                    \
  X(Unpacked, "The build is on the host, verified.")                                                               \
  X(NoSource, "The Server has no source to fetch builds from.")                                                    \
  X(SourceUnreachable, "The source does not answer; it is tried again.")                                           \
  X(VersionNotFound, "The source does not have the version.")                                                      \
  X(ArtifactInvalid, "The artifact cannot be unpacked, or lacks the program.")                                     \
  X(ChecksumMismatch, "The artifact does not hash to what it should.")                                             \
  X(SignatureInvalid, "The artifact's signature does not hold.")                                                   \
  X(ReleaseNotFound, "The Release it names does not exist.")                                                       \
  /* backup and restore */                                                                                         \
  X(BackingUp, "The snapshot is being taken.")                                                                     \
  X(BackupFailed, "The snapshot could not be taken; nothing was changed.")                                         \
  X(BackupNotFound, "The StoreBackup it names does not exist.")                                                    \
  X(BackupTooOld, "The snapshot is older than backup.maxAgeSeconds; another one is taken.")                        \
  X(NoBackupDriver, "The Server has no backup driver.")                                                            \
  X(Verified, "The snapshot is whole and was read back.")                                                          \
  X(RestorePending, "The restore waits for the build it is meant for.")                                            \
  X(RestoreFailed, "The data could not be put back; it is tried again until it is abandoned.")                     \
  X(Restored, "The data was put back.")                                                                            \
  X(RollbackPossible, "The previous release is kept and no one-way storage change is known.")                      \
  X(NoPreviousRelease, "There is no previous release to go back to.")                                              \
  X(OneWayStorageChange, "The storage changed in a way that the previous build cannot read.")                      \
  /* runners */                                                                                                    \
  X(UpgradingRunners, "The Runners are walked, one at a time.")                                                    \
  X(RunnerFailed, "A Runner failed; status.nodes says which and why.")                                             \
  X(RunnerNotReady, "A Runner was not Ready at its turn.")                                                         \
  X(WalkStopped, "The walk stopped at its first failure; the rest was not tried.")

namespace reason {
#define LK_REASON_CONSTANT(name, doc) inline constexpr std::string_view k##name = #name;
LK_REASONS(LK_REASON_CONSTANT)
#undef LK_REASON_CONSTANT
}  // namespace reason

struct ReasonInfo {
  std::string_view name;
  std::string_view doc;
};
const std::vector<ReasonInfo>& Reasons();
bool IsDocumentedReason(std::string_view name);

}  // namespace lockkeeper
