// The statuses of Server and Roll: what a person is told, for what the plan and the record say.
#include "reconcilers/server/status.h"

#include <gtest/gtest.h>

#include "api/types/codec.h"
#include "api/types/conditions.h"
#include "reconcilers/server/report.h"
#include "tests/unit/server/a_snapshot.h"

namespace lockkeeper::roll {
namespace {

ServerStatus StatusOf(ASnapshot& a, Status error = {}) {
  const Snapshot s = a.Take();
  const Now now = TestNow();
  const Plan plan = Decide(s, now);
  return SummarizeServer({s, plan, now, std::move(error)}, ServerStatus{}, 1);
}

std::string Reason(const std::vector<Condition>& conditions, std::string_view type) {
  const Condition* c = FindCondition(conditions, type);
  return c == nullptr ? "none" : std::string(EnumName(c->status)) + " " + c->reason;
}
std::string Message(const std::vector<Condition>& conditions, std::string_view type) {
  const Condition* c = FindCondition(conditions, type);
  return c == nullptr ? "none" : c->message;
}

TEST(ServerStatus, at_rest_it_is_ready_and_says_what_serves) {
  ASnapshot a;
  const ServerStatus status = StatusOf(a);
  EXPECT_EQ(Reason(status.conditions, "Ready"), "True AsDesired");
  EXPECT_EQ(Message(status.conditions, "Ready"), "slot blue serves v1");
  EXPECT_EQ(Reason(status.conditions, "Stalled"), "none");
}

// A kubeconfig that is harvested at the end of the install is what its users wait for.
TEST(ServerStatus, while_its_first_install_runs_it_is_not_ready_though_the_slot_serves) {
  ASnapshot a;
  a.Rolling(kStepAdmit, [](OperationRecord& op) {
    op.kind = kKindInstall;
    op.name = "kcp-install";
    op.from = "";
    op.to = "blue";
  });
  for (std::string_view step : StepsOf(a.op(), StopOrder::kDrainThenStop)) {
    a.op().finished[std::string(step)] = TestNow().wall;
    if (step == kStepFlip) break;
  }
  const ServerStatus status = StatusOf(a);
  EXPECT_EQ(Reason(status.conditions, "Ready"), "False Installing");
  EXPECT_EQ(Reason(status.conditions, "Available"), "True AsDesired");
}

TEST(ServerStatus, a_declared_version_that_was_rolled_back_is_told_with_the_way_out) {
  ASnapshot a;
  a.rec().spec.version = "v2";
  a.rec().rejected = {{"v2", "sha-v2", "NewSlotNotReady", TestNow().wall}};
  const ServerStatus status = StatusOf(a);
  EXPECT_EQ(Reason(status.conditions, "Ready"), "False VersionRejected");
  EXPECT_EQ(Reason(status.conditions, "Stalled"), "True VersionRejected");
  EXPECT_EQ(Reason(status.conditions, "Available"), "True AsDesired");
  EXPECT_NE(Message(status.conditions, "Ready").find("or make an Upgrade to it by hand"), std::string::npos);
  ASSERT_EQ(status.rejected.size(), 1u);
  EXPECT_EQ(status.rejected[0].version, "v2");
}

TEST(ServerStatus, a_declared_version_that_a_person_aborted_is_told_with_the_way_out_until_the_spec_changes) {
  ASnapshot a;
  a.rec().spec.version = "v2";
  a.Rolling(kStepAdmit).op().kind = kKindUpgrade;
  a.op().name = "kcp-v2-1";
  a.op().roll_name.clear();
  a.op().abort = true;
  const Plan aborted = Decide(a.Take(), TestNow());
  ASSERT_NE(Committed(aborted), nullptr);
  a.rec() = *Committed(aborted);
  ASSERT_FALSE(a.rec().operation);
  const ServerStatus status = StatusOf(a);
  ASSERT_EQ(status.rejected.size(), 1u) << "the manager makes none for what stands there";
  EXPECT_EQ(status.rejected[0].version, "v2");
  EXPECT_EQ(status.rejected[0].reason, "Aborted");
  EXPECT_EQ(Reason(status.conditions, "Stalled"), "True Aborted");
  EXPECT_EQ(Message(status.conditions, "Ready"),
            "spec.version v2 was given up by a person at " + FormatTime(TestNow().wall) +
                " (Aborted) and is not tried again by itself; v1 serves on; set spec.version to another one, or "
                "`lockkeeper retry kcp-v2-1 -n ns`");
  EXPECT_FALSE(Decide(a.Take(), TestNow()).step) << "it stands";
  a.rec().spec.version = "v1";
  const Plan taken_back = Decide(a.Take(), TestNow());
  ASSERT_NE(Committed(taken_back), nullptr);
  EXPECT_TRUE(Committed(taken_back)->rejected.empty()) << "asked for anew it is tried anew";
}

TEST(ServerStatus, an_aborted_upgrade_that_nobody_declared_is_not_remembered) {
  ASnapshot a;
  a.Rolling(kStepAdmit).op().kind = kKindUpgrade;
  a.op().roll_name.clear();
  a.op().abort = true;
  const Plan aborted = Decide(a.Take(), TestNow());
  ASSERT_NE(Committed(aborted), nullptr);
  EXPECT_TRUE(Committed(aborted)->rejected.empty());
}

TEST(ServerStatus, a_rejected_version_that_is_not_declared_any_more_is_no_trouble) {
  ASnapshot a;
  a.rec().spec.version = "v1";
  a.rec().rejected = {{"v2", "sha-v2", "NewSlotNotReady", TestNow().wall}};
  EXPECT_EQ(Reason(StatusOf(a).conditions, "Ready"), "True AsDesired");
}

TEST(ServerStatus, a_declared_version_whose_last_upgrade_failed_is_not_ready_and_says_why) {
  ASnapshot a;
  a.rec().spec.version = "v0";
  OutcomeRecord failed;
  failed.kind = kKindUpgrade;
  failed.name = "kcp-v0-1";
  failed.version = "v0";
  failed.outcome = Outcome::kFailed;
  failed.message = "v0 is older than the running v1";
  a.rec().history = {failed};
  EXPECT_EQ(Reason(StatusOf(a).conditions, "Ready"), "False Reconciling");
  EXPECT_EQ(Message(StatusOf(a).conditions, "Ready"),
            "spec.version v0 does not run: Upgrade kcp-v0-1 ended Failed (v0 is older than the running v1); v1 serves "
            "on, and it is tried again by itself");
  a.rec().spec.version = "v1";  // taken back
  EXPECT_EQ(Reason(StatusOf(a).conditions, "Ready"), "True AsDesired");
}

// Else each pass of a roll writes the Server, as fast as it polls.
TEST(ServerStatus, read_back_from_the_api_it_differs_in_nothing) {
  ASnapshot a;
  a.Rolling(kStepLease);
  a.rec().rejected = {{"v2", "sha-v2", "NewSlotNotReady", TestNow().wall + std::chrono::microseconds(123456)}};
  a.rec().spec.restarted_at = TestNow().wall + std::chrono::microseconds(654321);
  const ServerStatus status = StatusOf(a);
  const Result<ServerStatus> stored = FromJson<ServerStatus>(ToJson(status));
  ASSERT_TRUE(stored.ok()) << stored.status().message();
  EXPECT_TRUE(SameButProgress(status, *stored));
  ServerStatus other = status;
  other.version = "v3";
  EXPECT_FALSE(SameButProgress(other, *stored));
}

TEST(ServerStatus, a_preflight_of_the_declared_version_says_nothing_of_it) {
  ASnapshot a;
  a.rec().spec.version = "v0";
  OutcomeRecord looked;
  looked.kind = kKindUpgrade;
  looked.name = "look";
  looked.version = "v0";
  looked.mode = OperationMode::kPreflight;
  looked.outcome = Outcome::kFailed;
  looked.message = "1 MB are free";
  a.rec().history = {looked};
  const ServerStatus status = StatusOf(a);
  EXPECT_EQ(Message(status.conditions, "Ready").find("1 MB"), std::string::npos);
  EXPECT_EQ(status.history.at(0).mode, OperationMode::kPreflight);
}

TEST(ServerStatus, a_process_that_has_ended_has_neither_pid_nor_uptime) {
  ASnapshot a;
  ASSERT_EQ(StatusOf(a).slots.size(), 1u);
  EXPECT_TRUE(StatusOf(a).slots[0].pid);
  EXPECT_TRUE(StatusOf(a).slots[0].ready_at);
  a.rec().slots.at("blue").actual.exited_at = TestNow().wall;
  EXPECT_FALSE(StatusOf(a).slots[0].pid);
  EXPECT_FALSE(StatusOf(a).slots[0].ready_at);
  EXPECT_EQ(StatusOf(a).slots[0].version, "v1");
}

TEST(ServerStatus, a_step_that_fails_for_a_moment_is_told_and_goes_on) {
  ASnapshot a;
  a.Slot("green", 2, "v2").Rolling(kStepRender);
  const ServerStatus status = StatusOf(a, Status(Code::kUnavailable, "write /data/x: input/output error"));
  EXPECT_EQ(Reason(status.conditions, "Progressing"), "True OperationRunning");
  EXPECT_NE(Message(status.conditions, "Progressing").find("is tried again: write /data/x"), std::string::npos);
  EXPECT_EQ(Reason(status.conditions, "Stalled"), "none");
}

TEST(ServerStatus, a_step_that_no_waiting_mends_is_stalled) {
  ASnapshot a;
  a.Slot("green", 2, "v2").Rolling(kStepRender);
  const ServerStatus status = StatusOf(a, Status(Code::kInvalid, "user \"kcp\" does not exist"));
  EXPECT_EQ(Reason(status.conditions, "Stalled"), "True " + std::string(CodeName(Code::kInvalid)));
  EXPECT_EQ(Message(status.conditions, "Stalled"), "user \"kcp\" does not exist");
}

TEST(ServerStatus, history_names_the_version_of_each_operation) {
  ASnapshot a;
  OutcomeRecord ended;
  ended.kind = kKindUpgrade;
  ended.version = "v2";
  a.rec().history = {ended};
  EXPECT_EQ(StatusOf(a).history.at(0).version, "v2");
}

RollStatus WaitingStatusOf(ASnapshot& a) {
  const Snapshot s = a.Take();
  const Now now = TestNow();
  const Plan plan = Decide(s, now);
  return SummarizeWaiting({s, plan, now, Status::Ok()}, RollStatus{}, 1);
}

TEST(RollStatus, who_waits_is_told_for_whom) {
  ASnapshot a;
  a.Slot("green", 2, "v2").Rolling(kStepReady);
  const RollStatus restarting = WaitingStatusOf(a);
  EXPECT_EQ(Message(restarting.conditions, "Admitted"), "waits for Roll r1");
  ASSERT_TRUE(restarting.progress);
  EXPECT_EQ(restarting.progress->message, "waits for Roll r1") << "the column of kubectl";
  a.Rolling(kStepFlip);
  EXPECT_EQ(WaitingStatusOf(a), restarting) << "in each phase the same: no write for each that waits";
}

TEST(RollStatus, what_keeps_a_server_from_its_next_operation_is_told_with_the_way_out) {
  const auto told = [](const std::function<void(ServerRecord&)>& change, const std::string& way_out) {
    ASnapshot a;
    change(a.rec());
    for (const std::string& message :
         {Message(StatusOf(a).conditions, "Upgradeable"), Message(WaitingStatusOf(a).conditions, "Admitted")}) {
      EXPECT_NE(message.find(way_out), std::string::npos) << message;
    }
  };
  told([](ServerRecord& r) { r.spec.paused = true; }, "is true; set it to false to go on");
  told([](ServerRecord& r) { r.spec.maintenance.freeze = true; }, "is true; set it to false to go on");
  told([](ServerRecord& r) { r.stopped = true; }, "`lockkeeper start kcp -n ns` starts it");
}

TEST(RollStatus, who_waits_for_a_stalled_upgrade_is_told_why_and_how_to_end_it) {
  ASnapshot a;
  a.Rolling(kStepAdmit).op().kind = kKindUpgrade;
  a.op().roll_name.clear();
  Candidate holder;
  holder.kind = kKindUpgrade;
  holder.uid = a.op().uid;
  holder.stalled = "Release kcp-v2: sha256 differs";
  a.s().candidates = std::vector<Candidate>{holder};
  const std::string message = Message(WaitingStatusOf(a).conditions, "Admitted");
  EXPECT_NE(message.find("stalled: Release kcp-v2: sha256 differs"), std::string::npos) << message;
  EXPECT_NE(message.find("`lockkeeper abort r1 -n ns`"), std::string::npos) << message;
}

TEST(RollStatus, the_previous_version_is_what_ran_when_the_roll_began) {
  ASnapshot a;
  a.Slot("green", 2, "v2").Ready("green").FrontOn("green").Rolling(kStepFlip).GreenRecorded();
  a.op().notes[kFromVersion] = "v1";
  a.rec().previous_build = HostBuild{"v0", "", "", "/data/releases/v0", ""};
  const Snapshot s = a.Take();
  const Now now = TestNow();
  const Plan plan = Decide(s, now);
  EXPECT_EQ(SummarizeRoll({s, plan, now, Status::Ok()}, RollStatus{}, 1).previous_version, "v1");
}

TEST(Story, how_an_operation_ended_names_it_once) {
  const auto told = [](const char* message) {
    ServerRecord before, after;
    OutcomeRecord& o = after.history.emplace_back();
    o.kind = kKindUpgrade;
    o.name = "u1";
    o.outcome = Outcome::kAborted;
    o.message = message;
    const std::vector<StoryEvent> story = StoryOf(before, after);
    return story.size() == 1 ? story[0].message : std::string("none");
  };
  EXPECT_EQ(told("Upgrade u1 was deleted at step Ready"), "Upgrade u1 was deleted at step Ready");
  EXPECT_EQ(told("slot green was not ready within 60 s"), "Upgrade u1: slot green was not ready within 60 s");
  EXPECT_EQ(told("Upgrade u10 was faster"), "Upgrade u1: Upgrade u10 was faster");
  EXPECT_EQ(told(""), "Upgrade u1");
}

TEST(RollStatus, an_abort_that_was_refused_is_told_after_the_end_too) {
  Condition refused;
  refused.type = "AbortRefused";
  refused.status = ConditionStatus::kTrue;
  refused.reason = "AbortRefused";
  refused.message = "the old slot is being stopped already";
  RollStatus before;
  before.conditions = {refused};
  const RollStatus status = SummarizeEnded(OutcomeRecord{}, before, 1, TestNow(), false);
  EXPECT_EQ(Message(status.conditions, "AbortRefused"), refused.message);
}

// What the commit of a plan leaves in the ledger for ever.
OutcomeRecord OutcomeIn(const Plan& plan) {
  const Commit* commit = plan.step ? std::get_if<Commit>(&plan.step->action) : nullptr;
  return commit != nullptr && commit->outcome ? *commit->outcome : OutcomeRecord{};
}

// Its last pass may never be mirrored, and a status may be wiped: the ledger knows it all.
TEST(RollStatus, what_a_preflight_found_and_would_do_is_told_from_its_outcome_alone) {
  ASnapshot a;
  a.Rolling(kStepAdmit).op().spec.mode = OperationMode::kPreflight;
  const Plan plan = Decide(a.Take(), TestNow());
  const OutcomeRecord outcome = OutcomeIn(plan);
  ASSERT_EQ(outcome.reason, "PreflightPassed");
  EXPECT_EQ(outcome.mode, OperationMode::kPreflight);
  const RollStatus status = SummarizeEnded(outcome, RollStatus{}, 1, TestNow(), false);
  EXPECT_GT(status.checks.size(), 5u);
  EXPECT_EQ(status.checks, plan.checks);
  EXPECT_GT(status.plan.size(), 5u);
  EXPECT_EQ(status.plan, plan.steps_ahead);
}

TEST(RollStatus, what_the_preflight_of_a_roll_found_stays_told_from_the_record_alone) {
  ASnapshot a;
  a.Rolling(kStepAdmit);
  const Plan plan = Decide(a.Take(), TestNow());
  ASSERT_NE(Committed(plan), nullptr);
  a.rec() = *Committed(plan);
  ASSERT_TRUE(Finished(a.op(), kStepPreflight));
  const Snapshot s = a.Take();
  const Now now = TestNow();
  EXPECT_GT(SummarizeRoll({s, Plan{}, now, Status::Ok()}, RollStatus{}, 1).checks.size(), 5u);
}

TEST(RollStatus, what_ended_is_told_alike_whatever_was_told_of_it_before) {
  ASnapshot a;
  a.Slot("green", 2, "v2").Ready("green").FrontOn("green").Rolling(kStepRetire).GreenRecorded();
  a.op().notes[kFromVersion] = "v1";
  a.rec().slots.erase("blue");
  const OutcomeRecord outcome = OutcomeIn(Decide(a.Take(), TestNow()));
  ASSERT_EQ(outcome.outcome, Outcome::kSucceeded);
  const RollStatus status = SummarizeEnded(outcome, RollStatus{}, 1, TestNow(), false);
  EXPECT_EQ(status.previous_version, "v1");
  bool skipped = false;
  for (const RollStep& step : status.steps) skipped = skipped || step.state == StepState::kSkipped;
  EXPECT_TRUE(skipped) << "no backup was taken, no gate was given";
  const Snapshot s = a.Take();
  const Now now = TestNow();
  const RollStatus running = SummarizeRoll({s, Plan{}, now, Status::Ok()}, RollStatus{}, 1);
  RollStatus after = SummarizeEnded(outcome, running, 1, TestNow(), false);
  after.conditions = status.conditions;  // their times are carried
  EXPECT_EQ(after, status);
}

// Outcomes are kept for ever, and the record of a Server is written at each step.
TEST(RollStatus, only_a_preflight_keeps_its_plan_and_the_record_keeps_neither) {
  ASnapshot look;
  look.Rolling(kStepAdmit).op().spec.mode = OperationMode::kPreflight;
  look.rec().spec.seed.emplace();
  look.s().files.missing_shared = std::vector<std::string>(1000, "a-file-that-is-not-there");
  const Plan looked = Decide(look.Take(), TestNow());
  ASSERT_EQ(OutcomeIn(looked).reason, "PreflightFailed");
  for (const PreflightCheck& check : OutcomeIn(looked).checks) EXPECT_LE(check.message.size(), 400u) << check.name;
  ASSERT_NE(Committed(looked), nullptr);
  EXPECT_TRUE(Committed(looked)->history.at(0).checks.empty());
  EXPECT_TRUE(Committed(looked)->history.at(0).steps_ahead.empty());
  ASnapshot roll;
  roll.Slot("green", 2, "v2").Ready("green").FrontOn("green").Rolling(kStepRetire).GreenRecorded();
  roll.rec().slots.erase("blue");
  EXPECT_TRUE(OutcomeIn(Decide(roll.Take(), TestNow())).steps_ahead.empty());
}

// Two waits that lie over one another are taken away once.
TEST(Report, overhead_is_the_total_less_the_time_in_which_anything_was_waited_for) {
  const Time t0 = TestNow().wall;
  OperationRecord op;
  op.started[kStepAdmit] = t0;
  op.report.sigterm_at = t0 + Seconds(1);
  op.report.old_exited_at = t0 + Seconds(2);
  op.report.ready_at = t0 + Seconds(4);
  op.report.start_to_ready_seconds = 1.5;
  op.report.lease_held_at = t0 + Seconds(5);
  op.report.lease_handover_seconds = 3;
  op.report.gate_seconds = 0.5;
  CloseReport(op, t0 + Seconds(6));
  EXPECT_DOUBLE_EQ(*op.report.total_seconds, 6);
  EXPECT_DOUBLE_EQ(*op.report.overhead_seconds, 1.5);  // 6 less 1 to 5, less the gate
}

TEST(Report, a_roll_that_was_undone_has_no_overhead) {
  OperationRecord op;
  op.undoing = true;
  CloseReport(op, TestNow().wall);
  EXPECT_FALSE(op.report.overhead_seconds.has_value());
}

}  // namespace
}  // namespace lockkeeper::roll
