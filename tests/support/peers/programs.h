// Programs: where the peers' binaries are, and how a test runs kubectl.
//
// Purpose:   kube-apiserver, etcd, etcdctl, etcdutl, kubectl, informer, election, manager as scripts/peers.sh makes
//            them; kcp, which cannot be had that way, by LOCKKEEPER_KCP.
// Threads:   thread-safe.
// Failure:   kNotFound says in one line what is missing and how to get it: the text of a skipped test.
#pragma once

#include <string>
#include <vector>

#include "api/base/status.h"

namespace lockkeeper::peers {

// Looked for in $LK_PEERS (else build/peers of the tree), then in $KUBEBUILDER_ASSETS.
Result<std::string> FindProgram(const std::string& name);
// What LOCKKEEPER_KCP names.
Result<std::string> FindKcp();

struct Ran {
  int exit = 0;  // 128 + signal for one that was killed
  std::string out;
  std::string err;
  std::string All() const { return "exit " + std::to_string(exit) + "\n" + out + err; }
};

// One kubectl call to its end (at most two minutes), caches in `home`. A kubectl that cannot be started exits 127.
Ran RunKubectl(const std::string& kubeconfig, const std::string& home, std::vector<std::string> args,
               const std::string& stdin_text = "");

}  // namespace lockkeeper::peers
