// lockkeeper: one binary, its roles and its verbs. See `lockkeeper --help`.

#include <malloc.h>
#include <openssl/crypto.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "api/base/log.h"
#include "api/server/kcp/build_version.h"
#include "api/server/kcp/kcp.h"
#include "api/types/kind.h"
#include "api/types/yaml.h"
#include "reconcilers/cli/commands.h"
#include "reconcilers/main/roles.h"

namespace lockkeeper {
namespace {

void Print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout), std::fflush(stdout); }

int Report(const Status& status) {
  if (status.ok()) return 0;
  std::string text = status.message();
  const bool refused = text.find("Connection refused") != std::string::npos;
  if (refused && text.find("`lockkeeper up`") == std::string::npos) text += ": is `lockkeeper up` running?";
  std::fprintf(stderr, "lockkeeper: %s\n", text.c_str());
  return 1;
}

// Follows an operation to its end: 0 when it ended well, 2 when it did not.
int Follow(cli::Session& session, const std::string& target, double timeout_seconds) {
  cli::WatchOptions options;
  options.target = target;
  options.terminal = ::isatty(STDOUT_FILENO) == 1;
  options.timeout_seconds = timeout_seconds;
  const Result<Outcome> outcome = cli::Watch(session, options, Print);
  if (!outcome.ok()) return Report(outcome.status());
  return *outcome == Outcome::kSucceeded ? 0 : 2;
}

class App {
 public:
  App() : app_("Upgrades, restarts and rolls API servers without losing a request.", "lockkeeper") {
    app_.require_subcommand(1);
    app_.fallthrough();
    app_.add_option("--kubeconfig", session_.kubeconfig,
                    "how to reach the API; else $KUBECONFIG, else the one in --data");
    session_.data_dir = cli::DefaultDataDir();
    app_.add_option("--context", session_.context, "context of the kubeconfig");
    app_.add_option("-n,--namespace", session_.ns, "namespace; else the context's, else default");
    app_.add_option("--data", session_.data_dir, "data folder of this host; else $LOCKKEEPER_DATA")
        ->capture_default_str();
    app_.add_option("--log-level", log_level_, "debug, info, warn or error")
        ->check(CLI::IsMember({"debug", "info", "warn", "error"}));
    app_.add_flag("--log-json", log_json_, "log lines as JSON");
    app_.set_version_flag("--version", "lockkeeper " + kcp::BuildVersion());
    app_.footer(
        "To begin: lockkeeper up, then kubectl apply -f manifests/samples/ (README.md has the walk-through).\n"
        "Exit codes: 0; 1 for an error; 2 where an operation was followed and did not end well.");
    AddRoles();
    AddReading();
    AddOperations();
    AddTools();
  }

  int Run(int argc, char** argv) {
    try {
      app_.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      return WrongUsage(error);
    }
    const LogLevel level = log_level_ == "debug"   ? LogLevel::kDebug
                           : log_level_ == "warn"  ? LogLevel::kWarn
                           : log_level_ == "error" ? LogLevel::kError
                                                   : LogLevel::kInfo;
    ConfigureLog(level, log_json_ ? LogFormat::kJson : LogFormat::kText);
    return run_();
  }

