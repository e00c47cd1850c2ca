#include "reconcilers/upgrade/status.h"

#include <gtest/gtest.h>

#include "api/types/conditions.h"

namespace lockkeeper::upgrade {
namespace {

const Now kNow{Time(Seconds(1000)), Seconds(1000), "b"};
const Now kLater{Time(Seconds(1010)), Seconds(1010), "b"};

Snapshot World() {
  Snapshot s;
  s.upgrade.metadata.name = "up";
  s.upgrade.metadata.generation = 2;
  s.server = Absent{};
  s.release = Absent{};
  s.backup = Absent{};
  s.roll = Absent{};
  return s;
}

Plan Working(OperationPhase phase) {
  Plan p;
  p.phase = phase;
  p.reason = std::string(EnumName(phase));
  p.message = "working";
  p.admitted = true;
  return p;
}

Plan Ended(Outcome outcome, const char* message) {
  Plan p;
  p.admitted = true;
  p.finish = Finish{outcome, std::string(EnumName(outcome)), message};
  p.reason = p.finish->reason;
  p.message = message;
  return p;
}

std::string Kstatus(Snapshot s, const UpgradeStatus& status) {
  s.upgrade.status = status;
  return std::string(KstatusOf(ToJson(s.upgrade)));
}

TEST(UpgradeStatus, KstatusReadsEachStageAsItIs) {
  const Snapshot s = World();
  EXPECT_EQ(Kstatus(s, Summarize(s, Working(OperationPhase::kDownloading), kNow)), "InProgress");
  Plan stalled = Working(OperationPhase::kDownloading);
  stalled.stalled = true;
  EXPECT_EQ(Kstatus(s, Summarize(s, stalled, kNow)), "Failed");
  EXPECT_EQ(Kstatus(s, Summarize(s, Ended(Outcome::kSucceeded, "runs v2"), kNow)), "Current");
  EXPECT_EQ(Kstatus(s, Summarize(s, Ended(Outcome::kRolledBack, "not ready"), kNow)), "Failed");
}

TEST(UpgradeStatus, EveryConditionCarriesTheGenerationThatWasRead) {
  const UpgradeStatus status = Summarize(World(), Working(OperationPhase::kVerifying), kNow);
  EXPECT_EQ(status.observed_generation, 2);
  for (const Condition& c : status.conditions) EXPECT_EQ(c.observed_generation, 2) << c.type;
}

TEST(UpgradeStatus, FinishedTurnsTrueOnAnyOutcomeAndItsTimeIsStampedOnce) {  // A6
  Snapshot s = World();
  s.upgrade.status = Summarize(s, Ended(Outcome::kAborted, "aborted"), kNow);
  EXPECT_TRUE(IsConditionTrue(s.upgrade.status.conditions, condition::kFinished));
  EXPECT_TRUE(IsConditionTrue(s.upgrade.status.conditions, condition::kFailed));
  EXPECT_EQ(s.upgrade.status.finished_at, kNow.wall);
  Plan again = Ended(Outcome::kSucceeded, "other");
  again.finish.reset();
  const UpgradeStatus later = Summarize(s, again, kLater);
  EXPECT_EQ(later, s.upgrade.status) << "a finished one is never rewritten";
}

TEST(UpgradeStatus, PhasesAreClosedInTheirOrder) {
  Snapshot s = World();
  s.upgrade.status = Summarize(s, Working(OperationPhase::kDownloading), kNow);
  s.upgrade.status = Summarize(s, Working(OperationPhase::kInstalling), kLater);
  ASSERT_EQ(s.upgrade.status.phases.size(), 2u);
  EXPECT_EQ(s.upgrade.status.phases[0].finished_at, kLater.wall);
  EXPECT_FALSE(s.upgrade.status.phases[1].finished_at);
}

TEST(UpgradeStatus, APassThatFindsNothingNewWritesNothing) {
  Snapshot s = World();
  s.upgrade.status = Summarize(s, Working(OperationPhase::kDownloading), kNow);
  EXPECT_EQ(Summarize(s, Working(OperationPhase::kDownloading), kLater), s.upgrade.status);
}

// The column of kubectl: never empty before the end.
TEST(UpgradeStatus, ProgressSaysInShortWhyNothingGoesOnYet) {
  const auto column = [](Snapshot s, const Plan& plan) {
    const UpgradeStatus status = Summarize(s, plan, kNow);
    EXPECT_EQ(Summarize(s, plan, kLater).progress, status.progress) << "no write a pass";
    return status.progress ? status.progress->message : "none";
  };
  Plan waits = Working(OperationPhase::kPending);
  waits.admitted = false;
  waits.message = "waits for Upgrade first, which is stalled: sha256 differs; mend that";
  EXPECT_EQ(column(World(), waits), "waits for Upgrade first");
  waits.message = "spec.paused is true; set it to false to go on";
  EXPECT_EQ(column(World(), waits), "spec.paused is true");
  Plan stalled = Working(OperationPhase::kDownloading);
  stalled.stalled = true;
  stalled.reason = "VersionNotFound";
  Snapshot fetching = World();
  fetching.release = Release{};
  EXPECT_EQ(column(fetching, stalled), "stalled: VersionNotFound");
  fetching.release->status.progress.emplace().message = "12 of 80 MB";
  EXPECT_EQ(column(fetching, Working(OperationPhase::kDownloading)), "12 of 80 MB");
  Snapshot rolling = World();
  rolling.roll = Roll{};
  EXPECT_EQ(column(rolling, Working(OperationPhase::kInstalling)), "working") << "the roll has not reported yet";
  EXPECT_EQ(column(World(), Ended(Outcome::kSucceeded, "runs v2")), "none");
}

TEST(UpgradeStatus, WhatRanBeforeIsWhatRunsOnceItIsAdmitted) {
  Snapshot s = World();
  s.server = Server{};
  s.server->status.version = "v1";
  Plan waits = Working(OperationPhase::kPending);
  waits.admitted = false;
  s.upgrade.status = Summarize(s, waits, kNow);
  EXPECT_EQ(s.upgrade.status.previous_version, "");
  s.server->status.version = "v2";
  EXPECT_EQ(Summarize(s, Working(OperationPhase::kDownloading), kNow).previous_version, "v2");
}

TEST(UpgradeStatus, AnAbortThatCameTooLateIsToldWithItsReason) {
  Snapshot s = World();
  s.roll = Roll{};
  Condition refused;
  refused.type = "AbortRefused";
  refused.status = ConditionStatus::kTrue;
  refused.reason = "AbortRefused";
  refused.message = "the old slot is being stopped already";
  s.roll->status.conditions = {refused};
  const UpgradeStatus status = Summarize(s, Working(OperationPhase::kVerifying), kNow);
  const Condition* told = FindCondition(status.conditions, condition::kAbortRefused);
  ASSERT_NE(told, nullptr);
  EXPECT_EQ(told->message, refused.message);
  EXPECT_EQ(FindCondition(Summarize(World(), Working(OperationPhase::kVerifying), kNow).conditions, "AbortRefused"),
            nullptr);
}

TEST(UpgradeStatus, EventsTellTheStoryOnce) {
  const Snapshot s = World();
  const UpgradeStatus started = Summarize(s, Working(OperationPhase::kDownloading), kNow);
  const auto first = EventsBetween(UpgradeStatus{}, started);
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0].reason, "Downloading");
  EXPECT_TRUE(EventsBetween(started, started).empty());
  const auto last = EventsBetween(started, Summarize(s, Ended(Outcome::kRolledBack, "green was not ready"), kNow));
  ASSERT_EQ(last.size(), 1u);
  EXPECT_TRUE(last[0].warning);
  EXPECT_EQ(last[0].message, "green was not ready");
}

}  // namespace
}  // namespace lockkeeper::upgrade
