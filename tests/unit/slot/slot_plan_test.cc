#include <gtest/gtest.h>

#include <functional>

#include "reconcilers/slot/plan.h"
#include "reconcilers/slot/status.h"

namespace lockkeeper::slot {
namespace {

const Now kNow{Time(Seconds(1000)), Seconds(1000), "boot"};
const UnitIdentity kProcess{"lk-u", 1, 42, 7, "boot"};

UnitStatus Running(const UnitIdentity& id, std::vector<int> ports = {}) {
  UnitStatus u;
  u.state = UnitStatus::State::kRunning;
  u.id = id;
  u.started_at = Time(Seconds(900));
  u.listen_ports = std::move(ports);
  u.executable = "/r/bin/kcp";
  return u;
}

UnitStatus Exited(const UnitIdentity& id, UnitExit exit) {
  UnitStatus u;
  u.state = UnitStatus::State::kExited;
  u.id = id;
  u.exit = exit;
  return u;
}

// A slot that is wanted running, not recorded yet, and not there.
class A {
 public:
  A() {
    s.slot = "green";
    s.entry.intent.incarnation = 3;
    s.entry.intent.invocation = 1;
    s.entry.intent.running = true;
    s.entry.intent.unit.name = "lk-u";
    s.entry.intent.stop_seconds = 75;
    s.unit = Absent{};
  }
  A& Recorded() {
    s.entry.actual.incarnation = 3;
    s.entry.actual.invocation = 1;
    s.entry.actual.boots = 1;
    return *this;
  }
  A& Known(std::vector<int> ports = {6443}) {
    Recorded();
    s.unit = Running(kProcess, ports);
    s.entry.actual.id = kProcess;
    s.entry.actual.started_at = Time(Seconds(900));
    s.entry.actual.executable = "/r/bin/kcp";
    s.entry.actual.port = ports.empty() ? 0 : ports[0];
    if (!ports.empty()) s.entry.actual.listening_at = Time(Seconds(901));
    return *this;
  }
  A& Unwanted() {
    s.entry.intent.running = false;
    return *this;
  }
  A& ToldAt(double t) {
    s.entry.actual.sigterm_at = Time(Seconds(t));
    return *this;
  }
  A& With(const std::function<void(Snapshot&)>& change) {
    change(s);
    return *this;
  }
  Plan Decided() const { return Decide(s, kNow); }
  Snapshot s;
};

template <typename T>
const T* Is(const Plan& plan) {
  return std::get_if<T>(&plan.step);
}
bool Idle(const Plan& plan) { return std::holds_alternative<std::monostate>(plan.step); }

TEST(SlotPlan, AStartIsOnRecordBeforeThereIsOne) {
  const Plan first = A().Decided();
  ASSERT_TRUE(Is<Record>(first));
  EXPECT_EQ(Is<Record>(first)->actual.invocation, 1);
  EXPECT_EQ(Is<Record>(first)->actual.boots, 1);
  const Plan second = A().Recorded().Decided();
  ASSERT_TRUE(Is<StartUnit>(second));
  EXPECT_EQ(Is<StartUnit>(second)->invocation, 1);
}

TEST(SlotPlan, AnUnreadableHostStartsAndStopsNothing) {
  const auto unknown = [](Snapshot& s) { s.unit = Unknown{"proc"}; };
  EXPECT_TRUE(Idle(A().Recorded().With(unknown).Decided()));
  EXPECT_TRUE(Idle(A().Known().Unwanted().With(unknown).Decided()));
}

TEST(SlotPlan, ARefusedStartIsNotTriedAgainWithoutANewInvocation) {
  EXPECT_TRUE(Idle(A().Recorded().With([](Snapshot& s) { s.entry.actual.error = "no such file"; }).Decided()));
}

TEST(SlotPlan, ANewInvocationOfTheSameIncarnationCountsABoot) {
  const Plan p = A().Known().With([](Snapshot& s) { s.entry.intent.invocation = 2; }).Decided();
  ASSERT_TRUE(Is<Record>(p));
  EXPECT_EQ(Is<Record>(p)->actual.boots, 2);
  EXPECT_EQ(Is<Record>(p)->actual.id.pid, 0);
}

TEST(SlotPlan, PidPortAndExecutableAreWrittenDownOnce) {
  const Plan p = A().Recorded()
                     .With([](Snapshot& s) {
                       s.unit = Running(kProcess, {6443});
                       s.exec_sha256 = std::string("abc");
                     })
                     .Decided();
  ASSERT_TRUE(Is<Record>(p));
  EXPECT_EQ(Is<Record>(p)->actual.id, kProcess);
  EXPECT_EQ(Is<Record>(p)->actual.port, 6443);
  EXPECT_EQ(Is<Record>(p)->actual.exec_sha256, "abc");
  EXPECT_TRUE(Idle(A().Known().Decided()));
}

TEST(SlotPlan, APortThatStillListensStaysThePort) {
  EXPECT_TRUE(Idle(A().Known({6443}).With([](Snapshot& s) { s.unit->listen_ports = {1111, 6443}; }).Decided()));
}

TEST(SlotPlan, ACrashIsRecordedWithItsSignalAndNotRestartedHere) {
  UnitExit exit;
  exit.signal = 11;
  exit.at = Time(Seconds(950));
  const Plan p = A().Known().With([&](Snapshot& s) { s.unit = Exited(kProcess, exit); }).Decided();
  ASSERT_TRUE(Is<Record>(p));
  EXPECT_EQ(Is<Record>(p)->actual.stop_reason, StopReason::kSignal);
  EXPECT_EQ(Is<Record>(p)->actual.exited_at, exit.at);
  EXPECT_TRUE(Idle(A().Known()
                       .With([&](Snapshot& s) {
                         s.unit = Exited(kProcess, exit);
                         s.entry.actual.exited_at = exit.at;
                       })
                       .Decided()));
}

TEST(SlotPlan, AProcessOfAnEarlierBootEndedWithItsHost) {
  const Plan p = A().Known()
                     .With([](Snapshot& s) {
                       s.unit = Absent{};
                       s.entry.actual.id.boot_id = "earlier";
                     })
                     .Decided();
  ASSERT_TRUE(Is<Record>(p));
  EXPECT_EQ(Is<Record>(p)->actual.stop_reason, StopReason::kHostReboot);
}

TEST(SlotPlan, TheSignalIsOnRecordBeforeItIsSentAndSentOnce) {
  const Plan first = A().Known().Unwanted().Decided();
  ASSERT_TRUE(Is<Record>(first));
  EXPECT_EQ(Is<Record>(first)->actual.sigterm_at, kNow.wall);
  const auto asked = [](Snapshot& s) { s.asked = true; };
  const Plan second = A().Known().Unwanted().ToldAt(1000).With(asked).Decided();
  ASSERT_TRUE(Is<SignalUnit>(second));
  EXPECT_EQ(Is<SignalUnit>(second)->id, kProcess);
  EXPECT_TRUE(
      Idle(A().Known().Unwanted().ToldAt(1000).With([](Snapshot& s) { s.asked = s.signalled = true; }).Decided()));
}

TEST(SlotPlan, AfterARestartOfTheAgentItIsSentOnlyToAServerThatDoesNotShutDown) {
  const auto says = [](Fact<bool> fact) {
    return A().Known().Unwanted().ToldAt(999).With([&](Snapshot& s) { s.shutting_down = fact; }).Decided();
  };
  EXPECT_TRUE(Is<SignalUnit>(says(false)));
  EXPECT_TRUE(Idle(says(true)));
  EXPECT_TRUE(Idle(says(Unknown{"timeout"})));
}

TEST(SlotPlan, AtStopSecondsTheKillIsRecordedThenDoneThenRepeatedEachSecond) {
  const auto late = [] { return A().Known().Unwanted().ToldAt(925).With([](Snapshot& s) { s.signalled = true; }); };
  const Plan first = late().Decided();
  ASSERT_TRUE(Is<Record>(first));
  EXPECT_EQ(Is<Record>(first)->actual.killed_at, kNow.wall);
  const auto killed = [](Snapshot& s) { s.entry.actual.killed_at = Time(Seconds(1000)); };
  EXPECT_TRUE(Is<KillUnit>(late().With(killed).Decided()));
  EXPECT_TRUE(Idle(late().With(killed).With([](Snapshot& s) { s.last_kill = Time(Seconds(999.5)); }).Decided()));
  EXPECT_TRUE(Is<KillUnit>(late().With(killed).With([](Snapshot& s) { s.last_kill = Time(Seconds(999)); }).Decided()));
  EXPECT_TRUE(Idle(A().Known().Unwanted().ToldAt(926).With([](Snapshot& s) { s.signalled = true; }).Decided()));
}

TEST(SlotPlan, AProcessThatTheRecordDoesNotKnowIsNamedBeforeItIsTouched) {
  const UnitIdentity other{"lk-u", 1, 77, 9, "boot"};
  const Plan p = A().Known().Unwanted().ToldAt(900).With([&](Snapshot& s) { s.unit = Running(other); }).Decided();
  ASSERT_TRUE(Is<Record>(p));
  EXPECT_EQ(Is<Record>(p)->actual.id, other);
  EXPECT_EQ(Is<Record>(p)->actual.sigterm_at, Time{});
}

TEST(SlotPlan, AStopThatWasAskedForIsRequestedAndAKilledOneIsTimeout) {
  const auto ended = [](Time killed) {
    return A()
        .Known()
        .Unwanted()
        .ToldAt(990)
        .With([&](Snapshot& s) {
          s.unit = Exited(kProcess, {});
          s.entry.actual.killed_at = killed;
        })
        .Decided();
  };
  EXPECT_EQ(Is<Record>(ended(Time{}))->actual.stop_reason, StopReason::kRequested);
  EXPECT_EQ(Is<Record>(ended(Time(Seconds(995))))->actual.stop_reason, StopReason::kTimeout);
}

TEST(SlotPlan, AStoppedUnitIsForgottenOnlyWhenThatIsWanted) {
  const auto gone = [](bool forget) {
    return A()
        .Known()
        .Unwanted()
        .With([&](Snapshot& s) {
          s.unit = Exited(kProcess, {});
          s.entry.actual.exited_at = Time(Seconds(999));
          s.entry.intent.forget = forget;
        })
        .Decided();
  };
  EXPECT_TRUE(Idle(gone(false)));
  ASSERT_TRUE(Is<ResetUnit>(gone(true)));
  EXPECT_EQ(Is<ResetUnit>(gone(true))->unit, "lk-u");
}

class WithKine : public A {
 public:
  WithKine() {
    CompanionIntent& kine = s.entry.intent.companions.emplace_back();
    kine.name = "kine";
    kine.unit.name = "lk-u-kine";
    s.entry.intent.unit.argv = {"/bin/kcp", "--etcd-servers=http://127.0.0.1:{companion.kine.port}"};
    s.companions["kine"] = Absent{};
    Recorded();
  }
};

TEST(SlotPlan, CompanionsRunAndTheirPortsAreRecordedBeforeTheServerIsStarted) {
  const UnitIdentity kine{"lk-u-kine", 1, 50, 1, "boot"};
  const Plan first = WithKine().Decided();
  ASSERT_TRUE(Is<StartUnit>(first));
  EXPECT_EQ(Is<StartUnit>(first)->companion, "kine");

  WithKine listening;
  listening.s.companions["kine"] = Running(kine, {2379});
  const Plan second = listening.Decided();
  ASSERT_TRUE(Is<Record>(second));
  ASSERT_EQ(Is<Record>(second)->actual.companions.size(), 1u);
  EXPECT_EQ(Is<Record>(second)->actual.companions[0].port, 2379);

  listening.s.entry.actual = Is<Record>(second)->actual;
  const Plan third = listening.Decided();
  ASSERT_TRUE(Is<StartUnit>(third));
  EXPECT_EQ(Is<StartUnit>(third)->unit.argv[1], "--etcd-servers=http://127.0.0.1:2379");

  listening.s.companions["kine"] = Running(kine, {});
  EXPECT_TRUE(Idle(listening.Decided()));
}

TEST(SlotPlan, CompanionsAreToldToStopAfterTheServerIsGoneAndKilledAfterFiveSeconds) {
  const UnitIdentity kine{"lk-u-kine", 1, 50, 1, "boot"};
  const auto down = [&](double exited) {
    WithKine a;
    a.Known().Unwanted();
    a.s.unit = Exited(kProcess, {});
    a.s.entry.actual.exited_at = Time(Seconds(exited));
    a.s.companions["kine"] = Running(kine);
    return a.Decided();
  };
  EXPECT_TRUE(Is<SignalUnit>(down(999)));
  EXPECT_TRUE(Is<KillUnit>(down(995)));
}

TEST(SlotStatus, EachStateIsSaidAndSecretsInTheEnvironmentAreNot) {
  ServerRecord record;
  record.key = {"default", "kcp"};
  record.slots["green"] = A().Known().s.entry;
  record.slots["green"].intent.unit.env = {{"MY_TOKEN", "hunter2"}, {"HOME", "/root"}};
  const Slot running = ObjectOf(record, "green", nullptr, {}, kNow);
  EXPECT_EQ(running.metadata.name, "kcp-green");
  EXPECT_EQ(running.status.state, SlotState::kListening);
  EXPECT_EQ(ToJson(running).Dump().find("hunter2"), std::string::npos);
  record.slots["green"].ready_at = Time(Seconds(950));
  EXPECT_EQ(ObjectOf(record, "green", nullptr, {}, kNow).status.state, SlotState::kReady);
  record.slots["green"].actual.error = "bin/kcp: No such file or directory";
  record.slots["green"].actual.error_code = "NotFound";
  const Slot failed = ObjectOf(record, "green", nullptr, {"last line"}, kNow);
  EXPECT_EQ(failed.status.state, SlotState::kFailed);
  EXPECT_EQ(failed.status.last_output.size(), 1u);
}

}  // namespace
}  // namespace lockkeeper::slot
