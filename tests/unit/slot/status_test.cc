#include "reconcilers/slot/status.h"

#include "api/types/conditions.h"
#include "tests/unit/slot/scene.h"

namespace lockkeeper::slot {
namespace {

SlotEntry Entry() {
  Scene scene;
  scene.s.unit = scene.Running(6443);
  scene.Settle();
  return scene.s.entry;
}

TEST(SlotStatusTest, TheStateFollowsTheLedger) {
  SlotEntry e = Entry();
  EXPECT_EQ(StateOf(e), SlotState::kListening);
  e.ready_at = Time(Seconds(1));
  EXPECT_EQ(StateOf(e), SlotState::kReady);
  e.actual.port = 0;
  EXPECT_EQ(StateOf(e), SlotState::kStarting);
  e.intent.running = false;
  EXPECT_EQ(StateOf(e), SlotState::kStopping);
  e.actual.exited_at = Time(Seconds(2));
  EXPECT_EQ(StateOf(e), SlotState::kStopped);
  e.intent.running = true;
  EXPECT_EQ(StateOf(e), SlotState::kFailed);
  e.intent.invocation = 2;
  EXPECT_EQ(StateOf(e), SlotState::kStarting);
}

TEST(SlotStatusTest, AFailureIsStalledAndNamesItsCause) {
  SlotEntry e = Entry();
  e.actual.exited_at = Time(Seconds(2));
  e.actual.exit = UnitExit{Time(Seconds(2)), 0, 11, false, false};
  const SlotStatus s = Summarize(e, {}, {"panic: x"}, 4, Time(Seconds(9)));
  EXPECT_TRUE(IsConditionTrue(s.conditions, condition::kStalled));
  EXPECT_EQ(FindCondition(s.conditions, condition::kReady)->message, "it ended by signal 11");
  EXPECT_EQ(s.exit_signal, 11);
  EXPECT_FALSE(s.exit_code);
  EXPECT_FALSE(s.pid);
  EXPECT_EQ(s.last_output, std::vector<std::string>{"panic: x"});
  EXPECT_EQ(s.observed_generation, 4);
  e.actual.error = "cannot execute /r/kcp: No such file or directory";
  EXPECT_EQ(FindCondition(Summarize(e, {}, {}, 4, Time(Seconds(9))).conditions, condition::kReady)->message,
            e.actual.error);
}

TEST(SlotStatusTest, WhatDoesNotChangeIsWrittenAsItWas) {
  SlotEntry e = Entry();
  e.ready_at = Time(Seconds(1));
  const SlotStatus first = Summarize(e, {}, {"line"}, 1, Time(Seconds(9)));
  EXPECT_EQ(Summarize(e, first, {}, 1, Time(Seconds(99))), first);
}

TEST(SlotStatusTest, NoValueOfTheEnvironmentLeavesTheHost) {
  ServerRecord record;
  record.key = {"default", "kcp"};
  record.slots["blue"] = Entry();
  record.slots["blue"].intent.unit.env = {{"TOKEN", "secret"}};
  const SlotSpec spec = SpecOf(record, "blue", "host-a");
  ASSERT_EQ(spec.unit->env.size(), 1u);
  EXPECT_EQ(spec.unit->env[0].name, "TOKEN");
  EXPECT_EQ(ToJson(spec).Dump().find("secret"), std::string::npos);
}

}  // namespace
}  // namespace lockkeeper::slot
