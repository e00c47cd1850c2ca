// HttpPeer against live kcp-like processes.
#include "reconcilers/peer/http_peer.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <memory>
#include <string>
#include <thread>

#include "api/base/file.h"
#include "reconcilers/peer/peer_answers.h"
#include "tests/integration/kcp/kcp_process.h"
#include "tests/integration/peer/relay.h"

namespace lockkeeper {
namespace {

using kcp::Eventually;
using kcp::KcpProcess;

class PeerLive : public ::testing::Test {
 protected:
  PeerLive() : blue_(dir_, {.slot = "blue", .env = {{"LOCKKEEPER_FAULTS_FILE", dir_ / "faults"}}}) {}

  void Start() {
    blue_.Start();
    ASSERT_TRUE(blue_.AwaitReady()) << blue_.Errors();
  }
  ServerSpec Spec(const std::string& context = "shard-base") const {
    ServerSpec spec;
    spec.template_.readiness.ca_file = blue_.root() + "/apiserver.crt";
    spec.access = AccessSpec{};
    spec.access->kubeconfig_file = blue_.root() + "/admin.kubeconfig";
    spec.access->context = context;
    spec.lease = LeaseRef{};
    spec.lease->path = "/clusters/system:admin";
    spec.lease->name = "kcp-controllers";
    spec.probe.type = ProbeType::kWorkspace;
    return spec;
  }

