// KcpServer: one process of `kcp start`, from its files to its exit code.
//
// Purpose:   the life of a slot as a roll sees it: listens long before it serves (2.6), writes the new version's
//            objects before it is ready (2.4), runs controllers only while it holds the Lease, stops by kcp's rules
//            (2.9 to 2.11). All times of kcp are scaled by LOCKKEEPER_TIME_SCALE, those given by flags as well.
// Ownership: owns everything below it.
// Threads:   Run on the main thread, with SIGTERM, SIGINT and SIGCHLD as they were; it blocks the first two for all
//            threads that it starts.
// Failure:   Run answers the exit code and has said why on standard error.
#pragma once

#include <memory>

#include "api/server/kcp/durations.h"
#include "api/server/kcp/faults.h"
#include "api/server/kcp/options.h"

namespace lockkeeper::kcp {

class KcpServer {
 public:
  KcpServer(Options options, TimeScale scale, std::unique_ptr<Faults> faults);
  ~KcpServer();
  KcpServer(const KcpServer&) = delete;
  KcpServer& operator=(const KcpServer&) = delete;

  // 0 after an orderly stop; 1 for a start that failed, a crash on purpose, or a second signal.
  int Run();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockkeeper::kcp
