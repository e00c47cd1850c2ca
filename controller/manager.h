// Manager: what a process of controllers has around them, started and stopped in order.
//
// Purpose:   caches, controllers, background work, leader election, events, metrics and health of one process. Start:
//            HTTP, caches, background work, election, controllers. Stop: background work, controllers, caches, HTTP,
//            then the lease is given away, then events are flushed; what has not ended after stop_timeout has its calls
//            cancelled and cancel_timeout more, all of it together. Signals are main's.
// Ownership: owns all of these; borrows Api and clock. Add everything before Start.
// Threads:   Start and Stop by one thread; on_fatal is called on another.
// Failure:   what cannot be mended while running (a lost lease, a cache that does not sync within 2 min) goes to
//            on_fatal once: leave with a non-zero status, without Stop.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "controller/cache.h"
#include "controller/controller.h"
#include "controller/events.h"
#include "controller/health.h"
#include "controller/leader_election.h"
#include "controller/metrics.h"
#include "controller/reflector.h"

namespace lockkeeper {

struct CacheOptions {
  std::string namespace_{};  // "" : all
  // Which objects the selectors of `reflector` give; needed with them (see Cache).
  std::function<bool(const CachedObject&)> selects{};
  Cache::Trim trim{};
  ReflectorOptions reflector{};
  bool required = true;  // start and readiness wait for it
};

struct ManagerOptions {
  std::string metrics_address = "0";  // see OpsServer
  Duration stop_timeout = Seconds(30);
  Duration cancel_timeout = Seconds(5);  // after cancel_calls
  Duration cache_sync_timeout = Seconds(120);
  Duration cache_stale_after = Seconds(180);  // readiness: no event or bookmark for so long
  std::string event_component = "lockkeeper";
  std::string event_host{};
  int event_burst = EventWriterOptions().spam_burst;  // events of one object before it is cut to one per 300 s
  // Ends calls under way (HttpApi::CancelAll) when workers do not come back in time. Optional.
  std::function<void()> cancel_calls{};
  std::function<void(const Status&)> on_fatal{};
  std::function<void()> on_leading{};  // beside the controllers; must return at once
};

class Manager {
 public:
  // `metrics`: the process's, when it has one already; else the manager makes its own.
  Manager(Api& api, const Clock& clock, ManagerOptions options, Metrics* metrics = nullptr);
  ~Manager();  // Stop()
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;

  // Writes through it are seen by the caches at once.
  Api& api();
  Recorder& recorder();
  Metrics& metrics();
  Health& health();

  Cache& AddCache(const Resource& resource, CacheOptions options = {});
  Controller& AddController(ControllerOptions options);
  // `run` ends when its token is cancelled.
  void AddRunnable(const std::string& name, std::function<void(const CancelToken&)> run, bool needs_leader = false);
  // Without it the process leads from the start. `lease_api`: one of its own, borrowed.
  LeaderElection& AddElection(Api& lease_api, LeaderElectionOptions options);

  // Answers once HTTP serves and the rest has begun to start.
  Status Start();
  // Controllers work: caches synced, and leading.
  bool WaitUntilStarted(Duration timeout);
  // kTimeout when work hangs beyond the time allowed: the process must then exit at once (std::_Exit), and destroy
  // nothing that the work may use.
  Status Stop();

  int ops_port() const;  // of the metrics server, 0 when disabled

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockkeeper
