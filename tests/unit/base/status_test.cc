#include "api/base/status.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace lockkeeper {
namespace {

Result<int> Half(int n) {
  if (n % 2 != 0) return {Code::kInvalid, std::to_string(n) + " is odd"};
  return n / 2;
}

Result<int> Quarter(int n) {
  LK_ASSIGN_OR_RETURN(const int half, Half(n));
  LK_ASSIGN_OR_RETURN(const int quarter, Half(half));
  return quarter;
}

Status CheckQuarter(int n) {
  LK_RETURN_IF_ERROR(Quarter(n).status());
  return Status::Ok();
}

TEST(Status, SaysItsKindAndMessage) {
  EXPECT_EQ(Status().ToString(), "Ok");
  EXPECT_EQ(Status(Code::kNotFound, "no slot blue").ToString(), "NotFound: no slot blue");
  EXPECT_EQ(Status(Code::kBusy, "").ToString(), "Busy");
}

TEST(Status, AnnotatePutsTheAttemptInFrontAndKeepsTheKind) {
  const Status status = Status(Code::kTimeout, "no answer in 3 s").Annotate("flip front main");
  EXPECT_EQ(status.code(), Code::kTimeout);
  EXPECT_EQ(status.message(), "flip front main: no answer in 3 s");
}

TEST(Status, AnnotateLeavesOkAlone) { EXPECT_TRUE(Status().Annotate("flip").message().empty()); }

TEST(Status, EachKindHasANameOfItsOwnAndAWayOn) {
  std::vector<std::string_view> names;
  for (int code = 0; code <= static_cast<int>(Code::kInternal); ++code) {
    const auto name = CodeName(static_cast<Code>(code));
    EXPECT_EQ(std::count(names.begin(), names.end(), name), 0) << name;
    names.push_back(name);
    (void)DispositionOf(static_cast<Code>(code));
  }
}

TEST(Status, AConflictIsObservedAgainAndAnInvalidInputIsNotRetried) {
  EXPECT_EQ(DispositionOf(Code::kConflict), Disposition::kReobserve);
  EXPECT_EQ(DispositionOf(Code::kExpired), Disposition::kReobserve);
  EXPECT_EQ(DispositionOf(Code::kInvalid), Disposition::kStalled);
  EXPECT_EQ(DispositionOf(Code::kTimeout), Disposition::kRetry);
  EXPECT_EQ(DispositionOf(Code::kCancelled), Disposition::kStop);
}

TEST(Result, TheMacrosPassValuesOnAndStopAtTheFirstError) {
  EXPECT_EQ(*Quarter(12), 3);
  EXPECT_EQ(Quarter(6).status(), Status(Code::kInvalid, "3 is odd"));
  EXPECT_EQ(Quarter(5).status(), Status(Code::kInvalid, "5 is odd"));
  EXPECT_TRUE(CheckQuarter(8).ok());
  EXPECT_EQ(CheckQuarter(7).code(), Code::kInvalid);
}

TEST(Result, HoldsWhatCanOnlyBeMoved) {
  Result<std::unique_ptr<int>> result(std::make_unique<int>(7));
  ASSERT_TRUE(result.ok());
  const std::unique_ptr<int> taken = *std::move(result);
  EXPECT_EQ(*taken, 7);
}

TEST(Result, ValueOrAnswersTheOtherOnlyForAnError) {
  EXPECT_EQ(Half(4).value_or(9), 2);
  EXPECT_EQ(Half(3).value_or(9), 9);
}

TEST(ResultDeathTest, ReadingTheValueOfAnErrorDiesWithTheError) {
  const Result<int> error = Half(3);
  EXPECT_DEATH((void)*error, "Invalid: 3 is odd");
}

TEST(ResultDeathTest, AnErrorResultCannotBeMadeFromAnOkStatus) {
  EXPECT_DEATH(Result<int>{Status::Ok()}, "made from an ok Status");
}

TEST(CheckDeathTest, ABrokenInvariantNamesItself) { EXPECT_DEATH(LK_CHECK(1 + 1 == 3), "CHECK failed: 1 \\+ 1 == 3"); }

}  // namespace
}  // namespace lockkeeper
