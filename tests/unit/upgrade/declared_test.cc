#include "reconcilers/upgrade/declared.h"

#include <gtest/gtest.h>

namespace lockkeeper::upgrade {
namespace {

const Now kNow{Time(Seconds(100000)), Seconds(100000), "b"};

DeclaredSnapshot Declaring(const std::string& version, const std::string& running) {
  DeclaredSnapshot s;
  s.server.metadata.name = "kcp";
  s.server.metadata.generation = 1;
  s.server.status.observed_generation = 1;
  s.server.spec.version = version;
  s.server.status.version = running;
  s.host = HostState::kFresh;
  s.server_is_current = true;
  return s;
}

Upgrade Earlier(const std::string& name, const std::string& version, std::optional<Outcome> outcome, Time finished) {
  Upgrade u;
  u.metadata.name = name;
  u.metadata.labels[kDeclaredLabel] = "true";
  u.spec.version = version;
  u.status.outcome = outcome;
  u.status.finished_at = finished;
  return u;
}

TEST(Declared, AnotherVersionThanTheRunningOneMakesOneUpgradeNamedByServerVersionAndCounter) {
  DeclaredSnapshot s = Declaring("v2", "v1");
  s.server.status.declared_attempts = 3;
  const DeclaredPlan plan = DecideDeclared(s, kNow);
  ASSERT_TRUE(plan.create);
  EXPECT_EQ(plan.create->metadata.name, "kcp-v2-4");
  EXPECT_EQ(plan.create->spec.version, "v2");
}

TEST(Declared, AVersionThatCannotStandInANameStillGetsAnUpgradeOfAValidName) {
  const DeclaredPlan plan = DecideDeclared(Declaring("v0.33.0-RC_1+kcp", "v1"), kNow);
  ASSERT_TRUE(plan.create);
  EXPECT_EQ(plan.create->metadata.name, "kcp-v0.33.0-rc-1-kcp-1");
  EXPECT_EQ(plan.create->spec.version, "v0.33.0-RC_1+kcp");
}

TEST(Declared, TheRunningVersionAnUninstalledServerASilentHostAndAPausedOneMakeNone) {
  EXPECT_FALSE(DecideDeclared(Declaring("v1", "v1"), kNow).create);
  EXPECT_FALSE(DecideDeclared(Declaring("v2", ""), kNow).create);
  EXPECT_FALSE(DecideDeclared(Declaring("", "v1"), kNow).create);
  DeclaredSnapshot silent = Declaring("v2", "v1");
  silent.host = HostState::kLost;
  EXPECT_FALSE(DecideDeclared(silent, kNow).create);
  DeclaredSnapshot behind = Declaring("v2", "v1");
  behind.server_is_current = false;
  EXPECT_FALSE(DecideDeclared(behind, kNow).create);
  DeclaredSnapshot paused = Declaring("v2", "v1");
  paused.server.spec.paused = true;
  EXPECT_FALSE(DecideDeclared(paused, kNow).create);
}

TEST(Declared, OneOnItsWayIsWaitedForEvenWhenItGoesElsewhere) {
  DeclaredSnapshot s = Declaring("v2", "v1");
  s.upgrades = {Earlier("kcp-v9-1", "v9", std::nullopt, {})};
  EXPECT_FALSE(DecideDeclared(s, kNow).create);
}

TEST(Declared, ARejectedVersionIsNotTriedByItself) {
  DeclaredSnapshot s = Declaring("v2", "v1");
  s.server.status.rejected.emplace_back().version = "v2";
  EXPECT_FALSE(DecideDeclared(s, kNow).create);
}

// The agent keeps it there until spec.version changes.
TEST(Declared, WhatAPersonAbortedIsNotTriedByItselfHoweverLongAgo) {
  DeclaredSnapshot s = Declaring("v2", "v1");
  s.upgrades = {Earlier("kcp-v2-1", "v2", Outcome::kAborted, kNow.wall - Seconds(90000))};
  RejectedBuild& aborted = s.server.status.rejected.emplace_back();
  aborted.version = "v2";
  aborted.reason = "Aborted";
  EXPECT_EQ(DecideDeclared(s, kNow), DeclaredPlan{});
}

TEST(Declared, WithoutAWishThatIsOpenItsUpgradesNeedNotBeRead) {
  EXPECT_FALSE(MayDeclare(Declaring("v1", "v1").server));
  EXPECT_FALSE(MayDeclare(Declaring("", "v1").server));
  EXPECT_TRUE(MayDeclare(Declaring("v2", "v1").server));
  DeclaredSnapshot restart = Declaring("v1", "v1");
  restart.server.spec.restarted_at = Time(Seconds(600));
  EXPECT_FALSE(MayDeclare(restart.server)) << "the first sight is recorded only";
  restart.server.status.last_restarted_at = Time(Seconds(500));
  EXPECT_TRUE(MayDeclare(restart.server));
}

TEST(Declared, AFailureIsTriedAgainAfterAMinuteDoubledEachTime) {
  DeclaredSnapshot s = Declaring("v2", "v1");
  s.upgrades = {Earlier("kcp-v2-1", "v2", Outcome::kFailed, kNow.wall - Seconds(30))};
  EXPECT_FALSE(DecideDeclared(s, kNow).create);
  EXPECT_EQ(DecideDeclared(s, kNow).requeue_after, Seconds(30));
  s.upgrades[0].status.finished_at = kNow.wall - Seconds(60);
  ASSERT_TRUE(DecideDeclared(s, kNow).create);
  EXPECT_EQ(DecideDeclared(s, kNow).create->metadata.name, "kcp-v2-2") << "the first name is taken";
  s.upgrades.push_back(Earlier("kcp-v2-2", "v2", Outcome::kFailed, kNow.wall - Seconds(60)));
  EXPECT_EQ(DecideDeclared(s, kNow).requeue_after, Seconds(60));
}

TEST(Declared, ALaterRestartedAtMakesOneRestartAndTheFirstSightMakesNone) {
  DeclaredSnapshot s = Declaring("", "v1");
  s.server.spec.restarted_at = Time(Seconds(500));
  EXPECT_FALSE(DecideDeclared(s, kNow).create) << "the agent has not recorded one yet";
  s.server.status.last_restarted_at = Time(Seconds(500));
  EXPECT_FALSE(DecideDeclared(s, kNow).create);
  s.server.spec.restarted_at = Time(Seconds(600));
  const DeclaredPlan plan = DecideDeclared(s, kNow);
  ASSERT_TRUE(plan.create);
  EXPECT_EQ(plan.create->metadata.name, "kcp-restart-600");
  EXPECT_EQ(plan.create->spec.action, UpgradeAction::kRestart);
  s.upgrades = {*plan.create};
  EXPECT_FALSE(DecideDeclared(s, kNow).create);
}

}  // namespace
}  // namespace lockkeeper::upgrade
