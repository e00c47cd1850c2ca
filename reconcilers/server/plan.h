// Decide: the one pure plan of a Server. Nothing else decides about its slots, its active slot or its front.
//
// Purpose:   Snapshot and clock in; at most one mutating step out, with its reason, and when to look again. A chain of
//            named rules (plan.cc); the first that applies decides. Where the first one only waits, the rules that
//            never wait for a roll (the lease of a dead holder, the members' token) may still act.
// Guarantee: total (every snapshot has a plan), deterministic, reads no clock, does no I/O, logs nothing. Conditions,
//            reports and other derived fields are not read: wiping them changes no plan.
// Threads:   pure. Failure: none.
#pragma once

#include "reconcilers/server/step.h"

namespace lockkeeper::roll {

Plan Decide(const Snapshot& snapshot, const Now& now);

// The finalizer that an object must carry to be admitted.
inline constexpr char kFinalizer[] = "lockkeeper.dev/operation";

// Where the front of a Server is to send new connections: the recorded active slot, or hold. nullopt: nothing is known
// of it yet, so the front keeps what it has. `revision` is the ledger's.
std::optional<FrontTarget> WantedFrontTarget(const ServerRecord& record, const Now& now, const LedgerInfo& ledger);

// What the ledger's witnesses say: "" when nothing is wrong, else the reason LedgerLost or LedgerOlderThanHost.
struct LedgerVerdict {
  std::string reason, message;
};
LedgerVerdict JudgeLedger(const Snapshot& snapshot);

}  // namespace lockkeeper::roll
