#include "tests/support/peers/programs.h"

#include <unistd.h>

#include <cstdlib>

#include "api/base/file.h"
#include "tests/support/subprocess.h"

namespace lockkeeper::peers {
namespace {

std::string Environment(const char* name) {
  const char* value = ::getenv(name);
  return value != nullptr ? value : "";
}

}  // namespace

Result<std::string> FindProgram(const std::string& name) {
  std::string folder = Environment("LK_PEERS");
  if (folder.empty()) folder = LK_PEERS_DIR;
  for (const std::string& place : {folder, Environment("KUBEBUILDER_ASSETS")}) {
    if (place.empty()) continue;
    const std::string path = JoinPath(place, name);
    if (::access(path.c_str(), X_OK) == 0) return path;
  }
  return Status(Code::kNotFound, "no " + name + ": `make peers` builds it where Go is, KUBEBUILDER_ASSETS may name it");
}

Result<std::string> FindKcp() {
  const std::string path = Environment("LOCKKEEPER_KCP");
  if (path.empty())
    return Status(Code::kNotFound, "no kcp: LOCKKEEPER_KCP names none, and it is not to be had as Go modules");
  if (::access(path.c_str(), X_OK) != 0) return Status(Code::kInvalid, "LOCKKEEPER_KCP is no program: " + path);
  return path;
}

Ran RunKubectl(const std::string& kubeconfig, const std::string& home, std::vector<std::string> args,
               const std::string& stdin_text) {
  const Result<std::string> kubectl = FindProgram("kubectl");
  if (!kubectl.ok()) return {127, "", kubectl.status().ToString()};
  SubprocessOptions options;
  options.argv = {*kubectl};
  options.argv.insert(options.argv.end(), args.begin(), args.end());
  options.env = {{"KUBECONFIG", kubeconfig}, {"HOME", home}, {"KUBECACHEDIR", JoinPath(home, "kubectl-cache")}};
  options.stdin_text = stdin_text;
  options.dies_with_us = true;
  Result<Subprocess> child = Subprocess::Start(options);
  if (!child.ok()) return {127, "", child.status().ToString()};
  const Result<int> code = child->Wait(std::chrono::minutes(2));
  if (!code.ok()) return {127, child->out(), code.status().ToString()};
  return {*code, child->out(), child->err()};
}

}  // namespace lockkeeper::peers
