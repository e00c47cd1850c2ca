// What is wrong with the host or with the way to the API: a full disk, damaged or older files, another agent, a
// kubeconfig that does not fit. Agents run as processes of their own, beside `up`.
#include <csignal>

#include "api/base/file.h"
#include "reconcilers/cli/agent_client.h"
#include "reconcilers/cli/session.h"
#include "tests/e2e/fixture.h"

namespace lockkeeper {
namespace {

class BadHostE2e : public E2e {
 protected:
  // An agent of its own data folder below the lab's.
  Result<Subprocess> StartAgent(const std::string& folder, const std::string& host, const std::string& kubeconfig) {
    SubprocessOptions agent;
    agent.argv = {lab_.program(), "agent", "--host", host, "--data", folder, "--kubeconfig", kubeconfig};
    agent.output_file = LogOf(folder);
    return Subprocess::Start(agent);
  }
  static std::string LogOf(const std::string& folder) { return folder + ".agent.log"; }
  static bool LogSays(const std::string& folder, const std::string& word) {
    return WaitUntil([&] { return ReadFile(LogOf(folder)).value_or("").find(word) != std::string::npos; });
  }
  // What the agent's socket calls its trouble, "" for none or while nobody answers.
  static std::string TroubleOf(const std::string& folder) {
    const Result<Json> status = cli::AgentClient(cli::AgentSocketIn(folder)).Get("/v1/status");
    return status.ok() ? status->Get("trouble").AsString() : "";
  }
  Status CopyLedger(const std::string& from, const std::string& to) {
    for (const char* file : {"ledger.db", "ledger.db-wal", "ledger.db-shm"}) {
      LK_RETURN_IF_ERROR(RemoveFile(to + "/" + file));
      const Result<std::string> content = ReadFile(from + "/" + file);
      if (content.code() == Code::kNotFound) continue;
      LK_RETURN_IF_ERROR(content.status());
      LK_RETURN_IF_ERROR(WriteFileAtomic(to + "/" + file, *content, 0600));
    }
    return Status::Ok();
  }
};

TEST_F(BadHostE2e, ALedgerOlderThanTheHostStartsAndStopsNothingUntilTheNewerOneIsBack) {
  Install();
  ASSERT_TRUE(lab_.Down(SIGTERM).ok());
  const std::string old = lab_.data() + "/old", newer = lab_.data() + "/newer";
  ASSERT_EQ(MakeDirs(old), Status::Ok());
  ASSERT_EQ(MakeDirs(newer), Status::Ok());
  ASSERT_EQ(CopyLedger(lab_.data(), old), Status::Ok());
  ASSERT_TRUE(lab_.Up().ok());
  ASSERT_EQ(MakeUpgrade("up", kNew), Status::Ok());
  ASSERT_TRUE(AwaitFinished("up").ok());
  const pid_t serving = FindProcess({"/bin/kcp", "slots/green"});
  ASSERT_NE(serving, 0);
  ASSERT_TRUE(lab_.Down(SIGTERM).ok());
  ASSERT_EQ(CopyLedger(lab_.data(), newer), Status::Ok());
  ASSERT_EQ(CopyLedger(old, lab_.data()), Status::Ok());
  ASSERT_TRUE(lab_.Up().ok());
  const Result<Server> stalled = Await<Server>("kcp", [](const Server& s) {
    const Condition* c = FindOf(s, "Stalled");
    return c != nullptr && c->reason == "LedgerOlderThanHost";
  });
  ASSERT_TRUE(stalled.ok()) << stalled.status().ToString();
  EXPECT_EQ(FindProcess({"/bin/kcp", "slots/green"}), serving);
  EXPECT_EQ(FindProcess({"/bin/kcp", "slots/blue"}), 0) << "what the old ledger knows was not started";
  ASSERT_TRUE(lab_.Down(SIGTERM).ok());
  ASSERT_EQ(CopyLedger(newer, lab_.data()), Status::Ok());
  ASSERT_TRUE(lab_.Up().ok());
  const Result<Server> ready = Await<Server>("kcp", [](const Server& s) { return SaysReady(s); });
  ASSERT_TRUE(ready.ok()) << ready.status().ToString();
  EXPECT_EQ(FindProcess({"/bin/kcp", "slots/green"}), serving);
}

TEST_F(BadHostE2e, ADamagedPageOfLedgerOrStoreIsNamedWithTheWayOutAndTheCopyPutBackGoesOn) {
  Install();
  const pid_t serving = FindProcess({"/bin/kcp", "slots/blue"});
  // Work for the manager, which runs already when the ledger is found damaged.
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(MakeUpgrade("waits-" + std::to_string(i), kNew, [](Upgrade& u) { u.spec.server_ref.name = "nobody"; }),
              Status::Ok());
  }
  for (const std::string& file : {lab_.data() + "/ledger.db", lab_.data() + "/api/store.db"}) {
    SCOPED_TRACE(file);
    ASSERT_TRUE(lab_.Down(SIGTERM).ok());
    const Result<std::string> good = ReadFile(file);
    ASSERT_TRUE(good.ok()) << good.status().ToString();
    std::string bad = *good;
    ASSERT_GT(bad.size(), 8192u);
    // The header stands; every other page is noise.
    for (size_t i = 4096; i < bad.size(); ++i) bad[i] = static_cast<char>(i * 37);
    ASSERT_EQ(WriteFileAtomic(file, bad, 0600), Status::Ok());
    const Result<double> up = lab_.Up();
    ASSERT_FALSE(up.ok());
    const std::string says = up.status().message();
    EXPECT_NE(says.find(file), std::string::npos) << says;
    EXPECT_NE(says.find("ended with 1"), std::string::npos) << says;
    EXPECT_NE(says.find("copy"), std::string::npos) << "the way out: " << says;
    EXPECT_EQ(FindProcess({"/bin/kcp", "slots/blue"}), serving);
    ASSERT_EQ(WriteFileAtomic(file, *good, 0600), Status::Ok());
    const Result<double> again = lab_.Up();
    ASSERT_TRUE(again.ok()) << again.status().ToString();
    const Result<Server> ready = Await<Server>("kcp", [](const Server& s) { return SaysReady(s); });
    EXPECT_TRUE(ready.ok()) << ready.status().ToString();
  }
}

TEST_F(BadHostE2e, ASecondUpOrAgentOnTheSameDataFolderIsRefusedAndTheFirstGoesOn) {
  Install();
  const std::string kubeconfig = *ReadFile(lab_.kubeconfig());
  for (const bool up : {true, false}) {
    SubprocessOptions second;
    second.argv =
        up ? std::vector<std::string>{lab_.program(), "up", "--listen", "127.0.0.1:0"}
           : std::vector<std::string>{lab_.program(), "agent", "--host", "local", "--kubeconfig", lab_.kubeconfig()};
    second.argv.insert(second.argv.end(), {"--data", lab_.data()});
    Result<Subprocess> run = Subprocess::Start(second);
    ASSERT_TRUE(run.ok());
    const Result<int> code = run->Wait(std::chrono::seconds(20));
    ASSERT_TRUE(code.ok()) << "it runs on";
    EXPECT_EQ(*code, 1);
    EXPECT_NE(run->err().find("process id " + std::to_string(lab_.up_pid())), std::string::npos) << run->err();
    EXPECT_NE(run->err().find("stop that one first"), std::string::npos) << run->err();
  }
  EXPECT_EQ(*ReadFile(lab_.kubeconfig()), kubeconfig);
  ASSERT_EQ(MakeUpgrade("up", kNew), Status::Ok());
  ExpectSucceeds("up");
}

TEST_F(BadHostE2e, ASecondAgentOfTheSameHostNameTouchesNothingAndSaysWhoHasTheName) {
  Install();
  const pid_t serving = FindProcess({"/bin/kcp", "slots/blue"});
  const std::string folder = lab_.data() + "/second";
  Result<Subprocess> second = StartAgent(folder, "local", lab_.kubeconfig());
  ASSERT_TRUE(second.ok());
  std::string trouble;
  ASSERT_TRUE(WaitUntil([&] {
    trouble = TroubleOf(folder);
    return !trouble.empty();
  })) << ReadFile(LogOf(folder)).value_or("");
  EXPECT_NE(trouble.find("local"), std::string::npos) << trouble;
  // With it there, the first goes on, and nothing is done twice.
  ASSERT_EQ(MakeUpgrade("up", kNew), Status::Ok());
  ExpectSucceeds("up");
  ASSERT_TRUE(WaitUntil([&] { return TroubleOf(folder).starts_with("HostNameTaken"); })) << TroubleOf(folder);
  EXPECT_NE(TroubleOf(folder).find("--host"), std::string::npos) << TroubleOf(folder);
  EXPECT_EQ(FindProcess({folder + "/servers"}), 0) << "it started nothing";
  EXPECT_NE(FindProcess({"/bin/kcp", "slots/green"}), 0);
  EXPECT_NE(FindProcess({"/bin/kcp", "slots/green"}), serving);
  second->Signal(SIGTERM);
  const Result<int> code = second->Wait(std::chrono::seconds(10));
  EXPECT_TRUE(code.ok() && *code == 0);
}

TEST_F(BadHostE2e, AKubeconfigThatDoesNotFitIsNamedAndTheAgentGoesOnOnceItIsMended) {
  ASSERT_TRUE(lab_.Up().ok());
  const std::string good = *ReadFile(lab_.kubeconfig());
  SubprocessOptions missing;
  missing.argv = {lab_.program(), "agent",
                  "--host",       "other",
                  "--data",       lab_.data() + "/none",
                  "--kubeconfig", lab_.data() + "/no.kubeconfig"};
  const Result<std::string> run = RunProcess(missing);
  ASSERT_FALSE(run.ok());
  EXPECT_NE(run.status().message().find(lab_.data() + "/no.kubeconfig"), std::string::npos) << run.status().message();

  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  const size_t token = good.find("token: ") + 7;
  const std::string secret = good.substr(token, good.find_first_of("\n ", token) - token);
  ASSERT_GE(secret.size(), 16u);
  // Another server's authority.
  SubprocessOptions other;
  other.argv = {lab_.program(), "apiserver", "--data", lab_.data() + "/other", "--listen", "127.0.0.1:0"};
  other.output_file = lab_.data() + "/other.log";
  Result<Subprocess> apiserver = Subprocess::Start(other);
  ASSERT_TRUE(apiserver.ok());
  const std::string foreign = lab_.data() + "/other/admin.kubeconfig";
  ASSERT_TRUE(WaitUntil([&] { return PathExists(foreign); }));
  const auto authority = [](const std::string& text) {
    const size_t at = text.find("certificate-authority-data: ");
    return text.substr(at, text.find('\n', at) - at);
  };
  const struct {
    const char* name;
    std::string text;
    const char* says;
  } cases[] = {
      {"ca", with(authority(good), authority(*ReadFile(foreign))), "certificate"},
      {"name", with("server: ", "tls-server-name: other.example\n    server: "), "other.example"},
      {"token", with(secret, std::string(secret.size(), 'x')), "Unauthorized"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    const std::string folder = lab_.data() + "/agent-" + c.name, kubeconfig = folder + ".kubeconfig";
    ASSERT_EQ(WriteFileAtomic(kubeconfig, c.text, 0600), Status::Ok());
    Result<Subprocess> agent = StartAgent(folder, std::string("host-") + c.name, kubeconfig);
    ASSERT_TRUE(agent.ok());
    EXPECT_TRUE(LogSays(folder, "heartbeat")) << ReadFile(LogOf(folder)).value_or("");
    EXPECT_TRUE(LogSays(folder, c.says)) << ReadFile(LogOf(folder)).value_or("");
    EXPECT_EQ(ReadFile(LogOf(folder)).value_or("").find(secret), std::string::npos) << "a secret in the log";
    ASSERT_EQ(WriteFileAtomic(kubeconfig, good, 0600), Status::Ok());
    const ObjectKey heartbeat{"lockkeeper-system", std::string("host-host-") + c.name};
    const Resource leases{"coordination.k8s.io", "v1", "leases", "Lease", true};
    EXPECT_TRUE(WaitUntil([&] { return lab_.api().Get(leases, heartbeat).ok(); })) << "mended, it goes on by itself";
    agent->Signal(SIGTERM);
    const Result<int> code = agent->Wait(std::chrono::seconds(10));
    EXPECT_TRUE(code.ok() && *code == 0);
  }
}

}  // namespace
}  // namespace lockkeeper
