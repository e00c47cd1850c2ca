// What a slot's plan does about starts, companions, exits and resets.
#include "reconcilers/slot/plan.h"

#include "tests/unit/slot/scene.h"

namespace lockkeeper::slot {
namespace {

using State = UnitStatus::State;

TEST(SlotPlan, NothingIsDoneWhereNothingIsWanted) {
  Scene scene;
  scene.s.entry = SlotEntry{};
  EXPECT_EQ(scene.Decide().step, StepKind::kNone);
}

TEST(SlotPlan, ANewStartIsWrittenDownBeforeItIsMade) {
  Scene scene;
  scene.actual() = SlotActual{};
  const Plan noted = scene.Decide();
  EXPECT_EQ(noted.step, StepKind::kNote);
  EXPECT_EQ(noted.actual->incarnation, 3);
  EXPECT_EQ(noted.actual->invocation, 1);
  const Plan plan = scene.Settle();
  EXPECT_EQ(plan.step, StepKind::kStart);
  EXPECT_EQ(plan.invocation, 1);
  EXPECT_EQ(plan.spec, scene.intent().unit);
}

TEST(SlotPlan, APreparedUnitGetsItsGoAgain) {
  Scene scene;
  scene.s.unit = scene.Unit(State::kPrepared, 1, 0);
  EXPECT_EQ(scene.Settle().step, StepKind::kStart);
}

TEST(SlotPlan, AnUnknownUnitIsNeverTakenForAnAbsentOne) {
  Scene scene;
  scene.s.unit = Unknown{"no answer"};
  EXPECT_EQ(scene.Settle().step, StepKind::kNone);
  scene.intent().running = false;
  EXPECT_EQ(scene.Settle().step, StepKind::kNone);
}

TEST(SlotPlan, ARunningServerIsNotedWithPidPortBuildAndBoot) {
  Scene scene;
  scene.s.unit = scene.Running(6443);
  scene.s.exec_sha256 = std::string("abc");
  EXPECT_EQ(scene.Settle().reason, "Running");
  EXPECT_EQ(scene.actual().id.pid, 100);
  EXPECT_EQ(scene.actual().port, 6443);
  EXPECT_EQ(scene.actual().exec_sha256, "abc");
  EXPECT_EQ(scene.actual().executable, "/r/kcp");
  EXPECT_EQ(scene.actual().boots, 1);
  EXPECT_EQ(scene.actual().listening_at, scene.now.wall);
  // A second socket does not move the port, a later look does not move the time.
  scene.Advance(Seconds(3));
  scene.s.unit.get()->listen_ports = {6443, 9000};
  EXPECT_EQ(scene.Decide().step, StepKind::kNone);
}

TEST(SlotPlan, ADeadServerIsNotStartedAgainBeforeAHigherInvocationOrdersIt) {
  Scene scene;
  scene.s.unit = scene.Running(6443);
  scene.Settle();
  scene.s.unit = scene.Exited(0, 9);
  EXPECT_EQ(scene.Settle().reason, "Ended");
  EXPECT_EQ(scene.actual().stop_reason, StopReason::kSignal);
  EXPECT_EQ(scene.actual().exit->signal, 9);
  EXPECT_EQ(scene.actual().exited_at, scene.now.wall - Seconds(1));
  scene.intent().invocation = 2;
  const Plan plan = scene.Settle();
  EXPECT_EQ(plan.step, StepKind::kStart);
  EXPECT_EQ(plan.invocation, 2);
  EXPECT_EQ(scene.actual().boots, 1);
  EXPECT_EQ(scene.actual().exited_at, Time{});
}

struct EndCase {
  const char* name;
  int code;
  int signal;
  bool oom;
  bool sigterm;
  bool killed;
  bool other_boot;
  StopReason reason;
};

TEST(SlotPlan, AnEndIsNamedByItsCause) {
  const EndCase cases[] = {
      {"exit code", 3, 0, false, false, false, false, StopReason::kExit},
      {"signal", 0, 11, false, false, false, false, StopReason::kSignal},
      {"out of memory", 0, 9, true, false, false, false, StopReason::kOom},
      {"asked for", 0, 0, false, true, false, false, StopReason::kRequested},
      {"killed after its time", 0, 9, false, true, true, false, StopReason::kTimeout},
      {"with the host", 0, 0, false, false, false, true, StopReason::kHostReboot},
  };
  for (const EndCase& c : cases) {
    Scene scene;
    scene.actual().id = {scene.intent().unit.name, 1, 100, 7, c.other_boot ? "boot-0" : kBoot};
    if (c.sigterm) scene.actual().sigterm_at = scene.now.wall - Seconds(9);
    if (c.killed) scene.actual().killed_at = scene.now.wall - Seconds(1);
    UnitStatus unit = scene.Exited(c.code, c.signal);
    unit.exit->oom = c.oom;
    if (c.other_boot) {
      unit.id.boot_id = "boot-0";
      unit.exit.reset();
    }
    scene.s.unit = unit;
    scene.Settle();
    EXPECT_EQ(scene.actual().stop_reason, c.reason) << c.name;
    EXPECT_NE(scene.actual().exited_at, Time{}) << c.name;
  }
}

TEST(SlotPlan, WhatRanAndLeftNoTraceEndedWithItsBoot) {
  Scene scene;
  scene.actual().id = {scene.intent().unit.name, 1, 100, 7, "boot-0"};
  EXPECT_EQ(scene.Settle().reason, "Ended");
  EXPECT_EQ(scene.actual().stop_reason, StopReason::kHostReboot);
}

TEST(SlotPlan, ARefusedStartIsNotedAndLeftToThePlanOfTheServer) {
  Scene scene;
  UnitStatus unit = scene.Unit(State::kExited, 1, 0);
  unit.started_at = Time{};
  unit.failure = Status(Code::kNotFound, "cannot execute /r/kcp: No such file or directory");
  scene.s.unit = unit;
  EXPECT_EQ(scene.Settle().reason, "StartFailed");
  EXPECT_EQ(scene.actual().error, "cannot execute /r/kcp: No such file or directory");
  EXPECT_EQ(scene.actual().error_code, "NotFound");
  EXPECT_EQ(scene.actual().exited_at, Time{});
  scene.intent().invocation = 2;
  EXPECT_EQ(scene.Settle().step, StepKind::kStart);
  EXPECT_TRUE(scene.actual().error.empty());
}

TEST(SlotPlan, AForeignStartIsNeitherAdoptedNorStopped) {
  Scene scene;
  scene.s.unit = scene.Unit(State::kRunning, 5);
  const Plan plan = scene.Settle();
  EXPECT_EQ(plan.step, StepKind::kNone);
  EXPECT_EQ(plan.reason, "ForeignProcess");
  EXPECT_EQ(scene.actual().id.pid, 0);
}

TEST(SlotPlan, AnEarlierStartThatStillRunsIsStoppedBeforeTheNext) {
  Scene scene;
  scene.s.unit = scene.Running(6443);
  scene.Settle();
  scene.intent().invocation = 2;
  Plan plan = scene.Settle();
  EXPECT_EQ(plan.step, StepKind::kTerminate);
  EXPECT_EQ(plan.target.invocation, 1);
  scene.actual() = *plan.actual;
  scene.s.sigterm_sent = true;
  EXPECT_EQ(scene.Settle().reason, "Stopping");
  scene.s.unit = scene.Exited(0);
  plan = scene.Settle();
  EXPECT_EQ(plan.step, StepKind::kStart);
  EXPECT_EQ(plan.invocation, 2);
}

TEST(SlotPlan, CompanionsStartFirstAndTheirPortIsFilledIn) {
  Scene scene;
  scene.WithCompanion();
  Plan plan = scene.Settle();
  EXPECT_EQ(plan.step, StepKind::kStartCompanion);
  EXPECT_EQ(plan.invocation, 1);
  scene.s.companions["kine"] = scene.Companion(State::kRunning);
  plan = scene.Settle();
  EXPECT_EQ(plan.reason, "WaitingForCompanion") << "it does not listen yet";
  scene.s.companions["kine"] = scene.Companion(State::kRunning, 2379);
  plan = scene.Settle();
  EXPECT_EQ(plan.step, StepKind::kStart);
  EXPECT_EQ(plan.spec.argv[1], "--etcd-servers=http://127.0.0.1:2379");
  ASSERT_EQ(scene.actual().companions.size(), 1u);
  EXPECT_EQ(scene.actual().companions[0].port, 2379);
}

TEST(SlotPlan, ACompanionWithAFixedPortMustListenOnThatOne) {
  Scene scene;
  scene.WithCompanion(2379);
  scene.s.companions["kine"] = scene.Companion(State::kRunning, 9000);
  EXPECT_EQ(scene.Settle().reason, "WaitingForCompanion");
  scene.s.companions["kine"] = scene.Companion(State::kRunning, 2379);
  EXPECT_EQ(scene.Settle().step, StepKind::kStart);
}

TEST(SlotPlan, ACompanionThatTheServerDoesNotNameNeedNotListen) {
  Scene scene;
  scene.WithCompanion();
  scene.intent().unit.argv = {"/r/kcp"};
  scene.s.companions["kine"] = scene.Companion(State::kRunning);
  EXPECT_EQ(scene.Settle().step, StepKind::kStart);
}

TEST(SlotPlan, ACompanionThatDoesNotStayUpEndsTheStartAfterThreeTriesWithItsReason) {
  Scene scene;
  scene.WithCompanion(2379);
  UnitStatus dead = scene.Companion(State::kExited);
  dead.exit = UnitExit{scene.now.wall, 98, 0, false, false};
  scene.s.companions["kine"] = dead;
  CompanionTry& t = scene.s.tries[dead.id.unit];
  t = {1, scene.now.boot, {}};
  EXPECT_EQ(scene.Settle().reason, "CompanionBackOff");
  scene.Advance(Seconds(1));
  Plan plan = scene.Settle();
  EXPECT_EQ(plan.step, StepKind::kStartCompanion);
  EXPECT_EQ(plan.invocation, 2);
  t.failures = 3;
  EXPECT_EQ(scene.Settle().reason, "StartFailed");
  EXPECT_EQ(scene.actual().error, "companion kine of slot blue does not stay up: it ended with exit code 98");
}

TEST(SlotPlan, ACompanionOfARunningServerIsStartedAgainForEver) {
  Scene scene;
  scene.WithCompanion(2379);
  scene.s.companions["kine"] = scene.Companion(State::kRunning, 2379);
  scene.s.unit = scene.Running(6443);
  EXPECT_EQ(scene.Settle().reason, "Running");
  scene.s.companions["kine"] = scene.Companion(State::kExited);
  scene.s.tries[scene.intent().companions[0].unit.name] = {9, scene.now.boot - Seconds(11), {}};
  const Plan plan = scene.Settle();
  EXPECT_EQ(plan.step, StepKind::kStartCompanion);
  EXPECT_EQ(plan.invocation, 2);
  EXPECT_TRUE(scene.actual().error.empty());
}

TEST(SlotPlan, AServerThatEndedKeepsItsCompanionsButStartsNone) {
  Scene scene;
  scene.WithCompanion(2379);
  scene.s.unit = scene.Exited();
  EXPECT_EQ(scene.Settle().step, StepKind::kNone);
}

TEST(SlotPlan, AnEarlierIncarnationIsStoppedAndForgottenFirst) {
  Scene scene;
  scene.WithCompanion();
  const std::string old_unit = "lk-default-kcp-blue-2";
  scene.actual() = SlotActual{};
  scene.actual().incarnation = 2;
  scene.actual().invocation = 4;
  scene.actual().id = {old_unit, 4, 90, 5, kBoot};
  scene.actual().companions = {{"kine", {old_unit + "-kine", 1, 91, 6, kBoot}, 2000, {}}};
  UnitStatus old = scene.Unit(State::kRunning, 4, 90);
  old.id = scene.actual().id;
  scene.s.stale = old;
  UnitStatus old_kine = old;
  old_kine.id = scene.actual().companions[0].id;
  scene.s.stale_companions[old_unit + "-kine"] = old_kine;
  Plan plan = scene.Settle();
  EXPECT_EQ(plan.step, StepKind::kTerminate);
  EXPECT_EQ(plan.target, old.id);
  scene.actual() = *plan.actual;
  scene.s.sigterm_sent = true;
  scene.s.stale.get()->state = State::kExited;
  plan = scene.Settle();
  EXPECT_EQ(plan.step, StepKind::kTerminate);
  EXPECT_EQ(plan.target, old_kine.id);
  scene.s.stale_companions[old_unit + "-kine"].get()->state = State::kExited;
  plan = scene.Settle();
  EXPECT_EQ(plan.step, StepKind::kReset);
  EXPECT_EQ(plan.unit, old_unit);
  scene.s.stale = Absent{};
  EXPECT_EQ(scene.Settle().unit, old_unit + "-kine");
  scene.s.stale_companions.clear();
  EXPECT_EQ(scene.Settle().step, StepKind::kStartCompanion);
  EXPECT_EQ(scene.actual().incarnation, 3);
  EXPECT_EQ(scene.actual().boots, 0);
}

TEST(SlotPlan, AForbiddenHostIsOnlyLookedAt) {
  Scene scene;
  scene.s.forbidden = "LedgerLost";
  EXPECT_EQ(scene.Settle().reason, "HandsOff");
  scene.s.unit = scene.Running(6443);
  scene.intent().running = false;
  EXPECT_EQ(scene.Settle().reason, "HandsOff");
  EXPECT_EQ(scene.actual().port, 6443) << "what is seen is still recorded";
}

TEST(SlotPlan, PortsAreFilledIntoCommandAndEnvironmentOrTheStartWaits) {
  Scene scene;
  scene.WithCompanion();
  scene.intent().unit.env = {{"STORE", "http://x:{companion.kine.port}/{companion.kine.port}"}};
  EXPECT_FALSE(FillPorts(scene.intent(), {}));
  const std::optional<UnitSpec> spec = FillPorts(scene.intent(), {{"kine", 7}});
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->env.at("STORE"), "http://x:7/7");
  scene.intent().companions[0].port = 9;
  EXPECT_EQ(FillPorts(scene.intent(), {})->env.at("STORE"), "http://x:9/9");
}

}  // namespace
}  // namespace lockkeeper::slot
