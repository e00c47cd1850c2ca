// kill -9 at every step of a real roll: it ends as if it had not been.
//
// LK_SAMPLE_SECONDS: how long to go on (default 25; the CI's sample is 180; 0, the default of the nightly run: every
// step, up and front, twice). LK_SAMPLE_SEED: the seed of the delays; else the time, printed.
#include <poll.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <random>

#include "api/base/file.h"
#include "tests/e2e/fixture.h"

#ifndef LK_KILL_SECONDS
#define LK_KILL_SECONDS 25
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

  // Where the front of kcp sent new connections, in order, as its own log tells: each change once.
  std::vector<std::string> Targets() const {
    std::vector<std::string> targets;
    for (const std::string& line : LogLines(lab_.data() + "/fronts/default.kcp/log")) {
      // "front flipped from=X to=Y revision=N", and "resumed target=Y" of one that was started again.
      const size_t flipped = line.find(" to="), resumed = line.find("resumed target=");
      if (line.find("front flipped") == std::string::npos && resumed == std::string::npos) continue;
      const size_t begin = resumed != std::string::npos ? resumed + 15 : flipped + 4;
      const std::string target = line.substr(begin, line.find(' ', begin) - begin);
      if (targets.empty() || targets.back() != target) targets.push_back(target);
    }
    return targets;
  }
  // Processes of kcp's slots that came as far as to listen, ever.
  size_t Starts() const {
    size_t starts = 0;
    for (const char* slot : {"blue", "green"}) {
      for (const std::string& line : LogLines(lab_.data() + "/servers/default/kcp/logs/" + slot)) {
        starts += line.find(" listening port=") != std::string::npos;
      }
    }
    return starts;
  }

  // Counts from here.
  void Note() {
    targets_ = Targets().size();
    starts_ = Starts();
  }

  void ExpectOneFlipAndOneStart() {
    const std::vector<std::string> targets = Targets();
    EXPECT_EQ(targets.size(), targets_ + 1)
        << "the front flips once an operation; it is on " << (targets.empty() ? "nothing" : targets.back());
    targets_ = targets.size();
    const size_t starts = Starts();
    EXPECT_EQ(starts, starts_ + 1) << "each slot is started once an invocation";
    starts_ = starts;
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
    ExpectOneFlipAndOneStart();
  }

 private:
  // Of a log and of what was rotated away, oldest first.
  static std::vector<std::string> LogLines(const std::string& folder) {
    std::string text;
    for (int i = 9; i >= 0; --i) {
      text += ReadFile(folder + "/current.log" + (i == 0 ? "" : "." + std::to_string(i))).value_or("");
    }
    std::vector<std::string> lines;
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size());
      lines.push_back(text.substr(at, end - at));
      at = end + 1;
    }
    return lines;
  }

  size_t targets_ = 0, starts_ = 0;
};

TEST_F(KillE2e, KilledAtAnyStepARollEndsAsIfItHadNotBeen) {
  const double budget = EnvNumber("LK_SAMPLE_SECONDS", LK_KILL_SECONDS);
  const auto seed = static_cast<uint64_t>(
      EnvNumber("LK_SAMPLE_SEED", static_cast<double>(SystemClock().Read().wall.time_since_epoch().count() % 1000000)));
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  std::mt19937_64 random(seed);
  Install();
  Note();
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

TEST_F(KillE2e, TwentyQuickRestartsInARollAndAtRestStartNothingTwice) {
  Install();
  Note();
  const auto restart = [&](int times) {
    for (int i = 0; i < times; ++i) {
      ASSERT_TRUE(lab_.Down(SIGKILL).ok());
      const Result<double> up = lab_.Up();
      ASSERT_TRUE(up.ok()) << up.status().ToString();
    }
  };
  ASSERT_EQ(MakeUpgrade("up", kNew), Status::Ok());
  ASSERT_TRUE(WaitUntil([&] { return !StepNow().value_or("").empty(); }));
  ASSERT_NO_FATAL_FAILURE(restart(10));
  ExpectAsIfItHadNotBeen("up", kNew);
  const pid_t serving = FindProcess({"/bin/kcp", "slots/green"});
  const pid_t front = FindProcess({" front --config", "default.kcp"});
  const size_t starts = Starts();
  ASSERT_NO_FATAL_FAILURE(restart(10));
  ASSERT_TRUE(Await<Server>("kcp", [](const Server& s) { return SaysReady(s) && !s.status.operation; }).ok());
  EXPECT_EQ(Starts(), starts);
  EXPECT_EQ(FindProcess({"/bin/kcp", "slots/green"}), serving);
  EXPECT_EQ(FindProcess({" front --config", "default.kcp"}), front);
  const std::string log = lab_.UpLog();
  EXPECT_EQ(log.find(" error "), std::string::npos) << log.substr(log.find(" error "), 300);
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
