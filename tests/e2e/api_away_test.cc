// Apiserver, manager and agent as processes of their own, and one of them is away in the middle of a roll.
#include <poll.h>

#include <csignal>
#include <cstdlib>

#include "tests/e2e/fixture.h"

namespace lockkeeper {
namespace {

#ifndef LK_STALL_SECONDS
#define LK_STALL_SECONDS 0
#endif

class ApiAwayE2e : public E2e {
 protected:
  ApiAwayE2e() : E2e(true) {}
};

TEST_F(ApiAwayE2e, WithTheApiStalledInTheMiddleOfARollTheAgentEndsItAndTellsOfItLater) {
  if (LK_STALL_SECONDS > 0 && std::getenv("LK_SAMPLE_SECONDS") != nullptr) {
    GTEST_SKIP() << "takes longer than the sample of a nightly run";
  }
  Install();
  ASSERT_EQ(MakeUpgrade("up", kNew), Status::Ok());
  ASSERT_TRUE(AwaitStep({"Start", "Listen", "Ready", "Record", "Flip", "Drain"}));
  ::kill(lab_.part_pid("apiserver"), SIGSTOP);
  // The agent alone: the new slot serves, the old one is gone, the outcome of the Roll stands in the ledger.
  std::vector<Json> history;
  EXPECT_TRUE(WaitUntil(
      [&] {
        history = History();
        for (const Json& o : history) {
          if (o.Get("kind").AsString() == "Roll" && o.Get("outcome").AsString() == "Succeeded") return true;
        }
        return false;
      },
      std::chrono::seconds(40)))
      << Json(Json::Array(history.begin(), history.end())).Dump();
  EXPECT_EQ(FindProcess({"/bin/kcp", "slots/blue"}), 0);
  EXPECT_NE(FindProcess({"/bin/kcp", "slots/green"}), 0);
  // not synchronisation: how long it is away is the input
  ::poll(nullptr, 0, LK_STALL_SECONDS * 1000);
  ::kill(lab_.part_pid("apiserver"), SIGCONT);
  ASSERT_EQ(StartManagerAgain(), Status::Ok());
  ExpectSucceeds("up");
  const Result<Server> server = Await<Server>(
      "kcp", [](const Server& s) { return s.status.version == kNew && !s.status.operation && SaysReady(s); });
  EXPECT_TRUE(server.ok()) << server.status().ToString();
}

TEST_F(ApiAwayE2e, AnApiThatIsRestartedAndAManagerThatIsKilledInTheMiddleOfARollDelayOnlyTheTelling) {
  Install();
  ASSERT_EQ(MakeUpgrade("up", kNew, [](Upgrade& u) { u.spec.gates.push_back(Gate::kBeforeFlip); }), Status::Ok());
  ASSERT_TRUE(AwaitStep({"Gates"}));
  ASSERT_TRUE(lab_.EndPart("apiserver", SIGKILL).ok());
  ASSERT_TRUE(lab_.EndPart("manager", SIGKILL).ok());
  // By the agent's own socket.
  const Result<std::string> approved = lab_.Verb({"approve", "up"});
  ASSERT_TRUE(approved.ok()) << approved.status().ToString();
  EXPECT_TRUE(WaitUntil([&] { return FindProcess({"/bin/kcp", "slots/blue"}) == 0; }));
  ASSERT_EQ(lab_.StartPart("apiserver"), Status::Ok());
  ASSERT_EQ(lab_.StartPart("manager"), Status::Ok());
  ExpectSucceeds("up");
}

}  // namespace
}  // namespace lockkeeper
