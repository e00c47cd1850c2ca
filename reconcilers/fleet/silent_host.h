// SilentHost: what the manager writes on a Server whose host went silent. Pure.
//
// Purpose: Ready and Available become Unknown (AgentLost after 40 s of watched silence, HostUnknown where no agent was
//          ever seen), as the node life-cycle controller does for Nodes. Nothing else is touched; the agent takes both
//          back with its next status.
// Threads: pure. Failure: total.
#pragma once

#include <optional>

#include "api/types/server.h"
#include "reconcilers/upgrade/snapshot.h"

namespace lockkeeper {

// The status to write, or nothing when it stands so already or the host is not known to be silent.
std::optional<ServerStatus> SilentHostStatus(const Server& server, upgrade::HostState host, Time now);

}  // namespace lockkeeper
