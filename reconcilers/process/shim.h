// Shim: the loop of one slot-shim after it has gone into its own session.
//
// Purpose:   waits for the go, starts the process once, keeps its output flowing, reaps it and all its descendants,
//            writes the records. With restart=1 it starts the process again when it ends. In a run folder whose
//            process already runs (its first shim was killed) it takes over output and watching.
// Ownership: owns the lock, socket, FIFO and listener. Threads: one.
// Failure:   what goes wrong before the exec is in `failed` and in the answer to the go; afterwards nothing stops it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "reconcilers/process/shim_child.h"
#include "reconcilers/process/shim_log.h"
#include "reconcilers/process/shim_protocol.h"

namespace lockkeeper::shim {

class Shim {
 public:
  // `run` is the run folder, also the working directory.
  explicit Shim(int run) : run_(run) {}
  Shim(const Shim&) = delete;
  Shim& operator=(const Shim&) = delete;

  // Lock, spec, socket, FIFO. One of the kSpawn codes.
  int Prepare();
  // Until the process is gone. The exit code of the shim.
  int Run();

 private:
  enum class State { kPrepared, kRunning, kBackoff, kEnded };

  int OpenSocket();
  bool OpenOutput();
  void Serve();
  std::string Handle(std::string_view command);
  std::string Answer() const;
  void Start(bool first);
  void RefuseStart(const LaunchError& error, bool first);
  void Reap();
  void ProcessGone(int status, bool known);
  void FinishWhenAlone();
  void WaitToRestart(int64_t lived_us);
  void WriteExit();
  void KillAll();
  int Timeout() const;
  void OnTimer();
  void TakeOver(const Record& started);
  bool WasOom();
  int64_t OomKills() const;

  const int run_;
  int lock_ = -1;
  int socket_ = -1;
  int signals_ = -1;
  int output_read_ = -1;
  int output_write_ = -1;
  int listener_ = -1;
  int pidfd_ = -1;  // only after a take-over: the process is not our child
  Record spec_;
  Record started_;
  Record failed_;
  std::unique_ptr<LogPump> log_;
  State state_ = State::kPrepared;
  bool stopping_ = false;  // no further restart
  bool killed_by_us_ = false;
  bool process_gone_ = false;  // the main process; descendants may still be there
  bool exit_known_ = true;
  int exit_status_ = 0;
  bool oom_ = false;
  int64_t exited_at_ = 0;
  pid_t pid_ = 0;
  int64_t restarts_ = 0;
  RestartBackoff backoff_;
  int64_t deadline_us_ = 0;  // of the prepared state or the back-off, boot clock
  int64_t started_us_ = 0;
  int64_t oom_baseline_ = 0;
  int64_t oom_read_us_ = 0;
};

}  // namespace lockkeeper::shim
