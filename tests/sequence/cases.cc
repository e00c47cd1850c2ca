#include "tests/sequence/cases.h"

#include <algorithm>
#include <cstdlib>

#include "api/base/file.h"
#include "reconcilers/server/steps.h"

namespace lockkeeper::sequence {
namespace {

void Gate(RollSpec& spec) { spec.gates = {lockkeeper::Gate::kBeforeFlip}; }

bool AtGate(Scenario& s) { return s.HasOperation() && s.record().operation->waiting_since.has_value(); }

void Approve(Scenario& s, const std::string& name) {
  s.EditRoll(name, [](RollSpec& spec) {
    if (spec.controls.approve.empty()) spec.controls.approve = {lockkeeper::Gate::kBeforeFlip};
  });
}

void Kill(Scenario& s, const std::string& slot) {
  if (fakes::Process* p = s.world.ProcessOfSlot(slot)) s.world.KillProcess(p->unit);
}

bool StepDone(Scenario& s, const char* step) {
  return s.HasOperation() && s.record().operation->finished.count(step) != 0;
}

// Something that happens once, when `when` is first true.
std::function<void(Scenario&)> Once(std::function<bool(Scenario&)> when, std::function<void(Scenario&)> what) {
  return [when = std::move(when), what = std::move(what)](Scenario& s) {
    if (s.happened || !when(s)) return;
    s.happened = true;
    what(s);
  };
}

Case Named(std::string name, std::function<void(Scenario&)> begin) {
  Case c;
  c.name = std::move(name);
  c.begin = std::move(begin);
  c.active = "green";
  c.version = "v2";
  return c;
}

Case Undone(std::string name, std::string why, std::function<void(Scenario&)> begin) {
  Case c = Named(std::move(name), std::move(begin));
  c.outcome = Outcome::kRolledBack;
  c.reason = std::move(why);
  c.active = "blue";
  c.version = "v1";
  return c;
}

void Single(ServerSpec& spec) { spec.shape = ServerShape::kSingle; }

std::vector<Case> Make() {
  const auto roll = [](Scenario& s) { s.ApplyRoll("r1", "v2"); };
  std::vector<Case> all;
  all.push_back(Named("blue_to_green", roll));

  Case restart = Named("restart", [](Scenario& s) { s.ApplyRoll("r1", ""); });
  restart.version = "v1";
  all.push_back(restart);

  Case gated = Named("gate_and_approve", [](Scenario& s) { s.ApplyRoll("r1", "v2", Gate); });
  gated.each_round = Once(AtGate, [](Scenario& s) { Approve(s, "r1"); });
  all.push_back(gated);

  Case emergency = Named("emergency_flip", [](Scenario& s) {
    s.ApplyRoll("r1", "v2", [](RollSpec& spec) {
      Gate(spec);
      spec.timeouts.ready_seconds = 2;
    });
  });
  emergency.each_round = Once(AtGate, [](Scenario& s) {
    s.BuildOf("v1").never_ready = true;  // and the old one does not come back
    Kill(s, "blue");
  });
  all.push_back(emergency);

  Case comes_back = Named("active_dies_at_the_gate_and_comes_back", [](Scenario& s) { s.ApplyRoll("r1", "v2", Gate); });
  comes_back.each_round = [](Scenario& s) {
    if (!AtGate(s)) return;
    if (!s.happened) {
      s.happened = true;
      Kill(s, "blue");
    } else if (!s.record().hold && s.record().slots["blue"].intent.invocation == 2) {
      Approve(s, "r1");
    }
  };
  all.push_back(comes_back);

  Case single = Named("single_outage", roll);
  single.spec = Single;
  single.active = "blue";
  all.push_back(single);

  Case single_restart = Named("single_restart", [](Scenario& s) { s.ApplyRoll("r1", ""); });
  single_restart.spec = Single;
  single_restart.active = "blue";
  single_restart.version = "v1";
  all.push_back(single_restart);

  all.push_back(Named("planned_outage_of_blue_green", [](Scenario& s) {
    s.ApplyRoll("r1", "v2", [](RollSpec& spec) { spec.planned_outage = true; });
  }));

  Case stop_then_drain = Named("stop_then_drain", roll);
  stop_then_drain.spec = [](ServerSpec& spec) { spec.template_.stop.order = StopOrder::kStopThenDrain; };
  all.push_back(stop_then_drain);

  Case soak = Named("soak", roll);
  soak.spec = [](ServerSpec& spec) { spec.soak_seconds = 1; };
  all.push_back(soak);

  all.push_back(Undone("undo_never_ready", "NewSlotNotReady", [](Scenario& s) {
    s.BuildOf("v2").never_ready = true;
    s.ApplyRoll("r1", "v2", [](RollSpec& spec) { spec.timeouts.ready_seconds = 1; });
  }));
  all.push_back(Undone("undo_crash_before_ready", "NewSlotDied", [](Scenario& s) {
    s.BuildOf("v2").dies_after = Milliseconds(60);
    s.ApplyRoll("r1", "v2");
  }));
  all.push_back(Undone("undo_wrong_build", "WrongBuild", [](Scenario& s) {
    s.BuildOf("v2").runs_sha = "another-executable";
    s.ApplyRoll("r1", "v2");
  }));
  Case front_stays = Undone("undo_front_does_not_move", "FrontNotObserved", [](Scenario& s) {
    s.world.front.ignores_set = true;
    s.ApplyRoll("r1", "v2", [](RollSpec& spec) { spec.timeouts.flip_seconds = 1; });
  });
  all.push_back(front_stays);

  Case at_gate = Undone("undo_crash_at_the_gate", "NewSlotDied", [](Scenario& s) { s.ApplyRoll("r1", "v2", Gate); });
  at_gate.each_round = Once(AtGate, [](Scenario& s) { Kill(s, "green"); });
  all.push_back(at_gate);

  Case abort = Undone("abort_at_the_gate", "Aborted", [](Scenario& s) { s.ApplyRoll("r1", "v2", Gate); });
  abort.outcome = Outcome::kAborted;
  abort.each_round =
      Once(AtGate, [](Scenario& s) { s.EditRoll("r1", [](RollSpec& spec) { spec.controls.abort = true; }); });
  all.push_back(abort);

  Case abort_late = Undone("abort_after_the_flip", "Aborted", roll);
  abort_late.spec = [](ServerSpec& spec) { spec.soak_seconds = 600; };
  abort_late.outcome = Outcome::kAborted;
  abort_late.each_round =
      Once([](Scenario& s) { return StepDone(s, roll::kStepFlip); },
           [](Scenario& s) { s.EditRoll("r1", [](RollSpec& spec) { spec.controls.abort = true; }); });
  all.push_back(abort_late);

  Case abandon = Undone("abandon_before_the_record", "Abandoned", [](Scenario& s) { s.ApplyRoll("r1", "v2", Gate); });
  abandon.outcome = Outcome::kAbandoned;
  abandon.each_round =
      Once(AtGate, [](Scenario& s) { s.EditRoll("r1", [](RollSpec& spec) { spec.controls.abandon = true; }); });
  all.push_back(abandon);

  Case abandon_late = Named("abandon_in_the_soak", roll);
  abandon_late.spec = [](ServerSpec& spec) { spec.soak_seconds = 600; };
  abandon_late.outcome = Outcome::kAbandoned;
  abandon_late.each_round =
      Once([](Scenario& s) { return StepDone(s, roll::kStepFlip); },
           [](Scenario& s) { s.EditRoll("r1", [](RollSpec& spec) { spec.controls.abandon = true; }); });
  all.push_back(abandon_late);

  Case flip_back = Undone("flip_back_when_the_new_slot_dies", "NewSlotDied", roll);
  flip_back.spec = [](ServerSpec& spec) { spec.soak_seconds = 600; };
  flip_back.each_round =
      Once([](Scenario& s) { return StepDone(s, roll::kStepDrain); }, [](Scenario& s) { Kill(s, "green"); });
  all.push_back(flip_back);

  Case unready = Undone("flip_back_when_the_new_slot_is_not_ready", "NewSlotNotReady", roll);
  unready.spec = [](ServerSpec& spec) { spec.soak_seconds = 600; };
  unready.each_round = Once([](Scenario& s) { return StepDone(s, roll::kStepDrain); },
                            [](Scenario& s) { s.world.MakeUnready("green", Seconds(30)); });
  all.push_back(unready);

  Case single_undo = Undone("single_undo", "NewSlotNotReady", [](Scenario& s) {
    s.BuildOf("v2").never_ready = true;
    s.ApplyRoll("r1", "v2", [](RollSpec& spec) { spec.timeouts.ready_seconds = 1; });
  });
  single_undo.spec = Single;
  all.push_back(single_undo);

  Case planned_undo = Undone("planned_outage_undo", "NewSlotDied", [](Scenario& s) {
    s.BuildOf("v2").dies_after = Milliseconds(60);
    s.ApplyRoll("r1", "v2", [](RollSpec& spec) { spec.planned_outage = true; });
  });
  all.push_back(planned_undo);

  Case backup = Undone("backup_fails_and_nothing_is_touched", "BackupFailed", [](Scenario& s) {
    s.backup_fails = true;
    s.ApplyRoll("r1", "v2");
  });
  backup.outcome = Outcome::kFailed;
  all.push_back(backup);

  Case lease = Named("lease_not_taken", [](Scenario& s) {
    s.ApplyRoll("r1", "v2", [](RollSpec& spec) { spec.timeouts.lease_seconds = 2; });
  });
  lease.outcome = Outcome::kFailed;
  lease.reason = "LeaseNotTaken";
  lease.each_round =
      Once([](Scenario& s) { return StepDone(s, roll::kStepFlip); }, [](Scenario& s) { s.world.election = false; });
  all.push_back(lease);

  Case probe = Named("probe_fails", [](Scenario& s) {
    s.BuildOf("v2").leads_idly = true;
    s.ApplyRoll("r1", "v2", [](RollSpec& spec) { spec.timeouts.probe_seconds = 1; });
  });
  probe.outcome = Outcome::kFailed;
  probe.reason = "ProbeFailed";
  all.push_back(probe);

  Case automatic = Undone("probe_fails_and_it_rolls_back_by_itself", "ProbeFailed", [](Scenario& s) {
    s.BuildOf("v2").leads_idly = true;
    s.ApplyRoll("r1", "v2", [](RollSpec& spec) { spec.timeouts.probe_seconds = 1; });
  });
  automatic.spec = [](ServerSpec& spec) { spec.rollback.after_flip = AfterFlip::kAutomatic; };
  all.push_back(automatic);

  Case old_dies = Named("the_old_slot_dies_after_the_flip", roll);
  old_dies.spec = [](ServerSpec& spec) { spec.soak_seconds = 600; };
  old_dies.each_round =
      Once([](Scenario& s) { return StepDone(s, roll::kStepDrain); }, [](Scenario& s) { Kill(s, "blue"); });
  all.push_back(old_dies);

  Case late_death = Named("the_new_slot_dies_while_the_old_is_stopped", roll);
  late_death.each_round = Once(
      [](Scenario& s) {  // its signal is noted: there is no way back
        const auto old = s.record().slots.find("blue");
        return s.HasOperation() && s.record().operation->started.count(roll::kStepStopOld) != 0 &&
               old != s.record().slots.end() && old->second.actual.sigterm_at != Time{};
      },
      [](Scenario& s) { Kill(s, "green"); });
  all.push_back(late_death);

  Case silent = Named("the_front_is_silent_at_the_flip", [](Scenario& s) {
    s.ApplyRoll("r1", "v2", [](RollSpec& spec) { spec.timeouts.flip_seconds = 1; });
  });
  silent.each_round = [](Scenario& s) {
    if (!s.HasOperation()) return;
    const auto recorded = s.record().operation->finished.find(roll::kStepRecord);
    const bool at_flip = recorded != s.record().operation->finished.end();
    s.world.front.answers = !(at_flip && s.world.wall() - recorded->second < Seconds(3)) || s.happened;
    if (at_flip && s.world.front.answers) s.happened = true;
  };
  silent.faults = false;  // it is a fault by itself
  all.push_back(silent);

  Case reboot = Named("the_host_reboots_while_the_new_slot_starts", roll);
  reboot.each_round =
      Once([](Scenario& s) { return StepDone(s, roll::kStepStart); }, [](Scenario& s) { s.world.Reboot(); });
  all.push_back(reboot);

  Case paused = Named("paused_before_anything_is_touched", [](Scenario& s) {
    s.ApplyRoll("r1", "v2", [](RollSpec& spec) { spec.controls.paused = true; });
  });
  paused.each_round = Once(
      [](Scenario& s) { return AtGate(s) && s.world.wall() - s.record().operation->waiting_since->wall > Seconds(1); },
      [](Scenario& s) { s.EditRoll("r1", [](RollSpec& spec) { spec.controls.paused = false; }); });
  all.push_back(paused);
  return all;
}

std::string Quoted(const std::string& text) { return "\"" + text + "\""; }

}  // namespace

const std::vector<Case>& Cases() {
  static const std::vector<Case> all = Make();
  return all;
}

const Scenario& InstalledFor(const Case& c) {
  static std::map<std::string, std::unique_ptr<Scenario>> made;
  ServerSpec spec = KcpSpec();
  if (c.spec) c.spec(spec);
  const std::string name = c.spec ? c.name : "";
  std::unique_ptr<Scenario>& s = made[name];
  if (!s) {
    s = std::make_unique<Scenario>(Options{});
    for (const char* version : {"v1", "v2", "v3"}) {  // quick builds: a case is many rounds
      s->BuildOf(version).listens_after = Milliseconds(20);
      s->BuildOf(version).ready_after = Milliseconds(120);
      s->BuildOf(version).stop_takes = Milliseconds(60);
    }
    s->world.probe_takes = Milliseconds(40);
    LK_CHECK(s->Install(spec));
  }
  return *s;
}

std::string RunCase(Scenario& s, const Case& c) {
  s.Begin(InstalledFor(c));
  if (c.spec) {
    ServerSpec spec;
    c.spec(spec);
    s.world.outage_allowed = spec.shape == ServerShape::kSingle;
  }
  c.begin(s);
  const auto ended = [&] {
    if (c.each_round) c.each_round(s);
    return s.OutcomeOf(c.operation).has_value() && !s.HasOperation();
  };
  const auto failed = [&](const std::string& what) {
    std::string text = what;
    for (const std::string& v : s.world.violations()) text += "\nnever: " + v;
    return text + "\nlast plan: " + roll::DebugString(s.last_plan());
  };
  if (!s.RunUntil(ended)) return failed("it did not end");
  if (!s.Settle()) return failed("it did not settle");
  // A token that could not be written is tried again 5 s later, beside everything else.
  const bool followed = s.RunUntil([&] { return s.record().member_token_error.empty(); });
  if (!followed) return failed("the members' token stays behind");
  if (!s.Settle()) return failed("it did not settle again");
  const OutcomeRecord outcome = *s.OutcomeOf(c.operation);
  if (outcome.outcome != c.outcome) {
    return failed("outcome " + std::string(EnumName(outcome.outcome)) + " (" + outcome.reason + ": " + outcome.message +
                  "), expected " + std::string(EnumName(c.outcome)));
  }
  if (!c.reason.empty() && outcome.reason != c.reason)
    return failed("reason " + outcome.reason + ", expected " + c.reason);
  const ServerRecord& rec = s.record();
  if (rec.active != c.active) return failed("active slot " + Quoted(rec.active) + ", expected " + Quoted(c.active));
  if (rec.version != c.version) return failed("version " + Quoted(rec.version) + ", expected " + Quoted(c.version));
  const bool emergency = rec.history.front().report && c.name == "emergency_flip";
  for (const std::string& line : s.log()) {
    if (!emergency && line.find("EmergencyFlip") != std::string::npos)
      return failed("an emergency flip, which nobody meant");
  }
  if (rec.hold) return failed("the front is still told to hold");
  if (rec.slots.size() != 1) return failed("slots are left over");
  if (!s.world.Serves()) return failed("nothing answers through the front");
  const fakes::Process* p = s.world.ProcessOfSlot(rec.active);
  const std::string token = s.world.files["/members/token"];
  const std::string wanted = p == nullptr ? "" : "token-of-" + p->unit + "." + std::to_string(p->id.invocation);
  if (token != wanted) return failed("the members hold " + Quoted(token) + ", the active slot's is " + Quoted(wanted));
  if (s.world.files["/data/servers/ns/kcp/current"] != "/data/releases/" + c.version)
    return failed("current points elsewhere");
  int alive = 0;
  for (const auto& [name, process] : s.world.units) alive += process.server && process.alive() ? 1 : 0;
  if (alive != 1) return failed(std::to_string(alive) + " server processes run");
  if (s.world.units.size() != 2) return failed("units are left over: " + std::to_string(s.world.units.size()));
  for (const auto& [start, times] : s.world.starts) {
    if (times != 1) return failed(start.first + " was executed " + std::to_string(times) + " times");
  }
  return "";
}

std::string CompareGolden(const std::string& name, const std::string& text) {
  const std::string path = std::string(LK_SOURCE_DIR) + "/tests/sequence/golden/" + name + ".txt";
  if (std::getenv("LK_UPDATE_GOLDEN") != nullptr) {
    const Status written = WriteFileAtomic(path, text, 0644);
    return written.ok() ? "" : written.ToString();
  }
  const Result<std::string> golden = ReadFile(path);
  if (!golden.ok()) return golden.status().ToString() + " (LK_UPDATE_GOLDEN=1 writes it)";
  if (*golden == text) return "";
  size_t line = 1;
  size_t i = 0;
  for (; i < std::min(golden->size(), text.size()) && (*golden)[i] == text[i]; ++i) line += text[i] == '\n' ? 1 : 0;
  const size_t from =
      text.rfind('\n', i == 0 ? 0 : i - 1) == std::string::npos ? 0 : text.rfind('\n', i == 0 ? 0 : i - 1) + 1;
  return path + ":" + std::to_string(line) + " differs; now: " + text.substr(from, text.find('\n', i) - from);
}

}  // namespace lockkeeper::sequence
