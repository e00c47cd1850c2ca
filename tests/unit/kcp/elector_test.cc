// Election by client-go's rules on a clock that only the test moves. Numbers in brackets are those of the facts page:
// 1.5 to 1.11.
#include "api/server/kcp/elector.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/unit/kcp/fake_election.h"

namespace lockkeeper::kcp {
namespace {

struct Candidate {
  Candidate(const std::string& name, FakeLease& lease, const Clock& clock, uint64_t seed, double scale = 1)
      : identity("host_" + name), lock(lease) {
    ElectorConfig config;
    config.identity = identity;
    config.seed = seed;
    config.scale = scale;
    elector = std::make_unique<Elector>(
        config, lock, clock,
        Elector::Callbacks{[this] { log.push_back("started"); }, [this] { log.push_back("stopped"); },
                           [this](const std::string& h) { log.push_back("leader " + h); }});
  }
  const std::string identity;
  FakeLeaseLock lock;
  std::unique_ptr<Elector> elector;
  std::vector<std::string> log;
  Duration next{};  // on the fake clock
  bool alive = true;
};

class ElectorTest : public ::testing::Test {
 protected:
  Candidate& Add(const std::string& name, uint64_t seed, double scale = 1) {
    candidates_.push_back(std::make_unique<Candidate>(name, lease_, clock_, seed, scale));
    candidates_.back()->next = clock_.elapsed();
    return *candidates_.back();
  }

  // Runs every candidate at its times until `end`, or until `done` holds.
  template <typename Done>
  bool RunUntil(Duration end, Done done) {
    while (!done()) {
      Candidate* first = nullptr;
      for (auto& c : candidates_) {
        if (c->alive && (first == nullptr || c->next < first->next)) first = c.get();
      }
      if (first == nullptr || first->next > end) {
        clock_.Advance(end - clock_.elapsed());
        return false;
      }
      clock_.Advance(first->next - clock_.elapsed());
      first->next = clock_.elapsed() + first->elector->Step();
    }
    return true;
  }
  void RunFor(Duration d) {
    RunUntil(clock_.elapsed() + d, [] { return false; });
  }
  std::string Holder() const { return lease_.object ? lease_.object->record.holder : ""; }

