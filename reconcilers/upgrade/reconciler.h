// Upgrade reconciler: observe, Decide, act, Summarize; and the same for the Upgrades that Servers declare.
//
// Purpose:   the manager's part of the durable operation (upgrade.md). Level-triggered: keys only.
// Ownership: borrows all; they outlive it.
// Threads:   one pass per key at a time; HostTracker is shared with the heartbeat watch under its owner's lock
//            (`host_of` and `posted` are thread-safe functions).
// Failure:   Status of the call that failed, annotated; the queue retries. Conflicts are re-observed.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "controller/api.h"
#include "reconcilers/upgrade/declared.h"
#include "reconcilers/upgrade/status.h"

namespace lockkeeper::upgrade {

struct Dependencies {
  Api& api;
  const Clock& clock;
  // State of a host's heartbeat, and the ledger revision it says was posted for a Server uid.
  std::function<HostState(const std::string& host)> host_of;
  std::function<int64_t(const std::string& host, const std::string& server_uid)> posted;
  std::function<void(const Upgrade&, const StoryEvent&)> event;
  // The Server as a watch last showed it, nullptr when it did not: enough where nothing is to be done before it
  // changes, which wakes. Thread-safe.
  std::function<std::shared_ptr<const Server>(const ObjectKey&)> seen_server = nullptr;
};

class Reconciler {
 public:
  explicit Reconciler(Dependencies deps) : deps_(std::move(deps)) {}

  // One pass; answers after how long to look again without an event, zero: not.
  Result<Duration> Reconcile(const ObjectKey& upgrade);
  // One pass over what a Server declares.
  Result<Duration> ReconcileDeclared(const ObjectKey& server);

 private:
  Result<Snapshot> Observe(const ObjectKey& key);
  Status Act(const Snapshot& snapshot, const Step& step);
  Status WriteStatus(const Snapshot& snapshot, const Plan& plan, const Now& now);
  bool Current(const Server& server) const;

  Dependencies deps_;
};

}  // namespace lockkeeper::upgrade
