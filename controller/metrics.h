// Metrics: counters, gauges and histograms under the names that Kubernetes controllers use.
//
// Purpose:   one registry per process, rendered for Prometheus. Families are declared once with their help text;
//            series come into being with their first use, or at 0 by Add(…, 0). Never a label by object name.
// Ownership: owns everything; callers borrow the Metrics.
// Threads:   thread-safe.
// Failure:   an undeclared name aborts: a defect of ours.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lockkeeper {

class Metrics {
 public:
  using Labels = std::map<std::string, std::string>;

  // Declares what the runtime itself uses (controller_runtime_*, workqueue_*, rest_client_*, leader_election_*, …).
  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  void DeclareCounter(const std::string& name, const std::string& help);
  void DeclareGauge(const std::string& name, const std::string& help);
  void DeclareHistogram(const std::string& name, const std::string& help, std::vector<double> buckets);

  void Add(std::string_view counter, const Labels& labels, double by = 1);
  void Set(std::string_view gauge, const Labels& labels, double value);
  void Observe(std::string_view histogram, const Labels& labels, double value);

  // Called before each rendering, to set gauges that are read rather than counted.
  void OnRender(std::function<void()> collect);
  // The text exposition format.
  std::string Render();
  // A series' value, 0 when it is not there (a histogram's count); for tests.
  double Value(std::string_view name, const Labels& labels) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockkeeper
