// What holds of the plan whatever the facts say: a walk over all steps, undo and outage of one slot among them; and a
// world as it should be.
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "tests/unit/server/a_snapshot.h"

namespace lockkeeper::roll {
namespace {

constexpr const char* kDeadlines[] = {kStepNoteHolder, kStepStart, kStepReady, kStepFlip, kStepHold,    kStepDrain,
                                      kStepSoak,       kStepLease, kStepProbe, kUndo,     kActiveRepair};

class Walk {
 public:
  explicit Walk(uint64_t seed) : rng_(seed) {
    single_ = Pick(4) == 0;
    if (single_) a_.rec().spec.shape = ServerShape::kSingle;
    if (Pick(5) == 0) a_.rec().spec.template_.stop.order = StopOrder::kStopThenDrain;
    if (Pick(3) == 0) a_.rec().spec.soak_seconds = 10;
    if (Pick(3) == 0) a_.rec().spec.member_token.emplace();
    if (Pick(2) == 0) a_.rec().spec.lease.emplace();
    if (Pick(2) == 0) a_.rec().spec.probe.type = ProbeType::kConfigMap;
    if (Pick(3) == 0) a_.rec().spec.seed.emplace();
    if (!single_) a_.Slot("green", 2, "v2");
    if (Pick(6) != 0) Operate();
    if (!single_ && Pick(2) == 0) a_.rec().active = "green";
    a_.rec().hold = Pick(4) == 0;
    a_.rec().stopped = Pick(12) == 0;
    a_.rec().deleting = Pick(12) == 0;
    a_.rec().spec.paused = Pick(8) == 0;
  }

  // One pass: the facts wander, the plan decides, its commit is taken. "" or what must never be.
  std::string Pass() {
    Wander();
    const Snapshot s = a_.Take();
    const Plan plan = Decide(s, TestNow());
    reasons_.insert(plan.reason);
    if (!plan.step) return "";
    const ServerRecord* next = nullptr;
    if (const auto* commit = std::get_if<Commit>(&plan.step->action)) {
      if (commit->remove) return StoppedWrongly(s, ServerRecord{}, plan);
      next = &commit->record;
    }
    for (const std::optional<Commit>* commit : {&plan.step->otherwise, &plan.step->then}) {
      if (!*commit) continue;
      if (std::string wrong = StoppedWrongly(s, (*commit)->record, plan); !wrong.empty()) return wrong;
      next = &(*commit)->record;
    }
    if (next == nullptr) return "";
    if (std::string wrong = StoppedWrongly(s, *next, plan); !wrong.empty()) return wrong;
    a_.rec() = *next;
    return "";
  }
  const std::set<std::string>& reasons() const { return reasons_; }

 private:
  int Pick(int n) { return static_cast<int>(rng_() % static_cast<uint64_t>(n)); }

  void Operate() {
    OperationRecord shape;
    shape.from = "blue";
    shape.outage = single_ || Pick(4) == 0;
    const auto steps = StepsOf(shape, StopOrder::kDrainThenStop);
    a_.Rolling(steps[static_cast<size_t>(Pick(static_cast<int>(steps.size() - 1)))], [&](OperationRecord& op) {
      op.outage = shape.outage;
      if (single_) op.to = "blue";
    });
    OperationRecord& op = a_.op();
    op.rendered->unit.argv = {"/data/releases/v2/bin/kcp"};
    if (Pick(3) == 0) op.kind = kKindUpgrade;
    op.undoing = Pick(4) == 0;
    op.abort = Pick(5) == 0;
    op.abandon = Pick(6) == 0;
    op.paused = Pick(6) == 0;
    if (Pick(4) == 0) op.spec.gates = {Gate::kBeforeFlip};
    if (single_) a_.rec().slots["blue"].previous = a_.rec().slots["blue"].intent;
    if (Pick(3) == 0) a_.Begun(CurrentStep(op, StopOrder::kDrainThenStop));
  }

  void Wander() {
    if (a_.rec().operation) {
      for (const char* name : kDeadlines) {
        if (Pick(2) == 0) a_.DeadlineIn(name, Seconds(Pick(20) - 10));
      }
    }
    std::vector<std::string> slots;
    for (const auto& [name, entry] : a_.rec().slots) slots.push_back(name);
    for (const std::string& name : slots) {
      if (a_.rec().slots[name].intent.incarnation == 0) continue;
      switch (Pick(8)) {
        case 0: a_.Dead(name); break;
        case 1: a_.NotReady(name); break;
        case 2: a_.ReadinessUnknown(name); break;
        case 3: a_.UnitUnknown(name); break;
        case 4: a_.s().slots[name].unit = Absent{}; break;
        default: a_.Ready(name); break;
      }
      if (a_.s().slots[name].companions.unknown()) a_.s().slots[name].companions = 0;
      a_.s().slots[name].unready_tries = Pick(5);
    }
    if (Pick(3) == 0 || !a_.s().front.known()) {
      switch (Pick(5)) {
        case 0: a_.FrontSilent(); break;
        case 1: a_.FrontHolds(); break;
        case 2: a_.FrontOn(single_ ? "blue" : "green"); break;
        default: a_.FrontOn("blue"); break;
      }
    }
    a_.s().lease.lease = Pick(2) == 0 ? Fact<LeaseFact>(LeaseFact{"uid", "7", "box_1", {}, {}, 60, TestNow().wall})
                                      : Fact<LeaseFact>(Absent{});
    a_.s().lease.unchanged_for = Seconds(Pick(10));
    a_.s().probe =
        Pick(2) == 0 ? Fact<ProbeFact>(ProbeFact{a_.rec().probe_name, Pick(2) == 0, ""}) : Fact<ProbeFact>(Absent{});
    a_.s().files.seeded = Pick(2) == 0;
  }

