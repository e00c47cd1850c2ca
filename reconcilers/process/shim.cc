#include "reconcilers/process/shim.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

#include "reconcilers/process/shim_io.h"

namespace lockkeeper::shim {
namespace {

int64_t BootMicros() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<int64_t>(now.tv_sec) * 1000000 + now.tv_nsec / 1000;
}

constexpr int kFifoBytes = 1 << 20;
constexpr int kEndingPollMs = 50;  // descendants that are slow to die after a take-over are looked at this often

}  // namespace

int Shim::Prepare() {
  lock_ = openat(run_, "../lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock_ < 0) return kSpawnFailed;
  if (!LockFile(lock_)) return kSpawnLocked;
  // For the driver that watches for this shim's death; only worth something while the lock is held.
  const std::string self = std::to_string(getpid()) + "\n";
  if (ftruncate(lock_, 0) != 0 || pwrite(lock_, self.data(), self.size(), 0) < 0) errno = 0;
  if (!ReadRecordAt(run_, kSpecFile, &spec_)) {
    RefuseStart({EINVAL, "read the spec"}, true);
    return kSpawnFailed;
  }
  Record record;
  if (ReadRecordAt(run_, kExitFile, &record) || ReadRecordAt(run_, kFailedFile, &record)) return kSpawnNothing;
  const bool was_started = ReadRecordAt(run_, kStartedFile, &record);
  if (was_started &&
      (record.Get("boot") != ReadBootId() || record.GetInt("ticks") == 0 ||
       StartTicks(static_cast<pid_t>(record.GetInt("pid"))) != static_cast<uint64_t>(record.GetInt("ticks")))) {
    return kSpawnNothing;
  }
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGCHLD);
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  signals_ = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
  const int error = OpenSocket();
  if (signals_ < 0 || error != 0 || !OpenOutput()) {
    RefuseStart({error != 0 ? error : errno, "set up the run folder"}, true);
    return kSpawnFailed;
  }
  log_ = std::make_unique<LogPump>(output_read_, std::string(spec_.Get("log_dir")), spec_.GetInt("log_max"),
                                   static_cast<int>(spec_.GetInt("log_keep")));
  deadline_us_ = BootMicros() + static_cast<int64_t>(kPreparedSeconds) * 1000000;
  if (was_started) TakeOver(record);
  return kSpawnReady;
}

int Shim::OpenSocket() {
  unlinkat(run_, kSocketFile, 0);
  socket_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket_ < 0) return errno;
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path, kSocketFile, sizeof kSocketFile);  // relative: the run folder's path may be long
  const mode_t old = umask(0177);
  const bool ok = bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 && listen(socket_, 8) == 0;
  const int error = errno;
  umask(old);
  return ok ? 0 : error;
}

