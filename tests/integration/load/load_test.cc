// The load generator judges rolls: each thing it is to notice is done to it here, by a server with one fault.
#include "tests/load/load.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>

#include "tests/integration/load/fake_config_maps.h"
#include "tests/support/wait.h"

namespace lockkeeper::load {
namespace {

LoadConfig Config(const FakeConfigMaps& server) {
  LoadConfig config;
  config.base_url = server.url();
  config.connections = 4;
  config.rate = 2000;
  config.write_percent = 40;
  config.watchers = 2;
  config.request_timeout = Seconds(20);
  return config;
}

// Runs until `requests` were answered, or given up, and what a test waits for beside it has come.
LoadResult RunUntil(
    const LoadConfig& config, int64_t requests,
    const std::function<bool(const LoadCounts&)>& until = [](const LoadCounts&) { return true; }) {
  LoadGenerator generator(config);
  const Status status = generator.Start();
  EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_TRUE(WaitUntil([&] {
    const LoadCounts counts = generator.Counts();
    return counts.requests >= requests && until(counts);
  }));
  return generator.Stop();
}

std::function<bool(int64_t)> Write(int64_t number) {
  return [number](int64_t write) { return write == number; };
}

// True for one request of the method, once the connection has been used before.
std::function<bool(const HttpRequest&)> OneReused(std::string method) {
  auto done = std::make_shared<std::atomic<bool>>(false);
  return [method = std::move(method), done](const HttpRequest& request) {
    return request.method == method && request.sequence > 5 && !done->exchange(true);
  };
}

TEST(Load, OnAHealthyServerAllIsClean) {
  FakeConfigMaps server({});
  const LoadResult result = RunUntil(Config(server), 400);
  EXPECT_TRUE(result.Clean()) << result.ToJson().DumpPretty();
  EXPECT_EQ(result.counts.ok, result.counts.requests);
  EXPECT_EQ(result.counts.reads + result.counts.writes, result.counts.requests);
  EXPECT_EQ(result.counts.accepted_writes, result.counts.writes);
  EXPECT_EQ(result.counts.watch_events, 2 * result.counts.writes) << "two watches";
  EXPECT_EQ(result.counts.connections, 4);
  EXPECT_EQ(result.counts.retried, 0);
  EXPECT_GT(result.counts.reads, 0);
  EXPECT_GT(result.read_back, 4);
  EXPECT_EQ(result.read_latency.count() + result.write_latency.count(), static_cast<uint64_t>(result.counts.ok));
  EXPECT_EQ(server.objects(), 0u) << "what was made is deleted";
}

TEST(Load, AReusedConnectionThatDiesBeforeTheReadIsAnsweredIsRetriedOnce) {
  FakeConfigMaps server({.cut_before = OneReused("GET")});
  const LoadResult result = RunUntil(Config(server), 200, [](const auto& c) { return c.retried > 0; });
  EXPECT_TRUE(result.Clean()) << result.ToJson().DumpPretty();
  EXPECT_EQ(result.counts.retried, 1);
  EXPECT_EQ(result.counts.connections, 5);
}

TEST(Load, AWriteThatWasCarriedOutBeforeItsConnectionDiedIsFoundAndCountsOnce) {
  for (const char* method : {"PUT", "POST"}) {
    FakeConfigMaps server({.cut_after = OneReused(method)});
    const LoadResult result = RunUntil(Config(server), 200, [](const auto& c) { return c.retried > 0; });
    EXPECT_TRUE(result.Clean()) << method << result.ToJson().DumpPretty();
    EXPECT_EQ(result.counts.retried, 1) << method;
  }
}

TEST(Load, AFreshConnectionThatDiesIsNotRetriedButFailed) {
  std::atomic<bool> done{false};
  FakeConfigMaps server({.cut_before = [&](const HttpRequest& request) {
    return request.method == "POST" && request.path != "/api/v1/namespaces" && request.sequence == 1 &&
           !done.exchange(true);
  }});
  const LoadResult result = RunUntil(Config(server), 100);
  EXPECT_FALSE(result.Clean());
  EXPECT_EQ(result.counts.failed, 1);
  EXPECT_EQ(result.counts.retried, 0);
  EXPECT_EQ(result.lost_writes, 0);
  ASSERT_FALSE(result.errors.empty());
}

TEST(Load, AnAnswerThatIsAnErrorIsAFailedRequestAndSaysWhat) {
  FakeConfigMaps server({.unavailable = OneReused("PUT")});
  const LoadResult result = RunUntil(Config(server), 100, [](const auto& c) { return c.failed > 0; });
  EXPECT_FALSE(result.Clean());
  EXPECT_EQ(result.counts.failed, 1);
  ASSERT_EQ(result.errors.size(), 1u);
  EXPECT_NE(result.errors[0].find("503 not now"), std::string::npos) << result.errors[0];
}

TEST(Load, ARefusedConnectionIsCountedApart) {
  FakeConfigMaps server({});
  LoadGenerator generator(Config(server));
  ASSERT_TRUE(generator.Start().ok());
  ASSERT_TRUE(WaitUntil([&] { return generator.Counts().requests > 50; }));
  server.server().CloseListener();
  server.server().DrainConnections();
  EXPECT_TRUE(WaitUntil([&] { return generator.Counts().refused > 0; }));
  const LoadResult result = generator.Stop();
  EXPECT_FALSE(result.Clean());
  EXPECT_GT(result.counts.refused, 0);
}

TEST(Load, AnAcceptedWriteThatIsGoneIsNoticed) {
  // A create: an update that is lost would be found by the next one too.
  FakeConfigMaps server({.lose_write = Write(1)});
  const LoadResult result = RunUntil(Config(server), 20);
  EXPECT_FALSE(result.Clean());
  EXPECT_EQ(result.lost_writes, 1) << result.ToJson().DumpPretty();
}

TEST(Load, AReadOfAnOlderStateIsNoticed) {
  FakeConfigMaps server({.stale = [](const HttpRequest& request) { return request.sequence > 20; }});
  const LoadResult result = RunUntil(Config(server), 200, [](const auto& c) { return c.stale_reads > 0; });
  EXPECT_FALSE(result.Clean());
  EXPECT_GT(result.counts.stale_reads, 0);
}

TEST(Load, AnEventThatAWatchDidNotGetIsNoticed) {
  FakeConfigMaps server({.drop_event = Write(7)});
  const LoadResult result = RunUntil(Config(server), 100);
  EXPECT_FALSE(result.Clean());
  EXPECT_EQ(result.missed_events, 2) << "one for each watch";
  EXPECT_EQ(result.duplicate_events, 0);
}

TEST(Load, AnEventThatAWatchGotTwiceIsNoticed) {
  FakeConfigMaps server({.repeat_event = Write(7)});
  const LoadResult result = RunUntil(Config(server), 100);
  EXPECT_FALSE(result.Clean());
  EXPECT_EQ(result.duplicate_events, 2);
  EXPECT_EQ(result.missed_events, 0);
}

TEST(Load, AWatchThatIsCutGoesOnWhereItWas) {
  const FakeConfigMaps* both = nullptr;
  std::atomic<bool> done{false};
  FakeConfigMaps server({.cut_watches = [&](int64_t) { return both->watching() == 2 && !done.exchange(true); }});
  both = &server;
  const LoadResult result = RunUntil(Config(server), 200, [](const auto& c) { return c.watch_reconnects >= 2; });
  EXPECT_TRUE(result.Clean()) << result.ToJson().DumpPretty();
  EXPECT_EQ(result.counts.watch_reconnects, 2);
  EXPECT_EQ(result.most_reconnects, 1);
}

TEST(Load, AStallIsChargedToEveryRequestThatWasDueInIt) {
  std::atomic<bool> stalled{false};
  CancelToken never;
  FakeConfigMaps server({.unavailable = [&](const HttpRequest& request) {
    // One answer is held back for 300 ms: what is measured is exactly this time.
    if (request.sequence == 10 && !stalled.exchange(true)) {
      pollfd fd{never.fd(), POLLIN, 0};
      ::poll(&fd, 1, 300);
    }
    return false;
  }});
  LoadConfig config = Config(server);
  config.connections = 1;
  config.rate = 200;
  const LoadResult result = RunUntil(config, 100);
  EXPECT_TRUE(result.Clean()) << result.ToJson().DumpPretty();
  // 60 requests were due in the stall; measured from when they were sent, only one would be slow.
  const Duration p90 = std::max(result.read_latency.Quantile(0.9), result.write_latency.Quantile(0.9));
  EXPECT_GT(p90, Milliseconds(100));
  EXPECT_GE(result.longest_gap_seconds, 0.29);
}

TEST(Load, AServerThatIsNotThereIsAnErrorAtTheStart) {
  LoadConfig config;
  {
    const FakeConfigMaps server({});
    config = Config(server);
  }
  LoadGenerator generator(config);
  EXPECT_EQ(generator.Start().code(), Code::kUnavailable);
}

}  // namespace
}  // namespace lockkeeper::load
