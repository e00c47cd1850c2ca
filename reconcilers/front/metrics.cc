#include "reconcilers/front/metrics.h"

#include <cstdio>
#include <cstring>

namespace lockkeeper::front {
namespace {

std::string Number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

void Head(std::string_view name, std::string_view help, std::string_view type, std::string* out) {
  out->append("# HELP ").append(name).append(" ").append(help).append("\n# TYPE ").append(name).append(" ");
  out->append(type).append("\n");
}

void Line(std::string_view name, std::string_view labels, double value, std::string* out) {
  out->append(name);
  if (!labels.empty()) out->append("{").append(labels).append("}");
  out->append(" ").append(Number(value)).append("\n");
}

void One(std::string_view name, std::string_view help, std::string_view type, double value, std::string* out) {
  Head(name, help, type, out);
  Line(name, "", value, out);
}

}  // namespace

void Histogram::Observe(double seconds) {
  size_t i = 0;
  while (i < kBounds.size() && seconds > kBounds[i]) ++i;
  ++buckets_[i];
  sum_ += seconds;
}

void Histogram::Write(std::string_view name, std::string_view help, std::string* out) const {
  Head(name, help, "histogram", out);
  uint64_t count = 0;
  for (size_t i = 0; i <= kBounds.size(); ++i) {
    count += buckets_[i];
    const std::string bound = i < kBounds.size() ? Number(kBounds[i]) : "+Inf";
    Line(std::string(name) + "_bucket", "le=\"" + bound + "\"", static_cast<double>(count), out);
  }
  Line(std::string(name) + "_sum", "", sum_, out);
  Line(std::string(name) + "_count", "", static_cast<double>(count), out);
}

std::string FrontMetrics::Text() {
  const std::string p = "lockkeeper_front_";
  const auto d = [](int64_t n) { return static_cast<double>(n); };
  std::string out;
  Head(p + "connections_open", "Connections open or being dialled, by backend.", "gauge", &out);
  for (const auto& [name, b] : backends) Line(p + "connections_open", "backend=\"" + name + "\"", b.open, &out);
  Head(p + "connections_total", "Connections that reached the backend.", "counter", &out);
  for (const auto& [name, b] : backends) {
    Line(p + "connections_total", "backend=\"" + name + "\"", d(b.total), &out);
  }
  One(p + "accepted_total", "Connections accepted.", "counter", d(accepted), &out);
  One(p + "held", "Connections that wait for a backend.", "gauge", held, &out);
  One(p + "held_left_total", "Clients that went away while held.", "counter", d(client_left_held), &out);
  One(p + "refused_total", "Connections ended because they were held for too long.", "counter", d(refused), &out);
  dial.Write(p + "dial_seconds", "Time of a successful connect to the backend.", &out);
  Head(p + "dial_failures_total", "Connects to the backend that failed, by errno.", "counter", &out);
  for (const auto& [error, n] : dial_failures) {
    const char* name = strerrorname_np(error);
    Line(p + "dial_failures_total", "errno=\"" + std::string(name != nullptr ? name : "?") + "\"", d(n), &out);
  }
  One(p + "dial_retries_total", "Connects begun again after a failure.", "counter", d(dial_retries), &out);
  Head(p + "bytes_total", "Bytes relayed.", "counter", &out);
  Line(p + "bytes_total", "dir=\"up\",mode=\"copy\"", d(bytes_up), &out);
  Line(p + "bytes_total", "dir=\"down\",mode=\"copy\"", d(bytes_down), &out);
  One(p + "drained_total", "Connections closed by drains, cut ones included.", "counter", d(drained), &out);
  One(p + "drain_cut_total", "Connections reset at the deadline of a drain.", "counter", d(cut), &out);
  One(p + "rehomed_total", "Silent connections moved to the current backend by a drain.", "counter", d(rehomed), &out);
  One(p + "accept_paused_seconds_total", "Time in which nothing was accepted.", "counter",
      d(accept_paused_micros) / 1e6, &out);
  One(p + "accept_errors_total", "Accepts that failed for want of descriptors or memory.", "counter", d(accept_errors),
      &out);
  One(p + "flips_total", "Changes of the target since the start.", "counter", d(flips), &out);
  flip.Write(p + "flip_seconds", "From a Set's arrival to the new target in force, its sync to disk included.", &out);
  One(p + "generation", "Changes of the target over the front's life.", "gauge", d(generation), &out);
  One(p + "loop_lag_seconds", "The longest turn of the loop since the last scrape.", "gauge", d(lag_micros) / 1e6,
      &out);
  lag_micros = 0;
  return out;
}

}  // namespace lockkeeper::front
