// Front reconciler: one front process for each Front of this host, pointed to where its Server's record says.
//
// Purpose:   Converge acts on the host from the ledger and what the caller knows of the object; it never waits for the
//            API, so a flip does not either. Mirror writes finalizer and status to the API, and may be slow. The agent
//            runs them as two controllers.
// Ownership: borrows all; they outlive it.
// Threads:   one pass per key and function at a time; Converge and Mirror of one key may run at once.
// Failure:   Status of what failed, annotated; the queue retries. Mirror: kConflict when the object moved.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "api/base/sync.h"
#include "controller/api.h"
#include "reconcilers/front/front_plan.h"

namespace lockkeeper::fronts {

struct Dependencies {
  Api& api;  // Mirror's alone
  const Clock& clock;
  Ledger& ledger;
  Units& units;
  FrontAdmin& admin;
  HostPaths paths;
  // What the informer's cache holds of a Front: absent once it has synced without it, unknown before.
  std::function<Fact<Front>(const ObjectKey&)> object;
  // FrontAdminClient::Restart.
  std::function<Status(const std::string& front)> restart;
  // The front was changed or seen differently: wakes Mirror for it, and the Server that claims it ("" for none).
  std::function<void(const ObjectKey& front, const std::string& server)> changed;
  std::function<void(const ObjectKey& front, bool warning, const std::string& reason, const std::string& message)>
      event;
};

class Reconciler {
 public:
  explicit Reconciler(Dependencies deps) : deps_(std::move(deps)) {}

  // Takes steps until the front is as wanted or something must be waited for. Answers when to look again.
  Result<Duration> Converge(const ObjectKey& key);
  Result<Duration> Mirror(const ObjectKey& key);

  // Which Front a changed ledger record concerns; for the ledger's listener.
  std::vector<ObjectKey> FrontsOf(const ServerKey& server);
  // Every Front that the ledger knows: what an agent's start converges before it has seen the API.
  Result<std::vector<ObjectKey>> Known();

 private:
  Snapshot Observe(const ObjectKey& key, Fact<Front> object);
  Fact<std::vector<Claim>> ReadClaims(const ObjectKey& key, const LedgerInfo& ledger);
  Fact<UnitStatus> InspectUnit(const ObjectKey& key, const Snapshot& snapshot);
  Status Act(const ObjectKey& key, const Snapshot& snapshot, const Plan& plan);

  Dependencies deps_;
  Mutex mutex_;
  std::map<ObjectKey, UnitStatus> units_ LK_GUARDED_BY(mutex_);        // running ones, as last seen
  std::map<ObjectKey, Now> written_ LK_GUARDED_BY(mutex_);             // last status write
  std::map<ObjectKey, std::string> seen_ LK_GUARDED_BY(mutex_);        // verdict and target of the last Converge
  std::map<std::string, ObjectKey> last_front_ LK_GUARDED_BY(mutex_);  // of a Server, before its spec changed
};

}  // namespace lockkeeper::fronts
