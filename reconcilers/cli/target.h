// Target: what a person names on the command line, as kubectl prints it or bare.
//
// Purpose: "kcp", "srv/kcp" and "server.lockkeeper.dev/kcp" are one Server; "up", "upgrade/up", "roll/up" an operation.
// Threads: pure, but for FindServer, which asks the API. Failure: kInvalid for another kind, kNotFound with the way
// out.
#pragma once

#include <string>

#include "api/types/server.h"
#include "controller/api.h"

namespace lockkeeper::cli {

struct OperationTarget {
  std::string kind;  // Upgrade, Roll, or "" for either
  std::string name;
};
Result<OperationTarget> ParseOperation(const std::string& text);
Result<std::string> ParseServer(const std::string& text);

Status NoSuchServer(const std::string& ns, const std::string& name);
Status NoSuchOperation(const std::string& ns, const OperationTarget& target);

Result<Server> FindServer(Api& api, const std::string& ns, const std::string& name);

}  // namespace lockkeeper::cli
