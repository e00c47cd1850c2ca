#include "reconcilers/front/connection.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace lockkeeper::front {
namespace {

constexpr int kTries = 3;

Event EventAt(int i) { return static_cast<Event>(i); }

auto Key(const ConnectionState& s) {
  const auto flow = [](const Flow& f) { return f.stuck * 1 + f.ended * 2 + f.closed * 4; };
  return std::tuple(static_cast<int>(s.phase), s.tries, s.broken, flow(s.up), flow(s.down));
}

struct Walked {
  ConnectionState from;
  Event event;
  Step step;
};

// Every state that can be reached from an accept, with every event in it.
std::vector<Walked> AllSteps() {
  std::vector<Walked> steps;
  std::set<decltype(Key(ConnectionState{}))> seen;
  std::deque<ConnectionState> open = {ConnectionState{}};
  seen.insert(Key(ConnectionState{}));
  while (!open.empty()) {
    const ConnectionState s = open.front();
    open.pop_front();
    for (int e = 0; e < kEvents; ++e) {
      const Step step = Next(s, EventAt(e), kTries);
      steps.push_back({s, EventAt(e), step});
      if (seen.insert(Key(step.state)).second) open.push_back(step.state);
    }
  }
  return steps;
}

std::string Show(const Walked& w) {
  const auto flow = [](const Flow& f) {
    return std::string(f.stuck ? "S" : "-") + (f.ended ? "E" : "-") + (f.closed ? "C" : "-");
  };
  const auto state = [&](const ConnectionState& s) {
    return "phase " + std::to_string(static_cast<int>(s.phase)) + " tries " + std::to_string(s.tries) +
           (s.broken ? " broken" : "") + " up " + flow(s.up) + " down " + flow(s.down);
  };
  return state(w.from) + " + " + std::string(EventName(w.event)) + " -> " + state(w.step.state) + " actions " +
         std::to_string(w.step.actions);
}

bool Has(const Walked& w, uint16_t action) { return (w.step.actions & action) != 0; }
bool HasBackend(const ConnectionState& s) { return s.phase == Phase::kDialing || s.phase == Phase::kOpen; }

ConnectionState Open() {
  ConnectionState s;
  s.phase = Phase::kOpen;
  s.tries = 1;
  return s;
}

ConnectionState After(ConnectionState s, std::initializer_list<Event> events, uint16_t* last = nullptr) {
  for (const Event e : events) {
    const Step step = Next(s, e, kTries);
    s = step.state;
    if (last != nullptr) *last = step.actions;
  }
  return s;
}

TEST(ConnectionMachine, EveryReachableStepKeepsTheInvariants) {
  const auto steps = AllSteps();
  EXPECT_GT(steps.size(), 500u);
  for (const Walked& w : steps) {
    SCOPED_TRACE(Show(w));
    const ConnectionState& a = w.from;
    const ConnectionState& b = w.step.state;
    if (a.phase == Phase::kClosed) {
      EXPECT_EQ(b, a);
      EXPECT_EQ(w.step.actions, 0);
      continue;
    }
    for (const Flow& f : {b.up, b.down}) {
      if (f.closed) {
        EXPECT_TRUE(f.ended);
        EXPECT_FALSE(f.stuck);
      }
    }
    if (b.phase == Phase::kHeld || b.phase == Phase::kDialing || b.phase == Phase::kBackoff) {
      EXPECT_EQ(b.up, Flow{});
      EXPECT_EQ(b.down, Flow{});
      EXPECT_FALSE(b.broken);
      EXPECT_LE(b.tries, kTries);
    }
    const bool ends = b.phase == Phase::kClosed;
    EXPECT_EQ(ends, Has(w, kCloseBoth | kResetBoth));
    EXPECT_FALSE(Has(w, kCloseBoth) && Has(w, kResetBoth));
    if (ends && b.broken) {
      EXPECT_TRUE(Has(w, kResetBoth));
    }
    // Nothing else to do with sockets that are being closed.
    if (ends) {
      EXPECT_FALSE(Has(w, kDial | kPark | kArmBackoff | kFinBackend | kFinClient | kDropBackend));
    }
    EXPECT_EQ(Has(w, kPark), a.phase != Phase::kHeld && b.phase == Phase::kHeld);
    EXPECT_EQ(Has(w, kArmBackoff), a.phase != Phase::kBackoff && b.phase == Phase::kBackoff);
    if (Has(w, kDial)) {
      EXPECT_EQ(b.phase, Phase::kDialing);
    }
    if (b.phase == Phase::kDialing && a.phase != Phase::kDialing) {
      EXPECT_TRUE(Has(w, kDial));
    }
    // A backend's socket goes exactly when the state leaves it behind.
    if (!ends) {
      EXPECT_EQ(Has(w, kDropBackend), HasBackend(a) && (!HasBackend(b) || Has(w, kDial)));
    }
    // A FIN belongs to a direction that just closed in order.
    EXPECT_EQ(Has(w, kFinBackend), !ends && !b.broken && !a.up.closed && b.up.closed);
    EXPECT_EQ(Has(w, kFinClient), !ends && !b.broken && !a.down.closed && b.down.closed);
  }
}

TEST(ConnectionMachine, NoStateWaitsForNothing) {
  for (const Walked& w : AllSteps()) {
    SCOPED_TRACE(Show(w));
    const ConnectionState& s = w.step.state;
    const Interest client = ClientInterest(s);
    const Interest backend = BackendInterest(s);
    if (s.phase == Phase::kOpen) {
      EXPECT_TRUE(client.in || client.out || backend.in || backend.out);
    }
    if (s.phase == Phase::kHeld) {
      EXPECT_TRUE(client.left && !client.in);
    }
    if (s.phase == Phase::kDialing) {
      EXPECT_TRUE(backend.out && !client.in);
    }
    if (s.phase == Phase::kClosed) {
      EXPECT_TRUE(client == Interest{} && backend == Interest{});
    }
    // Backpressure: bytes that wait stop their source and ask for room at their destination.
    if (s.phase == Phase::kOpen && s.up.stuck) {
      EXPECT_TRUE(!client.in && backend.out);
    }
    if (s.phase == Phase::kOpen && s.down.stuck) {
      EXPECT_TRUE(!backend.in && client.out);
    }
  }
}

TEST(ConnectionMachine, EveryStateCanEnd) {
  for (const Walked& w : AllSteps()) {
    SCOPED_TRACE(Show(w));
    EXPECT_EQ(Next(w.step.state, Event::kCut, kTries).state.phase, Phase::kClosed);
    EXPECT_EQ(Next(w.step.state, Event::kClientReset, kTries).state.phase, Phase::kClosed);
  }
}

TEST(ConnectionMachine, ARandomWalkCountsEachBackendOnceAndSendsEachFinOnce) {
  const unsigned seed = std::random_device{}();
  RecordProperty("seed", static_cast<int>(seed));
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  int ended = 0;
  for (int walk = 0; walk < 2000; ++walk) {
    ConnectionState s;
    bool backend = false;
    int fins_up = 0;
    int fins_down = 0;
    int ends = 0;
    for (int i = 0; i < 60; ++i) {
      const Step step = Next(s, EventAt(static_cast<int>(random() % kEvents)), kTries);
      s = step.state;
      if ((step.actions & kDropBackend) != 0) {
        ASSERT_TRUE(backend);
        backend = false;
      }
      if ((step.actions & kDial) != 0) {
        ASSERT_FALSE(backend);
        backend = true;
      }
      fins_up += (step.actions & kFinBackend) != 0;
      fins_down += (step.actions & kFinClient) != 0;
      if ((step.actions & (kCloseBoth | kResetBoth)) != 0) {
        ++ends;
        backend = false;
      }
    }
    ASSERT_LE(fins_up, 1);
    ASSERT_LE(fins_down, 1);
    ASSERT_LE(ends, 1);
    ASSERT_EQ(ends == 1, s.phase == Phase::kClosed);
    ended += ends;
  }
  EXPECT_GT(ended, 100);
}

TEST(ConnectionMachine, AHalfCloseOfTheClientGoesOnAndTheAnswerStillComesBack) {
  uint16_t actions = 0;
  ConnectionState s = After(Open(), {Event::kUpEof}, &actions);
  EXPECT_EQ(actions, kFinBackend);
  EXPECT_TRUE(BackendInterest(s).in);
  EXPECT_FALSE(ClientInterest(s).in);
  s = After(s, {Event::kDownEof}, &actions);
  EXPECT_EQ(actions, kCloseBoth);
}

TEST(ConnectionMachine, AnEndWaitsForTheBytesBeforeIt) {
  uint16_t actions = 0;
  ConnectionState s = After(Open(), {Event::kDownStuck, Event::kDownEof}, &actions);
  EXPECT_EQ(actions, 0);
  s = After(s, {Event::kDownFlushed}, &actions);
  EXPECT_EQ(actions, kFinClient);
  EXPECT_TRUE(ClientInterest(s).in);
}

TEST(ConnectionMachine, AResetOfTheBackendReachesTheClientAfterTheBytesBeforeIt) {
  uint16_t actions = 0;
  ConnectionState s = After(Open(), {Event::kDownStuck, Event::kDownReadFailed}, &actions);
  EXPECT_EQ(s.phase, Phase::kOpen);
  After(s, {Event::kDownFlushed}, &actions);
  EXPECT_EQ(actions, kResetBoth);
}

TEST(ConnectionMachine, AFailedWriteLetsTheOtherDirectionFinishAndThenResets) {
  uint16_t actions = 0;
  ConnectionState s = After(Open(), {Event::kUpStuck, Event::kUpWriteFailed}, &actions);
  EXPECT_EQ(actions, kFreeUp);
  EXPECT_TRUE(BackendInterest(s).in);
  // The backend's last words were read; what looks like an end behind a failed write is none.
  After(s, {Event::kDownEof}, &actions);
  EXPECT_EQ(actions, kResetBoth);
}

TEST(ConnectionMachine, ADialThatFailsThreeTimesIsHeldNotRefused) {
  uint16_t actions = 0;
  ConnectionState s;
  s = After(s, {Event::kRelease, Event::kDialFailed}, &actions);
  EXPECT_EQ(actions, kDropBackend | kArmBackoff);
  s = After(s, {Event::kBackoffOver, Event::kDialFailed, Event::kBackoffOver, Event::kDialFailed}, &actions);
  EXPECT_EQ(s.phase, Phase::kHeld);
  EXPECT_EQ(actions, kDropBackend | kPark | kMarkDown);
}

TEST(ConnectionMachine, AProbeIsOneTryOnly) {
  uint16_t actions = 0;
  const ConnectionState s = After({}, {Event::kProbe, Event::kDialFailed}, &actions);
  EXPECT_EQ(s.phase, Phase::kHeld);
}

TEST(ConnectionMachine, ASetDuringTheDialDialsTheNewTarget) {
  uint16_t actions = 0;
  ConnectionState s = After({}, {Event::kRelease, Event::kTargetChanged}, &actions);
  EXPECT_EQ(s.phase, Phase::kDialing);
  EXPECT_EQ(s.tries, 1);
  EXPECT_EQ(actions, kDropBackend | kDial);
  s = After(s, {Event::kTargetGone}, &actions);
  EXPECT_EQ(actions, kDropBackend | kPark);
}

TEST(ConnectionMachine, ASetLeavesAnOpenConnectionWhereItIs) {
  uint16_t actions = 0;
  EXPECT_EQ(After(Open(), {Event::kTargetChanged, Event::kTargetGone}, &actions), Open());
  EXPECT_EQ(actions, 0);
}

TEST(ConnectionMachine, AQuietPointIsNoneWhileBytesWaitOrASideHasEnded) {
  uint16_t actions = 0;
  for (const Event e : {Event::kUpStuck, Event::kDownStuck, Event::kUpEof, Event::kDownEof}) {
    const ConnectionState s = After(Open(), {e, Event::kQuiet}, &actions);
    EXPECT_EQ(s.phase, Phase::kOpen) << EventName(e);
    EXPECT_EQ(actions, 0) << EventName(e);
  }
  After(Open(), {Event::kQuiet}, &actions);
  EXPECT_EQ(actions, kCloseBoth);
}

TEST(ConnectionMachine, AClientThatLeavesTheQueueIsDropped) {
  uint16_t actions = 0;
  for (const Event e : {Event::kClientLeft, Event::kClientReset, Event::kHoldExpired}) {
    EXPECT_EQ(After({}, {e}, &actions).phase, Phase::kClosed) << EventName(e);
    EXPECT_EQ(actions, kResetBoth) << EventName(e);
  }
}

}  // namespace
}  // namespace lockkeeper::front
