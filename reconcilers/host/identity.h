// Identity: what tells this host from others and this boot from earlier ones.
//
// Purpose:   machine id, boot id and host name for the ledger, the heartbeat and lease holders.
// Threads:   thread-safe. Failure: a machine without an id gets one that is kept in the agent's data directory.
#pragma once

#include <string>

#include "api/base/status.h"

namespace lockkeeper {

struct HostIdentity {
  std::string machine_id;  // /etc/machine-id, hashed with a fixed text: the id itself is not to leave the machine
  std::string boot_id;
  std::string hostname;  // os.Hostname(): the first part of a client-go lease holder
};

// `data_dir` keeps a made-up id for machines that have none (an image's machine-id may be empty).
Result<HostIdentity> ReadHostIdentity(const std::string& data_dir,
                                      const std::string& machine_id_file = "/etc/machine-id");

}  // namespace lockkeeper
