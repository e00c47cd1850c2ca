// Flags, durations and faults of a kcp-like server.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "api/server/kcp/durations.h"
#include "api/server/kcp/faults.h"
#include "api/server/kcp/options.h"

namespace lockkeeper::kcp {
namespace {

struct FlagCase {
  std::string name;
  std::vector<std::string> args;
  std::string error;  // a part of the message; "" for accepted
};
void PrintTo(const FlagCase& c, std::ostream* out) { *out << c.name; }

class FlagTable : public ::testing::TestWithParam<FlagCase> {};

TEST_P(FlagTable, IsAcceptedOrRefusedWithItsReason) {
  const auto options = ParseStartFlags(GetParam().args);
  if (GetParam().error.empty()) {
    EXPECT_TRUE(options.ok()) << options.status().ToString();
  } else {
    ASSERT_FALSE(options.ok());
    EXPECT_NE(options.status().message().find(GetParam().error), std::string::npos) << options.status().ToString();
  }
}

INSTANTIATE_TEST_SUITE_P(
    Start, FlagTable,
    ::testing::Values(
        FlagCase{"NoFlagsAtAll", {}, ""},
        FlagCase{"AnUnknownFlag", {"--enable-sharding"}, "unknown flag: --enable-sharding"},
        FlagCase{"AWordThatIsNoFlag", {"blue"}, "unknown argument \"blue\""},
        FlagCase{"AFlagWithoutItsValue", {"--root-directory"}, "flag needs an argument: --root-directory"},
        FlagCase{"PortZeroAlone", {"--secure-port=0"}, "--experimental-bind-free-port"},
        FlagCase{"PortZeroWithTheHiddenFlag", {"--secure-port=0", "--experimental-bind-free-port"}, ""},
        FlagCase{"APortTooHigh", {"--secure-port=65536"}, "port from 0 to 65535"},
        FlagCase{"APortThatIsNoNumber", {"--secure-port", "https"}, "port from 0 to 65535"},
        FlagCase{"AStoreByPath", {"--etcd-servers", "sqlite:///var/lib/kcp.db"}, ""},
        FlagCase{"AStoreByRelativePath", {"--etcd-servers=sqlite://kcp.db"}, "embedded or sqlite:///path"},
        FlagCase{"ARealEtcd", {"--etcd-servers=http://127.0.0.1:2379"}, "embedded or sqlite:///path"},
        FlagCase{"ABooleanWithAValue", {"--enable-leader-election=false"}, ""},
        FlagCase{"ABooleanWithAWrongValue", {"--enable-leader-election=si"}, "must be true or false"},
        FlagCase{"ADurationWithoutAUnit", {"--shutdown-delay-duration=5"}, "is not a duration"},
        FlagCase{"TheThreeShutdownFlags",
                 {"--shutdown-delay-duration=5s", "--shutdown-send-retry-after",
                  "--shutdown-watch-termination-grace-period=1m"},
                 ""},
        FlagCase{"AChanceAboveOne", {"--goaway-chance=1.5"}, "from 0 to 1"},
        FlagCase{"NoFilesWithoutCertificates", {"--root-directory=", "--etcd-servers=sqlite:///a"}, "--tls-cert-file"},
        FlagCase{"NoFilesWithTheEmbeddedStore", {"--root-directory="}, "--etcd-servers"},
        FlagCase{"ACertificateWithoutItsKey", {"--tls-cert-file=a"}, "go together"},
        FlagCase{"FlagsThatChangeNothingHere", {"--feature-gates=A=true", "-v=4", "--batteries-included", "user"}, ""}),
    [](const auto& param) { return param.param.name; });

TEST(Flags, FillTheOptionsAndTheLastOneCounts) {
  const auto options =
      ParseStartFlags({"--root-directory", "/r/blue", "--etcd-servers=sqlite:///s/kcp.db", "--bind-address=127.0.0.1",
                       "--secure-port", "6444", "--secure-port=6445", "--shard-base-url=https://front:6443",
                       "--enable-leader-election", "--goaway-chance=0.02", "--shutdown-delay-duration=1m30s"});
  ASSERT_TRUE(options.ok()) << options.status().ToString();
  EXPECT_EQ(options->root_directory, "/r/blue");
  EXPECT_EQ(options->cert_dir, "/r/blue");
  EXPECT_EQ(options->StorePath(), "/s/kcp.db");
  EXPECT_EQ(options->secure_port, 6445);
  EXPECT_TRUE(options->leader_election);
  EXPECT_EQ(options->goaway_chance, 0.02);
  EXPECT_EQ(options->shutdown_delay, Seconds(90));
  EXPECT_EQ(options->lease_name, "kcp-controllers");
}

TEST(Flags, ElectionIsOffByDefaultAndTheStoreIsEmbedded) {  // 1.1, 4.1
  const auto options = ParseStartFlags({});
  ASSERT_TRUE(options.ok());
  EXPECT_FALSE(options->leader_election);
  EXPECT_TRUE(options->embedded_store());
  EXPECT_EQ(options->StorePath(), ".kcp/etcd-server/member.db");
}

TEST(Durations, AreReadAsGoWritesThem) {
  EXPECT_EQ(*ParseGoDuration("0"), Duration::zero());
  EXPECT_EQ(*ParseGoDuration("1.5s"), Milliseconds(1500));
  EXPECT_EQ(*ParseGoDuration("1h2m3s4ms"), Seconds(3723.004));
  for (const char* bad : {"", "s", "5", "-1s", "1x", "1s2", "nan", "1e3s", "99999999999h"}) {
    EXPECT_FALSE(ParseGoDuration(bad).ok()) << bad;
  }
}

TEST(Durations, AScaleMultipliesAndNeverReachesZero) {
  EXPECT_EQ(TimeScale(0.02).Of(60), Milliseconds(1200));
  EXPECT_EQ(TimeScale(0.02).Of(0.001), Milliseconds(1));
  EXPECT_EQ(TimeScale(0.02).Of(0), Duration::zero());
}

TEST(Faults, AreAListOfNamesAndValues) {
  const auto set = ParseFaults("never-ready, crash-after-ready=2s\n# a remark\n\nreject-token=shard-admin");
  ASSERT_TRUE(set.ok()) << set.status().ToString();
  EXPECT_EQ(*set, (FaultSet{{"never-ready", ""}, {"crash-after-ready", "2s"}, {"reject-token", "shard-admin"}}));
}

TEST(Faults, RefuseWhatTheyDoNotKnow) {
  for (const char* bad : {"never-redy", "crash-after-ready", "crash-after-ready=soon", "never-ready=1s",
                          "reject-token=everybody", "shutdown-mode=kind"}) {
    EXPECT_FALSE(ParseFaults(bad).ok()) << bad;
  }
}

TEST(Faults, OfAFileAreReadAgainWheneverItChanges) {
  const std::string path = ::testing::TempDir() + "faults_test.txt";
  std::remove(path.c_str());
  const auto write = [&](const std::string& text) {
    std::ofstream(path + ".new") << text;
    ASSERT_EQ(std::rename((path + ".new").c_str(), path.c_str()), 0);
  };
  auto made = Faults::Make("never-ready", path);
  ASSERT_TRUE(made.ok()) << made.status().ToString();
  const Faults& faults = **made;
  EXPECT_TRUE(faults.Has("never-ready"));
  EXPECT_FALSE(faults.Has("idle-leader"));
  write("idle-leader\nstore-stall=1h\n");
  EXPECT_TRUE(faults.Has("idle-leader"));
  EXPECT_TRUE(faults.Has("never-ready")) << "what is fixed stays";
  EXPECT_TRUE(faults.Within("store-stall"));
  EXPECT_EQ(faults.Time("store-stall"), Seconds(3600));
  write("what-is-this\n");
  EXPECT_TRUE(faults.Has("idle-leader")) << "a broken file leaves the old set";
  write("store-stall=0s\n");
  EXPECT_FALSE(faults.Has("idle-leader"));
  EXPECT_FALSE(faults.Within("store-stall"));
  std::remove(path.c_str());
  EXPECT_FALSE(faults.Has("store-stall"));
}

}  // namespace
}  // namespace lockkeeper::kcp
