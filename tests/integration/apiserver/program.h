// Program: runs other programs from a test: to their end, or beside it.
//
// Ownership: a Program kills what it started when it goes. Threads: one thread per Program.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "api/base/unique_fd.h"

namespace lockkeeper {

class Program {
 public:
  // Looks argv[0] up on PATH. `environment` is added to the test's own, "NAME=VALUE" each.
  Program(const std::vector<std::string>& argv, const std::vector<std::string>& environment = {});
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  pid_t pid() const { return pid_; }
  // Reads standard output until it holds `text`; false at its end or after `patience`.
  bool WaitForOutput(const std::string& text, std::chrono::milliseconds patience = std::chrono::seconds(20));
  void Signal(int number);
  // Reads everything and reaps: the exit code, or 128 + the signal. -1 after `patience` (it is killed then).
  int Wait(std::chrono::milliseconds patience = std::chrono::seconds(60));

  const std::string& output() const { return output_; }
  const std::string& errors() const { return errors_; }

 private:
  // Reads what is there, waiting up to `patience`; false at the end of both.
  bool ReadSome(std::chrono::milliseconds patience);

  pid_t pid_ = -1;
  UniqueFd out_;
  UniqueFd err_;
  std::string output_;
  std::string errors_;
};

// Whether a program of this name is on PATH.
bool OnPath(const std::string& name);

}  // namespace lockkeeper
