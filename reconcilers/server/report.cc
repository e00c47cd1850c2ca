#include "reconcilers/server/report.h"

#include <algorithm>
#include <cmath>

#include "reconcilers/server/steps.h"

namespace lockkeeper::roll {

void CloseReport(OperationRecord& op, Time now) {
  RollReport& r = op.report;
  const auto admitted = op.started.find(kStepAdmit);
  r.started_at = admitted == op.started.end() ? now : admitted->second;
  r.done_at = now;
  r.total_seconds = ToSeconds(now - *r.started_at);
  double named = 0;
  for (const std::optional<double>& part :
       {r.backup_seconds, r.start_to_ready_seconds, r.gate_seconds, r.drain_seconds, r.soak_seconds, r.old_exit_seconds,
        r.lease_handover_seconds, r.probe_seconds}) {
    named += part.value_or(0);
  }
  // Of a roll that was undone nobody could say what was work and what was the wait for its failure.
  if (!op.undoing) r.overhead_seconds = std::round(std::max(0.0, *r.total_seconds - named) * 1e6) / 1e6;
}

}  // namespace lockkeeper::roll
