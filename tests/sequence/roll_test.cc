// Whole operations on the fakes: golden logs in fixed order and in the order of seed 0, and what a first install does.
#include <gtest/gtest.h>

#include "reconcilers/server/steps.h"
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

TEST(FullDisk, a_roll_under_way_is_brought_to_its_end_with_the_ballast) {
  const Case& plain = Cases().front();
  Case full = plain;
  full.each_round = [](Scenario& s) {
    if (s.HasOperation() && s.record().operation->finished.count(roll::kStepStart) != 0) s.world.ledger.SetFull(true);
  };
  Scenario s({});
  s.log_on = true;
  EXPECT_EQ(RunCase(s, full), "") << s.LogText();
  EXPECT_EQ(s.world.ledger.repairs(), 1);
}

TEST(FullDisk, nothing_new_begins_with_the_ballast) {
  Scenario s({});
  s.Begin(InstalledFor(Cases().front()));
  s.world.ledger.SetFull(true);
  s.ApplyRoll("r1", "v2");
  EXPECT_FALSE(s.RunUntil([&] { return s.HasOperation(); }, 200));
  EXPECT_EQ(s.world.ledger.repairs(), 0);
}

INSTANTIATE_TEST_SUITE_P(Roll, EachCase, testing::ValuesIn(Cases()), CaseName);

}  // namespace
}  // namespace lockkeeper::sequence
