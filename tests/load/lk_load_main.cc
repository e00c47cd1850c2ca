// lk-load: puts load on an API server and says what became of each request. See load.h.
//
//   lk-load --kubeconfig admin.kubeconfig --seconds 60
//   lk-load --server https://127.0.0.1:6443 --ca ca.crt --token-file token
//
// Without --seconds it runs until SIGINT or SIGTERM. The result is one JSON object on standard output; the exit
// status is 0 when nothing failed, 1 when something did, 2 when it could not start.
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "api/base/file.h"
#include "api/base/unique_fd.h"
#include "controller/kubeconfig.h"
#include "tests/load/load.h"

namespace lockkeeper::load {
namespace {

struct Options {
  LoadConfig config;
  std::string kubeconfig;
  std::string context;
  std::string ca_file;
  std::string token_file;
  double seconds = 0;
  std::string progress_file;
};

std::string Trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) text.pop_back();
  return text;
}

// Server, roots and credentials of a context; what stands on the command line wins.
Status ReadKubeconfig(Options& options) {
  KubeconfigOptions from;
  from.explicit_path = options.kubeconfig;
  from.context = options.context;
  LK_ASSIGN_OR_RETURN(const RestConfig rest, LoadRestConfig(from));
  LK_ASSIGN_OR_RETURN(const Credentials credentials, rest.credentials->Get());
  LoadConfig& config = options.config;
  if (config.base_url.empty()) config.base_url = rest.server;
  if (config.tls.server_name.empty()) config.tls.server_name = rest.tls_server_name;
  config.tls.ca_pem = rest.ca_pem;
  if (!rest.ca_file.empty()) {
    LK_ASSIGN_OR_RETURN(config.tls.ca_pem, ReadFile(rest.ca_file));
  }
  config.tls.insecure_skip_verify = rest.insecure_skip_verify;
  config.tls.certificate_pem = credentials.certificate_pem;
  config.tls.private_key_pem = credentials.private_key_pem;
  config.token = credentials.token;
  return Status::Ok();
}

Status ReadFiles(Options& options) {
  if (!options.kubeconfig.empty()) LK_RETURN_IF_ERROR(ReadKubeconfig(options));
  if (!options.ca_file.empty()) {
    LK_ASSIGN_OR_RETURN(options.config.tls.ca_pem, ReadFile(options.ca_file));
  }
  if (!options.token_file.empty()) {
    LK_ASSIGN_OR_RETURN(std::string token, ReadFile(options.token_file));
    options.config.token = Trimmed(std::move(token));
  }
  return Status::Ok();
}

// What a script that draws a line per moment wants to know.
Json Progress(const LoadCounts& counts) {
  return Json::MakeObject({{"requests", counts.requests},
                           {"retried", counts.retried},
                           {"failed", counts.failed},
                           {"refused", counts.refused},
                           {"acceptedWrites", counts.accepted_writes},
                           {"watchEvents", counts.watch_events},
                           {"watchReconnects", counts.watch_reconnects}});
}

// Until the time is up or a signal comes; writes the progress file twice a second.
void Wait(const Options& options, int signals, const LoadGenerator& generator) {
  const auto begun = std::chrono::steady_clock::now();
  const auto end = begun + Seconds(options.seconds);
  while (options.seconds <= 0 || std::chrono::steady_clock::now() < end) {
    pollfd fd{signals, POLLIN, 0};
    if (::poll(&fd, 1, 500) > 0) return;
    if (options.progress_file.empty()) continue;
    // A progress file that cannot be written is no reason to stop the load.
    (void)WriteFileAtomic(options.progress_file, Progress(generator.Counts()).Dump() + "\n");
  }
}

int Run(Options& options) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);  // before any thread: they inherit it
  ::signal(SIGPIPE, SIG_IGN);
  const UniqueFd signals(::signalfd(-1, &set, SFD_CLOEXEC));
  const auto fail = [](const Status& status) {
    std::cerr << "lk-load: " << status.ToString() << "\n";
    return 2;
  };
  if (const Status status = ReadFiles(options); !status.ok()) return fail(status);
  LoadGenerator generator(options.config);
  if (const Status status = generator.Start(); !status.ok()) return fail(status);
  Wait(options, signals.get(), generator);
  const LoadResult result = generator.Stop();
  std::cout << result.ToJson().Dump() << "\n";
  return result.Clean() ? 0 : 1;
}

}  // namespace
}  // namespace lockkeeper::load

int main(int argc, char** argv) {
  lockkeeper::load::Options options;
  auto& config = options.config;
  CLI::App app("Puts load on a Kubernetes API server and accounts for every request, write and event");
  auto* kubeconfig = app.add_option("--kubeconfig", options.kubeconfig, "Kubeconfig to take what follows from");
  app.add_option("--context", options.context, "Context of it; the current one when absent")->needs(kubeconfig);
  app.add_option("--server", config.base_url, "Base URL, with /clusters/NAME where there are clusters");
  app.add_option("--ca", options.ca_file, "File with the trusted roots (PEM)");
  app.add_option("--tls-server-name", config.tls.server_name, "Name to check in the certificate");
  app.add_option("--token-file", options.token_file, "File with the bearer token");
  app.add_option("--namespace", config.ns, "Namespace, made when missing")->capture_default_str();
  app.add_option("--connections", config.connections, "Kept-alive connections")
      ->check(CLI::Range(1, 900))
      ->capture_default_str();
  app.add_option("--rate", config.rate, "Requests a second, over all connections")
      ->check(CLI::Range(0.1, 100000.0))
      ->capture_default_str();
  app.add_option("--write-percent", config.write_percent, "Share of writes")
      ->check(CLI::Range(0, 100))
      ->capture_default_str();
  app.add_option("--watchers", config.watchers, "Watches beside them")
      ->check(CLI::Range(0, 900))
      ->capture_default_str();
  app.add_option("--seconds", options.seconds, "How long; 0 until SIGINT or SIGTERM")->capture_default_str();
  app.add_option("--seed", config.seed, "Of the mix of requests")->capture_default_str();
  app.add_option("--progress-file", options.progress_file, "Counts as JSON, rewritten twice a second");
  app.add_flag("!--keep", config.cleanup, "Leave the ConfigMaps behind");
  CLI11_PARSE(app, argc, argv);
  if (options.kubeconfig.empty() && config.base_url.empty()) {
    std::cerr << "lk-load: --kubeconfig or --server says what to put load on\n";
    return 2;
  }
  return lockkeeper::load::Run(options);
}
