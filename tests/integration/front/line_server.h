// LineServer: a backend that answers each line "ID" with "NAME ID", and remembers every ID it saw.
// Threads: one of its own; methods from any. Failure: a connection that breaks is dropped.
#pragma once

#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "tests/integration/front/sockets.h"

namespace lockkeeper::front {

class LineServer {
 public:
  explicit LineServer(std::string name);
  ~LineServer();
  std::string address() const { return listener_.address(); }
  int64_t connections() const { return connections_; }
  // The IDs that were answered. After Stop().
  const std::vector<std::string>& seen() const { return seen_; }
  void Stop();

 private:
  void Run();
  bool Serve(int fd, std::string* line);

  const std::string name_;
  ManualBackend listener_;
  std::atomic<bool> stop_{false};
  std::atomic<int64_t> connections_{0};
  std::vector<std::string> seen_;
  std::thread thread_;
};

}  // namespace lockkeeper::front
