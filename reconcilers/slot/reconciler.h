// Slot reconciler: converges the processes of one Server's slots to its ledger record, and mirrors Slot objects.
//
// Purpose:   Converge acts on the host from the ledger alone, never waiting for the API; Mirror writes the Slot
// objects.
//            The agent runs them as two controllers.
// Ownership: borrows all; they outlive it.
// Threads:   one pass per Server and function at a time.
// Failure:   Status of what failed; a start that is refused is recorded with its reason, not an error.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "api/base/sync.h"
#include "api/types/slot.h"
#include "controller/api.h"
#include "reconcilers/ports/ledger.h"
#include "reconcilers/slot/plan.h"

namespace lockkeeper::slot {

struct Dependencies {
  Api& api;  // Mirror's alone
  const Clock& clock;
  Ledger& ledger;
  Units& units;
  std::string host;
  // Whether the server on this port says that it shuts down, or nobody listens there any more.
  std::function<Fact<bool>(const ServerSpec&, int port)> shutting_down;
  // What forbids any start or stop on this host; "" for nothing.
  std::function<std::string()> trouble = [] { return std::string(); };
};

class Reconciler {
 public:
  explicit Reconciler(Dependencies deps) : deps_(std::move(deps)) {}

  // Takes steps until each slot is as wanted or must wait. Answers when to look again.
  Result<Duration> Converge(const ServerKey& key);
  Result<Duration> Mirror(const ServerKey& key);

 private:
  struct Done {
    UnitIdentity asked;
    UnitIdentity signalled;
    UnitIdentity killed;
    Time killed_at{};
  };

  Snapshot Observe(const ServerRecord& record, const std::string& slot);
  Status Act(const ServerKey& key, const Snapshot& snapshot, const Plan& plan, const Now& now);
  Status Write(const ServerKey& key, const Snapshot& snapshot, const SlotActual& actual);

  Dependencies deps_;
  Mutex mutex_;
  std::map<std::string, Done> done_ LK_GUARDED_BY(mutex_);  // by unit
};

}  // namespace lockkeeper::slot
