#include "tests/load/histogram.h"

#include <gtest/gtest.h>

namespace lockkeeper::load {
namespace {

TEST(Histogram, AnswersQuantilesNoFurtherOffThan1Point6Percent) {
  Histogram histogram;
  for (int64_t us = 1; us <= 100000; ++us) histogram.Add(Duration(us));
  EXPECT_EQ(histogram.count(), 100000u);
  EXPECT_EQ(histogram.max(), Duration(100000));
  for (const double share : {0.001, 0.1, 0.5, 0.9, 0.99, 0.999}) {
    const double exact = share * 100000;
    EXPECT_NEAR(static_cast<double>(histogram.Quantile(share).count()), exact, 0.016 * exact) << share;
  }
  EXPECT_EQ(histogram.Quantile(1), Duration(100000));
}

TEST(Histogram, SmallValuesAreExactAndHugeOnesHaveRoom) {
  Histogram histogram;
  histogram.Add(Duration(0));
  EXPECT_EQ(histogram.Quantile(0.5), Duration(0));
  histogram.Add(Duration(127));
  histogram.Add(Duration(-5));  // a clock that went back
  EXPECT_EQ(histogram.Quantile(0.6), Duration(0));
  EXPECT_EQ(histogram.Quantile(0.9), Duration(127));
  histogram.Add(std::chrono::hours(24 * 365));
  EXPECT_EQ(histogram.Quantile(1), Duration(std::chrono::hours(24 * 365)));
}

TEST(Histogram, WithoutValuesAllIsZero) {
  EXPECT_EQ(Histogram().Quantile(0.99), Duration(0));
  EXPECT_EQ(Histogram().ToJson().Get("max").AsDouble(1), 0);
}

TEST(Histogram, MergedOnesAnswerAsIfTheyHadBeenOne) {
  Histogram low, high, all;
  for (int64_t us = 1; us <= 1000; ++us) {
    low.Add(Duration(us));
    high.Add(Duration(us * 1000));
    all.Add(Duration(us));
    all.Add(Duration(us * 1000));
  }
  low.Merge(high);
  EXPECT_EQ(low.ToJson(), all.ToJson());
}

}  // namespace
}  // namespace lockkeeper::load
