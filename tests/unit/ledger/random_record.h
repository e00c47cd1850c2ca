// Random records for round trips: every member has a chance to be set.
#pragma once

#include <random>

#include "reconcilers/ports/records.h"

namespace lockkeeper {

class RandomRecord {
 public:
  explicit RandomRecord(uint64_t seed) : rng_(seed) {}
  ServerRecord Server();
  OutcomeRecord Outcome();
  UnitSpec Unit();

 private:
  int64_t Number(int64_t most = 1000000) { return static_cast<int64_t>(rng_() % static_cast<uint64_t>(most + 1)); }
  bool Coin() { return (rng_() & 1) != 0; }
  std::string Text();
  Time At() { return Time(Duration(Number(int64_t{1} << 50))); }
  Deadline Until() { return {At(), Duration(Number()), Text()}; }
  HostBuild Build() { return {Text(), Text(), Text(), Text(), Text()}; }
  UnitIdentity Identity();
  UnitExit Exit();
  SlotIntent Intent();
  SlotActual Actual();
  OperationRecord Operation();
  template <typename T, typename F>
  std::vector<T> Many(F one) {
    std::vector<T> out;
    for (int64_t n = Number(3); n > 0; --n) out.push_back(one());
    return out;
  }
  template <typename T, typename F>
  std::map<std::string, T> Map(F one) {
    std::map<std::string, T> out;
    for (int64_t n = Number(3); n > 0; --n) out[Text()] = one();
    return out;
  }
  std::mt19937_64 rng_;
};

}  // namespace lockkeeper
