// The fixture itself: what the other tests of this folder stand on.
#include <gtest/gtest.h>
#include <signal.h>

#include <sstream>

#include "api/base/file.h"
#include "tests/support/peers/places.h"
#include "tests/support/peers/shared.h"
#include "tests/support/wait.h"

namespace lockkeeper::peers {
namespace {

const Resource kMaps{"", "v1", "configmaps", "ConfigMap"};

Json Map(const std::string& name, const std::string& value) {
  return Json::MakeObject({{"apiVersion", "v1"},
                           {"kind", "ConfigMap"},
                           {"metadata", Json::MakeObject({{"namespace", "default"}, {"name", name}})},
                           {"data", Json::MakeObject({{"value", value}})}});
}

std::string ValueOf(HttpApi& api, const std::string& name) {
  const Result<Json> map = api.Get(kMaps, {"default", name});
  return map.ok() ? map->At({"data", "value"}).AsString() : map.status().ToString();
}

TEST(PeersCluster, ServesOurClientAndKubectlWithItsVersion) {
  LK_NEED_CLUSTER(cluster);
  ASSERT_TRUE(cluster.api().Create(kMaps, Map("first", "1")).ok());
  EXPECT_EQ(ValueOf(cluster.api(), "first"), "1");
  const Ran ran = cluster.Kubectl({"get", "configmap", "first", "-o", "jsonpath={.data.value}"});
  EXPECT_EQ(ran.out, "1") << ran.All();
  const Ran version = cluster.Kubectl({"version"});
  EXPECT_NE(version.out.find("Server Version: v1."), std::string::npos) << version.All();
  HttpClientConfig config;
  config.base_url = cluster.url();
  config.tls.ca_pem = cluster.ca_pem();
  EXPECT_EQ(HttpClient(config).Do({.target = "/api/v1/namespaces/default/configmaps"})->status, 403) << "RBAC is on";
}

TEST(PeersCluster, AKilledApiServerComesBackOnItsAddressWithItsObjects) {
  LK_NEED_CLUSTER(cluster);
  ASSERT_TRUE(cluster.api().Create(kMaps, Map("kept", "1")).ok());
  ASSERT_TRUE(cluster.Kill(Part::kApiServer).ok());
  EXPECT_FALSE(cluster.running(Part::kApiServer));
  EXPECT_EQ(cluster.api().GetRaw("/readyz", std::chrono::seconds(2)).code(), Code::kUnavailable);
  const Status back = cluster.Restart(Part::kApiServer);
  ASSERT_TRUE(back.ok()) << back.ToString();
  EXPECT_EQ(ValueOf(cluster.api(), "kept"), "1");
}

TEST(PeersCluster, AStoppedApiServerAnswersNothingAndGoesOn) {
  LK_NEED_CLUSTER(cluster);
  cluster.Stop(Part::kApiServer);
  EXPECT_EQ(cluster.api().GetRaw("/readyz", std::chrono::milliseconds(300)).code(), Code::kTimeout);
  cluster.Continue(Part::kApiServer);
  const Status back = cluster.AwaitReady();
  EXPECT_TRUE(back.ok()) << back.ToString();
}

TEST(PeersCluster, ASnapshotTakesTheStateBack) {
  LK_NEED_CLUSTER(cluster);
  ASSERT_TRUE(cluster.api().Create(kMaps, Map("old", "1")).ok());
  const std::string file = JoinPath(cluster.folder(), "snapshot");
  const Status saved = cluster.Snapshot(file);
  ASSERT_TRUE(saved.ok()) << saved.ToString();
  ASSERT_TRUE(cluster.api().Create(kMaps, Map("new", "1")).ok());
  const Status restored = cluster.Restore(file);
  ASSERT_TRUE(restored.ok()) << restored.ToString();
  EXPECT_EQ(ValueOf(cluster.api(), "old"), "1");
  EXPECT_EQ(cluster.api().Get(kMaps, {"default", "new"}).code(), Code::kNotFound);
}

TEST(PeersCluster, AnOldResourceVersionIsGoneAfterACompaction) {
  LK_NEED_CLUSTER(cluster);
  const Result<Json> made = cluster.api().Create(kMaps, Map("early", "1"));
  ASSERT_TRUE(made.ok());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(cluster.api().Create(kMaps, Map("later" + std::to_string(i), "1")).ok());
  const Result<int64_t> revision = cluster.Compact();
  ASSERT_TRUE(revision.ok()) << revision.status().ToString();
  EXPECT_GT(*revision, ResourceVersionNumber(ResourceVersionOf(*made)));
  ASSERT_TRUE(cluster.Restart(Part::kApiServer).ok());
  WatchOptions watch;
  watch.resource_version = ResourceVersionOf(*made);
  EXPECT_EQ(cluster.api()
                .Watch(
                    kMaps, "default", watch, [](WatchEvent) { return false; }, nullptr)
                .code(),
            Code::kExpired);
}

// A test program that is killed has no destructors.
TEST(PeersCluster, AKilledTestProgramLeavesNoProcessAndTheNextOneRemovesItsFolder) {
  LK_NEED_CLUSTER(cluster);
  SubprocessOptions options;
  options.argv = {LK_PEERS_CLUSTER};
  options.output_file = JoinPath(cluster.folder(), "killed.txt");
  Result<Subprocess> program = Subprocess::Start(options);
  ASSERT_TRUE(program.ok()) << program.status().ToString();
  std::string line;
  ASSERT_TRUE(WaitUntil(
      [&] {
        line = ReadFile(options.output_file).value_or("");
        return line.ends_with('\n');
      },
      std::chrono::seconds(90)))
      << line;
  std::istringstream words(line);
  std::string kubeconfig;
  pid_t etcd = 0, api_server = 0;
  words >> kubeconfig >> etcd >> api_server;
  ASSERT_TRUE(words) << line;
  ASSERT_EQ(::kill(etcd, 0) + ::kill(api_server, 0), 0);
  program->Signal(SIGKILL);
  ASSERT_EQ(*program->Wait(std::chrono::seconds(10)), 128 + SIGKILL);
  EXPECT_TRUE(WaitUntil([&] { return ::kill(etcd, 0) != 0 && ::kill(api_server, 0) != 0; })) << "they still run";
  const Result<std::string> next = MakeFolder();  // as any other program that starts one meanwhile does
  ASSERT_TRUE(next.ok() && RemoveTree(*next).ok());
  EXPECT_FALSE(PathExists(DirName(kubeconfig)));
}

TEST(PeersKcp, AKcpThatIsGivenSaysItsVersion) {
  const Result<std::string> kcp = FindKcp();
  if (kcp.code() == Code::kNotFound) GTEST_SKIP() << kcp.status().message();
  ASSERT_TRUE(kcp.ok()) << kcp.status().ToString();
  SubprocessOptions options;
  options.argv = {*kcp, "--version"};
  const Result<std::string> said = RunProcess(options);
  ASSERT_TRUE(said.ok()) << said.status().ToString();
  EXPECT_NE(said->find('v'), std::string::npos) << *said;
}

}  // namespace
}  // namespace lockkeeper::peers
