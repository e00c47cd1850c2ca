// What people and hosts do in the middle of things: pausing, aborting too late, shims that die, many requests at once.
#include <csignal>

#include "api/base/sqlite.h"
#include "tests/e2e/fixture.h"

namespace lockkeeper {
namespace {

class MishapE2e : public E2e {};

TEST_F(MishapE2e, APauseBeforeAnythingIsTouchedAndOneInTheSoakHoldTheRollUntilResumed) {
  Install(false, [](Json& object) {
    if (object.Get("kind").AsString() == "Server") object["spec"].Set("soakSeconds", 2);
  });
  ASSERT_EQ(MakeUpgrade("up", kNew, [](Upgrade& u) { u.spec.controls.paused = true; }), Status::Ok());
  const auto says_paused = [](const Upgrade& u) {
    for (const Condition& c : u.status.conditions) {
      if (c.reason == "Paused") return true;
    }
    return false;
  };
  const Result<Upgrade> before = Await<Upgrade>("up", says_paused);
  ASSERT_TRUE(before.ok()) << before.status().ToString();
  EXPECT_EQ(FindProcess({"/bin/kcp", "slots/green"}), 0) << "nothing was started";
  ASSERT_TRUE(lab_.Verb({"resume", "up"}).ok());
  ASSERT_TRUE(AwaitStep({"Soak"}));
  ASSERT_TRUE(lab_.Verb({"pause", "up"}).ok());
  const Result<Upgrade> soaking = Await<Upgrade>("up", says_paused);
  ASSERT_TRUE(soaking.ok()) << soaking.status().ToString();
  EXPECT_NE(FindProcess({"/bin/kcp", "slots/blue"}), 0) << "the old slot runs on";
  EXPECT_NE(FindProcess({"/bin/kcp", "slots/green"}), 0);
  ASSERT_TRUE(lab_.Verb({"resume", "up"}).ok());
  ExpectSucceeds("up");
  EXPECT_EQ(FindProcess({"/bin/kcp", "slots/blue"}), 0);
}

TEST_F(MishapE2e, AnAbortOnceTheOldSlotIsBeingStoppedIsRefusedWithTheWayBack) {
  ASSERT_EQ(lab_.Build(kOld, "hang-on-stop"), Status::Ok());
  ASSERT_EQ(lab_.Build(kNew), Status::Ok());
  ASSERT_TRUE(lab_.Up().ok());
  ASSERT_EQ(Apply("10-fronts.yaml"), Status::Ok());
  ASSERT_EQ(Apply("20-server-kcp.yaml", [](Json& object) { object["spec"]["timeouts"].Set("stopSeconds", 3); }),
            Status::Ok());
  ASSERT_TRUE(Await<Server>("kcp", [](const Server& s) { return SaysReady(s) && !s.status.operation; }).ok());
  ASSERT_EQ(MakeUpgrade("up", kNew), Status::Ok());
  ASSERT_TRUE(AwaitStep({"StopOld"}));
  ASSERT_TRUE(lab_.Verb({"abort", "up"}).ok());
  ExpectSucceeds("up");
  EXPECT_NE(FindProcess({"/bin/kcp", "slots/green"}), 0);
  const Resource events{"", "v1", "events", "Event", true};
  std::string refused;
  EXPECT_TRUE(WaitUntil([&] {
    const Result<ObjectList> list = lab_.api().List(events, "default", {});
    if (!list.ok()) return false;
    for (const Json& e : list->items) {
      if (e.Get("reason").AsString() == "AbortRefused") refused = e.Get("message").AsString();
    }
    return !refused.empty();
  }));
  EXPECT_NE(refused.find("rollback"), std::string::npos) << "the way out: " << refused;
}

TEST_F(MishapE2e, AnAbortOnceAnOutageHasRecordedItsNewSlotIsRefusedAndTheRollGoesOnToItsEnd) {
  Install(true);
  ASSERT_EQ(MakeUpgrade("up", kNew, [](Upgrade& u) { u.spec.server_ref.name = "single"; }), Status::Ok());
  ASSERT_TRUE(AwaitStep({"Start", "Listen", "Ready"}));
  // The flip waits for its front: the new slot is recorded, and the step stands.
  const pid_t front = FindProcess({" front --config", "default.single"});
  ::kill(front, SIGSTOP);
  EXPECT_TRUE(AwaitStep({"Record"}));
  EXPECT_TRUE(lab_.Verb({"abort", "up"}).ok());
  const auto refused = [](const Roll& r) {
    const Condition* c = FindOf(r, "AbortRefused");
    return c != nullptr && c->status == ConditionStatus::kTrue && c->reason == "AbortRefused" &&
           c->message.find("recorded already") != std::string::npos &&
           c->message.find("lockkeeper rollback single") != std::string::npos;
  };
  const Result<Upgrade> begun = Await<Upgrade>("up", [](const Upgrade& u) { return u.status.roll_ref.has_value(); });
  EXPECT_TRUE(begun.ok()) << begun.status().ToString();
  if (begun.ok()) {
    const Result<Roll> roll = Await<Roll>(begun->status.roll_ref->name, refused);
    EXPECT_TRUE(roll.ok()) << roll.status().ToString();
  }
  ::kill(front, SIGCONT);
  ExpectSucceeds("up");
  const Result<Server> server = Get<Server>(lab_.api(), {"default", "single"});
  ASSERT_TRUE(server.ok());
  EXPECT_EQ(server->status.version, kNew);
}

TEST_F(MishapE2e, APauseWhileTheStoreIsBackedUpHoldsTheRollBeforeAnythingBegins) {
  Install();
  // Copying it takes a while.
  {
    Result<sqlite::Db> store = sqlite::Db::Open(lab_.data() + "/servers/default/kcp/store/kcp.db", {});
    ASSERT_TRUE(store.ok()) << store.status().ToString();
    ASSERT_EQ(store->Exec("CREATE TABLE ballast(x); INSERT INTO ballast VALUES (zeroblob(300000000))"), Status::Ok());
  }
  ASSERT_EQ(MakeUpgrade("up", kNew), Status::Ok());
  const Result<Upgrade> copying =
      Await<Upgrade>("up", [](const Upgrade& u) { return u.status.phase == OperationPhase::kBackingUp; });
  ASSERT_TRUE(copying.ok()) << copying.status().ToString();
  ASSERT_TRUE(lab_.Verb({"pause", "up"}).ok());
  const Result<Upgrade> paused = Await<Upgrade>("up", [](const Upgrade& u) {
    for (const Condition& c : u.status.conditions) {
      if (c.reason == "Paused") return true;
    }
    return false;
  });
  ASSERT_TRUE(paused.ok()) << paused.status().ToString();
  EXPECT_TRUE(WaitUntil([&] { return lab_.UpLog().find("store backed up backup=default/up") != std::string::npos; }));
  const Result<std::string> step = StepNow();
  EXPECT_TRUE(step.ok() && (step->empty() || *step == "Admit" || *step == "Preflight"))
      << "the roll waits: " << step.value_or("?");
  EXPECT_EQ(FindProcess({"/bin/kcp", "slots/green"}), 0) << "nothing was started";
  ASSERT_TRUE(lab_.Verb({"resume", "up"}).ok());
  ExpectSucceeds("up");
}

TEST_F(MishapE2e, ShimsThatAreKilledCostNoServerAndNoFrontItsProcess) {
  Install();
  const pid_t serving = FindProcess({"/bin/kcp", "slots/blue"});
  const pid_t front = FindProcess({" front --config", "default.kcp"});
  std::vector<pid_t> shims;
  for (const std::string& line : lab_.LeftOver()) {
    if (line.find("slot-shim") != std::string::npos) shims.push_back(static_cast<pid_t>(std::stol(line)));
  }
  ASSERT_GE(shims.size(), 2u);
  for (const pid_t shim : shims) ::kill(shim, SIGKILL);
  EXPECT_TRUE(WaitUntil([&] {
    size_t fresh = 0;
    for (const std::string& line : lab_.LeftOver()) fresh += line.find("slot-shim") != std::string::npos;
    return fresh >= shims.size();
  })) << "new shims take their output over";
  EXPECT_EQ(FindProcess({"/bin/kcp", "slots/blue"}), serving);
  EXPECT_EQ(FindProcess({" front --config", "default.kcp"}), front);
  ASSERT_EQ(MakeUpgrade("up", kNew), Status::Ok());
  ExpectSucceeds("up");
  EXPECT_EQ(Overlaps("kcp"), std::vector<std::string>{});
}

TEST_F(MishapE2e, ADozenPreflightsAtOnceAllEndAndTouchNothing) {
  Install();
  const pid_t serving = FindProcess({"/bin/kcp", "slots/blue"});
  constexpr int kMany = 12;
  for (int i = 0; i < kMany; ++i) {
    ASSERT_EQ(
        MakeUpgrade("look-" + std::to_string(i), kNew, [](Upgrade& u) { u.spec.mode = OperationMode::kPreflight; }),
        Status::Ok());
  }
  for (int i = 0; i < kMany; ++i) ExpectSucceeds("look-" + std::to_string(i));
  EXPECT_EQ(FindProcess({"/bin/kcp", "slots/blue"}), serving);
  EXPECT_EQ(FindProcess({"/bin/kcp", "slots/green"}), 0);
}

TEST_F(MishapE2e, AFrontThatHangsHoldsTheRollWithAWordToAPersonAndItGoesOnWhenItAnswers) {
  Install();
  const pid_t serving = FindProcess({"/bin/kcp", "slots/blue"});
  ASSERT_EQ(MakeUpgrade("up", kNew, [](Upgrade& u) { u.spec.gates.push_back(Gate::kBeforeFlip); }), Status::Ok());
  ASSERT_TRUE(AwaitStep({"Gates"}));
  const pid_t front = FindProcess({" front --config", "default.kcp"});
  ::kill(front, SIGSTOP);
  ASSERT_TRUE(lab_.Verb({"approve", "up"}).ok());
  const Result<Upgrade> stalled = Await<Upgrade>("up", [](const Upgrade& u) {
    const Condition* c = FindOf(u, "Stalled");
    return c != nullptr && c->status == ConditionStatus::kTrue && c->reason == "FrontSilent";
  });
  EXPECT_TRUE(stalled.ok()) << stalled.status().ToString();
  EXPECT_EQ(FindProcess({"/bin/kcp", "slots/blue"}), serving) << "nothing is stopped";
  ::kill(front, SIGCONT);
  ExpectSucceeds("up");
  EXPECT_EQ(FindProcess({" front --config", "default.kcp"}), front);
}

}  // namespace
}  // namespace lockkeeper
