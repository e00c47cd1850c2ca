// CachedObjects: what the Server reconciler reads of the API, from the agent's caches.
//
// Purpose:   a pass of a roll never waits for the API. Until a cache has synced its objects are unknown, not absent.
// Ownership: borrows the caches. Threads: thread-safe. Failure: kUnavailable before the first sync; kNotFound.
#pragma once

#include "controller/cache.h"
#include "reconcilers/server/objects.h"

namespace lockkeeper {

class CachedObjects : public roll::Objects {
 public:
  // Adds an index to `upgrades` and `rolls`: before their first object.
  CachedObjects(Cache& servers, Cache& fronts, Cache& upgrades, Cache& rolls);

  Result<Server> GetServer(const ObjectKey& key) override;
  Result<Front> GetFront(const ObjectKey& key) override;
  Result<std::vector<Upgrade>> UpgradesOf(const ObjectKey& server) override;
  Result<std::vector<Roll>> RollsOf(const ObjectKey& server) override;

  // The Server that an Upgrade or Roll speaks of.
  static ObjectKey ServerOf(const CachedObject& operation);

 private:
  Cache& servers_;
  Cache& fronts_;
  Cache& upgrades_;
  Cache& rolls_;
};

}  // namespace lockkeeper