bool Shim::OpenOutput() {
  if (mkfifoat(run_, kOutputFile, 0600) != 0 && errno != EEXIST) return false;
  output_read_ = openat(run_, kOutputFile, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  output_write_ = openat(run_, kOutputFile, O_RDWR | O_CLOEXEC);
  if (output_read_ < 0 || output_write_ < 0) return false;
  fcntl(output_write_, F_SETPIPE_SZ, kFifoBytes);  // refused over a user's limit: 64 KiB then
  if (!spec_.Get("uid").empty()) {
    // So that the process may open /dev/stderr again under its own user.
    return fchown(output_write_, static_cast<uid_t>(spec_.GetInt("uid")), static_cast<gid_t>(-1)) == 0;
  }
  return true;
}

// The first shim was killed: the process runs on, is no child of ours, and still writes to the FIFO.
void Shim::TakeOver(const Record& started) {
  started_ = started;
  pid_ = static_cast<pid_t>(started.GetInt("pid"));
  restarts_ = started.GetInt("restarts");
  pidfd_ = PidfdOpen(pid_);
  state_ = State::kRunning;
  started_us_ = BootMicros();
  oom_baseline_ = OomKills();
  if (pidfd_ < 0) {
    ProcessGone(0, false);
  } else if (!spec_.Get("listen").empty()) {
    // The listener lives on in the process; without the right to take it, it is bound again when the process ends.
    listener_ = static_cast<int>(syscall(SYS_pidfd_getfd, pidfd_, 3, 0));
    if (listener_ >= 0) fcntl(listener_, F_SETFD, FD_CLOEXEC);
  }
}

int Shim::Run() {
  while (state_ != State::kEnded) {
    pollfd fds[4] = {{signals_, POLLIN, 0}, {socket_, POLLIN, 0}, {output_read_, POLLIN, 0}, {pidfd_, POLLIN, 0}};
    const int n = poll(fds, 4, Timeout());
    if (n < 0 && errno != EINTR) return 1;
    if (fds[2].revents != 0) log_->Pump(16);
    const int64_t now = BootMicros();
    if (state_ == State::kRunning && !process_gone_ && now - oom_read_us_ > 1000000) {
      oom_read_us_ = now;
      oom_baseline_ = OomKills();
    }
    if (fds[0].revents != 0) {
      signalfd_siginfo info;
      while (read(signals_, &info, sizeof info) == sizeof info) {
      }
    }
    Reap();
    if (fds[3].revents != 0 && pidfd_ >= 0) {
      close(pidfd_);
      pidfd_ = -1;
      ProcessGone(0, false);
    }
    if (process_gone_) FinishWhenAlone();
    if (state_ != State::kEnded && fds[1].revents != 0) Serve();
    OnTimer();
  }
  return 0;
}

int Shim::Timeout() const {
  if (process_gone_ && state_ == State::kRunning) return kEndingPollMs;
  if (state_ != State::kPrepared && state_ != State::kBackoff) return -1;
  const int64_t left = deadline_us_ - BootMicros();
  return left <= 0 ? 0 : static_cast<int>(left / 1000 + 1);
}

void Shim::OnTimer() {
  if (state_ != State::kPrepared && state_ != State::kBackoff) return;
  if (BootMicros() < deadline_us_) return;
  if (state_ == State::kPrepared) {
    state_ = State::kEnded;
  } else {
    Start(false);
  }
}

void Shim::Serve() {
  const int client = accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
  if (client < 0) return;
  ucred peer = {};
  socklen_t size = sizeof peer;
  const timeval patience = {0, 200000};  // a client that says nothing must not hold up the output
  setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  char buffer[256];
  if (getsockopt(client, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && (peer.uid == geteuid() || peer.uid == 0)) {
    const ssize_t n = recv(client, buffer, sizeof buffer, 0);
    if (n > 0) {
      const std::string answer = Handle(std::string_view(buffer, static_cast<size_t>(n)));
      send(client, answer.data(), answer.size(), MSG_NOSIGNAL);
    }
  }
  close(client);
}

std::string Shim::Handle(std::string_view command) {
  if (command == "go") {
    if (state_ == State::kPrepared) Start(true);
  } else if (command == "cancel") {
    if (state_ == State::kPrepared) {
      const std::string answer = Answer();
      state_ = State::kEnded;
      return answer;
    }
  } else if (command == "kill" || command.substr(0, 5) == "stop ") {
    stopping_ = true;
    if (state_ == State::kBackoff) {
      WriteExit();
    } else if (state_ == State::kRunning && command == "kill") {
      killed_by_us_ = !process_gone_;
      KillAll();
    } else if (state_ == State::kRunning && !process_gone_) {
      const int number = atoi(std::string(command.substr(5)).c_str());
      if (pidfd_ >= 0) {
        PidfdSignal(pidfd_, number);
      } else {
        kill(pid_, number);  // our child, not reaped yet: the number is its own
      }
    }
  }
  return Answer();
}

std::string Shim::Answer() const {
  Record answer;
  if (!failed_.empty() && state_ == State::kEnded) {
    answer.Add("state", "failed");
    for (const char* key : {"errno", "what"}) answer.Add(key, failed_.Get(key));
  } else if (state_ == State::kPrepared) {
    answer.Add("state", "prepared");
  } else {
    answer.Add("state", state_ == State::kEnded ? "exited" : state_ == State::kBackoff ? "waiting" : "running");
    for (const char* key : {"pid", "ticks", "boot", "at"}) answer.Add(key, started_.Get(key));
  }
  answer.Add("invocation", spec_.Get("invocation"));
  return answer.Format();
}

void Shim::RefuseStart(const LaunchError& error, bool first) {
  if (!first) {
    // The file may be in the middle of an upgrade: try again for ever.
    return WaitToRestart(0);
  }
  failed_ = Record();
  failed_.AddInt("errno", error.error);
  failed_.Add("what", error.what);
  failed_.Add("invocation", spec_.Get("invocation"));
  failed_.AddInt("at", WallMicros());
  WriteRecordAt(run_, kFailedFile, failed_);  // on a full disk the answer to the go is all there is
  state_ = State::kEnded;
}

void Shim::Start(bool first) {
  LaunchError error;
  const std::string listen(spec_.Get("listen"));
  if (!listen.empty() && listener_ < 0) {
    listener_ = BindListener(listen, &error);
    if (listener_ < 0) return RefuseStart(error, first);
  }
  Launcher launcher(spec_, output_write_, listener_, lock_);
  const pid_t pid = launcher.Fork(&error);
  if (pid == 0) return RefuseStart(error, first);
  Record started;
  started.Add("unit", spec_.Get("unit"));
  started.Add("invocation", spec_.Get("invocation"));
  started.AddInt("pid", pid);
  started.AddInt("ticks", static_cast<int64_t>(StartTicks(pid)));
  started.Add("boot", ReadBootId());
  started.AddInt("at", WallMicros());
  started.AddInt("restarts", restarts_);
  if (listener_ >= 0) started.AddInt("listen_port", ListenerPort(listener_));
  // On disk before the exec: a process that runs without a record would be started a second time.
  if (!ReserveAt(run_, kExitFile) || !WriteRecordAt(run_, kStartedFile, started)) {
    error = {errno, "write the start record in the run folder"};
    launcher.Abandon();
    while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    return RefuseStart(error, first);
  }
  if (!launcher.Exec(&error)) {
    while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    return RefuseStart(error, first);
  }
  started_ = started;
  pid_ = pid;
  process_gone_ = false;
  exit_known_ = true;
  started_us_ = BootMicros();
  oom_baseline_ = OomKills();
  state_ = State::kRunning;
}

// The process itself is left unreaped until its session is dead: so long its number, and with it the session's, is
// nobody else's.
void Shim::Reap() {
  for (const pid_t child : ChildrenOf(getpid())) {
    if (child != pid_ || state_ != State::kRunning) {
      waitpid(child, nullptr, WNOHANG);
      continue;
    }
    siginfo_t info = {};
    if (process_gone_ || waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) != 0) continue;
    if (info.si_pid != child) continue;
    const bool by_exit = info.si_code == CLD_EXITED;
    ProcessGone(by_exit ? info.si_status << 8 : info.si_status & 0x7f, true);
  }
}

void Shim::ProcessGone(int status, bool known) {
  process_gone_ = true;
  exit_status_ = status;
  exit_known_ = known;
  exited_at_ = WallMicros();
  oom_ = known && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && !killed_by_us_ && WasOom();
}

// The exit is recorded when nothing of the session is left: no successor may meet a part of its predecessor.
void Shim::FinishWhenAlone() {
  if (state_ != State::kRunning) return;
  KillAll();
  Reap();
  for (const pid_t child : ChildrenOf(getpid())) {
    if (child != pid_) return;
  }
  if (exit_known_) waitpid(pid_, nullptr, 0);
  log_->Pump(1 << 10);
  if (spec_.GetInt("restart") == 0 || stopping_) return WriteExit();
  ++restarts_;
  WaitToRestart(BootMicros() - started_us_);
}

void Shim::WaitToRestart(int64_t lived_us) {
  state_ = State::kBackoff;
  deadline_us_ = BootMicros() + int64_t{backoff_.AfterLife(lived_us / 1000)} * 1000;
}

void Shim::WriteExit() {
  Record record;
  record.Add("invocation", spec_.Get("invocation"));
  record.AddInt("at", exited_at_);
  if (exit_known_) {
    record.AddInt("code", WIFEXITED(exit_status_) ? WEXITSTATUS(exit_status_) : 0);
    record.AddInt("signal", WIFSIGNALED(exit_status_) ? WTERMSIG(exit_status_) : 0);
  } else {
    record.AddInt("unknown", 1);  // not our child: the kernel told its code to somebody else
  }
  record.AddInt("killed", killed_by_us_ ? 1 : 0);
  record.AddInt("oom", oom_ ? 1 : 0);
  WriteRecordAt(run_, kExitFile, record);
  unlinkat(run_, kSocketFile, 0);
  state_ = State::kEnded;
}

// The process first, by its number while it is unreaped, then its session, then whatever was re-parented to us.
void Shim::KillAll() {
  if (pid_ > 0 && !process_gone_) {
    if (pidfd_ >= 0) {
      PidfdSignal(pidfd_, SIGKILL);
    } else {
      kill(pid_, SIGKILL);
    }
  }
  // After a take-over the number may have gone to somebody else.
  const uint64_t ticks = StartTicks(pid_);
  if (ticks == 0 || ticks == static_cast<uint64_t>(started_.GetInt("ticks"))) KillSession(pid_);
  for (const pid_t child : ChildrenOf(getpid())) kill(child, SIGKILL);
}

bool Shim::WasOom() { return OomKills() > oom_baseline_; }

// Kills by the kernel for memory: of the process's own control group, else of the host.
int64_t Shim::OomKills() const {
  const std::string cgroup(spec_.Get("cgroup"));
  const std::string path = cgroup.empty() ? "/proc/vmstat" : cgroup + "/memory.events";
  std::string text;
  if (!ReadAt(AT_FDCWD, path.c_str(), &text)) return 0;
  const size_t at = text.find("oom_kill ");
  return at == std::string::npos ? 0 : strtoll(text.c_str() + at + 9, nullptr, 10);
}

}  // namespace lockkeeper::shim
