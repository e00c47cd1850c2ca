// What the ledger answered survives power loss, a full disk and kill -9.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <random>

#include "api/base/file.h"
#include "reconcilers/ledger/sqlite_ledger.h"
#include "tests/fakes/power_loss_vfs.h"

namespace lockkeeper {
namespace {

const ServerKey kKey{"default", "kcp"};

class Durability : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/lk-durable-XXXXXX";
    dir_ = mkdtemp(name);
    options_.path = dir_ + "/ledger.db";
    options_.ballast_bytes = 0;
  }
  void TearDown() override { EXPECT_TRUE(RemoveTree(dir_).ok()); }

  // Writes `n` with a payload of several sectors.
  static Status Write(Ledger& ledger, int64_t n, size_t payload) {
    return ledger
        .Update(kKey,
                [&](ServerRecord& r) {
                  r.incarnations = n;
                  r.store_url = std::string(payload, 'x');
                  return Status::Ok();
                })
        .status();
  }

  std::string dir_;
  SqliteLedgerOptions options_;
};

TEST_F(Durability, AnAnsweredChangeSurvivesPowerLoss) {
  const uint64_t base = std::random_device{}();
  for (uint64_t round = 0; round < 15; ++round) {
    const uint64_t seed = base + round;
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    options_.path = dir_ + "/" + std::to_string(round) + ".db";
    fakes::PowerLossVfs vfs("ledger-power");
    options_.vfs = vfs.name();
    const int64_t writes = 1 + static_cast<int64_t>(random() % 30);
    std::string id;
    {
      auto ledger = std::move(*OpenLedger(options_));
      id = ledger->Info().id;
      for (int64_t n = 1; n <= writes; ++n) ASSERT_TRUE(Write(*ledger, n, random() % 9000).ok());
      vfs.CutPower();
      EXPECT_FALSE(Write(*ledger, writes + 1, 10).ok());
      EXPECT_EQ(ledger->Get(kKey)->incarnations, writes) << "what was not answered is not seen";
    }
    vfs.LoseUnsynced(seed);
    options_.vfs.clear();
    Result<std::unique_ptr<Ledger>> again = OpenLedger(options_);
    ASSERT_TRUE(again.ok()) << again.status().ToString();
    EXPECT_FALSE((*again)->Info().created);
    EXPECT_EQ((*again)->Info().id, id);
    EXPECT_GE((*again)->Info().revision, writes);
    EXPECT_GE((*again)->Get(kKey)->incarnations, writes);
  }
}

TEST_F(Durability, ASyncThatFailsIsAnErrorAndTheNextChangeHolds) {
  fakes::PowerLossVfs vfs("ledger-sync");
  options_.vfs = vfs.name();
  auto ledger = std::move(*OpenLedger(options_));
  ASSERT_TRUE(Write(*ledger, 1, 10).ok());
  vfs.FailSyncs(true);
  EXPECT_FALSE(Write(*ledger, 2, 10).ok());
  EXPECT_EQ(ledger->Get(kKey)->incarnations, 1);
  vfs.FailSyncs(false);
  ASSERT_TRUE(Write(*ledger, 3, 10).ok());
  EXPECT_EQ(ledger->Get(kKey)->incarnations, 3);
  ledger.reset();
  EXPECT_EQ((*OpenLedger(options_))->Get(kKey)->incarnations, 3);
}

TEST_F(Durability, OnAFullDiskNothingChangesAndItGoesOnWithRoom) {
  fakes::PowerLossVfs vfs("ledger-full");
  options_.vfs = vfs.name();
  auto ledger = std::move(*OpenLedger(options_));
  ASSERT_TRUE(Write(*ledger, 1, 10).ok());
  vfs.SetRoom(0);
  const Status full = Write(*ledger, 2, 200000);
  EXPECT_EQ(full.code(), Code::kExhausted) << full.ToString();
  EXPECT_EQ(ledger->Get(kKey)->incarnations, 1);
  vfs.SetRoom(-1);
  EXPECT_TRUE(Write(*ledger, 3, 200000).ok());
}

// This program again as "… --lk-writer PATH": writes for ever, and says each number once it was answered.
int WriterMain(const char* path) {
  SqliteLedgerOptions options;
  options.path = path;
  options.ballast_bytes = 0;
  Result<std::unique_ptr<Ledger>> ledger = OpenLedger(options);
  if (!ledger.ok()) return 3;
  const Result<ServerRecord> record = (*ledger)->Get(kKey);
  for (int64_t n = record.ok() ? record->incarnations + 1 : 1;; ++n) {
    const Status written = (*ledger)
                               ->Update(kKey,
                                        [&](ServerRecord& r) {
                                          r.incarnations = n;
                                          return Status::Ok();
                                        })
                               .status();
    if (!written.ok() || write(STDOUT_FILENO, &n, sizeof n) != sizeof n) return 4;
  }
}

TEST_F(Durability, AnAnsweredChangeSurvivesKillNineAndTheLockGoesWithTheProcess) {
  std::mt19937_64 random(std::random_device{}());
  int64_t answered = 0;
  for (int round = 0; round < 4; ++round) {
    int pipe_fds[2];
    ASSERT_EQ(pipe2(pipe_fds, O_CLOEXEC), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, pipe_fds[1], STDOUT_FILENO);
    std::string args[] = {"writer", "--lk-writer", options_.path};
    char* argv[] = {args[0].data(), args[1].data(), args[2].data(), nullptr};
    pid_t pid = 0;
    ASSERT_EQ(posix_spawn(&pid, "/proc/self/exe", &actions, nullptr, argv, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(pipe_fds[1]);
    const int64_t until = answered + 3 + static_cast<int64_t>(random() % 10);
    int64_t n = 0;
    while (answered < until && read(pipe_fds[0], &n, sizeof n) == sizeof n) answered = n;
    kill(pid, SIGKILL);
    while (read(pipe_fds[0], &n, sizeof n) == sizeof n) answered = n;
    close(pipe_fds[0]);
    ASSERT_EQ(waitpid(pid, nullptr, 0), pid);
    Result<std::unique_ptr<Ledger>> ledger = OpenLedger(options_);
    ASSERT_TRUE(ledger.ok()) << ledger.status().ToString();
    EXPECT_GE((*ledger)->Get(kKey)->incarnations, answered);
    EXPECT_LE((*ledger)->Get(kKey)->incarnations, answered + 1);
  }
}

}  // namespace
}  // namespace lockkeeper

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "--lk-writer") == 0) return lockkeeper::WriterMain(argv[2]);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
