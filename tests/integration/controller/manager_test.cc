#include "controller/manager.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "api/transport/http_client.h"
#include "tests/support/wait.h"
#include "tests/unit/controller/memory_api.h"

namespace lockkeeper {
namespace {

const Resource kThings{"example.test", "v1", "things", "Thing", true};
const Resource kLeases{"coordination.k8s.io", "v1", "leases", "Lease", true};

Json Thing(const std::string& name) {
  return Json::MakeObject({{"apiVersion", "example.test/v1"},
                           {"kind", "Thing"},
                           {"metadata", Json::MakeObject({{"namespace", "ns"}, {"name", name}})},
                           {"spec", Json::MakeObject({{"size", 1}})}});
}

// Short times, in the same proportions.
LeaderElectionOptions Quick(const std::string& identity) {
  LeaderElectionOptions options;
  options.namespace_ = "ns";
  options.name = "lk";
  options.identity = identity;
  options.lease_duration = Seconds(1);
  options.renew_deadline = Milliseconds(600);
  options.retry_period = Milliseconds(100);
  return options;
}

class ManagerTest : public ::testing::Test {
 protected:
  // Writes status.seen once per generation.
  static ControllerOptions Marker(Manager& manager, Cache& cache, std::atomic<int>& passes) {
    ControllerOptions options;
    options.name = "thing";
    options.reconcile = [&manager, &cache, &passes](const Request& request) -> Result<ReconcileResult> {
      ++passes;
      const ObjectPtr object = cache.Get(request);
      if (object == nullptr) return ReconcileResult{};
      Json thing = object->Parse();
      if (thing.At({"status", "seen"}).AsInt() == object->generation()) return ReconcileResult{};
      thing["status"].Set("seen", object->generation());
      LK_ASSIGN_OR_RETURN(const Json written, manager.api().UpdateStatus(cache.resource(), thing));
      manager.recorder().Record(EventTarget::Of(written), EventType::kNormal, "Seen", "generation noted");
      return ReconcileResult{};
    };
    return options;
  }

  bool Seen(const std::string& name, int64_t generation) {
    return WaitUntil([&] {
      const auto thing = api_.Get(kThings, {"ns", name});
      return thing.ok() && thing->At({"status", "seen"}).AsInt() == generation;
    });
  }

