#include "reconcilers/front/socket_ops.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/resource.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "api/base/file.h"

namespace lockkeeper::front {
namespace {

void SetInt(int fd, int level, int option, int value) {
  // Best effort: see TuneSocket.
  (void)::setsockopt(fd, level, option, &value, sizeof value);
}

Result<int> EnvNumber(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr) return Status(Code::kNotFound, name);
  int value = 0;
  const auto [end, error] = std::from_chars(text, text + std::strlen(text), value);
  if (error != std::errc() || *end != '\0') {
    return Status(Code::kInvalid, std::string(name) + "=" + text + " is no number");
  }
  return value;
}

}  // namespace

int SocketAddress::Port() const {
  return ntohs(storage.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_port
                                             : reinterpret_cast<const sockaddr_in*>(&storage)->sin_port);
}

bool SocketAddress::operator==(const SocketAddress& other) const {
  if (storage.ss_family != other.storage.ss_family || Port() != other.Port()) return false;
  if (storage.ss_family == AF_INET6) {
    return std::memcmp(&reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_addr,
                       &reinterpret_cast<const sockaddr_in6*>(&other.storage)->sin6_addr, sizeof(in6_addr)) == 0;
  }
  return reinterpret_cast<const sockaddr_in*>(&storage)->sin_addr.s_addr ==
         reinterpret_cast<const sockaddr_in*>(&other.storage)->sin_addr.s_addr;
}

Result<SocketAddress> ParseAddress(const std::string& text) {
  const Status bad(Code::kInvalid, "\"" + text +
                                       "\" is no numeric address with a port, such as 127.0.0.1:6443 or "
                                       "[::1]:6443");
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos) return bad;
  std::string host = text.substr(0, colon);
  int port = -1;
  const char* first = text.data() + colon + 1;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(first, last, port);
  if (error != std::errc() || end != last || first == last || port < 0 || port > 65535) return bad;
  SocketAddress address;
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
    auto* in6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
    in6->sin6_family = AF_INET6;
    in6->sin6_port = htons(static_cast<uint16_t>(port));
    if (::inet_pton(AF_INET6, host.c_str(), &in6->sin6_addr) != 1) return bad;
    address.size = sizeof *in6;
    return address;
  }
  auto* in4 = reinterpret_cast<sockaddr_in*>(&address.storage);
  in4->sin_family = AF_INET;
  in4->sin_port = htons(static_cast<uint16_t>(port));
  if (::inet_pton(AF_INET, host.c_str(), &in4->sin_addr) != 1) return bad;
  address.size = sizeof *in4;
  return address;
}

std::string FormatAddress(const SocketAddress& address) {
  char host[INET6_ADDRSTRLEN] = "";
  const std::string port = std::to_string(address.Port());
  if (address.storage.ss_family == AF_INET6) {
    const auto* in6 = reinterpret_cast<const sockaddr_in6*>(&address.storage);
    ::inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof host);
    return "[" + std::string(host) + "]:" + port;
  }
  const auto* in4 = reinterpret_cast<const sockaddr_in*>(&address.storage);
  ::inet_ntop(AF_INET, &in4->sin_addr, host, sizeof host);
  return std::string(host) + ":" + port;
}

Result<SocketAddress> LocalAddress(int fd) {
  SocketAddress address;
  address.size = sizeof address.storage;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address.storage), &address.size) != 0) {
    return ErrnoStatus("getsockname", "of the listener", errno);
  }
  return address;
}

Result<UniqueFd> Listen(const SocketAddress& address) {
  const std::string where = FormatAddress(address);
  UniqueFd fd(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return ErrnoStatus("make a socket for", where, errno);
  SetInt(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (::bind(fd.get(), address.get(), address.size) != 0 || ::listen(fd.get(), kBacklog) != 0) {
    const int error = errno;
    if (error == EADDRINUSE) {
      return Status(Code::kBusy, "listen on " + where +
                                     ": the address is in use by another process; stop that one (ss "
                                     "-ltnp names it) or give the front another address");
    }
    return ErrnoStatus("listen on", where, error);
  }
  return fd;
}

Result<UniqueFd> TakePassedListener() {
  constexpr int kFirst = 3;  // sd_listen_fds(3)
  const auto pid = EnvNumber("LISTEN_PID");
  const auto count = EnvNumber("LISTEN_FDS");
  ::unsetenv("LISTEN_PID");
  ::unsetenv("LISTEN_FDS");
  ::unsetenv("LISTEN_FDNAMES");
  if (pid.code() == Code::kNotFound || count.code() == Code::kNotFound) return UniqueFd();
  LK_RETURN_IF_ERROR(pid.status());
  LK_RETURN_IF_ERROR(count.status());
  // Meant for another process, whose child we are.
  if (*pid != static_cast<int>(::getpid()) || *count < 1) return UniqueFd();
  for (int fd = kFirst + 1; fd < kFirst + *count; ++fd) ::close(fd);
  int listening = 0;
  socklen_t size = sizeof listening;
  if (::getsockopt(kFirst, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) != 0 || listening == 0) {
    return Status(Code::kInvalid, "the passed descriptor 3 (LISTEN_FDS) is no listening socket");
  }
  UniqueFd fd(kFirst);
  const int flags = ::fcntl(kFirst, F_GETFL);
  if (::fcntl(kFirst, F_SETFD, FD_CLOEXEC) != 0 || flags < 0 || ::fcntl(kFirst, F_SETFL, flags | O_NONBLOCK) != 0) {
    return ErrnoStatus("take over", "the passed listener", errno);
  }
  return fd;
}

void TuneSocket(int fd, const KeepaliveOptions& options) {
  SetInt(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  if (options.idle_seconds > 0) {
    SetInt(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    SetInt(fd, IPPROTO_TCP, TCP_KEEPIDLE, options.idle_seconds);
    SetInt(fd, IPPROTO_TCP, TCP_KEEPINTVL, options.interval_seconds);
    SetInt(fd, IPPROTO_TCP, TCP_KEEPCNT, options.count);
  }
  SetInt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, options.user_timeout_seconds * 1000);
}

UniqueFd Dial(const SocketAddress& address, int* error) {
  UniqueFd fd(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) {
    *error = errno;
    return fd;
  }
  *error = ::connect(fd.get(), address.get(), address.size) == 0 ? 0 : errno;
  return fd;
}

int DialOutcome(int fd) {
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) return errno;
  if (error != 0) return error;
  SocketAddress own;
  SocketAddress peer;
  own.size = peer.size = sizeof own.storage;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&own.storage), &own.size) != 0) return errno;
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer.storage), &peer.size) != 0) return errno;
  return own == peer ? ECONNREFUSED : 0;
}

int UnreadBytes(int fd) {
  int n = 0;
  return ::ioctl(fd, SIOCINQ, &n) == 0 ? n : -1;
}

int UnackedBytes(int fd) {
  int n = 0;
  return ::ioctl(fd, SIOCOUTQ, &n) == 0 ? n : -1;
}

void CloseWithReset(UniqueFd fd) {
  const linger now{.l_onoff = 1, .l_linger = 0};
  (void)::setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

int64_t RaiseFileLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
  if (limit.rlim_cur < limit.rlim_max) {
    const rlimit raised{limit.rlim_max, limit.rlim_max};
    if (::setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  }
  return limit.rlim_cur == RLIM_INFINITY ? INT64_MAX : static_cast<int64_t>(limit.rlim_cur);
}

}  // namespace lockkeeper::front
