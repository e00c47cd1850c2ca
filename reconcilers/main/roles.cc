#include "reconcilers/main/roles.h"

#include <pthread.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>

#include "api/base/file.h"
#include "api/base/log.h"
#include "api/server/apiserver.h"
#include "api/server/kcp/build_version.h"
#include "controller/http_api.h"
#include "controller/kubeconfig.h"
#include "reconcilers/agent/agent.h"
#include "reconcilers/cli/session.h"
#include "reconcilers/fleet/fleet.h"
#include "reconcilers/front/front_main.h"
#include "reconcilers/heartbeat/poster.h"
#include "reconcilers/ledger/ledger_file.h"

namespace lockkeeper {
namespace {

int Fail(const Status& status) {
  std::fprintf(stderr, "lockkeeper: %s\n", status.message().c_str());
  return 1;
}

// What is under way beyond this is cut, as by a crash, which nothing of ours minds; and a person or systemd waits.
constexpr auto kEndWithin = std::chrono::milliseconds(4500);

// The end of a process in which work hangs: its threads still use what destructors would take away.
[[noreturn]] void EndNow(int code) {
  std::fflush(nullptr);
  std::_Exit(code);
}

bool InOrder(const Status& stopped) {
  if (!stopped.ok()) LogWarn("some work was cut short; it goes on at the next start", {{"error", stopped.message()}});
  return stopped.ok();
}

// SIGTERM and SIGINT, blocked in every thread and awaited in one place; a fatal error comes the same way.
class Ending {
 public:
  Ending() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGTERM);
    sigaddset(&set_, SIGINT);
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
  }
  // 0 for a signal, 1 after Fatal. From then on the process ends within 5 s, whatever the rest of it does.
  int Wait() {
    siginfo_t asked{};
    while (sigwaitinfo(&set_, &asked) < 0) {
    }
    LogInfo("asked to stop", {{"signal", asked.si_signo}, {"by process", asked.si_pid}});
    sd_notify(0, "STOPPING=1");
    const int code = fatal_ ? 1 : 0;
    std::thread([code] {
      std::this_thread::sleep_for(kEndWithin);
      LogWarn("something does not end; leaving without it", {});
      EndNow(code);
    }).detach();
    return code;
  }
  void Fatal(const Status& status) {
    LogError("giving up", {{"error", status.ToString()}});
    fatal_ = true;
    ::kill(::getpid(), SIGTERM);
  }

 private:
  sigset_t set_;
  std::atomic<bool> fatal_{false};
};

// "127.0.0.1:7440", ":7440", "[::1]:7440".
Status SplitListen(const std::string& listen, std::string* address, int* port) {
  const size_t colon = listen.rfind(':');
  char* end = nullptr;
  const long number = colon == std::string::npos ? -1 : std::strtol(listen.c_str() + colon + 1, &end, 10);
  if (number < 0 || number > 65535 || *end != '\0' || end == listen.c_str() + colon + 1) {
    return {Code::kInvalid, "--listen " + listen + ": expected ADDRESS:PORT, for instance 127.0.0.1:7440"};
  }
  *address = listen.substr(0, colon);
  if (address->size() > 2 && address->front() == '[') *address = address->substr(1, address->size() - 2);
  *port = static_cast<int>(number);
  return Status::Ok();
}

Result<std::unique_ptr<HttpApi>> OpenApi(const std::string& kubeconfig, const std::string& context,
                                         const std::string& agent_name) {
  KubeconfigOptions load;
  load.explicit_path = kubeconfig;
  load.context = context;
  LK_ASSIGN_OR_RETURN(RestConfig config, LoadRestConfig(load));
  HttpApiOptions options;
  options.user_agent = "lockkeeper-" + agent_name + "/" + kcp::BuildVersion();
  options.reload = [load] { return LoadRestConfig(load); };
  return std::make_unique<HttpApi>(std::move(config), options);
}

void Ready(const std::string& text) {
  std::printf("%s", text.c_str());
  std::fflush(stdout);
  sd_notify(0, "READY=1");
}

