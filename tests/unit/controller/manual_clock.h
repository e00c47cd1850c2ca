// ManualClock: time that stands still until the test moves it.
// Threads: thread-safe. Failure: none.
#pragma once

#include "api/base/sync.h"
#include "api/base/time.h"

namespace lockkeeper {

class ManualClock : public Clock {
 public:
  Now Read() const override {
    MutexLock lock(mutex_);
    return now_;
  }
  void Advance(Duration d) {
    MutexLock lock(mutex_);
    now_.wall += d;
    now_.boot += d;
  }
  // The wall clock alone, as NTP or an operator does it.
  void JumpWall(Duration d) {
    MutexLock lock(mutex_);
    now_.wall += d;
  }

 private:
  mutable Mutex mutex_;
  Now now_ LK_GUARDED_BY(mutex_) = {Time(Seconds(1800000000)), Seconds(1000), "boot"};
};

}  // namespace lockkeeper
