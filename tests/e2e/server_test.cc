// What is done to the object of a Server: another version, a restart, deleting it and applying it again.
#include <algorithm>
#include <csignal>
#include <sstream>

#include "tests/e2e/fixture.h"

namespace lockkeeper {
namespace {

class ServerE2e : public E2e {};

Json SpecOf(const char* field, Json value) {
  return Json::MakeObject({{"spec", Json::MakeObject({{field, std::move(value)}})}});
}

TEST_F(ServerE2e, ADeclaredVersionThatGoesThereAndBackTwiceIsFourOperations) {
  Install(false, [](Json& object) {
    if (object.Get("kind").AsString() != "Server") return;
    object["spec"].Set("version", kOld);
    object["spec"].Set("allowDowngrade", true);
  });
  for (const char* version : {kNew, kOld, kNew, kOld}) {
    SCOPED_TRACE(version);
    ASSERT_EQ(Patch<Server>("kcp", SpecOf("version", version)), Status::Ok());
    const Result<Server> there = Await<Server>(
        "kcp", [&](const Server& s) { return s.status.version == version && !s.status.operation && SaysReady(s); }, 90);
    ASSERT_TRUE(there.ok()) << there.status().ToString();
  }
  int upgrades = 0;
  for (const Json& o : History()) upgrades += o.Get("kind").AsString() == "Upgrade";
  EXPECT_EQ(upgrades, 4);
}

TEST_F(ServerE2e, RestartedAtRollsOnceToAFreshProcessOfTheSameBuild) {
  Install();
  const Result<Server> installed =
      Await<Server>("kcp", [](const Server& s) { return s.status.last_restarted_at.has_value(); });
  ASSERT_TRUE(installed.ok()) << installed.status().ToString();
  // As `kubectl rollout restart` would: now, which is later than the install.
  const Time now = *installed->status.last_restarted_at + Seconds(1);
  ASSERT_EQ(Patch<Server>("kcp", SpecOf("restartedAt", FormatTime(now))), Status::Ok());
  const Result<Server> restarted = Await<Server>(
      "kcp", [](const Server& s) { return s.status.active_slot == "green" && !s.status.operation && SaysReady(s); });
  ASSERT_TRUE(restarted.ok()) << restarted.status().ToString();
  EXPECT_EQ(restarted->status.version, kOld);
  EXPECT_EQ(FindProcess({"/bin/kcp", "slots/blue"}), 0);
  int restarts = 0;
  for (const Json& o : History()) restarts += o.Get("kind").AsString() == "Upgrade";
  EXPECT_EQ(restarts, 1);
}

TEST_F(ServerE2e, ADeletedServerRunsOnAndOneThatIsAppliedAgainTakesItUpAndStopEndsIt) {
  Install();
  const pid_t serving = FindProcess({"/bin/kcp", "slots/blue"});
  ASSERT_EQ(Delete<Server>(lab_.api(), {"default", "kcp"}), Status::Ok());
  ASSERT_TRUE(WaitUntil([&] { return Get<Server>(lab_.api(), {"default", "kcp"}).code() == Code::kNotFound; }));
  EXPECT_EQ(FindProcess({"/bin/kcp", "slots/blue"}), serving) << "a pruned object takes no server down";
  for (const std::vector<std::string>& verb : {std::vector<std::string>{"status"}, {"status", "kcp"}}) {
    const std::string status = lab_.Verb(verb).value_or("");
    EXPECT_NE(status.find("default/kcp: slot blue v0.32.3, pid " + std::to_string(serving)), std::string::npos)
        << status;
    EXPECT_NE(status.find("then lockkeeper stop kcp"), std::string::npos) << status;
  }
  EXPECT_NE(lab_.Verb({"history", "kcp"}).value_or("").find("Install"), std::string::npos);
  ASSERT_EQ(Apply("20-server-kcp.yaml"), Status::Ok());
  const Result<Server> again = Await<Server>("kcp", [](const Server& s) { return SaysReady(s); });
  ASSERT_TRUE(again.ok()) << again.status().ToString();
  EXPECT_EQ(FindProcess({"/bin/kcp", "slots/blue"}), serving);
  ASSERT_EQ(Patch<Server>("kcp", SpecOf("deletionPolicy", "Stop")), Status::Ok());
  ASSERT_EQ(Delete<Server>(lab_.api(), {"default", "kcp"}), Status::Ok());
  EXPECT_TRUE(WaitUntil([&] { return Get<Server>(lab_.api(), {"default", "kcp"}).code() == Code::kNotFound; }));
  EXPECT_EQ(FindProcess({"/bin/kcp", "slots/"}), 0);
  EXPECT_NE(FindProcess({" front --config", "default.kcp"}), 0) << "the Front is another object";
}

// Lines of the log from `from` on that say error or warning.
std::string Troubles(const std::string& log, size_t from) {
  std::string out;
  std::istringstream lines(log.substr(std::min(from, log.size())));
  for (std::string line; std::getline(lines, line);) {
    if (line.find("Z error ") != std::string::npos || line.find("Z warning ") != std::string::npos) out += line + "\n";
  }
  return out;
}

TEST_F(ServerE2e, AnInstallAndAStartWithServersLogNoErrorAndNoWarning) {
  Install(/*single=*/true);
  EXPECT_EQ(Troubles(lab_.UpLog(), 0), "");
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(lab_.Down(SIGTERM).value_or(-1), 0);
    const size_t before = lab_.UpLog().size();
    ASSERT_TRUE(lab_.Up().ok());
    // The mirror has done its work once more when what it watches is as it was.
    ASSERT_EQ(Patch<Server>("kcp", SpecOf("soakSeconds", i + 1)), Status::Ok());
    const Result<Server> seen = Await<Server>(
        "kcp", [](const Server& s) { return s.status.observed_generation == s.metadata.generation && SaysReady(s); });
    ASSERT_TRUE(seen.ok()) << seen.status().ToString();
    EXPECT_EQ(Troubles(lab_.UpLog(), before), "");
  }
}

}  // namespace
}  // namespace lockkeeper
