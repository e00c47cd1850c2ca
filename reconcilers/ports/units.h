// Units: the port to the processes of one host (driver Process; Systemd and Container come behind the same port).
//
// Purpose:   start, observe and stop one incarnation of a server process, companion or front, each under a
//            small shim (slot-shim) that outlives the agent.
// Ownership: a Units outlives its callers; listeners are called until it is destroyed.
// Threads:   thread-safe; a call may block for the call's own deadline (5 s), never for the process's life.
// Failure:   an error means "not known", never "not there". Effects name their target by unit, invocation,
//            pid and start time: kPrecondition when another process stands there.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "api/base/time.h"

namespace lockkeeper {

struct UnitLimits {
  int64_t files = 0;         // RLIMIT_NOFILE; 0: inherited
  int64_t memory_bytes = 0;  // RLIMIT_AS is not it; cgroup when there is one, else ignored with a warning
  double cpu = 0;            // cores; cgroup when there is one
  bool operator==(const UnitLimits&) const = default;
};

// A process to run, fully rendered: nothing is looked up later.
struct UnitSpec {
  std::string name;                        // "lk-NAMESPACE-SERVER-SLOT-INCARNATION": file-name safe, <= 200 bytes
  std::vector<std::string> argv;           // argv[0] is an absolute path
  std::map<std::string, std::string> env;  // the whole environment
  std::string working_directory;
  std::string user;  // empty: the agent's own
  std::string group;
  UnitLimits limits;
  std::string log_dir;  // current.log and rotated ones
  int64_t log_max_bytes = 10 << 20;
  int log_keep = 3;
  std::string listen_address;  // a listener bound by the shim and passed as LISTEN_FDS, or ""
  bool restart = false;        // the shim starts the process again when it ends (the front), with back-off
  bool operator==(const UnitSpec&) const = default;
};

// One process, named so that an effect cannot hit its successor.
struct UnitIdentity {
  std::string unit;
  int64_t invocation = 0;
  pid_t pid = 0;
  uint64_t start_ticks = 0;  // field 22 of /proc/PID/stat
  std::string boot_id;
  bool operator==(const UnitIdentity&) const = default;
};

struct UnitExit {
  Time at{};
  int code = 0;
  int signal = 0;             // 0: ended by exit()
  bool killed_by_us = false;  // by Kill()
  bool oom = false;
  bool operator==(const UnitExit&) const = default;
};

struct UnitStatus {
  enum class State {
    kPrepared,  // the shim waits for the go; nothing was executed
    kRunning,
    kExited,  // the exit record is there, or the process is gone without one (exit is empty then)
  };
  State state = State::kExited;
  UnitIdentity id;
  Time started_at{};  // exec
  std::optional<UnitExit> exit;
  bool shim_alive = false;
  std::vector<int> listen_ports;  // TCP ports in LISTEN of the process and its children, oldest socket first
  std::string executable;         // readlink of /proc/PID/exe
  int64_t restarts = 0;           // of a unit with restart
  // Why this invocation could not be started (nothing was executed): kExited with pid 0 and this. Names the file or
  // the address, with errno's text.
  Status failure;
  bool operator==(const UnitStatus&) const = default;
};

// Who keeps a port from being listened on.
struct PortHolder {
  pid_t pid = 0;        // 0: it cannot be told
  std::string command;  // its name, "" when it cannot be told
  bool operator==(const PortHolder&) const = default;
};

class Units {
 public:
  virtual ~Units() = default;

  // kNotFound: no such unit on this host and boot (a record of an earlier boot counts as exited, HostReboot).
  virtual Result<UnitStatus> Inspect(const std::string& unit) = 0;

  // Starts invocation `invocation` of the unit. Repeating is harmless: the same invocation running or exited
  // is ok and changes nothing; another one running is kPrecondition.
  virtual Status Start(const UnitSpec& spec, int64_t invocation) = 0;

  // Sends `signal` to exactly this process. Gone already is ok.
  virtual Status Terminate(const UnitIdentity& id, int signal) = 0;
  // SIGKILL to the whole session of exactly this process.
  virtual Status Kill(const UnitIdentity& id) = 0;
  // Forgets an exited or prepared unit (its run folder goes, its logs stay). kPrecondition while it runs.
  virtual Status Reset(const std::string& unit) = 0;

  // SHA-256 of the running executable's bytes (/proc/PID/exe), cached by device, inode and mtime.
  virtual Result<std::string> ExecutableSha256(const UnitIdentity& id) = 0;
  // The last `lines` lines of output, secrets masked.
  virtual Result<std::vector<std::string>> LastOutput(const UnitSpec& spec, int lines) = 0;
  // Who listens on this TCP port of 127.0.0.1 or of all addresses; kNotFound: nobody, a server can have it.
  virtual Result<PortHolder> HolderOf(int port) = 0;
  // Units that this host runs or remembers, for sweeping what no ledger record names.
  virtual Result<std::vector<std::string>> List() = 0;

  // Called from another thread when a unit started, began to listen, or ended. Enqueue only. On return the one set
  // before is not running and is never called again.
  virtual void SetListener(std::function<void(const std::string& unit)> listener) = 0;
};

}  // namespace lockkeeper
