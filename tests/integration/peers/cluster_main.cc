// Starts a Cluster with our CRDs, prints "KUBECONFIG ETCD_PID API_SERVER_PID" and keeps it until it is ended. For the
// fixture's own test, and for a person who wants to try something on it.
#include <signal.h>
#include <unistd.h>

#include <cstdio>

#include "tests/support/peers/cluster.h"

int main() {
  using lockkeeper::peers::Cluster;
  using lockkeeper::peers::Part;
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGINT);
  sigaddset(&ends, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &ends, nullptr);
  const auto cluster = Cluster::Start();
  const lockkeeper::Status ready = cluster.ok() ? (*cluster)->InstallCrds() : cluster.status();
  if (!ready.ok()) {
    std::fprintf(stderr, "%s\n", ready.ToString().c_str());
    return 1;
  }
  std::printf("%s %d %d\n", (*cluster)->kubeconfig().c_str(), (*cluster)->pid(Part::kEtcd),
              (*cluster)->pid(Part::kApiServer));
  std::fflush(stdout);
  int received = 0;
  ::sigwait(&ends, &received);
  return 0;
}
