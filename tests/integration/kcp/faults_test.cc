// The knobs with which a roll meets a bad build or a bad host (S12).
#include <gtest/gtest.h>
#include <signal.h>

#include <memory>

#include "api/base/file.h"
#include "api/server/kcp/build_version.h"
#include "api/server/kcp/journal.h"
#include "tests/integration/kcp/kcp_process.h"

namespace lockkeeper::kcp {
namespace {

class FaultsLive : public ::testing::Test {
 protected:
  KcpProcess& Make(const std::string& slot, const std::string& faults, const std::string& executable = "") {
    slots_.push_back(std::make_unique<KcpProcess>(
        dir_, KcpProcess::Setup{.slot = slot,
                                .env = {{"LOCKKEEPER_FAULTS", faults}, {"LOCKKEEPER_FAULTS_FILE", dir_ / "faults"}},
                                .executable = executable}));
    slots_.back()->Start();
    return *slots_.back();
  }
  void Set(const std::string& faults) { ASSERT_TRUE(WriteFileAtomic(dir_ / "faults", faults).ok()); }

  TempDir dir_;
  std::vector<std::unique_ptr<KcpProcess>> slots_;
};

TEST_F(FaultsLive, AnUnknownFaultEndsTheStart) {
  KcpProcess& kcp = Make("blue", "never-redy");
  EXPECT_EQ(kcp.AwaitExit(), 1);
  EXPECT_TRUE(kcp.Says("unknown fault \"never-redy\"")) << kcp.Errors();
}

TEST_F(FaultsLive, ItCanCrashBeforeItListensAndAfterItIsReady) {
  EXPECT_EQ(Make("one", "crash-at-start").AwaitExit(), 1);
  KcpProcess& two = Make("two", "crash-after-ready=300ms");
  ASSERT_TRUE(two.AwaitReady()) << two.Errors();
  EXPECT_EQ(two.AwaitExit(), 1);
}

TEST_F(FaultsLive, NoTlsListensAndNeverAnswers) {
  KcpProcess& kcp = Make("blue", "no-tls");
  ASSERT_TRUE(kcp.AwaitListening());
  ClientRequest request;
  request.target = "/readyz";
  request.timeout = std::chrono::milliseconds(300);
  EXPECT_EQ(kcp.client().Do(request).code(), Code::kTimeout);
  kcp.Signal(SIGTERM);
  EXPECT_EQ(kcp.AwaitExit(), 0);
}

TEST_F(FaultsLive, AnIdleLeaderHoldsTheLeaseAndReconcilesNothing) {  // 1.12
  Set("idle-leader");
  KcpProcess& kcp = Make("blue", "");
  ASSERT_TRUE(kcp.AwaitReady());
  ASSERT_TRUE(Eventually([&] { return !kcp.LeaseHolder().empty(); }));
  ASSERT_EQ(kcp.CreateWorkspace("stuck"), 201);
  const std::string renewed = kcp.Get(kLeasePath).At({"spec", "renewTime"}).AsString();
  ASSERT_TRUE(Eventually([&] { return kcp.Get(kLeasePath).At({"spec", "renewTime"}).AsString() != renewed; }));
  EXPECT_EQ(kcp.WorkspacePhase("stuck"), "Scheduling");
  Set("");
  EXPECT_TRUE(Eventually([&] { return kcp.WorkspacePhase("stuck") == "Ready"; })) << "the file is read live";
}

TEST_F(FaultsLive, ARefusedCreateLeavesNobodyLeading) {
  Set("refuse-lease-create");
  KcpProcess& kcp = Make("blue", "");
  ASSERT_TRUE(kcp.AwaitReady());
  ASSERT_EQ(kcp.CreateWorkspace("waits"), 201);
  EXPECT_TRUE(kcp.LeaseHolder().empty());
  Set("");
  EXPECT_TRUE(Eventually([&] { return kcp.WorkspacePhase("waits") == "Ready"; }));
}

TEST_F(FaultsLive, AStalledStoreCostsTheLeaseAndReadinessAndBothComeBack) {  // 4.6
  KcpProcess& kcp = Make("blue", "");
  ASSERT_TRUE(kcp.AwaitReady());
  ASSERT_TRUE(Eventually([&] { return !kcp.LeaseHolder().empty(); }));
  const std::string holder = kcp.LeaseHolder();
  Set("store-stall=1s");
  ASSERT_TRUE(Eventually([&] {
    const auto answer = kcp.Call("GET", "/readyz", "");
    return answer.ok() && answer->status == 500 && answer->body.find("[-]etcd failed") != std::string::npos;
  }));
  ASSERT_TRUE(Eventually([&] { return kcp.StatusOf("GET", "/readyz", "") == 200; }));
  ASSERT_EQ(kcp.CreateWorkspace("after"), 201);
  EXPECT_TRUE(Eventually([&] { return kcp.WorkspacePhase("after") == "Ready"; }));
  EXPECT_EQ(kcp.LeaseHolder(), holder) << "it takes its own lease again";
  const auto lines = ReadJournals({dir_ / "reconciles.log"});
  ASSERT_TRUE(lines.ok());
  int led = 0;
  for (const SpanRecord& span : SpansOf(*lines)) led += span.kind == "leading" ? 1 : 0;
  EXPECT_GE(led, 2) << "leadership was lost in between";
}

TEST_F(FaultsLive, ARejectedTokenIs401WhileOthersWork) {
  Set("reject-token=shard-admin");
  KcpProcess& kcp = Make("blue", "");
  ASSERT_TRUE(kcp.AwaitReady());
  EXPECT_EQ(kcp.StatusOf("GET", kLeasePath, "shard-admin"), 401);
  EXPECT_EQ(kcp.StatusOf("GET", "/clusters/root/api/v1/namespaces", "kcp-admin"), 200);
}

TEST_F(FaultsLive, SlowAdmissionRefusesTheFirstWorkspaces) {  // 3.1
  KcpProcess& kcp = Make("blue", "slow-admission=1500ms");
  ASSERT_TRUE(kcp.AwaitReady());
  const auto answer = kcp.Call("POST", "/clusters/root/apis/tenancy.kcp.io/v1alpha1/workspaces", "kcp-admin", "{}");
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->status, 403);
  EXPECT_NE(answer->body.find("not yet ready to handle request"), std::string::npos) << answer->body;
  EXPECT_TRUE(Eventually([&] { return kcp.CreateWorkspace("later") == 201; }));
}

TEST_F(FaultsLive, AFlippedStorageVersionIsUnreadableForTheOlderBuildAlone) {  // 4.9, S11
  ASSERT_TRUE(WriteBuild(KCP_LIKE, "v0.27.0", dir_ / "old/kcp", "storage-flip").ok());
  ASSERT_TRUE(WriteBuild(KCP_LIKE, "v0.28.0", dir_ / "new/kcp", "storage-flip").ok());
  KcpProcess& old_build = Make("old", "", dir_ / "old/kcp");
  ASSERT_TRUE(old_build.AwaitReady()) << old_build.Errors();
  const std::string shard = "/clusters/root/apis/core.kcp.io/v1alpha1/shards/root";
  EXPECT_EQ(old_build.StatusOf("GET", shard, "shard-admin"), 200);
  KcpProcess& new_build = Make("new", "", dir_ / "new/kcp");
  ASSERT_TRUE(new_build.AwaitReady()) << new_build.Errors();
  EXPECT_EQ(new_build.StatusOf("GET", shard, "shard-admin"), 200);
  EXPECT_EQ(old_build.StatusOf("GET", shard, "shard-admin"), 500);
}

}  // namespace
}  // namespace lockkeeper::kcp
