// Elector: leader election as client-go does it, as a state machine with no thread and no clock of its own.
//
// Purpose:   what a rolled kcp does with its controller Lease, step by step, so that a hand-over behaves like the
//            real one: optimistic renewal, a standby that times the expiry on its own clock from when it saw the
//            record change, a lost Lease that is fought for again, and no release at the end.
//            Figures: Lease 60 s, renew deadline 5 s, retry 2 s (kcp), jitter 1.2 (client-go).
// Ownership: borrows the LeaseLock and the callbacks for its life.
// Threads:   Step by one thread at a time; Leading and leader_until may be asked by any thread.
// Failure:   an error of the LeaseLock is a failed try; nothing else can fail.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <string>

#include "api/base/status.h"
#include "api/base/time.h"

namespace lockkeeper::kcp {

// What stands in the Lease. Times are wall clock, as on the wire.
struct ElectionRecord {
  std::string holder;
  int64_t lease_duration_seconds = 0;
  Time acquire_time{};
  Time renew_time{};
  int64_t transitions = 0;

  bool operator==(const ElectionRecord&) const = default;
};

// The Lease, as a client with a memory of the version that it saw last.
class LeaseLock {
 public:
  virtual ~LeaseLock() = default;
  // kNotFound when there is none.
  virtual Result<ElectionRecord> Get() = 0;
  virtual Status Create(const ElectionRecord& record) = 0;
  // Replaces the version that Get, Create or Update saw last; kConflict when it is another by now.
  virtual Status Update(const ElectionRecord& record) = 0;
};

struct ElectorConfig {
  std::string identity;
  int64_t lease_duration_seconds = 60;   // as written into the Lease, never scaled
  double scale = 1;                      // of all waiting, the Lease's duration included
  Duration renew_deadline = Seconds(5);  // before scaling
  Duration retry_period = Seconds(2);    // before scaling
  double jitter = 1.2;                   // a standby waits retry_period * (1 + [0, jitter))
  uint64_t seed = 0;                     // of the jitter
};

class Elector {
 public:
  struct Callbacks {
    std::function<void()> started_leading;
    std::function<void()> stopped_leading;
    std::function<void(const std::string& holder)> new_leader;  // whoever it is
  };

  Elector(ElectorConfig config, LeaseLock& lock, const Clock& clock, Callbacks callbacks);

  // One try to acquire or renew. Answers how long to wait until the next.
  Duration Step();

  // The context has ended: leads no longer. The Lease is left as it is.
  void Stop();

  // Leads, and the renewal deadline has not passed.
  bool Leading() const;
  // Boot clock; leading ends there without a renewal.
  Duration leader_until() const { return Duration(leader_until_.load()); }

 private:
  bool TryAcquireOrRenew(const Now& now);
  bool TryRenewFast(const Now& now);
  bool IsLeader() const { return observed_ && observed_->holder == config_.identity; }
  bool IsLeaseValid(const Now& now) const;
  void Observe(const ElectionRecord& record);
  void Lose();
  Duration Scaled(Duration d) const;

  const ElectorConfig config_;
  LeaseLock& lock_;
  const Clock& clock_;
  const Callbacks callbacks_;
  std::mt19937_64 random_;

  std::optional<ElectionRecord> observed_;
  std::optional<ElectionRecord> observed_raw_;  // as last read; own writes do not change it
  Duration observed_at_{};
  std::string reported_leader_;
  Duration window_start_{};  // of the current round of renewals
  std::atomic<bool> leading_{false};
  std::atomic<int64_t> leader_until_{0};
};

}  // namespace lockkeeper::kcp
