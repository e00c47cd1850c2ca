#include "tests/support/peers/places.h"

#include <arpa/inet.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <random>

#include "api/base/file.h"
#include "api/base/sync.h"
#include "api/base/unique_fd.h"

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

}  // namespace lockkeeper::peers
