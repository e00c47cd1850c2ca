// FrontConfig: what a front process is started with.
//
// Purpose:   the arguments of `lockkeeper front`, in both directions: a parse for the process, an argv for whoever
//            starts it.
// Ownership: values. Threads: values.
// Failure:   kInvalid names the flag and what it accepts.
#pragma once

#include <string>
#include <vector>

#include "api/base/json.h"
#include "reconcilers/front/relay.h"

namespace lockkeeper::front {

struct FrontConfig {
  std::string name;    // "NAMESPACE/NAME", for the log
  std::string listen;  // numeric address:port; a listener that was passed (LISTEN_FDS) comes before it
  std::string state_dir;
  std::string admin_path;  // Unix socket
  std::string version;     // told in the status; set by the verb, no flag
  FrontLimits limits;
  bool handle_signals = true;
  bool operator==(const FrontConfig&) const = default;
};

// --name --listen --state --admin, and the limits: --max-connections --hold-connections --hold-seconds
// --connect-timeout-milliseconds --connect-tries --idle-timeout-seconds --fin-timeout-seconds --keepalive-idle-seconds
// --keepalive-interval-seconds --keepalive-count --user-timeout-seconds, and --config FILE: a JSON object with these
// names in camelCase, which flags override. "--flag value" and "--flag=value".
Result<FrontConfig> FrontConfigFromArgs(const std::vector<std::string>& args);
Result<FrontConfig> FrontConfigFromJson(const Json& json);
// All settings, as --config reads them.
Json FrontConfigToJson(const FrontConfig& config);
// A short hash of the limits: what a running front tells, to be compared with what is wanted.
std::string SettingsHash(const FrontConfig& config);
// The arguments behind `lockkeeper front`, defaults left out.
std::vector<std::string> FrontArgs(const FrontConfig& config);

// One line a flag, for --help.
std::string FrontUsage();

// The admin socket of a front below `base_dir`: NAMESPACE.NAME.sock, or a hash where that is too long for a socket's
// path (107 bytes).
std::string FrontAdminPath(const std::string& base_dir, const std::string& ns, const std::string& name);

}  // namespace lockkeeper::front
