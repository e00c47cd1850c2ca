#include "controller/work_queue.h"

#include <algorithm>
#include <list>
#include <map>
#include <random>
#include <set>

#include "api/base/sync.h"

namespace lockkeeper {

namespace {

WorkQueueObserver& NoObserver() {
  static WorkQueueObserver observer;
  return observer;
}

}  // namespace

class WorkQueue::Impl {
 public:
  Impl(const Clock& clock, WorkQueueOptions options, WorkQueueObserver* observer)
      : clock_(clock),
        options_(options),
        observer_(observer != nullptr ? *observer : NoObserver()),
        random_(options.seed != 0 ? options.seed : std::random_device{}()) {}

  void Add(const Request& request, Priority priority) {
    bool added;
    {
      MutexLock lock(mutex_);
      if (shut_down_) return;
      added = AddLocked(request, priority, Now());
    }
    if (added) observer_.OnAdd();
  }

  void AddAfter(const Request& request, Duration delay, Priority priority) {
    if (delay <= Duration::zero()) return Add(request, priority);
    MutexLock lock(mutex_);
    if (!shut_down_) AddAfterLocked(request, delay, priority);
  }

  Duration AddRateLimited(const Request& request, Priority priority) {
    observer_.OnRetry();
    MutexLock lock(mutex_);
    if (shut_down_) return Duration::zero();
    Entry& entry = entries_[request];
    Duration delay = options_.backoff_max;
    // 2^38 x 5 ms is beyond any limit that makes sense, so the shift cannot overflow.
    if (entry.failures < 38)
      delay = std::min(options_.backoff_max, options_.backoff_base * (int64_t{1} << entry.failures));
    ++entry.failures;
    std::uniform_real_distribution<double> jitter(1 - options_.backoff_jitter, 1 + options_.backoff_jitter);
    delay = Duration(static_cast<int64_t>(static_cast<double>(delay.count()) * jitter(random_)));
    AddAfterLocked(request, delay, priority);
    return delay;
  }

  void Forget(const Request& request) {
    MutexLock lock(mutex_);
    const auto it = entries_.find(request);
    if (it == entries_.end()) return;
    it->second.failures = 0;
    EraseIfIdle(it);
  }

  int NumRequeues(const Request& request) const {
    MutexLock lock(mutex_);
    const auto it = entries_.find(request);
    return it == entries_.end() ? 0 : it->second.failures;
  }

  std::optional<Item> Get() {
    std::optional<Item> item;
    Duration queued{};
    int added = 0;
    {
      MutexLock lock(mutex_);
      while (true) {
        const Duration now = Now();
        added += Promote(now);
        item = PopLocked(now, &queued);
        if (item || shut_down_) break;
        Sleep(now);
      }
      if (item) PassOn();
    }
    for (; added > 0; --added) observer_.OnAdd();
    if (item) observer_.OnGet(queued);
    return item;
  }

  std::optional<Item> TryGet() {
    std::optional<Item> item;
    Duration queued{};
    int added = 0;
    {
      MutexLock lock(mutex_);
      const Duration now = Now();
      added = Promote(now);
      item = PopLocked(now, &queued);
    }
    for (; added > 0; --added) observer_.OnAdd();
    if (item) observer_.OnGet(queued);
    return item;
  }

  std::optional<Duration> NextReady() const {
    MutexLock lock(mutex_);
    if (!ready_[0].empty() || !ready_[1].empty()) return Duration::zero();
    if (timers_.empty()) return std::nullopt;
    return std::max(Duration::zero(), timers_.begin()->first - Now());
  }

  void Done(const Request& request) {
    Duration worked{};
    {
      MutexLock lock(mutex_);
      const auto it = entries_.find(request);
      if (it == entries_.end() || !it->second.processing) return;
      Entry& entry = it->second;
      const Duration now = Now();
      worked = now - entry.started;
      entry.processing = false;
      --processing_;
      if (entry.dirty) {
        Push(request, entry);
      } else {
        EraseIfIdle(it);
      }
      if (processing_ == 0) drained_.NotifyAll();
    }
    observer_.OnDone(worked);
  }

  void ShutDown() {
    MutexLock lock(mutex_);
    shut_down_ = true;
    timers_.clear();
    wake_.NotifyAll();
    timer_wake_.NotifyAll();
  }

  bool ShutDownWithDrain(Duration patience) {
    ShutDown();
    const auto until = std::chrono::steady_clock::now() + patience;
    MutexLock lock(mutex_);
    while (processing_ > 0 || !ready_[0].empty() || !ready_[1].empty()) {
      const auto left = until - std::chrono::steady_clock::now();
      if (left <= std::chrono::steady_clock::duration::zero()) return false;
      drained_.WaitFor(mutex_, left);
    }
    return true;
  }

  Stats GetStats() const {
    MutexLock lock(mutex_);
    Stats out;
    out.depth = ready_[0].size() + ready_[1].size();
    out.waiting = timers_.size();
    out.processing = processing_;
    out.idle_workers = sleepers_ + (timer_taken_ ? 1 : 0);
    const Duration now = Now();
    for (const auto& [request, entry] : entries_) {
      if (!entry.processing) continue;
      out.unfinished += now - entry.started;
      out.longest_running = std::max(out.longest_running, now - entry.started);
    }
    return out;
  }

 private:
  using Timers = std::multimap<Duration, Request>;

  struct Entry {
    bool dirty = false;       // needs work
    bool processing = false;  // is with a worker
    bool queued = false;      // stands in ready_
    bool waiting = false;     // stands in timers_
    Priority priority = Priority::kLow;
    Priority timer_priority = Priority::kLow;
    Duration added{};
    Duration started{};
    int failures = 0;
    std::list<Request>::iterator place;  // while queued
    Timers::iterator timer;              // while waiting
  };
  using Entries = std::map<Request, Entry>;

  Duration Now() const { return clock_.Read().boot; }

  // Whether it counts as an add: not when the key was waiting for a worker already.
  bool AddLocked(const Request& request, Priority priority, Duration now) LK_REQUIRES(mutex_) {
    Entry& entry = entries_[request];
    if (entry.dirty) {
      if (priority <= entry.priority) return false;
      entry.priority = priority;
      if (entry.queued) {
        Unqueue(entry, Priority::kLow);
        Push(request, entry);
      }
      return false;
    }
    entry.dirty = true;
    entry.priority = priority;
    entry.added = now;
    if (!entry.processing) Push(request, entry);
    return true;
  }

  void AddAfterLocked(const Request& request, Duration delay, Priority priority) LK_REQUIRES(mutex_) {
    Entry& entry = entries_[request];
    const Duration at = Now() + delay;
    if (entry.waiting) {
      entry.timer_priority = std::max(entry.timer_priority, priority);
      if (at >= entry.timer->first) return;
      timers_.erase(entry.timer);
    } else {
      entry.timer_priority = priority;
    }
    entry.waiting = true;
    entry.timer = timers_.emplace(at, request);
    if (entry.timer != timers_.begin()) return;
    // A new first timer: whoever sleeps towards the old one must look again.
    if (timer_taken_) {
      timer_wake_.NotifyOne();
    } else {
      wake_.NotifyOne();
    }
  }

  void Push(const Request& request, Entry& entry) LK_REQUIRES(mutex_) {
    auto& list = ready_[static_cast<int>(entry.priority)];
    entry.place = list.insert(list.end(), request);
    entry.queued = true;
    if (sleepers_ > 0) {
      wake_.NotifyOne();
    } else if (timer_taken_) {
      timer_wake_.NotifyOne();
    }
  }

  void Unqueue(Entry& entry, Priority in) LK_REQUIRES(mutex_) {
    ready_[static_cast<int>(in)].erase(entry.place);
    entry.queued = false;
  }

  // Whoever leaves with a key wakes the next for what is left: another key, or the timer.
  void PassOn() LK_REQUIRES(mutex_) {
    const bool more = !ready_[0].empty() || !ready_[1].empty();
    if (!more && (timers_.empty() || timer_taken_)) return;
    if (sleepers_ > 0) {
      wake_.NotifyOne();
    } else if (more && timer_taken_) {
      timer_wake_.NotifyOne();
    }
  }

  // Timers that are due become ready, in the order they fell due. Answers how many count as adds.
  int Promote(Duration now) LK_REQUIRES(mutex_) {
    int added = 0;
    while (!timers_.empty() && timers_.begin()->first <= now) {
      const auto [at, request] = *timers_.begin();
      timers_.erase(timers_.begin());
      Entry& entry = entries_[request];
      entry.waiting = false;
      if (AddLocked(request, entry.timer_priority, at)) ++added;
    }
    return added;
  }

  std::optional<Item> PopLocked(Duration now, Duration* queued) LK_REQUIRES(mutex_) {
    auto& low = ready_[static_cast<int>(Priority::kLow)];
    auto& normal = ready_[static_cast<int>(Priority::kNormal)];
    if (low.empty() && normal.empty()) return std::nullopt;
    bool take_low = normal.empty();
    if (!take_low && !low.empty()) {
      const Duration low_added = entries_[low.front()].added;
      take_low = now - low_added >= options_.low_priority_ages_after && low_added < entries_[normal.front()].added;
    }
    Item item;
    item.request = take_low ? low.front() : normal.front();
    Entry& entry = entries_[item.request];
    item.priority = entry.priority;
    Unqueue(entry, take_low ? Priority::kLow : Priority::kNormal);
    entry.dirty = false;
    entry.priority = Priority::kLow;
    entry.processing = true;
    entry.started = now;
    *queued = now - entry.added;
    ++processing_;
    if (shut_down_) drained_.NotifyAll();
    return item;
  }

  // One sleeper at a time keeps the timer, so that a due key wakes one thread and not all.
  void Sleep(Duration now) LK_REQUIRES(mutex_) {
    if (timers_.empty() || timer_taken_) {
      ++sleepers_;
      wake_.Wait(mutex_);
      --sleepers_;
      return;
    }
    timer_taken_ = true;
    timer_wake_.WaitFor(mutex_, std::max(Duration(1), timers_.begin()->first - now));
    timer_taken_ = false;
  }

  void EraseIfIdle(Entries::iterator it) LK_REQUIRES(mutex_) {
    const Entry& entry = it->second;
    if (!entry.dirty && !entry.processing && !entry.waiting && entry.failures == 0) entries_.erase(it);
  }

  const Clock& clock_;
  const WorkQueueOptions options_;
  WorkQueueObserver& observer_;

  mutable Mutex mutex_;
  CondVar wake_;        // sleepers without a timer
  CondVar timer_wake_;  // the one sleeper with it
  CondVar drained_;
  std::mt19937_64 random_ LK_GUARDED_BY(mutex_);
  Entries entries_ LK_GUARDED_BY(mutex_);
  std::list<Request> ready_[2] LK_GUARDED_BY(mutex_);  // by Priority, oldest first
  Timers timers_ LK_GUARDED_BY(mutex_);
  size_t processing_ LK_GUARDED_BY(mutex_) = 0;
  int sleepers_ LK_GUARDED_BY(mutex_) = 0;
  bool timer_taken_ LK_GUARDED_BY(mutex_) = false;
  bool shut_down_ LK_GUARDED_BY(mutex_) = false;
};

WorkQueue::WorkQueue(const Clock& clock, WorkQueueOptions options, WorkQueueObserver* observer)
    : impl_(std::make_unique<Impl>(clock, options, observer)) {}
WorkQueue::~WorkQueue() = default;

void WorkQueue::Add(const Request& request, Priority priority) { impl_->Add(request, priority); }
void WorkQueue::AddAfter(const Request& request, Duration delay, Priority priority) {
  impl_->AddAfter(request, delay, priority);
}
Duration WorkQueue::AddRateLimited(const Request& request, Priority priority) {
  return impl_->AddRateLimited(request, priority);
}
void WorkQueue::Forget(const Request& request) { impl_->Forget(request); }
int WorkQueue::NumRequeues(const Request& request) const { return impl_->NumRequeues(request); }
std::optional<WorkQueue::Item> WorkQueue::Get() { return impl_->Get(); }
std::optional<WorkQueue::Item> WorkQueue::TryGet() { return impl_->TryGet(); }
std::optional<Duration> WorkQueue::NextReady() const { return impl_->NextReady(); }
void WorkQueue::Done(const Request& request) { impl_->Done(request); }
void WorkQueue::ShutDown() { impl_->ShutDown(); }
bool WorkQueue::ShutDownWithDrain(Duration patience) { return impl_->ShutDownWithDrain(patience); }
WorkQueue::Stats WorkQueue::GetStats() const { return impl_->GetStats(); }

}  // namespace lockkeeper
