// Controller: one reconcile function, its queue, its workers and what wakes it.
//
// Purpose:   level-triggered reconciling: events only name keys, the function looks at the world. The result table is
//            controller-runtime's: ok forgets the key's failures; requeue_after forgets and comes back then; requeue
//            and errors come back with back-off; an error that only a change can mend (kStalled) waits for one; a lost
//            optimistic lock (kReobserve) is no error, only a quick retry. An exception is counted and is an error.
// Ownership: borrows clock, metrics and the caches it watches. The function's captures outlive the controller.
// Threads:   the function runs on up to `workers` threads, never twice at once for one key.
// Failure:   Stop says which keys did not come back in time.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/base/time.h"
#include "controller/cache.h"
#include "controller/work_queue.h"

namespace lockkeeper {

class Metrics;

struct ReconcileResult {
  Duration requeue_after{};  // above zero: again then, however it went before
  bool requeue = false;      // again with back-off
};

using ReconcileFunction = std::function<Result<ReconcileResult>(const Request&)>;
// Which keys an event wakes.
using EventMapper = std::function<std::vector<Request>(const CacheEvent&)>;
using EventFilter = std::function<bool(const CacheEvent&)>;

struct ControllerOptions {
  std::string name{};
  ReconcileFunction reconcile{};
  int workers = 4;
  bool needs_leader = true;
  // Echoes of our own writes do not wake it. Only for a controller whose writes never need another pass.
  bool skip_own_echo = false;
  WorkQueueOptions queue{};
  // A key that is woken and succeeds more often than this within the window, without asking for it, is fighting
  // itself: it is slowed down (1 s, doubling to 30 s), with a warning and a metric. 0: no guard.
  int hot_loop_limit = 20;
  Duration hot_loop_window = Seconds(10);
  std::function<void(const Request&)> on_hot_loop{};
};

class Controller {
 public:
  Controller(ControllerOptions options, const Clock& clock, Metrics* metrics);
  ~Controller();
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;

  // Keys begin to queue at once, so that a standby is warm.
  void Watch(Cache& cache, EventMapper mapper, EventFilter filter = nullptr);
  void Watch(Cache& cache) { Watch(cache, MapSelf); }

  static std::vector<Request> MapSelf(const CacheEvent& event) { return {event.object->key()}; }
  // The owner of that kind, in the same namespace.
  static EventMapper MapOwner(const std::string& kind);
  // Drops updates that leave generation and deletion as they were (status writes, labels, resyncs).
  static bool GenerationChanged(const CacheEvent& event);

  const std::string& name() const;
  bool needs_leader() const;
  WorkQueue& queue();

  void Start();
  // Begins nothing more; waits for nothing.
  void BeginStop();
  // What runs is awaited for `patience` (real time), what is queued is left. kTimeout names the keys that hang.
  Status Stop(Duration patience);

  // For simulators and tests: one key on this thread; false when none is ready.
  bool ProcessOne();

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;  // shared with workers that hang beyond Stop
};

}  // namespace lockkeeper
