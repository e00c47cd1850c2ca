// Server reconciler: observe, Decide, act; and the mirror of the ledger into Server and Roll objects.
//
// Purpose:   one pass over one Server of this host (Reconcile), and one pass over what its objects say (Mirror). They
//            are apart so that no write to an API stands between two steps of a roll.
// Ownership: borrows all ports; they outlive it.
// Threads:   one pass per key at a time for each of the two; different keys at once.
// Failure:   a step that fails is logged, shown in the status and tried again; Reconcile answers how soon. Mirror
//            answers the Status of the write that failed.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "controller/events.h"
#include "reconcilers/server/act.h"
#include "reconcilers/server/observe.h"
#include "reconcilers/server/plan.h"
#include "reconcilers/server/status.h"

namespace lockkeeper::roll {

struct Dependencies {
  Api& api;
  Objects& objects;
  const Clock& clock;
  Ledger& ledger;
  Units& units;
  FrontAdmin& fronts;
  Peer& peer;
  HostFiles& files;
  Recorder* recorder = nullptr;  // optional
  ObservedHost host;
  // Wakes the Release or StoreBackup reconciler: document kind (documents.h) and "NS/NAME".
  std::function<void(const std::string& kind, const std::string& key)> requested = [](const auto&, const auto&) {};
  // Wakes Mirror for a Server. Empty: Reconcile mirrors by itself at its end.
  std::function<void(const ServerKey&)> mirror = nullptr;
  // The heartbeat: a Server's status was posted up to this ledger revision.
  std::function<void(const std::string& server_uid, int64_t revision)> posted = [](const auto&, int64_t) {};
  // Passes that one Reconcile may take while each does a step; each observes the world anew.
  int passes = 1;
  // What forbids any start or stop on this host (the heartbeat's verdict): reason and message; empty: nothing.
  std::function<LedgerVerdict()> trouble = [] { return LedgerVerdict{}; };
};

class Reconciler {
 public:
  explicit Reconciler(Dependencies deps);

  // One pass. Answers after how long to look again without an event.
  Result<Duration> Reconcile(const ObjectKey& key);
  // One pass over the objects: finalizers, statuses, Roll objects of operations that began on the host.
  Result<Duration> Mirror(const ObjectKey& key);

  // What the last pass over a Server decided; for tests and for people who debug.
  Plan LastPlan(const ServerKey& key) { return LastOf(key)->plan; }
  ServerStatus LastStatus(const ServerKey& key);

 private:
  struct Last {
    Snapshot snapshot;
    Plan plan;
    Now now;
    Status error;
    int failures = 0;
  };

  // Loads the object's spec into the ledger as intent, where it says something new. Answers whether it did.
  Result<bool> LoadIntent(const Snapshot& snapshot);
  // What is forbidden on this host as a plan, else what Decide says.
  Plan DecideOn(const Snapshot& snapshot, const Now& now);
  // Acts on last.plan; answers how soon to look again.
  Duration Act(Last& last);
  // Never nullptr: before the first pass one that is empty.
  std::shared_ptr<const Last> LastOf(const ServerKey& key);
  void Keep(const ServerKey& key, Last last);
  Time MirroredAt(const ServerKey& key);
  Status MirrorServer(const ServerKey& key, const Last& last, bool& behind);
  Status MirrorRolls(const ServerKey& key, const Last& last);
  Status MirrorRoll(const ServerKey& key, const Last& last, Roll roll);
  Status MakeRollObject(const ServerKey& key, const OperationRecord& op, const std::vector<Roll>& rolls);
  void Tell(const ServerKey& key, const ServerRecord& before, const ServerRecord& after);

  Dependencies deps_;
  Observer observer_;
  Actor actor_;
  Mutex mutex_;
  std::map<ServerKey, std::shared_ptr<const Last>> last_ LK_GUARDED_BY(mutex_);
  std::map<ServerKey, Time> mirrored_at_ LK_GUARDED_BY(mutex_);
};

}  // namespace lockkeeper::roll
