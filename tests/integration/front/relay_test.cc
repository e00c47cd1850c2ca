#include <gtest/gtest.h>

#include <cerrno>
#include <vector>

#include "tests/integration/front/test_front.h"

namespace lockkeeper::front {
namespace {

using std::chrono::milliseconds;

std::string Pattern(size_t size, unsigned seed) {
  std::string data(size, '\0');
  unsigned x = seed * 2654435761u + 1;
  for (char& c : data) {
    x = x * 1664525u + 1013904223u;
    c = static_cast<char>(x >> 24);
  }
  return data;
}

// A connection through a front: its client has said `words`, of which the server has read the first `read` bytes.
struct Link {
  explicit Link(FrontLimits limits = {}, const std::string& words = "x", size_t read = 1) : front(limits) {
    EXPECT_TRUE(front.Point("blue", backend.address()));
    client = front.Connect();
    EXPECT_TRUE(client.Send(words));
    server = backend.Accept();
    EXPECT_TRUE(server.Read(read));
  }
  ManualBackend backend;
  TestFront front;
  Peer client;
  Peer server;
};

TEST(Relay, AClientThatHalfClosesStillGetsItsAnswer) {
  ManualBackend backend;
  TestFront front;
  ASSERT_TRUE(front.Point("blue", backend.address()));
  Peer client = front.Connect();
  ASSERT_TRUE(client.Send("question"));
  client.ShutdownWrite();
  Peer server = backend.Accept();
  std::string question;
  ASSERT_EQ(server.ReadToEnd(&question), End::kEof);
  EXPECT_EQ(question, "question");
  ASSERT_TRUE(server.Send("answer"));
  server.Close();
  std::string answer;
  EXPECT_EQ(client.ReadToEnd(&answer), End::kEof);
  EXPECT_EQ(answer, "answer");
}

TEST(Relay, AServerThatHalfClosesStillReadsTheClient) {
  ManualBackend backend;
  TestFront front;
  ASSERT_TRUE(front.Point("blue", backend.address()));
  Peer client = front.Connect();
  Peer server = backend.Accept();
  ASSERT_TRUE(server.Send("greeting"));
  server.ShutdownWrite();
  std::string greeting;
  ASSERT_EQ(client.ReadToEnd(&greeting), End::kEof);
  EXPECT_EQ(greeting, "greeting");
  ASSERT_TRUE(client.Send("late words"));
  client.Close();
  std::string late;
  EXPECT_EQ(server.ReadToEnd(&late), End::kEof);
  EXPECT_EQ(late, "late words");
  EXPECT_TRUE(Eventually([&] { return front.Get().open.empty(); }));
}

TEST(Relay, AResetOfTheClientReachesTheServerAsAReset) {
  Link link;
  link.client.Reset();
  EXPECT_EQ(link.server.ReadToEnd(), End::kReset);
}

TEST(Relay, AResetOfTheServerReachesTheClientBehindTheBytesBeforeIt) {
  Link link;
  ASSERT_TRUE(link.server.Send("last words"));
  // They must be with the front before the reset throws away what was not sent.
  ASSERT_TRUE(Eventually([&] { return UnackedBytes(link.server.fd()) == 0; }));
  link.server.Reset();
  std::string words;
  EXPECT_EQ(link.client.ReadToEnd(&words), End::kReset);
  EXPECT_EQ(words, "last words");
}

TEST(Relay, AServerThatAnswersWithoutReadingAllStillHasItsAnswerDelivered) {
  Link link({}, Pattern(300'000, 1), 10);
  ASSERT_TRUE(link.server.Send("too large"));
  ASSERT_TRUE(Eventually([&] { return UnackedBytes(link.server.fd()) == 0; }));
  link.server.Close();  // with bytes unread: the kernel resets
  std::string answer;
  link.client.ReadToEnd(&answer);
  EXPECT_EQ(answer, "too large");
}

TEST(Relay, ASlowReaderStopsItsServerAndNobodyElse) {
  ManualBackend backend;
  TestFront front;
  ASSERT_TRUE(front.Point("blue", backend.address()));
  Peer slow = Peer::ConnectSlow(front.address(), 4096);
  ASSERT_TRUE(slow.Send("x"));
  Peer server = backend.Accept();
  ASSERT_TRUE(server.Read(1));
  const std::string sent = Pattern(24 << 20, 2);
  std::atomic<bool> done{false};
  std::thread writer([&] {
    EXPECT_TRUE(server.Send(sent));
    server.ShutdownWrite();
    done = true;
  });
  // Another connection is served while that one is stuck.
  Peer other = front.Connect();
  ASSERT_TRUE(other.Send("ping"));
  Peer other_server = backend.Accept();
  std::thread echo([&] {
    while (const auto bytes = other_server.Read(4)) other_server.Send(*bytes);
  });
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(other.Read(4), "ping");
    EXPECT_TRUE(other.Send("ping"));
  }
  // More than all socket buffers and the front's 64 KiB was not taken.
  EXPECT_FALSE(done);
  other.Close();
  echo.join();
  std::string got;
  EXPECT_EQ(slow.ReadToEnd(&got), End::kEof);
  EXPECT_TRUE(got == sent);
  writer.join();
}

TEST(Relay, BytesInBothDirectionsAtOnceStayWholeAndInOrder) {
  Link link;
  const std::string up = Pattern(9'000'001, 3);
  const std::string down = Pattern(7'000'003, 4);
  std::string got_up;
  std::string got_down;
  const auto write = [](const Peer& peer, const std::string& data) {
    EXPECT_TRUE(peer.Send(data));
    peer.ShutdownWrite();
  };
  std::thread a([&] { write(link.client, up); });
  std::thread b([&] { write(link.server, down); });
  std::thread c([&] { EXPECT_EQ(link.server.ReadToEnd(&got_up), End::kEof); });
  EXPECT_EQ(link.client.ReadToEnd(&got_down), End::kEof);
  a.join();
  b.join();
  c.join();
  EXPECT_TRUE(got_up == up);
  EXPECT_TRUE(got_down == down);
  EXPECT_GE(link.front.Metric("lockkeeper_front_bytes_total{dir=\"up\",mode=\"copy\"}"), 9'000'001);
}

TEST(Relay, OneByteWritesArriveOneByOneInOrder) {
  ManualBackend backend;
  TestFront front;
  ASSERT_TRUE(front.Point("blue", backend.address()));
  Peer client = front.Connect();
  const std::string words = Pattern(1500, 5);
  for (size_t i = 0; i < words.size(); ++i) ASSERT_TRUE(client.Send(words.substr(i, 1)));
  Peer server = backend.Accept();
  for (size_t i = 0; i < words.size(); ++i) {
    const auto byte = server.Read(1);
    ASSERT_TRUE(byte);
    ASSERT_EQ(*byte, words.substr(i, 1));
    ASSERT_TRUE(server.Send(*byte));
  }
  EXPECT_EQ(client.Read(words.size()), words);
}

TEST(Relay, AnIdleConnectionEndsAfterTheIdleTimeout) {
  FrontLimits limits;
  limits.idle_timeout = Milliseconds(150);
  Link link(limits);
  EXPECT_EQ(link.client.ReadToEnd(), End::kReset);
  EXPECT_EQ(link.server.ReadToEnd(), End::kReset);
}

TEST(Relay, AHalfClosedConnectionHasAShorterPatience) {
  FrontLimits limits;
  limits.fin_timeout = Milliseconds(150);
  Link link(limits);
  link.client.ShutdownWrite();
  ASSERT_EQ(link.server.ReadToEnd(), End::kEof);
  EXPECT_EQ(link.client.ReadToEnd(), End::kReset);
}

TEST(Relay, AHalfClosedClientThatResetsEndsItsServerAtOnce) {
  Link link;
  link.client.ShutdownWrite();
  ASSERT_EQ(link.server.ReadToEnd(), End::kEof);
  link.client.Reset();
  EXPECT_TRUE(Eventually([&] { return link.front.Get().open.empty(); }));
}

TEST(Relay, AtTheLimitConnectionsWaitInTheKernelAndAreServedLater) {
  ManualBackend backend;
  FrontLimits limits;
  limits.max_connections = 2;
  TestFront front(limits);
  ASSERT_TRUE(front.Point("blue", backend.address()));
  std::vector<Peer> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(front.Connect());
    ASSERT_TRUE(clients.back().ok());
    ASSERT_TRUE(clients.back().Send(std::to_string(i)));
  }
  std::vector<Peer> servers;
  for (int i = 0; i < 2; ++i) {
    servers.push_back(backend.Accept());
    ASSERT_EQ(servers.back().Read(1), std::to_string(i));
  }
  EXPECT_FALSE(backend.Accept(milliseconds(100)).ok());
  EXPECT_TRUE(clients[2].StaysSilent(milliseconds(1)));
  clients[0].Close();
  servers[0].Close();
  Peer third = backend.Accept();
  EXPECT_EQ(third.Read(1), "2");
  EXPECT_EQ(front.Get().refused_total, 0);
  EXPECT_GT(front.Metric("lockkeeper_front_accept_paused_seconds_total"), 0);
}

TEST(Relay, ASocketThatConnectedToItselfCountsAsRefused) {
  // What a dial of a dead port of one's own ephemeral range meets, one time in some ten thousand.
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto any = ParseAddress("127.0.0.1:0");
  ASSERT_EQ(::bind(fd.get(), any->get(), any->size), 0);
  const auto own = LocalAddress(fd.get());
  ASSERT_TRUE(own.ok());
  ASSERT_EQ(::connect(fd.get(), own->get(), own->size), 0);
  EXPECT_EQ(DialOutcome(fd.get()), ECONNREFUSED);
}

}  // namespace
}  // namespace lockkeeper::front
