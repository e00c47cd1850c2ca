#include "tests/integration/front/sockets.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

namespace lockkeeper::front {
namespace {

using Clock = std::chrono::steady_clock;

bool Ready(int fd, short events, Clock::time_point deadline) {
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd p{fd, events, 0};
    const int n = ::poll(&p, 1, left > 0 ? static_cast<int>(left) : 0);
    if (n > 0) return true;
    if (n == 0) return false;
    if (errno != EINTR) return false;
  }
}

sockaddr_in Loopback(int port) {
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_port = htons(static_cast<uint16_t>(port));
  in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return in;
}

int PortOf(int fd) {
  sockaddr_in in{};
  socklen_t size = sizeof in;
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&in), &size);
  return ntohs(in.sin_port);
}

UniqueFd ConnectTo(const std::string& address, int receive_buffer) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (receive_buffer > 0) ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
  const sockaddr_in in = Loopback(std::atoi(address.c_str() + address.rfind(':') + 1));
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&in), sizeof in) != 0) fd.Reset();
  return fd;
}

}  // namespace

Peer::Peer(UniqueFd fd) : fd_(std::move(fd)) {}

Peer Peer::Connect(const std::string& address) { return Peer(ConnectTo(address, 0)); }

Peer Peer::ConnectSlow(const std::string& address, int receive_buffer) {
  return Peer(ConnectTo(address, receive_buffer));
}

bool Peer::Send(const std::string& data) const {
  size_t sent = 0;
  const auto deadline = Clock::now() + kPatience;
  while (sent < data.size()) {
    const ssize_t n = ::send(fd_.get(), data.data() + sent, data.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) {
      sent += static_cast<size_t>(n);
    } else if (errno != EAGAIN || !Ready(fd_.get(), POLLOUT, deadline)) {
      return false;
    }
  }
  return true;
}

std::optional<std::string> Peer::Read(size_t size) const {
  std::string data(size, '\0');
  size_t got = 0;
  const auto deadline = Clock::now() + kPatience;
  while (got < size) {
    if (!Ready(fd_.get(), POLLIN, deadline)) return std::nullopt;
    const ssize_t n = ::recv(fd_.get(), data.data() + got, size - got, 0);
    if (n <= 0) return std::nullopt;
    got += static_cast<size_t>(n);
  }
  return data;
}

std::optional<std::string> Peer::ReadLine() const {
  std::string line;
  while (true) {
    const auto byte = Read(1);
    if (!byte) return std::nullopt;
    if (*byte == "\n") return line;
    line += *byte;
  }
}

End Peer::ReadToEnd(std::string* data, std::chrono::milliseconds patience) const {
  char buffer[65536];
  const auto deadline = Clock::now() + patience;
  while (true) {
    if (!Ready(fd_.get(), POLLIN, deadline)) return End::kSilence;
    const ssize_t n = ::recv(fd_.get(), buffer, sizeof buffer, 0);
    if (n == 0) return End::kEof;
    if (n < 0) return End::kReset;
    if (data != nullptr) data->append(buffer, static_cast<size_t>(n));
  }
}

bool Peer::StaysSilent(std::chrono::milliseconds d) const {
  return !Ready(fd_.get(), POLLIN | POLLRDHUP, Clock::now() + d);
}

void Peer::ShutdownWrite() const { ::shutdown(fd_.get(), SHUT_WR); }

void Peer::Reset() {
  const linger now{1, 0};
  ::setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
  fd_.Reset();
}

ManualBackend::ManualBackend(int port, int backlog) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const int on = 1;
  ::setsockopt(fd_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const sockaddr_in in = Loopback(port);
  if (::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&in), sizeof in) != 0 || ::listen(fd_.get(), backlog) != 0) {
    fd_.Reset();
    return;
  }
  port_ = PortOf(fd_.get());
}

Peer ManualBackend::Accept(std::chrono::milliseconds patience) const {
  if (!Ready(fd_.get(), POLLIN, Clock::now() + patience)) return Peer();
  return Peer(UniqueFd(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC)));
}

int DeadPort() {
  // Bound and not listening would refuse too, but nobody could take the port later, as some tests do.
  return ManualBackend().port();
}

std::string Ask(const std::string& address, const std::string& id) {
  const Peer peer = Peer::Connect(address);
  if (!peer.ok() || !peer.Send(id + "\n")) return "no connection";
  return peer.ReadLine().value_or("no answer");
}

bool Eventually(const std::function<bool()>& done, std::chrono::milliseconds patience) {
  const auto deadline = Clock::now() + patience;
  while (!done()) {
    if (Clock::now() > deadline) return false;
    ::poll(nullptr, 0, 1);
  }
  return true;
}

}  // namespace lockkeeper::front
