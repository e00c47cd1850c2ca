// Declared operations: the Upgrades that a Server's own spec asks for (spec.version, spec.restartedAt).
//
// Purpose:   a pure answer to "which Upgrade is missing?" for one Server. Names are deterministic (server, version and
//            the ledger's counter; server and restart time), so making one twice is refused by the API.
// Threads:   pure. Failure: total.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reconcilers/upgrade/snapshot.h"

namespace lockkeeper::upgrade {

// On every Upgrade that a Server declared: the agent counts those.
inline constexpr char kDeclaredLabel[] = "lockkeeper.dev/declared";

struct DeclaredSnapshot {
  Server server;
  std::vector<Upgrade> upgrades;  // all of this Server
  HostState host = HostState::kUndetermined;
  bool server_is_current = false;
  bool operator==(const DeclaredSnapshot&) const = default;
};

struct DeclaredPlan {
  std::optional<Upgrade> create;
  Duration requeue_after{};  // zero: on the next event
  bool operator==(const DeclaredPlan&) const = default;
};

// Whether its spec asks for anything that does not stand already: without that its Upgrades need not be read.
bool MayDeclare(const Server& server);

// A declared version that failed for a reason that is not the build's is tried again after 1 min, doubled each time,
// at most 1 h. One that was rejected is not tried by itself.
DeclaredPlan DecideDeclared(const DeclaredSnapshot& snapshot, const Now& now);

}  // namespace lockkeeper::upgrade
