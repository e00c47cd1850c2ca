#include "reconcilers/ports/documents.h"

#include <gtest/gtest.h>

namespace lockkeeper {
namespace {

TEST(Documents, AReleaseReadsAsItWasWritten) {
  ReleaseDocument d;
  d.ns = "default";
  d.name = "kcp-v1";
  d.server = "kcp";
  d.version = "v1";
  d.state = DocumentState::kFailed;
  d.build = {"v1", "c0ffee", "aa", "/r/aa", "bb"};
  d.size = 7;
  d.reason = "VersionNotFound";
  d.message = "no such file";
  d.next_try = Time(Seconds(1000.5));
  d.failures = 3;
  const Result<ReleaseDocument> read = ReleaseDocument::FromJson(d.ToJson().Dump());
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(*read, d);
}

TEST(Documents, ABackupReadsAsItWasWritten) {
  BackupDocument d;
  d.ns = "default";
  d.name = "b";
  d.server = "kcp";
  d.state = DocumentState::kReady;
  d.reference = "/b/b.db";
  d.writes_since = 0;
  d.started_at = Time(Seconds(1));
  d.finished_at = Time(Seconds(2));
  const Result<BackupDocument> read = BackupDocument::FromJson(d.ToJson().Dump());
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(*read, d);
}

TEST(Documents, DamagedTextIsCorruptNotEmpty) {
  EXPECT_EQ(ReleaseDocument::FromJson("{").code(), Code::kCorrupt);
  EXPECT_EQ(ReleaseDocument::FromJson("{}").code(), Code::kCorrupt);
  EXPECT_EQ(BackupDocument::FromJson(R"({"state":"Perhaps"})").code(), Code::kCorrupt);
}

}  // namespace
}  // namespace lockkeeper
