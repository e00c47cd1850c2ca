// How a kcp-like process stops: 2.9 to 2.12, 1.15, S10.
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "api/base/file.h"
#include "tests/integration/kcp/kcp_process.h"

namespace lockkeeper::kcp {
namespace {

using std::chrono::steady_clock;
constexpr char kRootMaps[] = "/clusters/root/api/v1/namespaces/default/configmaps";
constexpr char kAdminMaps[] = "/clusters/system:admin/api/v1/namespaces/default/configmaps";

double ScaledSince(steady_clock::time_point start) {
  return std::chrono::duration<double>(steady_clock::now() - start).count() / kScale;
}

// A watch on a thread of its own. Bookmarks are asked for, so that the first bytes prove that it runs.
class Watch {
 public:
  Watch(KcpProcess& kcp, const std::string& path)
      : thread_([this, &kcp, path, token = kcp.Token("shard-admin")] {
          ClientRequest request;
          request.target = path + "?watch=true&resourceVersion=0";
          request.headers.emplace_back("Authorization", "Bearer " + token);
          const auto end = kcp.client().Stream(request, std::chrono::seconds(30), [this](std::string_view) {
            began_ = true;
            return true;
          });
          status_ = end.status;
          ended_ = true;
        }) {}
  ~Watch() { thread_.join(); }
  bool began() const { return began_; }
  bool ended() const { return ended_; }
  // REQUIRES: ended().
  const Status& status() const { return status_; }

 private:
  std::atomic<bool> began_{false};
  std::atomic<bool> ended_{false};
  Status status_;
  std::thread thread_;
};

class StopLive : public ::testing::Test {
 protected:
  void Start(std::vector<std::string> flags, const std::string& faults = "") {
    kcp_ = std::make_unique<KcpProcess>(
        dir_, KcpProcess::Setup{.slot = "blue",
                                .flags = std::move(flags),
                                .env = {{"LOCKKEEPER_FAULTS", faults}, {"LOCKKEEPER_FAULTS_FILE", faults_file_}}});
    kcp_->Start();
    ASSERT_TRUE(kcp_->AwaitReady()) << kcp_->Errors();
    // Something to send at once to each watch.
    const std::string body = R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}})";
    ASSERT_EQ(kcp_->StatusOf("POST", kRootMaps, "shard-admin", body), 201);
    ASSERT_EQ(kcp_->StatusOf("POST", kAdminMaps, "shard-admin", body), 201);
  }
  KcpProcess& kcp() { return *kcp_; }

  TempDir dir_;
  const std::string faults_file_ = dir_ / "faults";
  std::unique_ptr<KcpProcess> kcp_;
};

TEST_F(StopLive, AbortEndsEveryWorkspaceRequestAtSigtermWhileTheRestGoesOn) {  // 2.11
  Start({"--shutdown-delay-duration=30s"});
  Watch workspace(kcp(), kRootMaps);
  Watch admin(kcp(), kAdminMaps);
  ASSERT_TRUE(Eventually([&] { return workspace.began() && admin.began(); }));
  const std::string renewed = kcp().Get(kLeasePath).At({"spec", "renewTime"}).AsString();
  kcp().Signal(SIGTERM);
  ASSERT_TRUE(Eventually([&] { return workspace.ended(); }));
  EXPECT_TRUE(workspace.status().ok()) << "in order: " << workspace.status().ToString();
  EXPECT_EQ(kcp().StatusOf("GET", kRootMaps, "shard-admin"), 504);
  EXPECT_EQ(kcp().StatusOf("POST", kRootMaps, "shard-admin",
                           R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"late"}})"),
            504);
  EXPECT_EQ(kcp().StatusOf("GET", kAdminMaps, "shard-admin"), 200);
  const auto ready = kcp().Call("GET", "/readyz", "");
  ASSERT_TRUE(ready.ok());
  EXPECT_EQ(ready->status, 500);
  EXPECT_NE(ready->body.find("[-]shutdown failed"), std::string::npos) << ready->body;
  EXPECT_EQ(kcp().StatusOf("GET", "/livez", ""), 200);
  EXPECT_TRUE(Eventually([&] {
    return kcp().Get(kLeasePath).At({"spec", "renewTime"}).AsString() != renewed;
  })) << "renewals go on through the delay";
  EXPECT_FALSE(admin.ended());
  kcp().Signal(SIGKILL);
  kcp().AwaitExit();
}

TEST_F(StopLive, AbortExitsWithZeroAtOnceWhenOnlyWorkspaceWatchesAreOpen) {
  Start({});
  Watch workspace(kcp(), kRootMaps);
  ASSERT_TRUE(Eventually([&] { return workspace.began(); }));
  const auto start = steady_clock::now();
  kcp().Signal(SIGTERM);
  EXPECT_EQ(kcp().AwaitExit(), 0) << kcp().Errors();
  EXPECT_LT(ScaledSince(start), 40);
}

TEST_F(StopLive, LegacyWatchesHoldTheExitForSixtySecondsWhileNobodyNewGetsIn) {  // 2.9, 2.12
  Start({}, "shutdown-mode=legacy");
  Watch workspace(kcp(), kRootMaps);
  ASSERT_TRUE(Eventually([&] { return workspace.began(); }));
  const auto start = steady_clock::now();
  kcp().Signal(SIGTERM);
  HttpClientConfig config = kcp().client().config();
  ASSERT_TRUE(Eventually([&] {
    HttpClient fresh(config);
    ClientRequest request;
    request.target = "/readyz";
    return fresh.Do(request).code() == Code::kUnavailable;
  })) << "the listener closes at once";
  EXPECT_LT(ScaledSince(start), 50);
  EXPECT_TRUE(kcp().Running());
  EXPECT_FALSE(workspace.ended());
  EXPECT_EQ(kcp().AwaitExit(), 0);
  EXPECT_GE(ScaledSince(start), 58);
}

TEST_F(StopLive, AWatchGraceEndsLegacyWatchesInOrder) {  // 2.10
  Start({"--shutdown-watch-termination-grace-period=20s"}, "shutdown-mode=legacy");
  Watch workspace(kcp(), kRootMaps);
  ASSERT_TRUE(Eventually([&] { return workspace.began(); }));
  const auto start = steady_clock::now();
  kcp().Signal(SIGTERM);
  EXPECT_EQ(kcp().AwaitExit(), 0);
  EXPECT_LT(ScaledSince(start), 50);
  ASSERT_TRUE(Eventually([&] { return workspace.ended(); }));
  EXPECT_TRUE(workspace.status().ok()) << workspace.status().ToString();
}

TEST_F(StopLive, RetryAfterAnswers429WhileARequestStillRuns) {  // 2.10
  Start({"--shutdown-send-retry-after"}, "shutdown-mode=legacy");
  ASSERT_TRUE(WriteFileAtomic(faults_file_, "store-stall=2s").ok());
  std::atomic<int> slow{0};
  const std::string token = kcp().Token("shard-admin");
  std::thread runner([&] { slow = kcp().StatusOf("GET", kRootMaps, token); });
  EXPECT_TRUE(Eventually([&] { return kcp().Says("a request waits for the store"); })) << kcp().Errors();
  kcp().Signal(SIGTERM);
  EXPECT_TRUE(Eventually([&] {
    const auto answer = kcp().Call("GET", kAdminMaps, token);
    return answer.ok() && answer->status == 429 && answer->Header("retry-after") == "5" &&
           answer->Header("connection") == "close";
  })) << kcp().Errors();
  EXPECT_EQ(kcp().StatusOf("GET", "/livez?exclude=etcd", ""), 200) << "health paths are exempt";
  runner.join();
  EXPECT_EQ(slow, 200) << "what ran was finished";
  EXPECT_EQ(kcp().AwaitExit(), 0);
}

TEST_F(StopLive, AbortAnswers504ToWhatIsInFlight) {  // 2.11
  Start({"--shutdown-delay-duration=30s"});
  ASSERT_TRUE(WriteFileAtomic(faults_file_, "store-stall=20s").ok());
  std::atomic<int> slow{0};
  const std::string token = kcp().Token("shard-admin");
  std::thread runner([&] { slow = kcp().StatusOf("GET", kRootMaps, token); });
  EXPECT_TRUE(Eventually([&] { return kcp().Says("a request waits for the store"); })) << kcp().Errors();
  kcp().Signal(SIGTERM);
  runner.join();
  EXPECT_EQ(slow, 504);
  kcp().Signal(SIGKILL);
  kcp().AwaitExit();
}

TEST_F(StopLive, ASecondSignalExitsWithOne) {  // 2.9
  Start({"--shutdown-delay-duration=10m"});
  kcp().Signal(SIGTERM);
  ASSERT_TRUE(Eventually([&] { return kcp().Says("stopping"); }));
  kcp().Signal(SIGTERM);
  EXPECT_EQ(kcp().AwaitExit(), 1);
}

TEST_F(StopLive, AHangOnPurposeNeedsSigkill) {  // S12
  Start({}, "hang-on-stop");
  kcp().Signal(SIGTERM);
  ASSERT_TRUE(Eventually([&] { return kcp().Says("hanging on purpose"); })) << kcp().Errors();
  EXPECT_TRUE(kcp().Running());
  kcp().Signal(SIGKILL);
  EXPECT_EQ(kcp().AwaitExit(), -SIGKILL);
}

}  // namespace
}  // namespace lockkeeper::kcp
