// Two kcp-like processes on one store: who leads, who reconciles, and how a hand-over goes. Numbers are those of the
// facts page; times are scaled by kScale.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <random>
#include <set>

#include "api/server/kcp/journal.h"
#include "tests/integration/kcp/kcp_process.h"

namespace lockkeeper::kcp {
namespace {

using std::chrono::steady_clock;

double SecondsSince(steady_clock::time_point start) {
  return std::chrono::duration<double>(steady_clock::now() - start).count();
}

class ElectionLive : public ::testing::Test {
 protected:
  ElectionLive() : blue_(dir_, {.slot = "blue"}), green_(dir_, {.slot = "green"}) {}

  // Blue leads, green stands by.
  void StartBoth() {
    blue_.Start();
    ASSERT_TRUE(blue_.AwaitReady()) << blue_.Errors();
    ASSERT_TRUE(Eventually([&] { return !blue_.LeaseHolder().empty(); }));
    holder_ = blue_.LeaseHolder();
    green_.Start();
    ASSERT_TRUE(green_.AwaitReady()) << green_.Errors();
  }
  std::vector<SpanRecord> Spans() {
    auto lines = ReadJournals({dir_ / "reconciles.log"});
    EXPECT_TRUE(lines.ok()) << lines.status().ToString();
    return SpansOf(lines.value_or({}));
  }
  std::set<int64_t> Reconcilers() {
    std::set<int64_t> pids;
    for (const SpanRecord& span : Spans()) {
      if (span.kind == "reconcile") pids.insert(span.pid);
    }
    return pids;
  }
  void ExpectNeverTwo() {
    const auto overlaps = FindOverlaps(Spans());
    EXPECT_TRUE(overlaps.empty()) << overlaps.size() << " overlaps, the first: " << overlaps.front();
  }

