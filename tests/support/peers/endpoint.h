// Endpoint and Embedded: what a comparison of two API servers asks, and the other one of the two.
//
// Purpose:   requests as they stand on the wire, to any server that a kubeconfig names; `lockkeeper apiserver` as a
//            process in a temporary folder.
// Ownership: an Embedded ends its process and removes its folder; the kernel ends it when the test is killed.
// Threads:   an Endpoint is thread-safe; an Embedded is used by one thread.
// Failure:   Status; an answer of any HTTP status is an answer.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "controller/http_api.h"
#include "tests/support/peers/programs.h"
#include "tests/support/subprocess.h"

namespace lockkeeper::peers {

struct Reply {
  int status = 0;
  Json body;  // null when it is no JSON
  ClientResponse http;
};

class Endpoint {
 public:
  static Result<std::unique_ptr<Endpoint>> Of(const std::string& kubeconfig);

  // `body`: null for none; sent as application/json unless `content_type` names another.
  Result<Reply> Send(const std::string& method, const std::string& target, const Json& body = {},
                     const std::string& content_type = "application/json") const;
  // With the credentials added.
  Result<Reply> Send(ClientRequest request) const;
  HttpClient& client() const { return *client_; }
  const std::string& authorization() const { return authorization_; }  // "" when the certificate is it

 private:
  std::unique_ptr<HttpClient> client_;
  std::string authorization_;
};

class Embedded {
 public:
  static Result<std::unique_ptr<Embedded>> Start();
  ~Embedded();
  Embedded(const Embedded&) = delete;
  Embedded& operator=(const Embedded&) = delete;

  const std::string& folder() const { return folder_; }
  const std::string& kubeconfig() const { return kubeconfig_; }
  HttpApi& api() { return *api_; }
  Ran Kubectl(std::vector<std::string> args, const std::string& stdin_text = "") const;
  // SIGKILL, and again on the same address and store; ready when it returns.
  Status Restart();
  std::string Log() const;

 private:
  Embedded() = default;
  Status Launch();

  std::string folder_, kubeconfig_;
  int port_ = 0;
  std::optional<Subprocess> process_;
  std::unique_ptr<HttpApi> api_;
};

}  // namespace lockkeeper::peers
