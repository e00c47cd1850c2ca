// A long queue: what waits for its turn costs nothing while the one before it works.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "api/base/file.h"
#include "tests/e2e/fixture.h"

namespace lockkeeper {
namespace {

// A sample of the nightly run (LK_SAMPLE_SECONDS) is to show only that the test itself works.
int Waiters() { return std::getenv("LK_SAMPLE_SECONDS") != nullptr ? 5 : 100; }

class QueueE2e : public E2e {
 protected:
  // User and system time of `up` so far.
  double CpuSeconds() const {
    const std::string stat = ReadFile("/proc/" + std::to_string(lab_.up_pid()) + "/stat").value_or("");
    const size_t after_name = stat.rfind(')');
    long long user = 0, system = 0;
    if (after_name == std::string::npos ||
        std::sscanf(stat.c_str() + after_name + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lld %lld", &user,
                    &system) != 2) {
      return 0;
    }
    return static_cast<double>(user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  }
};

TEST_F(QueueE2e, EachOfManyQueuedPreflightsCostsWhatOneOfFewDoes) {
  Install();
  const auto queue = [this](const std::string& prefix, int count) {
    const double before = CpuSeconds();
    const Time started = SystemClock().Read().wall;
    const auto name = [&](int i) { return prefix + std::to_string(i); };
    for (int i = 0; i < count; ++i) {
      EXPECT_EQ(MakeUpgrade(name(i), kNew, [](Upgrade& u) { u.spec.mode = OperationMode::kPreflight; }), Status::Ok());
    }
    for (int i = 0; i < count; ++i) {
      const Result<Upgrade> done = AwaitFinished(name(i), 300);
      ASSERT_TRUE(done.ok()) << done.status().ToString();
      EXPECT_EQ(done->status.outcome, Outcome::kSucceeded) << done->status.error;
      EXPECT_FALSE(done->status.checks.empty()) << name(i);
      EXPECT_FALSE(done->status.plan.empty()) << name(i);
    }
    const double cpu = CpuSeconds() - before;
    std::printf("%d queued preflights: %.2f CPU s (%.3f each), %.1f s\n", count, cpu, cpu / count,
                ToSeconds(SystemClock().Read().wall - started));
  };
  queue("few-", 4);
  queue("some-", Waiters() * 2 / 5);
  queue("many-", Waiters());
}

}  // namespace
}  // namespace lockkeeper
