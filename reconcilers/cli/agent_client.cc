#include "reconcilers/cli/agent_client.h"

#include <utility>

namespace lockkeeper::cli {
namespace {

HttpClientConfig ConfigOf(const std::string& path) {
  HttpClientConfig config;
  config.base_url = "unix:" + path;
  return config;
}

Code CodeOf(const std::string& name) {
  for (int i = 0; i <= static_cast<int>(Code::kInternal); ++i) {
    if (CodeName(static_cast<Code>(i)) == name) return static_cast<Code>(i);
  }
  return Code::kInternal;
}

}  // namespace

AgentClient::AgentClient(const std::string& socket_path) : path_(socket_path), client_(ConfigOf(socket_path)) {}

Result<Json> AgentClient::Get(const std::string& target) { return Do("GET", target); }
Result<Json> AgentClient::Post(const std::string& target) { return Do("POST", target); }

Result<Json> AgentClient::Do(const std::string& method, const std::string& target) {
  ClientRequest request;
  request.method = method;
  request.target = target;
  request.timeout = std::chrono::seconds(10);
  const Result<ClientResponse> response = client_.Do(request);
  if (response.code() == Code::kUnavailable || response.code() == Code::kNotFound) {
    // The socket's path is said once, not again by each layer below.
    const std::string& why = response.status().message();
    const size_t colon = why.rfind(": ");
    return Status(response.code(), "no agent answers at " + path_ + " (" +
                                       (colon == std::string::npos ? why : why.substr(colon + 2)) +
                                       "); is `lockkeeper up` running, and is LOCKKEEPER_DATA (or --data) its folder?");
  }
  if (!response.ok()) return response.status().Annotate("asking the agent at " + path_);
  LK_ASSIGN_OR_RETURN(Json body, Json::Parse(response->body));
  if (response->status >= 400) return Status(CodeOf(body.Get("code").AsString()), body.Get("message").AsString());
  return body;
}

}  // namespace lockkeeper::cli
