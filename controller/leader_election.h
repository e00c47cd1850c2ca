// LeaderElection: at most one process at a time leads, by a Lease object.
//
// Purpose:   client-go's algorithm (15 s lease, 10 s renew deadline, 2 s retry): the other holder's expiry is judged
//            by our own clock from when we saw the record change, never by the times in it; a holder renews from
//            what it wrote last and reads first only after a failure. Beyond it: a write fence (Left says how long a
//            write may still be under way), a lease taken by another counts as lost at once, and a clean stop gives
//            the lease away.
// Ownership: borrows Api, clock and metrics. The Api should be one of its own, so that nothing queues before a
//            renewal; its timeout max(1 s, renew deadline / 2).
// Threads:   Step and Release by one thread; Left, IsLeader and Check by any.
// Failure:   an Api error is a failed try. Losing the lease ends Run; the caller then exits non-zero without waiting
//            for its work.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "controller/api.h"

namespace lockkeeper {

class Metrics;

struct LeaderElectionOptions {
  std::string namespace_ = "default";
  std::string name{};
  std::string identity{};  // "" : hostname_uuid
  Duration lease_duration = Seconds(15);
  Duration renew_deadline = Seconds(10);
  Duration retry_period = Seconds(2);
  Duration stuck_tolerance = Seconds(20);  // Check fails when this late (client-go's health adaptor)
  uint64_t seed = 0;
  Metrics* metrics = nullptr;
};

class LeaderElection : public WriteFence {
 public:
  // REQUIRES: lease > renew deadline > 1.2 x retry period.
  LeaderElection(Api& api, const Clock& clock, LeaderElectionOptions options);
  ~LeaderElection() override;
  LeaderElection(const LeaderElection&) = delete;
  LeaderElection& operator=(const LeaderElection&) = delete;

  enum class State { kStandby, kLeading, kLost };
  // One try. Answers the state after it; `wait` is the time until the next.
  State Step(Duration* wait);

  // Steps on this thread until cancelled (kCancelled, still holding the lease) or lost (kBusy). `on_leading` is called
  // once, on this thread, when this process begins to lead, and must return at once.
  Status Run(const CancelToken& cancel, const std::function<void()>& on_leading);

  // Gives the lease away (holder "", 1 s), with a retry on conflict. Only after all work has stopped.
  Status Release();

  bool IsLeader() const { return state_.load() == State::kLeading; }
  // From the start of the last successful renewal plus the renew deadline. Zero when not leading.
  Duration Left() const override;
  // The dead-lock guard: an error when leading and not renewed for longer than lease and tolerance.
  Status Check() const;
  const std::string& identity() const;
  // Who holds it, as seen last; "" when nobody.
  std::string holder() const;

 private:
  class Impl;
  std::atomic<State> state_{State::kStandby};
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockkeeper
