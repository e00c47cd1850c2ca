#include "tests/load/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace lockkeeper::load {
namespace {

// Microseconds below 128 have a bucket each; above, each power of two has 64.
constexpr uint64_t kExact = 128;
constexpr uint64_t kPerPower = 64;

size_t BucketOf(uint64_t us) {
  if (us < kExact) return us;
  const auto shift = static_cast<uint64_t>(std::bit_width(us)) - 7;  // us >> shift is 64 to 127
  return kExact + (shift - 1) * kPerPower + (us >> shift) - kPerPower;
}

// The largest value of a bucket.
uint64_t TopOf(size_t bucket) {
  if (bucket < kExact) return bucket;
  const uint64_t shift = (bucket - kExact) / kPerPower + 1;
  const uint64_t sub = (bucket - kExact) % kPerPower + kPerPower;
  return ((sub + 1) << shift) - 1;
}

}  // namespace

void Histogram::Add(Duration d) {
  const auto us = static_cast<uint64_t>(std::max<int64_t>(0, d.count()));
  const size_t bucket = BucketOf(us);
  if (bucket >= buckets_.size()) buckets_.resize(bucket + 1);
  ++buckets_[bucket];
  ++count_;
  max_ = std::max(max_, d);
}

void Histogram::Merge(const Histogram& other) {
  if (other.buckets_.size() > buckets_.size()) buckets_.resize(other.buckets_.size());
  for (size_t i = 0; i < other.buckets_.size(); ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  max_ = std::max(max_, other.max_);
}

Duration Histogram::Quantile(double share) const {
  const auto wanted = static_cast<uint64_t>(std::ceil(share * static_cast<double>(count_)));
  uint64_t seen = 0;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    seen += buckets_[i];
    if (seen >= wanted && seen > 0) return std::min(max_, Duration(static_cast<int64_t>(TopOf(i))));
  }
  return max_;
}

Json Histogram::ToJson() const {
  const auto ms = [](Duration d) { return static_cast<double>(d.count()) / 1000; };
  return Json::MakeObject({{"count", count_},
                           {"p50", ms(Quantile(0.5))},
                           {"p90", ms(Quantile(0.9))},
                           {"p99", ms(Quantile(0.99))},
                           {"p999", ms(Quantile(0.999))},
                           {"max", ms(max_)}});
}

}  // namespace lockkeeper::load
