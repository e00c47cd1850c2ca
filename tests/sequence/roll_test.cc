// Whole operations on the fakes: golden logs in fixed order and in the order of seed 0, and what a first install does.
#include <gtest/gtest.h>

#include "tests/sequence/cases.h"

namespace lockkeeper::sequence {
namespace {

std::string CaseName(const testing::TestParamInfo<Case>& info) { return info.param.name; }

class EachCase : public testing::TestWithParam<Case> {};

TEST_P(EachCase, ends_as_it_must_in_fixed_order_line_by_line) {
  Scenario s({});
  s.log_on = true;
  const std::string wrong = RunCase(s, GetParam());
  ASSERT_EQ(wrong, "") << s.LogText();
  EXPECT_EQ(CompareGolden(GetParam().name, s.LogText()), "");
}

TEST_P(EachCase, ends_as_it_must_in_the_order_of_seed_0_line_by_line) {
  Scenario s({.seed = 0, .shuffled = true});
  s.log_on = true;
  const std::string wrong = RunCase(s, GetParam());
  ASSERT_EQ(wrong, "") << s.LogText();
  EXPECT_EQ(CompareGolden(GetParam().name + ".seed0", s.LogText()), "");
}

INSTANTIATE_TEST_SUITE_P(Roll, EachCase, testing::ValuesIn(Cases()), CaseName);

}  // namespace
}  // namespace lockkeeper::sequence
