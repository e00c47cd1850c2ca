// Options: the command line of `kcp start`.
//
// Purpose:   the flags of kcp that a roll needs, parsed as kcp parses them; any other flag is refused.
// Ownership: values.
// Threads:   values.
// Failure:   kInvalid with the sentence that is printed before exit code 1.
#pragma once

#include <string>
#include <vector>

#include "api/base/status.h"
#include "api/base/time.h"

namespace lockkeeper::kcp {

struct Options {
  // Empty: no files at all; certificates and tokens by flag.
  std::string root_directory = ".kcp";
  // "embedded" (a store below the root directory that no second process can open) or "sqlite:///path".
  std::string etcd_servers = "embedded";
  std::string bind_address = "0.0.0.0";
  int secure_port = 6443;
  bool bind_free_port = false;
  std::string external_hostname;
  std::string cert_dir;  // default: the root directory
  std::string tls_cert_file;
  std::string tls_private_key_file;
  std::string token_auth_file;
  std::string shard_name = "root";
  std::string shard_base_url;
  std::string shard_external_url;
  std::string shard_virtual_workspace_url;
  bool leader_election = false;
  std::string lease_namespace = "kube-system";
  std::string lease_name = "kcp-controllers";
  Duration shutdown_delay{0};
  bool shutdown_send_retry_after = false;
  Duration shutdown_watch_grace{0};
  double goaway_chance = 0;  // 0 to 0.02 as kube-apiserver allows; more is allowed here, for tests
  // Of this stand-in only.
  std::string request_log;    // JSON lines, appended
  std::string reconcile_log;  // JSON lines, appended

  // The file of sqlite:///path, or the embedded store's.
  std::string StorePath() const;
  bool embedded_store() const { return etcd_servers == "embedded"; }
};

// `args` stand behind "start": "--flag=value", "--flag value"; a boolean flag alone is true. The last of a
// repeated flag counts.
Result<Options> ParseStartFlags(const std::vector<std::string>& args);

// One line per flag.
std::string StartUsage();

}  // namespace lockkeeper::kcp
