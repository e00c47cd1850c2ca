// Watcher: one watch of a load run, taken up again where it ended.
// Threads: Run on its own thread; CaughtUp from another; the rest after Run has ended.
#pragma once

#include <string>

#include "tests/load/journal.h"
#include "tests/load/shared.h"

namespace lockkeeper::load {

class Watcher {
 public:
  explicit Watcher(Shared& shared);

  // Where the watch begins; before Run.
  void StartFrom(int64_t revision) { revision_ = revision; }
  // Until the run is abandoned.
  void Run();
  // Waits until an event of `revision` or a newer one came; false at `end`.
  bool CaughtUp(int64_t revision, Instant end);

  WatchLog log();
  int64_t reconnects() const { return reconnects_; }
  int64_t expired() const { return expired_; }

 private:
  void Line(std::string_view line);

  Shared& shared_;
  HttpClient client_;
  int64_t revision_ = 0;  // of the last event or bookmark
  int64_t reconnects_ = 0;
  int64_t expired_ = 0;
  bool gone_ = false;  // the server no longer has the events from revision_ on
  Mutex mutex_;
  CondVar moved_;
  WatchLog log_ LK_GUARDED_BY(mutex_);
};

// The collection's revision now. A failure says what the server answered.
Result<int64_t> CurrentRevision(Shared& shared, HttpClient& client);

}  // namespace lockkeeper::load
