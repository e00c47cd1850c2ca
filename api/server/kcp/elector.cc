#include "api/server/kcp/elector.h"

#include <algorithm>
#include <utility>

namespace lockkeeper::kcp {

Elector::Elector(ElectorConfig config, LeaseLock& lock, const Clock& clock, Callbacks callbacks)
    : config_(std::move(config)), lock_(lock), clock_(clock), callbacks_(std::move(callbacks)), random_(config_.seed) {}

Duration Elector::Scaled(Duration d) const {
  return std::max(Duration(static_cast<int64_t>(static_cast<double>(d.count()) * config_.scale)), Milliseconds(1));
}

bool Elector::Leading() const { return leading_.load() && clock_.Read().boot < leader_until(); }

Duration Elector::Step() {
  const Now now = clock_.Read();
  const Duration retry = Scaled(config_.retry_period);
  const Duration deadline = Scaled(config_.renew_deadline);
  // A round of renewals is over at its deadline even if the call that ran it never came back in time.
  if (leading_ && now.boot >= leader_until()) {
    Lose();
    return Duration::zero();  // kcp enters the election again at once
  }
  const bool ok = TryAcquireOrRenew(now);
  if (observed_ && observed_->holder != reported_leader_) {
    reported_leader_ = observed_->holder;
    if (callbacks_.new_leader) callbacks_.new_leader(reported_leader_);
  }
  const Duration done = clock_.Read().boot;
  if (!leading_) {
    if (!ok) {
      // wait.JitterUntil, sliding: counted from the end of the try.
      const double extra = std::uniform_real_distribution<double>(0, config_.jitter)(random_);
      return retry + Duration(static_cast<int64_t>(static_cast<double>(retry.count()) * extra));
    }
    window_start_ = done;
    leader_until_ = (window_start_ + deadline).count();
    leading_ = true;
    if (callbacks_.started_leading) callbacks_.started_leading();
    return Duration::zero();  // the first round of renewals begins at once
  }
  if (ok && done < leader_until()) {
    // The next round starts a retry period later and has a deadline of its own.
    window_start_ = done + retry;
    leader_until_ = (window_start_ + deadline).count();
    return retry;
  }
  return std::max(Duration::zero(), std::min(retry, leader_until() - done));
}

void Elector::Lose() {
  if (!leading_.exchange(false)) return;
  // kcp builds a new elector for each round: what the last one saw is forgotten.
  observed_.reset();
  observed_raw_.reset();
  if (callbacks_.stopped_leading) callbacks_.stopped_leading();
}

void Elector::Stop() { Lose(); }

// client-go counts the duration that stands in the record, so that a holder that wrote 1 s is free after 1 s.
bool Elector::IsLeaseValid(const Now& now) const {
  return observed_ && now.boot < observed_at_ + Scaled(Seconds(static_cast<double>(observed_->lease_duration_seconds)));
}

void Elector::Observe(const ElectionRecord& record) {
  observed_ = record;
  observed_at_ = clock_.Read().boot;
}

bool Elector::TryRenewFast(const Now& now) {
  if (!IsLeader() || !IsLeaseValid(now)) return false;
  ElectionRecord record = *observed_;
  record.lease_duration_seconds = config_.lease_duration_seconds;
  record.renew_time = now.wall;
  if (!lock_.Update(record).ok()) return false;
  Observe(record);
  return true;
}

bool Elector::TryAcquireOrRenew(const Now& now) {
  if (TryRenewFast(now)) return true;
  ElectionRecord record{config_.identity, config_.lease_duration_seconds, now.wall, now.wall, 0};
  auto current = lock_.Get();
  if (!current.ok()) {
    if (current.code() != Code::kNotFound || !lock_.Create(record).ok()) return false;
    Observe(record);
    return true;
  }
  if (observed_raw_ != *current) {
    Observe(*current);
    observed_raw_ = *current;
  }
  if (!current->holder.empty() && IsLeaseValid(now) && !IsLeader()) return false;
  if (IsLeader()) {
    record.acquire_time = current->acquire_time;
    record.transitions = current->transitions;
  } else {
    record.transitions = current->transitions + 1;
  }
  if (!lock_.Update(record).ok()) return false;
  Observe(record);
  return true;
}

}  // namespace lockkeeper::kcp
