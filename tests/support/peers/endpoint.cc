#include "tests/support/peers/endpoint.h"

#include <signal.h>

#include "api/base/file.h"
#include "api/base/time.h"
#include "controller/kubeconfig.h"
#include "tests/support/peers/places.h"

namespace lockkeeper::peers {

Result<std::unique_ptr<Endpoint>> Endpoint::Of(const std::string& kubeconfig) {
  KubeconfigOptions options;
  options.explicit_path = kubeconfig;
  LK_ASSIGN_OR_RETURN(const RestConfig rest, LoadRestConfig(options));
  LK_ASSIGN_OR_RETURN(const Credentials credentials, rest.credentials->Get());
  HttpClientConfig http;
  http.base_url = rest.server;
  http.tls.ca_pem = rest.ca_pem;
  if (!rest.ca_file.empty()) {
    LK_ASSIGN_OR_RETURN(http.tls.ca_pem, ReadFile(rest.ca_file));
  }
  http.tls.certificate_pem = credentials.certificate_pem;
  http.tls.private_key_pem = credentials.private_key_pem;
  http.max_idle = 32;
  auto endpoint = std::make_unique<Endpoint>();
  endpoint->client_ = std::make_unique<HttpClient>(std::move(http));
  if (!credentials.token.empty()) endpoint->authorization_ = "Bearer " + credentials.token;
  return endpoint;
}

Result<Reply> Endpoint::Send(const std::string& method, const std::string& target, const Json& body,
                             const std::string& content_type) const {
  ClientRequest request;
  request.method = method;
  request.target = target;
  if (!body.IsNull()) {
    request.headers = {{"Content-Type", content_type}};
    request.body = body.Dump();
  }
  return Send(std::move(request));
}

Result<Reply> Endpoint::Send(ClientRequest request) const {
  if (!authorization_.empty()) request.headers.emplace_back("Authorization", authorization_);
  LK_ASSIGN_OR_RETURN(ClientResponse answer, client_->Do(request));
  Reply reply;
  reply.status = answer.status;
  if (Result<Json> body = Json::Parse(answer.body); body.ok()) reply.body = std::move(*body);
  reply.http = std::move(answer);
  return reply;
}

Result<std::unique_ptr<Embedded>> Embedded::Start() {
  std::unique_ptr<Embedded> embedded(new Embedded);
  LK_ASSIGN_OR_RETURN(embedded->folder_, MakeFolder());
  embedded->kubeconfig_ = JoinPath(embedded->folder_, "data/admin.kubeconfig");
  embedded->port_ = PortToKeep();
  LK_RETURN_IF_ERROR(embedded->Launch());
  KubeconfigOptions options;
  options.explicit_path = embedded->kubeconfig_;
  LK_ASSIGN_OR_RETURN(RestConfig rest, LoadRestConfig(options));
  HttpApiOptions api;
  api.user_agent = "peers";
  embedded->api_ = std::make_unique<HttpApi>(std::move(rest), api);
  return embedded;
}

Embedded::~Embedded() {
  api_.reset();
  process_.reset();
  if (!folder_.empty()) (void)RemoveTree(folder_).ok();
}

Status Embedded::Launch() {
  process_.reset();
  SubprocessOptions options;
  options.argv = {LK_LOCKKEEPER, "apiserver",
                  "--data",      JoinPath(folder_, "data"),
                  "--listen",    "127.0.0.1:" + std::to_string(port_)};
  options.output_file = JoinPath(folder_, "log");
  options.dies_with_us = true;
  const size_t before = Log().size();
  LK_ASSIGN_OR_RETURN(Subprocess child, Subprocess::Start(options));
  process_ = std::move(child);
  for (int i = 0; i < 3000; ++i) {
    if (Log().find("export KUBECONFIG=", before) != std::string::npos) return Status::Ok();
    if (const Result<int> code = process_->Wait(std::chrono::milliseconds(10)); code.ok()) {
      process_.reset();
      return {Code::kInternal, "lockkeeper apiserver ended with " + std::to_string(*code) + ": " + Log()};
    }
  }
  return {Code::kTimeout, "lockkeeper apiserver is not ready: " + Log()};
}

Status Embedded::Restart() { return Launch(); }

Ran Embedded::Kubectl(std::vector<std::string> args, const std::string& stdin_text) const {
  return RunKubectl(kubeconfig_, folder_, std::move(args), stdin_text);
}

std::string Embedded::Log() const { return ReadFile(JoinPath(folder_, "log")).value_or(""); }

}  // namespace lockkeeper::peers
