// Objects: what the Server reconciler reads of the API.
//
// Purpose:   a narrow reading interface, so that the agent may read its caches and a test its fake. ApiObjects asks the
//            API each time.
// Ownership: borrowed by the reconciler, outlives it.
// Threads:   thread-safe.
// Failure:   kNotFound: there is no such object; any other error: not known (the API is away). Absence is never a
//            deletion: only a deletionTimestamp is.
#pragma once

#include <string>
#include <vector>

#include "api/types/front.h"
#include "api/types/roll.h"
#include "api/types/server.h"
#include "api/types/upgrade.h"
#include "controller/api.h"

namespace lockkeeper::roll {

class Objects {
 public:
  virtual ~Objects() = default;
  virtual Result<Server> GetServer(const ObjectKey& key) = 0;
  virtual Result<Front> GetFront(const ObjectKey& key) = 0;
  // Of the Server of that namespace and name.
  virtual Result<std::vector<Upgrade>> UpgradesOf(const ObjectKey& server) = 0;
  virtual Result<std::vector<Roll>> RollsOf(const ObjectKey& server) = 0;
};

class ApiObjects : public Objects {
 public:
  explicit ApiObjects(Api& api) : api_(api) {}
  Result<Server> GetServer(const ObjectKey& key) override;
  Result<Front> GetFront(const ObjectKey& key) override;
  Result<std::vector<Upgrade>> UpgradesOf(const ObjectKey& server) override;
  Result<std::vector<Roll>> RollsOf(const ObjectKey& server) override;

 private:
  Api& api_;
};

// The hash of an operation's spec without its controls and time to live: what "the same spec" means.
std::string SpecHash(const Upgrade& upgrade);
std::string SpecHash(const Roll& roll);

}  // namespace lockkeeper::roll
