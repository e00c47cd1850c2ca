#include "tests/integration/peer/relay.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

namespace lockkeeper {
namespace {

sockaddr_in Loopback(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  return address;
}

}  // namespace

Relay::Relay() : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), stop_(eventfd(0, EFD_CLOEXEC)) {
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof(address);
  if (bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 || listen(listener_.get(), 16) != 0)
    return;
  getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size);
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { Accept(); });
}

Relay::~Relay() {
  (void)!eventfd_write(stop_.get(), 1);
  if (acceptor_.joinable()) acceptor_.join();
  std::vector<std::thread> pumps;
  {
    MutexLock lock(mutex_);
    pumps.swap(pumps_);
  }
  for (std::thread& pump : pumps) pump.join();
}

void Relay::Accept() {
  while (true) {
    pollfd fds[2] = {{listener_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
    poll(fds, 2, -1);
    if (fds[1].revents != 0) return;
    const int client = accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) continue;
    MutexLock lock(mutex_);
    pumps_.emplace_back([this, client] { Pump(UniqueFd(client)); });
  }
}

void Relay::Pump(UniqueFd client) {
  UniqueFd server(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = Loopback(backend_);
  if (connect(server.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) return;
  char buffer[16384];
  while (true) {
    pollfd fds[3] = {{client.get(), POLLIN, 0}, {server.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
    poll(fds, 3, -1);
    if (fds[2].revents != 0) return;
    for (int i = 0; i < 2; ++i) {
      if (fds[i].revents == 0) continue;
      const ssize_t size = read(fds[i].fd, buffer, sizeof(buffer));
      if (size <= 0 || send(fds[1 - i].fd, buffer, static_cast<size_t>(size), MSG_NOSIGNAL) != size) return;
    }
  }
}

}  // namespace lockkeeper
