// LoadGenerator: clients of a Kubernetes API server as a roll meets them, and the proof of what it cost them.
//
// Purpose:   N kept-alive connections send R requests a second between them, open loop (each request has its due
//            time; a late one counts from then), reading and writing ConfigMaps; watches follow along. At the end
//            every accepted write is read back, and compared with what each watch saw.
//            A request fails when there was no valid answer after the rule that every Kubernetes client follows:
//            one retry on a fresh connection when a reused one died before a byte of the answer.
// Ownership: the generator owns its threads and connections.
// Threads:   Start and Stop from one thread; Counts from any.
// Failure:   Start answers a Status when the server cannot be reached at all. Later failures are counted, the
//            first few kept as text. No token is in any text.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/base/json.h"
#include "api/base/status.h"
#include "api/base/time.h"
#include "api/transport/http_client.h"
#include "tests/load/histogram.h"

namespace lockkeeper::load {

struct LoadConfig {
  std::string base_url;  // "https://127.0.0.1:6443", or with "/clusters/root" behind it
  TlsClientConfig tls;
  std::string token;           // bearer token; empty: none is sent
  std::string ns = "default";  // made when it is missing
  int connections = 50;
  double rate = 500;               // requests a second, over all connections
  int write_percent = 20;          // the rest reads; one read in twenty is a list
  int objects_per_connection = 4;  // updated in turn
  int creates_percent = 10;        // of the writes: a new object instead of an update
  int watchers = 1;
  Duration request_timeout = Seconds(30);
  uint64_t seed = 0;    // of the mix
  bool cleanup = true;  // delete what was made
};

struct LoadCounts {
  int64_t requests = 0;  // answered or given up
  int64_t ok = 0;
  int64_t retried = 0;  // ok or not, went out twice by the rule above
  int64_t failed = 0;   // no valid answer
  int64_t refused = 0;  // a fresh connection was refused; not counted in failed
  int64_t reads = 0;
  int64_t writes = 0;
  int64_t accepted_writes = 0;
  int64_t stale_reads = 0;  // an object older than its last accepted write
  int64_t connections = 0;  // opened, the first ones included
  int64_t watch_events = 0;
  int64_t watch_reconnects = 0;
};

struct LoadResult {
  LoadCounts counts;
  double seconds = 0;
  int64_t missed_events = 0;  // accepted writes without an event, over all watches
  int64_t duplicate_events = 0;
  int64_t disordered_events = 0;
  int64_t expired_watches = 0;  // the server no longer had the events (410)
  int64_t most_reconnects = 0;  // of one watch
  int64_t read_back = 0;        // objects found at the end
  int64_t lost_writes = 0;
  Histogram read_latency;  // from the due time
  Histogram write_latency;
  double longest_gap_seconds = 0;   // between two valid answers, whoever's
  std::vector<std::string> errors;  // the first few, each with its second
  uint64_t seed = 0;

  // Nothing failed, was refused, lost, stale, missed, seen twice or out of order.
  bool Clean() const;
  Json ToJson() const;
};

class LoadGenerator {
 public:
  explicit LoadGenerator(const LoadConfig& config);
  ~LoadGenerator();  // Stop() when it runs
  LoadGenerator(const LoadGenerator&) = delete;
  LoadGenerator& operator=(const LoadGenerator&) = delete;

  // Reaches the server once, starts the watches, then the requests.
  Status Start();
  LoadCounts Counts() const;
  // Ends the requests, lets the watches catch up (10 s at most), reads everything back.
  LoadResult Stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// One load of `duration`.
Result<LoadResult> RunLoad(const LoadConfig& config, Duration duration);

}  // namespace lockkeeper::load