  kcp::TempDir dir_;
  KcpProcess blue_;
  HttpPeer peer_{SystemClock()};
};

TEST_F(PeerLive, ReadinessIsReadOnTheSlotsOwnPortThroughItsWholeLife) {
  const ServerSpec spec = Spec();
  ASSERT_TRUE(WriteFileAtomic(dir_ / "faults", "start-delay=1s,never-ready").ok());
  blue_.Start();
  ASSERT_TRUE(blue_.AwaitListening());
  ServerSpec impatient = spec;
  impatient.template_.readiness.attempt_timeout_milliseconds = 100;
  EXPECT_EQ(peer_.Readyz(impatient, blue_.port()).code(), Code::kTimeout) << "connects, and hangs";
  ASSERT_TRUE(Eventually([&] { return peer_.Readyz(spec, blue_.port()).ok(); }));
  const auto red = peer_.Readyz(spec, blue_.port());
  ASSERT_TRUE(red.ok()) << red.status().ToString();
  EXPECT_EQ(red->status, 500);
  EXPECT_NE(red->failed_checks.find("poststarthook/kcp-start-informers"), std::string::npos) << red->failed_checks;
  EXPECT_FALSE(red->shutting_down);
  ASSERT_TRUE(WriteFileAtomic(dir_ / "faults", "").ok());
  ASSERT_TRUE(Eventually([&] { return peer_.Readyz(spec, blue_.port()).value_or({}).status == 200; }));
  blue_.Signal(SIGKILL);
  ASSERT_EQ(blue_.AwaitExit(), -SIGKILL);
  EXPECT_EQ(peer_.Readyz(spec, blue_.port()).code(), Code::kUnavailable);
}

TEST_F(PeerLive, AShutdownIsSeenInReadyz) {
  KcpProcess green(dir_, {.slot = "green", .flags = {"--shutdown-delay-duration=10m"}});
  green.Start();
  ASSERT_TRUE(green.AwaitReady()) << green.Errors();
  ServerSpec spec = Spec();
  spec.template_.readiness.ca_file = green.root() + "/apiserver.crt";
  EXPECT_EQ(peer_.Readyz(spec, green.port()).value_or({}).status, 200);
  green.Signal(SIGTERM);
  EXPECT_TRUE(Eventually([&] { return peer_.Readyz(spec, green.port()).value_or({}).shutting_down; }));
}

TEST_F(PeerLive, ACertificateOfAnotherIsRefusedUnlessInsecure) {
  Start();
  KcpProcess other(dir_, {.slot = "other"});
  other.Start();
  ASSERT_TRUE(other.AwaitReady());
  ServerSpec spec = Spec();
  spec.template_.readiness.ca_file = other.root() + "/apiserver.crt";
  EXPECT_EQ(peer_.Readyz(spec, blue_.port()).code(), Code::kUnauthorized);
  spec.template_.readiness.insecure = true;
  EXPECT_EQ(peer_.Readyz(spec, blue_.port()).value_or({}).status, 200);
  spec.template_.readiness.insecure = false;
  spec.template_.readiness.ca_file = "";
  EXPECT_EQ(peer_.Readyz(spec, blue_.port()).code(), Code::kInvalid);
  spec.template_.readiness.ca_file = dir_ / "absent.crt";
  EXPECT_EQ(peer_.Readyz(spec, blue_.port()).code(), Code::kUnavailable) << "a missing file is not an absent object";
}

TEST_F(PeerLive, TheLeaseIsReadAndDeletedOnlyAsItWasRead) {
  Start();
  const ServerSpec spec = Spec();
  ASSERT_TRUE(Eventually([&] { return peer_.GetLease(spec).ok(); }));
  const auto lease = peer_.GetLease(spec);
  ASSERT_TRUE(lease.ok()) << lease.status().ToString();
  EXPECT_EQ(lease->duration_seconds, 60);
  EXPECT_NE(lease->holder.find('_'), std::string::npos);
  EXPECT_GT(lease->renew_time, Time{});
  EXPECT_GT(lease->read_at, Time{});
  ASSERT_TRUE(Eventually([&] { return peer_.GetLease(spec).value_or(*lease).renew_time > lease->renew_time; }));
  EXPECT_EQ(peer_.DeleteLease(spec, *lease).code(), Code::kPrecondition) << "it was renewed since";
  // Held still: nobody renews it any more.
  ASSERT_TRUE(WriteFileAtomic(dir_ / "faults", "refuse-lease-renew,refuse-lease-create").ok());
  const auto settled = [&] {
    const auto read = peer_.GetLease(spec);
    return read.ok() && peer_.DeleteLease(spec, *read).ok();
  };
  EXPECT_TRUE(Eventually(settled));
  EXPECT_EQ(peer_.GetLease(spec).code(), Code::kNotFound);
  EXPECT_EQ(peer_.DeleteLease(spec, *lease).code(), Code::kNotFound);
}

TEST_F(PeerLive, ALeaseInAClusterThatIsNotServedIsUnknown) {
  Start();
  ServerSpec spec = Spec();
  spec.lease->path = "/clusters/system:nowhere";
  EXPECT_EQ(peer_.GetLease(spec).code(), Code::kUnavailable);
  spec.lease->path = "/clusters/system:admin";
  spec.access->context = "base";  // kcp-admin may not look there (1.3)
  EXPECT_EQ(peer_.GetLease(spec).code(), Code::kForbidden);
  spec.access->context = "nobody";
  EXPECT_EQ(peer_.GetLease(spec).code(), Code::kUnavailable) << "a missing context is not a missing Lease";
  spec.access->kubeconfig_file = dir_ / "absent";
  EXPECT_EQ(peer_.GetLease(spec).code(), Code::kUnavailable);
}

TEST_F(PeerLive, AProbeWorkspaceIsMadeOnceBecomesReadyAndGoes) {
  Start();
  for (const char* context : {"root", "base", "shard-base"}) {
    const ServerSpec spec = Spec(context);
    const std::string name = std::string("roll-probe-") + context;
    ASSERT_TRUE(Eventually([&] { return peer_.CreateProbe(spec, name).ok(); }));
    EXPECT_TRUE(peer_.CreateProbe(spec, name).ok()) << "a second time is the same";
    ASSERT_TRUE(Eventually([&] { return peer_.GetProbe(spec, name).value_or({}).ready; })) << blue_.Errors();
    EXPECT_EQ(peer_.ListProbes(spec).value_or({}), std::vector<std::string>{name});
    EXPECT_TRUE(peer_.DeleteProbe(spec, name).ok());
    ASSERT_TRUE(Eventually([&] { return peer_.GetProbe(spec, name).code() == Code::kNotFound; }));
    EXPECT_EQ(peer_.DeleteProbe(spec, name).code(), Code::kNotFound);
  }
  EXPECT_EQ(peer_.DeleteProbe(Spec(), "production").code(), Code::kInvalid) << "only probe objects are deleted";
}

TEST_F(PeerLive, AProbeOfAnIdleLeaderStaysUnready) {
  ASSERT_TRUE(WriteFileAtomic(dir_ / "faults", "idle-leader").ok());
  Start();
  const ServerSpec spec = Spec();
  ASSERT_TRUE(Eventually([&] { return peer_.CreateProbe(spec, "roll-probe-a").ok(); }));
  const auto probe = peer_.GetProbe(spec, "roll-probe-a");
  ASSERT_TRUE(probe.ok());
  EXPECT_FALSE(probe->ready);
  EXPECT_EQ(probe->phase, "Scheduling");
}

TEST_F(PeerLive, SlowAdmissionIsUnavailableNotForbidden) {
  ASSERT_TRUE(WriteFileAtomic(dir_ / "faults", "slow-admission=1h").ok());
  Start();
  EXPECT_EQ(peer_.CreateProbe(Spec(), "roll-probe-a").code(), Code::kUnavailable);
}

TEST_F(PeerLive, AProbeConfigMapServesForABareApiServer) {
  Start();
  ServerSpec spec = Spec("root");
  spec.probe.type = ProbeType::kConfigMap;
  EXPECT_EQ(peer_.GetProbe(spec, "roll-probe-a").code(), Code::kNotFound);
  EXPECT_TRUE(peer_.CreateProbe(spec, "roll-probe-a").ok());
  EXPECT_TRUE(peer_.GetProbe(spec, "roll-probe-a").value_or({}).ready);
  EXPECT_EQ(peer_.ListProbes(spec).value_or({}), std::vector<std::string>{"roll-probe-a"});
  EXPECT_TRUE(peer_.DeleteProbe(spec, "roll-probe-a").ok());
  spec.probe.type = ProbeType::kNone;
  EXPECT_EQ(peer_.CreateProbe(spec, "roll-probe-a").code(), Code::kInvalid);
}

TEST_F(PeerLive, ARestartOfTheServerIsNoUnknownOnceItIsBack) {  // stale pooled connections, a new kcp-admin token
  Start();
  const ServerSpec spec = Spec("root");
  ASSERT_TRUE(Eventually([&] { return peer_.CreateProbe(spec, "roll-probe-a").ok(); }));
  const int port = blue_.port();
  blue_.Signal(SIGTERM);
  ASSERT_EQ(blue_.AwaitExit(), 0);
  KcpProcess again(dir_, {.slot = "blue", .flags = {"--secure-port=" + std::to_string(port)}});
  again.Start();
  ASSERT_TRUE(again.AwaitReady()) << again.Errors();
  const auto probe = peer_.GetProbe(spec, "roll-probe-a");
  EXPECT_TRUE(probe.ok()) << probe.status().ToString();
}

// Two slots behind a front, and a client whose pooled connection still leads to the old one.
class PeerBehindFront : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::vector<std::string> flags = {"--shard-base-url=https://127.0.0.1:" + std::to_string(front_.port()),
                                            "--shutdown-delay-duration=10m"};
    blue_ = std::make_unique<KcpProcess>(dir_, KcpProcess::Setup{.slot = "blue", .flags = flags});
    green_ = std::make_unique<KcpProcess>(dir_, KcpProcess::Setup{.slot = "green", .flags = flags});
    blue_->Start();
    ASSERT_TRUE(blue_->AwaitReady()) << blue_->Errors();
    ASSERT_TRUE(MakeDirs(green_->root(), 0700).ok());
    for (const char* name : {"apiserver.crt", "apiserver.key", "sa.key", ".admin-token-store", "admin.kubeconfig"}) {
      const auto content = ReadFile(blue_->root() + "/" + name);
      ASSERT_TRUE(content.ok()) << name;
      ASSERT_TRUE(WriteFileAtomic(green_->root() + "/" + name, *content, 0600).ok());
    }
    green_->Start();
    ASSERT_TRUE(green_->AwaitReady()) << green_->Errors();
    front_.SetBackend(blue_->port());
    spec_.access = AccessSpec{};
    spec_.access->kubeconfig_file = blue_->root() + "/admin.kubeconfig";
    spec_.access->context = "shard-base";
    spec_.lease = LeaseRef{};
    spec_.lease->path = "/clusters/system:admin";
    spec_.lease->name = "kcp-controllers";
    spec_.probe.type = ProbeType::kWorkspace;
    ASSERT_TRUE(Eventually([&] { return peer_.CreateProbe(spec_, "roll-probe-a").ok(); }));
    ASSERT_TRUE(peer_.GetProbe(spec_, "roll-probe-a").ok());  // its connection is pooled now
  }

