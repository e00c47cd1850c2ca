#include "reconcilers/front/drain_rules.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace lockkeeper::front {
namespace {

using Do = DrainVerdict::Do;
constexpr int64_t kSecond = 1'000'000;
constexpr int64_t kBegan = 1000 * kSecond;

// A kept-alive connection in use, answered 1 ms before the drain began; looked at when it began.
DrainView Settled() {
  DrainView v;
  v.now = kBegan;
  v.opened = kBegan - 60 * kSecond;
  v.last_client = kBegan - 3'000;
  v.last_server = kBegan - 1'000;
  v.client_turns = 40;
  v.server_spoke_last = true;
  v.state.phase = Phase::kOpen;
  v.began = kBegan;
  v.deadline = kBegan + 5 * kSecond;
  v.grace = 5 * kSecond;
  v.offset = 400'000;
  return v;
}

TEST(DrainRules, AnAnsweredConnectionIsClosedAfterTwentyFiveMillisecondsOfSilence) {
  DrainView v = Settled();
  EXPECT_EQ(DecideDrain(v), (DrainVerdict{Do::kWait, v.last_server + 25'000}));
  v.now = v.last_server + 24'999;
  EXPECT_EQ(DecideDrain(v).action, Do::kWait);
  v.now = v.last_server + 25'000;
  EXPECT_EQ(DecideDrain(v), DrainVerdict{Do::kClose});
}

TEST(DrainRules, ARequestWithoutItsAnswerHasUntilTheDeadline) {
  DrainView v = Settled();
  v.server_spoke_last = false;
  v.now = v.deadline - 1;
  EXPECT_EQ(DecideDrain(v), (DrainVerdict{Do::kWait, v.deadline}));
  v.now = v.deadline;
  EXPECT_EQ(DecideDrain(v), DrainVerdict{Do::kCut});
}

TEST(DrainRules, AWatchIsClosedAtOnceAtItsPlaceInTheSpread) {
  DrainView v = Settled();
  v.last_client = kBegan - 6 * kSecond;  // older than drainSeconds, and the server still streams
  EXPECT_EQ(DecideDrain(v), (DrainVerdict{Do::kWait, kBegan + v.offset}));
  v.now = kBegan + v.offset;
  v.last_server = v.now - 100;
  EXPECT_EQ(DecideDrain(v), (DrainVerdict{Do::kClose, 0, true}));
}

TEST(DrainRules, AWatchWithBytesForASlowReaderWaitsForThem) {
  DrainView v = Settled();
  v.last_client = kBegan - 6 * kSecond;
  v.now = kBegan + v.offset;
  v.state.down.stuck = true;
  EXPECT_EQ(DecideDrain(v).action, Do::kWait);
  v.now = v.deadline;
  EXPECT_EQ(DecideDrain(v), DrainVerdict{Do::kCut});
}

TEST(DrainRules, AYoungConnectionMayBeInItsHandshakeAndGetsASecond) {
  DrainView v = Settled();
  v.opened = kBegan - 10'000;
  v.client_turns = 2;
  v.now = v.last_server + 500'000;
  EXPECT_EQ(DecideDrain(v).action, Do::kWait);
  v.now = v.last_server + kYoungQuietMicros;
  EXPECT_EQ(DecideDrain(v), DrainVerdict{Do::kClose});
}

TEST(DrainRules, AConnectionOnWhichNothingWasSaidMovesToTheNewBackend) {
  DrainView v = Settled();
  v.last_client = v.last_server = 0;
  v.server_spoke_last = false;
  v.client_turns = 0;
  EXPECT_EQ(DecideDrain(v), DrainVerdict{Do::kRehome});
  v.may_rehome = false;  // the front itself ends
  EXPECT_EQ(DecideDrain(v).action, Do::kWait);
  v.now = v.deadline;
  EXPECT_EQ(DecideDrain(v), DrainVerdict{Do::kCut});
}

TEST(DrainRules, AHalfClosedConnectionHasUntilTheDeadline) {
  for (const bool up : {true, false}) {
    DrainView v = Settled();
    (up ? v.state.up : v.state.down).ended = true;
    v.now = v.deadline - 1;
    EXPECT_EQ(DecideDrain(v).action, Do::kWait);
    v.now = v.deadline;
    EXPECT_EQ(DecideDrain(v), DrainVerdict{Do::kCut});
  }
}

TEST(DrainRules, AQuietConnectionAtTheDeadlineIsClosedNotCut) {
  DrainView v = Settled();
  v.now = v.deadline;
  EXPECT_EQ(DecideDrain(v).action, Do::kClose);
}

TEST(DrainRules, AWaitIsAlwaysInTheFutureAndNotPastTheDeadline) {
  for (int mask = 0; mask < 64; ++mask) {
    for (const int64_t at : {int64_t{0}, int64_t{10'000}, int64_t{25'000}, kSecond, 4 * kSecond, 5 * kSecond - 1}) {
      DrainView v = Settled();
      v.now = kBegan + at;
      v.server_spoke_last = (mask & 1) != 0;
      v.state.up.stuck = (mask & 2) != 0;
      v.state.down.stuck = (mask & 4) != 0;
      v.state.up.ended = (mask & 8) != 0;
      if ((mask & 16) != 0) v.last_client = kBegan - 20 * kSecond;
      if ((mask & 32) != 0) v.client_turns = 1;
      const DrainVerdict verdict = DecideDrain(v);
      EXPECT_NE(verdict.action, Do::kCut);
      if (verdict.action == Do::kWait) {
        EXPECT_GT(verdict.at, v.now) << mask << " at " << at;
        EXPECT_LE(verdict.at, v.deadline) << mask << " at " << at;
      }
      if (verdict.action == Do::kClose) {
        EXPECT_TRUE(!v.state.up.stuck && !v.state.down.stuck && !v.state.up.ended);
      }
    }
  }
}

TEST(DrainRules, TheSpreadIsEvenAndStable) {
  int quarters[4] = {};
  for (uint64_t i = 1; i <= 4000; ++i) {
    const int64_t at = SpreadOffset(i, kSecond);
    ASSERT_GE(at, 0);
    ASSERT_LT(at, kSecond);
    ASSERT_EQ(at, SpreadOffset(i, kSecond));
    ++quarters[at * 4 / kSecond];
  }
  for (const int n : quarters) EXPECT_NEAR(n, 1000, 50);
  EXPECT_EQ(SpreadOffset(7, 0), 0);
}

}  // namespace
}  // namespace lockkeeper::front
