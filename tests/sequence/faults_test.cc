// Every case with a fault at every call: it fails, its reply is lost, the agent's process ends before or after it. Each
// ends as without.
#include <gtest/gtest.h>

#include "tests/sequence/cases.h"

namespace lockkeeper::sequence {
namespace {

using fakes::FaultKind;

const char* NameOf(FaultKind kind) {
  switch (kind) {
    case FaultKind::kNone: return "nothing";
    case FaultKind::kFail: return "fails";
    case FaultKind::kLoseReply: return "loses its reply";
    case FaultKind::kCrashBefore: return "crash before";
    case FaultKind::kCrashAfter: return "crash after";
  }
  return "";
}

std::string CaseName(const testing::TestParamInfo<Case>& info) { return info.param.name; }

class EachFault : public testing::TestWithParam<Case> {
 protected:
  void Run(FaultKind kind, int64_t at, bool reads) {
    Scenario s({});
    s.log_on = true;
    s.world.faults.Arm(kind, at, reads);
    const std::string wrong = RunCase(s, GetParam());
    ASSERT_EQ(wrong, "") << (reads ? "reading" : "changing") << " call " << at << " (" << s.world.faults.fired_at()
                         << ") " << NameOf(kind) << "\n"
                         << s.LogText();
  }
  // How many calls the case makes without a fault.
  void Count(int64_t& changes, int64_t& looks) {
    Scenario s({});
    ASSERT_EQ(RunCase(s, GetParam()), "");
    changes = s.world.faults.changes();
    looks = s.world.faults.looks();
  }
};

TEST_P(EachFault, a_fault_at_any_changing_call_changes_nothing_of_the_end) {
  int64_t changes = 0, looks = 0;
  Count(changes, looks);
  ASSERT_GT(changes, 10);
  for (FaultKind kind : {FaultKind::kFail, FaultKind::kLoseReply, FaultKind::kCrashBefore, FaultKind::kCrashAfter}) {
    for (int64_t at = 0; at < changes && !HasFatalFailure(); ++at) Run(kind, at, false);
  }
}

// Reads are many and alike: a failing one at every seventh, rotating over the cases.
TEST_P(EachFault, a_failing_look_changes_nothing_of_the_end) {
  int64_t changes = 0, looks = 0;
  Count(changes, looks);
  const int64_t first = static_cast<int64_t>(std::hash<std::string>{}(GetParam().name) % 7);
  for (int64_t at = first; at < looks && !HasFatalFailure(); at += 7) Run(FaultKind::kFail, at, true);
}

std::vector<Case> WithFaults() {
  std::vector<Case> cases;
  for (const Case& c : Cases()) {
    if (c.faults) cases.push_back(c);
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Roll, EachFault, testing::ValuesIn(WithFaults()), CaseName);

}  // namespace
}  // namespace lockkeeper::sequence
