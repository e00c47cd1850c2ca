// Backoff: growing pauses with jitter, which start over after a quiet time.
// Threads: one at a time. Failure: none.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <random>

namespace lockkeeper {

class Backoff {
 public:
  struct Options {
    std::chrono::milliseconds base;
    std::chrono::milliseconds max;
    std::chrono::milliseconds reset_after;  // without a call: from base again
    double jitter;                          // the pause is between 1 and 1+jitter times its step
  };
  Backoff(Options options, uint64_t seed) : options_(options), next_(options.base), random_(seed) {}

  std::chrono::milliseconds Next() {
    const auto now = std::chrono::steady_clock::now();
    if (last_ != std::chrono::steady_clock::time_point() && now - last_ > options_.reset_after) next_ = options_.base;
    last_ = now;
    std::uniform_real_distribution<double> factor(1, 1 + options_.jitter);
    const std::chrono::milliseconds step = std::min(next_, options_.max);
    next_ = std::min(next_ * 2, options_.max);
    return std::chrono::milliseconds(static_cast<int64_t>(static_cast<double>(step.count()) * factor(random_)));
  }

 private:
  const Options options_;
  std::chrono::milliseconds next_;
  std::chrono::steady_clock::time_point last_{};
  std::mt19937_64 random_;
};

}  // namespace lockkeeper
