#include "controller/controller.h"

#include <gtest/gtest.h>

#include "controller/health.h"
#include "controller/metrics.h"
#include "tests/unit/controller/manual_clock.h"

namespace lockkeeper {
namespace {

const Request kKey{"ns", "a"};

struct ResultRow {
  const char* name;
  std::function<Result<ReconcileResult>()> answer;
  std::optional<double> next_seconds;  // until the key comes back; none: it does not
  int failures;                        // remembered
  std::string counted;                 // result label
  double errors = 0, terminal = 0, conflicts = 0, panics = 0;
};

class ResultTable : public ::testing::TestWithParam<ResultRow> {};

TEST_P(ResultTable, DecidesWhatComesNext) {
  const ResultRow& row = GetParam();
  ManualClock clock;
  Metrics metrics;
  Controller controller({.name = "t", .reconcile = [&](const Request&) { return row.answer(); }, .queue = {.seed = 1}},
                        clock, &metrics);
  // One failure before, so that it shows whether it is forgotten.
  controller.queue().AddRateLimited(kKey);
  clock.Advance(Seconds(1));
  ASSERT_TRUE(controller.ProcessOne());
  const auto next = controller.queue().NextReady();
  ASSERT_EQ(next.has_value(), row.next_seconds.has_value());
  if (next) {
    EXPECT_NEAR(ToSeconds(*next), *row.next_seconds, *row.next_seconds * 0.11);
  }
  EXPECT_EQ(controller.queue().NumRequeues(kKey), row.failures);
  const Metrics::Labels label{{"controller", "t"}};
  for (const char* result : {"success", "error", "requeue", "requeue_after"}) {
    EXPECT_EQ(metrics.Value("controller_runtime_reconcile_total", {{"controller", "t"}, {"result", result}}),
              row.counted == result ? 1 : 0)
        << result;
  }
  EXPECT_EQ(metrics.Value("controller_runtime_reconcile_errors_total", label), row.errors);
  EXPECT_EQ(metrics.Value("controller_runtime_terminal_reconcile_errors_total", label), row.terminal);
  EXPECT_EQ(metrics.Value("controller_runtime_conflict_total", label), row.conflicts);
  EXPECT_EQ(metrics.Value("controller_runtime_reconcile_panics_total", label), row.panics);
  EXPECT_EQ(metrics.Value("controller_runtime_reconcile_time_seconds", label), 1);
}

Result<ReconcileResult> Throws() { throw std::runtime_error("boom"); }

INSTANTIATE_TEST_SUITE_P(
    Table, ResultTable,
    ::testing::Values(ResultRow{"success_forgets", [] { return ReconcileResult{}; }, {}, 0, "success"},
                      ResultRow{"requeue_after_forgets_and_comes_back_then",
                                [] { return ReconcileResult{.requeue_after = Seconds(30)}; }, 30, 0, "requeue_after"},
                      ResultRow{"requeue_backs_off_and_keeps_the_count",
                                [] { return ReconcileResult{.requeue = true}; }, 0.010, 2, "requeue"},
                      ResultRow{"an_error_that_may_pass_backs_off", [] { return Status(Code::kUnavailable, "x"); },
                                0.010, 2, "error", 1},
                      ResultRow{"an_error_that_only_a_change_mends_waits_for_one",
                                [] { return Status(Code::kInvalid, "x"); },
                                {},
                                0,
                                "error",
                                1,
                                1},
                      ResultRow{"a_conflict_is_no_error_and_is_looked_at_again",
                                [] { return Status(Code::kConflict, "x"); }, 0.010, 2, "requeue", 0, 0, 1},
                      ResultRow{"a_cancelled_pass_is_dropped", [] { return Status(Code::kCancelled, "x"); }, {}, 0, ""},
                      ResultRow{"an_exception_is_an_error_and_is_counted", Throws, 0.010, 2, "error", 1, 0, 0, 1}),
    [](const auto& row) { return std::string(row.param.name); });

TEST(ControllerTest, AKeyThatSucceedsOverAndOverIsSlowedDown) {
  ManualClock clock;
  Metrics metrics;
  int hot = 0, runs = 0;
  Controller controller({.name = "t",
                         .reconcile =
                             [&](const Request&) {
                               ++runs;
                               return ReconcileResult{};
                             },
                         .on_hot_loop = [&](const Request&) { ++hot; }},
                        clock, &metrics);
  // A reconciler that wakes itself by its own status write, 100 times a second, for 60 s.
  for (int i = 0; i < 6000; ++i) {
    controller.queue().Add(kKey);
    controller.ProcessOne();
    clock.Advance(Milliseconds(10));
  }
  EXPECT_GE(hot, 3);
  EXPECT_LT(runs, 120);  // instead of 6000
  EXPECT_GE(metrics.Value("controller_runtime_hot_loop_total", {{"controller", "t"}}), 3);
  // Left alone for a while it is as any other.
  clock.Advance(Seconds(120));
  const int before = runs;
  for (int i = 0; i < 5; ++i) {
    controller.queue().Add(kKey);
    controller.ProcessOne();
    clock.Advance(Seconds(1));
  }
  EXPECT_EQ(runs, before + 5);
}

TEST(ControllerTest, AKeyThatAsksToComeBackOftenIsNotHot) {
  ManualClock clock;
  int hot = 0;
  Controller controller({.name = "t",
                         .reconcile = [](const Request&) { return ReconcileResult{.requeue_after = Milliseconds(50)}; },
                         .on_hot_loop = [&](const Request&) { ++hot; }},
                        clock, nullptr);
  controller.queue().Add(kKey);
  for (int i = 0; i < 200; ++i) {
    EXPECT_TRUE(controller.ProcessOne()) << i;
    clock.Advance(Milliseconds(50));
  }
  EXPECT_EQ(hot, 0);
}

Json Child(int version, const std::string& owner, int generation = 1) {
  return Json::MakeObject(
      {{"metadata", Json::MakeObject({{"namespace", "ns"},
                                      {"name", "child"},
                                      {"uid", "u"},
                                      {"resourceVersion", std::to_string(version)},
                                      {"generation", generation},
                                      {"ownerReferences",
                                       Json::MakeArray({Json::MakeObject({{"kind", "Server"}, {"name", owner}})})}})}});
}

TEST(ControllerTest, AChildWakesItsOwnerAndTheOneItHadBefore) {
  ManualClock clock;
  Cache cache({"g", "v1", "children", "Child", true});
  std::string woken;
  Controller controller({.name = "t",
                         .reconcile =
                             [&](const Request& request) {
                               woken += request.name + " ";
                               return ReconcileResult{};
                             }},
                        clock, nullptr);
  controller.Watch(cache, Controller::MapOwner("Server"));
  cache.Replace({CachedObject::Of(Child(1, "old"))}, "1");
  while (controller.ProcessOne()) continue;
  cache.Apply(WatchEventType::kModified, CachedObject::Of(Child(2, "new")));
  while (controller.ProcessOne()) continue;
  EXPECT_EQ(woken, "old new old ");
}

TEST(ControllerTest, FirstListsAndResyncsAreLowPriority) {
  ManualClock clock;
  Cache cache({"g", "v1", "children", "Child", true});
  Controller controller({.name = "t", .reconcile = [](const Request&) { return ReconcileResult{}; }}, clock, nullptr);
  controller.Watch(cache);
  cache.Replace({CachedObject::Of(Child(1, "x"))}, "1");
  EXPECT_EQ(controller.queue().TryGet()->priority, Priority::kLow);
  controller.queue().Done({"ns", "child"});
  cache.Apply(WatchEventType::kModified, CachedObject::Of(Child(2, "x")));
  EXPECT_EQ(controller.queue().TryGet()->priority, Priority::kNormal);
  controller.queue().Done({"ns", "child"});
  cache.Replace({CachedObject::Of(Child(2, "x"))}, "3");
  EXPECT_EQ(controller.queue().TryGet()->priority, Priority::kLow);
}

TEST(ControllerTest, AStatusWriteDoesNotPassTheGenerationFilter) {
  const auto at = [](int version, int generation) { return CachedObject::Of(Child(version, "x", generation)); };
  CacheEvent event{CacheEvent::Type::kUpdated, at(1, 1), at(2, 1)};
  EXPECT_FALSE(Controller::GenerationChanged(event));
  event.object = at(2, 2);
  EXPECT_TRUE(Controller::GenerationChanged(event));
  event = {CacheEvent::Type::kAdded, nullptr, at(1, 1)};
  EXPECT_TRUE(Controller::GenerationChanged(event));
}

TEST(ControllerTest, StopNamesTheKeyThatDoesNotComeBack) {
  std::atomic<bool> inside{false}, go{false};
  Controller controller({.name = "slow",
                         .reconcile =
                             [&](const Request&) {
                               inside = true;
                               while (!go) std::this_thread::yield();
                               return ReconcileResult{};
                             },
                         .workers = 2},
                        SystemClock(), nullptr);
  controller.Start();
  controller.queue().Add(kKey);
  while (!inside) std::this_thread::yield();
  controller.queue().Add({"ns", "queued"});
  const Status status = controller.Stop(Milliseconds(1));
  EXPECT_EQ(status.code(), Code::kTimeout);
  EXPECT_NE(status.message().find("slow is still busy with ns/a"), std::string::npos) << status.message();
  go = true;
  EXPECT_TRUE(controller.Stop(Seconds(20)).ok());
}

TEST(HealthTest, SaysWhichCheckFailsAndWhy) {
  Health health;
  Status status;
  health.AddReady("cache", [&] { return status; });
  EXPECT_TRUE(health.Ready().ok);
  status = Status(Code::kUnavailable, "not synced yet");
  const Health::Report report = health.Ready();
  EXPECT_FALSE(report.ok);
  EXPECT_NE(report.text.find("[-]cache failed: not synced yet"), std::string::npos);
  EXPECT_TRUE(health.Live().ok);
}

TEST(MetricsTest, ASeriesIsRenderedUnderItsName) {
  Metrics metrics;
  metrics.DeclareCounter("lockkeeper_flips_total", "Flips.");
  metrics.Add("lockkeeper_flips_total", {{"server", "kcp"}}, 2);
  metrics.OnRender([&] { metrics.Set("workqueue_depth", {{"name", "q"}, {"controller", "q"}}, 7); });
  const std::string text = metrics.Render();
  EXPECT_NE(text.find("lockkeeper_flips_total{server=\"kcp\"} 2"), std::string::npos) << text;
  EXPECT_NE(text.find("workqueue_depth{controller=\"q\",name=\"q\"} 7"), std::string::npos) << text;
  EXPECT_NE(text.find("# HELP lockkeeper_flips_total Flips."), std::string::npos);
}

}  // namespace
}  // namespace lockkeeper
