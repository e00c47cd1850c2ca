// Every case with a fault at every call: it fails, its reply is lost, the agent's process ends before or after it. Each
// ends as without.
//
// In the suite a sample: LK_FAULT_RUNS of them, drawn by LK_SAMPLE_SEED (else the time; printed), and no longer than
// LK_SAMPLE_SECONDS. All of them in the nightly program. LK_FAULT="CASE KIND CALL" runs one again.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <sstream>

#include "tests/sequence/cases.h"

#ifndef LK_FAULT_RUNS
#define LK_FAULT_RUNS 150
#endif

namespace lockkeeper::sequence {
namespace {

using fakes::FaultKind;

struct Kind {
  FaultKind kind;
  bool reads;  // at the calls that read, else at those that change something
  const char* name;
};
constexpr Kind kKinds[] = {{FaultKind::kFail, false, "fails"},
                           {FaultKind::kLoseReply, false, "loses-its-reply"},
                           {FaultKind::kCrashBefore, false, "crash-before"},
                           {FaultKind::kCrashAfter, false, "crash-after"},
                           {FaultKind::kFail, true, "look-fails"}};
// Looks are many and alike: every seventh, rotating over the cases.
constexpr int64_t kLooksApart = 7;

struct FaultRun {
  const Case* test;
  const Kind* kind;
  int64_t call;
  std::string Text() const { return test->name + " " + kind->name + " " + std::to_string(call); }
};

// What the run came to, "" when all is well.
std::string Outcome(const FaultRun& run) {
  Scenario s({});
  s.log_on = true;
  s.world.faults.Arm(run.kind->kind, run.call, run.kind->reads);
  const std::string wrong = RunCase(s, *run.test);
  if (wrong.empty()) return "";
  return wrong + "\nat " + s.world.faults.fired_at() + "; LK_FAULT=\"" + run.Text() + "\" runs it again\n" +
         s.LogText();
}

// The runs of a case, from the calls that it makes without a fault.
void AddRuns(const Case& test, std::vector<FaultRun>& runs) {
  Scenario s({});
  ASSERT_EQ(RunCase(s, test), "") << test.name;
  ASSERT_GT(s.world.faults.changes(), 5) << test.name;
  const auto first = static_cast<int64_t>(std::hash<std::string>{}(test.name) % kLooksApart);
  for (const Kind& kind : kKinds) {
    const int64_t calls = kind.reads ? s.world.faults.looks() : s.world.faults.changes();
    const int64_t apart = kind.reads ? kLooksApart : 1;
    for (int64_t call = kind.reads ? first : 0; call < calls; call += apart) runs.push_back({&test, &kind, call});
  }
}

std::vector<FaultRun> AllRuns() {
  std::vector<FaultRun> runs;
  for (const Case& test : Cases()) {
    if (test.faults) AddRuns(test, runs);
  }
  return runs;
}

// Of "CASE KIND CALL".
std::vector<FaultRun> Named(const char* text) {
  std::istringstream in(text);
  std::string name, kind_name;
  int64_t call = 0;
  in >> name >> kind_name >> call;
  for (const Case& test : Cases()) {
    for (const Kind& kind : kKinds) {
      if (test.name == name && kind.name == kind_name) return {{&test, &kind, call}};
    }
  }
  return {};
}

int64_t Environment(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::atoll(text) : otherwise;
}

TEST(Faults, a_fault_at_any_call_changes_nothing_of_the_end) {
  if (const char* one = std::getenv("LK_FAULT"); one != nullptr) {
    const std::vector<FaultRun> runs = Named(one);
    ASSERT_FALSE(runs.empty()) << "no such run: " << one;
    ASSERT_EQ(Outcome(runs.front()), "");
    return;
  }
  const Time begun = SystemClock().Read().wall;
  const auto seed = static_cast<uint64_t>(Environment("LK_SAMPLE_SEED", begun.time_since_epoch().count() / 1000000));
  const Duration longest = Seconds(static_cast<double>(Environment("LK_SAMPLE_SECONDS", 0)));
  std::vector<FaultRun> runs = AllRuns();
  ASSERT_FALSE(HasFatalFailure());
  const size_t all = runs.size();
  std::mt19937_64 random(seed);
  std::shuffle(runs.begin(), runs.end(), random);
  if (LK_FAULT_RUNS != 0) runs.resize(std::min<size_t>(runs.size(), LK_FAULT_RUNS));
  size_t done = 0;
  for (const FaultRun& run : runs) {
    if (longest != Duration{} && SystemClock().Read().wall - begun > longest) break;
    EXPECT_EQ(Outcome(run), "") << "seed " << seed;
    ++done;
  }
  std::printf("%zu of %zu faults, seed %llu\n", done, all, static_cast<unsigned long long>(seed));
}

}  // namespace
}  // namespace lockkeeper::sequence
