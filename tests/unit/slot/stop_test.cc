// How a slot is stopped: SIGTERM once, its resume after a restart of the agent, SIGKILL at the deadline.
#include "tests/unit/slot/scene.h"

namespace lockkeeper::slot {
namespace {

using State = UnitStatus::State;

class SlotStop : public ::testing::Test {
 protected:
  SlotStop() {
    scene.s.unit = scene.Running(6443);
    scene.Settle();
    scene.intent().running = false;
  }
  // An agent noted the signal, at this age, and ended.
  void Resume(Duration age) {
    scene.actual().stop_asked_at = scene.now.wall - age;
    scene.actual().sigterm_at = scene.now.wall - age;
    scene.actual().kill_at = Deadline::After(scene.now, Seconds(75) - age);
    scene.s.sigterm_sent = false;
  }
  Scene scene;
};

TEST_F(SlotStop, TheSignalIsWrittenDownWithItsDeadlineBeforeItIsSent) {
  const Plan plan = scene.Settle();
  EXPECT_EQ(plan.step, StepKind::kTerminate);
  EXPECT_EQ(plan.signal, 15);
  EXPECT_EQ(plan.target, scene.s.unit->id);
  ASSERT_TRUE(plan.actual);
  EXPECT_EQ(plan.actual->sigterm_at, scene.now.wall);
  EXPECT_EQ(plan.actual->kill_at.Left(scene.now), Seconds(75));
}

TEST_F(SlotStop, OnceSentItIsNotSentAgain) {
  const Plan plan = scene.Settle();
  scene.actual() = *plan.actual;
  scene.s.sigterm_sent = true;
  for (int i = 0; i < 70; ++i) {
    scene.Advance(Seconds(1));
    EXPECT_EQ(scene.Settle().step, StepKind::kNone);
  }
}

TEST_F(SlotStop, AfterItsTimeTheSessionIsKilledAndThePlanGoesOn) {
  Plan plan = scene.Settle();
  scene.actual() = *plan.actual;
  scene.s.sigterm_sent = true;
  scene.Advance(Seconds(75));
  plan = scene.Settle();
  EXPECT_EQ(plan.step, StepKind::kKill);
  EXPECT_EQ(plan.actual->killed_at, scene.now.wall);
  scene.actual() = *plan.actual;
  EXPECT_EQ(scene.Settle().reason, "Killing");
  scene.Advance(Seconds(6));
  EXPECT_EQ(scene.Settle().step, StepKind::kKill) << "a kill whose reply was lost is repeated";
  scene.s.unit = scene.Exited(0, 9);
  EXPECT_EQ(scene.Settle().reason, "Stopped");
  EXPECT_EQ(scene.actual().stop_reason, StopReason::kTimeout);
}

TEST_F(SlotStop, AChangeOfTheWallClockKillsNothing) {
  Plan plan = scene.Settle();
  scene.actual() = *plan.actual;
  scene.s.sigterm_sent = true;
  scene.now.wall += Seconds(3600);
  EXPECT_EQ(scene.Settle().step, StepKind::kNone);
}

TEST_F(SlotStop, OnResumeAShutdownOrAClosedListenerCountsAsSent) {
  Resume(Seconds(5));
  scene.s.says_shutting_down = true;
  EXPECT_EQ(scene.Settle().step, StepKind::kNone);
  scene.s.says_shutting_down = false;
  scene.s.unit.get()->listen_ports.clear();
  EXPECT_EQ(scene.Settle().step, StepKind::kNone);
}

TEST_F(SlotStop, OnResumeAServerThatKnowsOfNoShutdownGetsTheSignal) {
  Resume(Seconds(5));
  scene.s.says_shutting_down = false;
  const Plan plan = scene.Settle();
  EXPECT_EQ(plan.step, StepKind::kTerminate);
  EXPECT_EQ(plan.actual->sigterm_at, scene.now.wall - Seconds(5)) << "the deadline does not start anew";
}

TEST_F(SlotStop, OnResumeASilentServerIsGivenTimeBeforeASecondSignal) {
  Resume(Seconds(1));
  scene.s.says_shutting_down = Unknown{"timed out"};
  EXPECT_EQ(scene.Settle().step, StepKind::kNone);
  scene.Advance(Seconds(10));
  EXPECT_EQ(scene.Settle().step, StepKind::kTerminate);
}

TEST_F(SlotStop, OnResumePastTheDeadlineItIsKilledAtOnce) {
  Resume(Seconds(80));
  EXPECT_EQ(scene.Settle().step, StepKind::kKill);
}

TEST_F(SlotStop, CompanionsStopAfterTheServerAndAreKilledAfterTenSeconds) {
  scene.WithCompanion(2379);
  scene.s.companions["kine"] = scene.Companion(State::kRunning, 2379);
  EXPECT_EQ(scene.Settle().unit, scene.intent().unit.name);
  scene.s.unit = scene.Exited(0);
  Plan plan = scene.Settle();
  EXPECT_EQ(plan.step, StepKind::kTerminate);
  EXPECT_EQ(plan.unit, scene.intent().companions[0].unit.name);
  EXPECT_FALSE(plan.actual) << "the slot's own SIGTERM is not touched";
  scene.s.tries[plan.unit].terminated = scene.now.boot;
  EXPECT_EQ(scene.Settle().step, StepKind::kNone);
  scene.Advance(Seconds(10));
  EXPECT_EQ(scene.Settle().step, StepKind::kKill);
}

TEST_F(SlotStop, NothingIsForgottenUnlessItIsAskedFor) {
  scene.WithCompanion(2379);
  scene.s.unit = scene.Exited(0);
  scene.s.companions["kine"] = scene.Companion(State::kExited);
  EXPECT_EQ(scene.Settle().reason, "Stopped");
  scene.intent().forget = true;
  EXPECT_EQ(scene.Settle().unit, scene.intent().unit.name);
  scene.s.unit = Absent{};
  EXPECT_EQ(scene.Settle().unit, scene.intent().companions[0].unit.name);
  scene.s.companions["kine"] = Absent{};
  EXPECT_EQ(scene.Settle().reason, "Forgotten");
}

TEST_F(SlotStop, ASlotThatNeverRanIsSimplyForgotten) {
  Scene fresh;
  fresh.intent().running = false;
  fresh.s.unit = fresh.Unit(State::kPrepared, 1, 0);
  EXPECT_EQ(fresh.Settle().step, StepKind::kReset);
  fresh.s.unit = Absent{};
  EXPECT_EQ(fresh.Settle().reason, "Stopped");
}

TEST_F(SlotStop, AStopThatIsTakenBackBeforeTheSignalLeavesTheServerAlone) {
  scene.intent().running = true;
  EXPECT_EQ(scene.Settle().reason, "Running");
}

}  // namespace
}  // namespace lockkeeper::slot
