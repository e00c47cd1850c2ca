#include "controller/work_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "tests/unit/controller/manual_clock.h"

namespace lockkeeper {
namespace {

const Request kA{"ns", "a"};
const Request kB{"ns", "b"};
const Request kC{"ns", "c"};

class WorkQueueTest : public ::testing::Test {
 protected:
  std::string Take() {
    const auto item = queue_.TryGet();
    return item ? item->request.name : "";
  }
  std::string TakeThree() {
    std::string names;
    for (int i = 0; i < 3; ++i) names += Take();
    return names;
  }
  ManualClock clock_;
  WorkQueue queue_{clock_, {.seed = 1}};
};

TEST_F(WorkQueueTest, AddsOfAWaitingKeyCollapse) {
  queue_.Add(kA);
  queue_.Add(kB);
  queue_.Add(kA);
  EXPECT_EQ(Take(), "a");
  EXPECT_EQ(Take(), "b");
  EXPECT_EQ(Take(), "");
}

TEST_F(WorkQueueTest, AKeyAddedWhileItIsWorkedOnComesBackAfterDoneAndNotBefore) {
  queue_.Add(kA);
  ASSERT_EQ(Take(), "a");
  queue_.Add(kA);
  queue_.Add(kA);
  EXPECT_EQ(Take(), "");
  queue_.Done(kA);
  EXPECT_EQ(Take(), "a");
  queue_.Done(kA);
  EXPECT_EQ(Take(), "");
}

TEST_F(WorkQueueTest, ADelayedAddIsDueInItsTimeAndTheEarlierOfTwoCounts) {
  queue_.AddAfter(kA, Seconds(10));
  queue_.AddAfter(kA, Seconds(5));
  queue_.AddAfter(kA, Seconds(7));
  EXPECT_EQ(queue_.NextReady(), Seconds(5));
  clock_.Advance(Seconds(4.9));
  EXPECT_EQ(Take(), "");
  clock_.Advance(Seconds(0.1));
  EXPECT_EQ(Take(), "a");
  queue_.Done(kA);
  clock_.Advance(Seconds(100));
  EXPECT_EQ(Take(), "");
}

TEST_F(WorkQueueTest, ADelayedAddDoesNotHoldBackAReadyKeyAndIsNotLost) {
  queue_.AddAfter(kA, Seconds(10));
  queue_.Add(kA);
  EXPECT_EQ(Take(), "a");
  queue_.Done(kA);
  clock_.Advance(Seconds(10));
  EXPECT_EQ(Take(), "a");
}

TEST_F(WorkQueueTest, DueKeysComeInTheOrderTheyFellDue) {
  queue_.AddAfter(kB, Seconds(2));
  queue_.AddAfter(kA, Seconds(1));
  queue_.AddAfter(kC, Seconds(3));
  clock_.Advance(Seconds(5));
  EXPECT_EQ(TakeThree(), "abc");
}

TEST_F(WorkQueueTest, BackOffDoublesFromFiveMillisecondsToAThousandSecondsAndForgets) {
  Duration previous{};
  for (int i = 0; i < 60; ++i) {
    const Duration delay = queue_.AddRateLimited(kA);
    const double ideal = std::min(0.005 * std::pow(2.0, i), 1000.0);
    EXPECT_GE(ToSeconds(delay), ideal * 0.9 - 1e-6) << i;
    EXPECT_LE(ToSeconds(delay), ideal * 1.1 + 1e-6) << i;
    previous = delay;
  }
  EXPECT_EQ(queue_.NumRequeues(kA), 60);
  queue_.Forget(kA);
  EXPECT_EQ(queue_.NumRequeues(kA), 0);
  EXPECT_LE(ToSeconds(queue_.AddRateLimited(kB)), 0.0055);
}

TEST_F(WorkQueueTest, NormalGoesBeforeLow) {
  queue_.Add(kA, Priority::kLow);
  queue_.Add(kB);
  EXPECT_EQ(Take(), "b");
  EXPECT_EQ(Take(), "a");
}

TEST_F(WorkQueueTest, ARaisedKeyGoesToTheEndOfItsNewClassAndIsNeverLowered) {
  queue_.Add(kA, Priority::kLow);
  queue_.Add(kB);
  queue_.Add(kA, Priority::kNormal);
  queue_.Add(kC);
  queue_.Add(kB, Priority::kLow);
  EXPECT_EQ(TakeThree(), "bac");
}

TEST_F(WorkQueueTest, LowIsNotStarvedByASteadyFlowOfNormal) {
  queue_.Add(kA, Priority::kLow);
  int handed_out = 0;
  for (; handed_out < 1000; ++handed_out) {
    queue_.Add(kB);
    queue_.Add(kC);
    const std::string name = Take();
    if (name == "a") break;
    queue_.Done({"ns", name});
    clock_.Advance(Milliseconds(100));
  }
  EXPECT_NEAR(handed_out, 300, 2);  // 30 s at 10/s
}

TEST_F(WorkQueueTest, AfterShutDownWhatIsQueuedIsDrainedAndAddsAreIgnored) {
  queue_.Add(kA);
  queue_.AddAfter(kC, Seconds(1));
  queue_.ShutDown();
  queue_.Add(kB);
  clock_.Advance(Seconds(5));
  const auto item = queue_.Get();
  ASSERT_TRUE(item);
  EXPECT_EQ(item->request, kA);
  EXPECT_FALSE(queue_.Get());
}

TEST_F(WorkQueueTest, DrainWaitsForWhatIsWorkedOn) {
  queue_.Add(kA);
  ASSERT_EQ(Take(), "a");
  EXPECT_FALSE(queue_.ShutDownWithDrain(Milliseconds(1)));
  std::thread worker([this] { queue_.Done(kA); });
  EXPECT_TRUE(queue_.ShutDownWithDrain(Seconds(20)));
  worker.join();
}

TEST_F(WorkQueueTest, StatsSayWhatWaitsAndWhatRunsLong) {
  queue_.Add(kA);
  queue_.Add(kB);
  queue_.AddAfter(kC, Seconds(60));
  ASSERT_EQ(Take(), "a");
  clock_.Advance(Seconds(3));
  const WorkQueue::Stats stats = queue_.GetStats();
  EXPECT_EQ(stats.depth, 1u);
  EXPECT_EQ(stats.waiting, 1u);
  EXPECT_EQ(stats.processing, 1u);
  EXPECT_EQ(stats.longest_running, Seconds(3));
}

// The rules of client-go's queue, written down as plainly as they can be: what each operation does to what a key
// needs. The queue must agree with it after every sequence of operations.
class Model {
 public:
  void Add(int key, Priority priority) {
    if (dirty_.contains(key)) {
      if (priority > priority_[key]) {
        priority_[key] = priority;
        const auto it = std::find(order_.begin(), order_.end(), key);
        if (it != order_.end()) {
          order_.erase(it);
          order_.push_back(key);
        }
      }
      return;
    }
    dirty_.insert(key);
    priority_[key] = priority;
    if (!processing_.contains(key)) order_.push_back(key);
  }
  void AddAfter(int key, int delay, Priority priority) {
    const auto it = due_.find(key);
    if (it == due_.end()) {
      due_[key] = {now_ + delay, next_++};
      due_priority_[key] = priority;
      return;
    }
    due_priority_[key] = std::max(due_priority_[key], priority);
    if (now_ + delay < it->second.first) it->second = {now_ + delay, next_++};
  }
  void Advance(int by) { now_ += by; }
  int Get() {
    while (true) {
      const auto first =
          std::min_element(due_.begin(), due_.end(), [](const auto& x, const auto& y) { return x.second < y.second; });
      if (first == due_.end() || first->second.first > now_) break;
      const int key = first->first;
      due_.erase(first);
      Add(key, due_priority_[key]);
    }
    for (Priority wanted : {Priority::kNormal, Priority::kLow}) {
      for (auto it = order_.begin(); it != order_.end(); ++it) {
        const int key = *it;
        if (priority_[key] != wanted) continue;
        order_.erase(it);
        dirty_.erase(key);
        processing_.insert(key);
        return key;
      }
    }
    return -1;
  }
  void Done(int key) {
    if (processing_.erase(key) > 0 && dirty_.contains(key)) order_.push_back(key);
  }

