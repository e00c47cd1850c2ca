// Actor: carries out the one step of a plan.
//
// Purpose:   a commit to the ledger, or one effect on the world and then the commit that notes it. Nothing is decided
//            here: a record that moved since it was looked at is refused, and the world is looked at again.
// Ownership: borrows all ports; they outlive it.
// Threads:   one step per Server at a time.
// Failure:   Status of the call that failed; kConflict: the record moved, look again. An effect whose step says what to
//            note when it fails answers ok once that is noted.
#pragma once

#include <functional>
#include <string>

#include "reconcilers/ports/front_admin.h"
#include "reconcilers/ports/host_files.h"
#include "reconcilers/ports/ledger.h"
#include "reconcilers/ports/peer.h"
#include "reconcilers/server/step.h"

namespace lockkeeper::roll {

class Actor {
 public:
  Actor(Ledger& ledger, FrontAdmin& fronts, Peer& peer, HostFiles& files)
      : ledger_(ledger), fronts_(fronts), peer_(peer), files_(files) {}

  // Wakes the reconciler of a document that was requested: its kind (documents.h) and "NS/NAME".
  std::function<void(const std::string& kind, const std::string& key)> requested = [](const auto&, const auto&) {};
  // Told after each commit: the record before and after it.
  std::function<void(const ServerRecord& before, const ServerRecord& after)> committed = [](const auto&, const auto&) {
  };

  Status Act(const Snapshot& snapshot, const Step& step);

 private:
  Status Do(const Snapshot& s, const Commit& commit);
  Status Do(const Snapshot& s, const SeedSlot& effect);
  Status Do(const Snapshot& s, const HarvestShared& effect);
  Status Do(const Snapshot& s, const RefreshToken& effect);
  Status Do(const Snapshot& s, const PointCurrent& effect);
  Status Do(const Snapshot& s, const RequestRelease& effect);
  Status Do(const Snapshot& s, const RequestBackup& effect);
  Status Do(const Snapshot& s, const DrainBackend& effect);
  Status Do(const Snapshot& s, const DeleteLease& effect);
  Status Do(const Snapshot& s, const CreateProbe& effect);
  Status Do(const Snapshot& s, const DeleteProbes& effect);
  Status Request(const char* kind, const std::string& key, const std::string& json);
  void AddHashes(const HarvestShared& effect, Commit& commit);

  Ledger& ledger_;
  FrontAdmin& fronts_;
  Peer& peer_;
  HostFiles& files_;
};

}  // namespace lockkeeper::roll
