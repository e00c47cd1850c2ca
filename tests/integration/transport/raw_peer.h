// RawPeer: a TCP listener on port 0 whose every byte the test decides.
// Ownership: owns its thread; the script runs per connection, one after another. Failure: aborts.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "api/base/status.h"
#include "api/base/unique_fd.h"

namespace lockkeeper::testing {

class RawConnection {
 public:
  explicit RawConnection(UniqueFd fd) : fd_(std::move(fd)) {}
  int fd() const { return fd_.get(); }
  // Up to and with the blank line after a head; "" when the peer is gone.
  std::string ReadHead() {
    std::string out;
    char c;
    while (out.size() < 4 || out.compare(out.size() - 4, 4, "\r\n\r\n") != 0) {
      if (recv(fd_.get(), &c, 1, 0) != 1) return "";
      out += c;
    }
    return out;
  }
  std::string ReadExactly(size_t size) {
    std::string out(size, '\0');
    const ssize_t n = size == 0 ? 0 : recv(fd_.get(), out.data(), size, MSG_WAITALL);
    out.resize(n > 0 ? static_cast<size_t>(n) : 0);
    return out;
  }
  std::string ReadToEnd() {
    std::string out;
    char buffer[4096];
    ssize_t n;
    while ((n = recv(fd_.get(), buffer, sizeof buffer, 0)) > 0) out.append(buffer, static_cast<size_t>(n));
    return out;
  }
  void Send(std::string_view text) {
    while (!text.empty()) {
      const ssize_t n = send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL);
      if (n <= 0) return;
      text.remove_prefix(static_cast<size_t>(n));
    }
  }
  // Blocks until the peer closes.
  void AwaitClose() {
    char buffer[256];
    while (recv(fd_.get(), buffer, sizeof buffer, 0) > 0) continue;
  }
  void Close() { fd_.Reset(); }

 private:
  UniqueFd fd_;
};

inline std::pair<UniqueFd, int> ListenOnAnyPort(int backlog = 64) {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  LK_CHECK(bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size) == 0 && listen(fd.get(), backlog) == 0);
  LK_CHECK(getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
  return {std::move(fd), ntohs(address.sin_port)};
}

inline RawConnection ConnectTo(int port) {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  LK_CHECK(connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  return RawConnection(std::move(fd));
}

class RawPeer {
 public:
  // `script` is called with each connection and its number, from 1.
  explicit RawPeer(std::function<void(RawConnection&, int)> script) : script_(std::move(script)) {
    std::tie(listener_, port_) = ListenOnAnyPort();
    thread_ = std::thread([this] {
      for (int number = 1;; ++number) {
        UniqueFd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        if (!fd) return;
        RawConnection connection(std::move(fd));
        script_(connection, number);
      }
    });
  }
  ~RawPeer() {
    shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }
  int port() const { return port_; }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

 private:
  std::function<void(RawConnection&, int)> script_;
  UniqueFd listener_;
  int port_ = 0;
  std::thread thread_;
};

}  // namespace lockkeeper::testing