  // Rule D, said once more and otherwise than the plan says it: from the snapshot's bare facts.
  static std::string StoppedWrongly(const Snapshot& s, const ServerRecord& next, const Plan& plan) {
    const ServerRecord& before = *s.record;
    const bool asked = before.stopped || (before.deleting && before.spec.deletion_policy == DeletionPolicy::kStop);
    if (asked || !s.front.known() || s.front->target->hold) return "";
    const std::string& slot = s.front->target->slot;
    const auto was = before.slots.find(slot);
    const auto facts = s.slots.find(slot);
    if (was == before.slots.end() || facts == s.slots.end() || !was->second.intent.running) return "";
    if (s.front->target->incarnation != was->second.intent.incarnation) return "";
    const bool running = facts->second.unit.known() && facts->second.unit->state == UnitStatus::State::kRunning;
    if (!running || !facts->second.readyz.known() || facts->second.readyz->status != 200) return "";
    const auto kept = next.slots.find(slot);
    const bool wanted = kept != next.slots.end() && kept->second.intent.running &&
                        kept->second.intent.incarnation == was->second.intent.incarnation &&
                        kept->second.intent.invocation == was->second.intent.invocation;
    return wanted ? "" : "ready slot " + slot + ", which the front points at, is stopped by " + DebugString(plan);
  }

  std::mt19937_64 rng_;
  bool single_ = false;
  ASnapshot a_;
  std::set<std::string> reasons_;
};

TEST(Plan, a_random_walk_of_facts_never_stops_a_ready_slot_that_the_front_points_at) {
  std::set<std::string> reasons;
  for (uint64_t seed = 0; seed < 2500; ++seed) {
    Walk walk(seed);
    for (int pass = 0; pass < 8; ++pass) {
      const std::string wrong = walk.Pass();
      ASSERT_EQ(wrong, "") << "seed " << seed << ", pass " << pass;
    }
    reasons.insert(walk.reasons().begin(), walk.reasons().end());
  }
  // It has been to all of these places, so it means something.
  for (const char* reason : {"StopOld", "StoppingNew", "StartingOld", "FlippedBack", "Repairing", "Recorded", "Holding",
                             "HoldingForUndo", "RetiringStray", "FrontNotObserved", "Stopping", "FreeingLease"}) {
    EXPECT_EQ(reasons.count(reason), 1u) << reason;
  }
}

// Nothing is done to a world that is as it should be.
struct Rest {
  const char* name;
  std::function<void(ASnapshot&)> world;
};
void PrintTo(const Rest& rest, std::ostream* out) { *out << rest.name; }
class AtRest : public testing::TestWithParam<Rest> {};

TEST_P(AtRest, a_converged_world_gives_no_step) {
  ASnapshot a;
  GetParam().world(a);
  const Plan plan = Decide(a.Take(), TestNow());
  EXPECT_FALSE(plan.step.has_value()) << DebugString(plan);
  EXPECT_FALSE(plan.stalled) << DebugString(plan);
}

const Rest kRests[] = {
    {"blue", [](ASnapshot&) {}},
    {"green",
     [](ASnapshot& a) {
       a.Slot("green", 2, "v2").Ready("green").FrontOn("green").GreenRecorded().rec().slots.erase("blue");
       a.s().slots.erase("blue");
       a.rec().link_of = "/data/releases/v2";
       a.rec().incarnations = 2;
     }},
    {"one_slot", [](ASnapshot& a) { a.rec().spec.shape = ServerShape::kSingle; }},
    {"no_front", [](ASnapshot& a) { a.rec().spec.front_ref.reset(), a.s().front = Fact<FrontState>{}; }},
    {"the_api_is_away", [](ASnapshot& a) { a.s().candidates = Unknown{"away"}, a.s().object = Unknown{"away"}; }},
    {"the_lease_is_renewed",
     [](ASnapshot& a) {
       a.rec().spec.lease.emplace();
       a.s().lease.lease = LeaseFact{"uid", "7", "box_1", TestNow().wall, TestNow().wall, 60, TestNow().wall};
     }},
    {"the_members_have_the_token",
     [](ASnapshot& a) { a.rec().spec.member_token.emplace(), a.rec().member_token_of = "blue#1.1"; }},
    {"an_ended_operation_stands_in_the_api",
     [](ASnapshot& a) {
       Candidate ended;
       ended.kind = kKindRoll;
       ended.uid = "uid-r0";
       ended.has_finalizer = true;
       ended.closed = Outcome::kSucceeded;
       a.s().candidates = std::vector<Candidate>{ended};
     }},
    {"an_upgrade_holds_the_place_after_its_roll",
     [](ASnapshot& a) {
       a.Rolling(kStepDone).op().kind = kKindUpgrade;
       a.op().roll_outcome = Outcome::kFailed;
     }},
    {"a_roll_waits_at_its_gate",
     [](ASnapshot& a) {
       a.Slot("green", 2, "v2").Ready("green").Rolling(kStepReady, [](OperationRecord& op) {
         op.spec.gates = {Gate::kBeforeFlip};
       });
       a.op().waiting_since = TestNow();
     }},
};
INSTANTIATE_TEST_SUITE_P(Plan, AtRest, testing::ValuesIn(kRests),
                         [](const testing::TestParamInfo<Rest>& rest) { return std::string(rest.param.name); });

}  // namespace
}  // namespace lockkeeper::roll
