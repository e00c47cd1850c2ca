// A scene: one slot and its units as facts, to be changed by a test and decided upon.
#pragma once

#include <gtest/gtest.h>

#include "reconcilers/slot/plan.h"

namespace lockkeeper::slot {

inline constexpr char kBoot[] = "boot-1";

struct Scene {
  Scene() {
    now.wall = Time(Seconds(1000000));
    now.boot = Seconds(5000);
    now.boot_id = kBoot;
    s.key = {"default", "kcp"};
    s.slot = "blue";
    SlotIntent& i = s.entry.intent;
    i.incarnation = 3;
    i.invocation = 1;
    i.unit.name = "lk-default-kcp-blue-3";
    i.unit.argv = {"/r/kcp"};
    i.running = true;
    i.stop_seconds = 75;
    s.entry.actual.incarnation = 3;
    s.entry.actual.invocation = 1;
    s.unit = Absent{};
    s.stale = Absent{};
    s.exec_sha256 = Unknown{"not observed"};
    s.says_shutting_down = Unknown{"not asked"};
  }

  // A companion of the slot, whose port the server's command names.
  void WithCompanion(int fixed_port = 0) {
    CompanionIntent c;
    c.name = "kine";
    c.unit.name = "lk-default-kcp-blue-3-kine";
    c.unit.argv = {"/r/kine"};
    c.port = fixed_port;
    s.entry.intent.companions = {c};
    s.entry.intent.unit.argv = {"/r/kcp", "--etcd-servers=http://127.0.0.1:{companion.kine.port}"};
    s.companions["kine"] = Absent{};
  }

  UnitStatus Unit(UnitStatus::State state, int64_t invocation = 1, pid_t pid = 100) const {
    UnitStatus u;
    u.state = state;
    u.id = {s.entry.intent.unit.name, invocation, pid, 7, kBoot};
    u.started_at = now.wall - Seconds(5);
    u.executable = "/r/kcp";
    return u;
  }
  UnitStatus Running(int port = 0) const {
    UnitStatus u = Unit(UnitStatus::State::kRunning);
    if (port != 0) u.listen_ports = {port};
    return u;
  }
  UnitStatus Exited(int code = 1, int signal = 0) const {
    UnitStatus u = Unit(UnitStatus::State::kExited);
    UnitExit exit;
    exit.at = now.wall - Seconds(1);
    exit.code = code;
    exit.signal = signal;
    u.exit = exit;
    return u;
  }
  UnitStatus Companion(UnitStatus::State state, int port = 0, int64_t invocation = 1) const {
    UnitStatus u = Unit(state, invocation, 200);
    u.id.unit = s.entry.intent.companions[0].unit.name;
    if (port != 0) u.listen_ports = {port};
    return u;
  }

  Plan Decide() const { return slot::Decide(s, now); }
  // Carries notes out until something else is decided.
  Plan Settle() {
    for (int i = 0; i < 10; ++i) {
      Plan plan = Decide();
      if (plan.step != StepKind::kNote) return plan;
      s.entry.actual = *plan.actual;
    }
    ADD_FAILURE() << "notes without end";
    return {};
  }
  void Advance(Duration d) {
    now.wall += d;
    now.boot += d;
  }
  SlotActual& actual() { return s.entry.actual; }
  SlotIntent& intent() { return s.entry.intent; }

  Snapshot s;
  Now now;
};

}  // namespace lockkeeper::slot
