// Conditions, reasons, and what kstatus makes of them.
#include "api/types/conditions.h"

#include <gtest/gtest.h>

#include <set>

#include "api/types/kind.h"
#include "api/types/reasons.h"
#include "api/types/upgrade.h"

namespace lockkeeper {
namespace {

const Time kNoon = *ParseTime("2026-11-30T12:00:00Z");

Condition Make(std::string_view type, ConditionStatus status, std::string_view reason, std::string_view message = "") {
  Condition c;
  c.type = type;
  c.status = status;
  c.reason = reason;
  c.message = message;
  return c;
}

TEST(Conditions, TheTransitionTimeMovesOnlyWithTheStatus) {
  std::vector<Condition> conditions;
  EXPECT_TRUE(
      SetCondition(conditions, Make("Ready", ConditionStatus::kFalse, "Installing"), kNoon + Milliseconds(700)));
  EXPECT_EQ(conditions[0].last_transition_time, kNoon) << "whole seconds, as it is written";
  EXPECT_TRUE(
      SetCondition(conditions, Make("Ready", ConditionStatus::kFalse, "PortTaken", "6443"), kNoon + Seconds(5)));
  EXPECT_EQ(conditions[0].last_transition_time, kNoon);
  EXPECT_EQ(conditions[0].reason, "PortTaken");
  EXPECT_FALSE(
      SetCondition(conditions, Make("Ready", ConditionStatus::kFalse, "PortTaken", "6443"), kNoon + Seconds(6)));
  EXPECT_TRUE(SetCondition(conditions, Make("Ready", ConditionStatus::kTrue, "AsDesired"), kNoon + Seconds(9)));
  EXPECT_EQ(conditions[0].last_transition_time, kNoon + Seconds(9));
  EXPECT_EQ(conditions.size(), 1u);
}

TEST(Conditions, RecomputedConditionsKeepTheirTimesAndLoseWhatIsGone) {
  std::vector<Condition> before = {Make("Ready", ConditionStatus::kTrue, "AsDesired"),
                                   Make("Degraded", ConditionStatus::kTrue, "OldBuild")};
  for (Condition& c : before) c.last_transition_time = kNoon;
  const std::vector<Condition> after = CarryConditions(
      before, {Make("Ready", ConditionStatus::kTrue, "AsDesired"), Make("Stalled", ConditionStatus::kTrue, "X")}, 7,
      kNoon + Seconds(60));
  ASSERT_EQ(after.size(), 2u);
  EXPECT_EQ(after[0].last_transition_time, kNoon);
  EXPECT_EQ(after[0].observed_generation, 7);
  EXPECT_EQ(after[1].last_transition_time, kNoon + Seconds(60));
  EXPECT_EQ(FindCondition(after, "Degraded"), nullptr);
}

Json ObjectWith(const std::vector<Condition>& conditions, int64_t observed = 1) {
  Upgrade upgrade;
  upgrade.metadata.generation = 1;
  upgrade.status.observed_generation = observed;
  upgrade.status.conditions = conditions;
  return ToJson(upgrade);
}

TEST(Conditions, ReadyIsWrittenSoThatKstatusUnderstandsIt) {
  struct Row {
    ReadySummary summary;
    const char* kstatus;
  };
  const std::vector<Row> rows = {
      {{ConditionStatus::kTrue, Settling::kCurrent, "AsDesired", ""}, "Current"},
      {{ConditionStatus::kFalse, Settling::kReconciling, "Installing", ""}, "InProgress"},
      {{ConditionStatus::kTrue, Settling::kReconciling, "OperationRunning", ""}, "InProgress"},
      {{ConditionStatus::kFalse, Settling::kStalled, "PortTaken", "6443"}, "Failed"},
      {{ConditionStatus::kTrue, Settling::kStalled, "PortTaken", "6443"}, "Failed"},
      {{ConditionStatus::kUnknown, Settling::kCurrent, "AgentLost", ""}, "InProgress"},
  };
  std::vector<Condition> conditions;  // carried over from row to row, as a controller does
  for (const Row& row : rows) {
    SetReady(conditions, row.summary, 1, kNoon);
    EXPECT_EQ(KstatusOf(ObjectWith(conditions)), row.kstatus) << row.summary.reason;
    EXPECT_FALSE(IsConditionTrue(conditions, "Reconciling") && IsConditionTrue(conditions, "Stalled"));
    for (const Condition& c : conditions) {
      EXPECT_TRUE(c.type == "Ready" || c.status == ConditionStatus::kTrue) << c.type << " stands only while True";
      EXPECT_EQ(c.observed_generation, 1);
    }
    if (row.summary.settling == Settling::kStalled) {
      EXPECT_NE(FindCondition(conditions, "Ready")->status, ConditionStatus::kTrue);
    }
  }
}

TEST(Conditions, AFreshObjectAndALaggingStatusReadAsInProgress) {
  Json fresh = Json::MakeObject({{"metadata", Json::MakeObject({{"name", "u"}, {"generation", 1}})},
                                 {"spec", Json::MakeObject({{"serverRef", Json::MakeObject({{"name", "s"}})}})}});
  EXPECT_EQ(KstatusOf(fresh), "Current") << "without the status default it would pass as done";
  ApplyDefaults(*FindKind(kGroup, kVersion, "Upgrade"), fresh);
  EXPECT_EQ(fresh.At({"status", "observedGeneration"}).AsInt(), -1);
  EXPECT_EQ(KstatusOf(fresh), "InProgress");
  EXPECT_EQ(KstatusOf(ObjectWith({Make("Ready", ConditionStatus::kTrue, "AsDesired")}, 0)), "InProgress");
}

TEST(Conditions, ALoneFailedIsCurrentForKstatusAndSoNeedsStalled) {
  std::vector<Condition> conditions = {Make("Failed", ConditionStatus::kTrue, "Failed")};
  EXPECT_EQ(KstatusOf(ObjectWith(conditions)), "Current");
  SetReady(conditions, {ConditionStatus::kFalse, Settling::kStalled, "Failed", "no such server"}, 1, kNoon);
  EXPECT_EQ(KstatusOf(ObjectWith(conditions)), "Failed");
}

TEST(Conditions, DeletionIsSeenFirst) {
  Json object = ObjectWith({});
  object["metadata"].Set("deletionTimestamp", "2026-11-30T12:00:00Z");
  EXPECT_EQ(KstatusOf(object), "Terminating");
}

TEST(Reasons, NamesAreCamelCaseAndUniqueAndEachHasASentence) {
  std::set<std::string_view> names;
  for (const ReasonInfo& reason : Reasons()) {
    EXPECT_TRUE(names.insert(reason.name).second) << reason.name << " stands twice";
    EXPECT_TRUE(reason.name[0] >= 'A' && reason.name[0] <= 'Z') << reason.name;
    EXPECT_EQ(reason.name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"),
              std::string_view::npos);
    EXPECT_TRUE(reason.doc.size() > 10 && reason.doc.back() == '.') << reason.name;
  }
  EXPECT_TRUE(IsDocumentedReason(reason::kAgentLost));
  EXPECT_FALSE(IsDocumentedReason("BecauseISaySo"));
  std::set<std::string_view> types;
  for (const ConditionTypeInfo& type : ConditionTypes()) EXPECT_TRUE(types.insert(type.name).second) << type.name;
}

}  // namespace
}  // namespace lockkeeper