 private:
  int now_ = 0;
  int next_ = 0;
  std::deque<int> order_;
  std::set<int> dirty_, processing_;
  std::map<int, Priority> priority_, due_priority_;
  std::map<int, std::pair<int, int>> due_;
};

// Every sequence of `depth` operations over two keys.
TEST(WorkQueueModel, AgreesOverEveryShortSequence) {
  struct Op {
    char what;
    int key;
    Priority priority;
  };
  const std::vector<Op> ops = {{'a', 0, Priority::kNormal}, {'a', 0, Priority::kLow}, {'a', 1, Priority::kNormal},
                               {'l', 0, Priority::kNormal}, {'t', 0, Priority::kLow}, {'g', 0, Priority::kLow},
                               {'d', 0, Priority::kLow}};
  constexpr int kDepth = 4;  // and a drain after each, which adds eight more
  int total = 1;
  for (int i = 0; i < kDepth; ++i) total *= static_cast<int>(ops.size());
  const Request keys[] = {kA, kB};
  for (int sequence = 0; sequence < total; ++sequence) {
    ManualClock clock;
    WorkQueue queue(clock, {.seed = 1});
    Model model;
    std::string trace;
    const auto get = [&] {
      const auto item = queue.TryGet();
      const int expected = model.Get();
      const int got = !item ? -1 : item->request == kA ? 0 : 1;
      ASSERT_EQ(got, expected) << trace;
    };
    int rest = sequence;
    for (int i = 0; i < kDepth; ++i, rest /= static_cast<int>(ops.size())) {
      const Op& op = ops[rest % ops.size()];
      trace += op.what + std::to_string(op.key) + (op.priority == Priority::kLow ? "- " : " ");
      switch (op.what) {
        case 'a':
          queue.Add(keys[op.key], op.priority);
          model.Add(op.key, op.priority);
          break;
        case 'l':
          queue.AddAfter(keys[op.key], Seconds(2), op.priority);
          model.AddAfter(op.key, 2, op.priority);
          break;
        case 't':
          clock.Advance(Seconds(1));
          model.Advance(1);
          break;
        case 'g': get(); break;
        default: queue.Done(keys[op.key]); model.Done(op.key);
      }
    }
    // Whatever is left must come out equally, and nothing may be lost.
    for (int i = 0; i < 4; ++i) {
      get();
      for (int key : {0, 1}) {
        queue.Done(keys[key]);
        model.Done(key);
      }
      clock.Advance(Seconds(1));
      model.Advance(1);
    }
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(WorkQueueModel, AgreesOverLongRandomSequences) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const auto pick = [&random](int n) { return static_cast<int>(random() % static_cast<uint64_t>(n)); };
  for (int round = 0; round < 20; ++round) {
    ManualClock clock;
    WorkQueue queue(clock, {.low_priority_ages_after = Seconds(1e9), .seed = 1});
    Model model;
    for (int step = 0; step < 500; ++step) {
      const int key = pick(6);
      const Request request{"ns", std::to_string(key)};
      const Priority priority = pick(2) == 0 ? Priority::kLow : Priority::kNormal;
      switch (pick(5)) {
        case 0:
          queue.Add(request, priority);
          model.Add(key, priority);
          break;
        case 1: {
          const int delay = 1 + pick(5);
          queue.AddAfter(request, Seconds(delay), priority);
          model.AddAfter(key, delay, priority);
          break;
        }
        case 2:
          clock.Advance(Seconds(1));
          model.Advance(1);
          break;
        case 3: {
          const auto item = queue.TryGet();
          ASSERT_EQ(item ? std::stoi(item->request.name) : -1, model.Get()) << "step " << step;
          break;
        }
        default: queue.Done(request); model.Done(key);
      }
    }
  }
}

// With threads: no key is with two workers, every add is followed by a hand-out, and everybody comes home.
TEST(WorkQueueThreads, NoKeyIsWithTwoWorkersAndNoAddIsLost) {
  WorkQueue queue(SystemClock(), {.seed = 7});
  constexpr int kKeys = 20, kAdds = 2000;
  std::atomic<int> inside[kKeys] = {};
  std::atomic<int> added[kKeys] = {}, seen[kKeys] = {};
  std::atomic<bool> broken{false};
  std::vector<std::thread> threads;
  for (int w = 0; w < 4; ++w) {
    threads.emplace_back([&] {
      while (const auto item = queue.Get()) {
        const int key = std::stoi(item->request.name);
        if (inside[key].fetch_add(1) != 0) broken = true;
        seen[key] = added[key].load();
        inside[key].fetch_sub(1);
        queue.Done(item->request);
      }
    });
  }
  std::vector<std::thread> adders;
  for (int a = 0; a < 2; ++a) {
    adders.emplace_back([&, a] {
      std::mt19937_64 random(static_cast<uint64_t>(a) + 1);
      for (int i = 0; i < kAdds; ++i) {
        const int key = static_cast<int>(random() % kKeys);
        ++added[key];
        const Request request{"", std::to_string(key)};
        if (i % 3 == 0) {
          queue.AddAfter(request, Duration(static_cast<int64_t>(random() % 500)));
        } else {
          queue.Add(request, i % 2 == 0 ? Priority::kLow : Priority::kNormal);
        }
      }
    });
  }
  for (auto& adder : adders) adder.join();
  while (queue.NextReady().has_value() || queue.GetStats().processing > 0) std::this_thread::yield();
  queue.ShutDown();
  for (auto& thread : threads) thread.join();
  EXPECT_FALSE(broken);
  for (int key = 0; key < kKeys; ++key) EXPECT_EQ(seen[key], added[key]) << key;
}

// The worker that slept towards the first timer leaves with its key; another must take over the second timer.
TEST(WorkQueueThreads, ATimerIsNotLeftAloneByAWorkerThatIsBusy) {
  WorkQueue queue(SystemClock(), {.seed = 7});
  std::atomic<bool> second{false};
  std::vector<std::thread> threads;
  std::atomic<bool> late{false};
  for (int w = 0; w < 2; ++w) {
    threads.emplace_back([&] {
      while (const auto item = queue.Get()) {
        const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
        if (item->request == kB) second = true;
        while (item->request == kA && !second) {
          if (std::chrono::steady_clock::now() > until) {
            late = true;
            break;
          }
          std::this_thread::yield();
        }
        queue.Done(item->request);
      }
    });
  }
  while (queue.GetStats().idle_workers < 2) std::this_thread::yield();
  // One of them will sleep towards the first timer.
  queue.AddAfter(kA, Milliseconds(20));
  queue.AddAfter(kB, Milliseconds(60));
  while (!second && !late) std::this_thread::yield();
  queue.ShutDown();
  for (auto& thread : threads) thread.join();
  EXPECT_FALSE(late);
}

// Two keys come before the one worker without a timer has woken: it must pass the second on to the one with it.
TEST(WorkQueueThreads, AKeyReachesTheWorkerThatSleepsTowardsATimer) {
  for (int round = 0; round < 100; ++round) {
    WorkQueue queue(SystemClock(), {.seed = 7});
    std::atomic<int> inside{0};
    std::atomic<bool> late{false};
    std::vector<std::thread> threads;
    for (int w = 0; w < 2; ++w) {
      threads.emplace_back([&] {
        while (const auto item = queue.Get()) {
          const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
          ++inside;
          while (inside < 2 && !late) {
            if (std::chrono::steady_clock::now() > until) late = true;
            std::this_thread::yield();
          }
          queue.Done(item->request);
        }
      });
    }
    queue.AddAfter({"", "far"}, Seconds(3600));
    while (queue.GetStats().idle_workers < 2) std::this_thread::yield();
    queue.Add(kA);
    queue.Add(kB);
    while (inside < 2 && !late) std::this_thread::yield();
    queue.ShutDown();
    for (auto& thread : threads) thread.join();
    ASSERT_FALSE(late) << "round " << round;
  }
}

}  // namespace
}  // namespace lockkeeper
