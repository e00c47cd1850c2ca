// The driver's process is killed with -9 at each step of a start, and another one carries on.

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "api/base/file.h"
#include "tests/integration/process/process_fixture.h"

namespace lockkeeper {
namespace {

// This program started again as "… --lk-driver RUN_DIR NAME STARTS STEP": starts the unit and is killed at STEP.
int DriverMain(char** argv) {
  ProcessUnitsOptions options;
  options.run_dir = argv[2];
  options.shim_path = ShimPath();
  options.at_step = [&](std::string_view step) {
    if (step == argv[5]) kill(getpid(), SIGKILL);
  };
  Result<std::unique_ptr<Units>> units = OpenProcessUnits(options);
  if (!units.ok()) return 3;
  UnitSpec spec;
  spec.name = argv[3];
  spec.argv = {TestServerPath(), "--append", argv[4], "--listen"};
  spec.log_dir = std::string(argv[2]) + "/../logs-" + argv[3];
  return (*units)->Start(spec, 1).ok() ? 0 : 4;
}

class DriverDeathTest : public ProcessTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(DriverDeathTest, TheNextDriverEndsWithOneProcessStartedOnce) {
  UnitSpec spec;
  spec.name = "lk-a";
  spec.argv = {TestServerPath(), "--append", starts_file_, "--listen"};
  spec.log_dir = Options().run_dir + "/../logs-lk-a";
  std::string self = "/proc/self/exe";
  std::string args[] = {"test", "--lk-driver", Options().run_dir, "lk-a", starts_file_, GetParam()};
  char* argv[] = {args[0].data(), args[1].data(), args[2].data(), args[3].data(),
                  args[4].data(), args[5].data(), nullptr};
  pid_t pid = 0;
  ASSERT_EQ(posix_spawn(&pid, self.c_str(), nullptr, nullptr, argv, environ), 0);
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;

  Reopen();
  const Status started = units_->Start(spec, 1);
  ASSERT_TRUE(started.ok()) << started.ToString();
  const UnitStatus running = AwaitPort("lk-a");
  EXPECT_TRUE(running.shim_alive);
  ASSERT_TRUE(units_->Start(spec, 1).ok());
  EXPECT_EQ(Starts(), std::vector<int>{running.id.pid});
  ASSERT_TRUE(units_->Terminate(running.id, SIGTERM).ok());
  const UnitStatus ended = AwaitExit("lk-a");
  ASSERT_TRUE(ended.exit) << "the shim is not the dead driver's child, and reaps";
  EXPECT_EQ(ended.exit->code, 0);
}

TEST_P(DriverDeathTest, AStartWithAnotherSpecReplacesAShimThatStillWaits) {
  if (std::strcmp(GetParam(), "started") == 0) GTEST_SKIP() << "after the start the spec is frozen";
  std::string self = "/proc/self/exe";
  std::string args[] = {"test", "--lk-driver", Options().run_dir, "lk-a", starts_file_, GetParam()};
  char* argv[] = {args[0].data(), args[1].data(), args[2].data(), args[3].data(),
                  args[4].data(), args[5].data(), nullptr};
  pid_t pid = 0;
  ASSERT_EQ(posix_spawn(&pid, self.c_str(), nullptr, nullptr, argv, environ), 0);
  ASSERT_EQ(waitpid(pid, nullptr, 0), pid);
  Reopen();
  UnitSpec spec = Spec("lk-a", {"--listen"});
  spec.env = {{"COMPANION_PORT", "4711"}};  // a companion came back with another port
  const Status started = units_->Start(spec, 1);
  ASSERT_TRUE(started.ok()) << started.ToString();
  const UnitStatus running = AwaitPort("lk-a");
  EXPECT_EQ(Starts(), std::vector<int>{running.id.pid});
  EXPECT_NE(Read("/proc/" + std::to_string(running.id.pid) + "/environ").find("4711"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(AtEachStep, DriverDeathTest, ::testing::Values("spec", "spawned", "started"));

}  // namespace
}  // namespace lockkeeper

int main(int argc, char** argv) {
  if (argc == 6 && std::strcmp(argv[1], "--lk-driver") == 0) return lockkeeper::DriverMain(argv);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
