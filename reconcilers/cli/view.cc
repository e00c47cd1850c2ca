#include "reconcilers/cli/view.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "api/types/conditions.h"
#include "api/types/reasons.h"

namespace lockkeeper::cli {
namespace {

std::string Or(const std::string& text) { return text.empty() ? "-" : text; }

std::string Fixed(double value, int digits) {
  char buffer[48];
  std::snprintf(buffer, sizeof buffer, "%.*f", digits, value);
  return buffer;
}

std::string SecondsText(double seconds) {
  return seconds < 120 ? Fixed(seconds, 2) + "s" : FormatAge(Seconds(seconds));
}

// The clock part of a time with milliseconds: "12:00:01.250".
std::string ClockText(Time t) { return FormatMicroTime(t).substr(11, 12); }

std::string Ago(const std::optional<Time>& t, Time now) { return t ? FormatAge(now - *t) : "-"; }

const SlotRecord* ActiveSlot(const Server& server) {
  for (const SlotRecord& slot : server.status.slots) {
    if (slot.name == server.status.active_slot) return &slot;
  }
  return nullptr;
}

std::string OperationText(const Server& server) {
  if (!server.status.operation) return "-";
  const OperationRef& op = *server.status.operation;
  std::string text = op.kind + "/" + op.name;
  if (server.status.progress && !server.status.progress->step.empty()) {
    text += " at " + server.status.progress->step;
  } else if (op.phase) {
    text += " " + std::string(EnumName(*op.phase));
  }
  return text;
}

std::string ReadyText(const Server& server) {
  const Condition* ready = FindCondition(server.status.conditions, condition::kReady);
  if (ready == nullptr) return "Unknown";
  if (ready->status == ConditionStatus::kTrue) return "Ready";
  return Or(ready->reason);
}

std::string NextActionLines(const std::vector<NextAction>& actions) {
  std::string text;
  for (const NextAction& a : actions) {
    text += "    -> " + a.command;
    // "none: why" reads as nothing without its column.
    const bool harmless = a.risk.rfind("none; ", 0) == 0 || a.risk.rfind("none: ", 0) == 0;
    const std::string risk = harmless ? a.risk.substr(6) : a.risk == "none" ? "" : a.risk;
    text += risk.empty() ? "\n" : "   (" + risk + ")\n";
  }
  return text;
}

// What a person should know of one Server: stalls, degradation, what is unknown.
std::string Troubles(const Server& server) {
  std::string text;
  for (const Condition& c : server.status.conditions) {
    const bool bad_when_true =
        c.type == condition::kStalled || c.type == condition::kDegraded || c.type == condition::kRestorePending;
    const bool bad_when_not = c.type == condition::kAvailable || c.type == condition::kFrontInSync;
    if ((bad_when_true && c.status == ConditionStatus::kTrue) ||
        (bad_when_not && c.status != ConditionStatus::kTrue && !server.status.operation)) {
      text += "  " + server.metadata.name + ": " + c.type + "=" + std::string(EnumName(c.status)) + " (" + c.reason +
              "): " + c.message + "\n";
    }
  }
  const Condition* ready = FindCondition(server.status.conditions, condition::kReady);
  if (text.empty() && ready != nullptr && ready->status == ConditionStatus::kFalse && !server.status.operation) {
    text = "  " + server.metadata.name + ": " + ready->message + "\n";
  }
  if (text.empty()) return text;
  if (ready != nullptr && ready->reason == reason::kServerStopped) {
    text += "    -> lockkeeper start " + server.metadata.name + " -n " + server.metadata.namespace_ + "\n";
  }
  return text + NextActionLines(server.status.next_actions);
}

// The operation of a Server that waits for a person: what it says of itself, and what a person can do.
std::string WaitingOperation(const Server& server, const std::vector<OperationNews>& news) {
  if (!server.status.operation) return "";
  const OperationRef& op = *server.status.operation;
  for (const OperationNews& n : news) {
    if (n.uid != op.uid) continue;
    const Condition* ready = FindCondition(n.conditions, condition::kReady);
    const Condition* stalled = FindCondition(n.conditions, condition::kStalled);
    const bool stands = stalled != nullptr && stalled->status == ConditionStatus::kTrue;
    const bool gate = ready != nullptr && ready->reason == reason::kWaitingForApproval;
    const bool paused = ready != nullptr && ready->reason == reason::kPaused;
    if (!stands && !gate && !paused) return "";
    std::string text = "  " + server.metadata.name + ": " + op.kind + " " + op.name + " (" +
                       (stands ? stalled->reason + "): " + stalled->message : ready->reason + "): " + ready->message) +
                       "\n" + NextActionLines(n.next_actions);
    const std::string way = op.name + " -n " + server.metadata.namespace_ + "\n";
    if (paused && text.find("lockkeeper resume ") == std::string::npos) text += "    -> lockkeeper resume " + way;
    return n.next_actions.empty() ? text + "    -> lockkeeper abort " + way : text;
  }
  return "";
}

std::string Attention(const Server& server, const std::vector<OperationNews>& news) {
  const std::string troubles = Troubles(server);
  const Condition* stalled = FindCondition(server.status.conditions, condition::kStalled);
  // A Server that stalls says so for its operation.
  const bool told = stalled != nullptr && stalled->status == ConditionStatus::kTrue;
  return told ? troubles : troubles + WaitingOperation(server, news);
}

void Figure(std::string& text, const char* name, const std::optional<double>& value) {
  if (value) text += std::string("  ") + name + " " + Fixed(*value, 3) + " s\n";
}

// A control that was not obeyed; an Upgrade and its Roll tell it under one key.
void AddRefusal(const std::vector<Condition>& conditions, std::vector<StepLine>& lines) {
  const Condition* refused = FindCondition(conditions, condition::kAbortRefused);
  if (refused == nullptr || refused->status != ConditionStatus::kTrue || !refused->last_transition_time) return;
  const Time at = *refused->last_transition_time;
  lines.push_back({refused->type, ClockText(at) + "             abort refused: " + refused->message, at});
}

}  // namespace

std::string Table(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const std::string& cell : header) widths.push_back(cell.size());
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size() && i < widths.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text;
    for (size_t i = 0; i < cells.size(); ++i) {
      text += cells[i];
      if (i + 1 < cells.size()) text += std::string(widths[i] - cells[i].size() + 2, ' ');
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + "\n";
  };
  line(header);
  for (const auto& row : rows) line(row);
  return out;
}

