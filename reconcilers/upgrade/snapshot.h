// Snapshot of one Upgrade: what the manager has observed of it, its Server and its children.
//
// Purpose: the plain values that Decide (plan.h) works on. Values only; each fact known, absent or unknown.
// Threads: values. Failure: none.
#pragma once

#include <string>

#include "api/types/backup.h"
#include "api/types/release.h"
#include "api/types/roll.h"
#include "api/types/server.h"
#include "api/types/upgrade.h"
#include "reconcilers/ports/fact.h"

namespace lockkeeper::upgrade {

// What the manager knows of the host that runs the Server, from watching its heartbeat Lease itself.
enum class HostState {
  kUndetermined,  // watched for less than the limit: neither fresh nor lost
  kFresh,         // seen to change within the last 40 s, and its ledger has posted what we act on
  kLost,          // watched for 40 s without a change
  kNeverSeen,     // no heartbeat for 10 s of watching
};

struct Snapshot {
  Upgrade upgrade;
  Fact<Server> server;
  Fact<Release> release;
  Fact<StoreBackup> backup;
  Fact<Roll> roll;
  // The Upgrade that holds the Server's place for operations, where it is another one; else absent.
  Fact<Upgrade> holder = Absent{};
  HostState host = HostState::kUndetermined;
  // Server.status.ledger.revision is at least the revision that the heartbeat says was posted for it.
  bool server_is_current = false;

  bool operator==(const Snapshot&) const = default;
};

}  // namespace lockkeeper::upgrade
