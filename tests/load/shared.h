// What the threads of one load run share: the API's paths, the counts, the way to stop.
#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <vector>

#include "api/base/sync.h"
#include "tests/load/load.h"

namespace lockkeeper::load {

using Instant = std::chrono::steady_clock::time_point;

class Shared {
 public:
  Shared(const LoadConfig& load_config, std::string run_id);

  const LoadConfig config;
  const std::string run;  // label of everything that this run makes
  CancelToken stop;       // no further request
  CancelToken abandon;    // no further watch

  std::string CollectionPath() const;  // …/namespaces/NS/configmaps
  std::string ObjectPath(const std::string& name) const;
  std::string Selector() const;  // percent-encoded
  HttpClientConfig ClientConfig() const;
  ClientRequest Request(std::string method, std::string target, const Json* body = nullptr) const;

  void Begin(Instant now);
  // The next request's number, and when it is due.
  int64_t Take(Instant* due);

  // One request ended: with an answer, valid or not.
  void Answered(const ClientResponse& response, bool valid, bool write, Duration latency);
  // One request ended without an answer.
  void Unanswered(const Status& status, bool write);
  void AcceptedWrite();
  void StaleRead(const std::string& text);
  void WatchEvent();
  void WatchEnded(const Status& status);
  void Note(const std::string& text);

  LoadCounts Counts() const;
  void Report(LoadResult& result) const;

 private:
  void NoteLocked(const std::string& text) LK_REQUIRES(mutex_);

  std::atomic<int64_t> next_{0};
  mutable Mutex mutex_;
  Instant begun_ LK_GUARDED_BY(mutex_);
  LoadCounts counts_ LK_GUARDED_BY(mutex_);
  Histogram reads_ LK_GUARDED_BY(mutex_);
  Histogram writes_ LK_GUARDED_BY(mutex_);
  Instant last_valid_ LK_GUARDED_BY(mutex_);
  Duration longest_gap_ LK_GUARDED_BY(mutex_){0};
  std::vector<std::string> errors_ LK_GUARDED_BY(mutex_);
};

// Waits for `token` until `end`; whether it was cancelled.
bool WaitCancelled(const CancelToken& token, Instant end);

// A status that is an error of the API, with what it said.
Status ApiError(const ClientRequest& request, const ClientResponse& response);

}  // namespace lockkeeper::load
