// Signals: SIGTERM and SIGINT of a kcp-like server. The first asks for a stop, the second ends the process with 1.
//
// Ownership: owns its descriptors and thread.
// Threads:   Block first, on the main thread, before any other thread is started; the rest by any thread.
// Failure:   Block answers Status.
#pragma once

#include <atomic>
#include <optional>
#include <thread>

#include "api/base/time.h"
#include "api/base/unique_fd.h"

namespace lockkeeper::kcp {

class Signals {
 public:
  Signals() = default;
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  Status Block();
  // True when a stop was asked for, false when `patience` has passed; without one it waits as long as it takes.
  bool WaitStop(std::optional<Duration> patience);
  [[noreturn]] void WaitForever();

 private:
  void Run();

  UniqueFd signal_fd_;
  UniqueFd stop_event_;  // readable once a stop was asked for
  UniqueFd quit_event_;  // ends the thread
  std::thread thread_;
};

}  // namespace lockkeeper::kcp
