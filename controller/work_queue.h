// WorkQueue: which object a worker looks at next.
//
// Purpose:   client-go's queue: any number of adds of a key collapse into one, a key is never with two workers, and an
//            add while it is being worked on brings it back afterwards; none is lost. With it: adds in the future
//            (the earliest of several counts, a ready key stays ready), back-off per key (5 ms x 2^n up to 1000 s,
//            ±10 %), and two priorities, of which the low one (first lists, resyncs) cannot starve: what has waited
//            for 30 s goes first.
// Ownership: borrows clock and observer.
// Threads:   thread-safe. Get blocks; TryGet and NextReady serve single-threaded simulators and tests.
// Failure:   none. After ShutDown adds are ignored and Get drains what is ready, then answers nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "api/base/time.h"
#include "controller/api.h"

namespace lockkeeper {

using Request = ObjectKey;

enum class Priority { kLow, kNormal };

struct WorkQueueOptions {
  Duration backoff_base = Milliseconds(5);
  Duration backoff_max = Seconds(1000);
  double backoff_jitter = 0.1;
  Duration low_priority_ages_after = Seconds(30);
  uint64_t seed = 0;  // of the jitter; 0: random
};

// What happens, for metrics. Called under no lock of the queue.
class WorkQueueObserver {
 public:
  virtual ~WorkQueueObserver() = default;
  virtual void OnAdd() {}
  virtual void OnGet(Duration queued) { (void)queued; }
  virtual void OnDone(Duration worked) { (void)worked; }
  virtual void OnRetry() {}
};

class WorkQueue {
 public:
  struct Item {
    Request request;
    Priority priority = Priority::kNormal;
  };

  WorkQueue(const Clock& clock, WorkQueueOptions options, WorkQueueObserver* observer = nullptr);
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  // A key that waits already keeps its place; a higher priority moves it to the end of that class.
  void Add(const Request& request, Priority priority = Priority::kNormal);
  // Zero or less: now.
  void AddAfter(const Request& request, Duration delay, Priority priority = Priority::kNormal);
  // After the key's back-off, which grows with each call until Forget. Answers the delay.
  Duration AddRateLimited(const Request& request, Priority priority = Priority::kNormal);
  void Forget(const Request& request);
  int NumRequeues(const Request& request) const;

  // Blocks. Every key handed out must come back by Done.
  std::optional<Item> Get();
  std::optional<Item> TryGet();
  // Until the next delayed key is due; nothing when none waits. Zero when a key is ready.
  std::optional<Duration> NextReady() const;
  void Done(const Request& request);

  void ShutDown();
  // ShutDown, then waits until every key has come back or `patience` (real time) is over; false then.
  bool ShutDownWithDrain(Duration patience);

  struct Stats {
    size_t depth = 0;    // ready
    size_t waiting = 0;  // in the future
    size_t processing = 0;
    int idle_workers = 0;   // asleep in Get
    Duration unfinished{};  // sum over keys with workers
    Duration longest_running{};
  };
  Stats GetStats() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockkeeper
