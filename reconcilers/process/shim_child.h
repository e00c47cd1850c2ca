// Launching the process of a spec: everything between fork and exec.
//
// Purpose:   rlimits, user, folder, environment, standard streams, the inherited listener; errors of exec come back
//            with errno and the step that failed.
// Ownership: a Launcher borrows the spec and the descriptors. Threads: one. Failure: LaunchError.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "reconcilers/process/shim_protocol.h"

namespace lockkeeper::shim {

struct LaunchError {
  int error = 0;     // errno
  std::string what;  // "execute /path/to/file"
};

// A listener for LISTEN_FDS at a numeric address ("127.0.0.1:443", "[::]:443"); -1 with `error` filled.
int BindListener(const std::string& address, LaunchError* error);
// The port a listener is bound to, 0 when it cannot be told.
int ListenerPort(int fd);

class Launcher {
 public:
  Launcher(const Record& spec, int output, int listener, int lock);

  // Forks a child that waits at a gate before it execs. 0 with `error` when it could not fork.
  pid_t Fork(LaunchError* error);
  // Opens the gate; true once the child has exec'd. Otherwise the child is ending by itself.
  bool Exec(LaunchError* error);
  // Closes the gate: the child ends without an exec.
  void Abandon();

 private:
  [[noreturn]] void Child(int gate, int report);
  void Close(int* fd);

  const Record& spec_;
  int output_;
  int listener_;
  int lock_;
  std::vector<std::string> args_;
  std::vector<std::string> env_;
  int gate_ = -1;
  int report_ = -1;
};

}  // namespace lockkeeper::shim
