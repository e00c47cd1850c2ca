// The plan of a Server, rule by rule: what it decides, and what it must never decide.
#include <gtest/gtest.h>

#include "tests/unit/server/plan_rows.h"

namespace lockkeeper::roll {
namespace {

bool Serves(const ServerRecord& r, const char* slot) { return r.active == slot && !r.hold; }

HostBuild Build(const std::string& version) {
  return {version, "", "artifact-" + version, "/data/releases/" + version, "sha-" + version};
}

// A roll to green whose probe failed, with everything else done; the policy is to go back by itself.
ASnapshot& ProbeFailed(ASnapshot& a) {
  a.Slot("green", 2, "v2").Ready("green").FrontOn("green").Rolling(kStepRetire).GreenRecorded();
  a.rec().slots.erase("blue");
  a.s().slots.erase("blue");
  a.rec().spec.rollback.after_flip = AfterFlip::kAutomatic;
  a.rec().previous_build = Build("v1");
  a.op().failure_reason = "ProbeFailed";
  a.op().failure_is_the_builds = true;
  return a;
}

bool EndedWaiting(const ServerRecord& r, Outcome outcome) {
  return !r.history.empty() && r.history.front().uid == "uid-later" && r.history.front().outcome == outcome;
}

const Row kRows[] = {
    {"a_server_at_rest_gets_no_step", [](ASnapshot&) {}, "AsDesired"},
    // Rule A
    {"the_dead_active_slot_is_started_again_and_the_front_holds", [](ASnapshot& a) { a.Dead("blue"); }, "Repairing",
     [](const ServerRecord& r) { return r.slots.at("blue").intent.invocation == 2 && r.hold && r.repairs == 1; }},
    {"a_dead_active_slot_waits_out_its_back_off",
     [](ASnapshot& a) {
       a.Dead("blue").rec().repairs = 2;
       a.rec().repair_not_before = Deadline::After(TestNow(), Seconds(3));
     },
     "RepairBackOff"},
    {"an_active_slot_lost_with_the_boot_is_started_again_without_blame",
     [](ASnapshot& a) {
       a.Dead("blue").rec().slots["blue"].actual.id.boot_id = "boot-0";
       a.s().slots["blue"].unit = Absent{};
     },
     "Repairing", [](const ServerRecord& r) { return r.slots.at("blue").intent.invocation == 2 && r.repairs == 0; }},
    {"an_active_slot_of_unknown_state_is_left_alone", [](ASnapshot& a) { a.UnitUnknown("blue"); },
     "ActiveSlotNotReady"},
    {"the_repaired_slot_gets_the_front_back_once_it_is_ready", [](ASnapshot& a) { a.FrontHolds().rec().hold = true; },
     "Repaired", [](const ServerRecord& r) { return Serves(r, "blue"); }},
    {"an_outage_has_withdrawn_the_desire_and_nothing_repairs_it",
     [](ASnapshot& a) {
       a.Rolling(kStepHold, [](OperationRecord& op) { op.outage = true; }).Begun(kStepStopOld);
       a.Stopped("blue").FrontHolds().rec().hold = true;
       a.op().finished[kStepDrain] = TestNow().wall;
     },
     "Seed", [](const ServerRecord& r) { return !r.slots.at("blue").intent.running; }},
    // Rule B
    {"a_dead_new_slot_after_the_flip_is_left_again_while_the_old_one_is_ready",
     [](ASnapshot& a) { a.Slot("green", 2, "v2").Rolling(kStepDrain).Dead("green").GreenRecorded(); }, "FlippedBack",
     [](const ServerRecord& r) { return Serves(r, "blue") && r.operation->undoing && r.operation->flipped_back; }},
    {"three_unready_tries_while_the_old_slot_is_ready_flip_back",
     [](ASnapshot& a) {
       a.Slot("green", 2, "v2").Rolling(kStepDrain).NotReady("green").GreenRecorded().FrontOn("green");
       a.s().slots["green"].unready_tries = 3;
     },
     "FlippedBack", [](const ServerRecord& r) { return Serves(r, "blue"); }},
    {"two_unready_tries_are_no_reason_to_flip_back",
     [](ASnapshot& a) {
       a.Slot("green", 2, "v2").Rolling(kStepSoak).NotReady("green").GreenRecorded().FrontOn("green");
       a.s().slots["green"].unready_tries = 2;
     },
     "NewSlotNotReady"},
    {"it_flips_back_once_for_each_operation",
     [](ASnapshot& a) {
       a.Slot("green", 2, "v2").Rolling(kStepDrain).Dead("green").GreenRecorded().op().flipped_back = true;
     },
     "Repairing",
     [](const ServerRecord& r) { return r.active == "green" && r.slots.at("green").intent.invocation == 2; }},
    {"where_the_old_slot_is_not_ready_the_dead_new_one_is_repaired",
     [](ASnapshot& a) { a.Slot("green", 2, "v2").Rolling(kStepDrain).Dead("green").NotReady("blue").GreenRecorded(); },
     "Repairing",
     [](const ServerRecord& r) { return r.active == "green" && r.slots.at("green").intent.invocation == 2; }},
    {"a_recorded_stop_that_was_not_signalled_is_taken_back_when_the_new_slot_dies",
     [](ASnapshot& a) {
       a.Slot("green", 2, "v2").Rolling(kStepSoak).Begun(kStepStopOld).Dead("green").GreenRecorded();
       a.rec().slots["blue"].intent.running = false;
     },
     "FlippedBack", [](const ServerRecord& r) { return Serves(r, "blue") && r.slots.at("blue").intent.running; }},
    {"once_the_old_slots_signal_is_noted_a_dead_new_slot_is_repaired",
     [](ASnapshot& a) {
       a.Slot("green", 2, "v2").Rolling(kStepSoak).Begun(kStepStopOld).Dead("green").GreenRecorded();
       a.rec().slots["blue"].intent.running = false;
       a.rec().slots["blue"].actual.sigterm_at = TestNow().wall;
     },
     "Repairing", [](const ServerRecord& r) { return r.active == "green" && !r.slots.at("blue").intent.running; }},
    {"a_new_slot_that_just_died_is_not_repaired_before_the_old_one_could_be_looked_at",
     [](ASnapshot& a) {
       a.Slot("green", 2, "v2").Rolling(kStepDrain).Dead("green").ReadinessUnknown("blue").GreenRecorded();
       a.rec().slots["green"].actual.exited_at = TestNow().wall - Milliseconds(200);
     },
     "OldSlotUnknown"},
    {"once_it_has_been_dead_for_a_second_it_is_repaired_though_nobody_knows_of_the_old_one",
     [](ASnapshot& a) {
       a.Slot("green", 2, "v2").Rolling(kStepDrain).Dead("green").ReadinessUnknown("blue").GreenRecorded();
     },
     "Repairing", [](const ServerRecord& r) { return r.slots.at("green").intent.invocation == 2; }},
    // Rule C
    {"the_lease_of_a_dead_holder_is_freed_once_it_was_not_renewed_for_five_seconds",
     [](ASnapshot& a) { Leased(a, "box_9", Seconds(6)); }, "FreeingLease"},
    {"a_lease_is_left_alone_before_it_stood_for_five_seconds", [](ASnapshot& a) { Leased(a, "box_9", Seconds(4)); },
     "AsDesired"},
    {"a_lease_of_another_hosts_holder_is_left_alone", [](ASnapshot& a) { Leased(a, "other_9", Seconds(60)); },
     "AsDesired"},
    {"a_lease_that_a_live_slot_may_have_taken_is_left_alone",
     [](ASnapshot& a) {
       Leased(a, "box_9", Seconds(60)).s().lease.lease->acquire_time = TestNow().wall - Seconds(200);
     },
     "AsDesired"},
    // Rule D
    {"the_old_slot_is_not_stopped_before_the_front_is_seen_off_it",
     [](ASnapshot& a) { a.Slot("green", 2, "v2").Ready("green").Rolling(kStepSoak).GreenRecorded(); },
     "FrontNotObserved"},
    {"the_old_slot_is_not_stopped_while_the_front_is_silent",
     [](ASnapshot& a) { a.Slot("green", 2, "v2").Ready("green").Rolling(kStepSoak).GreenRecorded().FrontSilent(); },
     "FrontSilent"},
    {"the_old_slot_is_not_stopped_while_the_new_one_is_not_ready",
     [](ASnapshot& a) {
       a.Slot("green", 2, "v2").Ready("green").FrontOn("green").NotReady("green").Rolling(kStepSoak).GreenRecorded();
     },
     "NewSlotNotReady"},
    {"the_old_slot_is_stopped_when_the_front_is_seen_on_the_ready_new_one",
     [](ASnapshot& a) { a.Slot("green", 2, "v2").Ready("green").FrontOn("green").Rolling(kStepSoak).GreenRecorded(); },
     "StopOld", [](const ServerRecord& r) { return !r.slots.at("blue").intent.running; }},
    {"an_old_slot_that_is_not_ready_is_not_stopped_either_before_the_front_is_seen_off_it",
     [](ASnapshot& a) { a.Slot("green", 2, "v2").Ready("green").NotReady("blue").Rolling(kStepSoak).GreenRecorded(); },
     "FrontNotObserved"},
    {"in_an_outage_the_old_slot_is_not_stopped_before_the_front_is_seen_on_hold",
     [](ASnapshot& a) {
       a.NotReady("blue").Rolling(kStepDrain, [](OperationRecord& op) { op.outage = true; }).rec().hold = true;
     },
     "FrontNotObserved"},
    {"an_undo_stops_the_new_slot_only_when_the_front_is_seen_back",
     [](ASnapshot& a) {
       a.Slot("green", 2, "v2").Ready("green").FrontOn("green").Rolling(kStepFlip).op().undoing = true;
     },
     "FrontGoingBack"},
    {"an_undo_of_an_outage_stops_the_new_slot_only_when_the_front_is_seen_on_hold",
     [](ASnapshot& a) {
       a.Slot("green", 2, "v2").Ready("green").FrontOn("green");
       a.Rolling(kStepReady, [](OperationRecord& op) { op.outage = true; }).Stopped("blue").op().undoing = true;
       a.rec().hold = true;
     },
     "FrontGoingToHold"},
    {"in_an_outage_nothing_is_stopped_while_the_front_is_silent",
     [](ASnapshot& a) { a.Rolling(kStepGates, [](OperationRecord& op) { op.outage = true; }).FrontSilent(); },
     "FrontSilent"},
    // Preflight
    {"a_port_that_another_process_has_holds_the_roll_before_anything_is_touched",
     [](ASnapshot& a) {
       a.Rolling(kStepAdmit).s().files.ports[6445] = PortHolder{77, "nginx"};
       a.s().files.ports[6446] = Absent{};
     },
     "PortTaken"},
    {"a_stall_that_hits_both_slots_is_no_reason_to_flip_back",
     [](ASnapshot& a) {
       a.Slot("green", 2, "v2").Rolling(kStepSoak).NotReady("green").NotReady("blue").GreenRecorded().FrontOn("green");
       a.s().slots["green"].unready_tries = 3;
     },
     "NewSlotNotReady"},
    {"a_soak_of_no_time_is_over_at_once_and_stops_nothing_while_the_new_slot_is_not_ready",
     [](ASnapshot& a) {
       a.Slot("green", 2, "v2").Rolling(kStepDrain).NotReady("green").NotReady("blue").GreenRecorded().FrontOn("green");
     },
     "SoakDone",
     [](const ServerRecord& r) { return r.slots.at("blue").intent.running && !Started(*r.operation, kStepStopOld); }},
    {"a_soak_begins_again_when_the_new_slot_was_not_ready_in_it",
     [](ASnapshot& a) {
       a.rec().spec.soak_seconds = 10;
       a.Slot("green", 2, "v2").Rolling(kStepDrain).NotReady("green").GreenRecorded().FrontOn("green");
       a.Begun(kStepSoak).DeadlineIn(kStepSoak, -Seconds(1));
     },
     "SoakBeginsAgain",
     [](const ServerRecord& r) {
       return !Finished(*r.operation, kStepSoak) && r.operation->deadlines.at(kStepSoak).Left(TestNow()) == Seconds(10);
     }},
    {"a_ready_slot_that_nobody_wants_is_kept_while_the_active_one_does_not_serve",
     [](ASnapshot& a) { a.Slot("green", 2, "v2").Ready("green").NotReady("blue"); }, "ActiveSlotNotReady"},
    {"a_slot_that_nobody_wants_is_retired_while_the_active_one_serves",
     [](ASnapshot& a) { a.Slot("green", 2, "v2").Ready("green"); }, "RetiringStray",
     [](const ServerRecord& r) { return !r.slots.at("green").intent.running && r.slots.at("blue").intent.running; }},
    // Rule G
    {"an_abort_at_the_gate_begins_the_undo",
     [](ASnapshot& a) { a.Slot("green", 2, "v2").Ready("green").Rolling(kStepReady).op().abort = true; }, "Aborted",
     [](const ServerRecord& r) { return r.operation->undoing && r.active == "blue"; }},
    {"an_abort_once_the_old_slot_is_being_stopped_is_refused",
     [](ASnapshot& a) {
       a.Slot("green", 2, "v2").Ready("green").FrontOn("green").Rolling(kStepSoak).Begun(kStepStopOld).GreenRecorded();
       a.Stopped("blue").op().abort = true;
     },
     "AbortRefused", [](const ServerRecord& r) { return !r.operation->undoing; }},
    {"an_abort_once_an_outage_has_recorded_its_new_slot_is_refused",
     [](ASnapshot& a) {
       a.Slot("green", 2, "v2").Ready("green").FrontOn("green");
       a.Rolling(kStepRecord, [](OperationRecord& op) { op.outage = true; }).GreenRecorded().op().abort = true;
       a.Stopped("blue");
     },
     "AbortRefused", [](const ServerRecord& r) { return !r.operation->undoing && r.active == "green"; }},
    {"an_abort_before_anything_was_touched_ends_at_once",
     [](ASnapshot& a) { a.Rolling(kStepPreflight).op().abort = true; }, "Aborted",
     [](const ServerRecord& r) { return !r.operation; }},
    // The gate
    {"a_gate_waits_for_a_person",
     [](ASnapshot& a) {
       a.Slot("green", 2, "v2").Ready("green").Rolling(kStepReady, [](OperationRecord& op) {
         op.spec.gates = {Gate::kBeforeFlip};
       });
       a.op().waiting_since = TestNow();
     },
     "WaitingForApproval"},
    {"an_approved_gate_records_the_new_slot",
     [](ASnapshot& a) {
       a.Slot("green", 2, "v2").Ready("green").Rolling(kStepReady, [](OperationRecord& op) {
         op.spec.gates = {Gate::kBeforeFlip};
       });
       a.op().approved = {"BeforeFlip"};
     },
     "Recorded", [](const ServerRecord& r) { return Serves(r, "green") && r.version == "v2"; }},
    {"deadlines_stand_still_while_a_person_is_waited_for",
     [](ASnapshot& a) {
       a.Slot("green", 2, "v2").Ready("green").Rolling(kStepReady, [](OperationRecord& op) {
         op.spec.gates = {Gate::kBeforeFlip};
       });
       a.DeadlineIn(kStepLease, Seconds(5)).op().approved = {"BeforeFlip"};
       a.op().waiting_since = Now{TestNow().wall - Seconds(30), TestNow().boot - Seconds(30), kBoot};
     },
     "Recorded",
     [](const ServerRecord& r) {
       return r.operation->deadlines.at(kStepLease).Left(TestNow()) == Seconds(35) &&
              r.operation->report.gate_seconds == 30;
     }},
    {"at_a_gate_a_lost_active_slot_makes_the_emergency_flip_after_its_time",
     [](ASnapshot& a) {
       a.Slot("green", 2, "v2").Ready("green").Rolling(kStepReady, [](OperationRecord& op) {
         op.spec.gates = {Gate::kBeforeFlip};
       });
       a.NotReady("blue").FrontHolds().DeadlineIn(kActiveRepair, -Seconds(1)).rec().hold = true;
     },
     "Recorded", [](const ServerRecord& r) { return Serves(r, "green") && r.operation->emergency_flip; }},
    // The record
    {"from_the_record_on_nobodys_token_is_taken_to_be_with_the_members",
     [](ASnapshot& a) {
       a.Slot("green", 2, "v2").Ready("green").Rolling(kStepGates).rec().member_token_of = "blue#1.1";
     },
     "Recorded", [](const ServerRecord& r) { return r.member_token_of.empty(); }},
    {"an_upgrade_makes_the_build_it_replaces_the_one_to_go_back_to",
     [](ASnapshot& a) {
       a.Slot("green", 2, "v2").Ready("green").Rolling(kStepGates).rec().previous_build = Build("v0");
     },
     "Recorded", [](const ServerRecord& r) { return r.previous_build->version == "v1"; }},
    {"a_restart_leaves_the_build_before_as_the_one_to_go_back_to",
     [](ASnapshot& a) {
       a.Slot("green", 2, "v1").Ready("green").Rolling(kStepGates).rec().previous_build = Build("v0");
     },
     "Recorded", [](const ServerRecord& r) { return r.previous_build->version == "v0"; }},
    {"a_failed_probe_rolls_back_by_itself_to_the_build_that_was_replaced",
     [](ASnapshot& a) { ProbeFailed(a).op().notes[kReplacedBuild] = "v1"; }, "RollingBack",
     [](const ServerRecord& r) { return r.open_outcome && r.operation->target.version == "v1"; }},
    {"a_restart_whose_probe_fails_does_not_lead_to_an_older_build", [](ASnapshot& a) { ProbeFailed(a); }, "ProbeFailed",
     [](const ServerRecord& r) { return !r.operation && !r.open_outcome; }},
    // Preflight, outcome
    {"a_failed_release_stalls_the_roll_with_its_own_reason",
     [](ASnapshot& a) {
       a.Rolling(kStepAdmit, [](OperationRecord& op) {
         op.target = HostBuild{};
         op.spec.release_ref = LocalRef{"kcp-v2", {}};
       });
       a.s().release = ReleaseFact{"kcp-v2", ReleaseFact::State::kFailed, {}, "ChecksumMismatch", "sha256 differs"};
     },
     "ChecksumMismatch"},
    {"an_upgrade_that_ends_says_which_version_it_was_for",
     [](ASnapshot& a) {
       a.Rolling(kStepDone).op().kind = kKindUpgrade;
       a.op().target = HostBuild{};
       a.op().target.version = "v2";
       a.op().roll_outcome = Outcome::kSucceeded;
       Candidate upgrade;
       upgrade.kind = kKindUpgrade;
       upgrade.uid = a.op().uid;
       upgrade.closed = Outcome::kSucceeded;
       a.s().candidates = std::vector<Candidate>{upgrade};
     },
     "Succeeded", [](const ServerRecord& r) { return r.history.front().version == "v2" && !r.operation; }},
    {"a_roll_that_was_undone_names_the_command_that_shows_the_last_words",
     [](ASnapshot& a) {
       a.Slot("green", 2, "v2").Rolling(kStepStart).op().undoing = true;
       a.op().failure_is_the_builds = true;
       a.op().failure_reason = "NewSlotDied";
       a.rec().slots["green"].intent.running = false;
       a.rec().slots["green"].intent.forget = true;
     },
     "NewSlotDied",
     [](const ServerRecord& r) {
       return r.history.front().outcome == Outcome::kRolledBack &&
              r.history.front().message.find("lockkeeper logs kcp -n ns --slot green") != std::string::npos;
     }},
    {"one_that_waits_behind_another_and_is_aborted_ends_at_once",
     [](ASnapshot& a) {
       a.Slot("green", 2, "v2").Ready("green").Rolling(kStepReady, [](OperationRecord& op) {
         op.spec.gates = {Gate::kBeforeFlip};
       });
       a.op().waiting_since = TestNow();
       a.Waiting("later").roll.controls.abort = true;
     },
     "WaitingForApproval", [](const ServerRecord& r) { return EndedWaiting(r, Outcome::kAborted) && r.operation; }},
    {"one_that_waits_for_a_paused_server_and_is_aborted_ends_at_once",
     [](ASnapshot& a) {
       a.rec().spec.paused = true;
       a.Waiting("later").roll.controls.abort = true;
     },
     "Aborted", [](const ServerRecord& r) { return EndedWaiting(r, Outcome::kAborted) && !r.operation; }},
    {"an_aborted_one_that_waits_is_kept_when_spec_version_asked_for_it",
     [](ASnapshot& a) {
       a.rec().spec.version = "v2";
       a.Waiting("later").roll.controls.abandon = true;
     },
     "Abandoned",
     [](const ServerRecord& r) {
       return EndedWaiting(r, Outcome::kAbandoned) && r.rejected.size() == 1 && r.rejected[0].version == "v2";
     }},
    {"an_aborted_preflight_rejects_nothing",
     [](ASnapshot& a) {
       a.rec().spec.version = "v2";
       Candidate& look = a.Waiting("later");
       look.roll.controls.abort = true;
       look.roll.mode = OperationMode::kPreflight;
     },
     "Aborted", [](const ServerRecord& r) { return EndedWaiting(r, Outcome::kAborted) && r.rejected.empty(); }},
    // Starting
    {"a_new_slot_that_crashes_is_undone_and_blamed",
     [](ASnapshot& a) { a.Slot("green", 2, "v2").Dead("green").Rolling(kStepStart); }, "NewSlotDied",
     [](const ServerRecord& r) { return r.operation->undoing && r.operation->failure_is_the_builds; }},
    {"a_new_slot_that_runs_another_build_is_undone",
     [](ASnapshot& a) {
       a.Slot("green", 2, "v2").Ready("green").Rolling(kStepListen).s().slots["green"].exec_sha256 =
           std::string("other");
     },
     "WrongBuild", [](const ServerRecord& r) { return r.operation->undoing; }},
    {"a_new_slot_that_was_never_executed_is_started_again_without_blame",
     [](ASnapshot& a) {
       a.Slot("green", 2, "v2").Dead("green").Rolling(kStepSeed).Begun(kStepStart).DeadlineIn(kStepStart, Seconds(30));
       a.s().slots["green"].unit->started_at = Time{};
     },
     "StartingAgain",
     [](const ServerRecord& r) { return r.slots.at("green").intent.invocation == 2 && !r.operation->undoing; }},
    {"a_new_slot_that_is_late_is_undone",
     [](ASnapshot& a) {
       a.Slot("green", 2, "v2").NotReady("green").Rolling(kStepListen).DeadlineIn(kStepReady, -Seconds(1));
     },
     "NewSlotNotReady", [](const ServerRecord& r) { return r.operation->undoing; }},
    {"a_new_slot_whose_readiness_is_unknown_is_waited_for",
     [](ASnapshot& a) {
       a.Slot("green", 2, "v2").ReadinessUnknown("green").Rolling(kStepListen).DeadlineIn(kStepReady, Seconds(5));
     },
     "WaitingForReady"},
    // The flip
    {"a_front_that_answers_and_does_not_move_in_time_is_undone",
     [](ASnapshot& a) {
       a.Slot("green", 2, "v2").Ready("green").Rolling(kStepRecord).GreenRecorded().DeadlineIn(kStepFlip, -Seconds(1));
     },
     "FrontNotObserved", [](const ServerRecord& r) { return r.operation->undoing && r.active == "blue"; }},
    {"a_front_that_is_silent_at_the_flip_is_for_a_person",
     [](ASnapshot& a) {
       a.Slot("green", 2, "v2").Ready("green").Rolling(kStepRecord).GreenRecorded().FrontSilent();
       a.DeadlineIn(kStepFlip, Seconds(1));
     },
     "FrontSilent"},
    // The ledger
    {"a_front_set_by_another_ledger_means_that_ours_was_lost",
     [](ASnapshot& a) {
       a.Dead("blue").s().witnesses = {{"the front", "ledger-0", 5}};
     },
     "LedgerLost"},
    {"a_front_with_a_later_revision_means_that_ours_is_older",
     [](ASnapshot& a) {
       a.Dead("blue").s().witnesses = {{"the front", "ledger-1", 101}};
     },
     "LedgerOlderThanHost"},
    {"a_ledger_that_cannot_be_read_starts_nothing", [](ASnapshot& a) { a.s().record = Unknown{"malformed"}; },
     "LedgerUnreadable"},
    {"a_released_server_is_left_alone", [](ASnapshot& a) { a.Dead("blue").rec().released = true; }, "Released"},
};

// What a plan's commit wants of the host: all of it that anybody acts on.
std::string Intents(const Plan& plan) {
  const ServerRecord* r = Committed(plan);
  if (r == nullptr && plan.step && plan.step->then) r = &plan.step->then->record;
  if (r == nullptr) return "";
  std::string text = r->active + (r->hold ? " hold" : "") + (r->operation ? " op" : "");
  if (r->operation) {
    text += r->operation->undoing ? " undoing " : " ";
    for (const auto& [step, at] : r->operation->finished) text += step + ",";
  }
  for (const auto& [name, entry] : r->slots) {
    text += " " + name + "#" + std::to_string(entry.intent.incarnation) + "." +
            std::to_string(entry.intent.invocation) + (entry.intent.running ? "+" : "-") +
            (entry.intent.forget ? "f" : "");
  }
  return text;
}

class EachRow : public testing::TestWithParam<Row> {};

TEST_P(EachRow, is_decided_so) {
  ASnapshot a;
  GetParam().world(a);
  const Snapshot s = a.Take();
  const Plan plan = Decide(s, TestNow());
  EXPECT_EQ(plan.reason, GetParam().reason) << DebugString(plan) << "\n" << DebugString(s);
  const ServerRecord* record = Committed(plan);
  if (!GetParam().commit) {
    EXPECT_EQ(record, nullptr) << DebugString(plan);
  } else {
    ASSERT_NE(record, nullptr) << DebugString(plan);
    EXPECT_TRUE(GetParam().commit(*record)) << DebugString(plan);
  }
}

TEST_P(EachRow, is_decided_the_same_twice) {
  ASnapshot a;
  GetParam().world(a);
  EXPECT_EQ(Decide(a.Take(), TestNow()), Decide(a.Take(), TestNow()));
}

// House rule 2: the report, the name of the step and when it began are for readers.
TEST_P(EachRow, is_decided_the_same_with_every_derived_field_wiped) {
  ASnapshot a;
  GetParam().world(a);
  const Plan before = Decide(a.Take(), TestNow());
  Snapshot wiped = a.Take();
  if (ServerRecord* rec = wiped.record.get()) {
    rec->history.clear();
    rec->degraded = true;
    rec->degraded_reason = rec->degraded_message = "wiped";
    rec->posted_revision = 0;
    if (rec->operation) {
      rec->operation->report = RollReport{};
      rec->operation->step = "wiped";
    }
  }
  if (wiped.object.known()) wiped.object.get()->posted.reset();
  const Plan after = Decide(wiped, TestNow());
  EXPECT_EQ(before.rule, after.rule);
  EXPECT_EQ(before.reason, after.reason);
  ASSERT_EQ(before.step.has_value(), after.step.has_value());
  if (!before.step) return;
  EXPECT_EQ(before.step->kind, after.step->kind);
  EXPECT_EQ(before.step->action.index(), after.step->action.index());
  EXPECT_EQ(Intents(before), Intents(after));
}

TEST(Idle, a_slot_that_hangs_is_asked_half_of_the_time_at_most) {
  ASnapshot a;
  a.ReadinessUnknown("blue");
  EXPECT_EQ(Decide(a.Take(), TestNow()).requeue_after, Seconds(1));
  a.NotReady("blue");
  EXPECT_LT(Decide(a.Take(), TestNow()).requeue_after, Seconds(1)) << "one that answers is asked again soon";
}

TEST(Drain, is_reported_from_zero_by_a_front_that_was_started_anew) {
  ASnapshot a;
  a.Slot("green", 2, "v2").Ready("green").Rolling(kStepMemberToken).Begun(kStepDrain).GreenRecorded().FrontOn("green");
  a.op().notes["drainedBefore"] = "3";
  a.op().notes["cutBefore"] = "1";
  Snapshot s = a.Take();
  s.front.get()->drained_total = 2;
  s.front.get()->cut_total = 0;
  const Plan plan = Decide(s, TestNow());
  const ServerRecord* record = Committed(plan);
  ASSERT_NE(record, nullptr) << DebugString(plan);
  ASSERT_TRUE(record->operation.has_value());
  EXPECT_EQ(record->operation->report.drained, 2) << DebugString(plan);
  EXPECT_EQ(record->operation->report.cut_connections, 0);
}

// The manager reads there how one ended that never had a Roll.
TEST(History, is_not_filled_by_those_who_waited_before_the_manager_has_read_of_them) {
  ASnapshot a;
  for (int i = 0; i < 30; ++i) a.Waiting("w" + std::to_string(i)).roll.controls.abort = true;
  int ended = 0;
  for (; ended < 30; ++ended) {
    const Plan plan = Decide(a.Take(), TestNow());
    const ServerRecord* record = Committed(plan);
    if (record == nullptr || plan.reason != "Aborted") break;
    const std::string uid = record->history.front().uid;
    for (Candidate& x : *a.s().candidates.get()) {
      if (x.uid == uid) x.recorded = record->history.front();
    }
    a.rec() = *record;
  }
  EXPECT_EQ(ended, 10);
  // It has read of one: there is room for another.
  const std::string read = a.rec().history.front().uid;
  for (Candidate& x : *a.s().candidates.get()) {
    if (x.uid == read) x.closed = Outcome::kAborted;
  }
  EXPECT_EQ(Decide(a.Take(), TestNow()).reason, "Aborted");
}

std::string RowName(const testing::TestParamInfo<Row>& row) { return row.param.name; }
INSTANTIATE_TEST_SUITE_P(Lease, EachRow, testing::ValuesIn(LeaseRows()), RowName);
INSTANTIATE_TEST_SUITE_P(Plan, EachRow, testing::ValuesIn(kRows), RowName);

}  // namespace
}  // namespace lockkeeper::roll
