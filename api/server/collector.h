// Collector: what kube-controller-manager does for the objects here: garbage collection by owner references,
// emptying of namespaces that are being deleted, Events past their age, history that no watch needs.
//
// Purpose:   one thread that follows the store's changes; after a start it looks at everything once.
// Ownership: borrows the objects; stopped before they go.
// Threads:   Start, Stop and CatchUp are for one thread.
// Failure:   an error is logged; the next change of the object, or the next start, tries again. Two collectors on one
//            store (two processes) do no harm, since each removal names uid or revision.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "api/server/objects.h"
#include "api/server/store.h"
#include "api/server/watch_hub.h"

namespace lockkeeper::apiserver {

struct CollectorOptions {
  Retention retention;
  Duration event_ttl = Seconds(24 * 3600);  // kube-apiserver's is an hour; a roll's story should last the night
  std::chrono::milliseconds housekeeping{std::chrono::seconds(30)};
  std::function<void()> also;  // at each housekeeping, on the collector's thread
};

class Collector {
 public:
  Collector(Objects& objects, CollectorOptions options);
  ~Collector();  // Stop()
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;

  void Start();
  // Returns after the pass at hand. The store's hub must have been stopped, or it waits for up to `housekeeping`.
  void Stop();

  // For tests, without Start(): looks at everything, then follows changes until there are none for `quiet`.
  void CatchUp(std::chrono::milliseconds quiet);
  // Old Events and old history.
  void Housekeep();

 private:
  void Run();
  // Owners, finalizers and namespaces of all objects.
  void LookAtAll();
  void OnEvent(const StoredEvent& event);
  // Deletes `key` when none of its owners is left; drops references to owners that are gone.
  void CheckOwners(const Key& key);
  // Foreground and orphan deletion, and a namespace's emptying, of an object that is being deleted.
  void CheckDeleting(const Key& key);
  void EmptyNamespace(const Key& ns);
  void Remove(const Key& key, const std::string& uid, const char* propagation);
  void Report(const std::string& what, const Status& status);

  Objects& objects_;
  Store& store_;
  const CollectorOptions options_;
  std::unique_ptr<WatchHub::Watch> watch_;
  std::set<std::pair<std::string, std::string>> terminating_;  // (cluster, namespace)
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace lockkeeper::apiserver
