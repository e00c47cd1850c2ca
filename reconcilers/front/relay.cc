#include "reconcilers/front/relay.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "api/base/file.h"
#include "api/base/log.h"
#include "reconcilers/front/drain_rules.h"
#include "reconcilers/front/target_rules.h"

namespace lockkeeper::front {
namespace {

// Dials in flight at once: a release of many held connections must not overflow the backend's own queue.
constexpr int kMaxDials = 256;
constexpr int64_t kFirstBackoff = 50'000;
constexpr int64_t kStopGrace = 5'000'000;  // as drainSeconds
constexpr int64_t kLingerCheck = 5'000;
constexpr int64_t kFar = 3'600'000'000;
// How long past its turn a watch waits for a moment between two events.
constexpr int64_t kWatchPatience = 1'000'000;

std::string NameOf(const FrontTarget& t) { return t.slot + "#" + std::to_string(t.incarnation); }

}  // namespace

Relay::Relay(const FrontLimits& limits, int epoll, UniqueFd listener)
    : limits_(limits), epoll_(epoll), listener_(std::move(listener)) {}

Relay::~Relay() {
  ForEach([](Connection* c) {
    ::close(c->client);
    if (c->backend >= 0) ::close(c->backend);
    Free(&c->up);
    Free(&c->down);
  });
}

Status Relay::Start() {
  epoll_event event{};
  event.data.u64 = kListenerTag;
  if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, listener_.get(), &event) != 0) {
    return ErrnoStatus("watch", "the listener", errno);
  }
  paused_since_ = now_;
  return Status::Ok();
}

int64_t Relay::EndTurn() {
  while (!timers_.empty() && timers_.top()->due <= now_) OnTimer(timers_.top());
  ReleaseHeld();
  std::erase_if(lingering_, [&](Lingering& l) {
    if (now_ < l.until && UnackedBytes(l.fd.get()) > 0) return false;
    CloseWithReset(std::move(l.fd));
    return true;
  });
  UpdateAccepting();
  ForgetUnused();
  for (Connection* c : ended_this_turn_) {
    *c = Connection{};
    c->next = free_;
    free_ = c;
  }
  ended_this_turn_.clear();

  int64_t wait = kFar;
  if (!timers_.empty()) wait = std::min(wait, timers_.top()->due - now_);
  if (!lingering_.empty()) wait = std::min(wait, kLingerCheck);
  if (listener_ && now_ < accept_again_at_) wait = std::min(wait, accept_again_at_ - now_);
  if (held_head_ != nullptr && current_ != nullptr && backend_down_ && dialing_ == 0) {
    wait = std::min(wait, next_probe_ - now_);
  }
  return std::max<int64_t>(wait, 0);
}

void Relay::Publish(const FrontTarget& target, int64_t generation) {
  if (target_ && !target_->SameBackend(target)) ++metrics_.flips;
  target_ = target;
  generation_ = generation;
  Backend* const before = current_;
  current_ = nullptr;
  if (!target.hold) {
    const auto address = ParseAddress(target.address);
    LK_CHECK(address.ok());  // CheckTarget comes before
    current_ = FindOrAdd(target, *address);
    if (current_->draining && !stopping_) current_->draining = false;
  }
  if (current_ == before && current_ != nullptr) {
    next_probe_ = now_;  // the agent's word is a reason to try now
    return;
  }
  backend_down_ = false;
  const Event event = current_ == nullptr ? Event::kTargetGone : Event::kTargetChanged;
  ForEach([&](Connection* c) {
    const Phase p = c->state.phase;
    if (p == Phase::kDialing || p == Phase::kBackoff) Apply(c, event);
  });
  ReleaseHeld();
}

Result<int> Relay::Drain(const std::string& slot, int64_t incarnation, Duration deadline) {
  const std::string name = slot + "#" + std::to_string(incarnation);
  if (IsCurrent(target_, slot, incarnation)) {
    return Status(Code::kInvalid,
                  "CurrentBackend: " + name + " is where new connections go; set another backend first");
  }
  int n = 0;
  for (const auto& b : backends_) {
    if (b->target.slot != slot || b->target.incarnation != incarnation) continue;
    BeginDrainOf(b.get(), now_ + deadline.count(), deadline.count());
    n += b->open;
  }
  return n;
}

