// FrontMetrics: the numbers a front counts, and their Prometheus text.
//
// Purpose:   counters without a library in the data path: plain integers of the loop's thread.
// Ownership: a value of the data plane.
// Threads:   the loop's thread. Failure: none.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace lockkeeper::front {

// A histogram with fixed bounds in seconds, up to 3 s (a dial's budget).
class Histogram {
 public:
  static constexpr std::array<double, 10> kBounds = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 3};
  void Observe(double seconds);
  void Write(std::string_view name, std::string_view help, std::string* out) const;

 private:
  std::array<uint64_t, kBounds.size() + 1> buckets_{};
  double sum_ = 0;
};

struct BackendNumbers {
  int open = 0;
  int64_t total = 0;
};

struct FrontMetrics {
  int64_t accepted = 0;
  int64_t refused = 0;           // held for too long
  int64_t client_left_held = 0;  // gave up while waiting
  int64_t drained = 0;
  int64_t cut = 0;
  int64_t rehomed = 0;
  int64_t bytes_up = 0;
  int64_t bytes_down = 0;
  int64_t flips = 0;
  int64_t dial_retries = 0;
  std::map<int, int64_t> dial_failures;  // by errno
  int64_t accept_paused_micros = 0;
  int64_t accept_errors = 0;
  int64_t lag_micros = 0;  // longest turn of the loop since the last look
  Histogram dial;
  Histogram flip;

  // Of the moment.
  std::map<std::string, BackendNumbers> backends;  // by "slot#incarnation"
  int held = 0;
  int64_t generation = 0;

  // Names: front.md 7, with the prefix lockkeeper_front_. Resets lag_micros.
  std::string Text();
};

}  // namespace lockkeeper::front
