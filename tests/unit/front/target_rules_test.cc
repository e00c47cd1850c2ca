#include "reconcilers/front/target_rules.h"

#include <gtest/gtest.h>

namespace lockkeeper::front {
namespace {

FrontTarget Target(const std::string& slot, int64_t incarnation, int64_t revision, const std::string& address) {
  return {.slot = slot,
          .incarnation = incarnation,
          .invocation = 1,
          .address = address,
          .boot_id = "boot-1",
          .revision = revision,
          .ledger_id = "ledger-1"};
}
FrontTarget Blue(int64_t revision = 10) { return Target("blue", 1, revision, "127.0.0.1:4001"); }
FrontTarget Green(int64_t revision = 20) { return Target("green", 2, revision, "127.0.0.1:4002"); }

TargetState StateAt(const FrontTarget& target) {
  return {.target = target, .generation = 3, .revisions = {{target.ledger_id, target.revision}}};
}

TEST(TargetRules, ANewBackendRaisesTheGeneration) {
  const auto d = DecideSet(StateAt(Blue()), Green(), "boot-1");
  ASSERT_TRUE(d.ok()) << d.status().ToString();
  EXPECT_TRUE(d->changed && d->persist);
  EXPECT_EQ(d->next.generation, 4);
  EXPECT_EQ(d->next.target, Green());
  EXPECT_EQ(d->next.revisions.at("ledger-1"), 20);
}

TEST(TargetRules, ALowerRevisionIsRefusedAndNamesTheNewerOne) {
  const auto d = DecideSet(StateAt(Green(20)), Blue(19), "boot-1");
  EXPECT_EQ(d.code(), Code::kPrecondition);
  EXPECT_NE(d.status().message().find("19 is older than 20"), std::string::npos) << d.status().message();
}

TEST(TargetRules, TheSameBackendAgainIsOkAndChangesNothing) {
  const auto d = DecideSet(StateAt(Blue(10)), Blue(10), "boot-1");
  ASSERT_TRUE(d.ok());
  EXPECT_FALSE(d->changed || d->persist);
}

TEST(TargetRules, TheSameBackendWithAnOlderRevisionIsOkAndLowersNothing) {
  const auto d = DecideSet(StateAt(Blue(10)), Blue(5), "boot-1");
  ASSERT_TRUE(d.ok());
  EXPECT_FALSE(d->changed || d->persist);
  EXPECT_EQ(d->next.revisions.at("ledger-1"), 10);
}

TEST(TargetRules, TheSameBackendWithANewerRevisionIsRememberedWithoutAFlip) {
  const auto d = DecideSet(StateAt(Blue(10)), Blue(15), "boot-1");
  ASSERT_TRUE(d.ok());
  EXPECT_FALSE(d->changed);
  EXPECT_TRUE(d->persist);
  EXPECT_EQ(d->next.generation, 3);
  EXPECT_EQ(DecideSet(d->next, Green(14), "boot-1").code(), Code::kPrecondition);
}

TEST(TargetRules, EveryFieldMakesAnotherBackend) {
  FrontTarget incarnation = Blue(11);
  incarnation.incarnation = 9;
  FrontTarget invocation = Blue(11);
  invocation.invocation = 2;
  FrontTarget address = Blue(11);
  address.address = "127.0.0.1:4009";
  FrontTarget slot = Blue(11);
  slot.slot = "green";
  FrontTarget hold = Blue(11);
  hold.hold = true;
  for (const FrontTarget& t : {incarnation, invocation, address, slot, hold}) {
    const auto d = DecideSet(StateAt(Blue()), t, "boot-1");
    ASSERT_TRUE(d.ok());
    EXPECT_TRUE(d->changed);
  }
}

TEST(TargetRules, AnotherLedgerCountsItsOwnRevisionsAndTheOldOneIsNotForgotten) {
  FrontTarget other = Green(3);
  other.ledger_id = "ledger-2";
  const auto d = DecideSet(StateAt(Blue(100)), other, "boot-1");
  ASSERT_TRUE(d.ok());
  EXPECT_TRUE(d->changed);
  EXPECT_EQ(DecideSet(d->next, Blue(99), "boot-1").code(), Code::kPrecondition);
  EXPECT_TRUE(DecideSet(d->next, Blue(101), "boot-1").ok());
}

TEST(TargetRules, LedgersWithoutEndAreForgottenOldestFirst) {
  TargetState state;
  for (int i = 1; i <= 40; ++i) {
    FrontTarget t = Target("blue", i, i, "127.0.0.1:4001");
    t.ledger_id = "ledger-" + std::to_string(i);
    state = DecideSet(state, t, "boot-1")->next;
  }
  EXPECT_EQ(state.revisions.size(), 16u);
  EXPECT_EQ(state.revisions.at("ledger-40"), 40);
}

TEST(TargetRules, ATargetOfAnotherBootIsRefused) {
  EXPECT_EQ(DecideSet({}, Blue(), "boot-2").code(), Code::kPrecondition);
}

TEST(TargetRules, ATargetThatMakesNoSenseIsRefusedWithItsReason) {
  const auto check = [](auto change) {
    FrontTarget t = Blue();
    change(t);
    return CheckTarget(t);
  };
  EXPECT_TRUE(CheckTarget(Blue()).ok());
  for (const char* address : {"", "localhost:80", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:70000",
                              "127.0.0.1:0", "127.0.0.1:-1", "::1:80", "[::1:80", "127.0.0.1: 80"}) {
    const Status s = check([&](FrontTarget& t) { t.address = address; });
    EXPECT_EQ(s.code(), Code::kInvalid) << address;
  }
  EXPECT_TRUE(check([](FrontTarget& t) { t.address = "[::1]:80"; }).ok());
  EXPECT_EQ(check([](FrontTarget& t) { t.slot.clear(); }).code(), Code::kInvalid);
  EXPECT_EQ(check([](FrontTarget& t) { t.incarnation = 0; }).code(), Code::kInvalid);
  EXPECT_EQ(check([](FrontTarget& t) { t.ledger_id.clear(); }).code(), Code::kInvalid);
  EXPECT_EQ(check([](FrontTarget& t) { t.revision = -1; }).code(), Code::kInvalid);
  FrontTarget hold;
  hold.hold = true;
  hold.ledger_id = "l";
  EXPECT_TRUE(CheckTarget(hold).ok());
}

TEST(TargetRules, OnHoldNothingIsCurrent) {
  FrontTarget hold = Blue();
  hold.hold = true;
  EXPECT_TRUE(IsCurrent(Blue(), "blue", 1));
  EXPECT_FALSE(IsCurrent(Blue(), "blue", 2));
  EXPECT_FALSE(IsCurrent(hold, "blue", 1));
  EXPECT_FALSE(IsCurrent(std::nullopt, "blue", 1));
}

TEST(TargetRules, AStateSurvivesItsFileAndATornOneIsKnown) {
  const TargetState state = StateAt(Green());
  const std::string text = EncodeState(state);
  const auto back = DecodeState(text);
  ASSERT_TRUE(back.ok()) << back.status().ToString();
  EXPECT_EQ(*back, state);
  // Cut anywhere, or with any byte of a value changed.
  for (size_t n = 0; n + 1 < text.size(); ++n) EXPECT_EQ(DecodeState(text.substr(0, n)).code(), Code::kCorrupt) << n;
  std::string changed = text;
  changed.replace(changed.find("4002"), 4, "4003");
  EXPECT_EQ(DecodeState(changed).code(), Code::kCorrupt);
  changed = text;
  changed.replace(changed.find("\"version\": 1"), 12, "\"version\": 9");
  EXPECT_EQ(DecodeState(changed).code(), Code::kCorrupt);
}

TEST(TargetRules, AfterARebootTheTargetIsDroppedAndTheRevisionsStay) {
  EXPECT_EQ(Resume(StateAt(Green(20)), "boot-1").target, Green(20));
  const TargetState resumed = Resume(StateAt(Green(20)), "boot-2");
  EXPECT_FALSE(resumed.target.has_value());
  EXPECT_EQ(resumed.generation, 3);
  FrontTarget old = Blue(19);
  old.boot_id = "boot-2";
  EXPECT_EQ(DecideSet(resumed, old, "boot-2").code(), Code::kPrecondition);
}

}  // namespace
}  // namespace lockkeeper::front
