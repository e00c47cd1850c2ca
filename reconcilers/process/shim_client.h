// ShimClient: how the driver writes a spec, spawns a shim and talks to it.
//
// Ownership: nothing is held between calls. Threads: thread-safe; a call blocks for at most 5 s.
// Failure:   Status naming the unit's folder; kUnavailable: no shim answers there.
#pragma once

#include <string>

#include "api/base/status.h"
#include "api/base/time.h"
#include "reconcilers/ports/units.h"
#include "reconcilers/process/shim_protocol.h"

namespace lockkeeper {

inline constexpr Duration kShimPatience = Seconds(5);

// The spec file of a unit: users, groups and the listen address resolved to numbers. kForbidden: another user is
// wanted and the agent is not root; kNotFound: no such user or group.
Result<shim::Record> RenderShimSpec(const UnitSpec& spec, int64_t invocation, const std::string& cgroup);

// Runs the shim on a run folder and waits until it is ready or another one has the unit; answers a kSpawn code.
Result<int> SpawnShim(const std::string& shim_path, const std::string& run_folder);

// One command, one answer.
Result<shim::Record> AskShim(const std::string& run_folder, const std::string& command);

// Waits until no shim holds the unit's lock. kTimeout when one still does.
Status AwaitNoShim(const std::string& unit_folder, Duration patience);
bool ShimAlive(const std::string& unit_folder);

// A record of `failed`, or an answer with state=failed, as a Status.
Status FailureOf(const shim::Record& record);

}  // namespace lockkeeper
