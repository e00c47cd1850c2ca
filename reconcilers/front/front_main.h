// RunFront: the verb `lockkeeper front`.
//
// Purpose:   one front process from start to end: listener (passed or bound), resumed target, loop, admin socket.
// Threads:   the loop runs on the calling thread. With handle_signals, SIGTERM and SIGINT are blocked in it and read
//            by the loop; call it before other threads are made.
// Failure:   exit codes: 0 ended as asked; 98 the address is in use; 2 bad configuration; 1 anything else. The reason
//            stands in the log, with the way out.
//
// The first SIGTERM (or a cancel) stops accepting and drains for 60 s at most; a second one cuts at once.
#pragma once

#include "api/transport/http_client.h"
#include "reconcilers/front/front_config.h"

namespace lockkeeper::front {

inline constexpr int kExitAddressInUse = 98;  // EADDRINUSE

int RunFront(const FrontConfig& config, CancelToken& cancel);

}  // namespace lockkeeper::front
