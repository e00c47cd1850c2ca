// ASnapshot: a builder of Snapshots for the plan's tables. It begins with a Server at rest: blue active, ready, the
// front on it, and a lease that is renewed.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "reconcilers/server/plan.h"
#include "reconcilers/server/steps.h"

namespace lockkeeper::roll {

inline constexpr char kBoot[] = "boot-1";

inline Now TestNow() { return Now{Time(Seconds(1800000000)), Seconds(1000), kBoot}; }

class ASnapshot {
 public:
  ASnapshot() {
    s_.key = {"ns", "kcp"};
    s_.ledger.id = "ledger-1";
    s_.ledger.revision = 100;
    s_.host.name = "host-a";
    s_.host.hostname = "box";
    s_.host.data_dir = "/data";
    s_.host.free_bytes = int64_t{1} << 30;
    s_.candidates = std::vector<Candidate>{};
    ServerRecord r;
    r.key = s_.key;
    r.revision = 100;
    r.active = "blue";
    r.installed = true;
    r.harvested = true;
    r.incarnations = 1;
    r.version = "v1";
    r.link_of = "/data/releases/v1";
    r.last_restarted_at = "2026-01-01T00:00:00Z";
    r.spec.host = "host-a";
    r.spec.template_.command = {"bin/kcp"};
    r.spec.front_ref = LocalRef{"front", {}};
    s_.record = r;
    Slot("blue", 1, "v1").Ready("blue");
    FrontOn("blue");
  }

  ServerRecord& rec() { return *s_.record.get(); }
  Snapshot& s() { return s_; }
  OperationRecord& op() { return *rec().operation; }

