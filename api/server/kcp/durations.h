// Durations of the command line, and the one factor that scales all times of a kcp-like server.
//
// Purpose:   "1m30s" as Go writes it; real seconds of kcp times LOCKKEEPER_TIME_SCALE.
// Ownership: values.
// Threads:   values.
// Failure:   parsing answers kInvalid and names the text.
#pragma once

#include <string>
#include <string_view>

#include "api/base/time.h"

namespace lockkeeper::kcp {

// "300ms", "1.5s", "1m30s", "0": units h, m, s, ms, us; a bare number other than 0 is refused.
Result<Duration> ParseGoDuration(std::string_view text);

// The factor of LOCKKEEPER_TIME_SCALE: 0.001 to 10; unset is 1. A time that is not zero stays at least 1 ms.
class TimeScale {
 public:
  explicit TimeScale(double factor = 1) : factor_(factor) {}
  static Result<TimeScale> FromEnv();

  double factor() const { return factor_; }
  // `seconds` of the real kcp, here.
  Duration Of(double seconds) const;

 private:
  double factor_;
};

}  // namespace lockkeeper::kcp
