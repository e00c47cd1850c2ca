// HttpClient: HTTP/1.1 over TCP, TLS or a Unix socket, with deadlines, cancellation and a small pool.
//
// Purpose:   every outgoing call of lockkeeper. Own code on OpenSSL and poll(), because cpp-httplib 0.11.4's
//            client loses a cancel sent before a request, blocks a cancel during connect, does not see a TLS
//            connection closed by the server, and checks names weakly (docs/design has the list).
// Ownership: a client owns its connections; tokens and callbacks are borrowed for the call.
// Threads:   thread-safe; calls run at once on connections of their own.
// Failure:   kUnavailable (refused, unreachable, closed before an answer), kTimeout (deadline), kUnauthorized
//            (certificate or name refused), kCancelled. An HTTP error status is an answer, not a failure.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/status.h"

namespace lockkeeper {

// Cancels calls from another thread, at once, whatever they wait for. Sticky.
class CancelToken {
 public:
  CancelToken();
  ~CancelToken();
  CancelToken(const CancelToken&) = delete;
  CancelToken& operator=(const CancelToken&) = delete;
  void Cancel();
  bool cancelled() const { return cancelled_.load(); }
  // Readable once cancelled; for poll().
  int fd() const { return fd_; }

 private:
  std::atomic<bool> cancelled_{false};
  int fd_ = -1;
};

struct TlsClientConfig {
  std::string ca_pem;           // trusted roots; empty without insecure is an error at the first call
  std::string server_name;      // name to check and to send as SNI; empty: the URL's host
  std::string certificate_pem;  // client certificate chain, optional
  std::string private_key_pem;
  bool insecure_skip_verify = false;
};

struct HttpClientConfig {
  std::string base_url;  // "https://host:port/prefix", "http://…", or "unix:/path/to/socket"
  TlsClientConfig tls;
  std::string user_agent = "lockkeeper";
  std::chrono::milliseconds connect_timeout{std::chrono::seconds(10)};  // TCP and TLS together
  size_t max_idle = 8;
  std::chrono::milliseconds max_idle_age{std::chrono::seconds(60)};
};

struct ClientRequest {
  std::string method = "GET";
  std::string target{};  // path and query, already percent-encoded, behind base_url's prefix
  std::vector<std::pair<std::string, std::string>> headers{};
  std::string body{};
  std::chrono::milliseconds timeout{std::chrono::seconds(30)};  // the whole call; for streams: until the headers
  // A reused connection that died before a byte of the answer is replaced once by a fresh one. Set for GET,
  // and for writes that are safe to repeat (a fixed name or a resourceVersion; a repeat ends in 409).
  bool retry_on_stale = true;
};

struct ClientResponse {
  int status = 0;
  std::multimap<std::string, std::string> headers;  // names lower-cased
  std::string body;
  bool retried = false;  // went out twice, by retry_on_stale
  bool reused_connection = false;

  std::string Header(std::string_view lower_case_name) const;
};

class HttpClient {
 public:
  explicit HttpClient(HttpClientConfig config);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  Result<ClientResponse> Do(const ClientRequest& request, const CancelToken* cancel = nullptr);

  // A streamed answer on a connection of its own (never pooled). `on_data` gets the body's bytes as they
  // come and answers whether to go on. `idle_timeout` without a byte ends it with kTimeout. The Response has
  // no body for a 2xx; other statuses come whole, without on_data. Ok status when the server ended the body
  // in order or on_data said stop; kUnavailable when the connection was cut.
  struct StreamEnd {
    ClientResponse response;
    Status status;
  };
  StreamEnd Stream(const ClientRequest& request, std::chrono::milliseconds idle_timeout,
                   const std::function<bool(std::string_view)>& on_data, const CancelToken* cancel = nullptr);

  // Closes idle connections (a changed certificate, a flip).
  void CloseIdle();
  const HttpClientConfig& config() const { return config_; }

 private:
  class Impl;
  const HttpClientConfig config_;
  std::unique_ptr<Impl> impl_;
};

// "a b/c" -> "a%20b%2Fc"
std::string PercentEncode(std::string_view text);
std::string PercentDecode(std::string_view text);

}  // namespace lockkeeper
