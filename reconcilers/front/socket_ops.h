// Socket operations of the front: addresses, listeners, dials and what the kernel knows of a socket.
//
// Ownership: descriptors are handed out as UniqueFd, or borrowed as int.
// Threads:   thread-safe.
// Failure:   kInvalid (an address that is no "1.2.3.4:80" or "[::1]:80"), kBusy (address in use, named), else the
//            code that errno maps to. Names are not resolved: a front must not wait for a resolver.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "api/base/status.h"
#include "api/base/unique_fd.h"

namespace lockkeeper::front {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;

  int Port() const;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  bool operator==(const SocketAddress& other) const;
};

// A numeric address with a port from 0 to 65535.
Result<SocketAddress> ParseAddress(const std::string& text);
std::string FormatAddress(const SocketAddress& address);
// Where the socket is bound.
Result<SocketAddress> LocalAddress(int fd);

struct KeepaliveOptions {
  int idle_seconds = 30;
  int interval_seconds = 10;
  int count = 3;
  int user_timeout_seconds = 60;
  bool operator==(const KeepaliveOptions&) const = default;
};

// As deep as this kernel gives by default (net.core.somaxconn); the hold queue spills into it.
inline constexpr int kBacklog = 4096;
Result<UniqueFd> Listen(const SocketAddress& address);
// The first listener that a service manager or a shim passed (LISTEN_FDS, LISTEN_PID of this process), made
// close-on-exec and non-blocking; others are closed, and the variables are removed. Empty when none was passed.
Result<UniqueFd> TakePassedListener();

// NODELAY, keepalive and TCP_USER_TIMEOUT; a socket that refuses one goes on without it.
void TuneSocket(int fd, const KeepaliveOptions& options);

// Begins a connect that does not block. `error` is 0 or EINPROGRESS, else the connect has failed.
UniqueFd Dial(const SocketAddress& address, int* error);
// The outcome of a finished connect: 0 or errno. A connection of a socket to itself counts as refused: dialling a dead
// port of the ephemeral range on one's own host makes one, now and then.
int DialOutcome(int fd);

// Bytes that wait to be read, and bytes that the other side has not acknowledged; -1 when it cannot be told.
int UnreadBytes(int fd);
int UnackedBytes(int fd);

// Closes with a reset instead of a FIN.
void CloseWithReset(UniqueFd fd);

// Raises the soft limit of open files to the hard one; answers the limit.
int64_t RaiseFileLimit();

}  // namespace lockkeeper::front
