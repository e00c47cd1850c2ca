#include "reconcilers/fleet/silent_host.h"

#include <utility>

#include "api/types/conditions.h"

namespace lockkeeper {

std::optional<ServerStatus> SilentHostStatus(const Server& server, upgrade::HostState host, Time now) {
  std::string reason;
  std::string message;
  if (host == upgrade::HostState::kLost) {
    reason = "AgentLost";
    message = "the agent of host " + server.spec.host + " has been silent for 40 s; what runs there runs on";
  } else if (host == upgrade::HostState::kNeverSeen) {
    reason = "HostUnknown";
    message = "no agent ever reported from host " + server.spec.host + "; start `lockkeeper agent --host " +
              server.spec.host + "` there";
  } else {
    return std::nullopt;
  }
  ServerStatus status = server.status;
  bool changed = false;
  for (const std::string_view type : {condition::kReady, condition::kAvailable}) {
    Condition c;
    c.type = type;
    c.status = ConditionStatus::kUnknown;
    c.reason = reason;
    c.message = message;
    c.observed_generation = server.metadata.generation;
    changed = SetCondition(status.conditions, std::move(c), now) || changed;
  }
  if (!changed) return std::nullopt;
  return status;
}

}  // namespace lockkeeper
