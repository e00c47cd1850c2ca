#include "api/base/time.h"

#include <gtest/gtest.h>

namespace lockkeeper {
namespace {

Time At(int64_t seconds, int64_t micros = 0) { return Time(Duration(seconds * 1000000 + micros)); }

TEST(TimeText, IsRfc3339InUtc) {
  EXPECT_EQ(FormatTime(At(1796040000)), "2026-11-30T12:00:00Z");
  EXPECT_EQ(FormatTime(At(1796040000, 999999)), "2026-11-30T12:00:00Z");
  EXPECT_EQ(FormatMicroTime(At(1796040000, 42)), "2026-11-30T12:00:00.000042Z");
  EXPECT_EQ(FormatMicroTime(At(-1, 500000)), "1969-12-31T23:59:59.500000Z");
}

struct ParseCase {
  const char* name;
  const char* text;
  int64_t seconds;
  int64_t micros;
};

class TimeParses : public testing::TestWithParam<ParseCase> {};

TEST_P(TimeParses, ToTheSameInstant) {
  const Result<Time> time = ParseTime(GetParam().text);
  ASSERT_TRUE(time.ok()) << time.status().ToString();
  EXPECT_EQ(*time, At(GetParam().seconds, GetParam().micros)) << FormatMicroTime(*time);
}

INSTANTIATE_TEST_SUITE_P(Forms, TimeParses,
                         testing::Values(ParseCase{"Plain", "2026-11-30T12:00:00Z", 1796040000, 0},
                                         ParseCase{"Micros", "2026-11-30T12:00:00.000042Z", 1796040000, 42},
                                         ParseCase{"OneDigit", "2026-11-30T12:00:00.5Z", 1796040000, 500000},
                                         ParseCase{"Nanos", "2026-11-30T12:00:00.123456789Z", 1796040000, 123456},
                                         ParseCase{"EastOfGreenwich", "2026-11-30T13:30:00+01:30", 1796040000, 0},
                                         ParseCase{"WestOfGreenwich", "2026-11-30T04:00:00-08:00", 1796040000, 0},
                                         ParseCase{"LeapDay", "2024-02-29T00:00:00Z", 1709164800, 0},
                                         ParseCase{"BeforeTheEpoch", "1969-12-31T23:59:59.5Z", -1, 500000}),
                         [](const auto& test) { return test.param.name; });

TEST(TimeText, ReadsBackWhatItWrote) {
  for (const int64_t seconds :
       {int64_t{-62135596800}, int64_t{-1}, int64_t{0}, int64_t{951782400}, int64_t{4102444800}}) {
    EXPECT_EQ(*ParseTime(FormatMicroTime(At(seconds, 7))), At(seconds, 7));
  }
}

TEST(TimeText, RefusesWhatIsNoTime) {
  for (const char* text :
       {"", "yesterday", "2026-11-30", "2026-11-30T12:00:00", "2026-11-30 12:00:00Z", "26-11-30T12:00:00Z",
        "2026- 1-30T12:00:00Z", "2026-02-31T12:00:00Z", "2025-02-29T12:00:00Z", "2026-13-01T12:00:00Z",
        "2026-11-30T24:00:00Z", "2026-11-30T12:60:00Z", "2026-11-30T12:00:00.Z", "2026-11-30T12:00:00+1:00",
        "2026-11-30T12:00:00+01:00Z", "2026-11-30T12:00:00Z "}) {
    const Result<Time> time = ParseTime(text);
    EXPECT_EQ(time.code(), Code::kInvalid) << text;
    EXPECT_NE(time.status().message().find(text), std::string::npos) << "the message names the text";
  }
}

TEST(TimeText, AgesReadAsKubectlPrintsThem) {
  const auto age = [](int64_t seconds) { return FormatAge(std::chrono::seconds(seconds)); };
  constexpr int64_t kMinute = 60, kHour = 3600, kDay = 86400;
  EXPECT_EQ(FormatAge(Milliseconds(850)), "850ms");
  EXPECT_EQ(age(0), "0s");
  EXPECT_EQ(age(-1), "0s");
  EXPECT_EQ(age(-2), "<invalid>");
  EXPECT_EQ(age(119), "119s");
  EXPECT_EQ(age(120), "2m");
  EXPECT_EQ(age(3 * kMinute + 4), "3m4s");
  EXPECT_EQ(age(10 * kMinute + 4), "10m");
  EXPECT_EQ(age(5 * kHour + 2 * kMinute), "5h2m");
  EXPECT_EQ(age(8 * kHour + 2 * kMinute), "8h");
  EXPECT_EQ(age(3 * kDay + 4 * kHour), "3d4h");
  EXPECT_EQ(age(8 * kDay + 4 * kHour), "8d");
  EXPECT_EQ(age(770 * kDay), "2y40d");
  EXPECT_EQ(age(3000 * kDay), "8y");
}

TEST(Durations, SecondsAreRoundedToTheMicrosecond) {
  EXPECT_EQ(Seconds(0.29).count(), 290000);
  EXPECT_EQ(Seconds(1.000001).count(), 1000001);
  EXPECT_EQ(Seconds(-0.29).count(), -290000);
  EXPECT_DOUBLE_EQ(ToSeconds(Milliseconds(1500)), 1.5);
}

TEST(Deadlines, AreJudgedOnTheBootClockWithinABoot) {
  Now now{At(1000), Duration(5000000), "boot-a"};
  const Deadline deadline = Deadline::After(now, Seconds(10));
  now.wall += std::chrono::hours(1);  // somebody set the clock
  now.boot += Seconds(4);
  EXPECT_EQ(deadline.Left(now), Seconds(6));
  EXPECT_FALSE(deadline.Passed(now));
  now.boot += Seconds(6);
  EXPECT_TRUE(deadline.Passed(now));
}

TEST(Deadlines, AreJudgedOnTheWallClockAfterAReboot) {
  const Now before{At(1000), Duration(5000000), "boot-a"};
  const Deadline deadline = Deadline::After(before, Seconds(10));
  const Now after{At(1003), Duration(0), "boot-b"};
  EXPECT_EQ(deadline.Left(after), Seconds(7));
}

TEST(Deadlines, ShiftByTheTimeSpentPaused) {
  const Now now{At(1000), Duration(5000000), "boot-a"};
  const Deadline deadline = Deadline::After(now, Seconds(10)).Shifted(Seconds(5));
  EXPECT_EQ(deadline.Left(now), Seconds(15));
  EXPECT_EQ(deadline.Left({At(1000), Duration(0), "boot-b"}), Seconds(15));
  EXPECT_TRUE(deadline.IsSet());
  EXPECT_FALSE(Deadline().IsSet());
}

TEST(Clocks, TheMachinesOneRunsOnAndNamesItsBoot) {
  const Now first = SystemClock().Read();
  const Now second = SystemClock().Read();
  EXPECT_GE(second.boot, first.boot);
  EXPECT_EQ(first.boot_id, BootId());
  EXPECT_EQ(BootId().size(), 36u);
}

}  // namespace
}  // namespace lockkeeper
