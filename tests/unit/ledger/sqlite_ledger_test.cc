#include "reconcilers/ledger/sqlite_ledger.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/base/file.h"
#include "api/base/sqlite.h"
#include "tests/unit/ledger/random_record.h"

namespace lockkeeper {
namespace {

class LedgerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/lk-ledger-XXXXXX";
    dir_ = mkdtemp(name);
    options_.path = JoinPath(dir_, "agent/ledger.db");
    options_.host = "host-a";
    options_.machine_id = "m1";
    options_.lockkeeper_version = "0.1.0";
    options_.ballast_bytes = 4096;
  }
  void TearDown() override { EXPECT_TRUE(RemoveTree(dir_).ok()); }

  std::unique_ptr<Ledger> MustOpen() {
    Result<std::unique_ptr<Ledger>> ledger = OpenLedger(options_);
    EXPECT_TRUE(ledger.ok()) << ledger.status().ToString();
    return ledger.ok() ? std::move(*ledger) : nullptr;
  }
  static Status SetActive(Ledger& ledger, const std::string& slot) {
    return ledger
        .Update({"default", "kcp"},
                [&](ServerRecord& r) {
                  r.active = slot;
                  return Status::Ok();
                })
        .status();
  }
  void Sql(const std::string& sql) {
    Result<sqlite::Db> db = sqlite::Db::Open(options_.path, {});
    ASSERT_TRUE(db.ok() && db->Exec(sql).ok());
  }

  std::string dir_;
  SqliteLedgerOptions options_;
};

TEST_F(LedgerTest, AFirstOpeningSaysThatNothingWasThere) {
  auto ledger = MustOpen();
  const LedgerInfo info = ledger->Info();
  EXPECT_TRUE(info.created);
  EXPECT_EQ(info.id.size(), 36u);
  EXPECT_EQ(info.revision, 0);
  EXPECT_EQ(info.schema_version, 1);
  EXPECT_EQ(info.host, "host-a");
  EXPECT_EQ(info.machine_id, "m1");
  ledger.reset();
  const LedgerInfo again = MustOpen()->Info();
  EXPECT_FALSE(again.created);
  EXPECT_EQ(again.id, info.id);
}

TEST_F(LedgerTest, AChangeMovesBothRevisionsAndIsThereAfterwards) {
  auto ledger = MustOpen();
  RandomRecord random(7);
  const ServerRecord wanted = random.Server();
  const Result<ServerRecord> stored = ledger->Update({"default", "kcp"}, [&](ServerRecord& r) {
    EXPECT_EQ(r.key.name, "kcp");
    r = wanted;
    r.key = {"default", "kcp"};
    return Status::Ok();
  });
  ASSERT_TRUE(stored.ok()) << stored.status().ToString();
  EXPECT_EQ(stored->revision, 1);
  ASSERT_TRUE(SetActive(*ledger, "green").ok());
  EXPECT_EQ(ledger->Info().revision, 2);
  const ServerRecord before = *ledger->Get({"default", "kcp"});
  ledger.reset();
  ledger = MustOpen();
  EXPECT_EQ(ledger->Info().revision, 2);
  EXPECT_TRUE(*ledger->Get({"default", "kcp"}) == before);
  EXPECT_EQ(before.active, "green");
  EXPECT_EQ(ledger->Servers()->size(), 1u);
}

TEST_F(LedgerTest, AChangeThatChangesNothingOrFailsCommitsNothing) {
  auto ledger = MustOpen();
  int heard = 0;
  ledger->AddListener([&](const ServerKey&) { ++heard; });
  ASSERT_TRUE(SetActive(*ledger, "blue").ok());
  ASSERT_TRUE(SetActive(*ledger, "blue").ok());
  const Result<ServerRecord> refused = ledger->Update({"default", "kcp"}, [](ServerRecord& r) {
    r.active = "green";
    return Status(Code::kPrecondition, "no");
  });
  EXPECT_EQ(refused.code(), Code::kPrecondition);
  EXPECT_EQ(ledger->Get({"default", "kcp"})->active, "blue");
  EXPECT_EQ(ledger->Info().revision, 1);
  EXPECT_EQ(heard, 1);
  EXPECT_EQ(ledger->Get({"default", "other"}).code(), Code::kNotFound);
}

TEST_F(LedgerTest, WhatWasMirroredIsNotedWithoutANewRevision) {
  auto ledger = MustOpen();
  ASSERT_TRUE(SetActive(*ledger, "blue").ok());
  int heard = 0;
  ledger->AddListener([&](const ServerKey&) { ++heard; });
  ASSERT_TRUE(ledger
                  ->Update({"default", "kcp"},
                           [](ServerRecord& r) {
                             r.posted_revision = 1;
                             return Status::Ok();
                           })
                  .ok());
  EXPECT_EQ(ledger->Info().revision, 1);
  EXPECT_EQ(heard, 0);
  ledger.reset();
  EXPECT_EQ(MustOpen()->Get({"default", "kcp"})->posted_revision, 1);
}

TEST_F(LedgerTest, OutcomesAreKeptForEverNewestFirst) {
  auto ledger = MustOpen();
  for (int i = 1; i <= 3; ++i) {
    OutcomeRecord outcome;
    outcome.kind = "Upgrade";
    outcome.ns = "default";
    outcome.name = i < 3 ? "u1" : "u2";
    outcome.server = "default/kcp";
    outcome.version = "v" + std::to_string(i);
    ASSERT_TRUE(ledger
                    ->Finish({"default", "kcp"}, outcome,
                             [](ServerRecord& r) {
                               r.operation.reset();
                               return Status::Ok();
                             })
                    .ok());
  }
  ASSERT_TRUE(ledger->Remove({"default", "kcp"}).ok());
  ledger.reset();
  ledger = MustOpen();
  EXPECT_EQ(ledger->FindOutcome("Upgrade", "default", "u1")->version, "v2");
  EXPECT_EQ(ledger->FindOutcome("Roll", "default", "u1").code(), Code::kNotFound);
  const std::vector<OutcomeRecord> two = *ledger->Outcomes("default/kcp", 2);
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(two[0].name, "u2");
  EXPECT_EQ(two[1].version, "v2");
  EXPECT_TRUE(ledger->Outcomes("default/other", 9)->empty());
  EXPECT_TRUE(ledger->Servers()->empty());
}

TEST_F(LedgerTest, DocumentsAreListedByKindInOrder) {
  auto ledger = MustOpen();
  ASSERT_TRUE(ledger->PutDocument("release", "b", "{}").ok());
  ASSERT_TRUE(ledger->PutDocument("release", "a", "{\"x\":1}").ok());
  ASSERT_TRUE(ledger->PutDocument("backup", "a", "{}").ok());
  const int64_t revision = ledger->Info().revision;
  ASSERT_TRUE(ledger->PutDocument("backup", "a", "{}").ok());
  EXPECT_EQ(ledger->Info().revision, revision);
  EXPECT_EQ(ledger->ListDocuments("release")->front().first, "a");
  EXPECT_EQ(*ledger->GetDocument("release", "a"), "{\"x\":1}");
  ASSERT_TRUE(ledger->RemoveDocument("release", "a").ok());
  EXPECT_EQ(ledger->GetDocument("release", "a").code(), Code::kNotFound);
}

TEST_F(LedgerTest, ASecondAgentIsRefusedAndToldWhoHoldsIt) {
  auto ledger = MustOpen();
  const Result<std::unique_ptr<Ledger>> second = OpenLedger(options_);
  EXPECT_EQ(second.code(), Code::kBusy);
  EXPECT_NE(second.status().message().find("process id " + std::to_string(getpid()) + ":"), std::string::npos)
      << second.status().message();
  ledger.reset();
  EXPECT_NE(MustOpen(), nullptr);
}

TEST_F(LedgerTest, TheLockDoesNotLiveOnInAChild) {
  auto ledger = MustOpen();
  pid_t pid = 0;
  char sleep_for[] = "sleep";
  char seconds[] = "600";
  char* argv[] = {sleep_for, seconds, nullptr};
  ASSERT_EQ(posix_spawn(&pid, "/bin/sleep", nullptr, nullptr, argv, environ), 0);
  ledger.reset();
  EXPECT_NE(MustOpen(), nullptr);
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
}

TEST_F(LedgerTest, AReaderSeesWhatStandsAndMayChangeNothing) {
  EXPECT_EQ(OpenLedgerReadOnly(options_.path).code(), Code::kNotFound);
  auto ledger = MustOpen();
  ASSERT_TRUE(SetActive(*ledger, "blue").ok());
  Result<std::unique_ptr<Ledger>> reader = OpenLedgerReadOnly(options_.path);
  ASSERT_TRUE(reader.ok()) << reader.status().ToString();
  EXPECT_EQ((*reader)->Get({"default", "kcp"})->active, "blue");
  EXPECT_EQ(SetActive(**reader, "green").code(), Code::kForbidden);
  EXPECT_EQ((*reader)->PutDocument("a", "b", "{}").code(), Code::kForbidden);
  ledger.reset();  // the agent is gone: the file can still be read
  reader = OpenLedgerReadOnly(options_.path);
  ASSERT_TRUE(reader.ok()) << reader.status().ToString();
  EXPECT_EQ((*reader)->Info().revision, 1);
}

TEST_F(LedgerTest, ANewerSchemaIsRefusedByNameAndLeftAsItIs) {
  MustOpen();
  Sql("UPDATE meta SET value = '3' WHERE key = 'schema'; UPDATE meta SET value = '0.9.0' WHERE key = 'lockkeeper'");
  const Result<std::unique_ptr<Ledger>> ledger = OpenLedger(options_);
  EXPECT_EQ(ledger.code(), Code::kUnsupported);
  EXPECT_NE(ledger.status().message().find("lockkeeper 0.9.0 (schema 3)"), std::string::npos)
      << ledger.status().message();
  Sql("UPDATE meta SET value = '1' WHERE key = 'schema'");
  EXPECT_NE(MustOpen(), nullptr);
}

