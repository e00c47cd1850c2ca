// Fleet: the manager's controllers as one: Upgrades, the Upgrades that Servers declare, hosts that went silent.
//
// Purpose:   what `lockkeeper manager` runs, and `lockkeeper up` beside the agent.
// Ownership: owns its Manager; borrows api, lease_api and clock, which outlive it.
// Threads:   Start and Stop from one thread.
// Failure:   as Manager: what cannot be mended while running goes to on_fatal once.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "controller/manager.h"

namespace lockkeeper {

struct FleetOptions {
  // Leader election among replicas, on the Lease lockkeeper-manager; without it the process leads from the start.
  Api* lease_api = nullptr;
  std::string metrics_address = "0";
  std::function<void()> cancel_calls;
  std::function<void(const Status&)> on_fatal;
};

// For a manager without election: ok when nobody holds the Lease lockkeeper-manager, or its time is over by the clock
// of `now`; kBusy names who holds it. An error of the API as it is.
Status NobodyLeads(Api& api, const Now& now);

class Fleet {
 public:
  Fleet(Api& api, const Clock& clock, const FleetOptions& options);
  ~Fleet();

  Status Start();
  Status Stop();
  bool WaitUntilStarted(Duration timeout);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockkeeper
