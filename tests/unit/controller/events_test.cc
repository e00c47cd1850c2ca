#include "controller/events.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "controller/event_correlator.h"
#include "controller/metrics.h"
#include "tests/unit/controller/manual_clock.h"
#include "tests/unit/controller/memory_api.h"

namespace lockkeeper {
namespace {

const Resource kEvents{"", "v1", "events", "Event", true};

class EventsTest : public ::testing::Test {
 protected:
  void Say(const std::string& reason, const std::string& message, EventType type = EventType::kNormal) {
    writer_.Record({"lockkeeper.dev/v1alpha1", "Server", {"ns", "kcp"}, "uid-1"}, type, reason, message);
  }
  std::vector<Json> Written() {
    writer_.Flush();
    auto list = api_.List(kEvents, "ns", {});
    // As kubectl describe sorts them.
    std::stable_sort(list->items.begin(), list->items.end(), [](const Json& a, const Json& b) {
      return a.Get("lastTimestamp").AsString() < b.Get("lastTimestamp").AsString();
    });
    return list->items;
  }

  ManualClock clock_;
  MemoryApi api_;
  Metrics metrics_;
  EventWriter writer_{api_, clock_, {.component = "lockkeeper-agent", .host = "host-a", .metrics = &metrics_}};
};

TEST_F(EventsTest, AnEventHoldsWhatDescribeAndAServerNeed) {
  Say("Flipped", "front sends new connections to green");
  const auto events = Written();
  ASSERT_EQ(events.size(), 1u);
  const Json& event = events[0];
  EXPECT_EQ(event.At({"involvedObject", "kind"}).AsString(), "Server");
  EXPECT_EQ(event.At({"involvedObject", "uid"}).AsString(), "uid-1");
  EXPECT_EQ(event.At({"involvedObject", "namespace"}).AsString(), "ns");
  EXPECT_EQ(event.Get("type").AsString(), "Normal");
  EXPECT_EQ(event.Get("reason").AsString(), "Flipped");
  EXPECT_EQ(event.Get("count").AsInt(), 1);
  EXPECT_EQ(event.At({"source", "component"}).AsString(), "lockkeeper-agent");
  EXPECT_EQ(event.At({"source", "host"}).AsString(), "host-a");
  for (const char* required : {"action", "reportingComponent", "reportingInstance", "eventTime"}) {
    EXPECT_FALSE(event.Get(required).AsString().empty()) << required;
  }
}

TEST_F(EventsTest, TheStoryStaysInOrderThoughNoTimePasses) {
  const std::vector<std::string> story = {"Backup", "Start", "Ready", "Persist", "Flip", "Stop", "Lease", "Probe"};
  for (const std::string& reason : story) Say(reason, "x");
  const auto events = Written();
  ASSERT_EQ(events.size(), story.size());
  for (size_t i = 0; i < story.size(); ++i) EXPECT_EQ(events[i].Get("reason").AsString(), story[i]);
}

TEST_F(EventsTest, ARepeatRaisesTheCountByPatch) {
  Say("NotReady", "slot green answers 500", EventType::kWarning);
  clock_.Advance(Seconds(5));
  Say("NotReady", "slot green answers 500", EventType::kWarning);
  clock_.Advance(Seconds(5));
  Say("NotReady", "slot green answers 500", EventType::kWarning);
  const auto events = Written();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].Get("count").AsInt(), 3);
  EXPECT_LT(events[0].Get("firstTimestamp").AsString(), events[0].Get("lastTimestamp").AsString());
  EXPECT_EQ(api_.Calls()[1].substr(0, 5), "patch");
}

TEST_F(EventsTest, ARepeatOfAnEventThatWasCollectedBeginsAnew) {
  Say("A", "x");
  const auto first = Written();
  ASSERT_TRUE(api_.Delete(kEvents, ObjectKey::Of(first[0]), {}).ok());
  Say("A", "x");
  const auto events = Written();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].Get("count").AsInt(), 1);
}

TEST_F(EventsTest, MoreThanTenThatDifferOnlyInTheirMessageBecomeOne) {
  for (int i = 0; i < 15; ++i) Say("Pulled", "file " + std::to_string(i));
  const auto events = Written();
  ASSERT_EQ(events.size(), 11u);
  const auto combined =
      std::find_if(events.begin(), events.end(), [](const Json& e) { return e.Get("count").AsInt() > 1; });
  ASSERT_NE(combined, events.end());
  EXPECT_EQ(combined->Get("message").AsString(), "(combined from similar events): file 14");
  EXPECT_EQ(combined->Get("count").AsInt(), 5);
}

TEST_F(EventsTest, AnObjectMayBurstTwentyFiveThenOnePerThreeHundredSeconds) {
  for (int i = 0; i < 40; ++i) Say("Reason" + std::to_string(i), "x");
  EXPECT_EQ(Written().size(), 25u);
  EXPECT_EQ(metrics_.Value("events_dropped_total", {{"reason", "too many"}}), 15);
  // Warnings are not drowned by the flood.
  Say("Trouble", "x", EventType::kWarning);
  EXPECT_EQ(Written().size(), 26u);
  clock_.Advance(Seconds(300));
  Say("Later", "x");
  Say("TooSoon", "x");
  EXPECT_EQ(Written().size(), 27u);
}

TEST_F(EventsTest, BeyondAThousandWaitingTheyAreDroppedAndCounted) {
  for (int i = 0; i < 1003; ++i) Say("R", "x");
  EXPECT_EQ(metrics_.Value("events_dropped_total", {{"reason", "queue full"}}), 3);
}

TEST_F(EventsTest, ALongMessageIsCutAtACharacter) {
  std::string message;
  while (message.size() < 3000) message += "ä";
  Say("Long", message);
  const auto events = Written();
  const std::string& written = events[0].Get("message").AsString();
  EXPECT_LE(written.size(), 1024u);
  EXPECT_TRUE(written.ends_with("ä..."));
}

TEST_F(EventsTest, AnEventOfAClusterScopedObjectGoesToTheDefaultNamespace) {
  writer_.Record({"v1", "Namespace", {"", "x"}, "u"}, EventType::kNormal, "R", "m");
  writer_.Flush();
  EXPECT_EQ(api_.List(kEvents, "default", {})->items.size(), 1u);
}

TEST_F(EventsTest, ALostReplyMakesNoSecondEvent) {
  EventWriter writer(api_, clock_, {.tries = 3, .retry_pause = std::chrono::milliseconds(0)});
  api_.LoseReplyOf("create");
  writer.Record({"v1", "Thing", {"ns", "t"}, "u"}, EventType::kNormal, "R", "m");
  CancelToken cancel;
  std::thread thread([&] { writer.Run(cancel); });
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (api_.Calls().size() < 2 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  cancel.Cancel();
  thread.join();
  EXPECT_EQ(api_.List(kEvents, "ns", {})->items.size(), 1u);
  EXPECT_EQ(api_.Calls()[0], api_.Calls()[1]);
}

TEST(EventCorrelatorTest, RemembersNoMoreThanItsLimit) {
  EventWriterOptions options;
  options.lru_size = 30;
  EventCorrelator correlator(options);
  Time time{};
  for (int i = 0; i < 100; ++i) {
    time += Seconds(1);
    auto decision =
        correlator.Decide({{"v1", "T", {"ns", std::to_string(i)}, "u"}, EventType::kNormal, "R", "m", time});
    EXPECT_EQ(decision.kind, EventCorrelator::Decision::Kind::kCreate);
    correlator.Written(decision.key, decision.record);
  }
  time += Seconds(1);
  auto again = correlator.Decide({{"v1", "T", {"ns", "99"}, "u"}, EventType::kNormal, "R", "m", time});
  EXPECT_EQ(again.kind, EventCorrelator::Decision::Kind::kPatch);
  auto old = correlator.Decide({{"v1", "T", {"ns", "0"}, "u"}, EventType::kNormal, "R", "m", time});
  EXPECT_EQ(old.kind, EventCorrelator::Decision::Kind::kCreate);
}

}  // namespace
}  // namespace lockkeeper
