// A filesystem that is full: a small one of its own.

#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

#include "api/base/sqlite.h"
#include "reconcilers/host/host_files.h"
#include "reconcilers/ledger/sqlite_ledger.h"
#include "tests/integration/host/temp_dir.h"

namespace lockkeeper {
namespace {

class FullDiskTest : public TempDirTest {
 protected:
  void SetUp() override {
    TempDirTest::SetUp();
    ASSERT_TRUE(MakeDirs(Path("small")).ok());
    if (mount("lk-small", Path("small").c_str(), "tmpfs", 0, "size=4m") != 0) {
      GTEST_SKIP() << "no right to mount a small filesystem here";
    }
    mounted_ = true;
  }
  void TearDown() override {
    if (mounted_) {
      EXPECT_EQ(umount(Path("small").c_str()), 0);
    }
    TempDirTest::TearDown();
  }
  void Fill() {
    const int fd = open(Path("small/filler").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    const std::string block(4096, 'x');
    while (write(fd, block.data(), block.size()) > 0) {
    }
    close(fd);
  }
  bool mounted_ = false;
};

TEST_F(FullDiskTest, TheLedgerRefusesAChangeKeepsWhatItHadAndIsMendedFromItsBallast) {
  SqliteLedgerOptions options;
  options.path = Path("small/ledger.db");
  options.ballast_bytes = 256 << 10;
  auto ledger = std::move(*OpenLedger(options));
  ASSERT_TRUE(PathExists(options.path + ".ballast"));
  const auto set = [&](const std::string& slot) {
    return ledger
        ->Update({"default", "kcp"},
                 [&](ServerRecord& r) {
                   r.active = slot;
                   return Status::Ok();
                 })
        .status();
  };
  ASSERT_TRUE(set("blue").ok());
  Fill();
  Status full;
  for (int i = 0; i < 100 && full.ok(); ++i) full = set("green-" + std::to_string(i) + std::string(3000, 'x'));
  EXPECT_EQ(full.code(), Code::kExhausted) << full.ToString();
  EXPECT_NE(full.message().find(options.path), std::string::npos) << full.message();
  const ServerRecord kept = *ledger->Get({"default", "kcp"});
  const int64_t revision = ledger->Info().revision;
  EXPECT_EQ(kept.revision, revision);
  ASSERT_TRUE(ledger->RepairSpace().ok());
  EXPECT_FALSE(PathExists(options.path + ".ballast"));
  ASSERT_TRUE(set("mended").ok());
  ledger.reset();
  ledger = std::move(*OpenLedger(options));
  EXPECT_EQ(ledger->Get({"default", "kcp"})->active, "mended");
  EXPECT_EQ(ledger->Info().revision, revision + 1);
  EXPECT_FALSE(PathExists(options.path + ".ballast")) << "no room, no ballast";
  ASSERT_TRUE(RemoveFile(Path("small/filler")).ok());
  ledger.reset();
  ledger = std::move(*OpenLedger(options));
  EXPECT_TRUE(PathExists(options.path + ".ballast")) << "goes on by itself once mended";
}

TEST_F(FullDiskTest, AReleaseThatDoesNotFitIsRefusedAndLeavesNothing) {
  Write("build/bin/kcp", std::string(3 << 20, 'k'), 0755);
  const std::string too_big = Write("big/bin/kcp", std::string(8 << 20, 'k'), 0755);
  const auto source = NewReleaseSource();
  const ReleaseInfo info = *source->Resolve(Path("build"), "v1", "", "");
  const ReleaseInfo big = *source->Resolve(Path("big"), "v2", "", "");
  const Result<ReleaseInfo> refused = source->Fetch(big, "None", "", Path("small/releases"), nullptr);
  EXPECT_EQ(refused.code(), Code::kExhausted);
  EXPECT_NE(refused.status().message().find("does not fit"), std::string::npos) << refused.status().message();
  // Filled between the question and the answer.
  const Result<ReleaseInfo> cut =
      source->Fetch(info, "None", "", Path("small/releases"), [&](int64_t done, int64_t total) {
        if (done < total / 2) Fill();
      });
  EXPECT_EQ(cut.code(), Code::kExhausted) << cut.status().ToString();
  EXPECT_TRUE(ListDir(Path("small/releases"))->empty());
  ASSERT_TRUE(RemoveFile(Path("small/filler")).ok());
  EXPECT_TRUE(source->Fetch(info, "None", "", Path("small/releases"), nullptr).ok());
}

TEST_F(FullDiskTest, ASnapshotThatDoesNotFitLeavesNothing) {
  Result<sqlite::Db> db = sqlite::Db::Open(Path("store.db"), {});
  ASSERT_TRUE(db.ok());
  ASSERT_TRUE(db->Exec("CREATE TABLE t (x); INSERT INTO t VALUES (randomblob(6000000))").ok());
  const auto snapshotter = NewSqliteSnapshotter();
  const Result<SnapshotInfo> taken = snapshotter->Take(Path("store.db"), Path("small/backups"), "b");
  EXPECT_EQ(taken.code(), Code::kExhausted) << taken.status().ToString();
  EXPECT_TRUE(ListDir(Path("small/backups"))->empty());
}

TEST_F(FullDiskTest, SeedingLeavesTheOldFileWhole) {
  const auto files = NewHostFiles();
  Write("shared/key", std::string(100000, 'k'));
  Write("small/root/key", "old", 0600);
  Fill();
  const SeedPlan plan{Path("shared"), {"key"}, Path("small/root")};
  EXPECT_EQ(files->Seed(plan).code(), Code::kExhausted);
  EXPECT_EQ(*ReadFile(Path("small/root/key")), "old");
}

}  // namespace
}  // namespace lockkeeper
