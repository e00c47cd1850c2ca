#include "reconcilers/upgrade/plan.h"

#include <gtest/gtest.h>

#include <functional>

#include "reconcilers/upgrade/declared.h"
#include "reconcilers/upgrade/status.h"

namespace lockkeeper::upgrade {
namespace {

constexpr char kUid[] = "0123456789abcdef";

Condition Cond(const char* type, ConditionStatus status, const char* reason = "R", const char* message = "m") {
  Condition c;
  c.type = type;
  c.status = status;
  c.observed_generation = 1;
  c.reason = reason;
  c.message = message;
  return c;
}

// Builds a snapshot of an Upgrade as far as the test wants it to have come.
class A {
 public:
  A() {
    s.upgrade.metadata.name = "up";
    s.upgrade.metadata.namespace_ = "default";
    s.upgrade.metadata.uid = kUid;
    s.upgrade.metadata.generation = 1;
    s.upgrade.spec.server_ref.name = "kcp";
    s.upgrade.spec.version = "v2";
    s.release = Absent{};
    s.backup = Absent{};
    s.roll = Absent{};
    Server server;
    server.metadata.name = "kcp";
    server.spec.host = "local";
    server.spec.source.emplace();
    server.spec.backup.driver = BackupDriver::kSqlite;
    s.server = server;
    s.host = HostState::kFresh;
    s.server_is_current = true;
  }
  A& Finalizer() {
    s.upgrade.metadata.finalizers.push_back(kFinalizer);
    return *this;
  }
  A& Admitted() {
    Finalizer();
    OperationRef op;
    op.kind = Upgrade::kKind;
    op.name = "up";
    op.uid = kUid;
    s.server->status.operation = op;
    return *this;
  }
  A& ReleaseReady() {
    Release r;
    r.metadata.name = "kcp-v2";
    r.metadata.generation = 1;
    r.status.conditions = {Cond("Ready", ConditionStatus::kTrue)};
    s.release = r;
    return *this;
  }
  A& BackupReady() {
    StoreBackup b;
    b.metadata.name = "up-01234567";
    b.metadata.generation = 1;
    b.status.conditions = {Cond("Ready", ConditionStatus::kTrue)};
    s.backup = b;
    return *this;
  }
  A& WithRoll() {
    s.roll = Roll{};
    return *this;
  }
  A& RollEnded(Outcome outcome) {
    WithRoll();
    s.roll->status.outcome = outcome;
    return *this;
  }
  A& History(Outcome outcome) {
    HistoryEntry h;
    h.kind = Upgrade::kKind;
    h.name = "up";
    h.uid = kUid;
    h.outcome = outcome;
    s.server->status.history.push_back(h);
    return *this;
  }
  A& With(const std::function<void(Snapshot&)>& change) {
    change(s);
    return *this;
  }
  Plan Decided() const { return Decide(s, Now{Time(Seconds(1000)), Seconds(1000), "b"}); }

