#include "api/server/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

namespace lockkeeper::apiserver {

struct Metrics::Impl {
  prometheus::Registry registry;
  prometheus::Family<prometheus::Counter>& requests = prometheus::BuildCounter()
                                                          .Name("apiserver_request_total")
                                                          .Help("Requests by verb, resource and HTTP status code.")
                                                          .Register(registry);
  prometheus::Family<prometheus::Histogram>& durations = prometheus::BuildHistogram()
                                                             .Name("apiserver_request_duration_seconds")
                                                             .Help("Time to the answer; of watches, to the first byte.")
                                                             .Register(registry);
  prometheus::Gauge& watches = prometheus::BuildGauge()
                                   .Name("apiserver_longrunning_requests")
                                   .Help("Watches that are open.")
                                   .Register(registry)
                                   .Add({{"verb", "WATCH"}});
  prometheus::Family<prometheus::Counter>& events = prometheus::BuildCounter()
                                                        .Name("apiserver_watch_events_total")
                                                        .Help("Events sent to watches.")
                                                        .Register(registry);
  prometheus::Gauge& revision = prometheus::BuildGauge()
                                    .Name("lockkeeper_store_revision")
                                    .Help("The newest resourceVersion.")
                                    .Register(registry)
                                    .Add({});
  prometheus::Gauge& bytes = prometheus::BuildGauge()
                                 .Name("lockkeeper_store_bytes")
                                 .Help("Size of the store's file.")
                                 .Register(registry)
                                 .Add({});
};

Metrics::Metrics() : impl_(std::make_unique<Impl>()) {}
Metrics::~Metrics() = default;

void Metrics::Request(const std::string& verb, const std::string& resource, int code, double seconds) {
  impl_->requests.Add({{"verb", verb}, {"resource", resource}, {"code", std::to_string(code)}}).Increment();
  impl_->durations
      .Add({{"verb", verb}}, prometheus::Histogram::BucketBoundaries{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                                                     0.5, 1, 2.5, 5, 10})
      .Observe(seconds);
}

void Metrics::WatchBegan() { impl_->watches.Increment(); }
void Metrics::WatchEnded() { impl_->watches.Decrement(); }

void Metrics::WatchEvents(const std::string& resource, size_t count) {
  impl_->events.Add({{"resource", resource}}).Increment(static_cast<double>(count));
}

void Metrics::Store(double revision, double bytes) {
  impl_->revision.Set(revision);
  impl_->bytes.Set(bytes);
}

std::string Metrics::Text() const { return prometheus::TextSerializer().Serialize(impl_->registry.Collect()); }

}  // namespace lockkeeper::apiserver
