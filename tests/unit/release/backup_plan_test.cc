#include <gtest/gtest.h>

#include "api/types/conditions.h"
#include "reconcilers/backup/plan.h"

namespace lockkeeper::backup {
namespace {

BackupDocument Taken(const std::string& name, double at) {
  BackupDocument d;
  d.ns = "default";
  d.name = name;
  d.uid = "u";
  d.server = "kcp";
  d.state = DocumentState::kReady;
  d.finished_at = Time(Seconds(at));
  return d;
}

Snapshot With(std::optional<DocumentState> state) {
  Snapshot s;
  s.host = "local";
  StoreBackup object;
  object.metadata.name = "b";
  object.metadata.generation = 1;
  s.object = object;
  ServerRecord server;
  server.spec.host = "local";
  server.spec.backup.retain = 2;
  s.server = server;
  s.document = Absent{};
  if (state) {
    s.document = Taken("b", 10);
    s.document->state = *state;
  }
  return s;
}

TEST(BackupPlan, ARequestForThisHostIsRecordedThenTaken) {
  EXPECT_EQ(Decide(With(std::nullopt)).step, StepKind::kAdopt);
  EXPECT_EQ(Decide(With(DocumentState::kPending)).step, StepKind::kTake);
}

TEST(BackupPlan, ARequestOfAnotherHostOrOneThatWasAnsweredIsLeftAlone) {
  Snapshot other = With(std::nullopt);
  other.server->spec.host = "elsewhere";
  EXPECT_EQ(Decide(other).step, StepKind::kNone);
  Snapshot unknown = With(std::nullopt);
  unknown.server = Absent{};
  EXPECT_EQ(Decide(unknown).step, StepKind::kNone);
  Snapshot answered = With(std::nullopt);
  answered.object->status.finished_at = Time(Seconds(1));
  EXPECT_EQ(Decide(answered).step, StepKind::kNone);
}

TEST(BackupPlan, AFailedOneStaysFailed) { EXPECT_EQ(Decide(With(DocumentState::kFailed)).step, StepKind::kNone); }

TEST(BackupPlan, TheOldestBeyondRetainGoButNeverTheOneAnOperationCountsOn) {  // H3
  Snapshot s = With(DocumentState::kReady);
  s.of_server = {Taken("new", 30), Taken("old", 10), Taken("older", 5), Taken("middle", 20)};
  Plan plan = Decide(s);
  EXPECT_EQ(plan.step, StepKind::kPrune);
  ASSERT_EQ(plan.prune.size(), 2u);
  EXPECT_EQ(plan.prune[0].name, "older");
  EXPECT_EQ(plan.prune[1].name, "old");
  s.server->operation.emplace().spec.backup_ref.emplace().name = "older";
  plan = Decide(s);
  ASSERT_EQ(plan.prune.size(), 1u);
  EXPECT_EQ(plan.prune[0].name, "old");
  s.server->operation->notes["backup"] = "old";  // it chose another one than it was given
  plan = Decide(s);
  ASSERT_EQ(plan.prune.size(), 1u);
  EXPECT_EQ(plan.prune[0].name, "older");
}

TEST(BackupPlan, TheStatusSaysWhichRevisionOfTheStoreItHolds) {
  Snapshot s = With(DocumentState::kReady);
  s.document->revision = 1234;
  EXPECT_EQ(Summarize(s, Now{Time(Seconds(1)), Seconds(1), "b"}).revision, 1234);
}

TEST(BackupPlan, KstatusReadsEachState) {
  const auto kstatus = [](DocumentState state) {
    Snapshot s = With(state);
    s.document->reason = "DiskFull";
    s.object->status = Summarize(s, Now{Time(Seconds(1)), Seconds(1), "b"});
    return std::string(KstatusOf(ToJson(*s.object)));
  };
  EXPECT_EQ(kstatus(DocumentState::kPending), "InProgress");
  EXPECT_EQ(kstatus(DocumentState::kFailed), "Failed");
  EXPECT_EQ(kstatus(DocumentState::kReady), "Current");
}

}  // namespace
}  // namespace lockkeeper::backup
