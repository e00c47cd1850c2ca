#include <gtest/gtest.h>

#include "api/types/conditions.h"
#include "reconcilers/release/plan.h"

namespace lockkeeper::release {
namespace {

const Now kNow{Time(Seconds(1000)), Seconds(1000), "b"};

Snapshot With(std::optional<DocumentState> state) {
  Snapshot s;
  s.host = "local";
  Release object;
  object.metadata.name = "kcp-v1";
  object.metadata.generation = 1;
  object.spec.host = "local";
  s.object = object;
  s.server = ServerRecord{};
  s.document = Absent{};
  if (state) {
    ReleaseDocument d;
    d.server = "kcp";
    d.version = "v1";
    d.state = *state;
    d.build.path = "/r/1";
    s.document = d;
  }
  s.unpacked_is_there = true;
  return s;
}

TEST(ReleasePlan, AnObjectForThisHostBecomesADocumentBeforeAnythingIsFetched) {
  EXPECT_EQ(Decide(With(std::nullopt), kNow).step, StepKind::kAdopt);
  Snapshot other = With(std::nullopt);
  other.object->spec.host = "elsewhere";
  EXPECT_EQ(Decide(other, kNow).step, StepKind::kNone);
}

TEST(ReleasePlan, AnUnreadableLedgerFetchesNothing) {
  Snapshot s = With(DocumentState::kPending);
  s.document = Unknown{"disk"};
  EXPECT_EQ(Decide(s, kNow).step, StepKind::kNone);
  EXPECT_GT(Decide(s, kNow).requeue_after, Duration::zero());
}

TEST(ReleasePlan, APendingOneIsFetchedOnceItsServerIsKnown) {
  EXPECT_EQ(Decide(With(DocumentState::kPending), kNow).step, StepKind::kFetch);
  Snapshot s = With(DocumentState::kPending);
  s.server = Absent{};
  EXPECT_EQ(Decide(s, kNow).step, StepKind::kNone);
}

TEST(ReleasePlan, AFailedOneIsTriedAgainByItselfAtItsTime) {
  Snapshot s = With(DocumentState::kFailed);
  s.document->next_try = kNow.wall + Seconds(3);
  EXPECT_EQ(Decide(s, kNow).step, StepKind::kNone);
  EXPECT_EQ(Decide(s, kNow).requeue_after, Seconds(3));
  s.document->next_try = kNow.wall;
  EXPECT_EQ(Decide(s, kNow).step, StepKind::kFetch);
  EXPECT_EQ(RetryAfter(1), Seconds(2));
  EXPECT_EQ(RetryAfter(3), Seconds(8));
  EXPECT_EQ(RetryAfter(99), Seconds(30));
}

TEST(ReleasePlan, AReadyOneIsFetchedAgainOnlyWhenItsFolderIsGoneAndUnknownIsNotGone) {
  EXPECT_EQ(Decide(With(DocumentState::kReady), kNow).step, StepKind::kNone);
  Snapshot s = With(DocumentState::kReady);
  s.unpacked_is_there = Unknown{"?"};
  EXPECT_EQ(Decide(s, kNow).step, StepKind::kNone);
  s.unpacked_is_there = false;
  EXPECT_EQ(Decide(s, kNow).step, StepKind::kFetchAgain);
}

TEST(ReleasePlan, WithTheApiAwayADocumentIsFetchedAndShownOnlyLater) {
  Snapshot s = With(DocumentState::kPending);
  s.object = Unknown{"refused"};
  EXPECT_EQ(Decide(s, kNow).step, StepKind::kFetch);
  s = With(DocumentState::kReady);
  s.object = Unknown{"refused"};
  EXPECT_EQ(Decide(s, kNow).step, StepKind::kNone);
  s.object = Absent{};
  EXPECT_EQ(Decide(s, kNow).step, StepKind::kCreateObject);
}

TEST(ReleasePlan, KstatusReadsEachState) {
  const auto kstatus = [](DocumentState state) {
    Snapshot s = With(state);
    s.document->reason = "VersionNotFound";
    s.object->status = Summarize(s, kNow);
    return std::string(KstatusOf(ToJson(*s.object)));
  };
  EXPECT_EQ(kstatus(DocumentState::kPending), "InProgress");
  EXPECT_EQ(kstatus(DocumentState::kFailed), "Failed");
  EXPECT_EQ(kstatus(DocumentState::kReady), "Current");
}

TEST(ReleasePlan, TheExecutableIsTheCommandBelowTheRelease) {
  ServerSpec spec;
  EXPECT_EQ(ExecutableOf(spec), "");
  spec.template_.command = {"bin/kcp"};
  EXPECT_EQ(ExecutableOf(spec), "bin/kcp");
  spec.template_.command = {"{release}/bin/kcp"};
  EXPECT_EQ(ExecutableOf(spec), "bin/kcp");
  spec.template_.command = {"/usr/bin/kcp"};
  EXPECT_EQ(ExecutableOf(spec), "");
}

}  // namespace
}  // namespace lockkeeper::release
