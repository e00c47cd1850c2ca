// Subprocess: a child process of a test or of the demo: started by argv, waited for with a deadline, never left behind.
//
// Ownership: the destructor kills (SIGKILL) and reaps what still runs.
// Threads:   one thread per Subprocess.
// Failure:   Status names the program.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "api/base/unique_fd.h"

namespace lockkeeper {

struct SubprocessOptions {
  std::vector<std::string> argv;           // argv[0] is a path
  std::map<std::string, std::string> env;  // added to ours
  std::string stdin_text;                  // written and closed
  std::string output_file;                 // both outputs go there; "": captured, unless inherit
  bool inherit = false;                    // both outputs are ours
  bool dies_with_us = false;               // killed by the kernel even when we are
};

class Subprocess {
 public:
  static Result<Subprocess> Start(const SubprocessOptions& options);
  Subprocess(Subprocess&& other) noexcept;
  Subprocess& operator=(Subprocess&& other) noexcept;
  ~Subprocess();

  pid_t pid() const { return pid_; }
  void Signal(int signal);
  // Exit code, or 128 + signal; kTimeout when it still runs (it is left running).
  Result<int> Wait(std::chrono::milliseconds timeout);
  // What was captured; after Wait.
  const std::string& out() const { return out_; }
  const std::string& err() const { return err_; }

 private:
  Subprocess() = default;
  void Drain(int timeout_ms);

  pid_t pid_ = -1;
  UniqueFd pidfd_, stdout_, stderr_;
  std::string out_, err_;
};

// Runs to the end; an exit code other than 0 is kInternal with what it said. Answers its standard output.
Result<std::string> RunProcess(const SubprocessOptions& options,
                               std::chrono::milliseconds timeout = std::chrono::seconds(60));

}  // namespace lockkeeper
