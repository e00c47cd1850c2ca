#include "tests/support/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <deque>
#include <functional>
#include <future>
#include <thread>

#include "api/base/file.h"
#include "api/base/sync.h"

extern char** environ;

namespace lockkeeper {
namespace {

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

std::vector<std::string> Environment(const std::map<std::string, std::string>& more) {
  std::vector<std::string> out;
  for (char** e = environ; *e != nullptr; ++e) {
    const std::string text(*e);
    if (more.count(text.substr(0, text.find('='))) == 0) out.push_back(text);
  }
  for (const auto& [name, value] : more) out.push_back(name + "=" + value);
  return out;
}

// Standard input of the child: a memory file, so that nobody waits for a reader.
UniqueFd InputOf(const std::string& text) {
  UniqueFd fd(::memfd_create("stdin", MFD_CLOEXEC));
  size_t written = 0;
  while (written < text.size()) {
    const ssize_t n = ::write(fd.get(), text.data() + written, text.size() - written);
    if (n <= 0) break;
    written += static_cast<size_t>(n);
  }
  ::lseek(fd.get(), 0, SEEK_SET);
  return fd;
}

void ReadSome(UniqueFd& fd, std::string& into) {
  char buffer[16384];
  const ssize_t n = ::read(fd.get(), buffer, sizeof buffer);
  if (n > 0) {
    into.append(buffer, static_cast<size_t>(n));
  } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
    fd.Reset();
  }
}

// Runs `work` on a thread that lives as long as the process: a child's parent-death signal comes when the thread that
// forked it ends.
pid_t OnLastingThread(std::function<pid_t()> work) {
  using Task = std::packaged_task<pid_t()>;
  struct Queue {
    Mutex mutex;
    CondVar more;
    std::deque<Task> tasks LK_GUARDED_BY(mutex);
  };
  static Queue* const queue = [] {
    auto* made = new Queue;
    std::thread([made] {
      for (;;) {
        Task task;
        {
          MutexLock lock(made->mutex);
          while (made->tasks.empty()) made->more.Wait(made->mutex);
          task = std::move(made->tasks.front());
          made->tasks.pop_front();
        }
        task();
      }
    }).detach();
    return made;
  }();
  Task task(std::move(work));
  std::future<pid_t> done = task.get_future();
  {
    MutexLock lock(queue->mutex);
    queue->tasks.push_back(std::move(task));
  }
  queue->more.NotifyOne();
  return done.get();
}

// As posix_spawn, which cannot ask for the parent-death signal. fds: the child's 0, 1, 2; -1: ours. Answers the pid or
// -errno. The child calls nothing but what may be called between fork and exec.
pid_t SpawnDyingWithUs(char* const* argv, char* const* env, const int (&fds)[3]) {
  const pid_t parent = ::getpid();
  const pid_t pid = ::vfork();  // fork would copy the page tables of a sanitized program
  if (pid != 0) return pid > 0 ? pid : -errno;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(126);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int to = 0; to < 3; ++to) {
    if (fds[to] >= 0) ::dup2(fds[to], to);
  }
  ::execve(argv[0], argv, env);
  ::_exit(127);
}

}  // namespace

