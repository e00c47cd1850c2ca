// What /proc says of a process: its listening TCP ports and its executable.
//
// Ownership: values. Threads: thread-safe.
// Failure:   a process that is gone, or one of another user, has no ports; Status where one is answered.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "api/base/status.h"
#include "reconcilers/ports/units.h"

namespace lockkeeper {

// TCP ports in LISTEN held by the process or a descendant, the oldest socket first, each once.
std::vector<int> ListenPorts(pid_t pid);
// As Units::HolderOf.
Result<PortHolder> ListenerOn(int port);
// Target of /proc/PID/exe, "" when it cannot be told. " (deleted)" is kept: the file was replaced.
std::string ExecutableLink(pid_t pid);

}  // namespace lockkeeper
