// Session: how one run of the command line reaches the API and the agent of this host.
//
// Purpose:   one set of rules: --kubeconfig, else $KUBECONFIG, else the kubeconfig in the data folder, else kubectl's
//            own; the agent's socket in the data folder. Both are opened when first used.
// Ownership: owns both clients. Threads: one caller. Failure: as LoadRestConfig and AgentClient.
#pragma once

#include <memory>
#include <string>

#include "controller/http_api.h"
#include "reconcilers/cli/agent_client.h"

namespace lockkeeper::cli {

struct SessionOptions {
  std::string kubeconfig;
  std::string context;
  std::string ns;        // "": the context's
  std::string data_dir;  // "": DefaultDataDir()
};

// $LOCKKEEPER_DATA, else /var/lib/lockkeeper for root, else $XDG_STATE_HOME/lockkeeper or ~/.local/state/lockkeeper.
std::string DefaultDataDir();
std::string KubeconfigIn(const std::string& data_dir);
std::string AgentSocketIn(const std::string& data_dir);

class Session {
 public:
  explicit Session(SessionOptions options);

  Result<Api*> api();
  AgentClient& agent();
  // The namespace to work in: the option's, the context's, else "default".
  std::string ns();

 private:
  Status Open();

  SessionOptions options_;
  std::string context_namespace_;
  std::unique_ptr<HttpApi> api_;
  std::unique_ptr<AgentClient> agent_;
};

// Whether an error means that the API is away, so that the agent's socket is the way.
bool IsAway(const Status& status);

}  // namespace lockkeeper::cli
