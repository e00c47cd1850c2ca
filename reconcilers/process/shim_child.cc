#include "reconcilers/process/shim_child.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace lockkeeper::shim {
namespace {

enum Stage { kGroup, kUser, kLimits, kFolder, kStreams, kCgroup, kExecute };
struct Report {
  int error;
  int stage;
};

constexpr char kListenPid[] = "LISTEN_PID=";

std::string StageText(int stage, const Record& spec) {
  switch (stage) {
    case kGroup: return "take group " + std::string(spec.Get("gid"));
    case kUser: return "take user " + std::string(spec.Get("uid"));
    case kLimits: return "set the limit of open files to " + std::string(spec.Get("nofile"));
    case kFolder: return "enter the working directory " + std::string(spec.Get("cwd"));
    case kCgroup: return "enter the control group " + std::string(spec.Get("cgroup"));
    case kExecute: return "execute " + std::string(spec.Get("arg"));
    default: return "set up the standard streams";
  }
}

int MoveHigh(int fd) { return fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 10); }

}  // namespace

int BindListener(const std::string& address, LaunchError* error) {
  error->what = "listen on " + address;
  error->error = EINVAL;
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) return -1;
  std::string host = address.substr(0, colon);
  const int port = atoi(address.c_str() + colon + 1);
  sockaddr_storage storage = {};
  socklen_t size = 0;
  if (host.size() > 2 && host.front() == '[') {
    host = host.substr(1, host.size() - 2);
    auto* in6 = reinterpret_cast<sockaddr_in6*>(&storage);
    in6->sin6_family = AF_INET6;
    in6->sin6_port = htons(static_cast<uint16_t>(port));
    size = sizeof *in6;
    if (inet_pton(AF_INET6, host.c_str(), &in6->sin6_addr) != 1) return -1;
  } else {
    auto* in4 = reinterpret_cast<sockaddr_in*>(&storage);
    in4->sin_family = AF_INET;
    in4->sin_port = htons(static_cast<uint16_t>(port));
    size = sizeof *in4;
    if (inet_pton(AF_INET, host.c_str(), &in4->sin_addr) != 1) return -1;
  }
  const int fd = socket(storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int on = 1;
  if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (fd < 0 || bind(fd, reinterpret_cast<sockaddr*>(&storage), size) != 0 || listen(fd, 4096) != 0) {
    error->error = errno;
    if (fd >= 0) close(fd);
    return -1;
  }
  return fd;
}

int ListenerPort(int fd) {
  sockaddr_storage storage = {};
  socklen_t size = sizeof storage;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return 0;
  return ntohs(storage.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&storage)->sin6_port
                                             : reinterpret_cast<sockaddr_in*>(&storage)->sin_port);
}

Launcher::Launcher(const Record& spec, int output, int listener, int lock)
    : spec_(spec), output_(output), listener_(listener), lock_(lock), args_(spec.All("arg")), env_(spec.All("env")) {
  if (listener_ >= 0) {
    env_.push_back("LISTEN_FDS=1");
    env_.push_back(std::string(kListenPid) + "0000000000");  // the child writes its own number
  }
}

pid_t Launcher::Fork(LaunchError* error) {
  int gate[2];
  int report[2];
  error->what = "start a process";
  if (pipe2(gate, O_CLOEXEC) != 0) {
    error->error = errno;
    return 0;
  }
  if (pipe2(report, O_CLOEXEC) != 0) {
    error->error = errno;
    close(gate[0]);
    close(gate[1]);
    return 0;
  }
  const pid_t pid = fork();
  if (pid == 0) {
    // What keeps the shim's death visible must not live on in the child.
    close(gate[1]);
    close(report[0]);
    close(lock_);
    Child(gate[0], report[1]);
  }
  if (pid < 0) error->error = errno;
  close(gate[0]);
  close(report[1]);
  gate_ = gate[1];
  report_ = report[0];
  if (pid < 0) Abandon();
  return pid < 0 ? 0 : pid;
}

bool Launcher::Exec(LaunchError* error) {
  const char go = 1;
  const bool opened = write(gate_, &go, 1) == 1;
  Report report = {ECANCELED, kExecute};
  ssize_t n = -1;
  do {
    n = read(report_, &report, sizeof report);
  } while (n < 0 && errno == EINTR);
  Abandon();
  if (opened && n == 0) return true;  // closed by exec
  error->error = report.error;
  error->what = StageText(report.stage, spec_);
  return false;
}

void Launcher::Abandon() {
  Close(&gate_);
  Close(&report_);
}

void Launcher::Close(int* fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

void Launcher::Child(int gate, int report) {
  const auto fail = [&report](Stage stage) {
    const Report r = {errno, stage};
    if (write(report, &r, sizeof r) != sizeof r) _exit(126);
    _exit(127);
  };
  char go = 0;
  ssize_t n = -1;
  do {
    n = read(gate, &go, 1);
  } while (n < 0 && errno == EINTR);
  if (n != 1) _exit(125);  // the shim is gone: nothing was started

  setsid();
  for (int s = 1; s < NSIG; ++s) signal(s, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  umask(022);

  report = MoveHigh(report);
  const int output = MoveHigh(output_);
  const int listener = MoveHigh(listener_);
  const int null = MoveHigh(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (dup2(null, 0) < 0 || dup2(output, 1) < 0 || dup2(output, 2) < 0) fail(kStreams);
  if (listener >= 0 && dup2(listener, 3) < 0) fail(kStreams);

  const std::string cgroup(spec_.Get("cgroup"));
  if (!cgroup.empty()) {
    const int procs = open((cgroup + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC);
    if (procs < 0 || write(procs, "0", 1) != 1) fail(kCgroup);
  }
  if (spec_.GetInt("nofile") > 0) {
    const auto files = static_cast<rlim_t>(spec_.GetInt("nofile"));
    const rlimit limit = {files, files};
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) fail(kLimits);
  }
  // The driver resolved the names: a static program cannot load the host's name services.
  if (!spec_.Get("gid").empty()) {
    std::vector<gid_t> groups;
    for (const std::string& g : spec_.All("group"))
      groups.push_back(static_cast<gid_t>(strtoul(g.c_str(), nullptr, 10)));
    const auto gid = static_cast<gid_t>(spec_.GetInt("gid"));
    if (geteuid() == 0 && setgroups(groups.size(), groups.data()) != 0) fail(kGroup);
    if (setresgid(gid, gid, gid) != 0) fail(kGroup);
  }
  if (!spec_.Get("uid").empty()) {
    const auto uid = static_cast<uid_t>(spec_.GetInt("uid"));
    if (setresuid(uid, uid, uid) != 0) fail(kUser);
  }
  const std::string cwd(spec_.Get("cwd"));
  if (!cwd.empty() && chdir(cwd.c_str()) != 0) fail(kFolder);

  std::vector<char*> argv;
  for (std::string& a : args_) argv.push_back(a.data());
  argv.push_back(nullptr);
  std::vector<char*> envp;
  for (std::string& e : env_) {
    if (listener >= 0 && e.compare(0, sizeof kListenPid - 1, kListenPid) == 0) {
      e = kListenPid + std::to_string(getpid());
    }
    envp.push_back(e.data());
  }
  envp.push_back(nullptr);
  errno = EINVAL;
  if (argv[0] != nullptr) execve(argv[0], argv.data(), envp.data());
  fail(kExecute);
  _exit(127);
}

}  // namespace lockkeeper::shim
