#include "reconcilers/heartbeat/poster.h"

#include <gtest/gtest.h>

#include "tests/unit/controller/manual_clock.h"
#include "tests/unit/controller/memory_api.h"

namespace lockkeeper {
namespace {

HeartbeatIdentity Of(const std::string& ledger) {
  HeartbeatIdentity identity;
  identity.host = "a";
  identity.ledger_id = ledger;
  identity.machine_id = "m";
  return identity;
}

int64_t RevisionOne() { return 1; }

TEST(HeartbeatPoster, AnAgentWhoseLedgerWasLostIsToldSoForItsHeartbeatStandsStill) {
  MemoryApi api;
  ManualClock clock;
  HeartbeatPoster before(api, clock, Of("L1"), RevisionOne);
  ASSERT_EQ(before.Beat(), Status::Ok());
  HeartbeatPoster after(api, clock, Of("L2"), RevisionOne);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(after.Beat().code(), Code::kPrecondition);
    EXPECT_EQ(after.Judgement().verdict, HeartbeatVerdict::kLedgerLost) << i;
    clock.Advance(Seconds(1));
  }
}

TEST(HeartbeatPoster, ASecondAgentOnTheSameMachineIsToldOfTheOneThatBeatsOnAndNotThatItsLedgerIsLost) {
  MemoryApi api;
  ManualClock clock;
  HeartbeatPoster first(api, clock, Of("L1"), RevisionOne);
  HeartbeatPoster second(api, clock, Of("L2"), RevisionOne);
  ASSERT_EQ(first.Beat(), Status::Ok());
  EXPECT_EQ(second.Beat().code(), Code::kPrecondition);
  clock.Advance(Seconds(10));
  ASSERT_EQ(first.Beat(), Status::Ok()) << "the first one is not disturbed";
  EXPECT_EQ(second.Beat().code(), Code::kPrecondition);
  EXPECT_EQ(second.Judgement().verdict, HeartbeatVerdict::kHostNameTaken);
  EXPECT_NE(second.Judgement().message.find("another --host"), std::string::npos) << second.Judgement().message;
  clock.Advance(Seconds(40));
  EXPECT_EQ(second.Beat().code(), Code::kPrecondition);
  EXPECT_EQ(second.Judgement().verdict, HeartbeatVerdict::kLedgerLost) << "the first one has gone";
}

// As manifests/rbac has it.
TEST(HeartbeatPoster, AnAgentThatMaySeeNoNamespaceBeatsInTheOneThatIsThere) {
  MemoryApi api;
  ManualClock clock;
  api.SetBefore([](const std::string&, const Resource& resource, const ObjectKey&) {
    return resource.plural == "namespaces" ? Status(Code::kForbidden, "get namespaces") : Status::Ok();
  });
  HeartbeatPoster poster(api, clock, Of("L1"), RevisionOne);
  EXPECT_EQ(poster.Beat(), Status::Ok());
}

}  // namespace
}  // namespace lockkeeper