Result<Subprocess> Subprocess::Start(const SubprocessOptions& options) {
  Subprocess child;
  UniqueFd out_end, err_end, file;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  const UniqueFd input = InputOf(options.stdin_text);
  posix_spawn_file_actions_adddup2(&actions, input.get(), 0);
  if (!options.output_file.empty()) {
    file.Reset(::open(options.output_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    if (!file) return ErrnoStatus("opening", options.output_file, errno);
    posix_spawn_file_actions_adddup2(&actions, file.get(), 1);
    posix_spawn_file_actions_adddup2(&actions, file.get(), 2);
  } else if (!options.inherit) {
    int out[2], err[2];
    if (::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(err, O_CLOEXEC) != 0) return ErrnoStatus("making", "a pipe", errno);
    child.stdout_.Reset(out[0]);
    child.stderr_.Reset(err[0]);
    out_end.Reset(out[1]);
    err_end.Reset(err[1]);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    posix_spawn_file_actions_adddup2(&actions, err[1], 2);
  }
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  std::vector<std::string> argv = options.argv;
  std::vector<std::string> env = Environment(options.env);
  int rc = 0;
  if (options.dies_with_us) {
    const int out_fd = file ? file.get() : out_end.get(), err_fd = file ? file.get() : err_end.get();
    const int fds[3] = {input.get(), out_fd, err_fd};
    std::vector<char*> args = Pointers(argv), environment = Pointers(env);
    const pid_t pid = ::access(argv[0].c_str(), X_OK) != 0
                          ? -errno
                          : OnLastingThread([&] { return SpawnDyingWithUs(args.data(), environment.data(), fds); });
    if (pid > 0) child.pid_ = pid;
    rc = pid < 0 ? -pid : 0;
  } else {
    rc =
        ::posix_spawn(&child.pid_, argv[0].c_str(), &actions, &attributes, Pointers(argv).data(), Pointers(env).data());
  }
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (rc != 0) return ErrnoStatus("starting", options.argv[0], rc);
  child.pidfd_.Reset(static_cast<int>(::syscall(SYS_pidfd_open, child.pid_, 0)));
  return child;
}

Subprocess::Subprocess(Subprocess&& other) noexcept { *this = std::move(other); }

Subprocess& Subprocess::operator=(Subprocess&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(pidfd_, other.pidfd_);
  std::swap(stdout_, other.stdout_);
  std::swap(stderr_, other.stderr_);
  std::swap(out_, other.out_);
  std::swap(err_, other.err_);
  return *this;
}

Subprocess::~Subprocess() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void Subprocess::Signal(int signal) {
  if (pid_ > 0) ::syscall(SYS_pidfd_send_signal, pidfd_.get(), signal, nullptr, 0);
}

void Subprocess::Drain(int timeout_ms) {
  pollfd fds[3] = {{pidfd_.get(), POLLIN, 0}, {stdout_.get(), POLLIN, 0}, {stderr_.get(), POLLIN, 0}};
  if (::poll(fds, 3, timeout_ms) <= 0) return;
  if (fds[1].revents != 0) ReadSome(stdout_, out_);
  if (fds[2].revents != 0) ReadSome(stderr_, err_);
}

Result<int> Subprocess::Wait(std::chrono::milliseconds timeout) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  int status = 0;
  for (;;) {
    const pid_t done = ::waitpid(pid_, &status, WNOHANG);
    if (done == pid_) break;
    if (done < 0) return ErrnoStatus("waiting for", "a child", errno);
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return Status(Code::kTimeout, "process " + std::to_string(pid_) + " still runs");
    Drain(static_cast<int>(std::min<int64_t>(left.count(), 1000)));
  }
  pid_ = -1;
  // What is left in the pipes; a grandchild may hold them open, so nobody waits for their end.
  for (UniqueFd* fd : {&stdout_, &stderr_}) {
    pollfd p{fd->get(), POLLIN, 0};
    while (*fd && ::poll(&p, 1, 0) > 0) ReadSome(*fd, fd == &stdout_ ? out_ : err_);
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

Result<std::string> RunProcess(const SubprocessOptions& options, std::chrono::milliseconds timeout) {
  LK_ASSIGN_OR_RETURN(Subprocess child, Subprocess::Start(options));
  LK_ASSIGN_OR_RETURN(const int code, child.Wait(timeout));
  if (code != 0) {
    std::string command;
    for (const std::string& arg : options.argv) command += (command.empty() ? "" : " ") + arg;
    return Status(Code::kInternal, command + " exited with " + std::to_string(code) + ": " + child.err() + child.out());
  }
  return child.out();
}

}  // namespace lockkeeper
