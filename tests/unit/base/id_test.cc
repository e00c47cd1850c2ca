#include "api/base/id.h"

#include <gtest/gtest.h>

#include <regex>
#include <set>

namespace lockkeeper {
namespace {

TEST(Uuid, IsOfVersion4AndNeverTheSame) {
  const std::regex form("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}");
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    const std::string uuid = NewUuid();
    EXPECT_TRUE(std::regex_match(uuid, form)) << uuid;
    EXPECT_TRUE(seen.insert(uuid).second) << uuid;
  }
}

TEST(Ulid, SortsByTimeAndIsKnownAgain) {
  const Time t(Seconds(1796040000));
  const std::string first = NewUlid(t);
  const std::string second = NewUlid(t + Milliseconds(1));
  EXPECT_LT(first, second);
  EXPECT_LT(second, NewUlid(t + std::chrono::hours(24 * 365)));
  EXPECT_EQ(first.substr(0, 10), NewUlid(t).substr(0, 10)) << "the time is the first ten characters";
  EXPECT_NE(first, NewUlid(t));
  EXPECT_TRUE(IsUlid(first));
}

TEST(Ulid, TheTimeIsCrockfordBase32OfItsMilliseconds) {
  EXPECT_EQ(NewUlid(Time(Milliseconds(1469918176385))).substr(0, 10), "01ARYZ6S41");
}

TEST(Ulid, OtherTextsAreNone) {
  EXPECT_FALSE(IsUlid(""));
  EXPECT_FALSE(IsUlid("01ARZ3NDEKTSV4RRFFQ69G5FA"));
  EXPECT_FALSE(IsUlid("01ARZ3NDEKTSV4RRFFQ69G5FAVX"));
  EXPECT_FALSE(IsUlid("01ARZ3NDEKTSV4RRFFQ69G5FAU"));
  EXPECT_FALSE(IsUlid("81ARZ3NDEKTSV4RRFFQ69G5FAV"));
  EXPECT_FALSE(IsUlid("01arz3ndektsv4rrffq69g5fav"));
}

TEST(RandomText, HasTheLengthAndTheLettersAskedFor) {
  EXPECT_EQ(RandomHex(16).size(), 32u);
  EXPECT_EQ(RandomHex(0), "");
  EXPECT_TRUE(std::regex_match(RandomHex(64), std::regex("[0-9a-f]{128}")));
  EXPECT_TRUE(std::regex_match(RandomName(200), std::regex("[bcdfghjklmnpqrstvwxz2456789]{200}")));
  EXPECT_NE(RandomName(10), RandomName(10));
}

}  // namespace
}  // namespace lockkeeper
