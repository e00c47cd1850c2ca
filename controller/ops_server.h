// OpsServer: /metrics, /healthz and /readyz on one HTTP server.
// Ownership: borrows metrics and health. Threads: thread-safe. Failure: Start names an address in use.
#pragma once

#include <memory>
#include <string>

#include "api/transport/http_server.h"
#include "controller/health.h"
#include "controller/metrics.h"

namespace lockkeeper {

class OpsServer {
 public:
  // `bind`: "127.0.0.1:8080", ":8080" (every address), "[::1]:8080"; "0" starts nothing.
  OpsServer(const std::string& bind, Metrics& metrics, const Health& health);

  Status Start();
  void Stop();
  int port() const;  // 0 when disabled

 private:
  void Handle(const HttpRequest& request, HttpResponse& response);

  const std::string bind_;
  Metrics& metrics_;
  const Health& health_;
  std::unique_ptr<HttpServer> server_;
};

}  // namespace lockkeeper
