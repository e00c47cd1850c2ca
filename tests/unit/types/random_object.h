// RandomObject: objects of a type, by its field table, for round trips.
// Ownership: values. Threads: none. Failure: none.
#pragma once

#include <cstdint>
#include <random>

#include "api/types/type_info.h"

namespace lockkeeper {

// LK_SEED of the environment, else a fresh one; printed, so that a failure can be had again.
uint64_t TestSeed();

class RandomObject {
 public:
  // `unknown`: sprinkles members that the table does not know.
  explicit RandomObject(uint64_t seed, bool unknown = true) : random_(seed), unknown_(unknown) {}

  // Right by type and enum; not always by bounds and rules.
  Json Make(const TypeInfo& type);

 private:
  Json Value(const ValueInfo& info);
  int64_t Below(int64_t limit) { return std::uniform_int_distribution<int64_t>(0, limit - 1)(random_); }

  std::mt19937_64 random_;
  const bool unknown_;
};

}  // namespace lockkeeper
