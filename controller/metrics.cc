#include "controller/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <cmath>

#include "api/base/status.h"
#include "api/base/sync.h"

namespace lockkeeper {

namespace {

// 5 ms to 60 s, as controller-runtime has them.
const std::vector<double>& ReconcileBuckets() {
  static const std::vector<double> kBuckets = {
      0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5,
      1.75,  2.0,  2.5,   3.0,  3.5, 4.0,  4.5, 5,    6,   7,    8,   9,    10,  15,  20,  25,  30,  40,  50,   60};
  return kBuckets;
}

std::vector<double> QueueBuckets() {
  std::vector<double> out;
  for (int k = 0; k < 12; ++k) out.push_back(std::pow(10.0, k - 8));
  return out;
}

}  // namespace

class Metrics::Impl {
 public:
  struct Declared {
    prometheus::Family<prometheus::Counter>* counter = nullptr;
    prometheus::Family<prometheus::Gauge>* gauge = nullptr;
    prometheus::Family<prometheus::Histogram>* histogram = nullptr;
    std::vector<double> buckets;
  };

  prometheus::Registry registry;
  Mutex mutex;
  std::map<std::string, Declared, std::less<>> declared LK_GUARDED_BY(mutex);
  std::vector<std::function<void()>> collectors LK_GUARDED_BY(mutex);

  // Families and series are never removed, so what is found stays valid.
  Declared Find(std::string_view name) LK_EXCLUDES(mutex) {
    MutexLock lock(mutex);
    const auto it = declared.find(name);
    if (it == declared.end()) Die(__FILE__, __LINE__, "metric \"" + std::string(name) + "\" was never declared");
    return it->second;
  }
};

Metrics::Metrics() : impl_(std::make_unique<Impl>()) {
  DeclareCounter("controller_runtime_reconcile_total", "Reconciles per controller and result.");
  DeclareCounter("controller_runtime_reconcile_errors_total", "Reconciles that ended in an error.");
  DeclareCounter("controller_runtime_terminal_reconcile_errors_total",
                 "Errors that wait for a change, not for a retry.");
  DeclareCounter("controller_runtime_reconcile_panics_total", "Reconciles that ended in an exception.");
  DeclareCounter("controller_runtime_conflict_total", "Reconciles that lost an optimistic lock.");
  DeclareCounter("controller_runtime_hot_loop_total", "Times a key was slowed down for succeeding over and over.");
  DeclareHistogram("controller_runtime_reconcile_time_seconds", "Duration of one reconcile.", ReconcileBuckets());
  DeclareGauge("controller_runtime_max_concurrent_reconciles", "Workers of a controller.");
  DeclareGauge("controller_runtime_active_workers", "Workers of a controller that are reconciling.");
  DeclareGauge("workqueue_depth", "Keys that wait for a worker.");
  DeclareCounter("workqueue_adds_total", "Keys added to the queue.");
  DeclareHistogram("workqueue_queue_duration_seconds", "Time from add to a worker.", QueueBuckets());
  DeclareHistogram("workqueue_work_duration_seconds", "Time that a worker had a key.", QueueBuckets());
  DeclareGauge("workqueue_unfinished_work_seconds", "Sum of the time that keys have been with workers.");
  DeclareGauge("workqueue_longest_running_processor_seconds", "Longest time that a key has been with a worker.");
  DeclareCounter("workqueue_retries_total", "Keys added again with back-off.");
  DeclareCounter("rest_client_requests_total", "Requests to an API server.");
  DeclareHistogram("rest_client_request_duration_seconds", "Duration of a request, retries included.",
                   {0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60});
  DeclareCounter("rest_client_request_retries_total", "Requests sent again because the server said so.");
  DeclareGauge("leader_election_master_status", "1 while this process leads.");
  DeclareCounter("leader_election_slowpath_total", "Renewals that had to read the Lease first.");
  DeclareGauge("cache_objects", "Objects in a cache.");
  DeclareGauge("cache_bytes", "Bytes of JSON text in a cache.");
  DeclareCounter("watch_restarts_total", "Watches begun again, by reason.");
  DeclareGauge("watch_last_event_age_seconds", "Time since the last event or bookmark of a watch.");
  DeclareCounter("events_dropped_total", "Events that were not written, by reason.");
}

Metrics::~Metrics() = default;

void Metrics::DeclareCounter(const std::string& name, const std::string& help) {
  MutexLock lock(impl_->mutex);
  impl_->declared[name].counter = &prometheus::BuildCounter().Name(name).Help(help).Register(impl_->registry);
}

void Metrics::DeclareGauge(const std::string& name, const std::string& help) {
  MutexLock lock(impl_->mutex);
  impl_->declared[name].gauge = &prometheus::BuildGauge().Name(name).Help(help).Register(impl_->registry);
}

void Metrics::DeclareHistogram(const std::string& name, const std::string& help, std::vector<double> buckets) {
  MutexLock lock(impl_->mutex);
  Impl::Declared& declared = impl_->declared[name];
  declared.histogram = &prometheus::BuildHistogram().Name(name).Help(help).Register(impl_->registry);
  declared.buckets = std::move(buckets);
}

void Metrics::Add(std::string_view counter, const Labels& labels, double by) {
  const Impl::Declared declared = impl_->Find(counter);
  LK_CHECK(declared.counter != nullptr);
  declared.counter->Add(labels).Increment(by);
}

void Metrics::Set(std::string_view gauge, const Labels& labels, double value) {
  const Impl::Declared declared = impl_->Find(gauge);
  LK_CHECK(declared.gauge != nullptr);
  declared.gauge->Add(labels).Set(value);
}

void Metrics::Observe(std::string_view histogram, const Labels& labels, double value) {
  const Impl::Declared declared = impl_->Find(histogram);
  LK_CHECK(declared.histogram != nullptr);
  declared.histogram->Add(labels, declared.buckets).Observe(value);
}

void Metrics::OnRender(std::function<void()> collect) {
  MutexLock lock(impl_->mutex);
  impl_->collectors.push_back(std::move(collect));
}

std::string Metrics::Render() {
  std::vector<std::function<void()>> collectors;
  {
    MutexLock lock(impl_->mutex);
    collectors = impl_->collectors;
  }
  for (const auto& collect : collectors) collect();
  return prometheus::TextSerializer().Serialize(impl_->registry.Collect());
}

double Metrics::Value(std::string_view name, const Labels& labels) const {
  for (const auto& family : impl_->registry.Collect()) {
    if (family.name != name) continue;
    for (const auto& metric : family.metric) {
      Labels found;
      for (const auto& label : metric.label) found[label.name] = label.value;
      if (found != labels) continue;
      if (family.type == prometheus::MetricType::Counter) return metric.counter.value;
      if (family.type == prometheus::MetricType::Gauge) return metric.gauge.value;
      return static_cast<double>(metric.histogram.sample_count);
    }
  }
  return 0;
}

}  // namespace lockkeeper
