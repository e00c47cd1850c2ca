// A full disk under everything: the data folder lies on a small filesystem of its own, builds beside it.
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <csignal>

#include "api/base/file.h"
#include "tests/e2e/fixture.h"

namespace lockkeeper {
namespace {

class FullDiskE2e : public E2e {
 protected:
  void SetUp() override {
    struct stat program {};
    ASSERT_EQ(::stat(lab_.program().c_str(), &program), 0);
    // Two builds, stores and logs, and the 64 MiB that a roll wants to see free.
    const int64_t megabytes = program.st_size * 5 / 2 / (1 << 20) + 128;
    const std::string size = "size=" + std::to_string(megabytes) + "m";
    if (::mount("lk-disk", lab_.data().c_str(), "tmpfs", 0, size.c_str()) != 0) {
      GTEST_SKIP() << "no right to mount a small filesystem here";
    }
    mounted_ = true;
    builds_ = lab_.data() + "-builds";
    ASSERT_EQ(MakeDirs(builds_), Status::Ok());
    replace_.emplace_back("file://{data}/builds", "file://" + builds_);
  }
  void TearDown() override {
    E2e::TearDown();
    if (!builds_.empty()) (void)RemoveTree(builds_);
    if (mounted_) {
      EXPECT_EQ(::umount2(lab_.data().c_str(), MNT_DETACH), 0);
    }
  }
  void Build(const std::string& version) {
    SubprocessOptions build;
    build.argv = {lab_.program(), "kcp-like", "write-build", builds_ + "/" + version + "/bin/kcp", version};
    ASSERT_EQ(RunProcess(build).status(), Status::Ok());
  }
  // Fills it but for `left` bytes.
  void Fill(int64_t left) {
    const UniqueFd fd(::open((lab_.data() + "/filler").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    ASSERT_TRUE(fd);
    struct statvfs disk {};
    ASSERT_EQ(::statvfs(lab_.data().c_str(), &disk), 0);
    auto free = static_cast<int64_t>(disk.f_bavail * disk.f_frsize) - left;
    const std::string block(4096, 'x');
    while (free > 0 && ::write(fd.get(), block.data(), block.size()) > 0) free -= 4096;
  }
  void Free() { ASSERT_EQ(RemoveFile(lab_.data() + "/filler"), Status::Ok()); }
  void InstallHere() {
    Build(kOld);
    Build(kNew);
    ASSERT_TRUE(lab_.Up().ok());
    ASSERT_EQ(Apply("10-fronts.yaml"), Status::Ok());
    ASSERT_EQ(Apply("20-server-kcp.yaml"), Status::Ok());
    const Result<Server> ready = Await<Server>(
        "kcp", [](const Server& s) { return SaysReady(s) && !s.status.operation; }, 90);
    ASSERT_TRUE(ready.ok()) << ready.status().ToString();
  }
  bool mounted_ = false;
  std::string builds_;
};

TEST_F(FullDiskE2e, ABuildThatDoesNotFitStallsTheUpgradeUntouchedAndItGoesOnOnceThereIsRoom) {
  InstallHere();
  const pid_t serving = FindProcess({"/bin/kcp", "slots/blue"});
  Fill(8 << 20);
  ASSERT_EQ(MakeUpgrade("up", kNew), Status::Ok());
  const Result<Upgrade> stalled = Await<Upgrade>("up", [](const Upgrade& u) {
    const Condition* c = FindOf(u, "Stalled");
    return c != nullptr && c->status == ConditionStatus::kTrue && c->reason == "DiskFull";
  });
  ASSERT_TRUE(stalled.ok()) << stalled.status().ToString();
  EXPECT_NE(FindOf(*stalled, "Stalled")->message.find(lab_.data()), std::string::npos)
      << FindOf(*stalled, "Stalled")->message;
  EXPECT_EQ(FindProcess({"/bin/kcp", "slots/blue"}), serving);
  Free();
  ExpectSucceeds("up");
}

TEST_F(FullDiskE2e, WithNotAByteLeftNothingIsLostAndEverythingGoesOnOnceThereIsRoom) {
  InstallHere();
  const pid_t serving = FindProcess({"/bin/kcp", "slots/blue"});
  Fill(0);
  Status refused;
  // What fits into pages that are there already is still taken.
  const Resource maps{"", "v1", "configmaps", "ConfigMap", true};
  for (int i = 0; i < 1000 && refused.ok(); ++i) {
    const Json map = Json::MakeObject(
        {{"metadata", Json::MakeObject({{"namespace", "default"}, {"name", "full-" + std::to_string(i)}})},
         {"data", Json::MakeObject({{"text", std::string(4000, 'x')}})}});
    refused = lab_.api().Create(maps, map).status();
  }
  EXPECT_FALSE(refused.ok());
  EXPECT_NE(refused.message().find("full"), std::string::npos) << refused.ToString();
  // Killed there, `up` starts again, or says what it lacks; the server serves on.
  ASSERT_TRUE(lab_.Down(SIGKILL).ok());
  const Result<double> on_full = lab_.Up();
  if (!on_full.ok()) {
    // Its log may have no room for a word: what it says is read from a pipe.
    const Result<std::string> said =
        RunProcess(lab_.VerbOptions({"up", "--listen", "127.0.0.1:0"}), std::chrono::seconds(20));
    ASSERT_FALSE(said.ok());
    EXPECT_NE(said.status().message().find("No space left"), std::string::npos) << said.status().message();
  }
  EXPECT_EQ(FindProcess({"/bin/kcp", "slots/blue"}), serving);
  Free();
  if (!on_full.ok()) {
    ASSERT_TRUE(lab_.Up().ok());
  }
  ASSERT_EQ(MakeUpgrade("up", kNew), Status::Ok());
  ExpectSucceeds("up");
}

}  // namespace
}  // namespace lockkeeper