Status WithAnotherPort(const Status& s) {
  if (s.code() != Code::kBusy) return s;
  return {s.code(), s.message() + "; give another --listen, or 127.0.0.1:0 for any free port"};
}

}  // namespace

int RunUp(const UpOptions& options) {
  Ending ending;
  apiserver::ApiServerConfig config;
  if (const Status s = SplitListen(options.listen, &config.address, &config.port); !s.ok()) return Fail(s);
  if (const Status s = MakeDirs(options.data_dir, 0700); !s.ok()) return Fail(s);
  // Before the API server: it would write its own address into the kubeconfig of the one that runs. The agent takes the
  // lock for good.
  if (const auto free = ledger_internal::TakeLock(JoinPath(options.data_dir, "ledger.db")); !free.ok())
    return Fail(free.status());
  config.data_dir = JoinPath(options.data_dir, "api");
  config.kubeconfig = cli::KubeconfigIn(options.data_dir);
  config.handler.git_version = "v1.33.0-lockkeeper." + kcp::BuildVersion().substr(1);
  apiserver::ApiServer server(std::move(config));
  if (const Status s = server.Start(); !s.ok()) return Fail(WithAnotherPort(s));

  const auto fatal = [&ending](const Status& status) { ending.Fatal(status); };
  auto fleet_api = OpenApi(server.kubeconfig_path(), "", "manager");
  if (!fleet_api.ok()) return Fail(fleet_api.status());
  auto agent_api = OpenApi(server.kubeconfig_path(), "", "agent");
  if (!agent_api.ok()) return Fail(agent_api.status());
  if (const Status s = EnsureSystemNamespace(**fleet_api); !s.ok()) return Fail(s);

  FleetOptions fleet_options;
  fleet_options.cancel_calls = [&fleet_api] { (*fleet_api)->CancelAll(); };
  fleet_options.on_fatal = fatal;
  Fleet fleet(**fleet_api, SystemClock(), std::move(fleet_options));
  // First the manager, so that it sees the agent's first heartbeat as it comes.
  if (const Status s = fleet.Start(); !s.ok()) return Fail(s);
  fleet.WaitUntilStarted(Seconds(10));

  AgentOptions agent_options;
  agent_options.host = options.host;
  agent_options.data_dir = options.data_dir;
  agent_options.version = kcp::BuildVersion();
  agent_options.metrics_address = options.metrics_address;
  agent_options.cancel_calls = [&agent_api] { (*agent_api)->CancelAll(); };
  agent_options.on_fatal = fatal;
  Agent agent(**agent_api, SystemClock(), std::move(agent_options));
  // What has begun ends in order also where the agent cannot start; what does not end must not meet destructors.
  const auto end_in_order = [&] {
    const bool agent_ended = InOrder(agent.Stop());
    const bool fleet_ended = InOrder(fleet.Stop());
    server.Stop();
    return agent_ended && fleet_ended;
  };
  if (const Status s = agent.Start(); !s.ok()) {
    const int code = Fail(s);
    if (!end_in_order()) EndNow(code);
    return code;
  }

  Ready("lockkeeper is up: API " + server.url() + ", host " + options.host + ", data " + options.data_dir +
        "\n  export KUBECONFIG=" + server.kubeconfig_path() + "\n");
  const int code = ending.Wait();
  const std::string left = agent.LeftRunning();
  const bool in_order = end_in_order();
  if (left.empty()) {
    std::printf("lockkeeper has stopped; nothing of it runs on.\n");
  } else {
    std::printf(
        "lockkeeper has stopped. These run on, as they should; `lockkeeper up` takes them up again:\n%s"
        "To stop them: `lockkeeper stop SERVER` while lockkeeper is up.\n",
        left.c_str());
  }
  if (!in_order) EndNow(code);
  return code;
}