  Snapshot s;
};

template <typename T>
bool Is(const Plan& plan) {
  return std::holds_alternative<T>(plan.step);
}
bool Idle(const Plan& plan) { return Is<std::monostate>(plan) && !plan.finish; }

TEST(UpgradePlan, AnUpgradeWithoutOurFinalizerGetsItBeforeAnythingElse) {
  const Plan p = A().Decided();
  EXPECT_TRUE(Is<AddFinalizer>(p));
  EXPECT_FALSE(p.admitted);
}

TEST(UpgradePlan, AMissingServerIsStalledAndNamesTheField) {
  const Plan p = A().Finalizer().With([](Snapshot& s) { s.server = Absent{}; }).Decided();
  EXPECT_TRUE(Idle(p));
  EXPECT_TRUE(p.stalled);
  EXPECT_EQ(p.reason, "ServerNotFound");
  EXPECT_NE(p.message.find("spec.serverRef.name"), std::string::npos);
}

TEST(UpgradePlan, AnUnreadableServerIsNotAMissingOne) {
  const Plan p = A().Finalizer().With([](Snapshot& s) { s.server = Unknown{"503"}; }).Decided();
  EXPECT_TRUE(Idle(p));
  EXPECT_FALSE(p.stalled);
}

TEST(UpgradePlan, ASilentHostStallsWithoutFailing) {
  for (const auto& [state, reason] :
       {std::pair{HostState::kLost, "AgentLost"}, {HostState::kNeverSeen, "HostUnknown"}}) {
    const Plan p = A().Admitted().With([&](Snapshot& s) { s.host = state; }).Decided();
    EXPECT_TRUE(Idle(p));
    EXPECT_TRUE(p.stalled);
    EXPECT_EQ(p.reason, reason);
    EXPECT_GT(p.requeue_after, Duration::zero());
  }
}

TEST(UpgradePlan, NothingIsDoneOnAStatusThatIsBehindTheLedger) {
  EXPECT_TRUE(Idle(A().Admitted().With([](Snapshot& s) { s.server_is_current = false; }).Decided()));
}

TEST(UpgradePlan, AnotherOperationInThePlaceIsNamed) {
  const Plan p = A().Finalizer()
                     .With([](Snapshot& s) {
                       OperationRef op;
                       op.kind = "Roll";
                       op.name = "by-hand";
                       op.uid = "other";
                       op.phase = OperationPhase::kVerifying;
                       s.server->status.operation = op;
                     })
                     .Decided();
  EXPECT_TRUE(Idle(p));
  EXPECT_EQ(p.reason, "Busy");
  EXPECT_EQ(p.message, "waits for Roll by-hand");
}

TEST(UpgradePlan, OnceAdmittedTheReleaseIsMadeThenTheBackupThenTheRoll) {  // H1
  const Plan release = A().Admitted().Decided();
  ASSERT_TRUE(Is<CreateRelease>(release));
  EXPECT_EQ(std::get<CreateRelease>(release.step).release.metadata.name, "kcp-v2");
  EXPECT_EQ(release.phase, OperationPhase::kDownloading);
  EXPECT_TRUE(release.admitted);

  const Plan backup = A().Admitted().ReleaseReady().Decided();
  ASSERT_TRUE(Is<CreateBackup>(backup));
  EXPECT_EQ(backup.phase, OperationPhase::kBackingUp);

  const Plan roll = A().Admitted().ReleaseReady().BackupReady().Decided();
  ASSERT_TRUE(Is<CreateRoll>(roll));
  const Roll& r = std::get<CreateRoll>(roll.step).roll;
  EXPECT_EQ(r.metadata.name, "up-01234567");
  EXPECT_EQ(r.metadata.owner_references.at(0).uid, kUid);
  EXPECT_EQ(r.spec.release_ref->name, "kcp-v2");
  EXPECT_EQ(r.spec.backup_ref->name, "up-01234567");
  EXPECT_EQ(r.spec.backup, RollBackup::kRequired);
  EXPECT_EQ(r.spec.timeouts.ready_seconds, 60);
}

TEST(UpgradePlan, RollbackDisabledTakesNoBackup) {  // H2
  const Plan p = A().Admitted()
                     .ReleaseReady()
                     .With([](Snapshot& s) { s.upgrade.spec.rollback = RollbackMode::kDisabled; })
                     .Decided();
  ASSERT_TRUE(Is<CreateRoll>(p));
  EXPECT_EQ(std::get<CreateRoll>(p.step).roll.spec.backup, RollBackup::kNone);
}

TEST(UpgradePlan, ARestartNeitherFetchesNorBacksUp) {  // A9
  const Plan p = A().Admitted()
                     .With([](Snapshot& s) {
                       s.upgrade.spec.action = UpgradeAction::kRestart;
                       s.upgrade.spec.version.clear();
                     })
                     .Decided();
  ASSERT_TRUE(Is<CreateRoll>(p));
  EXPECT_FALSE(std::get<CreateRoll>(p.step).roll.spec.release_ref.has_value());
}

TEST(UpgradePlan, ASingleServerIsRolledAsAPlannedOutage) {
  const Plan p = A().Admitted()
                     .ReleaseReady()
                     .BackupReady()
                     .With([](Snapshot& s) { s.server->spec.shape = ServerShape::kSingle; })
                     .Decided();
  ASSERT_TRUE(Is<CreateRoll>(p));
  EXPECT_TRUE(std::get<CreateRoll>(p.step).roll.spec.planned_outage);
}

TEST(UpgradePlan, AStalledReleaseStallsTheUpgradeWithItsReasonAndGoesOnByItself) {
  const Plan p =
      A().Admitted()
          .ReleaseReady()
          .With([](Snapshot& s) {
            s.release->status.conditions = {Cond("Stalled", ConditionStatus::kTrue, "BinaryMissing", "no bin/kcp")};
          })
          .Decided();
  EXPECT_TRUE(Idle(p));
  EXPECT_TRUE(p.stalled);
  EXPECT_EQ(p.reason, "BinaryMissing");
  EXPECT_EQ(p.phase, OperationPhase::kDownloading);
  ASSERT_FALSE(p.next_actions.empty());
  EXPECT_EQ(p.next_actions.back().command, "lockkeeper abort up -n default");
}

TEST(UpgradePlan, AFailedBackupFailsTheUpgradeUntouched) {
  const Plan p = A().Admitted()
                     .ReleaseReady()
                     .BackupReady()
                     .With([](Snapshot& s) {
                       s.backup->status.conditions = {Cond("Failed", ConditionStatus::kTrue)};
                       s.backup->status.error = "disk full";
                     })
                     .Decided();
  ASSERT_TRUE(p.finish);
  EXPECT_EQ(p.finish->outcome, Outcome::kFailed);
  EXPECT_EQ(p.finish->reason, "BackupFailed");
  EXPECT_NE(p.finish->message.find("disk full"), std::string::npos);
}

TEST(UpgradePlan, AReadyConditionOfAnOlderGenerationIsNotReady) {
  EXPECT_TRUE(
      Idle(A().Admitted().ReleaseReady().With([](Snapshot& s) { s.release->metadata.generation = 2; }).Decided()));
}

TEST(UpgradePlan, TheRollsOutcomeIsTheUpgrades) {
  for (const auto& [outcome, phase] : {std::pair{Outcome::kSucceeded, OperationPhase::kSucceeded},
                                       {Outcome::kRolledBack, OperationPhase::kRolledBack},
                                       {Outcome::kAborted, OperationPhase::kFailed},
                                       {Outcome::kAbandoned, OperationPhase::kFailed},
                                       {Outcome::kFailed, OperationPhase::kFailed}}) {
    const Plan p = A().Admitted().RollEnded(outcome).Decided();
    ASSERT_TRUE(p.finish);
    EXPECT_EQ(p.finish->outcome, outcome);
    EXPECT_EQ(p.phase, phase);
  }
}

TEST(UpgradePlan, AbortAndAbandonBeforeTheRollAreAnsweredHereAndLaterByTheAgent) {
  const auto abort = [](Snapshot& s) { s.upgrade.spec.controls.abort = true; };
  ASSERT_TRUE(A().Admitted().With(abort).Decided().finish);
  EXPECT_EQ(A().Admitted().With(abort).Decided().finish->outcome, Outcome::kAborted);
  EXPECT_FALSE(A().Admitted().WithRoll().With(abort).Decided().finish);
  const auto abandon = [](Snapshot& s) { s.upgrade.spec.controls.abandon = true; };
  EXPECT_EQ(A().Admitted().With(abandon).Decided().finish->outcome, Outcome::kAbandoned);
}

TEST(UpgradePlan, AnotherVersionThanTheServerDeclaresIsRefusedAndARestartIsNot) {
  const auto declared = [](Snapshot& s) { s.server->spec.version = "v3"; };
  ASSERT_TRUE(A().Admitted().With(declared).Decided().finish);
  EXPECT_EQ(A().Admitted().With(declared).Decided().finish->reason, "DeclaredVersionDiffers");
  EXPECT_TRUE(Is<CreateRoll>(A().Admitted()
                                 .With(declared)
                                 .With([](Snapshot& s) { s.upgrade.spec.action = UpgradeAction::kRestart; })
                                 .Decided()));
}

TEST(UpgradePlan, ABuildThatRunsAlreadyEndsWellWithoutABackupOrARoll) {  // G2
  const Plan p = A().Admitted()
                     .ReleaseReady()
                     .With([](Snapshot& s) {
                       s.release->status.sha256 = "abc";
                       s.server->status.active_slot = "blue";
                       auto& slot = s.server->status.slots.emplace_back();
                       slot.name = "blue";
                       slot.sha256 = "abc";
                       slot.ready_at = Time(Seconds(1));
                     })
                     .Decided();
  ASSERT_TRUE(p.finish);
  EXPECT_EQ(p.finish->outcome, Outcome::kSucceeded);
  EXPECT_EQ(p.finish->reason, "AlreadyOnTarget");
}

TEST(UpgradePlan, AnOlderVersionNeedsAllowDowngrade) {
  const auto newer = [](Snapshot& s) { s.server->status.version = "v3"; };
  ASSERT_TRUE(A().Admitted().With(newer).Decided().finish);
  EXPECT_EQ(A().Admitted().With(newer).Decided().finish->reason, "DowngradeRefused");
  EXPECT_FALSE(
      A().Admitted().With(newer).With([](Snapshot& s) { s.upgrade.spec.allow_downgrade = true; }).Decided().finish);
}

TEST(UpgradePlan, ARecreatedUpgradeIsAnsweredFromTheLedger) {  // C3
  const Plan p = A().Finalizer().History(Outcome::kSucceeded).Decided();
  ASSERT_TRUE(p.finish);
  EXPECT_EQ(p.finish->outcome, Outcome::kSucceeded);
  EXPECT_EQ(p.finish->reason, "AlreadyApplied");
}

TEST(UpgradePlan, OneThatWouldNotWaitSaysThatTheServerWasBusyAndNotThatItWasAppliedBefore) {
  const auto refused_at = [](double after) {
    return A().Finalizer().History(Outcome::kFailed).With([&](Snapshot& s) {
      s.upgrade.spec.when_busy = WhenBusy::kFail;
      s.upgrade.metadata.creation_timestamp = Time{} + Seconds(100);
      s.server->status.history.back().finished_at = Time{} + Seconds(100 + after);
    });
  };
  const Plan p = refused_at(1.5).Decided();
  ASSERT_TRUE(p.finish);
  EXPECT_EQ(p.finish->outcome, Outcome::kFailed);
  EXPECT_EQ(p.finish->reason, "Busy");
  EXPECT_EQ(refused_at(-1).Decided().finish->reason, "AlreadyApplied") << "an earlier object of the same name";
}

TEST(UpgradePlan, OneThatWasAbortedWhileItWaitedIsNotSaidToHaveBeenAppliedBefore) {
  const Plan p = A().Finalizer()
                     .History(Outcome::kAborted)
                     .With([](Snapshot& s) {
                       s.upgrade.metadata.creation_timestamp = Time{} + Seconds(100);
                       s.server->status.history.back().finished_at = Time{} + Seconds(101);
                     })
                     .Decided();
  ASSERT_TRUE(p.finish);
  EXPECT_EQ(p.finish->outcome, Outcome::kAborted);
  EXPECT_EQ(p.finish->reason, "Aborted");
  EXPECT_EQ(p.finish->message, "aborted while it waited; nothing was changed");
}

TEST(UpgradePlan, AFinishedUpgradeLetsGoOnceTheHistoryShowsOnlyWhatEndedLater) {
  const auto decided = [](double others_end) {
    return A()
        .Finalizer()
        .History(Outcome::kSucceeded)
        .With([&](Snapshot& s) {
          s.upgrade.status.outcome = Outcome::kSucceeded;
          s.upgrade.status.finished_at = Time{} + Seconds(100);
          s.server->status.history.back().uid = "another";
          s.server->status.history.back().finished_at = Time{} + Seconds(others_end);
        })
        .Decided();
  };
  EXPECT_TRUE(Is<RemoveFinalizer>(decided(101))) << "it was pushed out of the history";
  EXPECT_TRUE(Idle(decided(99))) << "the ledger has not settled it yet";
}

TEST(UpgradePlan, AFinishedUpgradeIsNeverStartedAgainAndLetsGoOnlyOnceTheLedgerShowsIt) {  // E2
  const auto done = [](Snapshot& s) { s.upgrade.status.outcome = Outcome::kSucceeded; };
  EXPECT_TRUE(Idle(A().Admitted().With(done).Decided())) << "the ledger still holds the place";
  EXPECT_TRUE(Idle(A().Finalizer().With(done).Decided())) << "the ledger does not show the outcome yet";
  EXPECT_TRUE(Is<RemoveFinalizer>(A().Finalizer().History(Outcome::kSucceeded).With(done).Decided()));
}

// The operation ahead of it: another Upgrade, or a Roll by hand.
A Behind(std::string_view kind) {
  A a;
  a.Finalizer();
  OperationRef op;
  op.kind = kind;
  op.name = "first";
  op.uid = "uid-first";
  op.phase = OperationPhase::kDownloading;
  a.s.server->status.operation = op;
  return a;
}

TEST(UpgradePlan, WhoWaitsIsToldForWhom) {
  const Plan plan = Behind(Upgrade::kKind).Decided();
  EXPECT_EQ(plan.reason, "Busy");
  EXPECT_EQ(plan.message, "waits for Upgrade first");
  EXPECT_GT(plan.requeue_after, Duration{}) << "who holds the place next wakes nobody else";
}

// A write for each that waits at each phase of the one before would be quadratic.
TEST(UpgradePlan, WhoWaitsSaysTheSameInEachPhaseOfTheOneBefore) {
  A a = Behind(Upgrade::kKind);
  const Now now{Time(Seconds(1000)), Seconds(1000), "b"};
  const UpgradeStatus first = Summarize(a.s, a.Decided(), now);
  for (OperationPhase phase : {OperationPhase::kPending, OperationPhase::kBackingUp, OperationPhase::kInstalling,
                               OperationPhase::kRestarting, OperationPhase::kVerifying, OperationPhase::kRollingBack}) {
    a.s.server->status.operation->phase = phase;
    a.s.server->status.progress.emplace().step = std::string(EnumName(phase));
    EXPECT_EQ(Summarize(a.s, a.Decided(), now), first) << EnumName(phase);
  }
  a.s.server->status.operation.reset();
  EXPECT_GT(a.Decided().requeue_after, Duration{}) << "in between, too";
}

TEST(UpgradePlan, WhoWaitsForAStalledOneIsToldWhyAndHowToEndIt) {
  const Condition stalled = Cond("Stalled", ConditionStatus::kTrue, "ChecksumMismatch", "sha256 differs");
  A upgrade = Behind(Upgrade::kKind);
  upgrade.s.holder = Upgrade{};
  upgrade.s.holder->status.conditions = {stalled};
  A roll = Behind(Roll::kKind);
  roll.s.server->status.conditions = {stalled};
  for (const A& a : {upgrade, roll}) {
    const std::string message = a.Decided().message;
    EXPECT_NE(message.find(" first, which is stalled: sha256 differs"), std::string::npos) << message;
    EXPECT_NE(message.find("`lockkeeper abort first -n default`"), std::string::npos) << message;
  }
}

TEST(UpgradePlan, WhoseHolderHasEndedIsNotToldToMendIt) {
  A a;
  OperationRef op;
  op.kind = Upgrade::kKind;
  op.name = "other";
  op.uid = "other-uid";
  a.Finalizer().s.server->status.operation = op;
  Upgrade holder;
  holder.status.outcome = Outcome::kAborted;
  holder.status.conditions.push_back(Cond("Stalled", ConditionStatus::kTrue, "Aborted", "aborted"));
  a.s.holder = holder;
  EXPECT_EQ(a.Decided().message, "waits for Upgrade other");
}

TEST(UpgradePlan, WhoWaitsForAStoppedServerIsToldHowItIsStarted) {
  A a;
  a.Finalizer().s.server->status.conditions.push_back(Cond("Ready", ConditionStatus::kFalse, "ServerStopped"));
  const Plan plan = a.Decided();
  EXPECT_EQ(plan.reason, "ServerStopped");
  EXPECT_EQ(plan.message, "Server kcp is stopped; `lockkeeper start kcp -n default` starts it, and this goes on");
}

TEST(UpgradePlan, WithoutItsServerItCanStillBeGivenUp) {
  A a;
  a.Finalizer().s.server = Absent{};
  a.s.upgrade.spec.controls.abort = true;
  ASSERT_TRUE(a.Decided().finish);
  EXPECT_EQ(a.Decided().finish->outcome, Outcome::kAborted);
}

TEST(UpgradePlan, ItsOwnRollIsNotSaidToWaitForIt) {
  A a;
  a.Admitted().ReleaseReady();
  Roll roll;
  roll.status.conditions.push_back(
      Cond("Ready", ConditionStatus::kFalse, "Queued", "waits for Upgrade up (Downloading)"));
  a.s.roll = roll;
  EXPECT_EQ(a.Decided().message, "starting the roll to v2");
}

TEST(UpgradePlan, APreflightDoesNotSayThatTheNewVersionRuns) {
  A a;
  a.Admitted().ReleaseReady();
  a.s.upgrade.spec.mode = OperationMode::kPreflight;
  Roll roll;
  roll.status.outcome = Outcome::kSucceeded;
  roll.status.version = "v2";
  a.s.roll = roll;
  const Plan plan = a.Decided();
  ASSERT_TRUE(plan.finish);
  EXPECT_EQ(plan.finish->message, "every precondition holds; nothing was changed");
  const UpgradeStatus status = Summarize(a.s, plan, Now{});
  EXPECT_EQ(status.new_version, "");
}

TEST(UpgradePlan, APreflightOfABuildThatIsMissingEndsAndKeepsNobodyWaiting) {
  const Plan plan =
      A().Admitted()
          .ReleaseReady()
          .With([](Snapshot& s) {
            s.upgrade.spec.mode = OperationMode::kPreflight;
            s.release->status.conditions = {Cond("Stalled", ConditionStatus::kTrue, "VersionNotFound", "no v2")};
          })
          .Decided();
  ASSERT_TRUE(plan.finish);
  EXPECT_EQ(plan.finish->outcome, Outcome::kFailed);
  EXPECT_EQ(plan.finish->reason, "VersionNotFound");
  EXPECT_NE(plan.finish->message.find("no v2; nothing was changed"), std::string::npos) << plan.finish->message;
}

TEST(UpgradePlan, ADowngradeThatAServerDeclaresIsAllowedThere) {
  A a;
  a.Admitted().s.server->status.version = "v3";
  a.s.server->spec.version = "v2";
  a.s.upgrade.metadata.labels[kDeclaredLabel] = "true";
  const Plan plan = a.Decided();
  ASSERT_TRUE(plan.finish);
  EXPECT_EQ(plan.finish->message, "v2 is older than the running v3; set spec.allowDowngrade of Server kcp to go back");
}

TEST(UpgradePlan, ATimeToLiveDeletesOnlyWhatIsFinishedAndLetGo) {
  const auto done = [](Snapshot& s) {
    s.upgrade.status.outcome = Outcome::kSucceeded;
    s.upgrade.status.finished_at = Time(Seconds(990));
    s.upgrade.spec.ttl_seconds_after_finished = 10;
  };
  EXPECT_TRUE(Is<DeleteSelf>(A().History(Outcome::kSucceeded).With(done).Decided()));
  const Plan early = A().History(Outcome::kSucceeded)
                         .With(done)
                         .With([](Snapshot& s) { s.upgrade.spec.ttl_seconds_after_finished = 15; })
                         .Decided();
  EXPECT_TRUE(Idle(early));
  EXPECT_EQ(early.requeue_after, Seconds(5));
}

TEST(UpgradePlan, DeletedBeforeAdmissionItSimplyGoesAndMidRollItWaitsForTheAgent) {
  const auto deleting = [](Snapshot& s) { s.upgrade.metadata.deletion_timestamp = Time(Seconds(1)); };
  EXPECT_TRUE(Is<RemoveFinalizer>(A().Finalizer().With(deleting).Decided()));
  EXPECT_EQ(A().Admitted().With(deleting).Decided().finish->outcome, Outcome::kAborted);
  EXPECT_TRUE(Idle(A().Admitted().WithRoll().With(deleting).Decided()));
}

TEST(UpgradePlan, WipingConditionsAndPhasesLeavesThePlanAsItWas) {
  std::vector<A> worlds = {A(),
                           A().Admitted(),
                           A().Admitted().ReleaseReady(),
                           A().Admitted().ReleaseReady().BackupReady(),
                           A().Admitted().WithRoll(),
                           A().Admitted().RollEnded(Outcome::kSucceeded)};
  for (A& a : worlds) {
    const Plan before = a.Decided();
    a.s.upgrade.status.conditions = {Cond("Ready", ConditionStatus::kFalse)};
    a.s.upgrade.status.phase = OperationPhase::kVerifying;
    a.s.upgrade.status.progress.emplace();
    const Plan with = a.Decided();
    EXPECT_EQ(before.step, with.step);
    EXPECT_EQ(before.phase, with.phase);
    EXPECT_EQ(before.finish, with.finish);
  }
}

TEST(UpgradePlan, ReleaseNamesTellVersionsApart) {
  const auto name = [](const char* version) {
    Upgrade u;
    u.metadata.name = "up";
    u.metadata.uid = kUid;
    u.spec.version = version;
    return ReleaseName(u, "kcp");
  };
  EXPECT_EQ(name("v0.33.0"), "kcp-v0.33.0");
  EXPECT_NE(name("v1+a"), name("v1-a"));
  EXPECT_NE(name("V1"), name("v1"));
  EXPECT_EQ(name("latest"), "up-01234567");
}

}  // namespace
}  // namespace lockkeeper::upgrade
