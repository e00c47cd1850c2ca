// Random walks of one slot in a small world: what may never happen does not, whatever the order of events.
#include <map>
#include <random>

#include "tests/unit/slot/scene.h"

namespace lockkeeper::slot {
namespace {

using State = UnitStatus::State;

// A host that obeys, dies and forgets at random.
class World {
 public:
  World(uint64_t seed, std::map<StepKind, int>* counts) : rng_(seed), counts_(counts) {
    if (Coin(2)) scene.WithCompanion(Coin(2) ? 2379 : 0);
    scene.actual() = SlotActual{};
    scene.intent().stop_seconds = 6;
  }

  void Step() {
    scene.Advance(Milliseconds(static_cast<int64_t>(rng_() % 3000)));
    Happen();
    Observe();
    const Plan plan = scene.Decide();
    ++(*counts_)[plan.step];
    // A crash of the agent before the effect, or a lost reply: the note stands, memory is gone.
    if (plan.actual) {
      EXPECT_TRUE(plan.step != StepKind::kNote || *plan.actual != scene.actual())
          << "a note that changes nothing: " << plan.reason;
      scene.actual() = *plan.actual;
    }
    const bool crash = Coin(12);
    if (!crash) Act(plan);
    if (crash || Coin(20)) Forget();
  }

  Scene scene;

 private:
  bool Coin(uint64_t n) { return rng_() % n == 0; }

  void Happen() {
    SlotIntent& i = scene.intent();
    if (Coin(25)) i.running = !i.running, i.invocation += i.running ? 1 : 0, i.forget = !i.running && Coin(2);
    if (Coin(40) && i.running && !running_) ++i.invocation;
    if (running_ && Coin(30)) Die();
    if (running_ && terminated_ && Coin(10)) Die();
    if (running_ && port_ == 0 && Coin(2)) port_ = 6443;
    if (companion_ && Coin(30)) companion_ = false;
    if (companion_ && companion_port_ == 0 && Coin(2)) companion_port_ = 2379;
  }

  void Die() {
    running_ = false;
    exited_ = true;
    port_ = 0;
  }

  void Observe() {
    Snapshot& s = scene.s;
    if (Coin(15)) {
      s.unit = Unknown{"slow"};
    } else if (running_ || exited_) {
      UnitStatus u =
          scene.Unit(running_ ? State::kRunning : State::kExited, invocation_, 100 + static_cast<int>(invocation_));
      u.started_at = started_at_;
      if (port_ != 0) u.listen_ports = {port_};
      if (!running_) u.exit = UnitExit{scene.now.wall, 1, 0, false, false};
      s.unit = u;
    } else {
      s.unit = Absent{};
    }
    if (!s.entry.intent.companions.empty()) {
      if (!companion_ && companion_invocation_ == 0) {
        s.companions["kine"] = Absent{};
      } else {
        s.companions["kine"] =
            scene.Companion(companion_ ? State::kRunning : State::kExited, companion_port_, companion_invocation_);
      }
    }
    s.sigterm_sent = sent_ && terminated_;
    s.says_shutting_down = Coin(5) ? Fact<bool>(Unknown{"slow"}) : Fact<bool>(terminated_);
  }

  void Act(const Plan& plan) {
    switch (plan.step) {
      case StepKind::kNone:
      case StepKind::kNote: return;
      case StepKind::kStart:
        EXPECT_TRUE(scene.intent().running) << "started though it is not wanted";
        EXPECT_FALSE(running_) << "started though it runs";
        EXPECT_EQ(plan.invocation, scene.intent().invocation);
        EXPECT_GT(plan.invocation, last_started_) << "one invocation was started twice";
        EXPECT_EQ(scene.actual().invocation, plan.invocation) << "started before it was written down";
        EXPECT_TRUE(companion_ || scene.intent().companions.empty()) << "started before its companion";
        last_started_ = invocation_ = plan.invocation;
        started_at_ = scene.now.wall;
        running_ = true;
        exited_ = terminated_ = sent_ = false;
        return;
      case StepKind::kStartCompanion:
        EXPECT_FALSE(companion_);
        EXPECT_GT(plan.invocation, companion_invocation_);
        companion_ = true;
        companion_port_ = 0;
        companion_invocation_ = plan.invocation;
        scene.s.tries[plan.unit].started = scene.now.boot;
        return;
      case StepKind::kTerminate:
        if (plan.unit != scene.intent().unit.name) {
          EXPECT_FALSE(scene.intent().running && running_) << "a companion of a running server was stopped";
          companion_ = false;
          return;
        }
        EXPECT_TRUE(!scene.intent().running || scene.intent().invocation > invocation_)
            << "a wanted server was stopped";
        EXPECT_NE(scene.actual().sigterm_at, Time{}) << "signalled before it was written down";
        EXPECT_FALSE(terminated_ && sent_) << "SIGTERM twice in one life of the agent";
        terminated_ = sent_ = true;
        return;
      case StepKind::kKill:
        EXPECT_TRUE(terminated_ || scene.actual().sigterm_at != Time{});
        Die();
        return;
      case StepKind::kReset:
        EXPECT_FALSE(scene.intent().running);
        if (plan.unit == scene.intent().unit.name) {
          EXPECT_FALSE(running_) << "a running unit was forgotten";
          exited_ = false;
        } else {
          EXPECT_FALSE(companion_);
          companion_invocation_ = 0;
        }
        return;
    }
  }

  void Forget() {
    sent_ = false;
    scene.s.tries.clear();
  }

  std::mt19937_64 rng_;
  std::map<StepKind, int>* counts_;
  bool running_ = false;
  bool exited_ = false;
  bool terminated_ = false;
  bool sent_ = false;
  int port_ = 0;
  int64_t invocation_ = 0;
  int64_t last_started_ = 0;
  Time started_at_{};
  bool companion_ = false;
  int companion_port_ = 0;
  int64_t companion_invocation_ = 0;
};

// How often each step was taken: a walk that stands still proves nothing.
using Counts = std::map<StepKind, int>;

TEST(SlotWalk, AnyOrderOfEventsKeepsThePromises) {
  const uint64_t seed = std::random_device{}();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  Counts counts;
  for (uint64_t i = 0; i < 100; ++i) {
    World world(seed + i, &counts);
    for (int step = 0; step < 200; ++step) {
      world.Step();
      ASSERT_FALSE(::testing::Test::HasFailure()) << "seed " << seed + i << " step " << step;
    }
  }
  for (const StepKind kind : {StepKind::kNote, StepKind::kStart, StepKind::kStartCompanion, StepKind::kTerminate,
                              StepKind::kKill, StepKind::kReset}) {
    EXPECT_GT(counts[kind], 10) << StepKindName(kind);
  }
}

}  // namespace
}  // namespace lockkeeper::slot
