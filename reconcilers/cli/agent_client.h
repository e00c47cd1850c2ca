// AgentClient: the command line's way to the agent of this host, for when the API is away (agent_socket.h).
//
// Threads: one caller. Failure: kUnavailable when no agent listens at the socket, with its path; else the agent's own
// answer.
#pragma once

#include <memory>
#include <string>

#include "api/base/json.h"
#include "api/transport/http_client.h"

namespace lockkeeper::cli {

class AgentClient {
 public:
  explicit AgentClient(const std::string& socket_path);

  Result<Json> Get(const std::string& target);
  // Harmless to repeat: each verb sets what may already be set.
  Result<Json> Post(const std::string& target);
  const std::string& path() const { return path_; }

 private:
  Result<Json> Do(const std::string& method, const std::string& target);

  const std::string path_;
  HttpClient client_;
};

}  // namespace lockkeeper::cli
