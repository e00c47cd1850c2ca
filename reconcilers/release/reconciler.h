// Release reconciler: has the builds that are wanted on this host fetched, verified and unpacked.
//
// Ownership: borrows all; they outlive it.
// Threads:   one pass per key at a time; a fetch blocks its worker for as long as it takes.
// Failure:   Status of what failed on the way; a fetch that fails is a document with a reason, not an error.
#pragma once

#include <functional>
#include <string>

#include "controller/api.h"
#include "reconcilers/ports/ledger.h"
#include "reconcilers/release/plan.h"

namespace lockkeeper::release {

struct Dependencies {
  Api& api;
  const Clock& clock;
  Ledger& ledger;
  ReleaseSource& source;
  HostFiles& files;
  std::string host;
  std::string releases_dir;
  // Wakes the Server whose release changed.
  std::function<void(const ServerKey&)> changed;
};

class Reconciler {
 public:
  explicit Reconciler(Dependencies deps) : deps_(std::move(deps)) {}

  // One pass over a Release by namespace and name; zero: look again on the next event.
  Result<Duration> Reconcile(const ObjectKey& key);

 private:
  Snapshot Observe(const ObjectKey& key);
  Status Act(const ObjectKey& key, const Snapshot& snapshot, const Plan& plan);
  Status Fetch(ReleaseDocument document, const ServerSpec& spec);
  Result<ReleaseDocument> Fetched(ReleaseDocument document, const ServerSpec& spec);
  Status Put(const ReleaseDocument& document);
  Status Mirror(const Snapshot& snapshot);
  void ShowProgress(const ReleaseDocument& document, int64_t done, int64_t total);

  Dependencies deps_;
};

}  // namespace lockkeeper::release
