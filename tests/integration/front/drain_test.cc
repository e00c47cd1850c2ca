// Drain: how connections leave an old backend.
#include <gtest/gtest.h>
#include <poll.h>

#include <vector>

#include "tests/integration/front/test_front.h"

namespace lockkeeper::front {
namespace {

using std::chrono::milliseconds;

struct Pair {
  Peer client;
  Peer server;
};

// A connection on which `turns` requests were answered.
Pair Settled(TestFront& front, const ManualBackend& backend, int turns = 3) {
  Pair p{front.Connect(), Peer()};
  for (int i = 0; i < turns; ++i) {
    EXPECT_TRUE(p.client.Send("?"));
    if (i == 0) p.server = backend.Accept();
    EXPECT_EQ(p.server.Read(1), "?");
    EXPECT_TRUE(p.server.Send("!"));
    EXPECT_EQ(p.client.Read(1), "!");
  }
  return p;
}

// The same, with one more request that the server has read and not answered.
Pair Asking(TestFront& front, const ManualBackend& backend) {
  Pair p = Settled(front, backend);
  EXPECT_TRUE(p.client.Send("?"));
  EXPECT_EQ(p.server.Read(1), "?");
  return p;
}

class Drain : public testing::Test {
 protected:
  Drain() { EXPECT_TRUE(front_.Point("blue", blue_.address(), 1)); }
  bool Flip() { return front_.Point("green", green_.address(), 2); }
  int Begin(double seconds) { return front_.service().Drain("blue", 1, Seconds(seconds)).value_or(-1); }

