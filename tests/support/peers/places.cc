#include "tests/support/peers/places.h"

#include <arpa/inet.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <random>

#include "api/base/file.h"
#include "api/base/json.h"
#include "api/base/sync.h"
#include "api/base/unique_fd.h"
#include "controller/base64.h"

namespace lockkeeper::peers {
namespace {

constexpr char kPrefix[] = "lockkeeper-peers-";

std::string TemporaryFolder() {
  const char* tmp = ::getenv("TMPDIR");
  return tmp != nullptr ? tmp : "/tmp";
}

void RemoveLeftOvers() {
  const Result<std::vector<std::string>> names = ListDir(TemporaryFolder());
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    if (!name.starts_with(kPrefix)) continue;
    const long pid = std::strtol(name.c_str() + sizeof kPrefix - 1, nullptr, 10);
    if (pid > 0 && ::kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH) {
      (void)RemoveTree(JoinPath(TemporaryFolder(), name)).ok();
    }
  }
}

bool IsFree(int port) {
  const UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  return ::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
}

}  // namespace

int PortToKeep() {
  static Mutex mutex;
  static std::mt19937 random(std::random_device{}());
  MutexLock lock(mutex);
  for (;;) {
    const int port = std::uniform_int_distribution<int>(20000, 32000)(random);
    if (IsFree(port)) return port;
  }
}

Result<std::string> MakeFolder() {
  RemoveLeftOvers();
  std::string pattern = JoinPath(TemporaryFolder(), kPrefix + std::to_string(::getpid()) + "-XXXXXX");
  if (::mkdtemp(pattern.data()) == nullptr) return ErrnoStatus("making", pattern, errno);
  return pattern;
}

std::string MakeKubeconfig(const KubeconfigText& text) {
  const auto named = [](const char* what, Json value) {
    return Json::MakeArray({Json::MakeObject({{"name", "peers"}, {what, std::move(value)}})});
  };
  Json cluster = Json::MakeObject({{"server", text.server},
                                   {"certificate-authority-data", Base64Encode(text.ca_pem)},
                                   {"disable-compression", true}});
  Json user = Json::MakeObject();
  if (!text.certificate_pem.empty()) {
    user.Set("client-certificate-data", Base64Encode(text.certificate_pem));
    user.Set("client-key-data", Base64Encode(text.private_key_pem));
  }
  if (!text.token.empty()) user.Set("token", text.token);
  Json context = Json::MakeObject({{"cluster", "peers"}, {"user", "peers"}, {"namespace", text.name_space}});
  return Json::MakeObject({{"apiVersion", "v1"},
                           {"kind", "Config"},
                           {"current-context", "peers"},
                           {"clusters", named("cluster", std::move(cluster))},
                           {"users", named("user", std::move(user))},
                           {"contexts", named("context", std::move(context))}})
      .Dump();
}

}  // namespace lockkeeper::peers