void Relay::BeginDrainOf(Backend* b, int64_t deadline, int64_t grace) {
  if (!b->draining) {
    b->draining = true;
    b->drain_began = now_;
    b->drain_deadline = deadline;
    b->drain_grace = grace;
  } else {
    b->drain_deadline = std::min(b->drain_deadline, deadline);
    b->drain_grace = std::min(b->drain_grace, grace);
  }
  ForEach([&](Connection* c) {
    if (c->counted_on == b && c->state.phase == Phase::kOpen) timers_.Set(c, now_);
  });
}

void Relay::BeginStop(Duration deadline) {
  if (stopping_) return;
  // What completed its handshake with us gets its service; closing the listener would reset it.
  for (int64_t before = -1; before != metrics_.accepted;) {
    before = metrics_.accepted;
    Accept();
  }
  ::epoll_ctl(epoll_, EPOLL_CTL_DEL, listener_.get(), nullptr);
  listener_.Reset();
  stopping_ = true;
  stop_deadline_ = now_ + deadline.count();
  for (const auto& b : backends_) BeginDrainOf(b.get(), stop_deadline_, kStopGrace);
}

void Relay::CutAll() {
  stopping_ = true;
  listener_.Reset();
  ForEach([&](Connection* c) { Apply(c, Event::kCut); });
  lingering_.clear();
}

void Relay::Report(FrontState* out) const {
  out->target = target_;
  out->generation = generation_;
  out->held = held_;
  out->drained_total = metrics_.drained;
  out->cut_total = metrics_.cut;
  out->refused_total = metrics_.refused;
  out->accepted_total = metrics_.accepted;
  out->stopping = stopping_;
  std::vector<int64_t> oldest(backends_.size(), now_);
  for (const Connection& c : slab_) {
    if (c.client < 0 || c.counted_on == nullptr) continue;
    for (size_t i = 0; i < backends_.size(); ++i) {
      if (backends_[i].get() == c.counted_on) oldest[i] = std::min(oldest[i], c.accepted);
    }
  }
  for (size_t i = 0; i < backends_.size(); ++i) {
    const Backend& b = *backends_[i];
    if (b.open + b.dialing == 0) continue;
    out->open.push_back({.slot = b.target.slot,
                         .incarnation = b.target.incarnation,
                         .invocation = b.target.invocation,
                         .address = b.target.address,
                         .open = b.open + b.dialing,
                         .draining = b.draining ? b.open : 0,
                         .oldest_seconds = static_cast<double>(now_ - oldest[i]) / 1e6});
  }
}

int Relay::OpenOn(const std::string& slot, int64_t incarnation) const {
  int n = 0;
  for (const auto& b : backends_) {
    if (b->target.slot == slot && b->target.incarnation == incarnation) n += b->open + b->dialing;
  }
  return n;
}

std::string Relay::MetricsText() {
  metrics_.held = held_;
  metrics_.generation = generation_;
  for (auto& [name, numbers] : metrics_.backends) numbers.open = 0;
  for (const auto& b : backends_) {
    BackendNumbers& numbers = metrics_.backends[NameOf(b->target)];
    numbers.open += b->open + b->dialing;
    numbers.total += std::exchange(b->total, 0);
  }
  // A label for ever would be a leak; the last few are what anybody looks at.
  while (metrics_.backends.size() > 32) metrics_.backends.erase(metrics_.backends.begin());
  return metrics_.Text();
}

void Relay::Apply(Connection* c, Event event) {
  const ConnectionState before = c->state;
  if (before.phase == Phase::kClosed) return;
  const Step step = Next(before, event, limits_.connect_tries);
  if (step.state == before && step.actions == 0) return;
  c->state = step.state;
  if (before.phase == Phase::kHeld && c->state.phase != Phase::kHeld) Unpark(c);
  const bool half_closed = before.up.ended != c->state.up.ended || before.down.ended != c->state.down.ended;
  if (half_closed) c->phase_since = now_;
  Act(c, step.actions, event);
  if (c->client < 0) return;
  UpdateInterest(c);
  if (before.phase != c->state.phase || half_closed) Arm(c);
}

void Relay::Act(Connection* c, uint16_t actions, Event event) {
  if ((actions & kDropBackend) != 0) {
    CloseBackend(c);
    CountOff(c);
  }
  if ((actions & kPark) != 0) Park(c);
  if ((actions & kArmBackoff) != 0)
    c->phase_since = now_ + Jitter(kFirstBackoff << std::min<int>(c->state.tries - 1, 6));
  if ((actions & kMarkDown) != 0) {
    if (!backend_down_) LogWarn("the backend does not answer: connections are held", {{"backend", target_->address}});
    backend_down_ = true;
    next_probe_ = now_ + Jitter(limits_.probe_interval.count());
  }
  if ((actions & kMarkUp) != 0 && backend_down_ && c->counted_on == current_) {
    backend_down_ = false;
    LogInfo("the backend answers again", {{"backend", target_->address}, {"held", held_}});
  }
  if ((actions & kFreeUp) != 0) Free(&c->up);
  if ((actions & kFreeDown) != 0) Free(&c->down);
  if ((actions & kFinBackend) != 0) ::shutdown(c->backend, SHUT_WR);
  if ((actions & kFinClient) != 0) ::shutdown(c->client, SHUT_WR);
  if ((actions & (kCloseBoth | kResetBoth)) != 0) {
    CountOff(c);
    timers_.Remove(c);
    CloseSockets(c, (actions & kResetBoth) != 0, event == Event::kCut);
    Free(&c->up);
    Free(&c->down);
    --live_;
    ++ended_;
    ended_this_turn_.push_back(c);
    return;
  }
  // Last: it may fail at once and come back here.
  if ((actions & kDial) != 0) DialCurrent(c);
}

void Relay::Arm(Connection* c) {
  switch (c->state.phase) {
    case Phase::kHeld: timers_.Set(c, c->held_since + limits_.hold_time.count()); return;
    case Phase::kDialing:
      timers_.Set(c, std::min(c->phase_since + limits_.connect_timeout.count(),
                              c->dialing_since + limits_.connect_budget.count()));
      return;
    case Phase::kBackoff: timers_.Set(c, c->phase_since); return;
    case Phase::kOpen: break;
    case Phase::kClosed: timers_.Remove(c); return;
  }
  if (c->counted_on->draining) {
    timers_.Set(c, now_);
    return;
  }
  const int64_t last = std::max({c->last_client, c->last_server, c->accepted});
  if (c->state.up.ended || c->state.down.ended) {
    timers_.Set(c, std::max(last, c->phase_since) + limits_.fin_timeout.count());
  } else if (limits_.idle_timeout.count() > 0) {
    const int64_t idle = limits_.idle_timeout.count();
    timers_.Set(c, last + idle + SpreadOffset(c->sequence, idle / 10));
  } else {
    timers_.Remove(c);
  }
}

void Relay::OnTimer(Connection* c) {
  switch (c->state.phase) {
    case Phase::kHeld:
      ++metrics_.refused;
      Apply(c, Event::kHoldExpired);
      return;
    case Phase::kDialing:
    case Phase::kBackoff: OnDialTimer(c); return;
    case Phase::kClosed: timers_.Remove(c); return;
    case Phase::kOpen: break;
  }
  if (c->counted_on->draining) {
    CheckDrain(c);
    return;
  }
  // Bytes since it was armed only moved the due.
  Arm(c);
  if (c->heap_index != kNotInHeap && c->due <= now_) Apply(c, Event::kTimeout);
}

void Relay::OnDialTimer(Connection* c) {
  const bool dialing = c->state.phase == Phase::kDialing;
  if (dialing) ++metrics_.dial_failures[ETIMEDOUT];
  if (now_ - c->dialing_since >= limits_.connect_budget.count()) {
    Apply(c, Event::kBudgetSpent);
  } else if (dialing) {
    Apply(c, Event::kDialFailed);
  } else {
    ++metrics_.dial_retries;
    Apply(c, Event::kBackoffOver);
  }
}

