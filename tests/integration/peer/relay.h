// Relay: a TCP front in one page, for tests: new connections go to the backend of the moment, old ones stay.
//
// Ownership: owns its sockets and threads.
// Threads:   SetBackend by any thread.
// Failure:   a connection that cannot be made is closed.
#pragma once

#include <atomic>
#include <thread>
#include <vector>

#include "api/base/sync.h"
#include "api/base/unique_fd.h"

namespace lockkeeper {

class Relay {
 public:
  Relay();
  ~Relay();
  int port() const { return port_; }
  void SetBackend(int port) { backend_ = port; }

 private:
  void Accept();
  void Pump(UniqueFd client);

  UniqueFd listener_;
  UniqueFd stop_;
  int port_ = 0;
  std::atomic<int> backend_{0};
  Mutex mutex_;
  std::vector<std::thread> pumps_ LK_GUARDED_BY(mutex_);
  std::thread acceptor_;
};

}  // namespace lockkeeper
