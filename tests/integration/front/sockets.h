// Blocking sockets with deadlines for the front's tests: a client, a listener, and what one sees at their ends.
// Threads: one a socket. Failure: an empty optional or a named outcome; nothing waits longer than kPatience.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "api/base/unique_fd.h"

namespace lockkeeper::front {

inline constexpr std::chrono::milliseconds kPatience{20'000};

// How a stream ended for its reader.
enum class End { kEof, kReset, kSilence };

class Peer {
 public:
  Peer() = default;
  explicit Peer(UniqueFd fd);

  // Connects to "127.0.0.1:PORT"; not ok() when that failed.
  static Peer Connect(const std::string& address);
  // A small receive buffer, for slow readers.
  static Peer ConnectSlow(const std::string& address, int receive_buffer);

  bool ok() const { return static_cast<bool>(fd_); }
  int fd() const { return fd_.get(); }
  bool Send(const std::string& data) const;
  // Exactly `size` bytes, or nothing when the stream ended or stayed silent before.
  std::optional<std::string> Read(size_t size) const;
  std::optional<std::string> ReadLine() const;
  // Reads on to the end.
  End ReadToEnd(std::string* data = nullptr, std::chrono::milliseconds patience = kPatience) const;
  // Whether nothing arrives and nothing ends for `d`.
  bool StaysSilent(std::chrono::milliseconds d) const;
  void ShutdownWrite() const;
  void Reset();  // RST
  void Close() { fd_.Reset(); }

 private:
  UniqueFd fd_;
};

// A backend whose connections the test accepts by hand.
class ManualBackend {
 public:
  // `backlog` 0 and no accept makes a black hole once its queue is full.
  explicit ManualBackend(int port = 0, int backlog = 512);
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  int port() const { return port_; }
  int fd() const { return fd_.get(); }
  // The next connection; not ok() when none came.
  Peer Accept(std::chrono::milliseconds patience = kPatience) const;
  void Close() { fd_.Reset(); }

 private:
  UniqueFd fd_;
  int port_ = 0;
};

// A port on which nobody listens.
int DeadPort();

// Sends "ID" on a new connection and reads a line; "no connection" and "no answer" say how it failed.
std::string Ask(const std::string& address, const std::string& id);

// Looks until `done` or until patience ends; answers whether it was.
bool Eventually(const std::function<bool()>& done, std::chrono::milliseconds patience = kPatience);

}  // namespace lockkeeper::front
