// The roll's steps Lease and Probe: whose fault it is, and when their time stands still.
#include "tests/unit/server/plan_rows.h"

namespace lockkeeper::roll {
namespace {

// A roll to green whose probe is asked for, and its time is over by so much.
ASnapshot& Probing(ASnapshot& a, Duration over) {
  a.Slot("green", 2, "v2").Ready("green").FrontOn("green").Rolling(kStepLease).Begun(kStepProbe).GreenRecorded();
  a.Stopped("blue").DeadlineIn(kStepProbe, -over);
  a.rec().spec.probe.type = ProbeType::kConfigMap;
  a.rec().probe_name = "roll-probe-1";
  a.s().probe = Unknown{"connecting to the front: no answer"};
  return a;
}

// The new slot has died so often since the step began, and is started again.
ASnapshot& Flapping(ASnapshot& a, const char* step, int deaths) {
  a.NotReady("green").FrontHolds().rec().hold = true;
  a.rec().repairs = 4 + deaths;
  a.op().notes[std::string(step) + "RepairsBefore"] = "4";
  return a;
}

bool FailedAtProbe(const ServerRecord& r, bool the_builds) {
  return r.operation->failure_reason == "ProbeFailed" && r.operation->failure_is_the_builds == the_builds;
}
bool GivenMoreTime(const ServerRecord& r, const char* step) {
  return r.operation->failure_reason.empty() && r.operation->deadlines.at(step).Left(TestNow()) >= Seconds(5);
}

}  // namespace

std::vector<Row> LeaseRows() {
  return {
      // The probe
      {"a_probe_that_says_no_when_its_time_is_over_fails_and_blames_the_build",
       [](ASnapshot& a) {
         Probing(a, Seconds(1)).s().probe = ProbeFact{"roll-probe-1", false, "Initializing"};
       },
       "Retire", [](const ServerRecord& r) { return FailedAtProbe(r, true); }},
      {"a_probe_that_nobody_was_there_to_make_gets_its_time_once_more",
       [](ASnapshot& a) { Probing(a, Seconds(60)).s().probe = Absent{}; }, "Probing",
       [](const ServerRecord& r) { return GivenMoreTime(r, kStepProbe); }},
      {"a_probe_that_is_not_there_after_that_fails",
       [](ASnapshot& a) {
         Probing(a, Seconds(1)).s().probe = Absent{};
         a.op().notes["probeAgain"] = "yes";
       },
       "Retire", [](const ServerRecord& r) { return FailedAtProbe(r, true); }},
      {"a_lease_that_nobody_was_there_to_watch_gets_the_time_of_a_renewal",
       [](ASnapshot& a) {
         Leased(a, "box_9", Seconds(0)).s().lease.lease->acquire_time = TestNow().wall - Seconds(100);
         a.Slot("green", 2, "v2")
             .Ready("green")
             .FrontOn("green")
             .Rolling(kStepStopOld)
             .Begun(kStepLease)
             .GreenRecorded();
         a.Stopped("blue").DeadlineIn(kStepLease, -Seconds(60));
       },
       "WatchingLease", [](const ServerRecord& r) { return GivenMoreTime(r, kStepLease); }},
      {"a_probe_that_was_not_answered_yet_is_waited_for_as_long_as_one_question_takes",
       [](ASnapshot& a) { Probing(a, Seconds(1)); }, "Probing"},
      {"a_probe_that_was_never_answered_fails_without_blaming_the_build", [](ASnapshot& a) { Probing(a, Seconds(6)); },
       "Retire", [](const ServerRecord& r) { return FailedAtProbe(r, false); }},
      {"while_the_front_is_silent_the_time_of_the_probe_stands_still",
       [](ASnapshot& a) { Probing(a, Seconds(60)).FrontSilent(); }, "ServerNotAsked",
       [](const ServerRecord& r) { return GivenMoreTime(r, kStepProbe); }},
      {"a_front_that_is_silent_in_the_probe_is_told_to_a_person",
       [](ASnapshot& a) { Probing(a, -Seconds(8)).FrontSilent(); }, "FrontSilent"},
      {"while_the_new_slot_is_started_again_the_time_of_the_probe_stands_still",
       [](ASnapshot& a) {
         Probing(a, Seconds(1)).NotReady("green").FrontHolds().DeadlineIn(kActiveRepair, Seconds(20)).rec().hold = true;
       },
       "ServerNotAsked", [](const ServerRecord& r) { return GivenMoreTime(r, kStepProbe); }},
      {"a_new_slot_that_does_not_come_back_in_its_time_fails_its_probe",
       [](ASnapshot& a) {
         Probing(a, Seconds(6)).NotReady("green").FrontHolds().DeadlineIn(kActiveRepair, -Seconds(1)).rec().hold = true;
       },
       "Retire", [](const ServerRecord& r) { return FailedAtProbe(r, false); }},
      {"a_new_slot_that_dies_again_and_again_gets_no_more_time_for_its_probe",
       [](ASnapshot& a) { Flapping(Probing(a, Seconds(1)), kStepProbe, 2).DeadlineIn(kActiveRepair, Seconds(20)); },
       "Probing"},
      {"a_new_slot_that_dies_again_and_again_fails_its_probe_and_is_to_blame",
       [](ASnapshot& a) { Flapping(Probing(a, Seconds(6)), kStepProbe, 2).DeadlineIn(kActiveRepair, Seconds(20)); },
       "Retire", [](const ServerRecord& r) { return FailedAtProbe(r, true); }},
      {"a_new_slot_that_died_once_and_does_not_come_back_is_to_blame",
       [](ASnapshot& a) { Flapping(Probing(a, Seconds(6)), kStepProbe, 1).DeadlineIn(kActiveRepair, -Seconds(1)); },
       "Retire", [](const ServerRecord& r) { return FailedAtProbe(r, true); }},
      {"the_time_of_the_probe_does_not_stand_still_for_longer_than_a_start_may_take",
       [](ASnapshot& a) {
         Flapping(Probing(a, Seconds(6)), kStepProbe, 0).DeadlineIn(kActiveRepair, Seconds(20));
         a.DeadlineIn("ProbeStandStill", -Seconds(1));
       },
       "Retire", [](const ServerRecord& r) { return FailedAtProbe(r, false); }},
      {"a_new_slot_that_dies_again_and_again_misses_its_lease_and_is_to_blame",
       [](ASnapshot& a) {
         Leased(a, "box_9", Seconds(6)).s().lease.lease = Unknown{"no answer"};
         a.Slot("green", 2, "v2").Rolling(kStepStopOld).Begun(kStepLease).GreenRecorded().Stopped("blue");
         Flapping(a, kStepLease, 3).DeadlineIn(kActiveRepair, Seconds(20)).DeadlineIn(kStepLease, -Seconds(6));
       },
       "Retire",
       [](const ServerRecord& r) {
         return r.operation->failure_reason == "LeaseNotTaken" && r.operation->failure_is_the_builds;
       }},
      {"a_renewal_of_the_old_holder_that_comes_late_gives_no_more_time",
       [](ASnapshot& a) {
         Leased(a, "box_9", Seconds(0));
         a.Slot("green", 2, "v2")
             .Ready("green")
             .FrontOn("green")
             .Rolling(kStepStopOld)
             .Begun(kStepLease)
             .GreenRecorded();
         a.Stopped("blue").DeadlineIn(kStepLease, -Seconds(1));
         a.op().notes["holderAtStop"] = "box_9";
         a.op().notes["leaseMark"] = "another";
       },
       "Retire", [](const ServerRecord& r) { return r.operation->failure_reason == "LeaseNotTaken"; }},
      {"while_the_front_is_silent_the_time_of_the_lease_stands_still",
       [](ASnapshot& a) {
         Leased(a, "box_9", Seconds(6)).s().lease.lease = Unknown{"no answer"};
         a.Slot("green", 2, "v2").Ready("green").Rolling(kStepStopOld).Begun(kStepLease).GreenRecorded().FrontSilent();
         a.Stopped("blue").DeadlineIn(kStepLease, -Seconds(60));
       },
       "ServerNotAsked", [](const ServerRecord& r) { return GivenMoreTime(r, kStepLease); }},
  };
}

}  // namespace lockkeeper::roll
