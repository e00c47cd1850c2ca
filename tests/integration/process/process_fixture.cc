#include "tests/integration/process/process_fixture.h"

#include <signal.h>
#include <stdlib.h>

#include <sstream>

#include "api/base/file.h"
#include "reconcilers/process/shim_client.h"
#include "tests/support/wait.h"

namespace lockkeeper {
namespace {
constexpr Duration kPatience = Seconds(20);
}

std::string ShimPath() { return LK_SHIM; }
std::string TestServerPath() { return LK_TEST_SERVER; }

void ProcessTest::SetUp() {
  char name[] = "/tmp/lk-process-XXXXXX";
  dir_ = mkdtemp(name);
  starts_file_ = JoinPath(dir_, "starts");
  Reopen();
}

void ProcessTest::TearDown() {
  const Result<std::vector<std::string>> all = units_->List();
  ASSERT_TRUE(all.ok()) << all.status().ToString();
  for (const std::string& unit : *all) {
    const Result<UnitStatus> status = units_->Inspect(unit);
    if (status.ok() && status->state == UnitStatus::State::kRunning) {
      EXPECT_TRUE(units_->Kill(status->id).ok());
      AwaitExit(unit);
    }
    EXPECT_TRUE(WaitUntil([&] { return units_->Reset(unit).ok(); })) << unit;
  }
  units_.reset();
  EXPECT_TRUE(RemoveTree(dir_).ok());
}

ProcessUnitsOptions ProcessTest::Options() const {
  ProcessUnitsOptions options;
  options.run_dir = JoinPath(dir_, "run");
  options.shim_path = ShimPath();
  return options;
}

void ProcessTest::Reopen() {
  units_.reset();
  Result<std::unique_ptr<Units>> opened = OpenProcessUnits(Options());
  ASSERT_TRUE(opened.ok()) << opened.status().ToString();
  units_ = std::move(*opened);
  units_->SetListener([this](const std::string&) {
    const MutexLock lock(mutex_);
    ++events_;
    changed_.NotifyAll();
  });
}

UnitSpec ProcessTest::Spec(const std::string& name, std::vector<std::string> args) const {
  UnitSpec spec;
  spec.name = name;
  spec.argv = {TestServerPath(), "--append", starts_file_};
  spec.argv.insert(spec.argv.end(), args.begin(), args.end());
  spec.log_dir = JoinPath(dir_, "logs-" + name);
  return spec;
}

UnitStatus ProcessTest::MustInspect(const std::string& unit) {
  Result<UnitStatus> status = units_->Inspect(unit);
  EXPECT_TRUE(status.ok()) << status.status().ToString();
  return status.ok() ? *status : UnitStatus{};
}

UnitStatus ProcessTest::Await(const std::string& unit, const std::function<bool(const UnitStatus&)>& done) {
  const Duration until = SystemClock().Read().boot + kPatience;
  while (true) {
    int seen = 0;
    {
      const MutexLock lock(mutex_);
      seen = events_;
    }
    const Result<UnitStatus> status = units_->Inspect(unit);
    if (status.ok() && done(*status)) return *status;
    if (SystemClock().Read().boot > until) {
      ADD_FAILURE() << unit << " never came there: " << status.status().ToString();
      return status.ok() ? *status : UnitStatus{};
    }
    // No event for a second is a failure of the driver only when the state did change: looked at again.
    const MutexLock lock(mutex_);
    if (events_ == seen) changed_.WaitFor(mutex_, std::chrono::seconds(1));
  }
}

UnitStatus ProcessTest::AwaitRunning(const std::string& unit) {
  return Await(unit, [](const UnitStatus& s) { return s.state == UnitStatus::State::kRunning; });
}
UnitStatus ProcessTest::AwaitExit(const std::string& unit) {
  return Await(unit, [](const UnitStatus& s) { return s.state == UnitStatus::State::kExited; });
}
UnitStatus ProcessTest::AwaitPort(const std::string& unit) {
  return Await(unit, [](const UnitStatus& s) { return !s.listen_ports.empty(); });
}

std::vector<int> ProcessTest::Starts() const {
  std::vector<int> out;
  std::istringstream text(ReadFile(starts_file_).value_or(""));
  for (int pid = 0; text >> pid;) out.push_back(pid);
  return out;
}

std::string ProcessTest::Read(const std::string& path) const { return ReadFile(path).value_or(""); }

}  // namespace lockkeeper
