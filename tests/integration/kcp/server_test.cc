// One kcp-like process: how it starts, what it lets whom do, what it writes (S1 to S6, S9).
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "api/base/file.h"
#include "api/server/kcp/build_version.h"
#include "api/server/kcp/journal.h"
#include "tests/integration/kcp/kcp_process.h"

namespace lockkeeper::kcp {
namespace {

constexpr char kConfigMaps[] = "/clusters/root/api/v1/namespaces/default/configmaps";

std::string ConfigMap(const std::string& name) {
  return R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":")" + name + R"("},"data":{"a":"b"}})";
}

TEST(Start, AnUnknownFlagAndPortZeroAloneEndWithOne) {  // S1
  TempDir dir;
  KcpProcess unknown(dir, {.slot = "unknown", .flags = {"--enable-everything"}});
  unknown.Start();
  EXPECT_EQ(unknown.AwaitExit(), 1);
  EXPECT_TRUE(unknown.Says("unknown flag: --enable-everything")) << unknown.Errors();
  KcpProcess port(dir, {.slot = "port", .flags = {"--experimental-bind-free-port=false"}});
  port.Start();
  EXPECT_EQ(port.AwaitExit(), 1);
  EXPECT_TRUE(port.Says("--secure-port 0 is refused")) << port.Errors();
}

TEST(Start, ItListensLongBeforeItServes) {  // 2.6, S2
  TempDir dir;
  KcpProcess kcp(dir, {.slot = "blue", .env = {{"LOCKKEEPER_FAULTS", "start-delay=2s"}}});
  kcp.Start();
  ASSERT_TRUE(kcp.AwaitListening()) << kcp.Errors();
  ClientRequest request;
  request.target = "/readyz";
  request.timeout = std::chrono::milliseconds(200);
  const auto answer = kcp.client().Do(request);
  EXPECT_EQ(answer.code(), Code::kTimeout) << "connected, and hung: " << answer.status().ToString();
  EXPECT_TRUE(PathExists(kcp.root() + "/admin.kubeconfig")) << "written before serving";
  EXPECT_TRUE(kcp.AwaitReady()) << kcp.Errors();
}

TEST(Start, ATakenPortEndsWithOneAndNamesTheAddress) {
  TempDir dir;
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(listen(fd, 1), 0);
  socklen_t size = sizeof(address);
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  const std::string port = std::to_string(ntohs(address.sin_port));
  KcpProcess kcp(dir, {.slot = "blue", .flags = {"--secure-port=" + port}});
  kcp.Start();
  EXPECT_EQ(kcp.AwaitExit(), 1);
  EXPECT_TRUE(kcp.Says(port)) << kcp.Errors();
  close(fd);
}

TEST(Start, AnEmbeddedStoreIsForOneProcess) {  // 4.2
  TempDir dir;
  KcpProcess first(dir, {.slot = "blue", .own_store = true});
  first.Start();
  ASSERT_TRUE(first.AwaitReady()) << first.Errors();
  KcpProcess second(dir, {.slot = "blue", .own_store = true});
  second.Start();
  EXPECT_EQ(second.AwaitExit(), 1);
  EXPECT_TRUE(second.Says("is in use by another process")) << second.Errors();
}

TEST(Start, ASlotWithOnlyTheTokenStoreIsRefused) {  // 2.16
  TempDir dir;
  KcpProcess kcp(dir, {.slot = "blue"});
  kcp.Start();
  ASSERT_TRUE(kcp.AwaitReady());
  const std::string shard_admin = kcp.Token("shard-admin");
  const std::string kcp_admin = kcp.Token("kcp-admin");
  kcp.Signal(SIGTERM);
  ASSERT_EQ(kcp.AwaitExit(), 0);
  kcp.Start();
  ASSERT_TRUE(kcp.AwaitReady());
  EXPECT_EQ(kcp.Token("shard-admin"), shard_admin);
  EXPECT_NE(kcp.Token("kcp-admin"), kcp_admin);
  EXPECT_EQ(kcp.StatusOf("GET", kConfigMaps, kcp_admin), 401) << "the old kcp-admin token is dead";
  EXPECT_EQ(kcp.StatusOf("GET", kConfigMaps, shard_admin), 200);
  kcp.Signal(SIGTERM);
  ASSERT_EQ(kcp.AwaitExit(), 0);
  ASSERT_TRUE(RemoveFile(kcp.root() + "/admin.kubeconfig").ok());
  kcp.Start();
  EXPECT_EQ(kcp.AwaitExit(), 1);
  EXPECT_TRUE(kcp.Says("cannot create the 'admin.kubeconfig'")) << kcp.Errors();
}

struct AccessCase {
  const char* path;
  const char* token;
  int status;
};

TEST(Access, IsByTokenAndCluster) {  // 1.3, 2.1, S4
  TempDir dir;
  ASSERT_TRUE(
      WriteFileAtomic(dir / "tokens.csv",
                      "t-admin,ops,1,\"system:kcp:admin,team\"\nt-plain,dev,2\nt-master,root,3,system:masters\n")
          .ok());
  KcpProcess kcp(dir, {.slot = "blue", .flags = {"--token-auth-file=" + (dir / "tokens.csv")}});
  kcp.Start();
  ASSERT_TRUE(kcp.AwaitReady()) << kcp.Errors();
  const std::string system = "/clusters/system:admin/api/v1/namespaces/kube-system";
  const AccessCase cases[] = {
      {"/readyz", "", 200},
      {"/livez?verbose", "", 200},
      {"/healthz?exclude=etcd", "", 200},
      {"/clusters/root/readyz", "", 200},
      {"/readyz/ping", "", 403},
      {"/readyz/ping", "kcp-admin", 200},
      {"/readyz/ping", "wrong", 401},
      {"/readyz/none", "shard-admin", 404},
      {"/version", "", 403},
      {"/version", "t-plain", 200},
      {kConfigMaps, "", 403},
      {kConfigMaps, "wrong", 401},
      {kConfigMaps, "kcp-admin", 200},
      {kConfigMaps, "shard-admin", 200},
      {kConfigMaps, "t-admin", 200},
      {kConfigMaps, "t-plain", 403},
      {kConfigMaps, "t-master", 200},
      {system.c_str(), "kcp-admin", 403},
      {system.c_str(), "t-admin", 403},
      {system.c_str(), "shard-admin", 200},
      {system.c_str(), "t-master", 200},
      {"/clusters/*/api/v1/configmaps", "kcp-admin", 403},
      {"/clusters/root:nowhere/api/v1/namespaces", "kcp-admin", 404},
      {"/api/v1/namespaces", "shard-admin", 404},
  };
  for (const AccessCase& c : cases) {
    EXPECT_EQ(kcp.StatusOf("GET", c.path, c.token), c.status) << c.path << " as \"" << c.token << "\"";
  }
}

TEST(Health, SaysWhyInKcpsWords) {  // 2.2, 2.3, S5
  TempDir dir;
  KcpProcess kcp(dir, {.slot = "blue", .env = {{"LOCKKEEPER_FAULTS", "never-ready"}}});
  kcp.Start();
  ASSERT_TRUE(kcp.AwaitListening());
  ASSERT_TRUE(Eventually([&] { return kcp.StatusOf("GET", "/readyz", "") == 500; }));
  const auto red = kcp.Call("GET", "/readyz", "");
  ASSERT_TRUE(red.ok());
  EXPECT_NE(red->body.find("[-]poststarthook/kcp-start-informers failed: reason withheld\n"), std::string::npos);
  EXPECT_NE(red->body.find("readyz check failed"), std::string::npos);
  const auto excluded = kcp.Call(
      "GET", "/readyz?exclude=poststarthook/kcp-start-informers&exclude=poststarthook/kcp-start-controllers", "");
  ASSERT_TRUE(excluded.ok());
  EXPECT_TRUE(Eventually([&] {
    const auto again = kcp.Call(
        "GET", "/readyz?exclude=poststarthook/kcp-start-informers&exclude=poststarthook/kcp-start-controllers", "");
    return again.ok() && again->status == 200 && again->body == "ok";
  }));
}

TEST(Bootstrap, RewritesTheShardAtEachStartBeforeReady) {  // 2.4, 2.20, 4.8
  TempDir dir;
  KcpProcess blue(dir, {.slot = "blue", .flags = {"--shard-base-url=https://front:6443"}});
  blue.Start();
  ASSERT_TRUE(blue.AwaitReady());
  const std::string path = "/clusters/root/apis/core.kcp.io/v1alpha1/shards/root";
  const Json first = blue.Get(path);
  EXPECT_EQ(first.At({"spec", "externalURL"}).AsString(), "https://front:6443");
  KcpProcess green(dir, {.slot = "green"});  // its operator forgot the URLs
  green.Start();
  ASSERT_TRUE(green.AwaitReady());
  const Json second = blue.Get(path);
  EXPECT_EQ(second.At({"spec", "externalURL"}).AsString(), "https://127.0.0.1:" + std::to_string(green.port()));
  EXPECT_NE(first.At({"metadata", "resourceVersion"}), second.At({"metadata", "resourceVersion"}));
}

TEST(Store, IsSharedWithOneRevisionAndWatchesOfTheOtherSlot) {  // S6
  TempDir dir;
  KcpProcess blue(dir, {.slot = "blue"});
  KcpProcess green(dir, {.slot = "green"});
  blue.Start();
  green.Start();
  ASSERT_TRUE(blue.AwaitReady() && green.AwaitReady());
  const auto list = green.Call("GET", kConfigMaps, "kcp-admin");
  ASSERT_TRUE(list.ok());
  const std::string version = Json::Parse(list->body).value_or(Json()).At({"metadata", "resourceVersion"}).AsString();
  ASSERT_EQ(blue.StatusOf("POST", kConfigMaps, "kcp-admin", ConfigMap("one")), 201);
  ClientRequest watch;
  watch.target = std::string(kConfigMaps) + "?watch=true&resourceVersion=" + version;
  watch.headers.emplace_back("Authorization", "Bearer " + green.Token("kcp-admin"));
  std::string seen;
  const auto end = green.client().Stream(watch, std::chrono::seconds(10), [&](std::string_view data) {
    seen += data;
    return seen.find('\n') == std::string::npos;
  });
  EXPECT_TRUE(end.status.ok()) << end.status.ToString();
  const Json event = Json::Parse(seen.substr(0, seen.find('\n'))).value_or(Json());
  EXPECT_EQ(event.Get("type").AsString(), "ADDED");
  EXPECT_EQ(event.At({"object", "metadata", "name"}).AsString(), "one");
  const Json stored = blue.Get(std::string(kConfigMaps) + "/one");
  EXPECT_EQ(event.At({"object", "metadata", "resourceVersion"}), stored.At({"metadata", "resourceVersion"}));
  Json stale = stored;
  ASSERT_EQ(green.StatusOf("PUT", std::string(kConfigMaps) + "/one", "kcp-admin",
                           [&] {
                             stale["data"].Set("a", "c");
                             return stale.Dump();
                           }()),
            200);
  EXPECT_EQ(blue.StatusOf("PUT", std::string(kConfigMaps) + "/one", "kcp-admin",
                          [&] {
                            stale["data"].Set("a", "d");
                            return stale.Dump();
                          }()),
            409);
}

TEST(Workspaces, NeedATypeAndStartAsScheduling) {  // 3.1, 3.2
  TempDir dir;
  KcpProcess kcp(dir, {.slot = "blue", .env = {{"LOCKKEEPER_FAULTS", "idle-leader"}}});
  kcp.Start();
  ASSERT_TRUE(kcp.AwaitReady());
  const std::string path = "/clusters/root/apis/tenancy.kcp.io/v1alpha1/workspaces";
  const auto untyped =
      kcp.Call("POST", path, "kcp-admin",
               R"({"apiVersion":"tenancy.kcp.io/v1alpha1","kind":"Workspace","metadata":{"name":"a"}})");
  ASSERT_TRUE(untyped.ok());
  EXPECT_EQ(untyped->status, 403);
  EXPECT_NE(untyped->body.find("defaultChildWorkspaceType"), std::string::npos) << untyped->body;
  ASSERT_EQ(kcp.CreateWorkspace("a"), 201);
  EXPECT_EQ(kcp.WorkspacePhase("a"), "Scheduling");
  EXPECT_EQ(kcp.StatusOf("DELETE", path + "/a", "kcp-admin"), 200) << "not scheduled: nothing holds it";
  EXPECT_EQ(kcp.StatusOf("GET", path + "/a", "kcp-admin"), 404);
}

TEST(Goaway, ClosesThatPartOfTheConnections) {
  TempDir dir;
  KcpProcess always(dir, {.slot = "always", .flags = {"--goaway-chance=1"}});
  KcpProcess never(dir, {.slot = "never"});
  always.Start();
  never.Start();
  ASSERT_TRUE(always.AwaitReady() && never.AwaitReady());
  for (int i = 0; i < 3; ++i) {
    const auto closed = always.Call("GET", kConfigMaps, "kcp-admin");
    ASSERT_TRUE(closed.ok());
    EXPECT_EQ(closed->Header("connection"), "close");
    const auto kept = never.Call("GET", kConfigMaps, "kcp-admin");
    ASSERT_TRUE(kept.ok());
    EXPECT_NE(kept->Header("connection"), "close");
  }
}

TEST(Builds, DifferInTheirBytesAndSayWhichTheyAre) {
  TempDir dir;
  ASSERT_TRUE(WriteBuild(KCP_LIKE, "v0.33.1", dir / "v0.33.1/bin/kcp").ok());
  ASSERT_TRUE(WriteBuild(KCP_LIKE, "v0.33.2", dir / "v0.33.2/bin/kcp", "never-ready").ok());
  EXPECT_NE(*Sha256File(dir / "v0.33.1/bin/kcp"), *Sha256File(dir / "v0.33.2/bin/kcp"));
  KcpProcess good(dir, {.slot = "good", .executable = dir / "v0.33.1/bin/kcp"});
  KcpProcess bad(dir, {.slot = "bad", .executable = dir / "v0.33.2/bin/kcp"});
  good.Start();
  bad.Start();
  ASSERT_TRUE(good.AwaitReady()) << good.Errors();
  EXPECT_EQ(good.Get("/version").Get("gitVersion").AsString(), "v1.33.3+kcp-v0.33.1");
  EXPECT_EQ(*Sha256File("/proc/" + std::to_string(good.pid()) + "/exe"), *Sha256File(dir / "v0.33.1/bin/kcp"));
  ASSERT_TRUE(bad.AwaitListening()) << bad.Errors();
  ASSERT_TRUE(Eventually([&] { return bad.Get("/version").Get("gitVersion").AsString() == "v1.33.3+kcp-v0.33.2"; }));
  EXPECT_EQ(bad.StatusOf("GET", "/readyz", ""), 500) << "a build may carry its fault in its bytes";
}

TEST(RequestLog, HasALinePerRequestWithSlotUserAndStatus) {  // S13
  TempDir dir;
  KcpProcess kcp(dir, {.slot = "blue"});
  kcp.Start();
  ASSERT_TRUE(kcp.AwaitReady());
  ASSERT_EQ(kcp.StatusOf("POST", kConfigMaps, "kcp-admin", ConfigMap("one")), 201);
  ASSERT_EQ(kcp.StatusOf("GET", std::string(kConfigMaps) + "/two", "shard-admin"), 404);
  const auto lines = ReadJournals({dir / "requests.log"});
  ASSERT_TRUE(lines.ok()) << lines.status().ToString();
  ASSERT_GE(lines->size(), 2u);
  const Json& post = (*lines)[lines->size() - 2];
  EXPECT_EQ(post.Get("slot").AsString(), "blue");
  EXPECT_EQ(post.Get("pid").AsInt(), kcp.pid());
  EXPECT_EQ(post.Get("method").AsString(), "POST");
  EXPECT_EQ(post.Get("path").AsString(), kConfigMaps);
  EXPECT_EQ(post.Get("status").AsInt(), 201);
  EXPECT_EQ(post.Get("user").AsString(), "kcp-admin");
  EXPECT_EQ(lines->back().Get("status").AsInt(), 404);
  const std::string text = ReadFile(dir / "requests.log").value_or("");
  EXPECT_EQ(text.find(kcp.Token("kcp-admin")), std::string::npos) << "no token in a log";
}

}  // namespace
}  // namespace lockkeeper::kcp
