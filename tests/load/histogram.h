// Histogram: durations in buckets that are never off by more than 1.6 %.
// Ownership: a value. Threads: one at a time. Failure: none; a negative duration counts as zero.
#pragma once

#include <cstdint>
#include <vector>

#include "api/base/json.h"
#include "api/base/time.h"

namespace lockkeeper::load {

class Histogram {
 public:
  void Add(Duration d);
  void Merge(const Histogram& other);

  uint64_t count() const { return count_; }
  Duration max() const { return max_; }
  // The least duration that at least `share` (0 to 1) of all are not over; zero without any.
  Duration Quantile(double share) const;
  // {"count":…,"p50":…,"p90":…,"p99":…,"p999":…,"max":…}, in milliseconds.
  Json ToJson() const;

 private:
  std::vector<uint64_t> buckets_;
  uint64_t count_ = 0;
  Duration max_{0};
};

}  // namespace lockkeeper::load
