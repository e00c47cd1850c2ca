// Slot reconciler: observe, Decide, act; and the mirror of the ledger's slots into Slot objects.
//
// Purpose:   Reconcile converges the processes of one Server's slots to the ledger; Mirror writes Slot objects, late
//            or never as the API allows. A Slot object that is edited or deleted changes nothing on the host.
// Ownership: borrows all ports; they outlive it.
// Threads:   one Reconcile per Server at a time, one Mirror per Server at a time; different Servers at once.
// Failure:   Status of the call that failed; a start that was refused is in the ledger, not an error.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "api/base/sync.h"
#include "controller/api.h"
#include "reconcilers/ports/ledger.h"
#include "reconcilers/ports/units.h"
#include "reconcilers/slot/plan.h"

namespace lockkeeper::slot {

struct Dependencies {
  Api& api;
  const Clock& clock;
  Ledger& ledger;
  Units& units;
  std::string host;
  // Whether the process of a slot says that it is shutting down (/readyz of its own port); an error is "not known".
  std::function<Result<bool>(const ServerRecord&, const std::string& slot)> says_shutting_down;
  // What forbids any start or stop on this host (the heartbeat's verdict); "": nothing.
  std::function<std::string()> forbidden = [] { return std::string(); };
};

class Reconciler {
 public:
  explicit Reconciler(Dependencies deps) : deps_(std::move(deps)) {}

  // Passes over all slots of the Server until none has a step. Answers after how long to look again without an event.
  Result<Duration> Reconcile(const ObjectKey& server);
  // Slot objects as the ledger has them.
  Result<Duration> Mirror(const ObjectKey& server);
  // The Servers whose slots or companions a unit belongs to: what an event of Units wakes.
  std::vector<ServerKey> OwnersOf(const std::string& unit);

 private:
  struct Memory {
    std::string sigterm_sent;  // "UNIT.INVOCATION"
    std::map<std::string, CompanionTry> tries;
  };

  Snapshot Observe(const ServerRecord& record, const std::string& slot);
  Status Act(const Snapshot& snapshot, const Plan& plan);
  // One pass; answers the plan that was carried out.
  Result<Plan> Pass(const ServerKey& key, const std::string& slot);
  Status Write(const Snapshot& snapshot, const SlotActual& actual);
  Status Refused(const Snapshot& snapshot, const std::string& what, const Status& status);
  Memory& MemoryOf(const ServerKey& key, const std::string& slot) LK_REQUIRES(mutex_);
  Status MirrorSlot(const ServerRecord& record, const std::string& slot);
  Status RemoveStale(const ServerRecord& record);

  Dependencies deps_;
  Mutex mutex_;
  std::map<std::pair<ServerKey, std::string>, Memory> memory_ LK_GUARDED_BY(mutex_);
};

}  // namespace lockkeeper::slot
