// The verbs that a person types, against a whole lockkeeper.
#include <csignal>

#include "api/base/file.h"
#include "tests/e2e/fixture.h"

namespace lockkeeper {
namespace {

class CliE2e : public E2e {
 protected:
  std::string Said(const std::vector<std::string>& args) {
    const Result<std::string> out = lab_.Verb(args);
    EXPECT_TRUE(out.ok()) << out.status().ToString();
    return out.value_or("");
  }
};

TEST_F(CliE2e, TheStoryOfAServerFromInstallToStop) {
  Install();
  const std::string status = Said({"status"});
  EXPECT_NE(status.find("default/kcp"), std::string::npos) << status;
  EXPECT_NE(status.find("Ready"), std::string::npos) << status;
  EXPECT_NE(Said({"status", "kcp"}).find("blue*"), std::string::npos);

  const std::string upgrade = Said({"upgrade", "kcp", "--version", kNew, "--name", "by-hand", "--wait"});
  EXPECT_NE(upgrade.find("Flip"), std::string::npos) << upgrade;
  EXPECT_NE(upgrade.find("Upgrade by-hand: Succeeded"), std::string::npos) << upgrade;
  EXPECT_NE(Said({"history", "kcp"}).find("by-hand"), std::string::npos);

  const std::string plan = Said({"upgrade", "kcp", "--version", kOld, "--allow-downgrade", "--plan", "--name", "look"});
  EXPECT_NE(plan.find("look: Succeeded"), std::string::npos) << plan;
  EXPECT_EQ(Get<Server>(lab_.api(), {"default", "kcp"})->status.version, kNew) << "a preflight touches nothing";

  // A version that was only looked at is not the one before.
  ASSERT_EQ(lab_.Build("v0.34.0"), Status::Ok());
  EXPECT_NE(Said({"upgrade", "kcp", "--version", "v0.34.0", "--plan"}).find("1. Seed"), std::string::npos);
  EXPECT_NE(Said({"history", "kcp"}).find("Upgrade (plan)"), std::string::npos);
  EXPECT_NE(Said({"rollback", "kcp", "--wait"}).find("Succeeded"), std::string::npos);
  EXPECT_EQ(Get<Server>(lab_.api(), {"default", "kcp"})->status.version, kOld);
  EXPECT_NE(Said({"restart", "kcp", "--name", "again", "--wait"}).find("again: Succeeded"), std::string::npos);

  EXPECT_NE(Said({"help"}).find("Subcommands:"), std::string::npos);
  EXPECT_FALSE(Said({"logs", "kcp"}).empty());
  EXPECT_FALSE(Said({"logs", "kcp", "--slot", "blue"}).empty()) << "the slot is retired, its logs stay";
  // Named as kubectl names it, and refused by a sentence where it is not there.
  EXPECT_NE(Said({"status", "srv/kcp"}).find("active slot"), std::string::npos);
  const std::string newest = Said({"history", "--limit", "1"});
  EXPECT_NE(newest.find("again"), std::string::npos) << newest;
  const std::pair<std::vector<std::string>, const char*> refused[] = {
      {{"status", "none"}, "no Server named \"none\""},
      {{"history", "none"}, "no Server named \"none\""},
      {{"restart", "none"}, "no Server named \"none\""},
      {{"abort", "none"}, "no Upgrade or Roll named \"none\""},
      {{"retry", "roll/none"}, "no Roll named \"none\""},
      {{"approve", "pod/x"}, "names no operation"},
      {{"history", "--limit", "-1"}, "not in range"},
      {{"upgrade", "kcp", "--version", "v1", "--ready-timeout", "-1"}, "not in range"},
      {{"frobnicate"}, "there is no verb \"frobnicate\""},
      {{"-n", "x"}, "say what to do"},
      {{"logs", "kcp", "--slot", "red"}, "lockkeeper: Server default/kcp has no slot \"red\""},
  };
  for (const auto& [args, text] : refused) {
    const Result<std::string> said = lab_.Verb(args);
    ASSERT_FALSE(said.ok()) << args[0];
    EXPECT_NE(said.status().message().find(text), std::string::npos) << said.status().message();
  }
  // What the Server declares would be rolled out again at once.
  Result<Server> declared = Get<Server>(lab_.api(), {"default", "kcp"});
  ASSERT_TRUE(declared.ok());
  declared->spec.version = kOld;
  ASSERT_TRUE(Update<Server>(lab_.api(), *declared).ok());
  const Result<std::string> back = lab_.Verb({"rollback", "kcp"});
  ASSERT_FALSE(back.ok());
  EXPECT_NE(back.status().message().find("declares version"), std::string::npos) << back.status().message();

  const Result<std::string> nothing = lab_.Verb({"approve", "again"});
  ASSERT_FALSE(nothing.ok());
  EXPECT_NE(nothing.status().message().find("has finished"), std::string::npos) << nothing.status().message();

  EXPECT_NE(Said({"--version"}).find("lockkeeper v"), std::string::npos);
  EXPECT_NE(Said({"help"}).find("To begin: lockkeeper up"), std::string::npos);

  const std::string stopping = Said({"stop", "kcp"});
  EXPECT_NE(stopping.find("Its front kcp holds each new connection"), std::string::npos) << stopping;
  WaitUntil([&] { return FindProcess({"/bin/kcp", "start"}) == 0; }, std::chrono::seconds(30));
  EXPECT_EQ(FindProcess({"/bin/kcp", "start"}), 0);
  // What clients meet now is told where one looks.
  EXPECT_TRUE(Await<Front>("kcp", [](const Front& f) {
                const Condition* ready = FindOf(f, "Ready");
                return ready != nullptr && ready->reason == "ServerStopped" && ready->status == ConditionStatus::kFalse;
              }).ok());
  const std::string stopped = Said({"status"});
  EXPECT_NE(stopped.find("the front default/kcp holds new connections"), std::string::npos) << stopped;
  EXPECT_NE(Said({"restart", "kcp", "--name", "later"}).find("it begins after `lockkeeper start kcp`"),
            std::string::npos);
  Said({"start", "kcp"});
  EXPECT_TRUE(Await<Server>("kcp", [](const Server& s) {
                for (const Condition& c : s.status.conditions) {
                  if (c.type == "Available") return c.status == ConditionStatus::kTrue;
                }
                return false;
              }).ok());
}

TEST_F(CliE2e, WithTheApiAwayStatusHistoryAndControlsGoToTheAgentsSocket) {
  // API server, manager and agent as processes of their own.
  for (const char* version : {kOld, kNew}) ASSERT_EQ(lab_.Build(version), Status::Ok());
  ASSERT_TRUE(lab_.Up().ok());
  ASSERT_EQ(Apply("10-fronts.yaml"), Status::Ok());
  ASSERT_EQ(Apply("20-server-kcp.yaml"), Status::Ok());
  ASSERT_TRUE(
      Await<Server>("kcp", [](const Server& s) { return s.status.version == kOld && !s.status.operation; }).ok());
  // A kubeconfig that leads nowhere is an API that is away.
  SubprocessOptions status = lab_.VerbOptions({"status"});
  const std::string nowhere = lab_.data() + "/nowhere.kubeconfig";
  Result<std::string> kubeconfig = ReadFile(lab_.kubeconfig());
  ASSERT_TRUE(kubeconfig.ok());
  const size_t port = kubeconfig->rfind("https://127.0.0.1:");
  ASSERT_NE(port, std::string::npos);
  kubeconfig->replace(port, kubeconfig->find_first_of("\"\n ", port) - port,
                      "https://127.0.0.1:" + std::to_string(Lab::FreePort()));
  ASSERT_EQ(WriteFileAtomic(nowhere, *kubeconfig, 0600), Status::Ok());
  status.env["KUBECONFIG"] = nowhere;
  const Result<std::string> said = RunProcess(status);
  ASSERT_TRUE(said.ok()) << said.status().ToString();
  EXPECT_NE(said->find("The API does not answer"), std::string::npos) << *said;
  EXPECT_NE(said->find("blue*"), std::string::npos) << *said;
}

TEST_F(CliE2e, CtrlCSaysWhatRunsOnAndHowToStopIt) {
  Install();
  ASSERT_EQ(lab_.Down(SIGINT).value_or(-1), 0);
  const std::string log = lab_.UpLog();
  EXPECT_NE(log.find("These run on"), std::string::npos) << log;
  EXPECT_NE(log.find("lk-default-kcp-blue-1"), std::string::npos) << log;
  EXPECT_NE(log.find("lockkeeper stop"), std::string::npos) << log;
}

TEST_F(CliE2e, ASecondUpOnTheSameFolderIsRefusedByName) {
  Install();
  const Result<std::string> kubeconfig = ReadFile(lab_.data() + "/admin.kubeconfig");
  ASSERT_TRUE(kubeconfig.ok()) << kubeconfig.status().ToString();
  const SubprocessOptions second = lab_.VerbOptions({"up", "--listen", "127.0.0.1:0"});
  const Result<std::string> out = RunProcess(second, std::chrono::seconds(20));
  ASSERT_FALSE(out.ok());
  EXPECT_NE(out.status().message().find(std::to_string(lab_.up_pid())), std::string::npos) << out.status().message();
  EXPECT_EQ(*ReadFile(lab_.data() + "/admin.kubeconfig"), *kubeconfig) << "the first one's still leads to it";
}

}  // namespace
}  // namespace lockkeeper
