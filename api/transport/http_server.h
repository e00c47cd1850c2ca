// HttpServer: HTTP/1.1 over TCP, TLS or a Unix socket; requests parsed and answers framed by cpp-httplib,
// connections (accept, TLS, keep-alive, shutdown) by ours.
//
// Purpose:   one handler per server. A thread per open connection, so a watch may last as long as it likes
//            and nothing queues behind it; waiting is by poll(), so descriptors over 1023 work.
// Ownership: the handler outlives the server. Stop() joins every thread.
// Threads:   the handler runs on many threads at once. All methods are thread-safe.
// Failure:   Start answers Status (address in use names the address). A handler cannot fail: it writes a
//            Response. An exception of the library ends its connection.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/status.h"

namespace lockkeeper {

struct HttpRequest {
  std::string method;  // "GET"
  std::string target;  // as sent, with the query
  std::string path;    // percent-decoded
  std::multimap<std::string, std::string> query;
  std::multimap<std::string, std::string> headers;  // names lower-cased
  std::string body;
  uint64_t connection = 0;                  // number of the connection, from 1
  uint64_t sequence = 0;                    // number of the request on it, from 1
  std::string peer;                         // "127.0.0.1:40000", or "unix"
  uid_t peer_uid = static_cast<uid_t>(-1);  // of a Unix socket's peer

  // First value, or "".
  std::string Header(std::string_view lower_case_name) const;
  std::string Query(std::string_view name) const;
  bool HasQuery(std::string_view name) const { return query.find(std::string(name)) != query.end(); }
};

// Where a streamed answer is written, one chunk a call. Blocks at most the server's write timeout.
class ChunkWriter {
 public:
  virtual ~ChunkWriter() = default;
  // False once the client is gone, the server stops, or the stream was aborted: return then.
  virtual bool Write(std::string_view chunk) = 0;
  // False as above, without writing; notices a closed peer.
  virtual bool Alive() = 0;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  // When set, the answer is chunked: `stream` is called once, on the connection's thread, and its return
  // ends the body (true: with the last chunk; false: by cutting the connection).
  std::function<bool(ChunkWriter&)> stream;
  bool close = false;  // say "Connection: close" and close after the answer
  bool abort = false;  // close without an answer (reset)
};

struct TlsServerConfig {
  std::string certificate_pem;  // chain
  std::string private_key_pem;
  std::string client_ca_pem;  // empty: client certificates are not asked for
};

struct HttpServerConfig {
  std::string address = "127.0.0.1";  // ignored with unix_path
  int port = 0;                       // 0: any free one
  std::string unix_path;              // a Unix socket, mode 0600; a stale one is replaced
  std::unique_ptr<TlsServerConfig> tls;
  size_t max_connections = 10000;                                             // beyond: waits in the kernel's queue
  std::chrono::milliseconds idle_timeout{std::chrono::minutes(30)};           // between requests
  std::chrono::milliseconds first_request_patience{std::chrono::seconds(1)};  // of a connection met by a drain
  std::chrono::milliseconds read_timeout{std::chrono::seconds(30)};           // within a request
  std::chrono::milliseconds write_timeout{std::chrono::seconds(30)};
  std::chrono::milliseconds tls_handshake_timeout{std::chrono::seconds(10)};
  size_t max_body_bytes = 3u << 20;  // beyond: 413
  size_t thread_stack_bytes = 256u << 10;
};

class HttpServer {
 public:
  using Handler = std::function<void(const HttpRequest&, HttpResponse&)>;

  HttpServer(HttpServerConfig config, Handler handler);
  ~HttpServer();  // Stop()
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Binds and listens; connections queue in the kernel from here on. port() is known after it.
  Status Listen();
  // Starts to accept. Listen() first when it was not called.
  Status Start();
  int port() const;

  // New connections get this certificate; open ones keep theirs. REQUIRES: the server was made with `tls`.
  Status SetTls(const TlsServerConfig& tls);

  // Closes the listener: new connections are refused. Open ones go on.
  void CloseListener();
  // From now on each answer says "Connection: close"; connections idle between requests are closed. One that has not
  // asked yet has first_request_patience for it: its client would not ask a second time.
  void DrainConnections();
  // Cuts every stream and idle connection and makes running ones end at their next write; joins all.
  void Stop();

  size_t open_connections() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockkeeper
