// What the command line prints of objects.
#include "reconcilers/cli/view.h"

#include <gtest/gtest.h>

#include "api/types/conditions.h"
#include "api/types/reasons.h"

namespace lockkeeper::cli {
namespace {

Condition Cond(std::string_view type, ConditionStatus status, std::string_view reason, const std::string& message) {
  Condition c;
  c.type = type;
  c.status = status;
  c.reason = reason;
  c.message = message;
  return c;
}

Server AServer() {
  Server s;
  s.metadata.name = "kcp";
  s.metadata.namespace_ = "default";
  s.status.conditions = {Cond(condition::kReady, ConditionStatus::kTrue, reason::kAsDesired, "serves")};
  return s;
}

void Running(Server& s) {
  OperationRef op;
  op.kind = "Upgrade";
  op.name = "up";
  op.uid = "u1";
  s.status.operation = op;
}

const Time kNow = Time(Seconds(1000));

TEST(CliView, AServerThatIsWellWantsNoAttention) {
  EXPECT_EQ(StatusText({AServer()}, {}, kNow).find("Wants attention"), std::string::npos);
}

TEST(CliView, AStoppedServerIsToldHowItIsStarted) {
  Server s = AServer();
  s.status.conditions = {
      Cond(condition::kAvailable, ConditionStatus::kFalse, reason::kServerStopped, "stopped by lockkeeper stop"),
      Cond(condition::kReady, ConditionStatus::kFalse, reason::kServerStopped, "stopped by lockkeeper stop")};
  EXPECT_NE(StatusText({s}, {}, kNow).find("-> lockkeeper start kcp -n default\n"), std::string::npos);
}

TEST(CliView, ADeletedServerThatRunsOnIsShownWithItsProcessAndItsTwoWays) {
  const auto view = Json::Parse(
      R"({"namespace":"default","name":"kcp","released":true,"slots":[
          {"name":"blue","state":"Stopped","version":"v1","pid":7,"port":6441},
          {"name":"green","state":"Ready","version":"v2","pid":8,"port":6442}]})");
  ASSERT_TRUE(view.ok());
  const std::string text = ReleasedText({*view});
  EXPECT_NE(text.find("default/kcp: slot green v2, pid 8, port 6442\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("blue"), std::string::npos) << text;
  EXPECT_NE(text.find("-> to take it back as it runs: kubectl apply"), std::string::npos) << text;
  EXPECT_NE(text.find("-> to stop it: apply it, then lockkeeper stop kcp -n default\n"), std::string::npos) << text;
}

TEST(CliView, AServerThatIsNotDeletedIsNotShownAsLeftRunning) {
  EXPECT_EQ(ReleasedText({Json::MakeObject({{"name", "kcp"}, {"released", false}})}), "");
}

TEST(CliView, AServerThatIsNotReadyForAReasonOfItsSpecSaysIt) {
  Server s = AServer();
  s.status.conditions = {
      Cond(condition::kReady, ConditionStatus::kFalse, reason::kReconciling, "spec.version v0 does not run")};
  EXPECT_NE(StatusText({s}, {}, kNow).find("kcp: spec.version v0 does not run"), std::string::npos);
}

TEST(CliView, AnOperationThatWaitsForAPersonIsNamedWithItsWayOutAndOneThatRunsIsNot) {
  Server s = AServer();
  Running(s);
  OperationNews news{"u1", {Cond(condition::kReady, ConditionStatus::kFalse, reason::kOperationRunning, "")}, {}};
  EXPECT_EQ(StatusText({s}, {news}, kNow).find("Wants attention"), std::string::npos);
  news.conditions = {Cond(condition::kReady, ConditionStatus::kFalse, reason::kPaused, "spec.paused is true"),
                     Cond(condition::kStalled, ConditionStatus::kTrue, "VersionNotFound", "there is no build")};
  const std::string text = StatusText({s}, {news}, kNow);
  EXPECT_NE(text.find("kcp: Upgrade up (VersionNotFound): there is no build\n"), std::string::npos) << text;
  EXPECT_NE(text.find("-> lockkeeper resume up -n default\n"), std::string::npos) << text;
  EXPECT_NE(text.find("-> lockkeeper abort up -n default\n"), std::string::npos) << text;
}

TEST(CliView, ARiskOfNoneIsNotPrinted) {
  Server s = AServer();
  s.status.conditions.push_back(Cond(condition::kStalled, ConditionStatus::kTrue, "FrontSilent", "silent"));
  NextAction look;
  look.command = "kubectl describe front kcp";
  look.risk = "none";
  s.status.next_actions = {look};
  EXPECT_NE(StatusText({s}, {}, kNow).find("-> kubectl describe front kcp\n"), std::string::npos);
}

TEST(CliView, BeforeTheRollEachMessageOfAPhaseIsALineAndDuringItAPhaseIsOne) {
  Upgrade u;
  PhaseRecord phase;
  phase.started_at = kNow;
  u.status.phases = {phase};
  u.status.phases[0].message = "waits for the agent";
  const std::string first = PhaseLines(u)[0].key;
  u.status.phases[0].message = "waits for Upgrade other";
  EXPECT_NE(PhaseLines(u)[0].key, first);
  u.status.phases[0].name = OperationPhase::kRestarting;
  const std::string restarting = PhaseLines(u)[0].key;
  u.status.phases[0].message = "step Ready";
  EXPECT_EQ(PhaseLines(u)[0].key, restarting);
}

TEST(CliView, AnAbortThatWasRefusedIsALineWithItsReasonAndTheSameForUpgradeAndRoll) {
  Condition refused =
      Cond(condition::kAbortRefused, ConditionStatus::kTrue, reason::kAbortRefused,
           "the old slot is being stopped already; once it has ended, `lockkeeper rollback kcp` goes back");
  refused.last_transition_time = kNow;
  Roll roll;
  roll.status.conditions = {refused};
  Upgrade upgrade;
  upgrade.status.conditions = {refused};
  ASSERT_EQ(StepLines(roll).size(), 1u);
  ASSERT_EQ(PhaseLines(upgrade).size(), 1u);
  EXPECT_EQ(StepLines(roll)[0].key, PhaseLines(upgrade)[0].key) << "printed once";
  EXPECT_NE(StepLines(roll)[0].text.find("abort refused: the old slot is being stopped already; once it has ended"),
            std::string::npos)
      << StepLines(roll)[0].text;
  roll.status.conditions[0].status = ConditionStatus::kFalse;
  EXPECT_TRUE(StepLines(roll).empty());
}

TEST(CliView, AGateThatWaitsNamesTheOperationToApprove) {
  Roll roll;
  roll.metadata.name = "up-0123";
  roll.metadata.namespace_ = "default";
  OwnerReference owner;
  owner.kind = "Upgrade";
  owner.name = "up";
  owner.controller = true;
  roll.metadata.owner_references = {owner};
  RollStep gates;
  gates.name = "Gates";
  gates.state = StepState::kWaiting;
  gates.started_at = kNow;
  gates.message = "waits for approval of gate BeforeFlip";
  roll.status.steps = {gates};
  ASSERT_EQ(StepLines(roll).size(), 1u);
  EXPECT_NE(StepLines(roll)[0].text.find("BeforeFlip; let it go on with `lockkeeper approve up -n default`"),
            std::string::npos)
      << StepLines(roll)[0].text;
}

TEST(CliView, AnUpgradeThatStandsBeforeItsRollNamesTheWayOut) {
  Upgrade u;
  u.metadata.namespace_ = "default";
  u.metadata.name = "up";
  PhaseRecord phase;
  phase.name = OperationPhase::kDownloading;
  phase.started_at = kNow;
  phase.message = "there is no build at /b/v9";
  u.status.phases = {phase};
  ASSERT_EQ(PhaseLines(u).size(), 1u);
  EXPECT_EQ(PhaseLines(u)[0].text.find("abort"), std::string::npos);
  u.status.conditions.push_back({});
  u.status.conditions[0].type = condition::kStalled;
  u.status.conditions[0].status = ConditionStatus::kTrue;
  EXPECT_NE(PhaseLines(u)[0].text.find("/b/v9; mend that, or end it with `lockkeeper abort up -n default`"),
            std::string::npos)
      << PhaseLines(u)[0].text;
  u.status.phases[0].finished_at = kNow;
  EXPECT_EQ(PhaseLines(u)[0].text.find("abort"), std::string::npos);
}

TEST(CliView, ARiskThatIsNoneIsToldByItsReasonAlone) {
  Upgrade u;
  u.metadata.name = "up";
  u.status.outcome = Outcome::kFailed;
  for (const char* risk : {"none", "none: the old slot serves on", "none; nothing was changed", "clients move"}) {
    NextAction action;
    action.command = "x";
    action.risk = risk;
    u.status.next_actions.push_back(action);
  }
  EXPECT_EQ(OutcomeText(u),
            "Upgrade up: Failed\n    -> x\n    -> x   (the old slot serves on)\n    -> x   (nothing was changed)\n"
            "    -> x   (clients move)\n");
}

TEST(CliView, APreflightPrintsWhatFailedAndThePlan) {
  Upgrade u;
  u.metadata.name = "look";
  u.spec.mode = OperationMode::kPreflight;
  u.status.outcome = Outcome::kFailed;
  PreflightCheck failed;
  failed.name = "DiskSpace";
  failed.state = CheckState::kFailed;
  failed.message = "1 MB are free";
  PreflightCheck passed;
  passed.name = "PortsFree";
  passed.state = CheckState::kPassed;
  u.status.checks = {passed, failed};
  PlanStep step;
  step.name = "Drain";
  step.description = "drain the old slot";
  step.expected_seconds = 5;
  u.status.plan = {step};
  EXPECT_EQ(OutcomeText(u),
            "Upgrade look: Failed\n  Failed DiskSpace: 1 MB are free\n  1. Drain: drain the old slot (at most 5 s)\n");
}

}  // namespace
}  // namespace lockkeeper::cli
