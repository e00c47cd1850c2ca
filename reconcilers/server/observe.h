// Observer: reads the world into a Snapshot, one Server a pass.
//
// Purpose:   all reads of a pass, each with the deadline of its port. What a pass has no need to know is not asked, so
//            that a roll's passes stay cheap. A partial snapshot is fine: what could not be read is unknown.
// Ownership: borrows all ports; they outlive it. It remembers, per Server, what only time can tell: since when the
// Lease
//            has stood unchanged, and how many tries in a row a slot was not ready while the other was.
// Threads:   one pass per Server at a time; passes of different Servers may run at once.
// Failure:   never; errors become unknown facts.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "api/base/sync.h"
#include "reconcilers/ports/front_admin.h"
#include "reconcilers/ports/host_files.h"
#include "reconcilers/ports/ledger.h"
#include "reconcilers/ports/peer.h"
#include "reconcilers/ports/units.h"
#include "reconcilers/server/objects.h"
#include "reconcilers/server/snapshot.h"

namespace lockkeeper::roll {

struct ObservedHost {
  std::string name;      // spec.host
  std::string hostname;  // os.Hostname(), the first part of a lease holder's identity
  std::string data_dir;
};

class Observer {
 public:
  Observer(ObservedHost host, Ledger& ledger, Objects& objects, Units& units, FrontAdmin& fronts, Peer& peer,
           HostFiles& files)
      : host_(std::move(host)),
        ledger_(ledger),
        objects_(objects),
        units_(units),
        fronts_(fronts),
        peer_(peer),
        files_(files) {}

  Snapshot Observe(const ServerKey& key, const Now& now);

 private:
  struct Memory {
    std::string lease_mark;
    Now lease_since;
    std::map<std::string, int> unready_tries;
    bool swept = false;  // units that nobody recorded were looked for once
  };

  void ReadObjects(const ServerKey& key, Snapshot& s);
  void ReadSlots(Snapshot& s, Memory& memory);
  void ReadFront(Snapshot& s);
  void ReadPeer(Snapshot& s, const Now& now, Memory& memory);
  void ReadDocuments(Snapshot& s);
  void ReadFiles(Snapshot& s, const Now& now);
  void ReadWitnesses(Snapshot& s, Memory& memory);
  Memory& MemoryOf(const ServerKey& key);

  const ObservedHost host_;
  Ledger& ledger_;
  Objects& objects_;
  Units& units_;
  FrontAdmin& fronts_;
  Peer& peer_;
  HostFiles& files_;
  Mutex mutex_;
  std::map<ServerKey, std::unique_ptr<Memory>> memory_ LK_GUARDED_BY(mutex_);
};

}  // namespace lockkeeper::roll
