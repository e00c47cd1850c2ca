// kill -9 at every step of a real roll: it ends as if it had not been.
//
// LK_SAMPLE_SECONDS: how long to go on (default 40; the CI's sample is 90; 0, the default of the nightly run: every
// step, up and front, twice). LK_SAMPLE_SEED: the seed of the delays; else the time, printed.
#include <poll.h>

#include <csignal>
#include <cstdlib>
#include <random>

#include "tests/e2e/fixture.h"

#ifndef LK_KILL_SECONDS
#define LK_KILL_SECONDS 40
#endif

namespace lockkeeper {
namespace {

constexpr const char* kSteps[] = {"Admit", "Preflight", "NoteHolder", "BackUp", "Render", "Seed",
                                  "Start", "Listen",    "Ready",      "Record", "Flip",   "MemberToken",
                                  "Drain", "StopOld",   "Lease",      "Probe",  "Retire", "Done"};

double EnvNumber(const char* name, double fallback) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::atof(text) : fallback;
}

class KillE2e : public E2e {
 protected:
  // Kills `victim` once the operation is at `step` (or has passed it), after `delay`. Answers whether it was caught
  // there.
  bool KillAt(const std::string& step, Duration delay, bool front) {
    const Duration end = SystemClock().Read().boot + Seconds(30);
    bool begun = false;
    std::string now;
    while (SystemClock().Read().boot < end) {
      const Result<std::string> seen = StepNow();
      if (seen.ok()) {
        now = *seen;
        begun = begun || !now.empty();
        if (now == step || (begun && now.empty())) break;
      }
    }
    ::poll(nullptr, 0,
           static_cast<int>(delay.count() / 1000));  // not synchronisation: the moment of the kill is the input
    if (front) {
      const pid_t pid = FindProcess({" front --config", "default.kcp"});
      EXPECT_NE(pid, 0) << "the front is not there to be killed";
      if (pid != 0) ::kill(pid, SIGKILL);
    } else {
      EXPECT_TRUE(lab_.Down(SIGKILL).ok());
      const Result<double> up = lab_.Up();
      EXPECT_TRUE(up.ok()) << up.status().ToString();
    }
    return now == step;
  }

  void ExpectAsIfItHadNotBeen(const std::string& name, const std::string& version) {
    const Result<Upgrade> done = AwaitFinished(name);
    ASSERT_TRUE(done.ok()) << done.status().ToString();
    EXPECT_EQ(done->status.outcome, Outcome::kSucceeded) << done->status.error;
    const Result<Server> server = Await<Server>("kcp", [&](const Server& s) {
      return !s.status.operation && s.status.version == version && s.status.slots.size() == 1;
    });
    ASSERT_TRUE(server.ok()) << server.status().ToString();
    EXPECT_EQ(server->status.slots[0].name, server->status.active_slot);
    // Started once: the incarnation's first invocation still runs.
    EXPECT_TRUE(server->status.slots[0].invocation_id.ends_with(".1")) << server->status.slots[0].invocation_id;
    EXPECT_EQ(Overlaps("kcp"), std::vector<std::string>{});
  }
};

TEST_F(KillE2e, KilledAtAnyStepARollEndsAsIfItHadNotBeen) {
  const double budget = EnvNumber("LK_SAMPLE_SECONDS", LK_KILL_SECONDS);
  const auto seed = static_cast<uint64_t>(
      EnvNumber("LK_SAMPLE_SEED", static_cast<double>(SystemClock().Read().wall.time_since_epoch().count() % 1000000)));
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  std::mt19937_64 random(seed);
  Install();
  const Duration begun = SystemClock().Read().boot;
  const size_t steps = std::size(kSteps);
  const size_t first = random() % steps;  // the sample rotates
  int killed = 0, caught = 0;
  std::string running = kOld;
  for (size_t i = 0; i < 4 * steps; ++i) {
    if (budget > 0 && SystemClock().Read().boot - begun > Seconds(budget)) break;
    const std::string step = kSteps[(first + i / 2) % steps];
    const bool front = i % 2 == 1;
    const Duration delay = Milliseconds(static_cast<int64_t>(random() % 40));
    const std::string version = running == kOld ? kNew : kOld;
    const std::string name = "kill-" + std::to_string(i);
    SCOPED_TRACE(name + ": " + (front ? "front" : "up") + " at " + step + " after " +
                 std::to_string(delay.count() / 1000) + " ms, seed " + std::to_string(seed));
    ASSERT_EQ(MakeUpgrade(name, version, [](Upgrade& u) { u.spec.allow_downgrade = true; }), Status::Ok());
    if (KillAt(step, delay, front)) ++caught;
    ++killed;
    ExpectAsIfItHadNotBeen(name, version);
    if (HasFailure()) return;
    running = version;
  }
  std::printf("killed %d times, %d of them at the step that was meant\n", killed, caught);
  EXPECT_GT(killed, 0);
}

TEST_F(KillE2e, EndingAndStartingLockkeeperTouchesNoServerAndNoConnection) {
  Install();
  const pid_t server = FindProcess({"/bin/kcp", "slots/blue"});
  const pid_t front = FindProcess({" front --config", "default.kcp"});
  ASSERT_NE(server, 0);
  ASSERT_NE(front, 0);
  Result<load::LoadConfig> config = lab_.LoadThrough("kcp");
  ASSERT_TRUE(config.ok()) << config.status().ToString();
  config->connections = 10;
  config->rate = 100;
  load::LoadGenerator generator(*config);
  ASSERT_TRUE(generator.Start().ok());
  for (const int signal : {SIGTERM, SIGKILL}) {
    ASSERT_TRUE(lab_.Down(signal).ok());
    const Result<double> up = lab_.Up();
    ASSERT_TRUE(up.ok()) << up.status().ToString();
    ASSERT_TRUE(Await<Server>("kcp", [](const Server& s) { return s.status.active_slot == "blue"; }).ok());
  }
  const load::LoadResult load = generator.Stop();
  EXPECT_TRUE(load.Clean()) << load.ToJson().Dump();
  EXPECT_EQ(load.counts.retried, 0);
  EXPECT_EQ(load.counts.connections, 10);
  EXPECT_EQ(FindProcess({"/bin/kcp", "slots/blue"}), server);
  EXPECT_EQ(FindProcess({" front --config", "default.kcp"}), front);
}

}  // namespace
}  // namespace lockkeeper