 private:
  // Asked for help: 0. Otherwise what is wrong, in one line, and 1 as for every other error.
  int WrongUsage(const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app_.exit(error);
    std::string what = error.what();
    const std::vector<CLI::App*> verbs = app_.get_subcommands();
    const bool missing = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError);
    if (verbs.empty() && missing) what = "say what to do, for instance lockkeeper status";
    if (verbs.empty() && !app_.remaining().empty()) what = "there is no verb \"" + app_.remaining().front() + "\"";
    std::fprintf(stderr, "lockkeeper: %s; see lockkeeper%s --help\n", what.c_str(),
                 verbs.empty() ? "" : (" " + verbs.front()->get_name()).c_str());
    return 1;
  }
  CLI::App* Verb(const char* name, const char* what, std::function<int()> run) {
    CLI::App* verb = app_.add_subcommand(name, what);
    verb->callback([this, run = std::move(run)] { run_ = run; });
    return verb;
  }
  template <typename F>
  std::function<int()> InSession(F f) {
    return [this, f] {
      cli::Session session(session_);
      return f(session);
    };
  }

  void AddRoles() {
    CLI::App* up = Verb("up", "API server, manager and agent of this host in one process", [this] {
      up_.data_dir = session_.data_dir;
      return RunUp(up_);
    });
    up->add_option("--listen", up_.listen, "address of the API")->capture_default_str();
    up->add_option("--host", up_.host, "name of this host, as in spec.host")->capture_default_str();
    up->add_option("--metrics", up_.metrics_address, "ADDRESS:PORT of /metrics, /healthz and /readyz; none without it");
    CLI::App* api = Verb("apiserver", "the embedded API server alone", [this] {
      api_.data_dir = session_.data_dir;
      return RunApiServerRole(api_);
    });
    api->add_option("--listen", api_.listen, "address of the API")->capture_default_str();
    api->add_option("--store", api_.store, "store file; two servers may share one");
    CLI::App* manager = Verb("manager", "the fleet's reconcilers, any number of replicas", [this] {
      manager_.kubeconfig = session_.kubeconfig;
      manager_.context = session_.context;
      return RunManager(manager_);
    });
    manager->add_option("--metrics", manager_.metrics_address,
                        "ADDRESS:PORT of /metrics, /healthz and /readyz; none without it");
    manager->add_flag_callback(
        "--no-leader-elect", [this] { manager_.leader_elect = false; }, "for a single replica");
    CLI::App* agent = Verb("agent", "the reconcilers of one host", [this] {
      agent_.kubeconfig = session_.kubeconfig;
      agent_.context = session_.context;
      agent_.data_dir = session_.data_dir;
      return RunAgent(agent_);
    });
    agent->add_option("--host", agent_.host, "name of this host, as in spec.host")->required();
    agent->add_option("--metrics", agent_.metrics_address,
                      "ADDRESS:PORT of /metrics, /healthz and /readyz; none without it");
    agent->add_flag("--take-over", agent_.take_over, "take the host's name from an agent that is silent for 40 s");
    // Its own flags are parsed by the front itself; this entry is for --help.
    app_.add_subcommand("front", "the TCP front's data plane (started by the agent)");
  }

  void AddReading() {
    CLI::App* status =
        Verb("status", "the Servers and what wants attention, or one of them whole",
             InSession([this](cli::Session& s) { return Report(cli::ShowStatus(s, name_, all_, Print)); }));
    status->add_option("server", name_, "one Server");
    status->add_flag("-A,--all-namespaces", all_, "of every namespace");
    CLI::App* watch = Verb("watch", "follow an Upgrade or a Roll to its end, a line a step",
                           InSession([this](cli::Session& s) { return Follow(s, name_, timeout_); }));
    watch->add_option("name", name_, "NAME, upgrade/NAME or roll/NAME")->required();
    watch->add_option("--timeout", timeout_, "seconds to follow it at most; the operation goes on by itself");
    CLI::App* history =
        Verb("history", "operations that ended, newest first",
             InSession([this](cli::Session& s) { return Report(cli::ShowHistory(s, name_, lines_, Print)); }));
    history->add_option("server", name_, "of one Server");
    history->add_option("--limit", lines_, "how many")->capture_default_str()->check(CLI::Range(1, 100000));
    CLI::App* logs =
        Verb("logs", "last output of a slot's process",
             InSession([this](cli::Session& s) { return Report(cli::ShowLogs(s, name_, slot_, lines_, Print)); }));
    logs->add_option("server", name_, "the Server")->required();
    logs->add_option("--slot", slot_, "blue or green; else the active one");
    logs->add_option("--lines", lines_, "how many")->capture_default_str()->check(CLI::Range(1, 10000));
  }

  int FollowNew(cli::Session& session, const Result<std::string>& made, const char* kind) {
    if (!made.ok()) return Report(made.status());
    return wait_ || request_.preflight ? Follow(session, std::string(kind) + "/" + *made, timeout_) : 0;
  }

  void AddOperations() {
    CLI::App* upgrade = Verb("upgrade", "upgrade a Server to a version", InSession([this](cli::Session& s) {
                               return FollowNew(s, cli::MakeUpgrade(s, request_, Print), "upgrade");
                             }));
    upgrade->add_option("server", request_.server, "the Server")->required();
    upgrade->add_option("--version", request_.version, "a tag, latest or main")->required();
    upgrade->add_flag("--plan", request_.preflight, "check, and show the plan when that has ended; touch nothing");
    upgrade->add_flag("--gate", request_.gate, "stop before the flip until approved");
    upgrade->add_flag("--no-rollback", request_.no_rollback, "take no backup, so that no data can be put back");
    upgrade->add_flag("--allow-downgrade", request_.allow_downgrade, "where the version is older than what runs");
    upgrade
        ->add_option("--ready-timeout", request_.ready_timeout_seconds, "seconds until the new process must be ready")
        ->check(CLI::Range(1, 86400));
    CLI::App* restart =
        Verb("restart", "roll a Server to a fresh process of the same build", InSession([this](cli::Session& s) {
               request_.restart = true;
               return FollowNew(s, cli::MakeUpgrade(s, request_, Print), "upgrade");
             }));
    restart->add_option("server", request_.server, "the Server")->required();
    for (CLI::App* verb : {upgrade, restart}) {
      verb->add_option("--name", request_.name, "name of the Upgrade, which is its id; else one is minted");
      verb->add_flag("--wait", wait_, "follow it to its end");
    }
    CLI::App* rollback = Verb("rollback", "roll back to the version before", InSession([this](cli::Session& s) {
                                return FollowNew(s, cli::MakeRollback(s, name_, all_, Print), "roll");
                              }));
    rollback->add_option("server", name_, "the Server")->required();
    rollback->add_flag("--planned-outage", all_, "stop the old slot before the new one starts");
    rollback->add_flag("--wait", wait_, "follow it to its end");
    const auto control = [this](const char* name, const char* what, cli::Control c) {
      CLI::App* verb = Verb(
          name, what, InSession([this, c](cli::Session& s) { return Report(cli::SetControl(s, name_, c, Print)); }));
      verb->add_option("name", name_, "the Upgrade or Roll")->required();
    };
    control("approve", "let an operation pass its gates", cli::Control::kApprove);
    control("pause", "hold an operation at its next safe point", cli::Control::kPause);
    control("resume", "let a paused operation go on", cli::Control::kResume);
    control("abort", "undo an operation, while the old slot still runs", cli::Control::kAbort);
    control("abandon", "end the waiting for an operation nobody will finish", cli::Control::kAbandon);
    CLI::App* retry = Verb("retry", "run a finished operation again under a new name",
                           InSession([this](cli::Session& s) { return Report(cli::Retry(s, name_, Print).status()); }));
    retry->add_option("name", name_, "the Upgrade or Roll")->required();
    for (const bool stop : {true, false}) {
      CLI::App* verb =
          Verb(stop ? "stop" : "start", stop ? "stop a Server's processes, until start" : "start a stopped Server",
               InSession([this, stop](cli::Session& s) { return Report(cli::StopOrStart(s, name_, stop, Print)); }));
      verb->add_option("server", name_, "the Server")->required();
    }
  }

  void AddTools() {
    Verb("crds", "print the CustomResourceDefinitions", [] {
      for (const KindInfo& kind : Kinds()) {
        if (kind.ours) Print("---\n" + ToYaml(CrdOf(kind)));
      }
      return 0;
    });
    Verb("help", "print this", [this] {
      // App::help() would be that of the chosen verb, which is this one.
      Print(app_.get_formatter()->make_help(&app_, "", CLI::AppFormatMode::Normal));
      return 0;
    });
    Verb("version", "print the version", [] {
      Print("lockkeeper " + kcp::BuildVersion() + "\n");
      return 0;
    });
    Verb("completion", "print a bash completion script", [this] {
      std::string verbs;
      for (const CLI::App* verb : app_.get_subcommands({})) verbs += verb->get_name() + " ";
      Print("complete -W '" + verbs + "' lockkeeper kubectl-lockkeeper\n");
      return 0;
    });
  }

  CLI::App app_;
  std::function<int()> run_ = [] { return 1; };
  cli::SessionOptions session_;
  UpOptions up_;
  ApiServerOptions api_;
  ManagerRoleOptions manager_;
  AgentRoleOptions agent_;
  cli::UpgradeRequest request_;
  std::string name_, slot_, log_level_ = "info";
  bool all_ = false, wait_ = false, log_json_ = false;
  double timeout_ = 0;
  int lines_ = 50;
};

