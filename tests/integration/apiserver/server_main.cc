// The API server as a process of its own, for tests that kill it or run two on one store.
//
// Usage: lk_test_apiserver DATA_DIR [--store PATH] [--kubeconfig PATH] [--port N]
// Prints "ready PORT" on standard output once it serves. SIGTERM stops it.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "api/base/log.h"
#include "api/server/apiserver.h"

int main(int argc, char** argv) {
  using namespace lockkeeper;
  if (argc < 2) return 2;
  apiserver::ApiServerConfig config;
  config.data_dir = argv[1];
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    if (flag == "--store") config.store_path = argv[i + 1];
    if (flag == "--kubeconfig") config.kubeconfig = argv[i + 1];
    if (flag == "--port") config.port = std::atoi(argv[i + 1]);
  }
  ConfigureLog(LogLevel::kWarn, LogFormat::kText);
  signal(SIGPIPE, SIG_IGN);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  CancelToken cancel;
  std::thread waiter([&] {
    int signal_number = 0;
    sigwait(&set, &signal_number);
    cancel.Cancel();
  });
  const int code = apiserver::RunApiServer(std::move(config), cancel, [](apiserver::ApiServer& server) {
    std::printf("ready %d\n", server.port());
    std::fflush(stdout);
  });
  // After a failed start nobody sends the signal.
  if (!cancel.cancelled()) ::kill(::getpid(), SIGTERM);
  waiter.join();
  return code;
}
