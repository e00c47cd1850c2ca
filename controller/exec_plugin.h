// RunExecPlugin: one run of a client.authentication.k8s.io command.
//
// Purpose:   posix_spawn with an argument vector, never a shell; no descriptor of ours but the three standard ones;
//            standard error passes through to ours, standard input is empty.
// Threads:   thread-safe.
// Failure:   names the command, its exit status and the plugin's install hint; kTimeout after its deadline, and the
//            child is killed. Output is never quoted: it may hold a token.
#pragma once

#include <optional>

#include "controller/credentials.h"

namespace lockkeeper {

struct ExecResult {
  Credentials credentials;
  std::optional<Time> expires;
};

Result<ExecResult> RunExecPlugin(const ExecPlugin& plugin);
// The ExecCredential that such a command printed. `api_version` must be the one that was asked for.
Result<ExecResult> ParseExecCredential(const std::string& output, const std::string& api_version);

}  // namespace lockkeeper
