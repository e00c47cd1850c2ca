// The API server that holds lockkeeper's objects fails in the middle of a roll: the roll goes on, and what the API says
// of it is whole afterwards.
#include <csignal>

#include "api/base/file.h"
#include "tests/e2e/peers/real_fixture.h"

namespace lockkeeper {
namespace {

using peers::Part;

class RealFaultsE2e : public RealE2e {
 protected:
  // `up` has ended well and is told so; then the store goes back to the snapshot in `file`, `meanwhile` is done, and it
  // is told once more: of the same slots and processes, and nothing is done a second time. Answers it as it was.
  void RestoreAfterTheRoll(const std::string& file, const std::function<void(const Upgrade& before)>& meanwhile) {
    const Result<Upgrade> done = FinishedByKubectl("up");
    ASSERT_TRUE(done.ok()) << done.status().ToString();
    ExpectWhole(*done, kNew);
    const pid_t serving = FindProcess({"/bin/kcp", "slots/green"});
    ASSERT_NE(serving, 0);
    ExpectNothingRefused();
    ASSERT_EQ(cluster().Restore(file), Status::Ok());
    ASSERT_NO_FATAL_FAILURE(meanwhile(*done));
    const Result<Upgrade> again = FinishedByKubectl("up");
    ASSERT_TRUE(again.ok()) << again.status().ToString();
    EXPECT_EQ(again->status.outcome, Outcome::kSucceeded) << again->status.error;
    EXPECT_EQ(FindProcess({"/bin/kcp", "slots/green"}), serving);
    EXPECT_EQ(FindProcess({"/bin/kcp", "slots/blue"}), 0);
  }
  // Rolls kcp to kNew under load; `away` takes the API server away once the new slot is being started, `back` brings it
  // back when the roll has ended on the host.
  void RollWhile(const std::function<void()>& away, const std::function<void()>& back) {
    Install();
    ExpectNothingLost(UnderLoad("kcp", [&] {
      ASSERT_EQ(MakeUpgrade("up", kNew), Status::Ok());
      ASSERT_TRUE(AwaitStep("Start"));
      ExpectNothingRefused();
      away();
      EXPECT_TRUE(AwaitNoOperation()) << "the roll does not go on without the API server";
      EXPECT_NE(FindProcess({"/bin/kcp", "slots/green"}), 0);
      EXPECT_EQ(FindProcess({"/bin/kcp", "slots/blue"}), 0);
      back();
      EXPECT_EQ(StartManagerAgain(), Status::Ok());
      const Result<Upgrade> done = FinishedByKubectl("up");
      ASSERT_TRUE(done.ok()) << done.status().ToString();
      ExpectWhole(*done, kNew);
    }));
  }
};

TEST_F(RealFaultsE2e, ARollGoesOnWhileItsApiServerIsKilledAndItsStatusIsWholeAfterwards) {
  RollWhile([&] { ASSERT_EQ(cluster().Kill(Part::kApiServer), Status::Ok()); },
            [&] { ASSERT_EQ(cluster().Restart(Part::kApiServer), Status::Ok()); });
}

TEST_F(RealFaultsE2e, ARollGoesOnWhileItsApiServerIsStoppedAndItsStatusIsWholeAfterwards) {
  RollWhile([&] { cluster().Stop(Part::kApiServer); },
            [&] {
              cluster().Continue(Part::kApiServer);
              ASSERT_EQ(cluster().AwaitReady(), Status::Ok());
            });
}

// The ledger wins: an API that knows less than the host is told again, and makes nothing happen a second time.
TEST_F(RealFaultsE2e, AStoreThatIsRestoredToTheMiddleOfARollIsToldItsOutcomeAgain) {
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
  const std::string file = JoinPath(cluster().folder(), "middle.snapshot");
  ASSERT_EQ(cluster().Snapshot(file), Status::Ok());
  ASSERT_TRUE(lab_.Verb({"approve", "up"}).ok());
  RestoreAfterTheRoll(file, [&](const Upgrade& before) {
    const Result<Upgrade> restored = Get<Upgrade>(lab_.api(), {"default", "up"});
    ASSERT_TRUE(restored.ok()) << restored.status().ToString();
    EXPECT_EQ(restored->metadata.uid, before.metadata.uid);
  });
  const Result<Upgrade> again = Get<Upgrade>(lab_.api(), {"default", "up"});
  ASSERT_TRUE(again.ok()) << again.status().ToString();
  ExpectWhole(*again, kNew);
}

TEST_F(RealFaultsE2e, AStoreThatIsRestoredToBeforeARollAnswersTheSameUpgradeFromTheLedger) {
  Install();
  const std::string file = JoinPath(cluster().folder(), "before.snapshot");
  ASSERT_EQ(cluster().Snapshot(file), Status::Ok());
  ASSERT_EQ(MakeUpgrade("up", kNew), Status::Ok());
  RestoreAfterTheRoll(file, [&](const Upgrade&) {
    const Result<Server> server = Await<Server>("kcp", [](const Server& s) {
      return s.status.version == kNew && s.status.active_slot == "green" && s.status.slots.size() == 1;
    });
    ASSERT_TRUE(server.ok()) << server.status().ToString();
    // The user's pipeline applies it again.
    ASSERT_EQ(MakeUpgrade("up", kNew), Status::Ok());
  });
}

}  // namespace
}  // namespace lockkeeper
