// Hold and dial: what a connection lives through before it has a backend.
#include <gtest/gtest.h>

#include <vector>

#include "tests/integration/front/test_front.h"

namespace lockkeeper::front {
namespace {

using std::chrono::milliseconds;

// Reads one byte from the next connection of a backend and answers it.
::testing::AssertionResult ServesNext(const ManualBackend& backend, const Peer& client) {
  static std::vector<Peer> open;  // kept till the end: closing would end the client's connection
  Peer server = backend.Accept();
  if (!server.ok()) return ::testing::AssertionFailure() << "nothing to accept";
  const auto byte = server.Read(1);
  if (!byte) return ::testing::AssertionFailure() << "nothing to read";
  if (!server.Send(*byte)) return ::testing::AssertionFailure() << "cannot answer";
  if (client.Read(1) != byte) return ::testing::AssertionFailure() << "the client read no answer";
  open.push_back(std::move(server));
  return ::testing::AssertionSuccess();
}

// A backend that answers no SYN: its queue is full and nobody accepts.
class BlackHole {
 public:
  BlackHole() : backend_(0, 0) {
    for (int i = 0; i < 4; ++i) {
      UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      const auto a = ParseAddress(backend_.address());
      (void)::connect(fd.get(), a->get(), a->size);
      fill_.push_back(std::move(fd));
    }
  }
  std::string address() const { return backend_.address(); }

