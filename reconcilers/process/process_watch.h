// ProcessWatch: the thread that tells when a unit started, began to listen, or ended.
//
// Purpose:   pidfds and inotify where something can be watched; only while a running process does not listen yet its
//            ports are looked at, every 20 ms (the seed's PortPoll) for two minutes, then every second. A shim that
//            was killed while its process runs is replaced, so that output keeps flowing.
// Ownership: owns its thread and descriptors; the destructor ends the thread.
// Threads:   Touch() from any; the callback runs on the watch thread.
// Failure:   logged; a unit that cannot be read is tried again at its next event.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "api/base/time.h"

namespace lockkeeper {

class ProcessWatch {
 public:
  struct Options {
    std::string run_dir;
    std::string shim_path;
    Duration port_poll = Milliseconds(20);
    std::function<void(const std::string& unit)> changed;
  };
  static Result<std::unique_ptr<ProcessWatch>> Start(Options options);
  virtual ~ProcessWatch() = default;
  // Looks at the unit again: it was started or reset.
  virtual void Touch(const std::string& unit) = 0;
};

}  // namespace lockkeeper
