// Roles: the long-running verbs: up, apiserver, manager, agent, front.
//
// Purpose:   each runs until SIGTERM or SIGINT and answers the process's exit code: 0 ended as asked, 1 could not
//            start or had to give up (the reason is on standard error), 98 a front's address is in use.
// Threads:   called on the main thread before any other thread is made: the signals are blocked there.
// Failure:   as above.
#pragma once

#include <string>
#include <vector>

namespace lockkeeper {

struct UpOptions {
  std::string data_dir;
  std::string listen = "127.0.0.1:7440";
  std::string host = "local";
  std::string metrics_address = "0";
};
int RunUp(const UpOptions& options);

struct ApiServerOptions {
  std::string data_dir;
  std::string listen = "127.0.0.1:7440";
  std::string store;  // "": in the data folder
};
int RunApiServerRole(const ApiServerOptions& options);

struct ManagerRoleOptions {
  std::string kubeconfig;
  std::string context;
  std::string metrics_address = "0";
  bool leader_elect = true;
};
int RunManager(const ManagerRoleOptions& options);

struct AgentRoleOptions {
  std::string kubeconfig;
  std::string context;
  std::string data_dir;
  std::string host;
  std::string metrics_address = "0";
  bool take_over = false;
};
int RunAgent(const AgentRoleOptions& options);

int RunFrontRole(const std::vector<std::string>& args);

}  // namespace lockkeeper
