#include "reconcilers/ledger/records_json.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/unit/ledger/random_record.h"

namespace lockkeeper {
namespace {

TEST(RecordsJsonTest, RandomRecordsSurviveTheRoundTrip) {
  const uint64_t seed = std::random_device{}();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  RandomRecord random(seed);
  for (int i = 0; i < 50; ++i) {
    const ServerRecord record = random.Server();
    const std::string text = RecordToJson(record).Dump();
    const Result<Json> json = Json::Parse(text);
    ASSERT_TRUE(json.ok()) << json.status().ToString();
    const Result<ServerRecord> back = RecordFromJson(*json);
    ASSERT_TRUE(back.ok()) << back.status().ToString() << "\n" << text;
    ASSERT_EQ(RecordToJson(*back).Dump(), text);
    ASSERT_TRUE(*back == record) << text;
    const OutcomeRecord outcome = random.Outcome();
    const Result<OutcomeRecord> outcome_back = OutcomeFromJson(OutcomeToJson(outcome));
    ASSERT_TRUE(outcome_back.ok() && *outcome_back == outcome);
    const UnitSpec unit = random.Unit();
    const Result<UnitSpec> unit_back = UnitSpecFromJson(UnitSpecToJson(unit));
    ASSERT_TRUE(unit_back.ok() && *unit_back == unit);
  }
}

TEST(RecordsJsonTest, AFreshRecordIsSmall) {
  ServerRecord record;
  record.key = {"default", "kcp"};
  EXPECT_EQ(RecordToJson(record).Dump(), R"({"key":{"ns":"default","name":"kcp"}})");
}

TEST(RecordsJsonTest, AnOutcomeOfBeforeItKeptItsChecksIsReadAsItIs) {
  const Result<OutcomeRecord> old =
      OutcomeFromJson(*Json::Parse(R"({"kind":"Roll","name":"r1","outcome":"Succeeded"})"));
  ASSERT_TRUE(old.ok()) << old.status().ToString();
  EXPECT_EQ(old->name, "r1");
  EXPECT_EQ(old->outcome, Outcome::kSucceeded);
  EXPECT_TRUE(old->checks.empty());
  EXPECT_TRUE(old->steps_ahead.empty());
}

TEST(RecordsJsonTest, AMemberOfAnotherTypeIsCorruptAndNamed) {
  const Result<ServerRecord> record = RecordFromJson(*Json::Parse(R"({"slots":{"blue":{"actual":{"port":"x"}}}})"));
  EXPECT_EQ(record.code(), Code::kCorrupt);
  EXPECT_NE(record.status().message().find("slots"), std::string::npos);
  EXPECT_NE(record.status().message().find("actual.port.: expected an integer"), std::string::npos)
      << record.status().message();
}

}  // namespace
}  // namespace lockkeeper