// glibc keeps freed memory for each thread (its tcache, up to 7 pieces of each of 64 sizes) and gives none of it back
// before the thread ends: with the 60 threads of `up` that was 5 MB at rest and 9 after 50 rolls (PSS). It can be
// turned off by the environment of a program's start only, so the long-lived roles start themselves once more; what a
// person set is left alone, and so are programs that we start.
void RunWithoutThreadCaches(char** argv) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  constexpr char kName[] = "GLIBC_TUNABLES", kValue[] = "glibc.malloc.tcache_count=0";
  const char* set = std::getenv(kName);
  // With file capabilities glibc takes the variable away at each start: it would be set again and again.
  if (::getauxval(AT_SECURE) != 0) return;
  if (set != nullptr && std::string_view(set) != kValue) return;
  char self[PATH_MAX];
  const ssize_t length = ::readlink("/proc/self/exe", self, sizeof self - 1);
  if (set == nullptr && length > 0) {
    self[length] = '\0';
    ::setenv(kName, kValue, 1);
    ::execv(self, argv);  // by its path: by /proc/self/exe it would be called "exe"; a replaced binary goes on as it is
  }
  ::unsetenv(kName);
#else
  (void)argv;
#endif
}

bool IsLongLived(std::string_view word) {
  return word == "up" || word == "agent" || word == "manager" || word == "apiserver";
}

}  // namespace
}  // namespace lockkeeper

int main(int argc, char** argv) {
  // A peer that closes its end is an error of that write, not of the process.
  std::signal(SIGPIPE, SIG_IGN);
  // A thread a connection would mean an arena a core each, and none gives back what a burst took (glibc's malloc).
  mallopt(M_ARENA_MAX, 2);
  mallopt(M_TRIM_THRESHOLD, 256 << 10);
  // A thread on its way out at exit() would meet what OpenSSL's exit handler has freed.
  OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);
  if (lockkeeper::kcp::IsKcpName(argv[0])) return lockkeeper::kcp::KcpMain(argc, argv);
  if (argc > 1 && std::string_view(argv[1]) == "kcp-like") return lockkeeper::kcp::KcpMain(argc - 1, argv + 1);
  if (argc > 1 && std::string_view(argv[1]) == "front") {
    return lockkeeper::RunFrontRole(std::vector<std::string>(argv + 2, argv + argc));
  }
  if (std::any_of(argv, argv + argc, lockkeeper::IsLongLived)) lockkeeper::RunWithoutThreadCaches(argv);
  return lockkeeper::App().Run(argc, argv);
}
