// How soon a dead process is noticed while what is asked through the front does not answer.
#include <csignal>

#include "tests/e2e/fixture.h"

namespace lockkeeper {
namespace {

// A pass waits for no peer for longer than a tenth of a second; the rest is a sanitized process on a busy machine.
constexpr double kNoticed = 2;

class ReactionE2e : public E2e {
 protected:
  static constexpr const char* kFrontWords[] = {" front --config", "default.kcp"};

  pid_t SlotProcess(const std::string& slot) const { return FindProcess({"/bin/kcp", "slots/" + slot}); }
  pid_t FrontProcess() const { return FindProcess({kFrontWords[0], kFrontWords[1]}); }

  // Kills the process of a slot; seconds until another one of it was started.
  double SecondsToStartAgain(const std::string& slot, const char* where) {
    const pid_t before = SlotProcess(slot);
    EXPECT_NE(before, 0) << where;
    if (before == 0) return 1e9;
    const Duration begun = SystemClock().Read().boot;
    ::kill(before, SIGKILL);
    EXPECT_TRUE(WaitUntil([&] {
      const pid_t now = SlotProcess(slot);
      return now != 0 && now != before;
    })) << where;
    const double seconds = ToSeconds(SystemClock().Read().boot - begun);
    std::printf("%s: started again after %.2f s\n", where, seconds);
    return seconds;
  }
};

TEST_F(ReactionE2e, AServerThatDiesOutsideOfARollOrAtAGateIsStartedAgainAtOnce) {
  Install();
  EXPECT_LT(SecondsToStartAgain("blue", "at rest"), kNoticed);
  ASSERT_TRUE(Await<Server>("kcp", [](const Server& s) { return SaysReady(s); }).ok());
  ASSERT_EQ(MakeUpgrade("up", kNew, [](Upgrade& u) { u.spec.gates.push_back(Gate::kBeforeFlip); }), Status::Ok());
  ASSERT_TRUE(AwaitStep({"Gates"}));
  // The second repair in a row waits a second.
  EXPECT_LT(SecondsToStartAgain("blue", "at a gate"), kNoticed + 1);
  ASSERT_TRUE(lab_.Verb({"approve", "up"}).ok());
  ExpectSucceeds("up");
}

TEST_F(ReactionE2e, AServerThatDiesWhileItsLeaseOrItsProbeIsAskedForIsStartedAgainAtOnce) {
  Install();
  std::string version = kNew;
  std::string slot = "green";
  for (const char* step : {"Lease", "Probe"}) {
    const std::string name = std::string("at-") + (step[0] == 'L' ? "lease" : "probe");
    ASSERT_EQ(MakeUpgrade(name, version, [](Upgrade& u) { u.spec.allow_downgrade = true; }), Status::Ok());
    ASSERT_TRUE(AwaitStep({step}));
    EXPECT_LT(SecondsToStartAgain(slot, step), kNoticed);
    const Duration begun = SystemClock().Read().boot;
    ExpectSucceeds(name);
    std::printf("%s: the roll ended after another %.2f s\n", step, ToSeconds(SystemClock().Read().boot - begun));
    version = version == kNew ? kOld : kNew;
    slot = slot == "green" ? "blue" : "green";
  }
}

TEST_F(ReactionE2e, AServerThatDiesBehindAFrontThatHangsIsStartedAgainAtOnce) {
  Install();
  const pid_t front = FrontProcess();
  ::kill(front, SIGSTOP);
  const Duration stopped = SystemClock().Read().boot;
  EXPECT_LT(SecondsToStartAgain("blue", "at rest, the front hangs"), kNoticed);
  ::kill(front, SIGCONT);
  ASSERT_TRUE(Await<Server>("kcp", [](const Server& s) { return SaysReady(s); }).ok());
  std::printf("ready again after %.2f s\n", ToSeconds(SystemClock().Read().boot - stopped));
  ASSERT_EQ(MakeUpgrade("up", kNew), Status::Ok());
  ASSERT_TRUE(AwaitStep({"Lease", "Probe"}));
  ::kill(front, SIGSTOP);
  EXPECT_LT(SecondsToStartAgain("green", "in the lease's step, the front hangs"), kNoticed);
  ::kill(front, SIGCONT);
  ExpectSucceeds("up");
}

}  // namespace
}  // namespace lockkeeper
