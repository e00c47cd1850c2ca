#include "controller/manager.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "api/base/log.h"
#include "api/base/sync.h"
#include "controller/ops_server.h"

namespace lockkeeper {

namespace {

// A thread with a token that ends it, and a join that can give up.
class Worker {
 public:
  Worker(std::string name, std::function<void(const CancelToken&)> run) : state_(std::make_shared<State>()) {
    state_->name = std::move(name);
    state_->run = std::move(run);
  }
  ~Worker() {
    if (!thread_.joinable()) return;
    state_->cancel.Cancel();
    if (Finished(Seconds(30))) {
      thread_.join();
    } else {
      thread_.detach();  // the process is about to exit
    }
  }

  void Start() {
    thread_ = std::thread([state = state_] {
      // Once in any case: work that was cancelled before its thread began still has its last things to do.
      do {
        try {
          state->run(state->cancel);
          break;
        } catch (const std::exception& error) {
          LogError("background work threw and is begun again", {{"name", state->name}, {"what", error.what()}});
        }
      } while (!state->cancel.cancelled());
      MutexLock lock(state->mutex);
      state->finished = true;
      state->changed.NotifyAll();
    });
  }
  void Cancel() { state_->cancel.Cancel(); }
  const CancelToken& token() const { return state_->cancel; }
  const std::string& name() const { return state_->name; }
  bool started() const { return thread_.joinable(); }

  bool Join(Duration patience) {
    if (!thread_.joinable()) return true;
    if (!Finished(patience)) return false;
    thread_.join();
    return true;
  }

 private:
  struct State {
    std::string name;
    std::function<void(const CancelToken&)> run;
    CancelToken cancel;
    Mutex mutex;
    CondVar changed;
    bool finished LK_GUARDED_BY(mutex) = false;
  };

  bool Finished(Duration patience) {
    const auto until = std::chrono::steady_clock::now() + patience;
    MutexLock lock(state_->mutex);
    while (!state_->finished) {
      const auto left = until - std::chrono::steady_clock::now();
      if (left <= std::chrono::steady_clock::duration::zero()) return false;
      state_->changed.WaitFor(state_->mutex, left);
    }
    return true;
  }

  std::shared_ptr<State> state_;  // shared with the thread, which may outlive a Join that gave up
  std::thread thread_;
};

constexpr Duration kFlushPatience = Milliseconds(100);

// One span of time for all that has to end, and a second one once calls were cancelled.
class Patience {
 public:
  explicit Patience(const ManagerOptions& options)
      : options_(options), until_(std::chrono::steady_clock::now() + options.stop_timeout) {}

  // `end` waits for at most the time given and answers whether it ended.
  void Await(const std::function<Status(Duration)>& end) {
    Status ended = end(Left());
    if (!ended.ok() && !hard_ && options_.cancel_calls) {
      hard_ = true;
      LogWarn("cancelling the calls of work that does not end", {{"error", ended.message()}});
      options_.cancel_calls();
      until_ = std::chrono::steady_clock::now() + options_.cancel_timeout;
      ended = end(Left());
    }
    Keep(std::move(ended));
  }
  void Keep(Status next) {
    if (status_.ok()) status_ = std::move(next);
  }
  const Status& status() const { return status_; }

 private:
  Duration Left() const {
    const auto left = until_ - std::chrono::steady_clock::now();
    return std::max(Duration(0), std::chrono::duration_cast<Duration>(left));
  }

  const ManagerOptions& options_;
  std::chrono::steady_clock::time_point until_;
  bool hard_ = false;
  Status status_;
};

}  // namespace

class Manager::Impl {
 public:
  Impl(Api& inner, const Clock& clock, ManagerOptions options, Metrics* metrics)
      : options_(std::move(options)),
        clock_(clock),
        inner_(inner),
        api_(inner),
        own_metrics_(metrics == nullptr ? std::make_unique<Metrics>() : nullptr),
        metrics_(metrics == nullptr ? *own_metrics_ : *metrics),
        events_(inner, clock, EventOptions(options_, metrics_)),
        ops_(options_.metrics_address, metrics_, health_) {
    MutexLock lock(gate_->mutex);
    gate_->impl = this;
  }

  ~Impl() {
    MutexLock lock(gate_->mutex);
    gate_->impl = nullptr;
  }

  Cache& AddCache(const Resource& resource, CacheOptions options) {
    Held& held = *caches_.emplace_back(std::make_unique<Held>());
    held.required = options.required;
    held.cache = std::make_unique<Cache>(resource, options.namespace_, options.selects, options.trim);
    options.reflector.metrics = &metrics_;
    held.reflector = std::make_unique<Reflector>(inner_, *held.cache, options.reflector);
    held.worker = std::make_unique<Worker>("reflector of " + resource.GroupResource(),
                                           [&held](const CancelToken& cancel) { held.reflector->Run(cancel); });
    api_.AddCache(*held.cache);
    if (options.required) {
      health_.AddReady("cache-" + resource.GroupResource(), [this, &held] { return Ready(held); });
    }
    return *held.cache;
  }

