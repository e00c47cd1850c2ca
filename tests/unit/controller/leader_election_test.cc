#include "controller/leader_election.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/unit/controller/manual_clock.h"
#include "tests/unit/controller/memory_api.h"

namespace lockkeeper {
namespace {

const Resource kLeases{"coordination.k8s.io", "v1", "leases", "Lease", true};
const ObjectKey kKey{"ns", "lk"};
using State = LeaderElection::State;

class LeaderElectionTest : public ::testing::Test {
 protected:
  std::unique_ptr<LeaderElection> Candidate(const std::string& identity, const Clock& clock) {
    return std::make_unique<LeaderElection>(
        api_, clock, LeaderElectionOptions{.namespace_ = "ns", .name = "lk", .identity = identity, .seed = 5});
  }
  State Step(LeaderElection& election) { return election.Step(&wait_); }
  Json Spec() { return api_.Get(kLeases, kKey)->Get("spec"); }

  ManualClock clock_;
  MemoryApi api_;
  Duration wait_{};
};

TEST_F(LeaderElectionTest, TheFirstCandidateMakesTheLeaseAndLeads) {
  auto a = Candidate("a", clock_);
  EXPECT_EQ(a->Left(), Duration::zero());
  EXPECT_EQ(Step(*a), State::kLeading);
  EXPECT_EQ(wait_, Seconds(2));
  EXPECT_EQ(Spec().Get("holderIdentity").AsString(), "a");
  EXPECT_EQ(Spec().Get("leaseDurationSeconds").AsInt(), 15);
  EXPECT_EQ(a->Left(), Seconds(10));
}

TEST_F(LeaderElectionTest, AStandbyWaitsTwoToFourPointFourSecondsBetweenTries) {
  auto a = Candidate("a", clock_);
  auto b = Candidate("b", clock_);
  Step(*a);
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(Step(*b), State::kStandby);
    EXPECT_GE(wait_, Seconds(2));
    EXPECT_LE(wait_, Seconds(4.4));
  }
}

TEST_F(LeaderElectionTest, ASilentHolderIsReplacedOneLeaseAfterItWasSeenToChange) {
  auto a = Candidate("a", clock_);
  auto b = Candidate("b", clock_);
  Step(*a);
  clock_.Advance(Seconds(14));
  EXPECT_EQ(Step(*b), State::kStandby);  // seen now for the first time: a full lease from here
  clock_.Advance(Seconds(14));
  EXPECT_EQ(Step(*b), State::kStandby);
  clock_.Advance(Seconds(2));
  EXPECT_EQ(Step(*b), State::kLeading);
  EXPECT_EQ(Spec().Get("leaseTransitions").AsInt(), 1);
}

TEST_F(LeaderElectionTest, TheTimesInTheRecordAndOurWallClockDecideNothing) {
  ManualClock other;
  other.JumpWall(-Seconds(86400));
  auto a = Candidate("a", other);
  auto b = Candidate("b", clock_);
  Step(*a);  // writes a renewTime of yesterday
  EXPECT_EQ(Step(*b), State::kStandby);
  clock_.JumpWall(Seconds(86400));
  EXPECT_EQ(Step(*b), State::kStandby);
}

TEST_F(LeaderElectionTest, ARenewalIsOnePutFromWhatWasWrittenLast) {
  auto a = Candidate("a", clock_);
  Step(*a);
  const std::string acquired = Spec().Get("acquireTime").AsString();
  const size_t before = api_.Calls().size();
  clock_.Advance(Seconds(2));
  EXPECT_EQ(Step(*a), State::kLeading);
  EXPECT_EQ(api_.Calls().size(), before + 1 + 0);
  EXPECT_EQ(api_.Calls().back(), "update leases ns/lk");
  EXPECT_EQ(Spec().Get("acquireTime").AsString(), acquired);
  EXPECT_EQ(Spec().Get("leaseTransitions").AsInt(), 0);
}

TEST_F(LeaderElectionTest, TheFenceCountsFromTheStartOfARenewalHoweverLongItTook) {
  auto a = Candidate("a", clock_);
  Step(*a);
  clock_.Advance(Seconds(2));
  api_.SetBefore([this](const std::string&, const Resource&, const ObjectKey&) {
    clock_.Advance(Seconds(3));
    return Status();
  });
  EXPECT_EQ(Step(*a), State::kLeading);
  EXPECT_EQ(a->Left(), Seconds(7));
}

TEST_F(LeaderElectionTest, ALostReplyIsMadeGoodByReadingTheLease) {
  auto a = Candidate("a", clock_);
  Step(*a);
  clock_.Advance(Seconds(2));
  api_.LoseReplyOf("update");
  EXPECT_EQ(Step(*a), State::kLeading);
  clock_.Advance(Seconds(2));
  EXPECT_EQ(Step(*a), State::kLeading);
  EXPECT_EQ(a->Left(), Seconds(10));
}

TEST_F(LeaderElectionTest, WithoutARenewalTheLeadIsLostAtTheDeadlineAndTheFenceClosesBefore) {
  auto a = Candidate("a", clock_);
  Step(*a);
  api_.SetBefore(
      [](const std::string&, const Resource&, const ObjectKey&) { return Status(Code::kUnavailable, "no server"); });
  for (int second = 2; second < 10; second += 2) {
    clock_.Advance(Seconds(2));
    EXPECT_EQ(Step(*a), State::kLeading);
    EXPECT_EQ(a->Left(), Seconds(10 - second));
  }
  EXPECT_EQ(wait_, Seconds(2));
  clock_.Advance(Seconds(2));
  EXPECT_EQ(a->Left(), Duration::zero());
  EXPECT_EQ(Step(*a), State::kLost);
  EXPECT_FALSE(a->IsLeader());
}

TEST_F(LeaderElectionTest, ALeaseThatAnotherTookIsLostAtOnce) {
  auto a = Candidate("a", clock_);
  Step(*a);
  Json lease = *api_.Get(kLeases, kKey);
  lease["spec"].Set("holderIdentity", "intruder");
  ASSERT_TRUE(api_.Update(kLeases, lease).ok());
  clock_.Advance(Seconds(2));
  EXPECT_EQ(Step(*a), State::kLost);
  EXPECT_EQ(a->holder(), "intruder");
  EXPECT_EQ(a->Left(), Duration::zero());
}

TEST_F(LeaderElectionTest, ALeaseThatWasDeletedIsMadeAgain) {
  auto a = Candidate("a", clock_);
  Step(*a);
  ASSERT_TRUE(api_.Delete(kLeases, kKey, {}).ok());
  clock_.Advance(Seconds(2));
  EXPECT_EQ(Step(*a), State::kLeading);
  EXPECT_EQ(Spec().Get("holderIdentity").AsString(), "a");
}

TEST_F(LeaderElectionTest, ReleaseGivesTheLeaseToTheNextAtOnceEvenAfterAConflict) {
  auto a = Candidate("a", clock_);
  auto b = Candidate("b", clock_);
  Step(*a);
  EXPECT_EQ(Step(*b), State::kStandby);
  // Someone annotates the lease meanwhile.
  Json lease = *api_.Get(kLeases, kKey);
  lease["metadata"].Set("annotations", Json::MakeObject({{"x", "y"}}));
  ASSERT_TRUE(api_.Update(kLeases, lease).ok());
  EXPECT_TRUE(a->Release().ok());
  EXPECT_FALSE(a->IsLeader());
  EXPECT_EQ(Spec().Get("holderIdentity").AsString(), "");
  EXPECT_EQ(Spec().Get("leaseDurationSeconds").AsInt(), 1);
  EXPECT_EQ(Step(*b), State::kLeading);
  EXPECT_EQ(api_.Get(kLeases, kKey)->At({"metadata", "annotations", "x"}).AsString(), "y");
}

TEST_F(LeaderElectionTest, ReleaseDoesNotTakeTheLeaseFromAnother) {
  auto a = Candidate("a", clock_);
  Step(*a);
  Json lease = *api_.Get(kLeases, kKey);
  lease["spec"].Set("holderIdentity", "b");
  ASSERT_TRUE(api_.Update(kLeases, lease).ok());
  EXPECT_TRUE(a->Release().ok());
  EXPECT_EQ(Spec().Get("holderIdentity").AsString(), "b");
}

TEST_F(LeaderElectionTest, TwoCandidatesNeverLeadAtOnceWhateverFails) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 15; ++round) {
    MemoryApi api;
    ManualClock clock;
    std::unique_ptr<LeaderElection> candidates[2];
    Duration due[2] = {};
    const auto make = [&](int i) {
      candidates[i] = std::make_unique<LeaderElection>(
          api, clock,
          LeaderElectionOptions{.namespace_ = "ns",
                                .name = "lk",
                                .identity = std::to_string(i) + "-" + std::to_string(random() % 1000000),
                                .seed = random() | 1});
    };
    make(0);
    make(1);
    api.SetBefore([&](const std::string&, const Resource&, const ObjectKey&) {
      if (random() % 4 != 0) return Status();
      clock.Advance(Duration(static_cast<int64_t>(random() % 5000000)));  // slow, then it fails
      return Status(Code::kUnavailable, "flaky");
    });
    for (int step = 0; step < 300; ++step) {
      const int i = static_cast<int>(random() % 2);
      clock.Advance(Duration(static_cast<int64_t>(random() % 1500000)));
      if (random() % 10 == 0) api.LoseReplyOf("update");
      const Duration now = clock.Read().boot;
      if (now < due[i]) continue;
      Duration wait{};
      if (candidates[i]->Step(&wait) == State::kLost) make(i);
      due[i] = clock.Read().boot + wait;
      // The fence is what counts: at no time may both be allowed to write.
      ASSERT_FALSE(candidates[0]->Left() > Duration::zero() && candidates[1]->Left() > Duration::zero())
          << "step " << step;
    }
  }
}

TEST_F(LeaderElectionTest, TheHealthCheckNoticesAnElectionThatIsStuck) {
  auto a = Candidate("a", clock_);
  EXPECT_TRUE(a->Check().ok());
  Step(*a);
  clock_.Advance(Seconds(34));
  EXPECT_TRUE(a->Check().ok());
  clock_.Advance(Seconds(2));
  EXPECT_EQ(a->Check().code(), Code::kTimeout);
}

}  // namespace
}  // namespace lockkeeper
