// The fixture of the driver's tests: a driver on a fresh folder, small servers as units, and a clean end.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/base/sync.h"
#include "reconcilers/ports/units.h"
#include "reconcilers/process/process_units.h"

namespace lockkeeper {

class ProcessTest : public ::testing::Test {
 protected:
  void SetUp() override;
  // Kills and resets every unit: no process is left behind, whatever the test did.
  void TearDown() override;

  // Another driver on the same folder, as after a restart of the agent.
  void Reopen();
  ProcessUnitsOptions Options() const;
  // A unit that runs the test server with these arguments.
  UnitSpec Spec(const std::string& name, std::vector<std::string> args) const;
  UnitStatus MustInspect(const std::string& unit);
  // Waits, woken by the driver's events, until `done`; the last status either way, with a failure when it never came.
  UnitStatus Await(const std::string& unit, const std::function<bool(const UnitStatus&)>& done);
  UnitStatus AwaitRunning(const std::string& unit);
  UnitStatus AwaitExit(const std::string& unit);
  UnitStatus AwaitPort(const std::string& unit);
  // Process ids that the server appended at each start.
  std::vector<int> Starts() const;
  std::string Read(const std::string& path) const;

  std::string dir_;
  std::string starts_file_;
  std::unique_ptr<Units> units_;
  Mutex mutex_;
  CondVar changed_;
  int events_ LK_GUARDED_BY(mutex_) = 0;
};

std::string ShimPath();
std::string TestServerPath();

}  // namespace lockkeeper