  Controller& AddController(ControllerOptions options) {
    return *controllers_.emplace_back(std::make_unique<Controller>(std::move(options), clock_, &metrics_));
  }

  void AddRunnable(const std::string& name, std::function<void(const CancelToken&)> run, bool needs_leader) {
    (needs_leader ? leader_work_ : work_).push_back(std::make_unique<Worker>(name, std::move(run)));
  }

  LeaderElection& AddElection(Api& lease_api, LeaderElectionOptions options) {
    options.metrics = &metrics_;
    election_ = std::make_unique<LeaderElection>(lease_api, clock_, std::move(options));
    health_.AddLive("leader-election", [this] { return election_->Check(); });
    return *election_;
  }

  Status Start() {
    LK_RETURN_IF_ERROR(ops_.Start());
    metrics_.OnRender([gate = gate_] {
      MutexLock lock(gate->mutex);
      if (gate->impl != nullptr) gate->impl->Collect();
    });
    event_thread_ = std::make_unique<Worker>("events", [this](const CancelToken& cancel) { events_.Run(cancel); });
    event_thread_->Start();
    for (auto& held : caches_) held->worker->Start();
    conductor_ = std::make_unique<Worker>("conductor", [this](const CancelToken& cancel) { Conduct(cancel); });
    conductor_->Start();
    return {};
  }

  bool WaitUntilStarted(Duration timeout) {
    const auto until = std::chrono::steady_clock::now() + timeout;
    MutexLock lock(mutex_);
    while (!started_) {
      const auto left = until - std::chrono::steady_clock::now();
      if (left <= std::chrono::steady_clock::duration::zero()) return false;
      changed_.WaitFor(mutex_, left);
    }
    return true;
  }

  Status Stop() {
    {
      MutexLock lock(mutex_);
      if (stopping_) return {};
      stopping_ = true;  // from here no controller starts any more
    }
    Patience patience(options_);
    patience.Await([&](Duration left) { return StopWorkers(work_, left); });
    patience.Await([&](Duration left) { return StopWorkers(leader_work_, left); });
    for (auto& controller : controllers_) controller->BeginStop();
    for (auto& controller : controllers_) patience.Await([&](Duration left) { return controller->Stop(left); });
    for (auto& held : caches_) held->worker->Cancel();
    for (auto& held : caches_) patience.Await([&](Duration left) { return JoinOr(*held->worker, left); });
    ops_.Stop();
    if (conductor_ != nullptr) {
      conductor_->Cancel();  // the lease was renewed until here
      patience.Await([&](Duration left) { return JoinOr(*conductor_, left); });
    }
    // Only when nothing can write any more.
    if (election_ != nullptr && patience.status().ok()) patience.Keep(election_->Release());
    if (event_thread_ != nullptr) {
      event_thread_->Cancel();
      patience.Await([&](Duration left) { return JoinOr(*event_thread_, std::max(left, kFlushPatience)); });
    }
    return patience.status();
  }

  Api& api() { return api_; }
  Recorder& recorder() { return events_; }
  Metrics& metrics() { return metrics_; }
  Health& health() { return health_; }
  int ops_port() const { return ops_.port(); }

 private:
  struct Held {
    std::unique_ptr<Cache> cache;
    std::unique_ptr<Reflector> reflector;
    std::unique_ptr<Worker> worker;
    bool required = true;
  };
  using Workers = std::vector<std::unique_ptr<Worker>>;
  // The metrics may outlive us, and keep what they were given.
  struct Gate {
    Mutex mutex;
    Impl* impl LK_GUARDED_BY(mutex) = nullptr;
  };

  static EventWriterOptions EventOptions(const ManagerOptions& options, Metrics& metrics) {
    EventWriterOptions out;
    out.component = options.event_component;
    out.host = options.event_host;
    out.spam_burst = options.event_burst;
    out.metrics = &metrics;
    return out;
  }

  static Status JoinOr(Worker& worker, Duration patience) {
    if (worker.Join(patience)) return {};
    return {Code::kTimeout, worker.name() + " did not end in time"};
  }

  static Status StopWorkers(Workers& workers, Duration patience) {
    for (auto& worker : workers) worker->Cancel();
    const auto until = std::chrono::steady_clock::now() + patience;
    for (auto& worker : workers) {
      const auto left = std::chrono::duration_cast<Duration>(until - std::chrono::steady_clock::now());
      LK_RETURN_IF_ERROR(JoinOr(*worker, std::max(Duration(0), left)));
    }
    return {};
  }

