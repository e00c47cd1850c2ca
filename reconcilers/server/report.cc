#include "reconcilers/server/report.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "reconcilers/server/steps.h"

namespace lockkeeper::roll {
namespace {

using Span = std::pair<Time, Time>;

std::optional<Time> At(const std::map<std::string, Time>& times, const char* step) {
  const auto it = times.find(step);
  return it == times.end() ? std::optional<Time>() : it->second;
}

// The named waits as they lay in time. Two may lie over one another: an outage's lease is free while the new slot
// starts.
std::vector<Span> NamedWaits(const OperationRecord& op) {
  const RollReport& r = op.report;
  std::vector<Span> spans;
  const auto add = [&](const std::optional<Time>& from, const std::optional<Time>& to) {
    if (from && to && *from < *to) spans.emplace_back(*from, *to);
  };
  if (r.backup_seconds) add(At(op.started, kStepBackUp), At(op.finished, kStepBackUp));
  if (r.ready_at && r.start_to_ready_seconds) add(*r.ready_at - Seconds(*r.start_to_ready_seconds), r.ready_at);
  if (r.drain_seconds) add(At(op.started, kStepDrain), r.drained_at);
  if (r.soak_seconds) add(At(op.started, kStepSoak), At(op.finished, kStepSoak));
  add(r.sigterm_at ? r.sigterm_at : At(op.started, kStepStopOld), r.old_exited_at);
  if (r.lease_handover_seconds) add(r.old_exited_at, r.lease_held_at);
  if (r.probe_ready_at && r.probe_seconds) add(*r.probe_ready_at - Seconds(*r.probe_seconds), r.probe_ready_at);
  return spans;
}

Duration Covered(std::vector<Span> spans) {
  std::sort(spans.begin(), spans.end());
  Duration covered{};
  Time until{};
  for (const auto& [from, to] : spans) {
    if (to <= until) continue;
    covered += to - std::max(from, until);
    until = to;
  }
  return covered;
}

}  // namespace

double RoundedToMs(double seconds) { return std::round(seconds * 1e3) / 1e3; }

void CloseReport(OperationRecord& op, Time now) {
  RollReport& r = op.report;
  r.started_at = At(op.started, kStepAdmit).value_or(now);
  r.done_at = now;
  r.total_seconds = ReportSeconds(now - *r.started_at);
  // Of a roll that was undone nobody could say what was work and what was the wait for its failure.
  if (op.undoing) return;
  // Waits for a person lie beside the others: no deadline runs in them.
  const double named = ToSeconds(Covered(NamedWaits(op))) + r.gate_seconds.value_or(0);
  r.overhead_seconds = RoundedToMs(std::max(0.0, *r.total_seconds - named));
}

}  // namespace lockkeeper::roll
