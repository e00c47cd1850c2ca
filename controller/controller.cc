#include "controller/controller.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <set>
#include <thread>

#include "api/base/log.h"
#include "api/base/sync.h"
#include "controller/metrics.h"

namespace lockkeeper {

namespace {

constexpr Duration kFirstPenalty = Seconds(1);
constexpr Duration kMaxPenalty = Seconds(30);

}  // namespace

class Controller::Impl : public WorkQueueObserver, public std::enable_shared_from_this<Controller::Impl> {
 public:
  Impl(ControllerOptions options, const Clock& clock, Metrics* metrics)
      : options_(std::move(options)), clock_(clock), metrics_(metrics), queue_(clock, options_.queue, this) {
    LK_CHECK(options_.reconcile != nullptr && options_.workers > 0);
    if (metrics_ == nullptr) return;
    for (const char* result : {"success", "error", "requeue", "requeue_after"}) CountResult(result, 0);
    for (const char* counter : {"errors_total", "panics_total"}) CountFlat("controller_runtime_reconcile_", counter, 0);
    CountFlat("controller_runtime_", "terminal_reconcile_errors_total", 0);
    metrics_->Set("controller_runtime_max_concurrent_reconciles", Label(), options_.workers);
    metrics_->Set("controller_runtime_active_workers", Label(), 0);
  }

  void Start() {
    MutexLock lock(mutex_);
    for (int i = 0; i < options_.workers; ++i) {
      ++workers_;
      threads_.emplace_back([self = shared_from_this()] { self->Work(); });
    }
  }

  void BeginStop() {
    stopping_.store(true);
    queue_.ShutDown();
  }

  Status Stop(Duration patience) {
    BeginStop();
    LK_RETURN_IF_ERROR(AwaitWorkers(patience));
    // To their very end: a thread that is still on its way out must not meet the process's exit handlers.
    std::vector<std::thread> threads;
    {
      MutexLock lock(mutex_);
      threads.swap(threads_);
    }
    for (std::thread& thread : threads) thread.join();
    return {};
  }

  // For workers that hang: the process is about to exit.
  void Abandon() {
    MutexLock lock(mutex_);
    for (std::thread& thread : threads_) thread.detach();
    threads_.clear();
  }

  Status AwaitWorkers(Duration patience) {
    const auto until = std::chrono::steady_clock::now() + patience;
    MutexLock lock(mutex_);
    while (workers_ > 0) {
      const auto left = until - std::chrono::steady_clock::now();
      if (left > std::chrono::steady_clock::duration::zero()) {
        workers_gone_.WaitFor(mutex_, left);
        continue;
      }
      std::string keys;
      for (const Request& request : running_) keys += (keys.empty() ? "" : ", ") + request.ToString();
      return {Code::kTimeout, "controller " + options_.name + " is still busy with " + keys};
    }
    return {};
  }

  bool ProcessOne() {
    const auto item = queue_.TryGet();
    if (item) Process(*item);
    return item.has_value();
  }

  void OnEvent(const CacheEvent& event, const EventMapper& mapper, const EventFilter& filter) {
    if (options_.skip_own_echo && event.own_write) return;
    if (filter && !filter(event)) return;
    const Priority priority = event.initial || event.unchanged ? Priority::kLow : Priority::kNormal;
    for (const Request& request : mapper(event)) queue_.Add(request, priority);
  }

  void Collect() {
    const WorkQueue::Stats stats = queue_.GetStats();
    metrics_->Set("workqueue_depth", QueueLabel(), static_cast<double>(stats.depth));
    metrics_->Set("workqueue_unfinished_work_seconds", QueueLabel(), ToSeconds(stats.unfinished));
    metrics_->Set("workqueue_longest_running_processor_seconds", QueueLabel(), ToSeconds(stats.longest_running));
    metrics_->Set("controller_runtime_active_workers", Label(), static_cast<double>(stats.processing));
  }

  const ControllerOptions& options() const { return options_; }
  WorkQueue& queue() { return queue_; }
  Metrics* metrics() const { return metrics_; }

  void OnAdd() override {
    if (metrics_ != nullptr) metrics_->Add("workqueue_adds_total", QueueLabel());
  }
  void OnGet(Duration queued) override {
    if (metrics_ != nullptr) metrics_->Observe("workqueue_queue_duration_seconds", QueueLabel(), ToSeconds(queued));
  }
  void OnDone(Duration worked) override {
    if (metrics_ != nullptr) metrics_->Observe("workqueue_work_duration_seconds", QueueLabel(), ToSeconds(worked));
  }
  void OnRetry() override {
    if (metrics_ != nullptr) metrics_->Add("workqueue_retries_total", QueueLabel());
  }

 private:
  struct Heat {
    std::deque<Duration> successes;
    Duration penalty{};
    Duration until{};
  };

  void Work() {
    while (const auto item = queue_.Get()) {
      if (stopping_.load()) {
        queue_.Done(item->request);  // the next process looks at it
        continue;
      }
      Process(*item);
    }
    MutexLock lock(mutex_);
    --workers_;
    workers_gone_.NotifyAll();
  }

  void Process(const WorkQueue::Item& item) {
    const Duration wait = PenaltyLeft(item.request);
    if (wait > Duration::zero()) {
      queue_.AddAfter(item.request, wait, item.priority);
      queue_.Done(item.request);
      return;
    }
    {
      MutexLock lock(mutex_);
      running_.insert(item.request);
    }
    const Duration start = clock_.Read().boot;
    Result<ReconcileResult> result = Call(item.request);
    if (metrics_ != nullptr) {
      metrics_->Observe("controller_runtime_reconcile_time_seconds", Label(), ToSeconds(clock_.Read().boot - start));
    }
    Finish(item, result);
    {
      MutexLock lock(mutex_);
      running_.erase(item.request);
    }
    queue_.Done(item.request);
  }

  Result<ReconcileResult> Call(const Request& request) {
    std::string what;
    try {
      return options_.reconcile(request);
    } catch (const std::exception& error) {
      what = error.what();
    } catch (...) {
      what = "an exception of an unknown kind";
    }
    CountFlat("controller_runtime_reconcile_", "panics_total", 1);
    return Status(Code::kInternal, "the reconciler threw: " + what);
  }

  void Finish(const WorkQueue::Item& item, const Result<ReconcileResult>& result) {
    if (!result.ok()) return FinishError(item, result.status());
    if (result->requeue_after > Duration::zero()) {
      queue_.Forget(item.request);
      queue_.AddAfter(item.request, result->requeue_after, item.priority);
      return CountResult("requeue_after", 1);
    }
    if (result->requeue) {
      queue_.AddRateLimited(item.request, item.priority);
      return CountResult("requeue", 1);
    }
    queue_.Forget(item.request);
    CountResult("success", 1);
    NoteSuccess(item.request);
  }

  void FinishError(const WorkQueue::Item& item, const Status& status) {
    const std::string key = item.request.ToString();
    switch (DispositionOf(status.code())) {
      case Disposition::kStop: queue_.Forget(item.request); return;
      case Disposition::kReobserve: {
        CountFlat("controller_runtime_", "conflict_total", 1);
        CountResult("requeue", 1);
        const Duration delay = queue_.AddRateLimited(item.request, item.priority);
        LogDebug(
            "looking again after a conflict",
            {{"controller", options_.name}, {"key", key}, {"error", status.message()}, {"next", FormatAge(delay)}});
        return;
      }
      case Disposition::kStalled:
        queue_.Forget(item.request);
        CountFlat("controller_runtime_", "terminal_reconcile_errors_total", 1);
        LogError("reconcile failed for good, until something changes",
                 {{"controller", options_.name}, {"key", key}, {"error", status.ToString()}});
        break;
      case Disposition::kRetry: {
        const int attempt = queue_.NumRequeues(item.request) + 1;
        const Duration delay = queue_.AddRateLimited(item.request, item.priority);
        LogError("reconcile failed", {{"controller", options_.name},
                                      {"key", key},
                                      {"try", attempt},
                                      {"next", FormatAge(delay)},
                                      {"error", status.ToString()}});
        break;
      }
    }
    CountFlat("controller_runtime_reconcile_", "errors_total", 1);
    CountResult("error", 1);
  }

  Duration PenaltyLeft(const Request& request) {
    if (options_.hot_loop_limit <= 0) return Duration::zero();
    MutexLock lock(mutex_);
    const auto it = heat_.find(request);
    return it == heat_.end() ? Duration::zero() : it->second.until - clock_.Read().boot;
  }

