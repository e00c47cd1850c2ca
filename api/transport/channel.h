// Channel: one connected stream socket, plain or TLS, read and written with deadlines.
//
// Purpose:   the one place where server and client wait for a socket. Non-blocking descriptor and poll(), so
//            descriptors over 1023 work, a wait costs nothing, and a wake descriptor ends it at once.
// Ownership: owns the descriptor and the TLS session; wake descriptors are borrowed for a call.
// Threads:   one thread at a time.
// Failure:   kTimeout (deadline), kCancelled (wake descriptor), kUnavailable (closed, reset),
//            kUnauthorized (a certificate was refused, by us or by the peer). Never raises SIGPIPE.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "api/base/status.h"
#include "api/base/unique_fd.h"

struct ssl_st;
struct ssl_ctx_st;

namespace lockkeeper {

using Instant = std::chrono::steady_clock::time_point;

// How long a call may wait.
struct Patience {
  Instant deadline = Instant::max();
  std::chrono::milliseconds idle{0};  // 0: none; otherwise each single wait ends after this much silence
  int wake = -1;                      // readable: kCancelled

  static Patience For(std::chrono::milliseconds d, int wake_fd = -1) {
    return {std::chrono::steady_clock::now() + d, std::chrono::milliseconds(0), wake_fd};
  }
};

// Waits until `fd` has one of `events` (POLLIN, POLLOUT) or an error.
Status WaitFor(int fd, short events, const Patience& patience);

class Channel {
 public:
  // REQUIRES: `fd` is non-blocking.
  explicit Channel(UniqueFd fd);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // TLS as the server.
  Status Accept(ssl_ctx_st* context, const Patience& patience);
  // TLS as the client; `name` is what the certificate must be for (a DNS name or an IP literal), and is sent
  // as SNI unless it is an IP. Empty: no name is checked (only with verification off).
  Status Connect(ssl_ctx_st* context, const std::string& name, const Patience& patience);

  // What is there, at least one byte; 0 at the end of the stream (for TLS: after a close-notify).
  Result<size_t> Read(char* data, size_t size, const Patience& patience);
  Status Write(std::string_view data, const Patience& patience);

  // Bytes that poll() cannot see, inside the TLS session.
  bool HasPending() const;
  // Looks without waiting: the peer has closed its side or the connection is broken. Unread bytes are kept.
  bool PeerClosed();
  // For a connection between requests: nothing may be readable.
  bool QuietAndOpen();

  int fd() const { return fd_.get(); }
  // No more bytes from us: close-notify and FIN.
  void ShutdownWrite();
  // ShutdownWrite, then takes in what the peer is still sending, for a second at most: closing on unread bytes
  // would reset the connection and take our last answer with it.
  void Linger(int wake);
  // Closes with a reset: the peer reads an error, never an end.
  void Reset();

 private:
  Status Handshake(const Patience& patience, std::string_view attempt);
  // Waits as SSL_get_error asks for; ok: try the call again.
  Status TlsWait(int result, const Patience& patience, std::string_view attempt);

  UniqueFd fd_;
  ssl_st* ssl_ = nullptr;
  bool tls_broken_ = false;
};

}  // namespace lockkeeper
