// Dialer: a connected socket to a host or Unix socket, within a deadline, cancellable throughout.
//
// Purpose:   name lookup (getaddrinfo blocks without a limit, so it runs beside the caller), non-blocking
//            connect over all addresses, and the socket options every outgoing connection has.
// Ownership: answers a descriptor of the caller's.
// Threads:   thread-safe.
// Failure:   kUnavailable (refused, unreachable, unknown name), kTimeout, kCancelled; each names the target.
#pragma once

#include "api/base/unique_fd.h"
#include "api/transport/channel.h"
#include "api/transport/url.h"

namespace lockkeeper {

Result<UniqueFd> Dial(const BaseUrl& url, const Patience& patience);

}  // namespace lockkeeper
