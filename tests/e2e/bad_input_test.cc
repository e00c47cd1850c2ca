// Bad input: each gets a condition that names the thing and the way out, changes nothing else, and goes on by itself
// once mended.
#include <csignal>

#include "api/base/file.h"
#include "tests/e2e/fixture.h"

namespace lockkeeper {
namespace {

class BadInputE2e : public E2e {};

TEST_F(BadInputE2e, AServerWhoseReleaseLacksItsBinaryIsStalledAndGoesOnOnceItIsThere) {
  ASSERT_EQ(MakeDirs(lab_.data() + "/builds/" + kOld + "/bin"), Status::Ok());
  ASSERT_EQ(WriteFileAtomic(lab_.data() + "/builds/" + kOld + "/README", "no binary here"), Status::Ok());
  ASSERT_TRUE(lab_.Up().ok());
  ASSERT_EQ(Apply("10-fronts.yaml"), Status::Ok());
  ASSERT_EQ(Apply("20-server-kcp.yaml"), Status::Ok());
  const Result<Server> stalled = Await<Server>("kcp", [](const Server& s) { return SaysStalled(s, "bin/kcp"); });
  ASSERT_TRUE(stalled.ok()) << stalled.status().ToString();
  ASSERT_EQ(lab_.Build(kOld), Status::Ok());
  const Result<Server> ready = Await<Server>(
      "kcp", [](const Server& s) { return SaysReady(s); }, 90);
  EXPECT_TRUE(ready.ok()) << ready.status().ToString();
}

TEST_F(BadInputE2e, AFrontWhoseAddressIsInUseNamesItAndGoesOnOnceItIsFree) {
  ASSERT_EQ(lab_.Build(kOld), Status::Ok());
  ASSERT_TRUE(lab_.Up().ok());
  int port = 0;
  UniqueFd taken = Lab::TakePort(&port);
  const std::string listen = "127.0.0.1:" + std::to_string(port);
  replace_[0].second = listen;
  ASSERT_EQ(Apply("10-fronts.yaml"), Status::Ok());
  const Result<Front> stalled = Await<Front>("kcp", [&](const Front& f) { return SaysStalled(f, listen); });
  ASSERT_TRUE(stalled.ok()) << stalled.status().ToString();
  taken.Reset();
  const Result<Front> ready = Await<Front>(
      "kcp", [](const Front& f) { return FindOf(f, "Stalled") == nullptr && f.status.pid; }, 60);
  EXPECT_TRUE(ready.ok()) << ready.status().ToString();
}

TEST_F(BadInputE2e, AMissingSharedFileStallsTheRollUntouchedAndItGoesOnOnceItIsBack) {
  Install();
  const std::string file = lab_.data() + "/servers/default/kcp/shared/sa.key";
  const Result<std::string> content = ReadFile(file);
  ASSERT_TRUE(content.ok());
  ASSERT_EQ(RemoveFile(file), Status::Ok());
  ASSERT_EQ(MakeUpgrade("up", kNew), Status::Ok());
  const Result<Upgrade> stalled = Await<Upgrade>("up", [](const Upgrade& u) { return SaysStalled(u, "sa.key"); });
  ASSERT_TRUE(stalled.ok()) << stalled.status().ToString();
  EXPECT_EQ(FindProcess({"/bin/kcp", "slots/green"}), 0) << "nothing was started";
  ASSERT_EQ(WriteFileAtomic(file, *content, 0600), Status::Ok());
  const Result<Upgrade> done = AwaitFinished("up");
  ASSERT_TRUE(done.ok()) << done.status().ToString();
  EXPECT_EQ(done->status.outcome, Outcome::kSucceeded) << done->status.error;
}

TEST_F(BadInputE2e, AVersionThatTheSourceDoesNotHaveStallsTheUpgradeAndGoesOnOnceItDoes) {
  Install();
  ASSERT_EQ(MakeUpgrade("up", "v0.35.0"), Status::Ok());
  const Result<Upgrade> stalled = Await<Upgrade>("up", [](const Upgrade& u) { return SaysStalled(u, "v0.35.0"); });
  ASSERT_TRUE(stalled.ok()) << stalled.status().ToString();
  ASSERT_EQ(lab_.Build("v0.35.0"), Status::Ok());
  const Result<Upgrade> done = AwaitFinished("up");
  ASSERT_TRUE(done.ok()) << done.status().ToString();
  EXPECT_EQ(done->status.outcome, Outcome::kSucceeded) << done->status.error;
}

TEST_F(BadInputE2e, ABuildThatCrashesAfterReadyIsUndone) {
  Install();
  ASSERT_EQ(lab_.Build("v0.36.0", "crash-after-ready=300ms"), Status::Ok());
  ASSERT_EQ(MakeUpgrade("up", "v0.36.0", [](Upgrade& u) { u.spec.gates.push_back(Gate::kBeforeFlip); }), Status::Ok());
  const Result<Upgrade> done = AwaitFinished("up");
  ASSERT_TRUE(done.ok()) << done.status().ToString();
  EXPECT_EQ(done->status.outcome, Outcome::kRolledBack) << done->status.error;
  EXPECT_NE(FindProcess({"/bin/kcp", "slots/blue"}), 0);
}

TEST_F(BadInputE2e, AnUpgradeOfAServerThatDoesNotExistSaysSoAndGoesOnOnceItDoes) {
  ASSERT_EQ(lab_.Build(kOld), Status::Ok());
  ASSERT_EQ(lab_.Build(kNew), Status::Ok());
  ASSERT_TRUE(lab_.Up().ok());
  ASSERT_EQ(MakeUpgrade("up", kNew), Status::Ok());
  ASSERT_TRUE(Await<Upgrade>("up", [](const Upgrade& u) { return SaysStalled(u, "\"kcp\" does not exist"); }).ok());
  ASSERT_EQ(Apply("10-fronts.yaml"), Status::Ok());
  ASSERT_EQ(Apply("20-server-kcp.yaml"), Status::Ok());
  const Result<Upgrade> done = AwaitFinished("up");
  ASSERT_TRUE(done.ok()) << done.status().ToString();
  EXPECT_EQ(done->status.outcome, Outcome::kSucceeded) << done->status.error;
}

TEST_F(BadInputE2e, AnObjectThatCannotWorkIsRefusedWithEachFieldByNameAndChangesNothing) {
  Install();
  const pid_t serving = FindProcess({"/bin/kcp", "slots/blue"});
  const Status refused = Apply("20-server-kcp.yaml", [](Json& object) {
    object["metadata"].Set("name", "broken");
    object["spec"].Set("shape", "Purple");
    object["spec"]["timeouts"].Set("readySeconds", -1);
    object["spec"]["template"].Set("command", Json::MakeArray());
  });
  EXPECT_EQ(refused.code(), Code::kInvalid) << refused.ToString();
  for (const char* field : {"spec.shape", "spec.timeouts.readySeconds", "spec.template.command"}) {
    EXPECT_NE(refused.message().find(field), std::string::npos) << field << ": " << refused.message();
  }
  const Status immutable =
      Patch<Server>("kcp", Json::MakeObject({{"spec", Json::MakeObject({{"host", "elsewhere"}})}}));
  EXPECT_NE(immutable.message().find("host is immutable"), std::string::npos) << immutable.ToString();
  const Status port = Patch<Front>("kcp", Json::MakeObject({{"spec", Json::MakeObject({{"listen", ":99999"}})}}));
  EXPECT_NE(port.message().find("from 1 to 65535"), std::string::npos) << port.ToString();
  EXPECT_EQ(Get<Server>(lab_.api(), {"default", "broken"}).code(), Code::kNotFound);
  EXPECT_EQ(FindProcess({"/bin/kcp", "slots/blue"}), serving);
}

TEST_F(BadInputE2e, ALostLedgerStartsAndStopsNothingUntilItIsPutBack) {
  Install();
  const pid_t serving = FindProcess({"/bin/kcp", "slots/blue"});
  ASSERT_TRUE(lab_.Down(SIGTERM).ok());
  const auto remove = [this] {
    for (const char* file : {"ledger.db", "ledger.db-wal", "ledger.db-shm"}) {
      ASSERT_EQ(RemoveFile(lab_.data() + "/" + file), Status::Ok());
    }
  };
  // Ended in order, the ledger is one file.
  const Result<std::string> ledger = ReadFile(lab_.data() + "/ledger.db");
  ASSERT_TRUE(ledger.ok());
  remove();
  ASSERT_TRUE(lab_.Up().ok());
  const Result<Server> stalled = Await<Server>("kcp", [](const Server& s) {
    const Condition* c = FindOf(s, "Stalled");
    return c != nullptr && c->reason == "LedgerLost";
  });
  EXPECT_TRUE(stalled.ok()) << stalled.status().ToString();
  EXPECT_EQ(FindProcess({"/bin/kcp", "slots/blue"}), serving);
  ASSERT_TRUE(lab_.Down(SIGTERM).ok());
  remove();
  ASSERT_EQ(WriteFileAtomic(lab_.data() + "/ledger.db", *ledger, 0600), Status::Ok());
  ASSERT_TRUE(lab_.Up().ok());
  const Result<Server> ready = Await<Server>("kcp", [](const Server& s) { return SaysReady(s); });
  ASSERT_TRUE(ready.ok()) << ready.status().ToString();
  EXPECT_EQ(FindProcess({"/bin/kcp", "slots/blue"}), serving);
}

TEST_F(BadInputE2e, ADamagedLedgerIsNamedWithTheWayOut) {
  Install();
  ASSERT_TRUE(lab_.Down(SIGTERM).ok());
  ASSERT_EQ(WriteFileAtomic(lab_.data() + "/ledger.db", std::string(8192, 'x')), Status::Ok());
  const Result<double> up = lab_.Up();
  ASSERT_FALSE(up.ok());
  EXPECT_NE(up.status().message().find("ledger.db"), std::string::npos) << up.status().message();
  EXPECT_NE(FindProcess({"/bin/kcp", "slots/blue"}), 0);
}

}  // namespace
}  // namespace lockkeeper
