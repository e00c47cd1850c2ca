// ProcessUnits: the driver Process. Every unit runs under a slot-shim of its own and outlives this object.
//
// Purpose:   Units on plain processes: no systemd, no container runtime.
// Ownership: owns its watch thread; the run folder (RUN/UNIT/INVOCATION, see shim_protocol.h) is the state, so a new
//            object on the same folder carries on.
// Threads:   thread-safe; calls about one unit are serialised.
// Failure:   as Units; a start that was refused answers the same error again for the same invocation.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "api/base/time.h"
#include "reconcilers/ports/units.h"

namespace lockkeeper {

struct ProcessUnitsOptions {
  std::string run_dir;      // made 0700
  std::string shim_path;    // "" is slot-shim beside this executable
  std::string cgroup_root;  // a delegated cgroup v2 folder for limits of memory and cpu; "": limits are ignored
  Duration port_poll = Milliseconds(20);
  // Called between the steps of Start ("spec", "spawned", "started"); tests end the process there.
  std::function<void(std::string_view step)> at_step;
};

Result<std::unique_ptr<Units>> OpenProcessUnits(ProcessUnitsOptions options);

}  // namespace lockkeeper