  TempDir dir_;
  KcpProcess blue_;
  KcpProcess green_;
  std::string holder_;
};

TEST_F(ElectionLive, OnlyTheHolderMovesAWorkspaceToReadyWhicheverSlotWasAsked) {  // S7, S9, 3.2 to 3.5
  StartBoth();
  ASSERT_EQ(green_.CreateWorkspace("probe"), 201);
  ASSERT_TRUE(Eventually([&] { return green_.WorkspacePhase("probe") == "Ready"; })) << green_.Errors();
  EXPECT_EQ(Reconcilers(), std::set<int64_t>{blue_.pid()});
  const Json workspace = blue_.Get("/clusters/root/apis/tenancy.kcp.io/v1alpha1/workspaces/probe");
  const std::string cluster = workspace.At({"spec", "cluster"}).AsString();
  EXPECT_EQ(cluster.size(), 16u);
  EXPECT_NE(workspace.At({"spec", "URL"}).AsString().find("/clusters/root:probe"), std::string::npos);
  for (const std::string& path : {std::string("root:probe"), cluster}) {
    const Json logical = green_.Get("/clusters/" + path + "/apis/core.kcp.io/v1alpha1/logicalclusters/cluster");
    EXPECT_EQ(logical.At({"status", "phase"}).AsString(), "Ready") << path;
  }
  ASSERT_EQ(green_.CreateWorkspace("child", "root:probe"), 201);
  ASSERT_TRUE(Eventually([&] { return green_.WorkspacePhase("child", "root:probe") == "Ready"; }));
  EXPECT_EQ(green_.StatusOf("DELETE", "/clusters/root/apis/tenancy.kcp.io/v1alpha1/workspaces/probe", "kcp-admin"),
            200);
  EXPECT_TRUE(Eventually([&] {
    return blue_.StatusOf("GET", "/clusters/root/apis/tenancy.kcp.io/v1alpha1/workspaces/probe", "kcp-admin") == 404;
  }));
  EXPECT_EQ(green_.StatusOf("GET", "/clusters/root:probe/api/v1/namespaces", "kcp-admin"), 404);
  ExpectNeverTwo();
}

TEST_F(ElectionLive, AKilledLeaderLeavesItsLeaseAndTheStandbyWaitsItOut) {  // 1.7, S10
  StartBoth();
  blue_.Signal(SIGKILL);
  ASSERT_EQ(blue_.AwaitExit(), -SIGKILL);
  const auto died = steady_clock::now();
  EXPECT_EQ(green_.LeaseHolder(), holder_);
  ASSERT_EQ(green_.CreateWorkspace("waits"), 201);  // 3.7: accepted while nobody leads
  ASSERT_TRUE(Eventually([&] { return green_.LeaseHolder() != holder_; }));
  const double waited = SecondsSince(died) / kScale;
  EXPECT_GE(waited, 55) << "scaled seconds";
  EXPECT_LE(waited, 150) << "scaled seconds; 69 on a machine at rest";
  EXPECT_TRUE(Eventually([&] { return green_.WorkspacePhase("waits") == "Ready"; }));
  EXPECT_EQ(green_.Get(kLeasePath).At({"spec", "leaseTransitions"}).AsInt(), 1);
  ExpectNeverTwo();
}

TEST_F(ElectionLive, ADeletedLeaseOfADeadHolderIsTakenAtTheNextPoll) {  // 1.8
  StartBoth();
  blue_.Signal(SIGKILL);
  ASSERT_EQ(blue_.AwaitExit(), -SIGKILL);
  ASSERT_EQ(green_.StatusOf("DELETE", kLeasePath, "shard-admin"), 200);
  const auto deleted = steady_clock::now();
  ASSERT_TRUE(Eventually([&] { return !green_.LeaseHolder().empty(); }));
  EXPECT_LE(SecondsSince(deleted) / kScale, 45) << "scaled seconds, far from 60; 4.4 on a machine at rest";
  EXPECT_NE(green_.LeaseHolder(), holder_);
  EXPECT_EQ(green_.Get(kLeasePath).At({"spec", "leaseTransitions"}).AsInt(), 0);
  ExpectNeverTwo();
}

TEST_F(ElectionLive, ALiveHolderCanWinItsDeletedLeaseBackSoADeleteIsNoHandOver) {  // 1.9; how often: elector_test
  StartBoth();
  const auto renew_time = [&] { return green_.Get(kLeasePath).At({"spec", "renewTime"}).AsString(); };
  std::minstd_rand random(1);
  int old_wins = 0;
  for (int round = 0; round < 20 && old_wins == 0; ++round) {
    // A loser of the last round has given up after five scaled seconds; then a time that suits neither.
    for (int renewals = 0; renewals < 5; ++renewals) {
      const std::string last = renew_time();
      ASSERT_TRUE(Eventually([&] { return renew_time() != last; }));
    }
    const auto phase = std::chrono::milliseconds(random() % static_cast<unsigned>(2000 * kScale));
    Eventually([] { return false; }, phase);
    const std::string holder = green_.LeaseHolder();
    ASSERT_EQ(green_.StatusOf("DELETE", kLeasePath, "shard-admin"), 200);
    std::string now;
    ASSERT_TRUE(Eventually([&] { return !(now = green_.LeaseHolder()).empty(); }));
    old_wins += now == holder ? 1 : 0;
  }
  EXPECT_EQ(old_wins, 1);
}

TEST_F(ElectionLive, AStoppedLeaderRenewsNoMoreAndItsLeaseIsNotReleased) {  // 1.5, 1.15
  StartBoth();
  blue_.Signal(SIGTERM);
  ASSERT_EQ(blue_.AwaitExit(), 0) << blue_.Errors();
  const Json before = green_.Get(kLeasePath);
  EXPECT_EQ(before.At({"spec", "holderIdentity"}).AsString(), holder_);
  EXPECT_EQ(before.At({"spec", "leaseDurationSeconds"}).AsInt(), 60);
  ASSERT_TRUE(Eventually([&] { return green_.LeaseHolder() != holder_; }));
  ExpectNeverTwo();
}

TEST_F(ElectionLive, AGuardedDeleteHitsOnlyTheLeaseThatWasRead) {  // 1.10
  StartBoth();
  const Json lease = green_.Get(kLeasePath);
  const std::string uid = lease.At({"metadata", "uid"}).AsString();
  ASSERT_TRUE(Eventually([&] {
    return green_.Get(kLeasePath).At({"metadata", "resourceVersion"}) != lease.At({"metadata", "resourceVersion"});
  }));
  const auto body = [](const std::string& u, const std::string& version) {
    return R"({"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":")" + u + R"(","resourceVersion":")" +
           version + "\"}}";
  };
  EXPECT_EQ(green_.StatusOf("DELETE", kLeasePath, "shard-admin",
                            body(uid, lease.At({"metadata", "resourceVersion"}).AsString())),
            409);
  EXPECT_EQ(green_.LeaseHolder(), holder_);
}

TEST(WithoutElection, BothSlotsReconcileAndTheOracleSeesIt) {  // 1.1, S8
  TempDir dir;
  KcpProcess blue(dir, {.slot = "blue", .election = false});
  KcpProcess green(dir, {.slot = "green", .election = false});
  blue.Start();
  green.Start();
  ASSERT_TRUE(blue.AwaitReady() && green.AwaitReady());
  ASSERT_EQ(green.CreateWorkspace("probe"), 201);
  ASSERT_TRUE(Eventually([&] { return green.WorkspacePhase("probe") == "Ready"; }));
  EXPECT_TRUE(blue.LeaseHolder().empty());
  for (KcpProcess* slot : {&blue, &green}) {
    slot->Signal(SIGTERM);
    EXPECT_EQ(slot->AwaitExit(), 0);
  }
  const auto lines = ReadJournals({dir / "reconciles.log"});
  ASSERT_TRUE(lines.ok());
  EXPECT_FALSE(FindOverlaps(SpansOf(*lines)).empty()) << "two leaders must be seen";
}

}  // namespace
}  // namespace lockkeeper::kcp
