#include "api/base/sync.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace lockkeeper {
namespace {

struct Counter {
  Mutex mutex;
  CondVar changed;
  int value LK_GUARDED_BY(mutex) = 0;
};

TEST(Sync, AWaiterSeesWhatOthersDidUnderTheLock) {
  Counter counter;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&counter] {
      for (int n = 0; n < 100; ++n) {
        const MutexLock lock(counter.mutex);
        ++counter.value;
        counter.changed.NotifyAll();
      }
    });
  }
  {
    const MutexLock lock(counter.mutex);
    while (counter.value < 400) counter.changed.Wait(counter.mutex);
    EXPECT_EQ(counter.value, 400);
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Sync, AWaitEndsByItselfAfterItsTime) {
  Counter counter;
  const MutexLock lock(counter.mutex);
  EXPECT_FALSE(counter.changed.WaitFor(counter.mutex, std::chrono::milliseconds(1)));
}

}  // namespace
}  // namespace lockkeeper