TEST_F(LedgerTest, AMigrationKeepsACopyAndAddsOnly) {
  {
    auto ledger = MustOpen();
    ASSERT_TRUE(SetActive(*ledger, "blue").ok());
  }
  SqliteLedgerOptions newer = options_;
  newer.lockkeeper_version = "0.2.0";
  newer.later_migrations = {"ALTER TABLE documents ADD COLUMN note TEXT NOT NULL DEFAULT ''"};
  {
    Result<std::unique_ptr<Ledger>> ledger = OpenLedger(newer);
    ASSERT_TRUE(ledger.ok()) << ledger.status().ToString();
    EXPECT_EQ((*ledger)->Info().schema_version, 2);
    EXPECT_EQ((*ledger)->Get({"default", "kcp"})->active, "blue");
  }
  // The way back: the copy in its place, with the old lockkeeper.
  ASSERT_EQ(OpenLedger(options_).code(), Code::kUnsupported);
  ASSERT_EQ(rename((options_.path + ".schema1").c_str(), options_.path.c_str()), 0);
  EXPECT_EQ(MustOpen()->Get({"default", "kcp"})->active, "blue");
}

TEST_F(LedgerTest, AMigrationThatFailsLeavesTheOldSchema) {
  {
    auto ledger = MustOpen();
    ASSERT_TRUE(SetActive(*ledger, "blue").ok());
  }
  SqliteLedgerOptions newer = options_;
  newer.later_migrations = {"CREATE TABLE extra (x)", "THIS IS NO SQL"};
  EXPECT_FALSE(OpenLedger(newer).ok());
  EXPECT_EQ(MustOpen()->Info().schema_version, 1);
}

TEST_F(LedgerTest, ADamagedFileSaysWhereAndWhatToDo) {
  MustOpen();
  ASSERT_TRUE(WriteFileAtomic(options_.path, std::string(8192, 'x')).ok());
  const Result<std::unique_ptr<Ledger>> ledger = OpenLedger(options_);
  EXPECT_EQ(ledger.code(), Code::kCorrupt);
  EXPECT_NE(ledger.status().message().find(options_.path), std::string::npos);
  EXPECT_NE(ledger.status().message().find("Way out:"), std::string::npos) << ledger.status().message();
  EXPECT_EQ(ReadFile(options_.path)->size(), 8192u) << "a damaged ledger is not written over";
}

TEST_F(LedgerTest, ADamagedPageIsFoundAtOpening) {
  {
    auto ledger = MustOpen();
    RandomRecord random(3);
    for (int i = 0; i < 40; ++i) {
      ASSERT_TRUE(ledger->PutDocument("d", std::to_string(i), std::string(2000, 'y')).ok());
    }
  }
  const int fd = open(options_.path.c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_EQ(pwrite(fd, std::string(20000, '\x5a').data(), 20000, 8192), 20000);
  close(fd);
  EXPECT_EQ(OpenLedger(options_).code(), Code::kCorrupt);
}

TEST_F(LedgerTest, ARecordThatCannotBeReadStopsTheOpening) {  // B9, N5
  {
    auto ledger = MustOpen();
    ASSERT_TRUE(SetActive(*ledger, "blue").ok());
  }
  Sql("UPDATE servers SET json = '{\"slots\": 5}'");
  const Result<std::unique_ptr<Ledger>> ledger = OpenLedger(options_);
  EXPECT_EQ(ledger.code(), Code::kCorrupt);
  EXPECT_NE(ledger.status().message().find("default/kcp"), std::string::npos) << ledger.status().message();
}

TEST_F(LedgerTest, TheBallastIsLaidDownAndGivenBackOnlyByRepair) {
  auto ledger = MustOpen();
  const std::string ballast = options_.path + ".ballast";
  struct stat st = {};
  ASSERT_EQ(stat(ballast.c_str(), &st), 0);
  EXPECT_EQ(st.st_size, 4096);
  EXPECT_GE(st.st_blocks, 8) << "room that is only promised helps nobody";
  ASSERT_TRUE(SetActive(*ledger, "blue").ok());
  EXPECT_TRUE(PathExists(ballast));
  ASSERT_TRUE(ledger->RepairSpace().ok());
  EXPECT_FALSE(PathExists(ballast));
  ledger.reset();
  MustOpen();
  EXPECT_TRUE(PathExists(ballast));
}

TEST_F(LedgerTest, ItsFilesAreForItsOwnerAlone) {
  auto ledger = MustOpen();
  struct stat st = {};
  for (const char* suffix : {"", "-wal", ".lock", ".ballast"}) {
    ASSERT_EQ(stat((options_.path + suffix).c_str(), &st), 0) << suffix;
    EXPECT_EQ(st.st_mode & 077, 0u) << suffix;
  }
}

}  // namespace
}  // namespace lockkeeper