std::string ProgressBar(double fraction, int width) {
  const double f = std::clamp(fraction, 0.0, 1.0);
  const int full = static_cast<int>(std::lround(f * width));
  char percent[8];
  std::snprintf(percent, sizeof percent, "%3d%%", static_cast<int>(std::lround(f * 100)));
  return "[" + std::string(full, '#') + std::string(width - full, '.') + "] " + percent;
}

std::string ProgressLine(const Progress& p, Time now) {
  std::string text = p.step.empty() ? p.message : p.step + (p.message.empty() ? "" : "  " + p.message);
  if (p.percent) {
    text += "  " + ProgressBar(static_cast<double>(*p.percent) / 100, 20);
  } else if (p.done && p.total && *p.total > 0) {
    text += "  " + ProgressBar(static_cast<double>(*p.done) / static_cast<double>(*p.total), 20);
  } else if (p.expected_seconds && *p.expected_seconds > 0 && p.updated_at) {
    text += "  " + ProgressBar(ToSeconds(now - *p.updated_at) / *p.expected_seconds, 20);
  }
  if (p.done && p.total) text += "  " + std::to_string(*p.done) + "/" + std::to_string(*p.total) + " " + p.unit;
  return text;
}

std::string StatusText(const std::vector<Server>& servers, const std::vector<OperationNews>& news, Time now) {
  std::vector<std::vector<std::string>> rows;
  std::string troubles;
  for (const Server& s : servers) {
    const SlotRecord* active = ActiveSlot(s);
    rows.push_back({s.metadata.namespace_ + "/" + s.metadata.name, std::string(EnumName(s.spec.shape)), ReadyText(s),
                    Or(s.status.version), Or(s.status.active_slot),
                    active != nullptr && active->pid ? std::to_string(*active->pid) : "-",
                    active != nullptr && active->port ? std::to_string(*active->port) : "-",
                    active != nullptr ? Ago(active->ready_at, now) : "-",
                    s.spec.front_ref ? s.spec.front_ref->name : "-", OperationText(s)});
    troubles += Attention(s, news);
  }
  std::string text =
      Table({"SERVER", "SHAPE", "STATE", "VERSION", "SLOT", "PID", "PORT", "UP", "FRONT", "OPERATION"}, rows);
  if (!troubles.empty()) text += "\nWants attention:\n" + troubles;
  return text;
}

