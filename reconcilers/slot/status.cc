#include "reconcilers/slot/status.h"

#include "api/types/conditions.h"

namespace lockkeeper::slot {
namespace {

bool SameStart(const SlotEntry& entry) {
  return entry.intent.incarnation == entry.actual.incarnation && entry.intent.invocation == entry.actual.invocation;
}

bool Ended(const SlotActual& a) { return a.exited_at != Time{}; }

std::string EndText(const SlotActual& a) {
  if (a.stop_reason == StopReason::kHostReboot) return "it ended with the host";
  if (a.stop_reason == StopReason::kTimeout) return "it did not end in time and was killed";
  if (!a.exit) return "it is gone without an exit record";
  if (a.exit->oom) return "it was killed: out of memory";
  if (a.exit->signal != 0) return "it ended by signal " + std::to_string(a.exit->signal);
  return "it ended with exit code " + std::to_string(a.exit->code);
}

ReadySummary ReadyOf(const SlotEntry& entry, SlotState state) {
  const SlotActual& a = entry.actual;
  ReadySummary r;
  r.ready = ConditionStatus::kFalse;
  switch (state) {
    case SlotState::kStarting:
      r.reason = "Starting";
      r.message = "the process is being started and does not listen yet";
      break;
    case SlotState::kListening:
      r.reason = "Listening";
      r.message = "the process listens and is not ready yet";
      break;
    case SlotState::kReady:
      r.ready = ConditionStatus::kTrue;
      r.settling = Settling::kCurrent;
      r.reason = "Serving";
      r.message = "the process is ready";
      break;
    case SlotState::kStopping:
      r.reason = "Stopping";
      r.message = "the process is stopping";
      break;
    case SlotState::kStopped:
      r.ready = ConditionStatus::kTrue;  // it is as its spec wants it: nothing of it runs
      r.settling = Settling::kCurrent;
      r.reason = "Stopped";
      r.message = "nothing of the slot runs, as wanted";
      break;
    case SlotState::kFailed:
      r.settling = Settling::kStalled;
      r.reason = a.error.empty() ? "Ended" : "StartFailed";
      r.message = a.error.empty() ? EndText(a) : a.error;
      break;
  }
  return r;
}

}  // namespace

std::string ObjectName(const std::string& server, const std::string& slot) { return server + "-" + slot; }

SlotState StateOf(const SlotEntry& entry) {
  const SlotActual& a = entry.actual;
  const bool runs = a.id.pid != 0 && !Ended(a);
  if (!entry.intent.running) return runs ? SlotState::kStopping : SlotState::kStopped;
  if (!SameStart(entry)) return SlotState::kStarting;
  if (!a.error.empty() || Ended(a)) return SlotState::kFailed;
  if (!runs || a.port == 0) return SlotState::kStarting;
  return entry.ready_at == Time{} ? SlotState::kListening : SlotState::kReady;
}

SlotSpec SpecOf(const ServerRecord& record, const std::string& slot, const std::string& host) {
  SlotSpec spec;
  spec.server_ref.name = record.key.name;
  spec.host = host;
  const auto it = record.slots.find(slot);
  if (it == record.slots.end()) return spec;
  const SlotIntent& intent = it->second.intent;
  spec.running = intent.running;
  spec.incarnation = intent.incarnation;
  if (intent.incarnation == 0) return spec;
  RenderedUnit unit;
  unit.name = intent.unit.name;
  unit.command = intent.unit.argv;
  unit.working_directory = intent.unit.working_directory;
  unit.root = intent.root;
  unit.user = intent.unit.user;
  unit.group = intent.unit.group;
  // The environment stays on the host: it may hold secrets. Its names are shown.
  for (const auto& [name, value] : intent.unit.env) unit.env.push_back(EnvVar{name, "", {}});
  for (const CompanionIntent& c : intent.companions) {
    unit.companions.push_back(RenderedCompanion{c.name, c.unit.name, c.unit.argv, {}});
  }
  spec.unit = std::move(unit);
  return spec;
}

SlotStatus Summarize(const SlotEntry& entry, const SlotStatus& before, const std::vector<std::string>& output,
                     int64_t generation, Time now) {
  const SlotActual& a = entry.actual;
  SlotStatus s;
  s.observed_generation = generation;
  s.state = StateOf(entry);
  s.boots = a.boots;
  s.unit = a.id.unit.empty() ? entry.intent.unit.name : a.id.unit;
  if (a.incarnation != 0) s.incarnation = a.incarnation;
  if (a.id.pid != 0) {
    s.invocation_id = a.id.unit + "." + std::to_string(a.id.invocation);
    if (!Ended(a)) s.pid = a.id.pid;
  }
  if (a.port != 0) s.port = a.port;
  s.exec = a.executable;
  s.sha256 = a.exec_sha256;
  s.version = entry.intent.build.version;
  const auto set = [](std::optional<Time>* to, Time from) {
    if (from != Time{}) *to = from;
  };
  set(&s.started_at, a.started_at);
  set(&s.listening_at, a.listening_at);
  set(&s.ready_at, SameStart(entry) ? entry.ready_at : Time{});
  set(&s.exited_at, a.exited_at);
  if (a.exit) {
    if (a.exit->signal != 0) {
      s.exit_signal = a.exit->signal;
    } else {
      s.exit_code = a.exit->code;
    }
  }
  s.stop_reason = a.stop_reason;
  s.restarts = a.boots > 0 ? a.boots - 1 : 0;
  s.last_output = output.empty() ? before.last_output : output;
  std::vector<Condition> conditions;
  SetReady(conditions, ReadyOf(entry, *s.state), generation, now);
  s.conditions = CarryConditions(before.conditions, std::move(conditions), generation, now);
  s.extra = before.extra;
  return s;
}

}  // namespace lockkeeper::slot