  FakeClock clock_;
  FakeLease lease_;
  std::vector<std::unique_ptr<Candidate>> candidates_;
};

TEST_F(ElectorTest, TheFirstCandidateCreatesTheLeaseWithTheFieldsOfTheWire) {  // 1.6
  Candidate& a = Add("a", 1);
  RunFor(Duration::zero());
  ASSERT_TRUE(lease_.object);
  EXPECT_EQ(Holder(), "host_a");
  EXPECT_EQ(lease_.object->record.lease_duration_seconds, 60);
  EXPECT_EQ(lease_.object->record.transitions, 0);
  EXPECT_EQ(lease_.object->record.acquire_time, clock_.Read().wall);
  EXPECT_TRUE(a.elector->Leading());
  EXPECT_EQ(a.log, (std::vector<std::string>{"leader host_a", "started"}));
}

TEST_F(ElectorTest, ALeaderRenewsEveryTwoSecondsAndKeepsItsAcquireTime) {  // 1.5
  Add("a", 1);
  RunFor(Duration::zero());
  const Time acquired = lease_.object->record.acquire_time;
  for (int i = 1; i <= 20; ++i) {
    RunFor(Seconds(2));
    EXPECT_EQ(lease_.object->record.renew_time, clock_.Read().wall) << "round " << i;
    EXPECT_EQ(lease_.object->record.acquire_time, acquired);
  }
  EXPECT_EQ(lease_.object->record.transitions, 0);
}

TEST_F(ElectorTest, AStandbyPollsBetweenTwoAndFourPointFourSeconds) {  // 1.5
  Add("a", 1);
  RunFor(Duration::zero());
  FakeLeaseLock lock(lease_);
  ElectorConfig config;
  config.identity = "host_b";
  config.seed = 7;
  Elector standby(config, lock, clock_, {});
  Duration low = Seconds(100), high{};
  for (int i = 0; i < 1000; ++i) {
    const Duration wait = standby.Step();
    low = std::min(low, wait);
    high = std::max(high, wait);
  }
  EXPECT_GE(low, Seconds(2.0));
  EXPECT_LT(low, Seconds(2.05));
  EXPECT_LE(high, Seconds(4.4));
  EXPECT_GT(high, Seconds(4.3));
}

TEST_F(ElectorTest, WithoutHelpAStandbyTakesOverOnlySixtySecondsAfterItSawTheRecordChange) {  // 1.7
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    lease_ = {};
    candidates_.clear();
    Candidate& a = Add("a", seed);
    Candidate& b = Add("b", seed + 1000);
    RunFor(Seconds(30));
    ASSERT_EQ(Holder(), "host_a");
    a.alive = false;
    const Duration died = clock_.elapsed();
    ASSERT_TRUE(RunUntil(died + Seconds(100), [&] { return Holder() == "host_b"; }));
    const Duration waited = clock_.elapsed() - died;
    EXPECT_GE(waited, Seconds(58));
    EXPECT_LE(waited, Seconds(69));
    EXPECT_EQ(lease_.object->record.transitions, 1);  // 1.6: a take-over adds one
    EXPECT_TRUE(b.elector->Leading());
  }
}

TEST_F(ElectorTest, TheRenewTimeInTheRecordDoesNotShortenTheWait) {               // 1.7
  lease_.object = FakeLease::Object{{"host_dead", 60, Time{}, Time{}, 4}, 1, 1};  // last renewed in 1970
  lease_.last_uid = lease_.last_version = 1;
  Add("a", 3);
  EXPECT_FALSE(RunUntil(Seconds(59.9), [&] { return Holder() == "host_a"; }));
  EXPECT_TRUE(RunUntil(Seconds(65), [&] { return Holder() == "host_a"; }));
  EXPECT_EQ(lease_.object->record.transitions, 5);
}

TEST_F(ElectorTest, ARestartedReplicaIsAStrangerToItsOwnLease) {  // 1.7
  Candidate& first = Add("start-1", 1);
  RunFor(Seconds(10));
  first.alive = false;
  Add("start-2", 2);
  EXPECT_FALSE(RunUntil(clock_.elapsed() + Seconds(57), [&] { return Holder() == "host_start-2"; }));
}

TEST_F(ElectorTest, ADeletedLeaseOfADeadHolderIsTakenWithinFourPointFourSeconds) {  // 1.8
  Duration sum{};
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    lease_ = {};
    candidates_.clear();
    Candidate& a = Add("a", seed);
    Add("b", seed + 1000);
    RunFor(Seconds(20) + Milliseconds(static_cast<int64_t>(seed) * 37));
    a.alive = false;
    lease_.Delete();
    const Duration deleted = clock_.elapsed();
    ASSERT_TRUE(RunUntil(deleted + Seconds(10), [&] { return Holder() == "host_b"; }));
    EXPECT_LE(clock_.elapsed() - deleted, Seconds(4.4));
    EXPECT_EQ(lease_.object->record.transitions, 0);  // 1.6: a create starts anew
    sum += clock_.elapsed() - deleted;
  }
  EXPECT_NEAR(ToSeconds(sum) / 200, 1.7, 0.3);
}

TEST_F(ElectorTest, ALiveOldHolderUsuallyWinsADeletedLeaseBack) {  // 1.9
  int old_wins = 0;
  constexpr int kRounds = 400;
  for (uint64_t seed = 1; seed <= kRounds; ++seed) {
    lease_ = {};
    candidates_.clear();
    Candidate& a = Add("a", seed);
    Add("b", seed + 1000);
    RunFor(Seconds(20) + Milliseconds(static_cast<int64_t>(seed) * 37));
    lease_.Delete();
    ASSERT_TRUE(RunUntil(clock_.elapsed() + Seconds(10), [&] { return lease_.object.has_value(); }));
    if (Holder() == "host_a") {
      ++old_wins;
      EXPECT_TRUE(a.elector->Leading());
      EXPECT_EQ(a.log.back(), "started") << "it went on leading, without a stop";
    }
  }
  EXPECT_GT(old_wins, kRounds * 6 / 10);
  EXPECT_LT(old_wins, kRounds) << "the standby must win sometimes";
}