  ASnapshot& Slot(const std::string& name, int64_t incarnation, const std::string& version) {
    SlotEntry& entry = rec().slots[name];
    SlotIntent& intent = entry.intent;
    intent.incarnation = incarnation;
    intent.invocation = 1;
    intent.running = true;
    intent.root = "/data/servers/ns/kcp/slots/" + name;
    intent.build = {version, "", "artifact-" + version, "/data/releases/" + version, "sha-" + version};
    intent.unit.name = UnitOf(name, incarnation);
    intent.unit.argv = {"/data/releases/" + version + "/bin/kcp"};
    s_.slots[name] = SlotFacts{};
    s_.slots[name].unit = Absent{};
    s_.slots[name].companions = 0;
    return *this;
  }
  // An Upgrade to v2 that is not admitted; the last one made.
  Candidate& Waiting(const std::string& name) {
    Candidate x;
    x.kind = kKindUpgrade;
    x.ns = "ns";
    x.name = name;
    x.uid = "uid-" + name;
    x.has_finalizer = true;
    x.version = "v2";
    x.recorded = Absent{};
    s_.candidates.get()->push_back(x);
    return s_.candidates.get()->back();
  }
  // Its process runs, listens and answers 200 with the right build.
  ASnapshot& Ready(const std::string& name) {
    Running(name);
    s_.slots[name].readyz = ReadyzFact{200, false, ""};
    s_.slots[name].exec_sha256 = rec().slots[name].intent.build.exec_sha256;
    if (rec().slots[name].ready_at == Time{}) rec().slots[name].ready_at = TestNow().wall - Seconds(60);
    return *this;
  }
  ASnapshot& NotReady(const std::string& name) {
    Running(name);
    s_.slots[name].readyz = ReadyzFact{500, false, "etcd"};
    return *this;
  }
  ASnapshot& ReadinessUnknown(const std::string& name) {
    Running(name);
    s_.slots[name].readyz = Unknown{"timed out"};
    return *this;
  }
  ASnapshot& Running(const std::string& name) {
    SlotEntry& entry = rec().slots[name];
    UnitStatus unit;
    unit.state = UnitStatus::State::kRunning;
    unit.id = {entry.intent.unit.name, entry.intent.invocation, PidOf(name), 1, kBoot};
    unit.started_at = TestNow().wall - Seconds(300);
    s_.slots[name].unit = unit;
    SlotActual& actual = entry.actual;
    actual = SlotActual{};
    actual.incarnation = entry.intent.incarnation;
    actual.invocation = entry.intent.invocation;
    actual.id = unit.id;
    actual.port = PortOf(name);
    actual.started_at = unit.started_at;
    return *this;
  }
  ASnapshot& Dead(const std::string& name) {
    Running(name);
    UnitStatus& unit = *s_.slots[name].unit.get();
    unit.state = UnitStatus::State::kExited;
    unit.exit = UnitExit{TestNow().wall - Seconds(1), 1, 0, false, false};
    rec().slots[name].actual.exit = unit.exit;
    rec().slots[name].actual.exited_at = unit.exit->at;
    s_.slots[name].readyz = Fact<ReadyzFact>{};
    return *this;
  }
  ASnapshot& Stopped(const std::string& name) {
    Dead(name);
    rec().slots[name].intent.running = false;
    return *this;
  }
  ASnapshot& UnitUnknown(const std::string& name) {
    s_.slots[name].unit = Unknown{"the shim does not answer"};
    return *this;
  }
  ASnapshot& FrontOn(const std::string& name) {
    FrontState front;
    FrontTarget target;
    target.slot = name;
    target.incarnation = rec().slots[name].intent.incarnation;
    target.invocation = rec().slots[name].intent.invocation;
    target.address = "127.0.0.1:" + std::to_string(PortOf(name));
    target.boot_id = kBoot;
    front.target = target;
    s_.front = front;
    return *this;
  }
  ASnapshot& FrontHolds() {
    FrontState front;
    front.target = FrontTarget{};
    front.target->hold = true;
    s_.front = front;
    return *this;
  }
  ASnapshot& FrontSilent() {
    s_.front = Unknown{"connection refused"};
    return *this;
  }
  // A Roll from blue to green that has finished its steps up to and with `last`.
  ASnapshot& Rolling(std::string_view last, const std::function<void(OperationRecord&)>& edit = {}) {
    OperationRecord op;
    op.kind = kKindRoll;
    op.ns = "ns";
    op.name = op.roll_name = "r1";
    op.uid = op.roll_uid = "uid-r1";
    op.action = "Upgrade";
    op.from = "blue";
    op.to = "green";
    op.spec.backup = RollBackup::kNone;
    op.target = {"v2", "", "artifact-v2", "/data/releases/v2", "sha-v2"};
    if (edit) edit(op);
    for (std::string_view step : StepsOf(op, StopOrder::kDrainThenStop)) {
      op.started[std::string(step)] = op.finished[std::string(step)] = TestNow().wall - Seconds(10);
      if (step == last) break;
    }
    op.rendered = SlotIntent{};
    op.rendered->incarnation = 2;
    op.rendered->build = op.target;
    rec().incarnations = 2;
    rec().operation = op;
    return *this;
  }
  ASnapshot& Begun(std::string_view step) {
    op().started[std::string(step)] = TestNow().wall - Seconds(5);
    return *this;
  }
  ASnapshot& DeadlineIn(const char* name, Duration left) {
    op().deadlines[name] = Deadline::After(TestNow(), left);
    return *this;
  }
  ASnapshot& GreenRecorded() {
    rec().active = "green";
    rec().version = "v2";
    return *this;
  }
  ASnapshot& With(const std::function<void(ASnapshot&)>& edit) {
    edit(*this);
    return *this;
  }
  Snapshot Take() const { return s_; }

  static std::string UnitOf(const std::string& slot, int64_t n) {
    return "lk-ns-kcp-" + slot + "-" + std::to_string(n);
  }
  static int PortOf(const std::string& slot) { return slot == "blue" ? 4001 : 4002; }
  static pid_t PidOf(const std::string& slot) { return slot == "blue" ? 101 : 102; }

 private:
  Snapshot s_;
};

// The record as a plan's commit would leave it, or nullptr.
inline const ServerRecord* Committed(const Plan& plan) {
  if (!plan.step) return nullptr;
  const Commit* commit = std::get_if<Commit>(&plan.step->action);
  return commit == nullptr ? nullptr : &commit->record;
}

}  // namespace lockkeeper::roll
