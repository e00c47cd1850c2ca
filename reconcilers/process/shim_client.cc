#include "reconcilers/process/shim_client.h"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "api/base/file.h"
#include "api/base/unique_fd.h"
#include "reconcilers/host/accounts.h"
#include "reconcilers/process/shim_io.h"

namespace lockkeeper {
namespace {

Status AddAccount(const UnitSpec& spec, shim::Record* out) {
  if (spec.user.empty() && spec.group.empty()) return Status::Ok();
  Account account{geteuid(), getegid(), {}};
  if (!spec.user.empty()) {
    LK_ASSIGN_OR_RETURN(account, FindUser(spec.user));
  }
  if (!spec.group.empty()) {
    LK_ASSIGN_OR_RETURN(account.gid, FindGroup(spec.group));
  }
  if (account.uid == geteuid() && account.gid == getegid()) return Status::Ok();
  if (geteuid() != 0) {
    return Status(Code::kForbidden,
                  "to run " + spec.name + " as user \"" + spec.user + "\" and group \"" + spec.group +
                      "\" the agent must run as root; or leave both out to run it as the agent's user");
  }
  out->AddInt("uid", account.uid);
  out->AddInt("gid", account.gid);
  for (const gid_t g : GroupsOf(account)) out->AddInt("group", g);
  return Status::Ok();
}

// "HOST:PORT" as numbers: the static shim cannot look names up.
Result<std::string> NumericAddress(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) return Status(Code::kInvalid, "listen address \"" + address + "\" has no port");
  std::string host = address.substr(0, colon);
  const std::string port = address.substr(colon + 1);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int rc = getaddrinfo(host.empty() || host == "*" ? nullptr : host.c_str(), port.c_str(), &hints, &found);
  if (rc != 0) return Status(Code::kInvalid, "listen address \"" + address + "\": " + gai_strerror(rc));
  std::array<char, 64> text;
  const int named =
      getnameinfo(found->ai_addr, found->ai_addrlen, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  const bool v6 = found->ai_family == AF_INET6;
  freeaddrinfo(found);
  if (named != 0) return Status(Code::kInvalid, "listen address \"" + address + "\": " + gai_strerror(named));
  return v6 ? "[" + std::string(text.data()) + "]:" + port : std::string(text.data()) + ":" + port;
}

}  // namespace

Result<shim::Record> RenderShimSpec(const UnitSpec& spec, int64_t invocation, const std::string& cgroup) {
  shim::Record out;
  out.Add("unit", spec.name);
  out.AddInt("invocation", invocation);
  for (const std::string& a : spec.argv) out.Add("arg", a);
  for (const auto& [k, v] : spec.env) out.Add("env", k + "=" + v);
  if (!spec.working_directory.empty()) out.Add("cwd", spec.working_directory);
  LK_RETURN_IF_ERROR(AddAccount(spec, &out));
  if (spec.limits.files > 0) out.AddInt("nofile", spec.limits.files);
  if (!cgroup.empty()) out.Add("cgroup", cgroup);
  out.Add("log_dir", spec.log_dir);
  out.AddInt("log_max", spec.log_max_bytes);
  out.AddInt("log_keep", spec.log_keep);
  if (!spec.listen_address.empty()) {
    LK_ASSIGN_OR_RETURN(const std::string address, NumericAddress(spec.listen_address));
    out.Add("listen", address);
  }
  if (spec.restart) out.AddInt("restart", 1);
  return out;
}

Result<int> SpawnShim(const std::string& shim_path, const std::string& run_folder) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  for (int fd = 0; fd < 3; ++fd) posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
  sigset_t set;
  sigemptyset(&set);
  posix_spawnattr_setsigmask(&attributes, &set);
  sigfillset(&set);
  posix_spawnattr_setsigdefault(&attributes, &set);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::string arg0 = shim_path;
  std::string arg1 = run_folder;
  char* argv[] = {arg0.data(), arg1.data(), nullptr};
  char* envp[] = {nullptr};
  pid_t pid = 0;
  const int rc = posix_spawn(&pid, shim_path.c_str(), &actions, &attributes, argv, envp);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (rc != 0) return ErrnoStatus("run the shim", shim_path, rc);
  const UniqueFd pidfd(shim::PidfdOpen(pid));
  pollfd ended = {pidfd.get(), POLLIN, 0};
  const int n = pidfd ? poll(&ended, 1, static_cast<int>(kShimPatience.count() / 1000)) : 1;
  if (n == 0) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    return Status(Code::kTimeout, "the shim of " + run_folder + " was not ready within 5 s");
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return ErrnoStatus("wait for the shim of", run_folder, errno);
  }
  if (WIFSIGNALED(status)) {
    return Status(Code::kUnavailable, "the shim of " + run_folder + " was killed by signal " +
                                          std::to_string(WTERMSIG(status)) + " before it was ready");
  }
  return WEXITSTATUS(status);
}

Result<shim::Record> AskShim(const std::string& run_folder, const std::string& command) {
  const UniqueFd dir(open(run_folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!dir) return ErrnoStatus("open", run_folder, errno);
  const UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!fd) return ErrnoStatus("make a socket for", run_folder, errno);
  const timeval patience = {kShimPatience.count() / 1000000, 0};
  setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  // Through the descriptor, because a socket's path ends at 108 bytes.
  snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", dir.get(), shim::kSocketFile);
  if (connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    return Status(Code::kUnavailable, "the shim of " + run_folder + " does not answer: " + strerror(errno));
  }
  if (send(fd.get(), command.data(), command.size(), MSG_NOSIGNAL) < 0) {
    return Status(Code::kUnavailable, "the shim of " + run_folder + " took no command: " + strerror(errno));
  }
  const auto buffer = std::make_unique<std::array<char, shim::kMaxPacket>>();
  const ssize_t n = recv(fd.get(), buffer->data(), buffer->size(), 0);
  shim::Record answer;
  if (n <= 0 || !shim::Record::Parse(std::string_view(buffer->data(), static_cast<size_t>(n)), &answer)) {
    const bool late = n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    return Status(late ? Code::kTimeout : Code::kUnavailable,
                  "the shim of " + run_folder + (late ? " did not answer \"" : " ended before it answered \"") +
                      command + "\"" + (late ? " within 5 s" : ""));
  }
  return answer;
}

bool ShimAlive(const std::string& unit_folder) {
  const UniqueFd fd(open(JoinPath(unit_folder, shim::kLockFile).c_str(), O_RDWR | O_CLOEXEC));
  return fd && shim::IsLockedByOther(fd.get());
}

Status AwaitNoShim(const std::string& unit_folder, Duration patience) {
  const std::string path = JoinPath(unit_folder, shim::kLockFile);
  const UniqueFd fd(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd) return Status::Ok();
  const Duration until = SystemClock().Read().boot + patience;
  while (shim::IsLockedByOther(fd.get())) {
    if (SystemClock().Read().boot >= until) {
      return Status(Code::kTimeout, "the shim of " + unit_folder + " still lives after " + FormatAge(patience));
    }
    poll(nullptr, 0, 2);  // it ends within a write of its exit record
  }
  return Status::Ok();
}

Status FailureOf(const shim::Record& record) {
  const int error = static_cast<int>(record.GetInt("errno"));
  const std::string what(record.Get("what"));
  if (error == EADDRINUSE) {
    return Status(Code::kBusy,
                  "cannot " + what + ": the address is in use by another process (find it with: ss -ltnp)");
  }
  return Status(ErrnoStatus("", "", error).code(), "cannot " + what + ": " + strerror(error));
}

}  // namespace lockkeeper