std::string ServerText(const Server& s, const std::vector<OperationNews>& news, Time now) {
  std::string text = "Server " + s.metadata.namespace_ + "/" + s.metadata.name + " on host " + s.spec.host + ": " +
                     ReadyText(s) + "\n";
  text += "  version " + Or(s.status.version) + ", active slot " + Or(s.status.active_slot) + ", front " +
          (s.spec.front_ref ? s.spec.front_ref->name : "-") + ", operation " + OperationText(s) + "\n\n";
  std::vector<std::vector<std::string>> rows;
  for (const SlotRecord& slot : s.status.slots) {
    rows.push_back({slot.name + (slot.name == s.status.active_slot ? "*" : ""), Or(slot.version),
                    slot.pid ? std::to_string(*slot.pid) : "-", slot.port ? std::to_string(*slot.port) : "-",
                    Ago(slot.ready_at, now), slot.unit});
  }
  text += Table({"SLOT", "VERSION", "PID", "PORT", "READY FOR", "UNIT"}, rows);
  if (s.status.lease) {
    // When it was renewed is mirrored only beside something else: its age would read like a dead holder's.
    text += "\nlease held by " + Or(s.status.lease->holder) + " for " + Ago(s.status.lease->acquire_time, now) + "\n";
  }
  if (s.status.progress) text += "\n" + ProgressLine(*s.status.progress, now) + "\n";
  const std::string troubles = Attention(s, news);
  if (!troubles.empty()) text += "\nWants attention:\n" + troubles;
  return text;
}

std::string ReleasedText(const std::vector<Json>& views) {
  std::string text;
  for (const Json& view : views) {
    if (!view.Get("released").AsBool()) continue;
    const std::string& name = view.Get("name").AsString();
    const std::string& ns = view.Get("namespace").AsString();
    std::string running;
    for (const Json& slot : view.Get("slots").AsArray()) {
      const std::string& state = slot.Get("state").AsString();
      if (state == "Stopped" || state == "Failed") continue;
      running += std::string(running.empty() ? "" : "; ") + "slot " + slot.Get("name").AsString() + " " +
                 slot.Get("version").AsString() + ", pid " + std::to_string(slot.Get("pid").AsInt()) + ", port " +
                 std::to_string(slot.Get("port").AsInt());
    }
    text += "  " + ns + "/" + name + ": " + (running.empty() ? "none of its processes runs any more" : running) + "\n";
    text += "    -> to take it back as it runs: kubectl apply its manifest (same namespace, name and host)\n";
    if (!running.empty()) text += "    -> to stop it: apply it, then lockkeeper stop " + name + " -n " + ns + "\n";
  }
  return text.empty() ? text : "Deleted, but left running on this host (deletionPolicy Orphan):\n" + text;
}

// Whose controls count: the Upgrade's that made the Roll, else its own.
std::string OperationName(const Roll& roll) {
  const OwnerReference* owner = roll.metadata.ControllerRef();
  return owner != nullptr && owner->kind == Upgrade::kKind ? owner->name : roll.metadata.name;
}

std::vector<StepLine> StepLines(const Roll& roll) {
  std::vector<StepLine> lines;
  std::optional<Time> first = roll.status.report.started_at;
  for (const RollStep& step : roll.status.steps) {
    if (!step.started_at || step.state == StepState::kPending || step.state == StepState::kRunning) continue;
    if (!first) first = step.started_at;
    const Time at = step.finished_at.value_or(*step.started_at);
    char head[96];
    std::snprintf(head, sizeof head, "%s  %+8.2fs  %-12s %8s  ", ClockText(at).c_str(), ToSeconds(at - *first),
                  step.name.c_str(),
                  step.finished_at ? SecondsText(ToSeconds(*step.finished_at - *step.started_at)).c_str() : "");
    std::string text = head;
    if (step.state == StepState::kFailed) text += "FAILED ";
    if (step.state == StepState::kSkipped) text += "skipped ";
    text += step.message;
    if (step.state == StepState::kWaiting && step.name == "Gates") {
      text +=
          "; let it go on with `lockkeeper approve " + OperationName(roll) + " -n " + roll.metadata.namespace_ + "`";
    }
    text.erase(text.find_last_not_of(' ') + 1);
    lines.push_back({step.name + "/" + std::string(EnumName(step.state)) + "/" + std::to_string(step.attempt),
                     std::move(text), at});
  }
  AddRefusal(roll.status.conditions, lines);
  return lines;
}