 private:
  ManualBackend backend_;
  std::vector<UniqueFd> fill_;
};

FrontLimits Quick() {
  FrontLimits limits;
  limits.connect_timeout = Milliseconds(80);
  limits.connect_budget = Milliseconds(400);
  limits.probe_interval = Milliseconds(20);
  return limits;
}

TEST(Hold, AFrontThatWasNeverSetHoldsAndServesOnceItIs) {
  ManualBackend backend;
  TestFront front;
  Peer client = front.Connect();
  ASSERT_TRUE(client.Send("x"));
  ASSERT_TRUE(Eventually([&] { return front.Get().held == 1; }));
  EXPECT_FALSE(front.Get().target.has_value());
  ASSERT_TRUE(front.Point("blue", backend.address()));
  EXPECT_TRUE(ServesNext(backend, client));
  EXPECT_EQ(front.Get().held, 0);
}

TEST(Hold, HeldConnectionsAreReleasedInTheOrderOfTheirAccept) {
  ManualBackend backend;
  TestFront front;
  ASSERT_TRUE(front.Hold());
  constexpr int kClients = 100;
  std::vector<Peer> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.push_back(front.Connect());
    ASSERT_TRUE(clients.back().Send(std::string(1, static_cast<char>(i))));
  }
  ASSERT_TRUE(Eventually([&] { return front.Get().held == kClients; }));
  ASSERT_TRUE(front.Point("blue", backend.address()));
  for (int i = 0; i < kClients; ++i) {
    SCOPED_TRACE(i);
    EXPECT_TRUE(ServesNext(backend, clients[i]));
  }
  EXPECT_EQ(front.Get().refused_total, 0);
}

TEST(Hold, AClientThatGoesAwayWhileHeldIsNoticedAndDropped) {
  TestFront front;
  ASSERT_TRUE(front.Hold());
  Peer stays = front.Connect();
  Peer closes = front.Connect();
  Peer resets = front.Connect();
  Peer said_something = front.Connect();
  ASSERT_TRUE(resets.Send("x") && said_something.Send("x"));
  ASSERT_TRUE(Eventually([&] { return front.Get().held == 4; }));
  closes.Close();
  resets.Reset();
  said_something.Close();
  ASSERT_TRUE(Eventually([&] { return front.Get().held == 1; }));
  EXPECT_EQ(front.Get().refused_total, 0);
  ManualBackend backend;
  ASSERT_TRUE(stays.Send("x"));
  ASSERT_TRUE(front.Point("blue", backend.address()));
  EXPECT_TRUE(ServesNext(backend, stays));
  EXPECT_FALSE(backend.Accept(milliseconds(30)).ok());
}

TEST(Hold, AConnectionHeldForTooLongIsResetAndCounted) {
  FrontLimits limits;
  limits.hold_time = Milliseconds(60);
  TestFront front(limits);
  Peer client = front.Connect();
  ASSERT_TRUE(client.Send("x"));
  EXPECT_EQ(client.ReadToEnd(), End::kReset);
  EXPECT_EQ(front.Get().refused_total, 1);
}

TEST(Hold, BeyondTheBoundConnectionsWaitInTheKernelAndNoneIsRefused) {
  ManualBackend backend;
  FrontLimits limits;
  limits.hold_connections = 4;
  TestFront front(limits);
  ASSERT_TRUE(front.Hold());
  std::vector<Peer> clients;
  for (int i = 0; i < 10; ++i) {
    clients.push_back(front.Connect());
    ASSERT_TRUE(clients.back().Send(std::string(1, static_cast<char>('a' + i))));
  }
  ASSERT_TRUE(Eventually([&] { return front.Get().held == 4; }));
  EXPECT_EQ(front.Get().accepted_total, 4);
  ASSERT_TRUE(front.Point("blue", backend.address()));
  for (int i = 0; i < 10; ++i) {
    SCOPED_TRACE(i);
    EXPECT_TRUE(ServesNext(backend, clients[i]));
  }
  EXPECT_EQ(front.Get().refused_total, 0);
}

TEST(Hold, ARefusedDialIsHeldAndServedOnceTheServerListens) {
  const int port = DeadPort();
  TestFront front(Quick());
  ASSERT_TRUE(front.Point("blue", "127.0.0.1:" + std::to_string(port)));
  Peer client = front.Connect();
  ASSERT_TRUE(client.Send("x"));
  ASSERT_TRUE(Eventually([&] { return front.Get().held == 1; }));
  EXPECT_GE(front.Metric("lockkeeper_front_dial_failures_total{errno=\"ECONNREFUSED\"}"), 3);
  // Nobody says a word to the front: it looks by itself.
  ManualBackend backend(port);
  ASSERT_EQ(backend.port(), port);
  EXPECT_TRUE(ServesNext(backend, client));
}

TEST(Hold, WhenADeadBackendIsReplacedTheHeldOnesGoToTheNewOne) {
  TestFront front(Quick());
  ASSERT_TRUE(front.Point("blue", "127.0.0.1:" + std::to_string(DeadPort())));
  std::vector<Peer> clients;
  for (int i = 0; i < 5; ++i) {
    clients.push_back(front.Connect());
    ASSERT_TRUE(clients.back().Send(std::string(1, static_cast<char>('a' + i))));
  }
  ASSERT_TRUE(Eventually([&] { return front.Get().held + front.Get().OpenOn("blue", 1) >= 5; }));
  ManualBackend green;
  ASSERT_TRUE(front.Point("green", green.address(), 2));
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(ServesNext(green, clients[i]));
}

TEST(Hold, ABlackHoleIsGivenUpWithinTheBudgetAndTheConnectionIsHeld) {
  BlackHole hole;
  ManualBackend green;
  TestFront front(Quick());
  ASSERT_TRUE(front.Point("blue", hole.address()));
  Peer client = front.Connect();
  ASSERT_TRUE(client.Send("x"));
  ASSERT_TRUE(Eventually([&] { return front.Get().held == 1; }));
  EXPECT_GE(front.Metric("lockkeeper_front_dial_failures_total{errno=\"ETIMEDOUT\"}"), 1);
  ASSERT_TRUE(front.Point("green", green.address(), 2));
  EXPECT_TRUE(ServesNext(green, client));
}

TEST(Hold, ASetDuringTheDialRedirectsIt) {
  BlackHole hole;
  ManualBackend green;
  FrontLimits limits;
  limits.connect_timeout = Seconds(15);  // the dial would last the whole test
  limits.connect_budget = Seconds(15);
  TestFront front(limits);
  ASSERT_TRUE(front.Point("blue", hole.address()));
  Peer client = front.Connect();
  ASSERT_TRUE(client.Send("x"));
  ASSERT_TRUE(Eventually([&] { return front.Get().OpenOn("blue", 1) == 1; }));
  ASSERT_TRUE(front.Point("green", green.address(), 2));
  EXPECT_TRUE(ServesNext(green, client));
  const FrontState state = front.Get();
  EXPECT_EQ(state.OpenOn("blue", 1), 0);
  EXPECT_EQ(state.OpenOn("green", 2), 1);
}

TEST(Hold, ASetToHoldDuringTheDialHoldsTheConnection) {
  BlackHole hole;
  ManualBackend green;
  TestFront front;
  ASSERT_TRUE(front.Point("blue", hole.address()));
  Peer client = front.Connect();
  ASSERT_TRUE(client.Send("x"));
  ASSERT_TRUE(Eventually([&] { return front.Get().OpenOn("blue", 1) == 1; }));
  ASSERT_TRUE(front.Hold());
  EXPECT_EQ(front.Get().held, 1);
  ASSERT_TRUE(front.Point("green", green.address(), 2));
  EXPECT_TRUE(ServesNext(green, client));
}

TEST(Hold, APlannedOutageRefusesNobody) {
  ManualBackend blue;
  TestFront front;
  ASSERT_TRUE(front.Point("blue", blue.address()));
  Peer before = front.Connect();
  ASSERT_TRUE(before.Send("a"));
  EXPECT_TRUE(ServesNext(blue, before));
  ASSERT_TRUE(front.Hold());
  const int port = blue.port();
  blue.Close();  // the server is gone; its port refuses
  std::vector<Peer> during;
  for (int i = 0; i < 20; ++i) {
    during.push_back(front.Connect());
    ASSERT_TRUE(during.back().ok());
    ASSERT_TRUE(during.back().Send("b"));
  }
  ASSERT_TRUE(Eventually([&] { return front.Get().held == 20; }));
  ManualBackend again(port);
  ASSERT_TRUE(front.Point("blue", again.address(), 2));
  for (const Peer& client : during) EXPECT_TRUE(ServesNext(again, client));
  EXPECT_EQ(front.Get().refused_total, 0);
}

}  // namespace
}  // namespace lockkeeper::front
