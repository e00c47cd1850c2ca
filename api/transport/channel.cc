#include "api/transport/channel.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "api/transport/tls.h"
#include "api/transport/url.h"

namespace lockkeeper {

namespace {

// Whether the newest TLS error says that a certificate was not accepted; alerts 42 to 48, 51 (its signature) and 116
// speak of one.
bool IsCertificateAlert(unsigned long error) {
  if (ERR_GET_LIB(error) != ERR_LIB_SSL) return false;
  const int reason = ERR_GET_REASON(error);
  if (reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE) return true;
  const int alert = reason - SSL_AD_REASON_OFFSET;
  return (alert >= 42 && alert <= 48) || alert == 51 || alert == 116;
}

}  // namespace

Status WaitFor(int fd, short events, const Patience& patience) {
  pollfd fds[2] = {{fd, events, 0}, {patience.wake, POLLIN, 0}};
  const nfds_t count = patience.wake >= 0 ? 2 : 1;
  Instant until = patience.deadline;
  const Instant start = std::chrono::steady_clock::now();
  const bool idle = patience.idle.count() > 0 && (until == Instant::max() || start + patience.idle < until);
  if (idle) until = start + patience.idle;
  while (true) {
    timespec left{};
    const timespec* timeout = nullptr;
    if (until != Instant::max()) {
      const auto ns = std::max<int64_t>(
          0, std::chrono::duration_cast<std::chrono::nanoseconds>(until - std::chrono::steady_clock::now()).count());
      left.tv_sec = ns / 1000000000;
      left.tv_nsec = ns % 1000000000;
      timeout = &left;
    }
    const int n = ppoll(fds, count, timeout, nullptr);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return {Code::kExhausted, std::string("waiting for a socket: ") + strerror(errno)};
    if (count == 2 && fds[1].revents != 0) return {Code::kCancelled, "cancelled by the caller"};
    if (fds[0].revents != 0) return {};
    if (n == 0) {
      return {Code::kTimeout, idle ? "no byte for " + std::to_string(patience.idle.count()) + " ms"
                                   : std::string("no answer within the deadline")};
    }
  }
}

Channel::Channel(UniqueFd fd) : fd_(std::move(fd)) {}

Channel::~Channel() { SSL_free(ssl_); }

Status Channel::TlsWait(int result, const Patience& patience, std::string_view attempt) {
  const int saved_errno = errno;
  const int kind = SSL_get_error(ssl_, result);
  if (kind == SSL_ERROR_WANT_READ) return WaitFor(fd_.get(), POLLIN, patience);
  if (kind == SSL_ERROR_WANT_WRITE) return WaitFor(fd_.get(), POLLOUT, patience);
  tls_broken_ = true;
  const unsigned long error = ERR_peek_last_error();
  if (ERR_GET_LIB(error) == ERR_LIB_SSL && ERR_GET_REASON(error) == SSL_R_CERTIFICATE_VERIFY_FAILED) {
    ERR_clear_error();
    return {Code::kUnauthorized, std::string(attempt) + ": the peer's certificate is refused: " +
                                     X509_verify_cert_error_string(SSL_get_verify_result(ssl_))};
  }
  if (kind == SSL_ERROR_SYSCALL) {
    ERR_clear_error();
    return {Code::kUnavailable,
            std::string(attempt) + ": " + (saved_errno != 0 ? strerror(saved_errno) : "connection cut")};
  }
  if (kind == SSL_ERROR_ZERO_RETURN) {
    ERR_clear_error();
    return {Code::kUnavailable, std::string(attempt) + ": the peer closed the connection"};
  }
  const Code code = IsCertificateAlert(error) ? Code::kUnauthorized : Code::kUnavailable;
  return {code, std::string(attempt) + ": " + TlsErrors()};
}

Status Channel::Handshake(const Patience& patience, std::string_view attempt) {
  while (true) {
    ERR_clear_error();
    errno = 0;
    const int result = SSL_do_handshake(ssl_);
    if (result == 1) return {};
    LK_RETURN_IF_ERROR(TlsWait(result, patience, attempt));
  }
}

Status Channel::Accept(ssl_ctx_st* context, const Patience& patience) {
  ssl_ = SSL_new(context);
  LK_CHECK(ssl_ != nullptr);
  BIO* bio = BIO_new(QuietSocketBio());
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<intptr_t>(fd_.get())));
  SSL_set_bio(ssl_, bio, bio);
  SSL_set_accept_state(ssl_);
  return Handshake(patience, "TLS handshake");
}

Status Channel::Connect(ssl_ctx_st* context, const std::string& name, const Patience& patience) {
  ssl_ = SSL_new(context);
  LK_CHECK(ssl_ != nullptr);
  BIO* bio = BIO_new(QuietSocketBio());
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<intptr_t>(fd_.get())));
  SSL_set_bio(ssl_, bio, bio);
  SSL_set_connect_state(ssl_);
  if (!name.empty()) {
    X509_VERIFY_PARAM* param = SSL_get0_param(ssl_);
    if (IsIpLiteral(name)) {
      if (X509_VERIFY_PARAM_set1_ip_asc(param, name.c_str()) != 1) {
        return {Code::kInvalid, "server name \"" + name + "\" is no address"};
      }
    } else {
      // As in Go: alternative names only, never the common name, and wildcards for a whole label.
      X509_VERIFY_PARAM_set_hostflags(param,
                                      X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
      if (X509_VERIFY_PARAM_set1_host(param, name.data(), name.size()) != 1 ||
          SSL_set_tlsext_host_name(ssl_, name.c_str()) != 1) {
        return {Code::kInvalid, "server name \"" + name + "\" is no host name"};
      }
    }
  }
  return Handshake(patience, name.empty() ? std::string("TLS handshake") : "TLS handshake for " + name);
}

Result<size_t> Channel::Read(char* data, size_t size, const Patience& patience) {
  size = std::min<size_t>(size, 1u << 30);
  while (true) {
    errno = 0;
    if (ssl_ == nullptr) {
      const ssize_t n = recv(fd_.get(), data, size, 0);
      if (n >= 0) return static_cast<size_t>(n);
      if (errno == EINTR) continue;
      if (errno != EAGAIN) return Status(Code::kUnavailable, std::string("reading: ") + strerror(errno));
      LK_RETURN_IF_ERROR(WaitFor(fd_.get(), POLLIN, patience));
      continue;
    }
    ERR_clear_error();
    const int n = SSL_read(ssl_, data, static_cast<int>(size));
    if (n > 0) return static_cast<size_t>(n);
    if (SSL_get_error(ssl_, n) == SSL_ERROR_ZERO_RETURN) return size_t{0};
    LK_RETURN_IF_ERROR(TlsWait(n, patience, "reading"));
  }
}

Status Channel::Write(std::string_view data, const Patience& patience) {
  while (!data.empty()) {
    errno = 0;
    if (ssl_ == nullptr) {
      const ssize_t n = send(fd_.get(), data.data(), data.size(), MSG_NOSIGNAL);
      if (n >= 0) {
        data.remove_prefix(static_cast<size_t>(n));
      } else if (errno == EAGAIN) {
        LK_RETURN_IF_ERROR(WaitFor(fd_.get(), POLLOUT, patience));
      } else if (errno != EINTR) {
        return {Code::kUnavailable, std::string("writing: ") + strerror(errno)};
      }
      continue;
    }
    ERR_clear_error();
    const int n = SSL_write(ssl_, data.data(), static_cast<int>(std::min<size_t>(data.size(), 1u << 30)));
    if (n > 0) {
      data.remove_prefix(static_cast<size_t>(n));
    } else {
      LK_RETURN_IF_ERROR(TlsWait(n, patience, "writing"));
    }
  }
  return {};
}

bool Channel::HasPending() const { return ssl_ != nullptr && SSL_has_pending(ssl_) == 1; }

bool Channel::PeerClosed() {
  if (tls_broken_) return true;
  pollfd p{fd_.get(), POLLRDHUP, 0};
  return poll(&p, 1, 0) > 0 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL)) != 0;
}

bool Channel::QuietAndOpen() {
  if (PeerClosed()) return false;
  char byte;
  if (ssl_ == nullptr) return recv(fd_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
  ERR_clear_error();
  const int n = SSL_peek(ssl_, &byte, 1);  // takes in session tickets and a close-notify
  const bool quiet = n <= 0 && SSL_get_error(ssl_, n) == SSL_ERROR_WANT_READ;
  ERR_clear_error();
  return quiet;
}

void Channel::ShutdownWrite() {
  if (!fd_) return;
  if (ssl_ != nullptr && !tls_broken_ && SSL_is_init_finished(ssl_)) {
    ERR_clear_error();
    SSL_shutdown(ssl_);
    ERR_clear_error();
  }
  shutdown(fd_.get(), SHUT_WR);
}

void Channel::Linger(int wake) {
  ShutdownWrite();
  const Patience patience = Patience::For(std::chrono::seconds(1), wake);
  char buffer[4096];
  size_t taken = 0;
  while (taken < (16u << 20)) {
    const ssize_t n = recv(fd_.get(), buffer, sizeof buffer, 0);  // below TLS: nobody looks at it
    if (n > 0) {
      taken += static_cast<size_t>(n);
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR) || !WaitFor(fd_.get(), POLLIN, patience).ok()) {
      return;
    }
  }
}

void Channel::Reset() {
  const linger hard{1, 0};
  setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
  fd_.Reset();
}

}  // namespace lockkeeper
