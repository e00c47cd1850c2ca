#include "reconcilers/upgrade/wake.h"

#include <gtest/gtest.h>

#include <functional>

#include "api/types/conditions.h"

namespace lockkeeper::upgrade {
namespace {

Server Rolling() {
  Server s;
  s.metadata.name = "kcp";
  s.metadata.uid = "uid-kcp";
  s.metadata.generation = 1;
  OperationRef op;
  op.kind = "Upgrade";
  op.name = "first";
  op.uid = "uid-first";
  op.phase = OperationPhase::kDownloading;
  s.status.operation = op;
  Condition ready;
  ready.type = "Ready";
  ready.status = ConditionStatus::kTrue;
  ready.reason = "AsDesired";
  s.status.conditions = {ready};
  return s;
}

Wake After(const std::function<void(Server&)>& change) {
  const Server before = Rolling();
  Server after = before;
  change(after);
  return WokenBy(&before, after);
}

Condition Stalled(const char* message) {
  Condition c;
  c.type = "Stalled";
  c.status = ConditionStatus::kTrue;
  c.message = message;
  return c;
}

TEST(Wake, APhaseAStepAndARevisionOfTheRunningOneWakeItAlone) {
  const Wake holder{false, {"first"}};
  for (OperationPhase phase : {OperationPhase::kBackingUp, OperationPhase::kRestarting, OperationPhase::kVerifying}) {
    EXPECT_EQ(After([&](Server& s) { s.status.operation->phase = phase; }), holder) << EnumName(phase);
  }
  EXPECT_EQ(After([](Server& s) { s.status.progress.emplace().step = "Drain"; }), holder);
  EXPECT_EQ(After([](Server& s) { s.status.ledger = LedgerRef{"l", 7, {}}; }), holder);
  EXPECT_EQ(After([](Server& s) { s.status.conditions[0].message = "slot green serves v2"; }), holder);
  EXPECT_EQ(After([](Server& s) { s.status.version = "v2"; }), holder);
}

TEST(Wake, WhoEndsAndWhoIsAdmittedAreWokenAndWhoWaitsIsNot) {
  EXPECT_EQ(After([](Server& s) { s.status.operation->name = "second"; }), (Wake{false, {"first", "second"}}));
  EXPECT_EQ(After([](Server& s) { s.status.operation.reset(); }), (Wake{false, {"first"}}));
  EXPECT_EQ(After([](Server& s) {
              HistoryEntry& refused = s.status.history.emplace_back();
              refused.kind = "Upgrade";
              refused.name = "would-not-wait";
            }),
            (Wake{false, {"first", "would-not-wait"}}));
  EXPECT_EQ(After([](Server& s) { s.status.operation->kind = "Roll"; }), (Wake{false, {"first"}}));
}

TEST(Wake, WhatWhoWaitsWouldTellOfItsServerWakesAll) {
  EXPECT_TRUE(After([](Server& s) { s.metadata.generation = 2; }).all) << "paused, another version";
  EXPECT_TRUE(After([](Server& s) { s.metadata.deletion_timestamp = Time(Seconds(1)); }).all);
  EXPECT_TRUE(After([](Server& s) { s.metadata.uid = "another"; }).all);
  EXPECT_TRUE(After([](Server& s) { s.status.conditions[0].reason = "ServerStopped"; }).all);
  EXPECT_TRUE(After([](Server& s) { s.status.conditions[0].status = ConditionStatus::kUnknown; }).all) << "silent";
  EXPECT_TRUE(After([](Server& s) { s.status.conditions.push_back(Stalled("port 6444 is taken")); }).all);
  EXPECT_TRUE(WokenBy(nullptr, Rolling()).all);
}

}  // namespace
}  // namespace lockkeeper::upgrade
