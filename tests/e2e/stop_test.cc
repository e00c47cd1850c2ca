// SIGTERM ends every role within 5 s, whatever it is in the middle of; what it runs is untouched.
#include <csignal>

#include "api/base/file.h"
#include "tests/e2e/fixture.h"

namespace lockkeeper {
namespace {

constexpr double kLimit = 5;

class StopE2e : public E2e {
 protected:
  explicit StopE2e(bool split = false) : E2e(split) {}
  static void ExpectQuick(const std::function<Result<int>()>& end) {
    const Duration begun = SystemClock().Read().boot;
    const Result<int> code = end();
    ASSERT_TRUE(code.ok()) << code.status().ToString();
    EXPECT_EQ(*code, 0);
    EXPECT_LT(ToSeconds(SystemClock().Read().boot - begun), kLimit);
  }
};

class SplitStopE2e : public StopE2e {
 protected:
  SplitStopE2e() : StopE2e(true) {}
};

TEST_F(StopE2e, WithServersWhoseStepsFailOverAndOver) {
  ASSERT_EQ(lab_.Build(kOld), Status::Ok());
  ASSERT_TRUE(lab_.Up().ok());
  ASSERT_EQ(Apply("10-fronts.yaml"), Status::Ok());
  // A shared folder that is a file: every pass of the install fails.
  ASSERT_EQ(WriteFileAtomic(lab_.data() + "/in-the-way", "x"), Status::Ok());
  ASSERT_EQ(Apply("20-server-kcp.yaml",
                  [&](Json& object) {
                    if (object.Get("kind").AsString() != "Server") return;
                    object["spec"]["seed"].Set("shared", lab_.data() + "/in-the-way/shared");
                  }),
            Status::Ok());
  ASSERT_TRUE(
      Await<Server>("kcp", [](const Server& s) { return !SaysReady(s) && s.status.observed_generation > 0; }).ok());
  ExpectQuick([&] { return lab_.Down(SIGTERM); });
}

TEST_F(StopE2e, InTheMiddleOfARollWhoseNewSlotAndFrontAreStopped) {
  Install();
  ASSERT_EQ(MakeUpgrade("up", kNew), Status::Ok());
  pid_t green = 0;
  ASSERT_TRUE(WaitUntil([&] { return (green = FindProcess({"/bin/kcp", "slots/green"})) != 0; }));
  const pid_t front = FindProcess({" front --config", "default.kcp"});
  ::kill(green, SIGSTOP);
  ::kill(front, SIGSTOP);
  // Passes over both are under way, and calls to the front hang.
  ASSERT_TRUE(WaitUntil([&] { return lab_.UpLog().find("slot green is started") != std::string::npos; }));
  ExpectQuick([&] { return lab_.Down(SIGTERM); });
  ::kill(front, SIGCONT);
  ::kill(green, SIGCONT);
  ASSERT_TRUE(lab_.Up().ok());
  ExpectSucceeds("up");
}

TEST_F(SplitStopE2e, WithAnApiThatDoesNotAnswer) {
  Install();
  const pid_t serving = FindProcess({"/bin/kcp", "slots/blue"});
  ::kill(lab_.part_pid("apiserver"), SIGSTOP);
  // Calls of both hang now: the agent's heartbeat, and what the manager writes.
  ::kill(serving, SIGKILL);
  ASSERT_TRUE(WaitUntil([&] {
    const pid_t now = FindProcess({"/bin/kcp", "slots/blue"});
    return now != 0 && now != serving;
  })) << "the agent keeps the server running without the API";
  ExpectQuick([&] { return lab_.EndPart("agent", SIGTERM); });
  ExpectQuick([&] { return lab_.EndPart("manager", SIGTERM); });
  ::kill(lab_.part_pid("apiserver"), SIGCONT);
  ExpectQuick([&] { return lab_.EndPart("apiserver", SIGTERM); });
}

}  // namespace
}  // namespace lockkeeper
