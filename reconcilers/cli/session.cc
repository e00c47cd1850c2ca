#include "reconcilers/cli/session.h"

#include <unistd.h>

#include <cstdlib>

#include "api/base/file.h"
#include "controller/kubeconfig.h"

namespace lockkeeper::cli {
namespace {

std::string Env(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

}  // namespace

std::string DefaultDataDir() {
  if (const std::string set = Env("LOCKKEEPER_DATA"); !set.empty()) return set;
  if (::geteuid() == 0) return "/var/lib/lockkeeper";
  if (const std::string state = Env("XDG_STATE_HOME"); !state.empty()) return JoinPath(state, "lockkeeper");
  return JoinPath(Env("HOME"), ".local/state/lockkeeper");
}

std::string KubeconfigIn(const std::string& data_dir) { return JoinPath(data_dir, "admin.kubeconfig"); }
std::string AgentSocketIn(const std::string& data_dir) { return JoinPath(data_dir, "agent.sock"); }

Session::Session(SessionOptions options) : options_(std::move(options)) {
  if (options_.data_dir.empty()) options_.data_dir = DefaultDataDir();
}

Status Session::Open() {
  KubeconfigOptions load;
  load.explicit_path = options_.kubeconfig;
  load.context = options_.context;
  load.namespace_ = options_.ns;
  const std::string own = KubeconfigIn(options_.data_dir);
  if (load.explicit_path.empty() && Env("KUBECONFIG").empty() && PathExists(own)) load.explicit_path = own;
  Result<RestConfig> loaded = LoadRestConfig(load);
  if (loaded.code() == Code::kNotFound) {
    return Status(loaded.code(), loaded.status().message() + "; `lockkeeper up` writes " + own);
  }
  if (!loaded.ok()) return loaded.status();
  RestConfig config = std::move(*loaded);
  context_namespace_ = config.namespace_;
  HttpApiOptions options;
  options.timeout = std::chrono::seconds(10);
  options.retry_budget = std::chrono::seconds(5);
  api_ = std::make_unique<HttpApi>(std::move(config), options);
  return Status::Ok();
}

Result<Api*> Session::api() {
  if (!api_) LK_RETURN_IF_ERROR(Open());
  return static_cast<Api*>(api_.get());
}

AgentClient& Session::agent() {
  if (!agent_) agent_ = std::make_unique<AgentClient>(AgentSocketIn(options_.data_dir));
  return *agent_;
}

std::string Session::ns() {
  if (!options_.ns.empty()) return options_.ns;
  if (!api_) (void)Open().ok();
  return context_namespace_.empty() ? "default" : context_namespace_;
}

bool IsAway(const Status& status) {
  return status.code() == Code::kUnavailable || status.code() == Code::kTimeout || status.code() == Code::kNotFound;
}

}  // namespace lockkeeper::cli