  kcp::TempDir dir_;
  Relay front_;
  std::unique_ptr<KcpProcess> blue_, green_;
  ServerSpec spec_;
  HttpPeer peer_{SystemClock()};
};

TEST_F(PeerBehindFront, NotNowFromTheOldSlotIsAskedAgainOfTheNewOne) {  // 2.11
  front_.SetBackend(green_->port());
  blue_->Signal(SIGTERM);  // abort mode with a long delay: 504 for workspaces, the connection stays open
  ASSERT_TRUE(
      Eventually([&] { return blue_->StatusOf("GET", "/clusters/root/api/v1/namespaces", "shard-admin") == 504; }));
  const auto probe = peer_.GetProbe(spec_, "roll-probe-a");
  EXPECT_TRUE(probe.ok()) << probe.status().ToString();
  EXPECT_TRUE(peer_.GetLease(spec_).ok());
}

TEST_F(PeerBehindFront, ADeadOldSlotLeavesNoObservationUnknown) {
  front_.SetBackend(green_->port());
  blue_->Signal(SIGKILL);
  ASSERT_EQ(blue_->AwaitExit(), -SIGKILL);
  const auto lease = peer_.GetLease(spec_);
  EXPECT_TRUE(lease.ok()) << lease.status().ToString();
  EXPECT_TRUE(peer_.GetProbe(spec_, "roll-probe-a").ok());
}

TEST_F(PeerLive, ACancelEndsACallAtOnce) {
  ASSERT_TRUE(WriteFileAtomic(dir_ / "faults", "no-tls").ok());
  blue_.Start();
  ASSERT_TRUE(blue_.AwaitListening());
  CancelToken cancel;
  HttpPeer peer(SystemClock(), &cancel);
  ServerSpec spec = Spec();
  spec.template_.readiness.attempt_timeout_milliseconds = 60000;
  Code code = Code::kOk;
  std::thread caller([&] { code = peer.Readyz(spec, blue_.port()).code(); });
  cancel.Cancel();
  caller.join();
  EXPECT_EQ(code, Code::kCancelled);
}

}  // namespace
}  // namespace lockkeeper
