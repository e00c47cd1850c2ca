#include "reconcilers/upgrade/wake.h"

#include <tuple>

#include "api/types/conditions.h"
#include "api/types/reasons.h"
#include "api/types/upgrade.h"

namespace lockkeeper::upgrade {
namespace {

void AddHolder(const Server& server, std::set<std::string>& names) {
  const auto& op = server.status.operation;
  if (op && op->kind == Upgrade::kKind) names.insert(op->name);
}

// What one that waits reads of its Server, who holds the place and its own outcome apart.
auto Seen(const Server& s) {
  const Condition* ready = FindCondition(s.status.conditions, condition::kReady);
  const Condition* stalled = FindCondition(s.status.conditions, condition::kStalled);
  const bool stopped = ready != nullptr && ready->reason == reason::kServerStopped;
  const bool silent = ready != nullptr && ready->status == ConditionStatus::kUnknown;
  const bool stands = stalled != nullptr && stalled->status == ConditionStatus::kTrue;
  return std::tuple(s.metadata.uid, s.metadata.generation, s.metadata.Deleting(), stopped, silent,
                    stands ? stalled->message : std::string());
}

}  // namespace

Wake WokenBy(const Server* before, const Server& after) {
  Wake wake;
  wake.all = before == nullptr || Seen(*before) != Seen(after);
  if (wake.all) return wake;
  AddHolder(*before, wake.names);
  AddHolder(after, wake.names);
  // Its outcome is in the ledger: refused, answered from an earlier one, or free to let go.
  for (const HistoryEntry& h : after.status.history) {
    if (h.kind == Upgrade::kKind) wake.names.insert(h.name);
  }
  return wake;
}

}  // namespace lockkeeper::upgrade
