// The Front reconciler on a real ledger, real shims and real front processes; only the API is in memory.
#include "reconcilers/front/reconciler.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include "api/base/log.h"
#include "api/types/reasons.h"
#include "controller/typed.h"
#include "reconcilers/front/admin_client.h"
#include "reconcilers/ledger/sqlite_ledger.h"
#include "reconcilers/process/process_units.h"
#include "tests/integration/front/child_main.h"
#include "tests/integration/front/line_server.h"
#include "tests/integration/front/test_front.h"
#include "tests/unit/controller/memory_api.h"

namespace lockkeeper::fronts {
namespace {

using front::Ask;
using front::DeadPort;
using front::Eventually;
using front::LineServer;
using front::ManualBackend;
using front::Peer;

const ObjectKey kKey{"default", "kcp"};

class ReconcilerTest : public testing::Test {
 protected:
  ReconcilerTest() : admin_(dir_.path() + "/run"), listen_("127.0.0.1:" + std::to_string(DeadPort())) {
    SqliteLedgerOptions ledger;
    ledger.path = dir_.path() + "/ledger.db";
    ledger.host = "host-a";
    ledger_ = std::move(*OpenLedger(ledger));
    StartAgent();
  }
  ~ReconcilerTest() override {
    const auto unit = units_->Inspect(Unit());
    if (unit.ok()) (void)units_->Kill(unit->id);
    EXPECT_TRUE(Eventually([&] {
      const auto now = units_->Inspect(Unit());
      return !now.ok() || now->state != UnitStatus::State::kRunning;
    }));
    (void)units_->Reset(Unit());
  }

  // A new agent on what the old one left.
  void StartAgent() {
    ProcessUnitsOptions options;
    options.run_dir = dir_.path() + "/units";
    options.shim_path = LK_SHIM;
    units_ = std::move(*OpenProcessUnits(options));
    char self[4096] = "";
    EXPECT_GT(::readlink("/proc/self/exe", self, sizeof self - 1), 0);
    HostPaths paths;
    paths.host = "host-a";
    paths.lockkeeper = self;
    paths.version = "v-test";
    paths.fronts_dir = dir_.path() + "/fronts";
    paths.admin_dir = dir_.path() + "/run";
    reconciler_ = std::make_unique<Reconciler>(
        Dependencies{.api = api_,
                     .clock = SystemClock(),
                     .ledger = *ledger_,
                     .units = *units_,
                     .admin = admin_,
                     .paths = paths,
                     .object = [this](const ObjectKey& key) { return Fact<Front>::Of(Get<Front>(cache_, key)); },
                     .restart = [this](const std::string& front) { return admin_.Restart(front); },
                     .changed = [this](const ObjectKey&, const std::string&) { ++changed_; },
                     .event = [this](const ObjectKey&, bool, const std::string& reason,
                                     const std::string&) { events_.push_back(reason); }});
  }

  static std::string Unit() { return FrontUnitName("default", "kcp"); }

  void ApplyFront() {
    Front f;
    f.metadata.namespace_ = "default";
    f.metadata.name = "kcp";
    f.spec.host = "host-a";
    f.spec.listen = listen_;
    ASSERT_TRUE(Create<Front>(api_, f).ok());
    Sync();
  }
  // What an informer would bring.
  void Sync() {
    const auto object = api_.Get(ResourceOf<Front>(), kKey);
    cache_.objects.clear();
    if (object.ok()) cache_.objects[kKey] = *object;
  }
  // The Server's record says: this slot is active and listens there.
  void Activate(const std::string& slot, int64_t incarnation, const std::string& address, bool hold = false) {
    const auto record = ledger_->Update({"default", "kcp"}, [&](ServerRecord& r) {
      r.spec.front_ref = LocalRef{};
      r.spec.front_ref->name = "kcp";
      r.uid = "server-uid";
      r.active = slot;
      r.hold = hold;
      SlotEntry& s = r.slots[slot];
      s.intent.incarnation = s.actual.incarnation = incarnation;
      s.intent.invocation = s.actual.invocation = 1;
      s.intent.running = true;
      s.actual.port = std::atoi(address.c_str() + address.rfind(':') + 1);
      s.actual.id.boot_id = BootId();
      return Status::Ok();
    });
    ASSERT_TRUE(record.ok()) << record.status().ToString();
  }
  // Passes of both, until neither has anything to do.
  ::testing::AssertionResult Settle(const std::string& reason) {
    std::string last;
    const bool done = Eventually([&] {
      const auto a = reconciler_->Converge(kKey);
      const auto b = reconciler_->Mirror(kKey);
      Sync();
      const auto f = Get<Front>(api_, kKey);
      const Condition* ready = f.ok() ? FindCondition(f->status.conditions, condition::kReady) : nullptr;
      last = (ready != nullptr ? ready->reason + ": " + ready->message : "no condition") + " / " +
             a.status().ToString() + " / " + b.status().ToString();
      return a.ok() && b.ok() && ready != nullptr && ready->reason == reason;
    });
    return done ? ::testing::AssertionSuccess() : ::testing::AssertionFailure() << last;
  }
  Front Object() { return *Get<Front>(api_, kKey); }

  // Reads objects as a cache does: without the API.
  struct Cached : MemoryApi {
    std::map<ObjectKey, Json> objects;
    Result<Json> Get(const Resource& resource, const ObjectKey& key) override {
      const auto it = objects.find(key);
      if (it == objects.end()) return Status(Code::kNotFound, resource.plural + " " + key.ToString());
      return it->second;
    }
  };

  front::TempDir dir_;
  MemoryApi api_;
  Cached cache_;
  front::FrontAdminClient admin_;
  const std::string listen_;
  std::unique_ptr<Ledger> ledger_;
  std::unique_ptr<Units> units_;
  std::unique_ptr<Reconciler> reconciler_;
  std::atomic<int> changed_{0};
  std::vector<std::string> events_;
};

TEST_F(ReconcilerTest, AFrontIsStartedPointedAndReportsItself) {
  LineServer blue("blue");
  ApplyFront();
  ASSERT_TRUE(Settle("Unclaimed"));
  EXPECT_TRUE(Object().metadata.HasFinalizer(kFinalizer));
  Activate("blue", 1, blue.address());
  ASSERT_TRUE(Settle("InSync"));
  EXPECT_EQ(Ask(listen_, "1"), "blue 1");
  const FrontStatus status = Object().status;
  EXPECT_EQ(status.claimed_by->name, "kcp");
  EXPECT_EQ(status.backend->address, blue.address());
  EXPECT_EQ(status.pid, units_->Inspect(Unit())->id.pid);
  EXPECT_EQ(fronts::FrontClaimedBy(*ledger_, "default", "kcp").value_or("?"), "kcp");
  EXPECT_EQ(reconciler_->FrontsOf({"default", "kcp"}), std::vector<ObjectKey>{kKey});
  EXPECT_GT(changed_, 0);
}

TEST_F(ReconcilerTest, AFlipOfTheRecordIsOnePassAndNeedsNoApi) {
  LineServer blue("blue");
  LineServer green("green");
  ApplyFront();
  Activate("blue", 1, blue.address());
  ASSERT_TRUE(Settle("InSync"));
  api_.SetBefore([](const std::string&, const Resource&, const ObjectKey&) {
    return Status(Code::kUnavailable, "the API is away");
  });
  double best = 1e9;
  for (int i = 0; i < 10; ++i) {
    const bool to_green = i % 2 == 0;
    Activate(to_green ? "green" : "blue", to_green ? 2 : 1, to_green ? green.address() : blue.address());
    const auto began = std::chrono::steady_clock::now();
    ASSERT_TRUE(reconciler_->Converge(kKey).ok());
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
    EXPECT_EQ(Ask(listen_, "1"), to_green ? "green 1" : "blue 1");
  }
  std::printf("from record to front: %.1f ms at best\n", best * 1e3);
  EXPECT_FALSE(reconciler_->Mirror(kKey).ok());
  // Back again, and to hold.
  Activate("blue", 1, blue.address());
  ASSERT_TRUE(reconciler_->Converge(kKey).ok());
  EXPECT_EQ(Ask(listen_, "2"), "blue 2");
  Activate("blue", 1, blue.address(), true);
  ASSERT_TRUE(reconciler_->Converge(kKey).ok());
  const Peer held = Peer::Connect(listen_);
  ASSERT_TRUE(held.Send("3\n"));
  EXPECT_TRUE(Eventually([&] { return admin_.Get("default/kcp")->held == 1; }));
  Activate("blue", 1, blue.address());
  ASSERT_TRUE(reconciler_->Converge(kKey).ok());
  EXPECT_EQ(held.ReadLine(), "blue 3");
}

TEST_F(ReconcilerTest, AKilledFrontComesBackOnItsListenerWithItsTarget) {
  LineServer blue("blue");
  ApplyFront();
  Activate("blue", 1, blue.address());
  ASSERT_TRUE(Settle("InSync"));
  const pid_t before = units_->Inspect(Unit())->id.pid;
  ASSERT_EQ(::kill(before, SIGKILL), 0);
  // Nobody reconciles: the shim starts it, the state file points it, and nobody is refused meanwhile.
  EXPECT_EQ(Ask(listen_, "1"), "blue 1");
  ASSERT_TRUE(Settle("InSync"));
  EXPECT_NE(units_->Inspect(Unit())->id.pid, before);
}

TEST_F(ReconcilerTest, ANewAgentFindsTheFrontAndStartsNoSecondOne) {
  LineServer blue("blue");
  ApplyFront();
  Activate("blue", 1, blue.address());
  ASSERT_TRUE(Settle("InSync"));
  const pid_t before = units_->Inspect(Unit())->id.pid;
  reconciler_.reset();
  units_.reset();
  EXPECT_EQ(Ask(listen_, "1"), "blue 1");
  StartAgent();
  EXPECT_EQ(*reconciler_->Known(), std::vector<ObjectKey>{kKey});
  ASSERT_TRUE(Settle("InSync"));
  EXPECT_EQ(units_->Inspect(Unit())->id.pid, before);
}

TEST_F(ReconcilerTest, TheExplicitRestartAppliesAnEditedSpecAndRefusesNobody) {
  LineServer blue("blue");
  ApplyFront();
  Activate("blue", 1, blue.address());
  ASSERT_TRUE(Settle("InSync"));
  const pid_t before = units_->Inspect(Unit())->id.pid;
  Front f = Object();
  f.spec.hold.seconds = 7;
  ASSERT_TRUE(Update<Front>(api_, f).ok());
  Sync();
  ASSERT_TRUE(Settle("FrontOutdated"));
  EXPECT_EQ(units_->Inspect(Unit())->id.pid, before);
  std::atomic<bool> stop{false};
  std::atomic<int> asked{0};
  std::atomic<int> failed{0};
  std::thread client([&] {
    while (!stop) failed += Ask(listen_, std::to_string(++asked)).rfind("blue ", 0) != 0;
  });
  f = Object();
  f.metadata.annotations[kRestartAnnotation] = "now";
  ASSERT_TRUE(Update<Front>(api_, f).ok());
  Sync();
  EXPECT_TRUE(Eventually([&] {
    (void)Settle("InSync");
    return units_->Inspect(Unit())->id.pid != before;
  }));
  ASSERT_TRUE(Settle("InSync"));
  const int seen = asked;
  EXPECT_TRUE(Eventually([&] { return asked > seen + 5; }));
  stop = true;
  client.join();
  EXPECT_EQ(failed, 0) << "of " << asked;
}

TEST_F(ReconcilerTest, AListenAddressInUseIsSaidAndMendsItself) {
  LineServer blue("blue");
  auto taken = std::make_unique<ManualBackend>(std::atoi(listen_.c_str() + listen_.rfind(':') + 1));
  ApplyFront();
  Activate("blue", 1, blue.address());
  ASSERT_TRUE(Settle("ListenFailed"));
  const Front f = Object();
  const Condition* stalled = FindCondition(f.status.conditions, condition::kStalled);
  ASSERT_NE(stalled, nullptr);
  EXPECT_NE(stalled->message.find(listen_), std::string::npos) << stalled->message;
  EXPECT_EQ(events_.back(), "ListenFailed");
  taken.reset();
  ASSERT_TRUE(Settle("InSync"));
  EXPECT_EQ(Ask(listen_, "1"), "blue 1");
}

TEST_F(ReconcilerTest, ADeletedFrontEndsOnceNobodyClaimsIt) {
  LineServer blue("blue");
  ApplyFront();
  Activate("blue", 1, blue.address());
  ASSERT_TRUE(Settle("InSync"));
  ASSERT_TRUE(Delete<Front>(api_, kKey).ok());
  Sync();
  ASSERT_TRUE(Settle("Deleting"));
  EXPECT_EQ(Ask(listen_, "1"), "blue 1");
  ASSERT_TRUE(ledger_
                  ->Update({"default", "kcp"},
                           [](ServerRecord& r) {
                             r.spec.front_ref.reset();
                             return Status::Ok();
                           })
                  .ok());
  EXPECT_TRUE(Eventually([&] {
    (void)reconciler_->Converge(kKey);
    (void)reconciler_->Mirror(kKey);
    Sync();
    return Get<Front>(api_, kKey).code() == Code::kNotFound;
  }));
  EXPECT_EQ(units_->Inspect(Unit()).code(), Code::kNotFound);
  EXPECT_EQ(ledger_->GetDocument(kFrontDocument, "default/kcp").code(), Code::kNotFound);
  EXPECT_FALSE(Peer::Connect(listen_).ok());
}

TEST_F(ReconcilerTest, TheSameObjectTwiceWritesItsStatusOnce) {
  LineServer blue("blue");
  ApplyFront();
  Activate("blue", 1, blue.address());
  ASSERT_TRUE(Settle("InSync"));
  const std::string version = Object().metadata.resource_version;
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(reconciler_->Converge(kKey).ok());
    ASSERT_TRUE(reconciler_->Mirror(kKey).ok());
  }
  EXPECT_EQ(Object().metadata.resource_version, version);
}

}  // namespace
}  // namespace lockkeeper::fronts

int main(int argc, char** argv) {
  if (const auto code = lockkeeper::front::RunAsFront(argc, argv)) return *code;
  lockkeeper::ConfigureLog(lockkeeper::LogLevel::kError, lockkeeper::LogFormat::kText);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