  Status Ready(const Held& held) const {
    if (!held.cache->HasSynced()) {
      const Status error = held.reflector->LastError();
      return {Code::kUnavailable, "not synced yet" + (error.ok() ? std::string() : ": " + error.message())};
    }
    const Duration age = held.cache->SinceLastActivity();
    if (age <= options_.cache_stale_after) return {};
    const Status error = held.reflector->LastError();
    return {Code::kUnavailable,
            "nothing heard for " + FormatAge(age) + (error.ok() ? std::string() : ": " + error.message())};
  }

  void Fatal(const Status& status) {
    if (fatal_.exchange(true)) return;
    LogError("this process cannot go on", {{"error", status.ToString()}});
    if (options_.on_fatal) options_.on_fatal(status);
  }

  // What has to happen one after the other, off main's thread.
  void Conduct(const CancelToken& cancel) {
    for (const auto& held : caches_) {
      if (!held->required || held->cache->WaitForSync(options_.cache_sync_timeout, &cancel)) continue;
      if (cancel.cancelled()) return;
      const Status error = held->reflector->LastError();
      return Fatal(Status(Code::kTimeout, "the cache of " + held->cache->resource().GroupResource() +
                                              " did not sync within " + FormatAge(options_.cache_sync_timeout) +
                                              (error.ok() ? "" : ": " + error.message())));
    }
    StartGroup(false);
    if (election_ == nullptr) {
      StartGroup(true);
      return;
    }
    const Status status = election_->Run(cancel, [this] {
      if (StartGroup(true) && options_.on_leading) options_.on_leading();
    });
    if (status.code() != Code::kCancelled) Fatal(status);
  }

  // False when the process is stopping already.
  bool StartGroup(bool leader) {
    MutexLock lock(mutex_);
    if (stopping_) return false;
    for (auto& worker : leader ? leader_work_ : work_) worker->Start();
    for (auto& controller : controllers_) {
      if (controller->needs_leader() == leader) controller->Start();
    }
    if (leader) {
      started_ = true;
      changed_.NotifyAll();
    }
    return true;
  }

  void Collect() {
    for (const auto& held : caches_) {
      const Metrics::Labels labels{{"resource", held->cache->resource().GroupResource()}};
      metrics_.Set("cache_objects", labels, static_cast<double>(held->cache->size()));
      metrics_.Set("cache_bytes", labels, static_cast<double>(held->cache->bytes()));
      metrics_.Set("watch_last_event_age_seconds", labels, ToSeconds(held->cache->SinceLastActivity()));
    }
  }

  const ManagerOptions options_;
  const Clock& clock_;
  Api& inner_;
  WriteThroughApi api_;
  std::unique_ptr<Metrics> own_metrics_;
  Metrics& metrics_;
  Health health_;
  EventWriter events_;
  std::vector<std::unique_ptr<Held>> caches_;
  std::vector<std::unique_ptr<Controller>> controllers_;
  Workers work_;
  Workers leader_work_;
  std::unique_ptr<LeaderElection> election_;
  OpsServer ops_;
  std::unique_ptr<Worker> event_thread_;
  std::unique_ptr<Worker> conductor_;
  std::atomic<bool> fatal_{false};
  const std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();

  Mutex mutex_;
  CondVar changed_;
  bool stopping_ LK_GUARDED_BY(mutex_) = false;
  bool started_ LK_GUARDED_BY(mutex_) = false;
};

Manager::Manager(Api& api, const Clock& clock, ManagerOptions options, Metrics* metrics)
    : impl_(std::make_unique<Impl>(api, clock, std::move(options), metrics)) {}

Manager::~Manager() {
  const Status status = impl_->Stop();
  if (!status.ok()) LogError("stopping", {{"error", status.ToString()}});
}

Api& Manager::api() { return impl_->api(); }
Recorder& Manager::recorder() { return impl_->recorder(); }
Metrics& Manager::metrics() { return impl_->metrics(); }
Health& Manager::health() { return impl_->health(); }
Cache& Manager::AddCache(const Resource& resource, CacheOptions options) {
  return impl_->AddCache(resource, std::move(options));
}
Controller& Manager::AddController(ControllerOptions options) { return impl_->AddController(std::move(options)); }
void Manager::AddRunnable(const std::string& name, std::function<void(const CancelToken&)> run, bool needs_leader) {
  impl_->AddRunnable(name, std::move(run), needs_leader);
}
LeaderElection& Manager::AddElection(Api& lease_api, LeaderElectionOptions options) {
  return impl_->AddElection(lease_api, std::move(options));
}
Status Manager::Start() { return impl_->Start(); }
bool Manager::WaitUntilStarted(Duration timeout) { return impl_->WaitUntilStarted(timeout); }
Status Manager::Stop() { return impl_->Stop(); }
int Manager::ops_port() const { return impl_->ops_port(); }

}  // namespace lockkeeper
