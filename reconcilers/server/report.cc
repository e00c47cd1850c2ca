#include "reconcilers/server/report.h"

#include <algorithm>

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
  r.overhead_seconds = std::max(0.0, *r.total_seconds - named);
}

}  // namespace lockkeeper::roll
