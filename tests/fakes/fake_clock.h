// FakeClock: time that the world moves.
// Threads: one thread. Failure: none.
#pragma once

#include <string>

#include "api/base/time.h"

namespace lockkeeper::fakes {

class FakeClock : public Clock {
 public:
  Now Read() const override { return now_; }
  void Advance(Duration d) {
    now_.wall += d;
    now_.boot += d;
  }
  // The wall clock alone, as an operator or NTP moves it.
  void JumpWall(Duration d) { now_.wall += d; }
  // Another boot: the boot clock begins anew.
  void Reboot(Duration takes) {
    now_.wall += takes;
    now_.boot = Seconds(1);
    now_.boot_id = "boot-" + std::to_string(++boots_);
  }

 private:
  Now now_{Time(Seconds(1800000000)), Seconds(1000), "boot-1"};
  int boots_ = 1;
};

}  // namespace lockkeeper::fakes
