// Places: the ports, folders and kubeconfigs of the peers of one test program.
// Threads: thread-safe. Failure: Status.
#pragma once

#include <string>

#include "api/base/status.h"

namespace lockkeeper::peers {

// A port that nobody listens on, outside the range that the kernel gives to outgoing connections: what is restarted
// finds it free again.
int PortToKeep();

// A temporary folder, to be removed by the caller. What test programs that were killed left is removed: their pid
// stands in its name.
Result<std::string> MakeFolder();

struct KubeconfigText {
  std::string server{}, ca_pem{};
  std::string certificate_pem{}, private_key_pem{};  // of the client; may be empty
  std::string token{};                               // may be empty, with nothing at all kubectl asks for a name
  std::string name_space = "default";
};
// One cluster, user and context, all inside.
std::string MakeKubeconfig(const KubeconfigText& text);

}  // namespace lockkeeper::peers
