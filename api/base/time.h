// Time, Duration, Now and Clock: the only door to the clocks.
//
// Purpose:   one reading of the clock per pass (a Now), handed to pure code; deadlines that survive a
//            change of the wall clock because they are judged on the boot-time clock of their own boot.
// Ownership: values; a Clock outlives all that borrow it.
// Threads:   Clock implementations are thread-safe.
// Failure:   reading a clock does not fail; parsing a time answers a Result.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "api/base/status.h"

namespace lockkeeper {

using Duration = std::chrono::microseconds;
using Time = std::chrono::time_point<std::chrono::system_clock, Duration>;  // wall clock, UTC

constexpr Duration Seconds(double s) { return Duration(static_cast<int64_t>(s * 1e6 + (s < 0 ? -0.5 : 0.5))); }
constexpr Duration Milliseconds(int64_t ms) { return Duration(ms * 1000); }
constexpr double ToSeconds(Duration d) { return static_cast<double>(d.count()) / 1e6; }

// One reading of all clocks. `boot` is CLOCK_BOOTTIME (runs on through suspend) of boot `boot_id`.
struct Now {
  Time wall{};
  Duration boot{};
  std::string boot_id;

  bool operator==(const Now&) const = default;
};

// A point in time to act at: set from a Now, judged on the boot clock while the boot id is the same,
// on the wall clock after a reboot.
struct Deadline {
  Time wall{};
  Duration boot{};
  std::string boot_id;

  static Deadline After(const Now& now, Duration d) { return {now.wall + d, now.boot + d, now.boot_id}; }
  // Time left, negative once passed.
  Duration Left(const Now& now) const;
  bool Passed(const Now& now) const { return Left(now) <= Duration::zero(); }
  // The same deadline moved, for instance by time spent paused.
  Deadline Shifted(Duration d) const { return {wall + d, boot + d, boot_id}; }
  bool IsSet() const { return wall != Time{}; }

  bool operator==(const Deadline&) const = default;
};

class Clock {
 public:
  virtual ~Clock() = default;
  virtual Now Read() const = 0;
};

// The clocks of this machine. Never destroyed.
const Clock& SystemClock();
// This machine's boot id (/proc/sys/kernel/random/boot_id), read once.
const std::string& BootId();

// RFC 3339 in UTC: "2026-11-30T12:00:00Z" and "2026-11-30T12:00:00.000000Z".
std::string FormatTime(Time t);
std::string FormatMicroTime(Time t);
Result<Time> ParseTime(std::string_view text);
// "850ms", "12s", "3m4s", "5h2m", "3d4h", "2y40d": as kubectl prints ages.
std::string FormatAge(Duration d);

}  // namespace lockkeeper
