// The manager by itself: without election it runs only where no other leads.
#include <csignal>

#include "api/base/file.h"
#include "tests/e2e/fixture.h"

namespace lockkeeper {
namespace {

class ManagerE2e : public E2e {
 protected:
  ManagerE2e() : E2e(true) {}

  Result<Subprocess> StartWithoutElection() {
    SubprocessOptions manager;
    manager.argv = {lab_.program(), "manager",         "--data",           lab_.data(),
                    "--kubeconfig", lab_.kubeconfig(), "--no-leader-elect"};
    manager.output_file = log_ = JoinPath(lab_.data(), "alone.log");
    manager.dies_with_us = true;
    return Subprocess::Start(manager);
  }
  std::string Log() const { return ReadFile(log_).value_or(""); }

 private:
  std::string log_;
};

TEST_F(ManagerE2e, WithoutElectionItIsRefusedBesideOneThatLeadsAndWorksAlone) {
  Install();
  {
    Result<Subprocess> beside = StartWithoutElection();
    ASSERT_TRUE(beside.ok()) << beside.status().ToString();
    EXPECT_EQ(beside->Wait(std::chrono::seconds(30)).value_or(-1), 1) << Log();
    EXPECT_NE(Log().find("leads: it renewed Lease lockkeeper-system/lockkeeper-manager"), std::string::npos) << Log();
    EXPECT_NE(Log().find("without --no-leader-elect"), std::string::npos) << "the way out: " << Log();
  }
  ASSERT_TRUE(lab_.EndPart("manager", SIGTERM).ok()) << "it gives its Lease away";
  Result<Subprocess> alone = StartWithoutElection();
  ASSERT_TRUE(alone.ok()) << alone.status().ToString();
  ASSERT_TRUE(WaitUntil([&] { return Log().find("lockkeeper manager is up") != std::string::npos; })) << Log();
  EXPECT_NE(Log().find("no election"), std::string::npos) << Log();
  ASSERT_EQ(MakeUpgrade("up", kNew), Status::Ok());
  ExpectSucceeds("up");
  alone->Signal(SIGTERM);
  EXPECT_EQ(alone->Wait(std::chrono::seconds(30)).value_or(-1), 0) << Log();
}

}  // namespace
}  // namespace lockkeeper