std::vector<StepLine> PhaseLines(const Upgrade& upgrade) {
  std::vector<StepLine> lines;
  for (const PhaseRecord& phase : upgrade.status.phases) {
    if (!phase.started_at) continue;
    std::string text = ClockText(*phase.started_at) + "             " + std::string(EnumName(phase.name));
    if (!phase.message.empty()) text += "  " + phase.message;
    std::string key(EnumName(phase.name));
    // Before there is a roll the message is the only thing that tells why it does not go on.
    if (phase.name < OperationPhase::kInstalling) key += "/" + phase.message;
    const Condition* stalled = FindCondition(upgrade.status.conditions, condition::kStalled);
    const bool stands = stalled != nullptr && stalled->status == ConditionStatus::kTrue && !phase.finished_at;
    if (stands && phase.name < OperationPhase::kInstalling && text.find("lockkeeper abort") == std::string::npos) {
      text += "; mend that, or end it with `lockkeeper abort " + upgrade.metadata.name + " -n " +
              upgrade.metadata.namespace_ + "`";
      key += "/stalled";
    }
    lines.push_back({std::move(key), std::move(text), *phase.started_at});
  }
  AddRefusal(upgrade.status.conditions, lines);
  return lines;
}

// What a preflight found and what would be done, a line each.
std::string PreflightText(const Upgrade& upgrade) {
  std::string text;
  for (const PreflightCheck& check : upgrade.status.checks) {
    if (check.state != CheckState::kPassed) {
      text += "  " + std::string(EnumName(check.state)) + " " + check.name + ": " + check.message + "\n";
    }
  }
  int number = 0;
  for (const PlanStep& step : upgrade.status.plan) {
    text += "  " + std::to_string(++number) + ". " + step.name + ": " + step.description;
    if (step.expected_seconds) text += " (at most " + Fixed(*step.expected_seconds, 0) + " s)";
    text += "\n";
  }
  return text;
}

std::string OutcomeText(const Roll& roll) {
  std::string text = "Roll " + roll.metadata.name + ": ";
  if (!roll.status.outcome) return text + "not finished\n";
  text += std::string(EnumName(*roll.status.outcome));
  if (!roll.status.error.empty()) text += ": " + roll.status.error;
  text += "\n";
  const RollReport& r = roll.status.report;
  if (!r.from.empty()) text += "  " + r.from + " -> " + r.to + "\n";
  Figure(text, "start to ready", r.start_to_ready_seconds);
  Figure(text, "drain", r.drain_seconds);
  Figure(text, "old exit", r.old_exit_seconds);
  Figure(text, "lease hand-over", r.lease_handover_seconds);
  Figure(text, "probe", r.probe_seconds);
  Figure(text, "outage", r.outage_seconds);
  Figure(text, "overhead", r.overhead_seconds);
  Figure(text, "total", r.total_seconds);
  return text + NextActionLines(roll.status.next_actions);
}

std::string OutcomeText(const Upgrade& upgrade) {
  std::string text = "Upgrade " + upgrade.metadata.name + ": ";
  if (!upgrade.status.outcome) return text + "not finished\n";
  text += std::string(EnumName(*upgrade.status.outcome));
  const Condition* finished = FindCondition(upgrade.status.conditions, condition::kFinished);
  if (finished != nullptr && !finished->message.empty()) text += ": " + finished->message;
  text += "\n";
  if (upgrade.spec.mode == OperationMode::kPreflight) {
    text += PreflightText(upgrade);
  } else if (!upgrade.status.new_version.empty()) {
    text += "  " + Or(upgrade.status.previous_version) + " -> " + upgrade.status.new_version + "\n";
  }
  return text + NextActionLines(upgrade.status.next_actions);
}

}  // namespace lockkeeper::cli
