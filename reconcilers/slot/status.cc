#include "reconcilers/slot/status.h"

#include <algorithm>
#include <cctype>

#include "api/types/conditions.h"

namespace lockkeeper::slot {
namespace {

bool LooksSecret(const std::string& name) {
  std::string upper = name;
  std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char c) { return std::toupper(c); });
  for (const char* word : {"TOKEN", "PASSWORD", "SECRET", "KEY", "CREDENTIAL"}) {
    if (upper.find(word) != std::string::npos) return true;
  }
  return false;
}

RenderedUnit UnitOf(const SlotIntent& intent) {
  RenderedUnit unit;
  unit.name = intent.unit.name;
  unit.command = intent.unit.argv;
  for (const auto& [name, value] : intent.unit.env) {
    EnvVar& var = unit.env.emplace_back();
    var.name = name;
    var.value = LooksSecret(name) ? "***" : value;
  }
  unit.working_directory = intent.unit.working_directory;
  unit.root = intent.root;
  unit.user = intent.unit.user;
  unit.group = intent.unit.group;
  for (const CompanionIntent& c : intent.companions) {
    RenderedCompanion& companion = unit.companions.emplace_back();
    companion.name = c.name;
    companion.unit = c.unit.name;
    companion.command = c.unit.argv;
  }
  return unit;
}

void Set(std::optional<Time>& to, Time from) {
  if (from != Time{}) to = from;
}

struct Where {
  SlotState state;
  std::string reason;
  std::string message;
};

Where StateOf(const SlotEntry& entry) {
  const SlotIntent& intent = entry.intent;
  const SlotActual& actual = entry.actual;
  const bool current = actual.incarnation == intent.incarnation && actual.invocation == intent.invocation;
  const bool runs = current && actual.id.pid != 0 && actual.exited_at == Time{};
  if (!intent.running) {
    if (runs) return {SlotState::kStopping, "Reconciling", "is stopping"};
    return {SlotState::kStopped, "Stopped", "is not wanted to run"};
  }
  if (current && !actual.error.empty()) {
    const bool port = actual.error.find("in use") != std::string::npos;
    const std::string reason = actual.error_code == "NotFound"    ? "CommandNotFound"
                               : port                             ? "PortTaken"
                               : actual.error_code == "Exhausted" ? "DiskFull"
                                                                  : "StartFailed";
    return {SlotState::kFailed, reason, actual.error};
  }
  if (current && actual.exited_at != Time{}) return {SlotState::kFailed, "CrashLooping", "the process has ended"};
  if (!runs) return {SlotState::kStarting, "Reconciling", "is starting"};
  if (entry.ready_at != Time{}) return {SlotState::kReady, "Running", "is ready"};
  if (actual.port != 0) return {SlotState::kListening, "Reconciling", "listens, not ready yet"};
  return {SlotState::kStarting, "Reconciling", "runs, does not listen yet"};
}

}  // namespace

std::string SlotName(const std::string& server, const std::string& slot) { return server + "-" + slot; }

Slot ObjectOf(const ServerRecord& record, const std::string& name, const Slot* old,
              const std::vector<std::string>& last_output, const Now& now) {
  Slot object;
  if (old != nullptr) object = *old;
  const SlotEntry& entry = record.slots.at(name);
  const SlotIntent& intent = entry.intent;
  const SlotActual& actual = entry.actual;
  object.metadata.namespace_ = record.key.ns;
  object.metadata.name = SlotName(record.key.name, name);
  object.spec.server_ref.name = record.key.name;
  object.spec.host = record.spec.host;
  object.spec.running = intent.running;
  object.spec.incarnation = intent.incarnation;
  object.spec.unit = UnitOf(intent);

  const Where where = StateOf(entry);
  SlotStatus status;
  status.extra = object.status.extra;
  status.observed_generation = object.metadata.generation;
  status.state = where.state;
  status.unit = intent.unit.name;
  status.incarnation = intent.incarnation;
  status.version = intent.build.version;
  status.boots = actual.boots;
  status.restarts = std::max<int64_t>(0, actual.boots - 1);
  if (actual.incarnation == intent.incarnation && actual.invocation == intent.invocation) {
    if (actual.id.pid != 0) {
      status.pid = actual.id.pid;
      status.invocation_id = actual.id.unit + "." + std::to_string(actual.id.invocation);
    }
    if (actual.port != 0) status.port = actual.port;
    status.exec = actual.executable;
    status.sha256 = actual.exec_sha256;
    Set(status.started_at, actual.started_at);
    Set(status.listening_at, actual.listening_at);
    Set(status.ready_at, entry.ready_at);
    Set(status.exited_at, actual.exited_at);
    if (actual.exit) {
      if (actual.exit->signal != 0) {
        status.exit_signal = actual.exit->signal;
      } else {
        status.exit_code = actual.exit->code;
      }
    }
    status.stop_reason = actual.stop_reason;
  }
  // Output tells why something ended; a running server's goes to `lockkeeper logs`.
  if (where.state == SlotState::kFailed) status.last_output = last_output;
  ReadySummary ready;
  const bool at_rest = where.state == SlotState::kReady || where.state == SlotState::kStopped;
  ready.ready = where.state == SlotState::kReady ? ConditionStatus::kTrue : ConditionStatus::kFalse;
  ready.settling = at_rest                             ? Settling::kCurrent
                   : where.state == SlotState::kFailed ? Settling::kStalled
                                                       : Settling::kReconciling;
  ready.reason = where.reason;
  ready.message = where.message;
  std::vector<Condition> conditions;
  SetReady(conditions, ready, object.metadata.generation, now.wall);
  status.conditions =
      CarryConditions(object.status.conditions, std::move(conditions), object.metadata.generation, now.wall);
  object.status = std::move(status);
  return object;
}

}  // namespace lockkeeper::slot
