// Reflector: keeps a Cache equal to what an API server has, by list and watch.
//
// Purpose:   client-go's rules: first list at "0", then from the last version seen; 410 in both its forms and versions
//            from the future fall back to a list at the newest; bookmarks count; a server that was away is listed
//            again; a watch that is silent for 75 s or ends within a second without an event is not trusted; a version
//            that goes back (a restored store, another server behind the same address) means a full resync. WatchList
//            where the server can.
// Ownership: borrows Api and Cache.
// Threads:   Run blocks one thread until cancelled; the rest may be called from any thread.
// Failure:   never gives up: it backs off (0.8 s x 2 to 10 s, with jitter) and says in LastError what is wrong. A 403
//            names the RBAC rule that is missing.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "controller/api.h"
#include "controller/cache.h"

namespace lockkeeper {

class Metrics;

struct ReflectorOptions {
  std::string label_selector{};
  std::string field_selector{};
  int page_size = 500;
  bool watch_list = true;       // try it; remembered when the server cannot
  int min_watch_seconds = 300;  // a watch is asked for between this and twice of it
  std::chrono::milliseconds idle_timeout{std::chrono::seconds(75)};
  std::chrono::milliseconds backoff_base{800};
  // Under client-go's 30 s and 2 min: what counts is how soon a cache is right again, and a refused connection is
  // cheap.
  std::chrono::milliseconds backoff_max{std::chrono::seconds(10)};
  std::chrono::milliseconds backoff_reset{std::chrono::seconds(30)};
  std::chrono::milliseconds very_short_watch{std::chrono::seconds(1)};
  // A watch that was cut and could not be begun again within this: the server was away, and is listed anew. It may be
  // back with an older store (an API server starts within a second) and says nothing to a watch from a version that
  // this one has not reached.
  std::chrono::milliseconds away_after{0};
  uint64_t seed = 0;  // 0: random
  Metrics* metrics = nullptr;
};

class Reflector {
 public:
  Reflector(Api& api, Cache& cache, ReflectorOptions options);
  ~Reflector();
  Reflector(const Reflector&) = delete;
  Reflector& operator=(const Reflector&) = delete;

  void Run(const CancelToken& cancel);
  // Ok while list and watch work.
  Status LastError() const;
  const Cache& cache() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockkeeper
