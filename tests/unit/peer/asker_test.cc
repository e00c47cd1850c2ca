#include "reconcilers/peer/asker.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "tests/support/wait.h"
#include "tests/unit/controller/manual_clock.h"

namespace lockkeeper::peer {
namespace {

// Questions that nobody waits for, and an answer that comes when the test says so.
class AskerTest : public ::testing::Test {
 protected:
  Result<int> Ask(const std::string& what, Result<int> answer = 7) {
    return asker_.Ask<Result<int>>("a server", what, Seconds(10), [this, answer]() -> Result<int> {
      ++asked_;
      gate_.get_future().wait();
      ++answered_;
      return answer;
    });
  }
  void Answer() {
    const int before = answered_;
    gate_.set_value();
    ASSERT_TRUE(WaitUntil([&] { return answered_ > before; }));
  }
  // The answer as it is fetched; what lands lands a moment after the call has returned.
  Result<int> Fetch(const std::string& what) {
    Result<int> got(Code::kBusy, "");
    (void)WaitUntil([&] {
      got = asker_.Ask<Result<int>>("a server", what, Seconds(10), [] { return Result<int>(-1); });
      return got.code() != Code::kBusy;
    });
    return got;
  }

  ManualClock clock_;
  std::promise<void> gate_;
  std::atomic<int> asked_{0}, answered_{0};
  Asker asker_{clock_, Duration::zero()};
};

TEST_F(AskerTest, AnAnswerThatIsNotThereYetIsUnknownAndNoSecondQuestionIsAsked) {
  EXPECT_EQ(Ask("a").code(), Code::kBusy);
  EXPECT_EQ(Ask("a").code(), Code::kBusy);
  Answer();
  const Result<int> got = Fetch("a");
  ASSERT_TRUE(got.ok()) << got.status().ToString();
  EXPECT_EQ(*got, 7);
  EXPECT_EQ(asked_, 1);
}

TEST_F(AskerTest, AQuestionThatHangsHoldsUpNoOther) {
  EXPECT_EQ(Ask("a").code(), Code::kBusy);
  const Result<int> other = Fetch("b");
  ASSERT_TRUE(other.ok());
  EXPECT_EQ(*other, -1) << "asked beside it";
  Answer();
}

TEST_F(AskerTest, AnAnswerIsGivenOutOnce) {
  EXPECT_EQ(Ask("a").code(), Code::kBusy);
  Answer();
  EXPECT_EQ(*Fetch("a"), 7);
  EXPECT_EQ(*Fetch("a"), -1) << "the next one asks anew";
}

TEST_F(AskerTest, AnAnswerThatNobodyFetchedInTimeIsAskedForAnew) {
  EXPECT_EQ(Ask("a").code(), Code::kBusy);
  Answer();
  // Until it has landed, which is a moment after the call has returned, another question is not begun.
  ASSERT_EQ(*Fetch("b"), -1);
  ASSERT_TRUE(WaitUntil([&] {
    clock_.Advance(Seconds(11));
    const Result<int> got = Fetch("a");
    return got.ok() && *got == -1;
  }));
}

TEST_F(AskerTest, AnErrorOfAWhileAgoIsNoNews) {
  EXPECT_EQ(Ask("a", Status(Code::kUnavailable, "refused")).code(), Code::kBusy);
  Answer();
  ASSERT_TRUE(WaitUntil([&] {
    clock_.Advance(Seconds(1));
    const Result<int> got = Fetch("a");
    return got.ok() && *got == -1;
  }));
}

// Each of a score of peers hangs until the test says so; a second round of questions meets none but peers known to be
// slow.
TEST(Asker, ManyPeersThatHangHoldUpNoOther) {
  ManualClock clock;
  constexpr int kHanging = 20;
  std::promise<void> gates[2];
  std::shared_future<void> gate[2] = {gates[0].get_future().share(), gates[1].get_future().share()};
  std::atomic<int> under_way{0}, answered{0};
  Asker asker(clock, Duration::zero());
  const auto ask_all = [&](int round) {
    for (int i = 0; i < kHanging; ++i) {
      const auto call = [&, round] {
        ++under_way;
        gate[round].wait();
        ++answered;
        return Status(Code::kTimeout, "no answer");
      };
      EXPECT_EQ(
          asker.Ask<Status>("peer " + std::to_string(i), "round " + std::to_string(round), Seconds(10), call).code(),
          Code::kBusy);
    }
  };
  // Sixteen are asked, hang for two seconds, and then so do the others.
  ask_all(0);
  ASSERT_TRUE(WaitUntil([&] { return under_way == 16; }));
  clock.Advance(Seconds(2));
  gates[0].set_value();
  ASSERT_TRUE(WaitUntil([&] { return answered == kHanging; }));
  ask_all(1);
  ASSERT_TRUE(WaitUntil([&] { return under_way >= kHanging + 8; }));
  const bool heard = WaitUntil(
      [&] { return asker.Ask<Status>("another", "how are you", Seconds(10), [] { return Status::Ok(); }).ok(); });
  EXPECT_TRUE(heard) << "it waits behind those that hang";
  EXPECT_LE(under_way, kHanging + 12) << "sixteen that were slow, and four of which nothing is known";
  gates[1].set_value();
  ASSERT_TRUE(WaitUntil([&] { return answered == 2 * kHanging; })) << "those that were put off are asked in the end";
}

TEST(Asker, AnAnswerWithinThePatienceIsWaitedFor) {
  Asker asker(SystemClock(), Seconds(60));
  const Status said =
      asker.Ask<Status>("a server", "a", Seconds(1), [] { return Status(Code::kNotFound, "no such thing"); });
  EXPECT_EQ(said.code(), Code::kNotFound);
  EXPECT_EQ(said.message(), "no such thing");
}

}  // namespace
}  // namespace lockkeeper::peer
