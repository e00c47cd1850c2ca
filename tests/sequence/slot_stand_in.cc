// A small Slot reconciler by the contract of records.h: processes follow SlotIntent, SlotActual follows processes.
#include "tests/sequence/scenario.h"

namespace lockkeeper::sequence {

Status Scenario::CommitActual(const std::string& name, const std::function<void(SlotActual&)>& change) {
  return world.ledger
      .Update(key,
              [&](ServerRecord& rec) -> Status {
                const auto it = rec.slots.find(name);
                if (it == rec.slots.end()) return Status(Code::kConflict, "the slot is gone");
                change(it->second.actual);
                return Status::Ok();
              })
      .status();
}

void Scenario::Slots() {
  std::vector<std::string> names;
  for (const auto& [name, entry] : record().slots) names.push_back(name);
  for (const std::string& name : names) Slot(name);
}

void Scenario::Slot(const std::string& name) {
  const ServerRecord& rec = record();
  const auto it = rec.slots.find(name);
  if (it == rec.slots.end()) return;
  const SlotIntent intent = it->second.intent;
  const SlotActual actual = it->second.actual;
  if (intent.incarnation == 0 || (intent.invocation == 0 && !intent.forget)) return;
  const bool ours = actual.incarnation == intent.incarnation && actual.invocation == intent.invocation;
  const Result<UnitStatus> unit = units_.Inspect(intent.unit.name);
  if (!unit.ok() && unit.code() != Code::kNotFound) return;
  const bool there = unit.ok();
  const bool this_start = there && unit->id.invocation == intent.invocation;
  const auto note_exit = [&] {
    (void)CommitActual(name, [&](SlotActual& a) {
      a.exit = there && unit->exit ? unit->exit : std::optional<UnitExit>(UnitExit{world.wall(), 0, 0, false, false});
      a.exited_at = a.exit->at;
      const bool rebooted = !a.id.boot_id.empty() && a.id.boot_id != world.clock.Read().boot_id;
      a.stop_reason = rebooted              ? StopReason::kHostReboot
                      : !intent.running     ? StopReason::kRequested
                      : a.exit->signal != 0 ? StopReason::kSignal
                                            : StopReason::kExit;
    }).ok();
  };

  if (intent.running) {
    if (!ours) {
      (void)CommitActual(name, [&](SlotActual& a) {
        const int64_t boots = a.incarnation == intent.incarnation ? a.boots : 0;
        a = SlotActual{};
        a.incarnation = intent.incarnation;
        a.invocation = intent.invocation;
        a.boots = boots + 1;
      }).ok();
      return;
    }
    if (!this_start) {
      if (actual.id.pid != 0) {
        if (!actual.exit) note_exit();
        return;
      }
      if (!actual.error.empty()) return;
      for (const CompanionIntent& c : intent.companions) {
        const Result<UnitStatus> companion = units_.Inspect(c.unit.name);
        const bool runs = companion.ok() && companion->state == UnitStatus::State::kRunning;
        if (!runs && !units_.Start(c.unit, intent.invocation).ok()) return;
      }
      const Status started = units_.Start(intent.unit, intent.invocation);
      if (started.code() == Code::kNotFound || started.code() == Code::kForbidden) {
        (void)CommitActual(name, [&](SlotActual& a) {
          a.error = started.message();
          a.error_code = CodeName(started.code());
        }).ok();
      }
      return;
    }
    if (unit->state == UnitStatus::State::kExited) {
      if (!actual.exit) note_exit();
      return;
    }
    const int port = unit->listen_ports.empty() ? 0 : unit->listen_ports[0];
    if (actual.id == unit->id && (port == 0 || actual.port == port)) return;
    (void)CommitActual(name, [&](SlotActual& a) {
      a.id = unit->id;
      a.started_at = unit->started_at;
      if (port != 0 && a.port == 0) {
        a.port = port;
        a.listening_at = world.wall();
      }
    }).ok();
    return;
  }

  if (there && unit->state == UnitStatus::State::kRunning) {
    if (actual.sigterm_at == Time{} || actual.id != unit->id) {
      const Status noted = CommitActual(name, [&](SlotActual& a) {
        a.incarnation = intent.incarnation;
        a.invocation = unit->id.invocation;
        a.id = unit->id;
        a.stop_asked_at = a.sigterm_at = world.wall();
      });
      if (noted.ok()) (void)units_.Terminate(unit->id, intent.stop_signal).ok();
      return;
    }
    if (world.wall() - actual.sigterm_at > Seconds(static_cast<double>(intent.stop_seconds))) {
      (void)units_.Kill(unit->id).ok();
      return;
    }
    // After a crash: it counts as sent when the process says that it shuts down.
    const Result<ReadyzFact> readyz = peer_.Readyz(rec.spec, actual.port);
    const bool counts_as_sent = !readyz.ok() || readyz->shutting_down;
    if (!counts_as_sent) (void)units_.Terminate(unit->id, intent.stop_signal).ok();
    return;
  }
  if (there && unit->id == actual.id && !actual.exit) note_exit();
  bool companions_left = false;
  for (const CompanionIntent& c : intent.companions) {
    const Result<UnitStatus> companion = units_.Inspect(c.unit.name);
    if (!companion.ok()) continue;
    companions_left = true;
    if (companion->state == UnitStatus::State::kRunning) {
      fakes::Process& p = world.units[c.unit.name];
      if (!p.sigterm) (void)units_.Terminate(companion->id, 15).ok();
    } else if (intent.forget) {
      (void)units_.Reset(c.unit.name).ok();
    }
  }
  if (intent.forget && there && !companions_left) (void)units_.Reset(intent.unit.name).ok();
}

}  // namespace lockkeeper::sequence
