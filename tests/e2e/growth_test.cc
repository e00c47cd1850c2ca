// Rolls without end: `up` keeps no memory, no descriptor, no thread and no file of what has ended.
#include <algorithm>
#include <cstdlib>

#include "api/base/file.h"
#include "tests/e2e/fixture.h"

namespace lockkeeper {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kMeasureMemory = false;  // freed memory is kept aside there
#else
constexpr bool kMeasureMemory = true;
#endif

// A sample of the nightly run (LK_SAMPLE_SECONDS) is to show only that the test itself works.
bool Sampled() { return std::getenv("LK_SAMPLE_SECONDS") != nullptr; }
// Of the 100 rolls after the first 50, in which the table of events and SQLite's caches fill: 0.8 MB were seen, and 5.3
// to 8 when the caches held on to whole objects.
constexpr int64_t kGrowthKib = 4 << 10;

struct Footprint {
  int64_t pss_kib = 0;
  size_t descriptors = 0;
  size_t threads = 0;
  size_t slot_units = 0;
};

class GrowthE2e : public E2e {
 protected:
  Footprint Measure() const {
    const std::string proc = "/proc/" + std::to_string(lab_.up_pid());
    Footprint out;
    const std::string rollup = ReadFile(proc + "/smaps_rollup").value_or("");
    const size_t pss = rollup.find("\nPss:");
    if (pss != std::string::npos) out.pss_kib = std::atoll(rollup.c_str() + pss + 5);
    out.descriptors = ListDir(proc + "/fd").value_or({}).size();
    out.threads = ListDir(proc + "/task").value_or({}).size();
    for (const std::string& unit : ListDir(lab_.data() + "/run").value_or({})) {
      out.slot_units += unit.find("-kcp-") != std::string::npos;
    }
    return out;
  }
  void Roll(int i) {
    const std::string name = "roll-" + std::to_string(i);
    ASSERT_EQ(MakeUpgrade(name, i % 2 == 0 ? kNew : kOld, [](Upgrade& u) { u.spec.allow_downgrade = true; }),
              Status::Ok());
    ExpectSucceeds(name);
  }
};

TEST_F(GrowthE2e, AHundredRollsLeaveNothingBehind) {
  const int warm_up = Sampled() ? 2 : 50, rolls = Sampled() ? 3 : 100;
  Install();
  for (int i = 0; i < warm_up && !HasFailure(); ++i) Roll(i);
  const Footprint before = Measure();
  for (int i = warm_up; i < warm_up + rolls && !HasFailure(); ++i) Roll(i);
  // Connections and their threads end later, those to slots that are gone within half a minute.
  Footprint after;
  (void)WaitUntil(
      [&] {
        after = Measure();
        return after.descriptors <= before.descriptors + 4 && after.threads <= before.threads + 4;
      },
      std::chrono::seconds(60));
  std::printf("PSS %lld to %lld KiB, descriptors %zu to %zu, threads %zu to %zu, slot units %zu\n",
              static_cast<long long>(before.pss_kib), static_cast<long long>(after.pss_kib), before.descriptors,
              after.descriptors, before.threads, after.threads, after.slot_units);
  EXPECT_LE(after.descriptors, before.descriptors + 4);
  EXPECT_LE(after.threads, before.threads + 4);
  EXPECT_LE(after.slot_units, 2u);
  if (kMeasureMemory) {
    EXPECT_LE(after.pss_kib, before.pss_kib + kGrowthKib);
  }
}

}  // namespace
}  // namespace lockkeeper
