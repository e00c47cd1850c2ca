// UnitView: the records of one unit as they stand on disk, with what /proc says of its process and shim.
//
// Ownership: values. Threads: thread-safe. Failure: kNotFound: no such unit; a record that cannot be read is an
//            error, never "absent".
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "reconcilers/ports/units.h"
#include "reconcilers/process/shim_protocol.h"

namespace lockkeeper {

struct UnitView {
  std::string unit;
  std::string folder;      // RUN/UNIT
  std::string run_folder;  // RUN/UNIT/INVOCATION
  int64_t invocation = 0;
  bool shim_alive = false;
  pid_t shim_pid = 0;  // 0 when no shim lives
  bool process_alive = false;
  bool restarts = false;  // the shim starts the process again when it ends
  std::optional<shim::Record> started;
  std::optional<shim::Record> failed;
  std::optional<shim::Record> exit;

  UnitIdentity Id() const;
  UnitStatus::State State() const;
};

// The highest invocation of the unit.
Result<UnitView> ReadUnit(const std::string& run_dir, const std::string& unit);
// Invocation numbers that have a folder, ascending.
std::vector<int64_t> InvocationsOf(const std::string& unit_folder);
// Names a folder can carry: letters, digits, '.', '_' and '-', not starting with '.', at most 200 bytes.
bool IsUnitName(const std::string& unit);
// Whether exactly this process is alive.
bool IsAlive(const UnitIdentity& id);

}  // namespace lockkeeper
