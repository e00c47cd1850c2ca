// CachedObjects: what the Server reconciler reads of the API, from the agent's caches.
//
// Purpose:   a pass of a roll never waits for the API. Until a cache has synced its objects are unknown, not absent.
// Ownership: borrows the caches. Threads: thread-safe. Failure: kUnavailable before the first sync; kNotFound.
#pragma once

#include <map>

#include "api/base/sync.h"
#include "controller/cache.h"
#include "reconcilers/server/objects.h"

namespace lockkeeper {

// Objects of a cache as their types, decoded once for each version: a pass reads them all.
template <typename T>
class DecodedObjects {
 public:
  Result<T> Of(const ObjectPtr& object, const Cache& cache);

 private:
  struct Entry {
    ObjectPtr object;
    T decoded;
  };
  Mutex mutex_;
  std::map<ObjectKey, Entry> entries_ LK_GUARDED_BY(mutex_);
  size_t look_at_ LK_GUARDED_BY(mutex_) = 64;  // so many entries, and those the cache has left behind go
};

class CachedObjects : public roll::Objects {
 public:
  // Adds an index to `upgrades` and `rolls`: before their first object.
  CachedObjects(Cache& servers, Cache& fronts, Cache& upgrades, Cache& rolls);

  Result<Server> GetServer(const ObjectKey& key) override;
  Result<Front> GetFront(const ObjectKey& key) override;
  // Without those that are settled, which no pass has anything to do with: a Server may have had hundreds. The one
  // that the Server's status names as in flight is there in any case.
  Result<std::vector<Upgrade>> UpgradesOf(const ObjectKey& server) override;
  Result<std::vector<Roll>> RollsOf(const ObjectKey& server) override;

  // The Server that an Upgrade or Roll speaks of.
  static ObjectKey ServerOf(const CachedObject& operation);
  // An Upgrade or Roll that has ended, holds no finalizer, and neither goes nor is to be removed after a time.
  static bool Settled(const Json& operation);
  // Of one that is settled the caches keep what it was and how it ended, not how it went.
  static void TrimSettled(Json& operation);

 private:
  Cache& servers_;
  Cache& fronts_;
  Cache& upgrades_;
  Cache& rolls_;
  DecodedObjects<Server> decoded_servers_;
  DecodedObjects<Front> decoded_fronts_;
  DecodedObjects<Upgrade> decoded_upgrades_;
  DecodedObjects<Roll> decoded_rolls_;
};

}  // namespace lockkeeper
