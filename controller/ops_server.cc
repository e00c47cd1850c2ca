#include "controller/ops_server.h"

#include <charconv>

namespace lockkeeper {

OpsServer::OpsServer(const std::string& bind, Metrics& metrics, const Health& health)
    : bind_(bind), metrics_(metrics), health_(health) {}

Status OpsServer::Start() {
  if (bind_ == "0" || server_ != nullptr) return {};
  HttpServerConfig config;
  const size_t colon = bind_.rfind(':');
  config.address = bind_.substr(0, colon == std::string::npos ? 0 : colon);
  if (config.address.size() > 1 && config.address.front() == '[')
    config.address = config.address.substr(1, config.address.size() - 2);
  const char* end = bind_.data() + bind_.size();
  const auto [stop, error] =
      std::from_chars(bind_.data() + (colon == std::string::npos ? 0 : colon + 1), end, config.port);
  if (colon == std::string::npos || error != std::errc() || stop != end || config.port < 0 || config.port > 65535) {
    return {Code::kInvalid, "metrics address \"" + bind_ + "\" must be HOST:PORT, :PORT, or 0 for none"};
  }
  config.max_connections = 100;
  config.max_body_bytes = 4096;
  server_ = std::make_unique<HttpServer>(
      std::move(config), [this](const HttpRequest& request, HttpResponse& response) { Handle(request, response); });
  return server_->Start();
}

void OpsServer::Stop() {
  if (server_ != nullptr) server_->Stop();
}

int OpsServer::port() const { return server_ != nullptr ? server_->port() : 0; }

void OpsServer::Handle(const HttpRequest& request, HttpResponse& response) {
  response.content_type = "text/plain; charset=utf-8";
  if (request.method != "GET" && request.method != "HEAD") {
    response.status = 405;
    response.body = "only GET\n";
  } else if (request.path == "/metrics") {
    response.content_type = "text/plain; version=0.0.4; charset=utf-8";
    response.body = metrics_.Render();
  } else if (request.path == "/healthz" || request.path == "/livez" || request.path == "/readyz") {
    const Health::Report report = request.path == "/readyz" ? health_.Ready() : health_.Live();
    response.status = report.ok ? 200 : 500;
    response.body = report.ok && !request.HasQuery("verbose") ? "ok" : report.text;
  } else {
    response.status = 404;
    response.body = "paths: /metrics /healthz /readyz\n";
  }
}

}  // namespace lockkeeper
