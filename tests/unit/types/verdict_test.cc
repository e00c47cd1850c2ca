// The verdict table against the C++ twins; see verdicts.h.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "api/types/type_info.h"
#include "tests/unit/types/verdicts.h"

namespace lockkeeper {
namespace {

std::string Lines(std::vector<FieldError> errors) {
  SortErrors(&errors);
  std::string out;
  for (const FieldError& error : errors)
    out += std::string(FieldReasonName(error.reason)) + " " + error.ToString() + "\n";
  return out;
}

// Made once: there are some two thousand.
const std::vector<GeneratedVerdict>& Generated() {
  static const auto* all = [] {
    auto* out = new std::vector<GeneratedVerdict>;
    const auto bases = LoadBases(LK_VERDICTS_DIR);
    EXPECT_TRUE(bases.ok()) << bases.status().ToString();
    if (!bases.ok()) return out;
    for (const auto& [kind, base] : *bases) {
      for (GeneratedVerdict& generated : GenerateVerdicts(*kind, base)) out->push_back(std::move(generated));
    }
    return out;
  }();
  return *all;
}

TEST(Verdicts, EveryRowOfTheTableGetsTheErrorsItNames) {
  const auto verdicts = LoadVerdicts(LK_VERDICTS_DIR);
  ASSERT_TRUE(verdicts.ok()) << verdicts.status().ToString();
  EXPECT_GT(verdicts->size(), 100u);
  for (const Verdict& verdict : *verdicts) {
    EXPECT_EQ(Lines(Judge(verdict)), Lines(verdict.errors)) << verdict.kind->kind << ": " << verdict.name;
  }
}

TEST(Verdicts, TheObjectsThatTheTablesBeginWithAreGood) {
  const auto bases = LoadBases(LK_VERDICTS_DIR);
  ASSERT_TRUE(bases.ok()) << bases.status().ToString();
  std::set<std::string> kinds;
  for (const auto& [kind, base] : *bases) {
    Verdict verdict;
    verdict.kind = kind;
    verdict.object = base;
    EXPECT_EQ(Lines(Judge(verdict)), "") << kind->kind;
    kinds.insert(kind->kind);
  }
  for (const KindInfo& kind : Kinds()) {
    if (!kind.ours) continue;
    EXPECT_TRUE(kinds.contains(kind.kind)) << kind.kind << " has no verdict table";
  }
}

TEST(Verdicts, EveryBoundOfEveryFieldRefusesAValueOutsideIt) {
  EXPECT_GT(Generated().size(), 1500u);
  for (const GeneratedVerdict& generated : Generated()) {
    bool found = false;
    for (const FieldError& error : generated.verdict.errors) found = found || error.field == generated.about;
    EXPECT_TRUE(found) << generated.verdict.kind->kind << ": " << generated.verdict.name << " got:\n"
                       << Lines(generated.verdict.errors);
  }
}

// Each rule's message stands in some row of the table: no rule goes without a bad object.
void CollectMessages(const TypeInfo& type, std::set<std::string>* messages) {
  for (const Rule& rule : type.rules) messages->insert(rule.message);
  for (const FieldInfo& field : type.fields) {
    for (const Rule& rule : field.value.rules) messages->insert(rule.message);
    const ValueInfo* info = &field.value;
    while (info->items) info = info->items.get();
    if (info->kind == ValueKind::kObject && field.name != "metadata") CollectMessages(*info->type, messages);
  }
}

TEST(Verdicts, EveryRuleHasARowThatBreaksItOrAGeneratedChange) {
  const auto verdicts = LoadVerdicts(LK_VERDICTS_DIR);
  ASSERT_TRUE(verdicts.ok()) << verdicts.status().ToString();
  std::map<std::string, std::string> said;  // by kind
  for (const Verdict& verdict : *verdicts) said[verdict.kind->kind] += Lines(verdict.errors);
  for (const GeneratedVerdict& generated : Generated()) {
    if (!generated.verdict.stored.IsNull()) said[generated.verdict.kind->kind] += Lines(generated.verdict.errors);
  }
  for (const KindInfo& kind : Kinds()) {
    if (!kind.ours) continue;
    std::set<std::string> messages;
    CollectMessages(*kind.type, &messages);
    for (const std::string& message : messages) {
      // Structs shared by kinds may have their row with another kind.
      bool found = false;
      for (const auto& [name, lines] : said) found = found || lines.find(message) != std::string::npos;
      EXPECT_TRUE(found) << kind.kind << ": no bad object for: " << message;
    }
  }
}

TEST(Verdicts, AnUpdateIsNotHeldAgainstWhatItLeavesAsItWas) {
  // As if a newer build had tightened the bound of a stored value.
  const KindInfo* kind = FindKind("lockkeeper.dev", "v1alpha1", "Front");
  Json stored =
      *Json::Parse(R"({"metadata": {"name": "f"}, "spec": {"host": "a", "listen": "nonsense", "maxConnections": -5}})");
  ApplyDefaults(*kind, stored);
  Json object = stored;
  object["metadata"].Set("finalizers", Json::MakeArray());
  EXPECT_EQ(Lines(Validate(*kind, object, &stored, false)), "");
  object["spec"].Set("maxConnections", -6);
  EXPECT_EQ(
      Lines(Validate(*kind, object, &stored, false)),
      "FieldValueInvalid spec.maxConnections: Invalid value: -6: spec.maxConnections in body should be greater than or "
      "equal to 1\n");
}

}  // namespace
}  // namespace lockkeeper
