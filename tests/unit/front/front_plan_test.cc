#include "reconcilers/front/front_plan.h"

#include <gtest/gtest.h>

#include <random>

#include "api/types/reasons.h"
#include "reconcilers/front/front_config.h"
#include "reconcilers/front/socket_ops.h"

namespace lockkeeper::fronts {
namespace {

Now At(double seconds) {
  Now now;
  now.boot = Seconds(1000 + seconds);
  now.wall = Time(Seconds(1'800'000'000 + seconds));
  now.boot_id = "boot-1";
  return now;
}

HostPaths Paths() {
  HostPaths p;
  p.host = "host-a";
  p.lockkeeper = "/opt/lockkeeper";
  p.version = "v1";
  p.fronts_dir = "/data/fronts";
  p.admin_dir = "/data/run";
  return p;
}

Front Object() {
  Front f;
  f.metadata.namespace_ = "default";
  f.metadata.name = "kcp";
  f.metadata.uid = "uid-1";
  f.metadata.generation = 3;
  f.metadata.finalizers = {kFinalizer};
  f.spec.host = "host-a";
  f.spec.listen = "127.0.0.1:6443";
  return f;
}

FrontTarget Blue() {
  FrontTarget t;
  t.slot = "blue";
  t.incarnation = 1;
  t.invocation = 1;
  t.address = "127.0.0.1:4001";
  t.boot_id = "boot-1";
  t.revision = 50;
  t.ledger_id = "ledger-1";
  return t;
}

FrontDocument Document() {
  FrontDocument d;
  d.ns = "default";
  d.name = "kcp";
  d.uid = "uid-1";
  d.generation = 3;
  d.spec = Object().spec;
  d.claimed_by = "kcp";
  d.invocation = 1;
  d.listen = "127.0.0.1:6443";
  return d;
}

UnitStatus Running() {
  UnitStatus u;
  u.state = UnitStatus::State::kRunning;
  u.id.unit = "lk-front-default.kcp";
  u.id.invocation = 1;
  u.id.pid = 100;
  u.started_at = At(-100).wall;
  u.shim_alive = true;
  return u;
}

std::string Settings(const FrontDocument& d) {
  // What a front that was started with this configuration tells.
  const auto json = Json::Parse(RenderConfig(Paths(), d));
  return front::SettingsHash(*front::FrontConfigFromJson(*json));
}

// A converged world.
Snapshot Converged() {
  Snapshot s;
  s.ns = "default";
  s.name = "kcp";
  s.paths = Paths();
  s.ledger.id = "ledger-1";
  s.ledger.revision = 60;
  s.document = Document();
  s.object = Object();
  s.claims = std::vector<Claim>{{"kcp", "server-uid", Blue()}};
  s.unit = Running();
  FrontState state;
  state.target = Blue();
  state.generation = 4;
  state.version = "v1";
  state.listen = "127.0.0.1:6443";
  state.settings = Settings(Document());
  s.state = state;
  s.config = RenderConfig(Paths(), Document());
  return s;
}

template <typename T>
const T* StepOf(const Plan& plan) {
  return std::get_if<T>(&plan.step);
}

TEST(FrontPlan, AConvergedFrontGetsNoStepAndIsReady) {
  const Plan p = Decide(Converged(), At(0));
  EXPECT_TRUE(std::holds_alternative<std::monostate>(p.step)) << p.why;
  EXPECT_EQ(p.object_step, ObjectStep::kNone);
  EXPECT_EQ(p.verdict.ready, ConditionStatus::kTrue);
  EXPECT_EQ(p.verdict.settling, Settling::kCurrent);
  EXPECT_EQ(p.verdict.reason, reason::kInSync);
}

TEST(FrontPlan, WipingConditionsAndDerivedFieldsChangesNoPlan) {
  Snapshot s = Converged();
  s.object->status.conditions.push_back({});
  s.object->status.open.push_back({});
  s.object->status.holding = true;
  const Plan with = Decide(s, At(0));
  s.object->status = {};
  EXPECT_EQ(with, Decide(s, At(0)));
}

TEST(FrontPlan, ANewObjectGetsItsFinalizerBeforeTheHostTakesItUp) {
  Snapshot s = Converged();
  s.document = Absent{};
  s.object->metadata.finalizers.clear();
  Plan p = Decide(s, At(0));
  EXPECT_EQ(p.object_step, ObjectStep::kAddFinalizer);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(p.step));
  s.object->metadata.finalizers = {kFinalizer};
  p = Decide(s, At(0));
  ASSERT_NE(StepOf<Commit>(p), nullptr);
  EXPECT_EQ(StepOf<Commit>(p)->next.spec.listen, "127.0.0.1:6443");
  EXPECT_EQ(StepOf<Commit>(p)->next.invocation, 0);
}

TEST(FrontPlan, AFrontOfAnotherHostIsNotTouched) {
  Snapshot s = Converged();
  s.object->spec.host = "host-b";
  s.document = Absent{};
  EXPECT_EQ(Decide(s, At(0)), Plan{});
}

TEST(FrontPlan, AStartIsRecordedThenConfiguredThenMade) {
  Snapshot s = Converged();
  s.document->invocation = 0;
  s.unit = Absent{};
  s.state = Absent{};
  s.config = Absent{};
  Plan p = Decide(s, At(0));
  ASSERT_NE(StepOf<Commit>(p), nullptr);
  EXPECT_EQ(StepOf<Commit>(p)->next.invocation, 1);
  s.document = StepOf<Commit>(p)->next;
  p = Decide(s, At(0));
  ASSERT_NE(StepOf<WriteConfig>(p), nullptr);
  s.config = StepOf<WriteConfig>(p)->text;
  p = Decide(s, At(0));
  const auto* start = StepOf<StartFront>(p);
  ASSERT_NE(start, nullptr);
  EXPECT_EQ(start->invocation, 1);
  EXPECT_EQ(start->unit.listen_address, "127.0.0.1:6443");
  EXPECT_TRUE(start->unit.restart);
  EXPECT_EQ(start->unit.argv,
            (std::vector<std::string>{"/opt/lockkeeper", "front", "--config", "/data/fronts/default.kcp/front.json"}));
  EXPECT_EQ(p.verdict.settling, Settling::kReconciling);
}

TEST(FrontPlan, AnEndedProcessIsStartedAsANewInvocationAfterItsBackoff) {
  Snapshot s = Converged();
  s.unit->state = UnitStatus::State::kExited;
  s.state = Absent{};
  s.document->not_before = Deadline::After(At(0), Seconds(2));
  Plan p = Decide(s, At(0));
  EXPECT_TRUE(std::holds_alternative<std::monostate>(p.step));
  EXPECT_EQ(p.verdict.reason, reason::kFrontDown);
  EXPECT_EQ(p.requeue_after, Seconds(2));
  p = Decide(s, At(2));
  ASSERT_NE(StepOf<Commit>(p), nullptr);
  EXPECT_EQ(StepOf<Commit>(p)->next.invocation, 2);
}

TEST(FrontPlan, AnAddressInUseIsNamedAndTriedAgainByItself) {
  Snapshot s = Converged();
  s.unit->state = UnitStatus::State::kExited;
  s.unit->id.pid = 0;
  s.unit->failure = Status(Code::kBusy, "listen on 127.0.0.1:6443: Address already in use");
  s.state = Absent{};
  s.document->not_before = Deadline::After(At(0), Seconds(1));
  Plan p = Decide(s, At(0));
  EXPECT_EQ(p.verdict.settling, Settling::kStalled);
  EXPECT_EQ(p.verdict.reason, reason::kListenFailed);
  EXPECT_EQ(p.verdict.message,
            "cannot listen on 127.0.0.1:6443: listen on 127.0.0.1:6443: Address already in use; it is tried again");
  s.unit->failure = Status(Code::kBusy, "cannot listen on 127.0.0.1:6443: another process does");
  EXPECT_EQ(Decide(s, At(0)).verdict.message,
            "cannot listen on 127.0.0.1:6443: another process does; it is tried again");
  p = Decide(s, At(1));
  ASSERT_NE(StepOf<Commit>(p), nullptr);
  EXPECT_EQ(StepOf<Commit>(p)->next.invocation, 2);
  EXPECT_EQ(StepOf<Commit>(p)->next.failures, 1);
  EXPECT_EQ(p.verdict.reason, reason::kListenFailed);  // until the next start is known to do better
}

TEST(FrontPlan, AListenAddressThatIsANameIsRefusedWithItsField) {
  Snapshot s = Converged();
  s.object->spec.listen = "kcp.example.org:6443";
  s.document->spec.listen = "kcp.example.org:6443";
  const Plan p = Decide(s, At(0));
  EXPECT_EQ(p.verdict.reason, reason::kInvalidSpec);
  EXPECT_NE(p.verdict.message.find("spec.listen"), std::string::npos);
  EXPECT_EQ(*NumericListen(":6443"), "0.0.0.0:6443");
  EXPECT_EQ(*NumericListen("localhost:6443"), "127.0.0.1:6443");
  EXPECT_EQ(*NumericListen("[::]:6443"), "[::]:6443");
  EXPECT_FALSE(NumericListen("127.0.0.1:0").ok());
}

TEST(FrontPlan, ATargetIsSetWhenAnyFieldOfTheBackendDiffers) {
  for (int field = 0; field < 6; ++field) {
    Snapshot s = Converged();
    FrontTarget& t = *s.claims->at(0).target;
    if (field == 0) t.slot = "green";
    if (field == 1) t.incarnation = 2;
    if (field == 2) t.invocation = 2;
    if (field == 3) t.address = "127.0.0.1:4002";
    if (field == 4) t.hold = true;
    if (field == 5) t.boot_id = "boot-2";
    const Plan p = Decide(s, At(0));
    ASSERT_NE(StepOf<SetTarget>(p), nullptr) << field;
    EXPECT_EQ(StepOf<SetTarget>(p)->target, t);
  }
  Snapshot s = Converged();
  s.claims->at(0).target->revision = 60;  // only a revision: nothing to set
  EXPECT_EQ(StepOf<SetTarget>(Decide(s, At(0))), nullptr);
  s.state->target.reset();
  EXPECT_NE(StepOf<SetTarget>(Decide(s, At(0))), nullptr);
}

TEST(FrontPlan, ASilentFrontIsLeftAloneAndSaid) {
  Snapshot s = Converged();
  s.state = Unknown{"connect to /data/run/default.kcp.sock: refused"};
  s.claims->at(0).target->slot = "green";
  const Plan p = Decide(s, At(0));
  EXPECT_TRUE(std::holds_alternative<std::monostate>(p.step));
  EXPECT_EQ(p.verdict.reason, reason::kFrontSilent);
  EXPECT_EQ(p.verdict.settling, Settling::kStalled);
  EXPECT_NE(p.verdict.message.find("process 100"), std::string::npos);
  s.unit->started_at = At(-1).wall;  // it has only just begun
  EXPECT_EQ(Decide(s, At(0)).verdict.settling, Settling::kReconciling);
}

TEST(FrontPlan, TheFirstClaimHoldsAndASecondOneWaits) {
  Snapshot s = Converged();
  s.claims->insert(s.claims->begin(), {"another", "uid-2", std::nullopt});
  Plan p = Decide(s, At(0));
  EXPECT_TRUE(std::holds_alternative<std::monostate>(p.step)) << p.why;  // earlier in the alphabet, later in time
  s.document->claimed_by = "";
  p = Decide(s, At(0));
  ASSERT_NE(StepOf<Commit>(p), nullptr);
  EXPECT_EQ(StepOf<Commit>(p)->next.claimed_by, "another");
  s = Converged();
  s.claims = std::vector<Claim>{{"another", "uid-2", std::nullopt}};
  p = Decide(s, At(0));
  ASSERT_NE(StepOf<Commit>(p), nullptr);
  EXPECT_EQ(StepOf<Commit>(p)->next.claimed_by, "another");
}

TEST(FrontPlan, WithoutAClaimTheFrontIsLeftWhereItIs) {
  Snapshot s = Converged();
  s.claims = std::vector<Claim>{};
  s.document->claimed_by = "";
  const Plan p = Decide(s, At(0));
  EXPECT_TRUE(std::holds_alternative<std::monostate>(p.step));
  EXPECT_EQ(p.verdict.reason, reason::kUnclaimed);
}

TEST(FrontPlan, UnknownClaimsChangeNothing) {
  Snapshot s = Converged();
  s.claims = Unknown{"the disk does not answer"};
  const Plan p = Decide(s, At(0));
  EXPECT_TRUE(std::holds_alternative<std::monostate>(p.step));
  EXPECT_EQ(p.verdict.ready, ConditionStatus::kUnknown);
}

TEST(FrontPlan, AWantedHoldIsReadyAndSaysSo) {
  Snapshot s = Converged();
  s.claims->at(0).target->hold = true;
  s.state->target->hold = true;
  const Plan p = Decide(s, At(0));
  EXPECT_TRUE(std::holds_alternative<std::monostate>(p.step));
  EXPECT_EQ(p.verdict.reason, reason::kFrontHolding);
  EXPECT_EQ(p.verdict.ready, ConditionStatus::kTrue);
}

TEST(FrontPlan, AHoldOfAStoppedServerIsNotReadyAndSaysForHowLongAndHowItEnds) {
  Snapshot s = Converged();
  s.claims->at(0).target->hold = true;
  s.claims->at(0).stopped = true;
  s.state->target->hold = true;
  const Plan p = Decide(s, At(0));
  EXPECT_EQ(p.verdict.reason, reason::kServerStopped);
  EXPECT_EQ(p.verdict.ready, ConditionStatus::kFalse);
  EXPECT_EQ(p.verdict.message, "Server kcp is stopped: a new connection is held for " +
                                   std::to_string(s.document->spec.hold.seconds) +
                                   " s, then closed; `lockkeeper start kcp -n default` starts it");
}

TEST(FrontPlan, AnotherOrALaterLedgerIsAWitnessAndTheFrontIsLeftAlone) {
  Snapshot s = Converged();
  s.claims->at(0).target->slot = "green";
  s.state->target->ledger_id = "ledger-0";
  Plan p = Decide(s, At(0));
  EXPECT_TRUE(std::holds_alternative<std::monostate>(p.step));
  EXPECT_EQ(p.verdict.reason, reason::kLedgerLost);
  s = Converged();
  s.claims->at(0).target->slot = "green";
  s.state->target->revision = 61;
  p = Decide(s, At(0));
  EXPECT_TRUE(std::holds_alternative<std::monostate>(p.step));
  EXPECT_EQ(p.verdict.reason, reason::kLedgerOlderThanHost);
}

TEST(FrontPlan, AnOlderObjectThanTheOneLoadedIsNotLoaded) {
  Snapshot s = Converged();
  s.object->metadata.generation = 2;
  s.object->spec.listen = "127.0.0.1:9";
  const Plan p = Decide(s, At(0));
  EXPECT_TRUE(std::holds_alternative<std::monostate>(p.step));
  EXPECT_EQ(p.verdict.reason, reason::kSpecOlderThanHost);
}

TEST(FrontPlan, AbsenceOfTheObjectIsNoDeletion) {
  Snapshot s = Converged();
  s.object = Absent{};
  EXPECT_TRUE(std::holds_alternative<std::monostate>(Decide(s, At(0)).step));
  s.object = Unknown{"the API is away"};
  s.claims->at(0).target->slot = "green";
  EXPECT_NE(StepOf<SetTarget>(Decide(s, At(0))), nullptr);  // and a flip needs no API
}

TEST(FrontPlan, AnEditedSpecIsWrittenAndSaidAndTheProcessIsLeftRunning) {
  Snapshot s = Converged();
  s.object->metadata.generation = 4;
  s.object->spec.hold.seconds = 7;
  Plan p = Decide(s, At(0));
  ASSERT_NE(StepOf<Commit>(p), nullptr);
  s.document = StepOf<Commit>(p)->next;
  p = Decide(s, At(0));
  ASSERT_NE(StepOf<WriteConfig>(p), nullptr);
  s.config = StepOf<WriteConfig>(p)->text;
  p = Decide(s, At(0));
  EXPECT_TRUE(std::holds_alternative<std::monostate>(p.step));
  EXPECT_EQ(p.verdict.reason, reason::kFrontOutdated);
  EXPECT_EQ(p.verdict.ready, ConditionStatus::kTrue);
  EXPECT_NE(p.verdict.message.find(kRestartAnnotation), std::string::npos);
}

TEST(FrontPlan, ANewBuildIsSaidAndNotRestartedByItself) {
  Snapshot s = Converged();
  s.state->version = "v0";
  const Plan p = Decide(s, At(0));
  EXPECT_TRUE(std::holds_alternative<std::monostate>(p.step));
  EXPECT_EQ(p.verdict.reason, reason::kFrontOutdated);
}

TEST(FrontPlan, TheExplicitRestartIsRecordedAskedOnceAndWaitedFor) {
  Snapshot s = Converged();
  s.state->version = "v0";
  s.object->metadata.annotations[kRestartAnnotation] = "today";
  Plan p = Decide(s, At(0));
  ASSERT_NE(StepOf<Commit>(p), nullptr);
  s.document = StepOf<Commit>(p)->next;
  p = Decide(s, At(0));
  ASSERT_NE(StepOf<RestartFront>(p), nullptr);
  s.state->stopping = true;
  p = Decide(s, At(1));
  EXPECT_TRUE(std::holds_alternative<std::monostate>(p.step));
  EXPECT_EQ(p.verdict.settling, Settling::kReconciling);
  // While it drains, a flip still reaches it.
  s.claims->at(0).target->slot = "green";
  EXPECT_NE(StepOf<SetTarget>(Decide(s, At(1))), nullptr);
  s.claims->at(0).target->slot = "blue";
  s.state->stopping = false;
  s.state->version = "v1";
  s.unit->id.pid = 101;
  p = Decide(s, At(2));
  EXPECT_TRUE(std::holds_alternative<std::monostate>(p.step)) << p.why;
  EXPECT_EQ(p.verdict.reason, reason::kInSync);
}

TEST(FrontPlan, TheFirstSightOfARestartAnnotationIsNoOrder) {
  Snapshot s = Converged();
  s.document = Absent{};
  s.object->metadata.annotations[kRestartAnnotation] = "last year";
  const Plan p = Decide(s, At(0));
  ASSERT_NE(StepOf<Commit>(p), nullptr);
  EXPECT_EQ(StepOf<Commit>(p)->next.restart_seen, "last year");
  s = Converged();  // made anew under the old name
  s.object->metadata.uid = "uid-2";
  s.object->metadata.annotations[kRestartAnnotation] = "last year";
  const Plan again = Decide(s, At(0));
  ASSERT_NE(StepOf<Commit>(again), nullptr);
  EXPECT_EQ(StepOf<Commit>(again)->next.restart_seen, "last year");
}

TEST(FrontPlan, AnotherListenAddressTakesANewShimAndOnlyWhenAsked) {
  Snapshot s = Converged();
  s.object->spec.listen = s.document->spec.listen = "127.0.0.1:7443";
  Plan p = Decide(s, At(0));
  EXPECT_EQ(p.verdict.reason, reason::kFrontOutdated);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(p.step));
  s.object->metadata.annotations[kRestartAnnotation] = "now";
  p = Decide(s, At(0));
  ASSERT_NE(StepOf<Commit>(p), nullptr);
  s.document = StepOf<Commit>(p)->next;
  p = Decide(s, At(0));
  ASSERT_NE(StepOf<StopFront>(p), nullptr);
  EXPECT_FALSE(StepOf<StopFront>(p)->kill);
  s.state->stopping = true;
  EXPECT_TRUE(std::holds_alternative<std::monostate>(Decide(s, At(10)).step));
  p = Decide(s, At(80));
  ASSERT_NE(StepOf<StopFront>(p), nullptr);
  EXPECT_TRUE(StepOf<StopFront>(p)->kill);
  s.unit->state = UnitStatus::State::kExited;
  s.state = Absent{};
  p = Decide(s, At(81));
  ASSERT_NE(StepOf<Commit>(p), nullptr);
  EXPECT_EQ(StepOf<Commit>(p)->next.listen, "127.0.0.1:7443");
  EXPECT_EQ(StepOf<Commit>(p)->next.invocation, 2);
  EXPECT_FALSE(StepOf<Commit>(p)->next.stop_by.IsSet());
}

TEST(FrontPlan, ADeletedFrontServesOnWhileAServerClaimsIt) {
  Snapshot s = Converged();
  s.object->metadata.deletion_timestamp = At(0).wall;
  s.document->deleting = true;
  s.claims->at(0).target->slot = "green";
  EXPECT_NE(StepOf<SetTarget>(Decide(s, At(0))), nullptr);
  s.claims->at(0).target->slot = "blue";
  const Plan p = Decide(s, At(0));
  EXPECT_TRUE(std::holds_alternative<std::monostate>(p.step));
  EXPECT_EQ(p.object_step, ObjectStep::kNone);
  EXPECT_EQ(p.verdict.reason, reason::kDeleting);
  EXPECT_NE(p.verdict.message.find("Server kcp"), std::string::npos);
}

TEST(FrontPlan, ADeletedFrontThatNobodyClaimsEndsStepByStep) {
  Snapshot s = Converged();
  s.object->metadata.deletion_timestamp = At(0).wall;
  s.document->deleting = true;
  s.document->claimed_by = "";
  s.claims = std::vector<Claim>{};
  Plan p = Decide(s, At(0));
  ASSERT_NE(StepOf<Commit>(p), nullptr);
  s.document = StepOf<Commit>(p)->next;
  p = Decide(s, At(0));
  ASSERT_NE(StepOf<StopFront>(p), nullptr);
  s.unit->state = UnitStatus::State::kExited;
  p = Decide(s, At(1));
  ASSERT_NE(StepOf<ResetFront>(p), nullptr);
  s.unit = Absent{};
  p = Decide(s, At(1));
  ASSERT_NE(StepOf<ForgetDocument>(p), nullptr);
  EXPECT_EQ(p.object_step, ObjectStep::kNone);
  s.document = Absent{};
  EXPECT_EQ(Decide(s, At(1)).object_step, ObjectStep::kRemoveFinalizer);
}

TEST(FrontPlan, TwoFrontsNeverShareAUnitAndItsNameIsBounded) {
  EXPECT_EQ(FrontUnitName("default", "kcp"), "lk-front-default.kcp");
  EXPECT_NE(FrontUnitName("a-b", "c"), FrontUnitName("a", "b-c"));
  const std::string a = FrontUnitName(std::string(63, 'n'), std::string(253, 'f'));
  const std::string b = FrontUnitName(std::string(63, 'n'), std::string(252, 'f') + "g");
  EXPECT_LE(a.size(), 200u);
  EXPECT_NE(a, b);
}

TEST(FrontPlan, TheDocumentSurvivesTheLedger) {
  FrontDocument d = Document();
  d.deleting = true;
  d.failures = 3;
  d.not_before = Deadline::After(At(5), Seconds(1));
  d.restart_seen = "x";
  d.restart_pid = 9;
  const auto back = FrontDocument::FromJson(d.ToJson().Dump());
  ASSERT_TRUE(back.ok()) << back.status().ToString();
  EXPECT_EQ(*back, d);
  EXPECT_EQ(FrontDocument::FromJson("{").code(), Code::kCorrupt);
  EXPECT_EQ(FrontDocument::FromJson("{}").code(), Code::kCorrupt);
}

TEST(FrontPlan, AStatusSaysWhatTheFrontSays) {
  Snapshot s = Converged();
  FrontBackendOpen open;
  open.slot = "blue";
  open.incarnation = 1;
  open.open = 7;
  open.oldest_seconds = 130.7;
  s.state->open = {open};
  s.state->held = 2;
  s.state->drained_total = 9;
  const FrontStatus status = Summarize(s, Decide(s, At(0)), At(0));
  EXPECT_EQ(status.observed_generation, 3);
  EXPECT_EQ(status.claimed_by->name, "kcp");
  EXPECT_EQ(status.claimed_by->uid, "server-uid");
  EXPECT_EQ(status.backend->slot, "blue");
  EXPECT_FALSE(status.holding);
  EXPECT_EQ(status.generation, 50);
  EXPECT_EQ(status.open.at(0).connections, 7);
  EXPECT_EQ(status.open.at(0).oldest_seconds, 120);
  EXPECT_EQ(status.held, 2);
  EXPECT_EQ(status.drained, 9);
  EXPECT_EQ(status.pid, 100);
  EXPECT_TRUE(IsConditionTrue(status.conditions, condition::kReady));
  // The next look a second later is the same status, and other counts are no change in substance.
  s.object->status = status;
  s.state->open[0].oldest_seconds = 131.7;
  EXPECT_EQ(Summarize(s, Decide(s, At(1)), At(1)), status);
  s.state->open[0].open = 8;
  const FrontStatus counted = Summarize(s, Decide(s, At(1)), At(1));
  EXPECT_NE(counted, status);
  EXPECT_FALSE(DiffersInSubstance(counted, status));
}

TEST(FrontPlan, ARandomWorldNeverLosesAConnectionByItself) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto maybe = [&] { return random() % 2 == 0; };
  for (int i = 0; i < 500; ++i) {
    Snapshot s = Converged();
    if (maybe()) s.object = maybe() ? Fact<Front>(Absent{}) : Fact<Front>(Unknown{"away"});
    if (s.object.known() && maybe()) s.object->metadata.generation = static_cast<int64_t>(random() % 6);
    if (s.object.known() && maybe()) s.object->spec.hold.seconds = 5;
    if (s.object.known() && maybe()) s.object->metadata.finalizers.clear();
    if (maybe()) s.claims = maybe() ? Fact<std::vector<Claim>>(std::vector<Claim>{}) : Unknown{"?"};
    if (s.claims.known() && !s.claims->empty() && maybe()) s.claims->at(0).target->slot = "green";
    if (maybe()) s.unit = maybe() ? Fact<UnitStatus>(Absent{}) : Fact<UnitStatus>(Unknown{"?"});
    if (s.unit.known() && maybe()) s.unit->state = UnitStatus::State::kExited;
    if (maybe()) s.state = Unknown{"silent"};
    if (s.state.known() && maybe()) s.state->version = "v0";
    if (s.state.known() && maybe()) s.state->target.reset();
    if (maybe()) s.config = Absent{};
    const Plan p = Decide(s, At(static_cast<double>(random() % 100)));
    // Nobody asked for a restart or a deletion: a running front is never ended, started over or forgotten.
    ASSERT_EQ(StepOf<StopFront>(p), nullptr);
    ASSERT_EQ(StepOf<RestartFront>(p), nullptr);
    ASSERT_EQ(StepOf<ResetFront>(p), nullptr);
    ASSERT_EQ(StepOf<ForgetDocument>(p), nullptr);
    if (const auto* start = StepOf<StartFront>(p)) {
      ASSERT_FALSE(s.unit.unknown());
      ASSERT_FALSE(s.unit.known() && s.unit->state == UnitStatus::State::kRunning);
      ASSERT_EQ(start->invocation, s.document->invocation);
    }
    ASSERT_FALSE(p.verdict.reason.empty());
    ASSERT_GT(p.requeue_after, Duration::zero());
    if (p.verdict.settling == Settling::kStalled) {
      ASSERT_NE(p.verdict.ready, ConditionStatus::kTrue);
    }
  }
}

}  // namespace
}  // namespace lockkeeper::fronts
