// Places: the ports and folders that the peers of one test program take.
// Threads: thread-safe. Failure: Status.
#pragma once

#include <string>

#include "api/base/status.h"

namespace lockkeeper::peers {

// A port that nobody listens on, outside the range that the kernel gives to outgoing connections: what is restarted
// finds it free again.
int PortToKeep();

// A temporary folder, to be removed by the caller. What test programs that were killed left is removed: their pid
// stands in its name.
Result<std::string> MakeFolder();

}  // namespace lockkeeper::peers