  ManualBackend blue_;
  ManualBackend green_;
  TestFront front_;
};

TEST_F(Drain, AnAnsweredConnectionIsClosedInOrderLongBeforeTheDeadline) {
  Pair p = Settled(front_, blue_);
  ASSERT_TRUE(Flip());
  EXPECT_EQ(Begin(60), 1);
  EXPECT_EQ(p.client.ReadToEnd(), End::kEof);
  EXPECT_EQ(p.server.ReadToEnd(), End::kEof);
  const FrontState state = front_.Get();
  EXPECT_EQ(state.drained_total, 1);
  EXPECT_EQ(state.cut_total, 0);
  EXPECT_EQ(state.OpenOn("blue", 1), 0);
}

TEST_F(Drain, ARequestOnItsWayIsAnsweredFirst) {
  Pair p = Asking(front_, blue_);
  ASSERT_TRUE(Flip());
  EXPECT_EQ(Begin(60), 1);
  // Longer than the quiet point's silence: an unanswered request is none.
  EXPECT_TRUE(p.client.StaysSilent(milliseconds(150)));
  ASSERT_TRUE(p.server.Send("!"));
  EXPECT_EQ(p.client.Read(1), "!");
  EXPECT_EQ(p.client.ReadToEnd(), End::kEof);
  EXPECT_EQ(front_.Get().cut_total, 0);
}

TEST_F(Drain, AWatchThatStillStreamsIsClosedAtOnce) {
  Pair p = Settled(front_, blue_);
  std::atomic<bool> end{false};
  std::thread events([&] {
    while (!end && p.server.Send("event\n")) ::poll(nullptr, 0, 2);
  });
  // The client is silent for longer than the grace, and the server streams on.
  ASSERT_TRUE(p.client.Read(6 * 60));
  ASSERT_TRUE(Flip());
  EXPECT_EQ(Begin(0.1), 1);
  std::string rest;
  EXPECT_EQ(p.client.ReadToEnd(&rest), End::kEof);
  end = true;
  events.join();
  const FrontState state = front_.Get();
  EXPECT_EQ(state.drained_total, 1);
  EXPECT_EQ(state.cut_total, 0);
}

TEST_F(Drain, WhoIsNotAnsweredByTheDeadlineIsCutWithAReset) {
  Pair p = Asking(front_, blue_);
  ASSERT_TRUE(Flip());
  EXPECT_EQ(Begin(0.1), 1);
  EXPECT_EQ(p.client.ReadToEnd(), End::kReset);
  EXPECT_EQ(p.server.ReadToEnd(), End::kReset);
  const FrontState state = front_.Get();
  EXPECT_EQ(state.drained_total, 1);
  EXPECT_EQ(state.cut_total, 1);
}

TEST_F(Drain, ASecondDrainMayOnlyShortenTheDeadline) {
  Pair p = Asking(front_, blue_);
  ASSERT_TRUE(Flip());
  EXPECT_EQ(Begin(0.2), 1);
  EXPECT_EQ(Begin(600), 1);  // lengthens nothing
  EXPECT_EQ(p.client.ReadToEnd(nullptr, milliseconds(5000)), End::kReset);

  Pair q = Settled(front_, green_);
  ASSERT_TRUE(q.client.Send("?"));
  ASSERT_EQ(q.server.Read(1), "?");
  ASSERT_TRUE(front_.Point("blue", blue_.address(), 3));
  EXPECT_EQ(front_.service().Drain("green", 2, Seconds(600)).value_or(-1), 1);
  EXPECT_EQ(front_.service().Drain("green", 2, Seconds(0)).value_or(-1), 1);
  EXPECT_EQ(q.client.ReadToEnd(nullptr, milliseconds(5000)), End::kReset);
}

TEST_F(Drain, TheCurrentBackendIsNotDrained) {
  const auto n = front_.service().Drain("blue", 1, Seconds(5));
  EXPECT_EQ(n.code(), Code::kInvalid);
  EXPECT_NE(n.status().message().find("CurrentBackend"), std::string::npos);
  ASSERT_TRUE(front_.Hold());  // nothing is current then
  EXPECT_EQ(front_.service().Drain("blue", 1, Seconds(5)).value_or(-1), 0);
}

TEST_F(Drain, ADrainOfABackendThatNobodyIsOnAnswersZero) {
  EXPECT_EQ(front_.service().Drain("green", 2, Seconds(5)).value_or(-1), 0);
}

TEST_F(Drain, ASetBackToADrainingBackendCancelsItsDrain) {
  Pair p = Asking(front_, blue_);
  ASSERT_TRUE(Flip());
  EXPECT_EQ(Begin(0.15), 1);
  EXPECT_EQ(front_.Get().open.at(0).draining, 1);
  ASSERT_TRUE(front_.Point("blue", blue_.address(), 1));
  EXPECT_EQ(front_.Get().open.at(0).draining, 0);
  // Past the deadline that was.
  EXPECT_TRUE(p.client.StaysSilent(milliseconds(400)));
  ASSERT_TRUE(p.server.Send("!"));
  EXPECT_EQ(p.client.Read(1), "!");
  EXPECT_EQ(front_.Get().drained_total, 0);
}

TEST_F(Drain, AConnectionOnWhichNothingWasSaidMovesInsteadOfEnding) {
  Peer client = front_.Connect();
  Peer old = blue_.Accept();
  ASSERT_TRUE(old.ok());
  ASSERT_TRUE(Flip());
  EXPECT_EQ(Begin(60), 1);
  EXPECT_EQ(old.ReadToEnd(), End::kEof);
  Peer now = green_.Accept();
  ASSERT_TRUE(client.Send("?"));
  EXPECT_EQ(now.Read(1), "?");
  ASSERT_TRUE(now.Send("!"));
  EXPECT_EQ(client.Read(1), "!");
  EXPECT_EQ(front_.Get().drained_total, 0);
}

TEST_F(Drain, InAnOutageASilentConnectionIsHeldInstead) {
  Peer client = front_.Connect();
  Peer old = blue_.Accept();
  ASSERT_TRUE(front_.Hold());
  EXPECT_EQ(Begin(60), 1);
  EXPECT_EQ(old.ReadToEnd(), End::kEof);
  ASSERT_TRUE(Eventually([&] { return front_.Get().held == 1; }));
  ASSERT_TRUE(Flip());
  ASSERT_TRUE(client.Send("?"));
  EXPECT_EQ(green_.Accept().Read(1), "?");
}

TEST_F(Drain, AYoungConnectionGetsTimeForItsHandshake) {
  Pair p = Settled(front_, blue_, 1);
  ASSERT_TRUE(Flip());
  EXPECT_EQ(Begin(60), 1);
  EXPECT_TRUE(p.client.StaysSilent(milliseconds(300)));
  EXPECT_EQ(p.client.ReadToEnd(), End::kEof);  // after a second
  EXPECT_EQ(front_.Get().cut_total, 0);
}

TEST_F(Drain, TheEndOfTheLastConnectionWakesWhoWaitsForIt) {
  Pair p = Settled(front_, blue_);
  ASSERT_TRUE(p.client.Send("?"));
  ASSERT_TRUE(Flip());
  EXPECT_EQ(front_.service().plane().WaitOpenZero("blue", 1, Milliseconds(20)).code(), Code::kTimeout);
  std::thread end([&] {
    p.client.Close();
    p.server.Close();
  });
  EXPECT_TRUE(front_.service().plane().WaitOpenZero("blue", 1, Seconds(10)).ok());
  end.join();
  EXPECT_TRUE(front_.service().plane().WaitOpenZero("blue", 1, Seconds(0)).ok());
}

TEST_F(Drain, AConnectionThatEndsByItselfIsCountedOffOnce) {
  std::vector<Pair> pairs;
  for (int i = 0; i < 10; ++i) pairs.push_back(Settled(front_, blue_));
  EXPECT_EQ(front_.Get().OpenOn("blue", 1), 10);
  ASSERT_TRUE(Flip());
  Pair on_green = Settled(front_, green_);
  for (int i = 0; i < 5; ++i) {
    pairs[i].client.Reset();
    pairs[i].server.Close();
  }
  EXPECT_TRUE(Eventually([&] { return front_.Get().OpenOn("blue", 1) == 5; }));
  EXPECT_EQ(Begin(60), 5);
  EXPECT_TRUE(Eventually([&] { return front_.Get().OpenOn("blue", 1) == 0; }));
  const FrontState state = front_.Get();
  EXPECT_EQ(state.drained_total, 5);
  EXPECT_EQ(state.OpenOn("green", 2), 1);
}

}  // namespace
}  // namespace lockkeeper::front
