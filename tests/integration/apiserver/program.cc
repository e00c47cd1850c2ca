#include "tests/integration/apiserver/program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <sstream>

extern char** environ;

namespace lockkeeper {

Program::Program(const std::vector<std::string>& argv, const std::vector<std::string>& environment) {
  int out[2];
  int err[2];
  if (::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(err, O_CLOEXEC) != 0) std::abort();
  out_.Reset(out[0]);
  err_.Reset(err[0]);
  UniqueFd out_end(out[1]);
  UniqueFd err_end(err[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out_end.get(), 1);
  posix_spawn_file_actions_adddup2(&actions, err_end.get(), 2);
  std::vector<char*> args;
  for (const std::string& arg : argv) args.push_back(const_cast<char*>(arg.c_str()));
  args.push_back(nullptr);
  // The added ones first: the first of a name counts.
  std::vector<char*> env;
  for (const std::string& entry : environment) env.push_back(const_cast<char*>(entry.c_str()));
  for (char** entry = environ; *entry != nullptr; ++entry) env.push_back(*entry);
  env.push_back(nullptr);
  const int failed = ::posix_spawnp(&pid_, args[0], &actions, nullptr, args.data(), env.data());
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) {
    pid_ = -1;
    errors_ = "cannot start " + argv[0] + ": errno " + std::to_string(failed);
  }
}

Program::~Program() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
}

void Program::Signal(int number) {
  if (pid_ > 0) ::kill(pid_, number);
}

bool Program::ReadSome(std::chrono::milliseconds patience) {
  if (!out_ && !err_) return false;
  pollfd fds[2] = {{out_.get(), POLLIN, 0}, {err_.get(), POLLIN, 0}};
  if (::poll(fds, 2, static_cast<int>(patience.count())) <= 0) return true;
  for (int i = 0; i < 2; ++i) {
    if (fds[i].revents == 0) continue;
    UniqueFd& fd = i == 0 ? out_ : err_;
    char buffer[8192];
    const ssize_t n = ::read(fd.get(), buffer, sizeof(buffer));
    if (n > 0) {
      (i == 0 ? output_ : errors_).append(buffer, static_cast<size_t>(n));
    } else if (n == 0 || errno != EINTR) {
      fd.Reset();
    }
  }
  return true;
}

bool Program::WaitForOutput(const std::string& text, std::chrono::milliseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (output_.find(text) == std::string::npos) {
    if (std::chrono::steady_clock::now() >= end || !ReadSome(std::chrono::milliseconds(100))) return false;
  }
  return true;
}

int Program::Wait(std::chrono::milliseconds patience) {
  if (pid_ <= 0) return 127;
  const auto end = std::chrono::steady_clock::now() + patience;
  while (ReadSome(std::chrono::milliseconds(100))) {
    if (std::chrono::steady_clock::now() >= end) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
      pid_ = -1;
      return -1;
    }
  }
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool OnPath(const std::string& name) {
  const char* path = ::getenv("PATH");
  std::istringstream parts(path == nullptr ? "" : path);
  for (std::string dir; std::getline(parts, dir, ':');) {
    if (::access((dir + "/" + name).c_str(), X_OK) == 0) return true;
  }
  return false;
}

}  // namespace lockkeeper
