#include "api/transport/dialer.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "api/base/sync.h"

namespace lockkeeper {

namespace {

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

// Shared with the looking-up thread, which may outlive the caller that gave up.
struct Lookup {
  std::string host;
  std::string port;
  UniqueFd done{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  Mutex mutex;
  int rc LK_GUARDED_BY(mutex) = 0;
  std::vector<Address> found LK_GUARDED_BY(mutex);
};

void Resolve(Lookup& lookup, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | flags;
  addrinfo* list = nullptr;
  const int rc = getaddrinfo(lookup.host.c_str(), lookup.port.c_str(), &hints, &list);
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(rc == 0 ? list : nullptr, freeaddrinfo);
  MutexLock lock(lookup.mutex);
  lookup.rc = rc;
  for (const addrinfo* a = owner.get(); a != nullptr; a = a->ai_next) {
    Address address;
    memcpy(&address.storage, a->ai_addr, a->ai_addrlen);
    address.size = a->ai_addrlen;
    lookup.found.push_back(address);
  }
}

Result<std::vector<Address>> Addresses(const BaseUrl& url, const Patience& patience) {
  auto lookup = std::make_shared<Lookup>();
  if (!lookup->done) return Status(Code::kExhausted, "looking up " + url.host + ": no file descriptors left");
  lookup->host = url.host;
  lookup->port = std::to_string(url.port);
  if (IsIpLiteral(url.host)) {
    Resolve(*lookup, AI_NUMERICHOST);
  } else {
    std::thread([lookup] {
      Resolve(*lookup, AI_ADDRCONFIG);
      (void)!eventfd_write(lookup->done.get(), 1);
    }).detach();
    const Status status = WaitFor(lookup->done.get(), POLLIN, patience);
    if (!status.ok()) return status.Annotate("looking up " + url.host);
  }
  MutexLock lock(lookup->mutex);
  if (lookup->rc != 0) {
    return Status(Code::kUnavailable, "looking up " + url.host + ": " + gai_strerror(lookup->rc));
  }
  return lookup->found;
}

Result<UniqueFd> ConnectTo(const Address& address, const Patience& patience) {
  const int family = address.storage.ss_family;
  UniqueFd fd(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return Status(Code::kExhausted, std::string("opening a socket: ") + strerror(errno));
  const auto set = [&fd](int level, int option, int value) {
    setsockopt(fd.get(), level, option, &value, sizeof value);
  };
  if (family != AF_UNIX) {
    // Three layers against a half-open peer; the third is the caller's idle limit.
    set(IPPROTO_TCP, TCP_NODELAY, 1);
    set(SOL_SOCKET, SO_KEEPALIVE, 1);
    set(IPPROTO_TCP, TCP_KEEPIDLE, 30);
    set(IPPROTO_TCP, TCP_KEEPINTVL, 10);
    set(IPPROTO_TCP, TCP_KEEPCNT, 3);
    set(IPPROTO_TCP, TCP_USER_TIMEOUT, 30000);
  }
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.size) == 0) return fd;
  // A Unix socket whose backlog is full answers EAGAIN and cannot be waited for.
  if (errno != EINPROGRESS) return Status(Code::kUnavailable, strerror(errno));
  LK_RETURN_IF_ERROR(WaitFor(fd.get(), POLLOUT, patience));
  int error = 0;
  socklen_t size = sizeof error;
  if (getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error != 0) return Status(Code::kUnavailable, strerror(error));
  return fd;
}

}  // namespace

Result<UniqueFd> Dial(const BaseUrl& url, const Patience& patience) {
  const std::string attempt = "connecting to " + url.Where();
  std::vector<Address> addresses;
  if (!url.unix_path.empty()) {
    Address address;
    auto& un = reinterpret_cast<sockaddr_un&>(address.storage);
    un.sun_family = AF_UNIX;
    if (url.unix_path.size() >= sizeof un.sun_path) {
      return Status(Code::kInvalid, attempt + ": the path is longer than a Unix socket's may be");
    }
    memcpy(un.sun_path, url.unix_path.data(), url.unix_path.size());
    address.size = sizeof(sockaddr_un);
    addresses.push_back(address);
  } else {
    LK_ASSIGN_OR_RETURN(addresses, Addresses(url, patience));
  }
  Status last(Code::kUnavailable, attempt + ": the name has no address");
  for (size_t i = 0; i < addresses.size(); ++i) {
    Patience share = patience;
    if (patience.deadline != Instant::max()) {
      // An address that does not answer must not eat the time of the ones behind it.
      const Instant now = std::chrono::steady_clock::now();
      share.deadline = now + (patience.deadline - now) / static_cast<int>(addresses.size() - i);
    }
    auto fd = ConnectTo(addresses[i], share);
    if (fd.ok()) return fd;
    last = fd.status().Annotate(attempt);
    if (last.code() == Code::kCancelled) return last;
  }
  return last;
}

}  // namespace lockkeeper
