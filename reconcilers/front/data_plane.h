// DataPlane: the front's loop, and the only way into it from other threads.
//
// Purpose:   runs a Relay on one thread; commands come over a queue and an eventfd, are done between two turns of the
//            loop, and are answered exactly, for the loop is the only owner of the counts.
// Ownership: owns the relay and its listener. Watched descriptors are borrowed.
// Threads:   Run() on one thread; Watch() before it; the rest from any thread.
// Failure:   kUnavailable once the loop has ended, kTimeout when it does not answer within 2 s.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/base/sync.h"
#include "reconcilers/front/relay.h"

namespace lockkeeper::front {

class DataPlane {
 public:
  // `version` and `settings` are told in the status.
  DataPlane(const FrontLimits& limits, std::string version, std::string settings);
  ~DataPlane();
  DataPlane(const DataPlane&) = delete;
  DataPlane& operator=(const DataPlane&) = delete;

  Status Init(UniqueFd listener);
  // `readable` runs on the loop's thread while `fd` can be read, until it answers false.
  Status Watch(int fd, std::function<bool()> readable);
  // What the state file said; before Run().
  void Resume(const FrontTarget& target, int64_t generation) { relay_->Publish(target, generation); }
  void ResumeHolding(int64_t generation) { relay_->ResumeHolding(generation); }
  // Returns once stopped: BeginStop and no connection is left, its deadline, or StopNow.
  void Run();

  // After ok every connection accepted later goes to the target.
  Status Publish(const FrontTarget& target, int64_t generation, std::chrono::steady_clock::time_point asked);
  Result<FrontState> Get();
  Result<int> Drain(const std::string& slot, int64_t incarnation, Duration deadline);
  // Answers once nothing is open on the backend any more; kTimeout after `timeout`.
  Status WaitOpenZero(const std::string& slot, int64_t incarnation, Duration timeout);
  Result<std::string> MetricsText();

  // Accepts no more and drains; the deadline cuts the rest.
  void BeginStop(Duration deadline);
  // Cuts everything. May be called by a signal's watcher.
  void StopNow();
  const std::string& listen() const { return listen_; }

 private:
  struct Waiter;
  // Runs `f` on the loop's thread and waits for it.
  Status Call(std::function<void(Relay&)> f);
  bool Post(std::function<void(Relay&)> f);
  void RunPosted();
  void WakeWaiters();

  const FrontLimits limits_;
  const std::string version_;
  const std::string settings_;
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  std::string listen_;
  UniqueFd epoll_;
  UniqueFd wake_;
  std::unique_ptr<Relay> relay_;
  std::vector<std::pair<int, std::function<bool()>>> watched_;
  std::vector<std::shared_ptr<Waiter>> waiters_;  // of the loop's thread
  uint64_t seen_ended_ = 0;
  std::atomic<bool> stop_now_{false};
  Mutex mutex_;
  std::vector<std::function<void(Relay&)>> posted_ LK_GUARDED_BY(mutex_);
  bool ended_ LK_GUARDED_BY(mutex_) = false;
};

}  // namespace lockkeeper::front
