#include "tests/load/shared.h"

#include <poll.h>

#include <algorithm>
#include <cstdio>

namespace lockkeeper::load {
namespace {

constexpr size_t kMostErrors = 20;

Duration Between(Instant from, Instant to) { return std::chrono::duration_cast<Duration>(to - from); }

}  // namespace

Shared::Shared(const LoadConfig& load_config, std::string run_id) : config(load_config), run(std::move(run_id)) {}

std::string Shared::CollectionPath() const { return "/api/v1/namespaces/" + PercentEncode(config.ns) + "/configmaps"; }
std::string Shared::ObjectPath(const std::string& name) const { return CollectionPath() + "/" + name; }
std::string Shared::Selector() const { return PercentEncode("lk-load=" + run); }

HttpClientConfig Shared::ClientConfig() const {
  HttpClientConfig client;
  client.base_url = config.base_url;
  client.tls = config.tls;
  client.user_agent = "lk-load/" + run;
  return client;
}

ClientRequest Shared::Request(std::string method, std::string target, const Json* body) const {
  ClientRequest request;
  request.method = std::move(method);
  request.target = std::move(target);
  request.headers.emplace_back("Accept", "application/json");
  if (!config.token.empty()) request.headers.emplace_back("Authorization", "Bearer " + config.token);
  if (body != nullptr) {
    request.headers.emplace_back("Content-Type", "application/json");
    request.body = body->Dump();
  }
  request.timeout = std::chrono::duration_cast<std::chrono::milliseconds>(config.request_timeout);
  return request;
}

void Shared::Begin(Instant now) {
  const MutexLock lock(mutex_);
  begun_ = now;
  last_valid_ = now;
}

int64_t Shared::Take(Instant* due) {
  const int64_t number = next_.fetch_add(1);
  const MutexLock lock(mutex_);
  *due = begun_ + std::chrono::duration_cast<Instant::duration>(
                      std::chrono::duration<double>(static_cast<double>(number) / config.rate));
  return number;
}

void Shared::Answered(const ClientResponse& response, bool valid, bool write, Duration latency) {
  const Instant now = std::chrono::steady_clock::now();
  const MutexLock lock(mutex_);
  ++counts_.requests;
  ++(write ? counts_.writes : counts_.reads);
  if (response.retried) ++counts_.retried;
  if (!response.reused_connection) ++counts_.connections;
  if (!valid) {
    ++counts_.failed;
    return;
  }
  ++counts_.ok;
  (write ? writes_ : reads_).Add(latency);
  longest_gap_ = std::max(longest_gap_, Between(last_valid_, now));
  last_valid_ = now;
}

void Shared::Unanswered(const Status& status, bool write) {
  if (status.code() == Code::kCancelled) return;  // by us, at the end
  const MutexLock lock(mutex_);
  ++counts_.requests;
  ++(write ? counts_.writes : counts_.reads);
  // The client has one kind for all that is not there; the text of ECONNREFUSED tells this one.
  if (status.message().find("Connection refused") != std::string::npos) {
    ++counts_.refused;
  } else {
    ++counts_.failed;
  }
  NoteLocked(status.ToString());
}

void Shared::AcceptedWrite() {
  const MutexLock lock(mutex_);
  ++counts_.accepted_writes;
}

void Shared::StaleRead(const std::string& text) {
  const MutexLock lock(mutex_);
  ++counts_.stale_reads;
  NoteLocked(text);
}

void Shared::WatchEvent() {
  const MutexLock lock(mutex_);
  ++counts_.watch_events;
}

void Shared::WatchEnded(const Status& status) {
  const MutexLock lock(mutex_);
  ++counts_.watch_reconnects;
  if (!status.ok()) NoteLocked("watch: " + status.ToString());
}

void Shared::Note(const std::string& text) {
  const MutexLock lock(mutex_);
  NoteLocked(text);
}

void Shared::NoteLocked(const std::string& text) {
  if (errors_.size() >= kMostErrors) return;
  char at[32];
  std::snprintf(at, sizeof at, "%.3f s: ", ToSeconds(Between(begun_, std::chrono::steady_clock::now())));
  errors_.push_back(at + text);
}

LoadCounts Shared::Counts() const {
  const MutexLock lock(mutex_);
  return counts_;
}

void Shared::Report(LoadResult& result) const {
  const MutexLock lock(mutex_);
  result.counts = counts_;
  result.read_latency = reads_;
  result.write_latency = writes_;
  result.longest_gap_seconds = ToSeconds(longest_gap_);
  result.errors = errors_;
}

bool WaitCancelled(const CancelToken& token, Instant end) {
  while (!token.cancelled()) {
    const auto left = end - std::chrono::steady_clock::now();
    if (left <= left.zero()) return false;
    const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(left).count();
    const timespec wait{ns / 1000000000, ns % 1000000000};
    pollfd fd{token.fd(), POLLIN, 0};
    ::ppoll(&fd, 1, &wait, nullptr);
  }
  return true;
}

Status ApiError(const ClientRequest& request, const ClientResponse& response) {
  std::string said = response.body.substr(0, 200);
  if (const auto body = Json::Parse(response.body); body.ok() && body->Has("message")) {
    said = body->Get("message").AsString();
  }
  return {response.status == 410 ? Code::kExpired : Code::kUnavailable,
          request.method + " " + request.target + ": " + std::to_string(response.status) + " " + said};
}

}  // namespace lockkeeper::load
