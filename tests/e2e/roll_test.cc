// A roll of a live server, as its users meet it.
#include "tests/e2e/fixture.h"

namespace lockkeeper {
namespace {

class RollE2e : public E2e {};

TEST_F(RollE2e, AnUpgradeUnderLoadLosesNoRequestNoWriteAndNoEventAndHandsTheLeaseOver) {
  Install();
  const load::LoadResult load = UnderLoad("kcp", [&] {
    ASSERT_EQ(MakeUpgrade("up", kNew), Status::Ok());
    const Result<Upgrade> done = AwaitFinished("up");
    ASSERT_TRUE(done.ok()) << done.status().ToString();
    ASSERT_EQ(done->status.outcome, Outcome::kSucceeded) << done->status.error;
    const Result<Roll> roll = RollOf(*done);
    ASSERT_TRUE(roll.ok());
    EXPECT_NE(roll->status.report.old_holder, roll->status.report.new_holder);
    EXPECT_FALSE(roll->status.report.new_holder.empty());
    EXPECT_TRUE(roll->status.report.probe_ready_at.has_value());
  });
  ExpectNothingLost(load);
  EXPECT_EQ(Overlaps("kcp"), std::vector<std::string>{});
}

TEST_F(RollE2e, WithGoawayTheSameHolds) {
  Install(false, [](Json& object) {
    if (object.Get("kind").AsString() != "Server") return;
    object["spec"]["template"]["command"].Push("--goaway-chance=0.02");
  });
  ExpectNothingLost(UnderLoad("kcp", [&] {
    ASSERT_EQ(MakeUpgrade("up", kNew), Status::Ok());
    const Result<Upgrade> done = AwaitFinished("up");
    ASSERT_TRUE(done.ok()) << done.status().ToString();
    EXPECT_EQ(done->status.outcome, Outcome::kSucceeded) << done->status.error;
  }));
}

TEST_F(RollE2e, ABuildThatNeverBecomesReadyIsUndoneAndNobodyNotices) {
  Install();
  ASSERT_EQ(lab_.Build("v0.34.0", "never-ready"), Status::Ok());
  const load::LoadResult load = UnderLoad("kcp", [&] {
    ASSERT_EQ(MakeUpgrade("up", "v0.34.0", [](Upgrade& u) { u.spec.ready_timeout_seconds = 3; }), Status::Ok());
    const Result<Upgrade> done = AwaitFinished("up");
    ASSERT_TRUE(done.ok()) << done.status().ToString();
    EXPECT_EQ(done->status.outcome, Outcome::kRolledBack);
    EXPECT_NE(done->status.error.find("not ready"), std::string::npos) << done->status.error;
  });
  ExpectNothingLost(load);
  EXPECT_EQ(load.counts.watch_reconnects, 0);
  const Result<Server> server = Get<Server>(lab_.api(), {"default", "kcp"});
  ASSERT_TRUE(server.ok());
  EXPECT_EQ(server->status.version, kOld);
  ASSERT_FALSE(server->status.rejected.empty());
  EXPECT_EQ(server->status.rejected[0].version, "v0.34.0");
}

TEST_F(RollE2e, APlannedOutageRefusesNobody) {
  Install(true);
  ExpectNothingLost(UnderLoad("single", [&] {
    ASSERT_EQ(MakeUpgrade("up", kNew, [](Upgrade& u) { u.spec.server_ref.name = "single"; }), Status::Ok());
    const Result<Upgrade> done = AwaitFinished("up");
    ASSERT_TRUE(done.ok()) << done.status().ToString();
    ASSERT_EQ(done->status.outcome, Outcome::kSucceeded) << done->status.error;
    const Result<Roll> roll = RollOf(*done);
    ASSERT_TRUE(roll.ok());
    EXPECT_GT(roll->status.report.outage_seconds.value_or(0), 0);
  }));
}

TEST_F(RollE2e, ARollWaitsAtItsGateUntilApprovedAndAnAbortThereUndoesIt) {
  Install();
  const auto gated = [](Upgrade& u) { u.spec.gates.push_back(Gate::kBeforeFlip); };
  ASSERT_EQ(MakeUpgrade("first", kNew, gated), Status::Ok());
  const auto at_gate = [](const Roll& r) {
    for (const RollStep& step : r.status.steps) {
      if (step.state == StepState::kWaiting) return true;
    }
    return false;
  };
  const Result<Upgrade> first = Await<Upgrade>("first", [](const Upgrade& u) { return u.status.roll_ref.has_value(); });
  ASSERT_TRUE(first.ok()) << first.status().ToString();
  const Result<Roll> waiting = Await<Roll>(first->status.roll_ref->name, at_gate);
  ASSERT_TRUE(waiting.ok()) << waiting.status().ToString();
  const Result<std::string> aborted = lab_.Verb({"abort", "first"});
  ASSERT_TRUE(aborted.ok()) << aborted.status().ToString();
  const Result<Upgrade> undone = AwaitFinished("first");
  ASSERT_TRUE(undone.ok()) << undone.status().ToString();
  EXPECT_EQ(undone->status.outcome, Outcome::kAborted);

  ASSERT_EQ(MakeUpgrade("second", kNew, gated), Status::Ok());
  const Result<Upgrade> second =
      Await<Upgrade>("second", [](const Upgrade& u) { return u.status.roll_ref.has_value(); });
  ASSERT_TRUE(second.ok()) << second.status().ToString();
  ASSERT_TRUE(Await<Roll>(second->status.roll_ref->name, at_gate).ok());
  const Result<std::string> approved = lab_.Verb({"approve", "second"});
  ASSERT_TRUE(approved.ok()) << approved.status().ToString();
  const Result<Upgrade> done = AwaitFinished("second");
  ASSERT_TRUE(done.ok()) << done.status().ToString();
  EXPECT_EQ(done->status.outcome, Outcome::kSucceeded) << done->status.error;
}

TEST_F(RollE2e, TheActiveSlotDyingAtAGateIsStartedAgainAndTheRollGoesOn) {
  Install();
  ASSERT_EQ(MakeUpgrade("up", kNew, [](Upgrade& u) { u.spec.gates.push_back(Gate::kBeforeFlip); }), Status::Ok());
  const Result<Upgrade> up = Await<Upgrade>("up", [](const Upgrade& u) { return u.status.roll_ref.has_value(); });
  ASSERT_TRUE(up.ok()) << up.status().ToString();
  ASSERT_TRUE(Await<Roll>(up->status.roll_ref->name, [](const Roll& r) {
                for (const RollStep& step : r.status.steps) {
                  if (step.state == StepState::kWaiting) return true;
                }
                return false;
              }).ok());
  const pid_t active = FindProcess({"/bin/kcp", "slots/blue"});
  ASSERT_NE(active, 0);
  ::kill(active, SIGKILL);
  const Result<Server> back = Await<Server>("kcp", [&](const Server& s) {
    for (const auto& slot : s.status.slots) {
      if (slot.name == "blue" && slot.pid && *slot.pid != active && slot.ready_at) return true;
    }
    return s.status.active_slot == "green";
  });
  ASSERT_TRUE(back.ok()) << back.status().ToString();
  ASSERT_TRUE(lab_.Verb({"approve", "up"}).ok());
  const Result<Upgrade> done = AwaitFinished("up");
  ASSERT_TRUE(done.ok()) << done.status().ToString();
  EXPECT_EQ(done->status.outcome, Outcome::kSucceeded) << done->status.error;
}

TEST_F(RollE2e, ApplyingAFinishedUpgradeAgainUnderTheSameNameTouchesNothing) {  // C3
  Install();
  ASSERT_EQ(MakeUpgrade("up", kNew), Status::Ok());
  ASSERT_TRUE(AwaitFinished("up").ok());
  const pid_t serving = FindProcess({"/bin/kcp", "slots/green"});
  ASSERT_NE(serving, 0);
  ASSERT_EQ(Delete<Upgrade>(lab_.api(), {"default", "up"}), Status::Ok());
  ASSERT_TRUE(WaitUntil([&] { return !Get<Upgrade>(lab_.api(), {"default", "up"}).ok(); }));
  ASSERT_EQ(MakeUpgrade("up", kNew), Status::Ok());
  const Result<Upgrade> again = AwaitFinished("up");
  ASSERT_TRUE(again.ok()) << again.status().ToString();
  EXPECT_EQ(again->status.outcome, Outcome::kSucceeded);
  EXPECT_FALSE(again->status.roll_ref.has_value());
  EXPECT_EQ(FindProcess({"/bin/kcp", "slots/green"}), serving);
}

}  // namespace
}  // namespace lockkeeper
