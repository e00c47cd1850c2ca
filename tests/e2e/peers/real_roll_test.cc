// Rolls whose objects are in a real kube-apiserver, with kubectl as a user has it.
#include <algorithm>

#include "tests/e2e/peers/real_fixture.h"

namespace lockkeeper {
namespace {

class RealRollE2e : public RealE2e {
 protected:
  void TearDown() override {
    ExpectNothingRefused();
    RealE2e::TearDown();
  }
  std::string Shown(std::vector<std::string> args) {
    const peers::Ran ran = cluster().Kubectl(std::move(args));
    EXPECT_EQ(ran.exit, 0) << ran.All();
    return ran.out;
  }
};

TEST_F(RealRollE2e, AnUpgradeUnderLoadLosesNothingAndKubectlTellsItsStory) {
  Install();
  const load::LoadResult load = UnderLoad("kcp", [&] {
    ASSERT_EQ(MakeUpgrade("up", kNew), Status::Ok());
    const Result<Upgrade> done = FinishedByKubectl("up");
    ASSERT_TRUE(done.ok()) << done.status().ToString();
    ExpectWhole(*done, kNew);
  });
  ExpectNothingLost(load);
  EXPECT_GT(load.counts.watch_reconnects, 0) << "the watches' server was stopped";

  const std::string objects = Shown({"get", "srv,upg,roll,slot,front"});
  for (const char* word : {"server.lockkeeper.dev/kcp", "upgrade.lockkeeper.dev/up", "roll.lockkeeper.dev/",
                           "slot.lockkeeper.dev/kcp-green", "front.lockkeeper.dev/kcp", "Succeeded", kNew}) {
    EXPECT_NE(objects.find(word), std::string::npos) << word << " is missing in\n" << objects;
  }
  // Events are written behind the rest.
  std::string story;
  EXPECT_TRUE(WaitUntil([&] {
    story = Shown({"describe", "upg", "up"});
    return story.find("Succeeded", story.find("\nEvents:")) != std::string::npos;
  })) << story;
  std::printf("%s\n%s", objects.c_str(), story.substr(story.find("\nEvents:")).c_str());
}

TEST_F(RealRollE2e, ABuildThatNeverBecomesReadyIsUndoneAndNobodyNotices) {
  Install();
  ASSERT_EQ(lab_.Build("v0.34.0", "never-ready"), Status::Ok());
  const pid_t serving = FindProcess({"/bin/kcp", "slots/blue"});
  const load::LoadResult load = UnderLoad("kcp", [&] {
    ASSERT_EQ(MakeUpgrade("up", "v0.34.0", [](Upgrade& u) { u.spec.ready_timeout_seconds = 3; }), Status::Ok());
    const Result<Upgrade> done = FinishedByKubectl("up");
    ASSERT_TRUE(done.ok()) << done.status().ToString();
    EXPECT_EQ(done->status.outcome, Outcome::kRolledBack);
    EXPECT_NE(done->status.error.find("not ready"), std::string::npos) << done->status.error;
  });
  ExpectNothingLost(load);
  EXPECT_EQ(load.counts.watch_reconnects, 0);
  EXPECT_EQ(FindProcess({"/bin/kcp", "slots/blue"}), serving);
  EXPECT_EQ(FindProcess({"/bin/kcp", "slots/green"}), 0);
}

TEST_F(RealRollE2e, AGateWaitsForKubectlToApproveOrToAbort) {
  Install();
  const pid_t serving = FindProcess({"/bin/kcp", "slots/blue"});
  const auto gated = [](Upgrade& u) { u.spec.gates.push_back(Gate::kBeforeFlip); };
  const auto waits = [&](const std::string& name) {
    const Result<Upgrade> up = Await<Upgrade>(name, [](const Upgrade& u) {
      return std::any_of(u.status.conditions.begin(), u.status.conditions.end(),
                         [](const Condition& c) { return c.reason == "WaitingForApproval"; });
    });
    ASSERT_TRUE(up.ok()) << up.status().ToString();
    EXPECT_NE(FindProcess({"/bin/kcp", "slots/green"}), 0) << "the new slot is ready beside the old one";
  };
  const auto patch = [&](const std::string& name, const std::string& controls) {
    (void)Shown({"patch", "upg", name, "--type=merge", "-p", R"({"spec":)" + controls + "}"});
  };
  ASSERT_EQ(MakeUpgrade("not-this-one", kNew, gated), Status::Ok());
  ASSERT_NO_FATAL_FAILURE(waits("not-this-one"));
  patch("not-this-one", R"({"abort":true})");
  const Result<Upgrade> aborted = FinishedByKubectl("not-this-one");
  ASSERT_TRUE(aborted.ok()) << aborted.status().ToString();
  EXPECT_EQ(aborted->status.outcome, Outcome::kAborted) << aborted->status.error;
  EXPECT_EQ(FindProcess({"/bin/kcp", "slots/blue"}), serving);
  EXPECT_EQ(FindProcess({"/bin/kcp", "slots/green"}), 0);
  const std::string undone =
      cluster().Kubectl({"patch", "upg", "not-this-one", "--type=merge", "-p", R"({"spec":{"abort":false}})"}).All();
  EXPECT_NE(undone.find("abort"), std::string::npos) << "an abort is not taken back: " << undone;

  ASSERT_EQ(MakeUpgrade("up", kNew, gated), Status::Ok());
  ASSERT_NO_FATAL_FAILURE(waits("up"));
  patch("up", R"({"approve":["BeforeFlip"]})");
  const Result<Upgrade> done = FinishedByKubectl("up");
  ASSERT_TRUE(done.ok()) << done.status().ToString();
  ExpectWhole(*done, kNew);
}

TEST_F(RealRollE2e, APlannedOutageRefusesNobody) {
  Install(true);
  ExpectNothingLost(UnderLoad("single", [&] {
    ASSERT_EQ(MakeUpgrade("up", kNew, [](Upgrade& u) { u.spec.server_ref.name = "single"; }), Status::Ok());
    const Result<Upgrade> done = FinishedByKubectl("up");
    ASSERT_TRUE(done.ok()) << done.status().ToString();
    ExpectWhole(*done, kNew);
    const Result<Roll> roll = RollOf(*done);
    ASSERT_TRUE(roll.ok());
    EXPECT_GT(roll->status.report.outage_seconds.value_or(0), 0);
  }));
}

}  // namespace
}  // namespace lockkeeper
