#include "controller/exec_plugin.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>

#include "api/base/file.h"
#include "tests/unit/controller/manual_clock.h"

namespace lockkeeper {
namespace {

class ExecTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/lk-exec-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    dir_ = name;
  }
  void TearDown() override { EXPECT_TRUE(RemoveTree(dir_).ok()); }

  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = JoinPath(dir_, name);
    EXPECT_TRUE(WriteFileAtomic(path, text).ok());
    return path;
  }
  // A plugin that counts its runs and prints the named file.
  std::string Script(const std::string& body) {
    const std::string path = Write("plugin", "#!/bin/sh\nset -e\ncd " + dir_ + "\necho run >>runs\n" + body + "\n");
    chmod(path.c_str(), 0700);
    return path;
  }
  int Runs() {
    const auto text = ReadFile(dir_ + "/runs");
    return text.ok() ? static_cast<int>(std::count(text->begin(), text->end(), '\n')) : 0;
  }
  ExecPlugin Plugin(const std::string& body) {
    ExecPlugin plugin;
    plugin.command = Script(body);
    plugin.api_version = "client.authentication.k8s.io/v1";
    return plugin;
  }
  static std::string Answer(const std::string& status) {
    return R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{)" + status + "}}";
  }

  std::string dir_;
  ManualClock clock_;
};

TEST_F(ExecTest, ArgumentsAndEnvironmentArriveAndNoDescriptorOfOurs) {
  ExecPlugin plugin =
      Plugin("printf '%s|' \"$@\" \"$X\" \"$KUBERNETES_EXEC_INFO\" >seen; ls /proc/$$/fd >>fds; cat answer");
  Write("answer", Answer(R"("token":"t")"));
  plugin.arguments = {"a b", "$(touch pwned)", ";"};
  plugin.environment = {{"X", "y"}};
  plugin.provide_cluster_info = true;
  plugin.cluster_info = Json::MakeObject({{"server", "https://h"}});
  const auto result = RunExecPlugin(plugin);
  ASSERT_TRUE(result.ok()) << result.status().ToString();
  EXPECT_EQ(result->credentials.token, "t");
  const std::string seen = *ReadFile(dir_ + "/seen");
  EXPECT_EQ(
      seen,
      "a b|$(touch pwned)|;|y|"
      R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{"interactive":false,"cluster":{"server":"https://h"}}}|)");
  EXPECT_FALSE(PathExists(dir_ + "/pwned"));
}

TEST_F(ExecTest, ItRunsAgainBeforeTheExpiryAndAfterARefusalAndNotOtherwise) {
  ExecPlugin plugin = Plugin("cat answer");
  const std::string expiry = FormatTime(clock_.Read().wall + Seconds(100));
  Write("answer", Answer(R"("token":"one","expirationTimestamp":")" + expiry + "\""));
  auto source = NewExecCredentials(plugin, clock_);
  EXPECT_EQ(source->Get()->token, "one");
  clock_.Advance(Seconds(89));
  EXPECT_EQ(source->Get()->token, "one");
  EXPECT_EQ(Runs(), 1);
  Write("answer", Answer(R"("token":"two")"));
  clock_.Advance(Seconds(1));
  EXPECT_EQ(source->Get()->token, "two");
  clock_.Advance(Seconds(100000));  // no expiry: kept
  EXPECT_EQ(source->Get()->token, "two");
  EXPECT_EQ(Runs(), 2);
  Credentials old;
  old.token = "one";
  source->Refused(old);
  EXPECT_EQ(source->Get()->token, "two");
  EXPECT_EQ(Runs(), 2);
  source->Refused(*source->Get());
  EXPECT_EQ(source->Get()->token, "two");
  EXPECT_EQ(Runs(), 3);
}

TEST_F(ExecTest, FailuresNameTheCommandAndNeverItsOutput) {
  const auto message = [this](const std::string& body) {
    const auto result = RunExecPlugin(Plugin(body));
    EXPECT_FALSE(result.ok());
    EXPECT_NE(result.status().message().find(dir_ + "/plugin"), std::string::npos);
    EXPECT_EQ(result.status().message().find("s3cret"), std::string::npos) << result.status().message();
    return result.status().message();
  };
  EXPECT_NE(message("echo s3cret; exit 3").find("exit status 3"), std::string::npos);
  EXPECT_NE(message("echo '{\"token\": s3cret'").find("no ExecCredential"), std::string::npos);
  EXPECT_NE(message("kill -9 $$").find("signal 9"), std::string::npos);
  ExecPlugin missing;
  missing.command = dir_ + "/missing";
  missing.install_hint = "Install it with brew.";
  const auto result = RunExecPlugin(missing);
  EXPECT_EQ(result.code(), Code::kNotFound);
  EXPECT_NE(result.status().message().find("Install it with brew."), std::string::npos);
}

TEST_F(ExecTest, APluginThatHangsIsKilled) {
  ExecPlugin plugin = Plugin("echo $$ >pid; exec sleep 600");
  plugin.timeout = Milliseconds(300);
  EXPECT_EQ(RunExecPlugin(plugin).code(), Code::kTimeout);
  const auto pid = ReadFile(dir_ + "/pid");
  if (pid.ok()) {
    EXPECT_FALSE(PathExists("/proc/" + std::to_string(std::stoi(*pid))));
  }
}

TEST_F(ExecTest, AnswersAreChecked) {
  const std::string v1 = "client.authentication.k8s.io/v1";
  EXPECT_TRUE(ParseExecCredential(Answer(R"("token":"t")"), v1).ok());
  EXPECT_FALSE(ParseExecCredential(Answer(R"("token":"t")"), v1 + "beta1").ok());
  EXPECT_FALSE(ParseExecCredential(Answer(""), v1).ok());
  EXPECT_FALSE(ParseExecCredential(Answer(R"("clientCertificateData":"c")"), v1).ok());
  EXPECT_TRUE(ParseExecCredential("kind: ExecCredential\napiVersion: " + v1 + "\nstatus: {token: t}\n", v1).ok());
}

}  // namespace
}  // namespace lockkeeper
