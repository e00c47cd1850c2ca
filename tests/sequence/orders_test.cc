// 200 random orders of the reconcilers over all cases; a failure prints its seed.
#include <gtest/gtest.h>

#include "tests/sequence/cases.h"

namespace lockkeeper::sequence {
namespace {

TEST(Orders, two_hundred_random_orders_break_no_invariant_and_end_the_same) {
  const std::vector<Case>& cases = Cases();
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const Case& c = cases[seed % cases.size()];
    Scenario s({.seed = seed, .shuffled = true});
    s.log_on = true;
    const std::string wrong = RunCase(s, c);
    ASSERT_EQ(wrong, "") << "case " << c.name << ", seed " << seed << "\n" << s.LogText();
  }
}

}  // namespace
}  // namespace lockkeeper::sequence