void Relay::CheckDrain(Connection* c) {
  const Backend& b = *c->counted_on;
  // A short drain is spread over half of its time, so that a watch keeps some of it to find a gap between two events.
  const int64_t spread = std::min(limits_.drain_spread.count(), (b.drain_deadline - b.drain_began) / 2);
  const DrainView view{.now = now_,
                       .opened = c->accepted,
                       .last_client = c->last_client,
                       .last_server = c->last_server,
                       .client_turns = c->client_turns,
                       .server_spoke_last = c->server_spoke_last,
                       .state = c->state,
                       .may_rehome = !stopping_,
                       .began = b.drain_began,
                       .deadline = b.drain_deadline,
                       .grace = b.drain_grace,
                       .offset = SpreadOffset(c->sequence, spread)};
  const DrainVerdict verdict = DecideDrain(view);
  const bool late = now_ >= b.drain_deadline;
  switch (verdict.action) {
    case DrainVerdict::Do::kWait: timers_.Set(c, std::max(verdict.at, now_ + 1)); return;
    case DrainVerdict::Do::kRehome:
      // A backend that speaks first has said something by now.
      if (UnreadBytes(c->backend) == 0) {
        ++metrics_.rehomed;
        Apply(c, current_ == nullptr ? Event::kRehomeHeld : Event::kRehome);
        return;
      }
      break;
    case DrainVerdict::Do::kClose:
      // A server that never pauses gets this patience, and none beyond the deadline: in order is better than cut.
      if (QueuesEmpty(c, verdict.watch && (late || now_ >= view.began + view.offset + kWatchPatience))) {
        ++metrics_.drained;
        Apply(c, Event::kQuiet);
        return;
      }
      break;
    case DrainVerdict::Do::kCut: break;
  }
  if (late) {
    ++metrics_.drained;
    ++metrics_.cut;
    Apply(c, Event::kCut);
    return;
  }
  timers_.Set(c, std::min(now_ + kRecheckMicros, b.drain_deadline));
}

// The look right before a quiet close; drain_rules.h says why each of these counts.
bool Relay::QueuesEmpty(const Connection* c, bool client_only) const {
  if (UnreadBytes(c->client) != 0) return false;
  if (client_only) return true;
  return UnackedBytes(c->client) == 0 && UnreadBytes(c->backend) == 0 && UnackedBytes(c->backend) == 0;
}

// Into the queue at the place of its accept: who came first is served first, also after a failed dial.
void Relay::Park(Connection* c) {
  if (c->held_since == 0) c->held_since = now_;
  c->dialing_since = 0;
  Connection* after = held_tail_;
  while (after != nullptr && after->sequence > c->sequence) after = after->previous;
  c->previous = after;
  c->next = after != nullptr ? after->next : held_head_;
  (c->previous != nullptr ? c->previous->next : held_head_) = c;
  (c->next != nullptr ? c->next->previous : held_tail_) = c;
  ++held_;
}

void Relay::Unpark(Connection* c) {
  (c->previous != nullptr ? c->previous->next : held_head_) = c->next;
  (c->next != nullptr ? c->next->previous : held_tail_) = c->previous;
  c->previous = nullptr;
  c->next = nullptr;
  --held_;
}

void Relay::ReleaseHeld() {
  if (current_ == nullptr) return;
  while (held_head_ != nullptr && !backend_down_ && dialing_ < kMaxDials) Apply(held_head_, Event::kRelease);
  if (held_head_ != nullptr && backend_down_ && dialing_ == 0 && now_ >= next_probe_) {
    Apply(held_head_, Event::kProbe);
  }
}

// The one place where a connection leaves its backend's count.
void Relay::CountOff(Connection* c) {
  Backend* b = std::exchange(c->counted_on, nullptr);
  if (b == nullptr) return;
  if (std::exchange(c->counted_open, false)) {
    --b->open;
  } else {
    --b->dialing;
    --dialing_;
  }
}

Backend* Relay::FindOrAdd(const FrontTarget& target, const SocketAddress& address) {
  for (const auto& b : backends_) {
    if (b->target.SameBackend(target)) return b.get();
  }
  backends_.push_back(std::make_unique<Backend>());
  Backend* b = backends_.back().get();
  b->target = target;
  b->address = address;
  if (stopping_) BeginDrainOf(b, stop_deadline_, kStopGrace);
  return b;
}

void Relay::ForgetUnused() {
  std::erase_if(backends_, [&](const std::unique_ptr<Backend>& b) {
    if (b.get() == current_ || b->open + b->dialing > 0) return false;
    metrics_.backends[NameOf(b->target)].total += b->total;
    return true;
  });
}

Connection* Relay::NewConnection(int fd) {
  Connection* c = free_;
  if (c != nullptr) {
    free_ = c->next;
    c->next = nullptr;
  } else {
    c = &slab_.emplace_back();
  }
  c->client = fd;
  c->sequence = ++sequence_;
  c->accepted = now_;
  ++live_;
  return c;
}

int64_t Relay::Jitter(int64_t micros) {
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return micros / 2 + static_cast<int64_t>(random_ % static_cast<uint64_t>(micros + 1));
}

}  // namespace lockkeeper::front