  MemoryApi api_;
};

TEST_F(ManagerTest, ObjectsAreReconciledAndTheStoryIsWrittenBeforeItStops) {
  std::atomic<int> passes{0};
  ASSERT_TRUE(api_.Create(kThings, Thing("before")).ok());
  {
    Manager manager(api_, SystemClock(), {.metrics_address = "127.0.0.1:0"});
    Cache& cache = manager.AddCache(kThings);
    Controller& controller = manager.AddController(Marker(manager, cache, passes));
    controller.Watch(cache);
    ASSERT_TRUE(manager.Start().ok());
    ASSERT_TRUE(Seen("before", 1));
    ASSERT_TRUE(api_.Create(kThings, Thing("after")).ok());
    ASSERT_TRUE(Seen("after", 1));

    HttpClientConfig config;
    config.base_url = "http://127.0.0.1:" + std::to_string(manager.ops_port());
    HttpClient client(config);
    EXPECT_EQ(client.Do({.target = "/readyz"})->body, "ok");
    EXPECT_EQ(client.Do({.target = "/healthz?verbose"})->status, 200);
    const std::string metrics = client.Do({.target = "/metrics"})->body;
    EXPECT_NE(metrics.find("controller_runtime_reconcile_total{controller=\"thing\",result=\"success\"}"),
              std::string::npos);
    EXPECT_NE(metrics.find("cache_objects{resource=\"things.example.test\"} 2"), std::string::npos) << metrics;
    EXPECT_NE(metrics.find("workqueue_depth{controller=\"thing\",name=\"thing\"} 0"), std::string::npos);
    EXPECT_EQ(client.Do({.target = "/nothing"})->status, 404);
    EXPECT_TRUE(manager.Stop().ok());
  }
  EXPECT_EQ(api_.List({"", "v1", "events", "Event", true}, "ns", {})->items.size(), 2u);
}

TEST_F(ManagerTest, ReadinessSaysWhatIsNotSyncedAndWhy) {
  api_.SetBefore([](const std::string& verb, const Resource&, const ObjectKey&) {
    return verb == "list" ? Status(Code::kForbidden, "no") : Status();
  });
  Manager manager(api_, SystemClock(), {});
  manager.AddCache(kThings);
  ASSERT_TRUE(manager.Start().ok());
  EXPECT_TRUE(WaitUntil([&] {
    const Health::Report report = manager.health().Ready();
    return !report.ok && report.text.find("verbs [\"get\", \"list\", \"watch\"]") != std::string::npos;
  }));
}

TEST_F(ManagerTest, ACacheThatDoesNotSyncIsFatalAndNoControllerStarts) {
  api_.SetBefore([](const std::string& verb, const Resource&, const ObjectKey&) {
    return verb == "list" ? Status(Code::kForbidden, "no") : Status();
  });
  std::atomic<bool> fatal{false};
  std::atomic<int> passes{0};
  ManagerOptions options;
  options.cache_sync_timeout = Milliseconds(50);
  options.on_fatal = [&](const Status& status) {
    EXPECT_EQ(status.code(), Code::kTimeout);
    fatal = true;
  };
  Manager manager(api_, SystemClock(), options);
  Cache& cache = manager.AddCache(kThings);
  Controller& controller = manager.AddController(Marker(manager, cache, passes));
  ASSERT_TRUE(manager.Start().ok());
  controller.queue().Add({"ns", "x"});
  EXPECT_TRUE(WaitUntil([&] { return fatal.load(); }));
  EXPECT_EQ(passes, 0);
}

TEST_F(ManagerTest, AStandbyTakesOverSoonAfterACleanStop) {
  std::atomic<int> first_passes{0}, second_passes{0};
  auto first = std::make_unique<Manager>(api_, SystemClock(), ManagerOptions{});
  Cache& first_cache = first->AddCache(kThings);
  first->AddController(Marker(*first, first_cache, first_passes)).Watch(first_cache);
  first->AddElection(api_, Quick("first"));
  ASSERT_TRUE(first->Start().ok());
  ASSERT_TRUE(first->WaitUntilStarted(Seconds(20)));

  Manager second(api_, SystemClock(), ManagerOptions{});
  Cache& second_cache = second.AddCache(kThings);
  second.AddController(Marker(second, second_cache, second_passes)).Watch(second_cache);
  second.AddElection(api_, Quick("second"));
  ASSERT_TRUE(second.Start().ok());
  ASSERT_TRUE(api_.Create(kThings, Thing("a")).ok());
  ASSERT_TRUE(Seen("a", 1));
  EXPECT_EQ(second_passes, 0);

  ASSERT_TRUE(first->Stop().ok());
  EXPECT_EQ(api_.Get(kLeases, {"ns", "lk"})->At({"spec", "leaseDurationSeconds"}).AsInt(), 1);
  ASSERT_TRUE(second.WaitUntilStarted(Seconds(20)));
  // Its queue was filled while it stood by.
  EXPECT_TRUE(WaitUntil([&] { return second_passes > 0; }));
}

TEST_F(ManagerTest, ALostLeaseIsFatal) {
  Status fatal;
  std::atomic<bool> called{false};
  ManagerOptions options;
  options.on_fatal = [&](const Status& status) {
    fatal = status;
    called = true;
  };
  Manager manager(api_, SystemClock(), options);
  manager.AddElection(api_, Quick("me"));
  ASSERT_TRUE(manager.Start().ok());
  ASSERT_TRUE(manager.WaitUntilStarted(Seconds(20)));
  api_.SetBefore([](const std::string&, const Resource& resource, const ObjectKey&) {
    return resource == kLeases ? Status(Code::kUnavailable, "no server") : Status();
  });
  ASSERT_TRUE(WaitUntil([&] { return called.load(); }));
  EXPECT_EQ(fatal.code(), Code::kBusy);
}

TEST_F(ManagerTest, AStoppedStandbyNeverStartsItsControllers) {
  std::atomic<int> passes{0};
  Json lease =
      Json::MakeObject({{"metadata", Json::MakeObject({{"namespace", "ns"}, {"name", "lk"}})},
                        {"spec", Json::MakeObject({{"holderIdentity", "other"}, {"leaseDurationSeconds", 1}})}});
  ASSERT_TRUE(api_.Create(kLeases, lease).ok());
  ASSERT_TRUE(api_.Create(kThings, Thing("a")).ok());
  Manager manager(api_, SystemClock(), ManagerOptions{});
  Cache& cache = manager.AddCache(kThings);
  manager.AddController(Marker(manager, cache, passes)).Watch(cache);
  LeaderElection& election = manager.AddElection(api_, Quick("me"));
  ASSERT_TRUE(manager.Start().ok());
  ASSERT_TRUE(WaitUntil([&] { return election.holder() == "other"; }));
  EXPECT_TRUE(manager.Stop().ok());
  EXPECT_EQ(passes, 0);
  EXPECT_EQ(api_.Get(kLeases, {"ns", "lk"})->At({"spec", "holderIdentity"}).AsString(), "other");
}

TEST_F(ManagerTest, ALeaseWonWhileStoppingStartsNothing) {
  std::atomic<bool> other_ran{false}, leader_work_ran{false};
  Json lease =
      Json::MakeObject({{"metadata", Json::MakeObject({{"namespace", "ns"}, {"name", "lk"}})},
                        {"spec", Json::MakeObject({{"holderIdentity", "other"}, {"leaseDurationSeconds", 1}})}});
  ASSERT_TRUE(api_.Create(kLeases, lease).ok());
  Manager manager(api_, SystemClock(), ManagerOptions{});
  LeaderElection& election = manager.AddElection(api_, Quick("me"));
  manager.AddRunnable("slow to end", [&](const CancelToken& cancel) {
    other_ran = true;
    WaitUntil([&] { return cancel.cancelled(); });
    // The other's lease runs out meanwhile: ours, renewed once.
    EXPECT_TRUE(WaitUntil([&] {
      const auto calls = api_.Calls();
      return election.IsLeader() && std::count(calls.begin(), calls.end(), "update leases ns/lk") >= 2;
    }));
  });
  manager.AddRunnable(
      "leader's", [&](const CancelToken&) { leader_work_ran = true; }, true);
  ASSERT_TRUE(manager.Start().ok());
  ASSERT_TRUE(WaitUntil([&] { return other_ran.load(); }));
  EXPECT_TRUE(manager.Stop().ok());
  EXPECT_FALSE(leader_work_ran);
  EXPECT_EQ(api_.Get(kLeases, {"ns", "lk"})->At({"spec", "holderIdentity"}).AsString(), "");
}

TEST_F(ManagerTest, WorkThatHangsIsNamedItsCallsAreCancelledAndTheLeaseIsKept) {
  std::atomic<bool> inside{false}, cancelled{false};
  ManagerOptions options;
  options.stop_timeout = Milliseconds(50);
  options.cancel_calls = [&] { cancelled = true; };
  Manager manager(api_, SystemClock(), options);
  ControllerOptions stuck;
  stuck.name = "stuck";
  stuck.reconcile = [&](const Request&) -> Result<ReconcileResult> {
    inside = true;
    WaitUntil([&] { return cancelled.load(); });
    return Status(Code::kCancelled, "cancelled");
  };
  Controller& controller = manager.AddController(stuck);
  manager.AddElection(api_, Quick("me"));
  ASSERT_TRUE(manager.Start().ok());
  controller.queue().Add({"ns", "x"});
  ASSERT_TRUE(WaitUntil([&] { return inside.load(); }));
  EXPECT_TRUE(manager.Stop().ok());  // it ended once its calls were cancelled
  EXPECT_TRUE(cancelled);
}

TEST_F(ManagerTest, HoweverManyHangTheStopTakesItsTwoSpansInAll) {
  std::atomic<int> inside{0};
  std::atomic<bool> over{false};
  constexpr int kStuck = 6;
  ManagerOptions options;
  options.stop_timeout = Milliseconds(50);
  options.cancel_timeout = Milliseconds(50);
  options.cancel_calls = [] {};
  Manager manager(api_, SystemClock(), options);
  for (int i = 0; i < kStuck; ++i) {
    ControllerOptions stuck;
    stuck.name = "stuck-" + std::to_string(i);
    stuck.workers = 1;
    stuck.reconcile = [&](const Request&) -> Result<ReconcileResult> {
      ++inside;
      WaitUntil([&] { return over.load(); });
      return ReconcileResult{};
    };
    manager.AddController(stuck).queue().Add({"ns", "x"});
  }
  ASSERT_TRUE(manager.Start().ok());
  ASSERT_TRUE(WaitUntil([&] { return inside == kStuck; }));
  const auto begun = std::chrono::steady_clock::now();
  const Status stopped = manager.Stop();
  const auto took = std::chrono::steady_clock::now() - begun;
  over = true;
  EXPECT_EQ(stopped.code(), Code::kTimeout);
  EXPECT_NE(stopped.message().find("stuck-0 is still busy with ns/x"), std::string::npos) << stopped.message();
  EXPECT_LT(took, std::chrono::seconds(2)) << "not six times the time of one";
}

TEST_F(ManagerTest, AnObjectTellsAsManyEventsAsItWasGiven) {
  const Json thing = Thing("a");
  ManagerOptions options;
  options.event_burst = 40;
  Manager manager(api_, SystemClock(), options);
  ASSERT_TRUE(manager.Start().ok());
  for (int i = 0; i < 60; ++i) {
    manager.recorder().Record(EventTarget::Of(thing), EventType::kNormal, "Step" + std::to_string(i), "done");
  }
  EXPECT_TRUE(manager.Stop().ok());
  EXPECT_EQ(api_.List({"", "v1", "events", "Event", true}, "ns", {})->items.size(), 40u);
}

TEST_F(ManagerTest, BackgroundWorkThatThrowsIsBegunAgain) {
  std::atomic<int> runs{0};
  Manager manager(api_, SystemClock(), ManagerOptions{});
  manager.AddRunnable("flaky", [&](const CancelToken& cancel) {
    if (++runs < 3) throw std::runtime_error("boom");
    WaitUntil([&] { return cancel.cancelled(); });
  });
  ASSERT_TRUE(manager.Start().ok());
  EXPECT_TRUE(WaitUntil([&] { return runs == 3; }));
}

TEST(OpsServerAddress, IsCheckedAndMayBeNone) {
  MemoryApi api;
  EXPECT_EQ(Manager(api, SystemClock(), {.metrics_address = "nonsense"}).Start().code(), Code::kInvalid);
  Manager none(api, SystemClock(), {.metrics_address = "0"});
  EXPECT_TRUE(none.Start().ok());
  EXPECT_EQ(none.ops_port(), 0);
}

}  // namespace
}  // namespace lockkeeper
