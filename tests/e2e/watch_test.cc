// kubectl's watches while `lockkeeper up` is killed and started again under them.
#include <csignal>
#include <map>

#include "api/base/file.h"
#include "tests/e2e/fixture.h"
#include "tests/support/peers/programs.h"

namespace lockkeeper {
namespace {

constexpr int kKills = 5;
constexpr const char* kConfigMaps = "/api/v1/namespaces/default/configmaps";

class WatchE2e : public ::testing::Test {
 protected:
  static LabOptions Options() {
    LabOptions options;
    options.lockkeeper = LK_LOCKKEEPER;
    // The same port for each start: the kubeconfig of those who watch goes on to hold.
    options.up_args = {"--listen", "127.0.0.1:" + std::to_string(Lab::FreePort())};
    return options;
  }

  void SetUp() override {
    const Result<std::string> kubectl = peers::FindProgram("kubectl");
    if (!kubectl.ok()) GTEST_SKIP() << kubectl.status().message();
    kubectl_ = *kubectl;
    const Result<double> up = lab_.Up();
    ASSERT_TRUE(up.ok()) << up.status().ToString();
  }
  // kubectl in the background; what it says is in Said(name).
  Subprocess Begin(const std::string& name, std::vector<std::string> args) {
    SubprocessOptions run;
    run.argv = std::move(args);
    run.argv.insert(run.argv.begin(), kubectl_);
    run.env = {{"KUBECONFIG", lab_.kubeconfig()}, {"HOME", lab_.data()}};
    run.output_file = JoinPath(lab_.data(), name + ".out");
    run.dies_with_us = true;
    Result<Subprocess> child = Subprocess::Start(run);
    LK_CHECK(child.ok());
    return std::move(*child);
  }
  std::string Said(const std::string& name) const {
    return ReadFile(JoinPath(lab_.data(), name + ".out")).value_or("");
  }
  void Create(const std::string& name) {
    const Json object = Json::MakeObject({{"apiVersion", "v1"},
                                          {"kind", "ConfigMap"},
                                          {"metadata", Json::MakeObject({{"namespace", "default"}, {"name", name}})}});
    const Result<Json> made = lab_.api().Create(kConfigMap, object);
    ASSERT_TRUE(made.ok()) << made.status().ToString();
    ++made_;
  }
  void KillAndStart() {
    ASSERT_TRUE(lab_.Down(SIGKILL).ok());
    const Result<double> up = lab_.Up();
    ASSERT_TRUE(up.ok()) << up.status().ToString();
  }

  const Resource kConfigMap{"", "v1", "configmaps", "ConfigMap", true};
  Lab lab_{Options()};
  std::string kubectl_;
  int made_ = 0;
};

// One who watches from the last resourceVersion that it saw, again and again.
TEST_F(WatchE2e, AWatchThatIsResumedOverFiveKillsSeesEachEventOnce) {
  std::map<std::string, int> seen;
  std::string version = "0";
  {
    const Result<ObjectList> list = lab_.api().List(kConfigMap, "default", {});
    ASSERT_TRUE(list.ok()) << list.status().ToString();
    version = list->meta.resource_version;
  }
  int watches = 0;
  std::optional<Subprocess> watch;
  const auto resume = [&] {
    watch.emplace(Begin("watch-" + std::to_string(++watches),
                        {"get", "--raw", std::string(kConfigMaps) + "?watch=1&resourceVersion=" + version}));
  };
  // Of the watch that has ended or goes on; a line that was cut is none.
  const auto read = [&](bool ended) {
    const std::string text = Said("watch-" + std::to_string(watches));
    size_t count = 0;
    for (size_t begin = 0, end = text.find('\n'); end != std::string::npos;
         begin = end + 1, end = text.find('\n', begin)) {
      const Result<Json> event = Json::Parse(std::string_view(text).substr(begin, end - begin));
      if (!event.ok() || event->Get("type").AsString() != "ADDED") continue;
      ++count;
      if (!ended) continue;
      ++seen[event->At({"object", "metadata", "name"}).AsString()];
      version = event->At({"object", "metadata", "resourceVersion"}).AsString();
    }
    return count;
  };
  resume();
  for (int i = 0; i < kKills; ++i) {
    ASSERT_NO_FATAL_FAILURE(Create("before-" + std::to_string(i)));
    // Every other time the kill comes before the watch may have been told.
    if (i % 2 == 0) {
      ASSERT_TRUE(WaitUntil([&] { return read(false) > 0; }));
    }
    ASSERT_NO_FATAL_FAILURE(KillAndStart());
    ASSERT_TRUE(watch->Wait(std::chrono::seconds(30)).ok()) << "kubectl ends with the connection";
    read(true);
    ASSERT_NO_FATAL_FAILURE(Create("between-" + std::to_string(i)));
    resume();
  }
  ASSERT_NO_FATAL_FAILURE(Create("last"));
  ASSERT_TRUE(
      WaitUntil([&] { return Said("watch-" + std::to_string(watches)).find("\"last\"") != std::string::npos; }));
  watch->Signal(SIGTERM);
  ASSERT_TRUE(watch->Wait(std::chrono::seconds(30)).ok());
  read(true);
  EXPECT_EQ(seen.size(), static_cast<size_t>(made_));
  for (const auto& [name, times] : seen) EXPECT_EQ(times, 1) << name;
}

TEST_F(WatchE2e, KubectlGetEndsWithItsConnectionAndKubectlWaitGoesOnOverEachKill) {
  ASSERT_NO_FATAL_FAILURE(Create("a"));
  Subprocess get = Begin("get", {"get", "configmaps", "--watch", "--output=name"});
  Subprocess wait = Begin("wait", {"wait", "--for=jsonpath={.data.x}=y", "configmap/a", "--timeout=120s", "-v=6"});
  // Both watch, and do not only list.
  ASSERT_TRUE(WaitUntil([&] { return Said("get").find("configmap/a") != std::string::npos; }));
  ASSERT_NO_FATAL_FAILURE(Create("b"));
  ASSERT_TRUE(WaitUntil([&] { return Said("get").find("configmap/b") != std::string::npos; })) << Said("get");
  ASSERT_TRUE(WaitUntil([&] { return Said("wait").find("watch=true") != std::string::npos; })) << Said("wait");
  for (int i = 0; i < kKills; ++i) {
    ASSERT_NO_FATAL_FAILURE(KillAndStart());
    EXPECT_EQ(wait.Wait(std::chrono::milliseconds(0)).code(), Code::kTimeout) << "it waits on: " << Said("wait");
  }
  // `kubectl get --watch` does not connect again: it ends in order, and whoever wants more starts it again.
  EXPECT_EQ(get.Wait(std::chrono::seconds(30)).value_or(-1), 0) << Said("get");
  EXPECT_EQ(Said("get"), "configmap/a\nconfigmap/b\n");
  const Json patch = Json::MakeObject({{"data", Json::MakeObject({{"x", "y"}})}});
  ASSERT_TRUE(lab_.api().Patch(kConfigMap, {"default", "a"}, PatchType::kMerge, patch, "").ok());
  EXPECT_EQ(wait.Wait(std::chrono::seconds(60)).value_or(-1), 0) << Said("wait");
  EXPECT_NE(Said("wait").find("configmap/a condition met"), std::string::npos) << Said("wait");
}

}  // namespace
}  // namespace lockkeeper