TEST_F(ElectorTest, AHolderIsLostAfterFiveSecondsOfFailedRenewalsAndComesBack) {  // 1.11
  Candidate& a = Add("a", 1);
  RunFor(Seconds(10));
  lease_.down = true;
  const Duration since = clock_.elapsed();
  ASSERT_TRUE(RunUntil(since + Seconds(20), [&] { return a.log.back() == "stopped"; }));
  EXPECT_GE(clock_.elapsed() - since, Seconds(5));
  EXPECT_LE(clock_.elapsed() - since, Seconds(7));
  EXPECT_FALSE(a.elector->Leading());
  lease_.down = false;
  ASSERT_TRUE(RunUntil(clock_.elapsed() + Seconds(10), [&] { return a.log.back() == "started"; }));
  EXPECT_EQ(lease_.object->record.transitions, 0) << "it is its own lease still";
}

TEST_F(ElectorTest, ARenewalThatComesBackAfterTheDeadlineDoesNotCount) {
  struct SlowLock : FakeLeaseLock {
    SlowLock(FakeLease& lease, FakeClock& clock) : FakeLeaseLock(lease), clock_(clock) {}
    Status Update(const ElectionRecord& record) override {
      clock_.Advance(delay);
      return FakeLeaseLock::Update(record);
    }
    FakeClock& clock_;
    Duration delay{};
  };
  SlowLock lock(lease_, clock_);
  std::vector<std::string> log;
  ElectorConfig config;
  config.identity = "host_a";
  Elector elector(config, lock, clock_,
                  {[&] { log.push_back("started"); }, [&] { log.push_back("stopped"); }, nullptr});
  elector.Step();
  elector.Step();
  ASSERT_TRUE(elector.Leading());
  clock_.Advance(Seconds(2));
  lock.delay = Seconds(6);
  const Duration wait = elector.Step();
  EXPECT_FALSE(elector.Leading()) << "leading ends by the clock, while the call still hangs";
  EXPECT_EQ(wait, Duration::zero());
  lock.delay = Duration::zero();
  elector.Step();
  EXPECT_EQ(log, (std::vector<std::string>{"started", "stopped"}));
}

TEST_F(ElectorTest, AFreedRecordIsTakenAtTheNextPoll) {  // 1.10
  Candidate& a = Add("a", 1);
  Add("b", 2);
  RunFor(Seconds(20));
  a.alive = false;
  lease_.object->record.holder = "";
  lease_.object->record.lease_duration_seconds = 1;
  lease_.object->version = ++lease_.last_version;
  const Duration freed = clock_.elapsed();
  ASSERT_TRUE(RunUntil(freed + Seconds(10), [&] { return Holder() == "host_b"; }));
  EXPECT_LE(clock_.elapsed() - freed, Seconds(4.4));
}

TEST_F(ElectorTest, StoppingLeavesTheLeaseAsItIs) {  // 1.5: ReleaseOnCancel is not set
  Candidate& a = Add("a", 1);
  RunFor(Seconds(5));
  a.elector->Stop();
  EXPECT_FALSE(a.elector->Leading());
  EXPECT_EQ(Holder(), "host_a");
  EXPECT_EQ(lease_.object->record.lease_duration_seconds, 60);
}

TEST_F(ElectorTest, AFactorScalesEveryWaitButNotTheRecord) {  // S7
  Candidate& a = Add("a", 1, 0.02);
  Candidate& b = Add("b", 2, 0.02);
  RunFor(Seconds(2));
  ASSERT_EQ(Holder(), "host_a");
  EXPECT_EQ(lease_.object->record.lease_duration_seconds, 60);
  a.alive = false;
  const Duration died = clock_.elapsed();
  ASSERT_TRUE(RunUntil(died + Seconds(3), [&] { return Holder() == "host_b"; }));
  EXPECT_GE(clock_.elapsed() - died, Seconds(1.16));
  EXPECT_LE(clock_.elapsed() - died, Seconds(1.38));
  EXPECT_EQ(b.log.back(), "started");
}

TEST_F(ElectorTest, OfManyOnlyOneEverLeads) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    lease_ = {};
    candidates_.clear();
    for (uint64_t i = 0; i < 4; ++i) Add(std::to_string(i), seed * 100 + i);
    for (int second = 0; second < 300; ++second) {
      if (second % 90 == 40) candidates_[static_cast<size_t>(second / 90)]->alive = false;
      RunFor(Seconds(1));
      int leaders = 0;
      for (const auto& c : candidates_) leaders += c->alive && c->elector->Leading() ? 1 : 0;
      EXPECT_LE(leaders, 1) << "at second " << second;
    }
  }
}

}  // namespace
}  // namespace lockkeeper::kcp
