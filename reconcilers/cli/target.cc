#include "reconcilers/cli/target.h"

#include "api/types/roll.h"
#include "api/types/upgrade.h"
#include "controller/typed.h"

namespace lockkeeper::cli {
namespace {

// The kind before the slash, without a group ("" when there is none), and the name behind it.
std::pair<std::string, std::string> Split(const std::string& text) {
  const size_t slash = text.find('/');
  if (slash == std::string::npos) return {"", text};
  return {text.substr(0, std::min(slash, text.find('.'))), text.substr(slash + 1)};
}

}  // namespace

Result<OperationTarget> ParseOperation(const std::string& text) {
  auto [kind, name] = Split(text);
  if (kind == "upg" || kind == "upgrade" || kind == "upgrades")
    return OperationTarget{std::string(Upgrade::kKind), name};
  if (kind == "roll" || kind == "rolls") return OperationTarget{std::string(Roll::kKind), name};
  if (text.find('/') == std::string::npos) return OperationTarget{"", name};
  return Status(Code::kInvalid, "\"" + text + "\" names no operation: give NAME, upgrade/NAME or roll/NAME");
}

Result<std::string> ParseServer(const std::string& text) {
  auto [kind, name] = Split(text);
  if (kind == "srv" || kind == "server" || kind == "servers" || text.find('/') == std::string::npos) return name;
  return Status(Code::kInvalid, "\"" + text + "\" names no Server: give NAME or server/NAME, and the namespace by -n");
}

Status NoSuchServer(const std::string& ns, const std::string& name) {
  return {Code::kNotFound,
          "no Server named \"" + name + "\" in namespace " + ns + "; `lockkeeper status -A` lists all"};
}

Status NoSuchOperation(const std::string& ns, const OperationTarget& target) {
  const std::string kind = target.kind.empty() ? "Upgrade or Roll" : target.kind;
  return {Code::kNotFound,
          "no " + kind + " named \"" + target.name + "\" in namespace " + ns + "; `kubectl get upg,roll -A` lists all"};
}

Result<Server> FindServer(Api& api, const std::string& ns, const std::string& name) {
  Result<Server> server = Get<Server>(api, {ns, name});
  if (server.code() == Code::kNotFound) return NoSuchServer(ns, name);
  return server;
}

}  // namespace lockkeeper::cli