  void NoteSuccess(const Request& request) {
    if (options_.hot_loop_limit <= 0) return;
    const Duration now = clock_.Read().boot;
    Duration penalty{};
    {
      MutexLock lock(mutex_);
      Cool(now);
      Heat& heat = heat_[request];
      heat.successes.push_back(now);
      while (now - heat.successes.front() > options_.hot_loop_window) heat.successes.pop_front();
      if (heat.penalty > Duration::zero() && now - heat.until > options_.hot_loop_window) heat.penalty = {};
      if (heat.successes.size() <= static_cast<size_t>(options_.hot_loop_limit)) return;
      heat.penalty = heat.penalty == Duration::zero() ? kFirstPenalty : std::min(heat.penalty * 2, kMaxPenalty);
      heat.until = now + heat.penalty;
      penalty = heat.penalty;
    }
    CountFlat("controller_runtime_", "hot_loop_total", 1);
    LogWarn("a key is reconciled over and over: slowing it down",
            {{"controller", options_.name}, {"key", request.ToString()}, {"pause", FormatAge(penalty)}});
    if (options_.on_hot_loop) options_.on_hot_loop(request);
  }

  // Whoever has been quiet for a window is forgiven.
  void Cool(Duration now) LK_REQUIRES(mutex_) {
    if (now - cooled_at_ <= options_.hot_loop_window) return;
    cooled_at_ = now;
    std::erase_if(heat_, [&](const auto& h) {
      const Heat& heat = h.second;
      return now - heat.until > options_.hot_loop_window &&
             (heat.successes.empty() || now - heat.successes.back() > options_.hot_loop_window);
    });
  }

  std::map<std::string, std::string> Label() const { return {{"controller", options_.name}}; }
  std::map<std::string, std::string> QueueLabel() const {
    return {{"name", options_.name}, {"controller", options_.name}};
  }
  void CountResult(const char* result, double by) const {
    if (metrics_ == nullptr) return;
    metrics_->Add("controller_runtime_reconcile_total", {{"controller", options_.name}, {"result", result}}, by);
  }
  void CountFlat(const char* prefix, const char* counter, double by) const {
    if (metrics_ != nullptr) metrics_->Add(std::string(prefix) + counter, Label(), by);
  }

  const ControllerOptions options_;
  const Clock& clock_;
  Metrics* const metrics_;
  WorkQueue queue_;
  std::atomic<bool> stopping_{false};

  Mutex mutex_;
  CondVar workers_gone_;
  int workers_ LK_GUARDED_BY(mutex_) = 0;
  std::vector<std::thread> threads_ LK_GUARDED_BY(mutex_);
  std::set<Request> running_ LK_GUARDED_BY(mutex_);
  std::map<Request, Heat> heat_ LK_GUARDED_BY(mutex_);
  Duration cooled_at_ LK_GUARDED_BY(mutex_){};
};

Controller::Controller(ControllerOptions options, const Clock& clock, Metrics* metrics)
    : impl_(std::make_shared<Impl>(std::move(options), clock, metrics)) {
  if (metrics != nullptr) {
    metrics->OnRender([weak = std::weak_ptr<Impl>(impl_)] {
      if (const auto impl = weak.lock()) impl->Collect();
    });
  }
}

Controller::~Controller() {
  if (!impl_->Stop(Seconds(30)).ok()) impl_->Abandon();
}

void Controller::Watch(Cache& cache, EventMapper mapper, EventFilter filter) {
  cache.AddHandler([weak = std::weak_ptr<Impl>(impl_), mapper = std::move(mapper),
                    filter = std::move(filter)](const CacheEvent& event) {
    if (const auto impl = weak.lock()) impl->OnEvent(event, mapper, filter);
  });
}

EventMapper Controller::MapOwner(const std::string& kind) {
  return [kind](const CacheEvent& event) {
    std::vector<Request> out;
    const auto add = [&](const ObjectPtr& object) {
      if (object == nullptr) return;
      for (const CachedOwner& owner : object->owners()) {
        const Request request{object->key().namespace_, owner.name};
        if (owner.kind == kind && std::find(out.begin(), out.end(), request) == out.end()) out.push_back(request);
      }
    };
    add(event.object);
    add(event.old_object);  // an owner that was taken away must hear of it
    return out;
  };
}

bool Controller::GenerationChanged(const CacheEvent& event) {
  if (event.type != CacheEvent::Type::kUpdated || event.old_object == nullptr) return true;
  return event.old_object->generation() != event.object->generation() ||
         event.old_object->deleting() != event.object->deleting();
}

const std::string& Controller::name() const { return impl_->options().name; }
bool Controller::needs_leader() const { return impl_->options().needs_leader; }
WorkQueue& Controller::queue() { return impl_->queue(); }
void Controller::Start() { impl_->Start(); }
void Controller::BeginStop() { impl_->BeginStop(); }
Status Controller::Stop(Duration patience) { return impl_->Stop(patience); }
bool Controller::ProcessOne() { return impl_->ProcessOne(); }

}  // namespace lockkeeper
