// Metrics: the server's counters in the Prometheus text format, under kube-apiserver's names where one exists.
// Ownership: values behind a pimpl. Threads: thread-safe. Failure: none.
#pragma once

#include <memory>
#include <string>

namespace lockkeeper::apiserver {

class Metrics {
 public:
  Metrics();
  ~Metrics();

  // apiserver_request_total{verb,resource,code} and apiserver_request_duration_seconds{verb}.
  void Request(const std::string& verb, const std::string& resource, int code, double seconds);
  // apiserver_longrunning_requests{verb="WATCH"} and apiserver_watch_events_total{resource}.
  void WatchBegan();
  void WatchEnded();
  void WatchEvents(const std::string& resource, size_t count);
  // lockkeeper_store_revision, lockkeeper_store_bytes; read when /metrics is.
  void Store(double revision, double bytes);

  std::string Text() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockkeeper::apiserver