int RunApiServerRole(const ApiServerOptions& options) {
  Ending ending;
  apiserver::ApiServerConfig config;
  if (const Status s = SplitListen(options.listen, &config.address, &config.port); !s.ok()) return Fail(s);
  config.data_dir = options.data_dir;
  config.store_path = options.store;
  config.handler.git_version = "v1.33.0-lockkeeper." + kcp::BuildVersion().substr(1);
  apiserver::ApiServer server(std::move(config));
  if (const Status s = server.Start(); !s.ok()) return Fail(WithAnotherPort(s));
  Ready("API " + server.url() + "\n  export KUBECONFIG=" + server.kubeconfig_path() + "\n");
  const int code = ending.Wait();
  server.Stop();
  return code;
}

int RunManager(const ManagerRoleOptions& options) {
  Ending ending;
  auto api = OpenApi(options.kubeconfig, options.context, "manager");
  if (!api.ok()) return Fail(api.status());
  auto lease_api = OpenApi(options.kubeconfig, options.context, "manager-election");
  if (!lease_api.ok()) return Fail(lease_api.status());
  if (const Status s = EnsureSystemNamespace(**api); !s.ok()) {
    LogWarn("the system namespace could not be seen yet", {{"error", s.ToString()}});
  }
  if (!options.leader_elect) {
    // Two that act at once would each undo what the other does.
    const Status alone = NobodyLeads(**api, SystemClock().Read());
    if (alone.code() == Code::kBusy) {
      return Fail(Status(alone.code(), alone.message() + "; end it, or start this one without --no-leader-elect"));
    }
    LogWarn("no election: a second manager beside this one is not noticed",
            {{"leads", alone.ok() ? "nobody" : alone.ToString()}});
  }
  FleetOptions fleet_options;
  fleet_options.lease_api = options.leader_elect ? lease_api->get() : nullptr;
  fleet_options.metrics_address = options.metrics_address;
  fleet_options.cancel_calls = [&api] { (*api)->CancelAll(); };
  fleet_options.on_fatal = [](const Status& status) {
    // A lost lease: another may lead already, so nothing is finished in order.
    LogError("giving up", {{"error", status.ToString()}});
    std::_Exit(1);
  };
  Fleet fleet(**api, SystemClock(), std::move(fleet_options));
  if (const Status s = fleet.Start(); !s.ok()) return Fail(s);
  Ready("lockkeeper manager is up\n");
  const int code = ending.Wait();
  if (!InOrder(fleet.Stop())) EndNow(code);
  return code;
}

int RunAgent(const AgentRoleOptions& options) {
  Ending ending;
  auto api = OpenApi(options.kubeconfig, options.context, "agent");
  if (!api.ok()) return Fail(api.status());
  AgentOptions agent_options;
  agent_options.host = options.host;
  agent_options.data_dir = options.data_dir;
  agent_options.version = kcp::BuildVersion();
  agent_options.take_over = options.take_over;
  agent_options.metrics_address = options.metrics_address;
  agent_options.cancel_calls = [&api] { (*api)->CancelAll(); };
  agent_options.on_fatal = [&ending](const Status& status) { ending.Fatal(status); };
  Agent agent(**api, SystemClock(), std::move(agent_options));
  if (const Status s = agent.Start(); !s.ok()) {
    const int failed = Fail(s);
    if (!InOrder(agent.Stop())) EndNow(failed);
    return failed;
  }
  Ready("lockkeeper agent is up: host " + options.host + ", data " + options.data_dir + "\n");
  const int code = ending.Wait();
  const std::string left = agent.LeftRunning();
  const bool in_order = InOrder(agent.Stop());
  if (!left.empty()) std::printf("These run on, as they should:\n%s", left.c_str());
  if (!in_order) EndNow(code);
  return code;
}

int RunFrontRole(const std::vector<std::string>& args) {
  if (args.size() == 1 && (args[0] == "--help" || args[0] == "-h")) {
    std::printf("The TCP front's data plane (started by the agent).\n%s", front::FrontUsage().c_str());
    return 0;
  }
  Result<front::FrontConfig> config = front::FrontConfigFromArgs(args);
  if (!config.ok()) {
    std::fprintf(stderr, "lockkeeper front: %s\n%s", config.status().message().c_str(), front::FrontUsage().c_str());
    return 2;
  }
  config->version = kcp::BuildVersion();
  CancelToken never;
  return front::RunFront(*config, never);
}

}  // namespace lockkeeper
