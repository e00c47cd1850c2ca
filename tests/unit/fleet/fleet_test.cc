#include "reconcilers/fleet/fleet.h"

#include <gtest/gtest.h>

#include "api/types/server.h"
#include "controller/typed.h"
#include "tests/support/wait.h"
#include "tests/unit/controller/manual_clock.h"
#include "tests/unit/controller/memory_api.h"

namespace lockkeeper {
namespace {

const ObjectKey kKey{"default", "s"};

bool SaysUnknown(Api& api) {
  const Result<Server> server = Get<Server>(api, kKey);
  if (!server.ok()) return false;
  for (const Condition& c : server->status.conditions) {
    if (c.type == "Ready") return c.status == ConditionStatus::kUnknown && c.reason == "HostUnknown";
  }
  return false;
}

// As an agent does that may write Servers and not its Lease.
void TakeBack(Api& api, const std::string& version) {
  ASSERT_TRUE(WaitUntil([&] {
    Result<Server> server = Get<Server>(api, kKey);
    if (!server.ok()) return false;
    server->status.conditions.clear();
    server->status.version = version;
    return UpdateStatus<Server>(api, *server).ok();
  }));
}

TEST(Fleet, AnAgentThatPostsAndDoesNotBeatIsToldSoAtAPaceAndNotFoughtWith) {
  MemoryApi api;
  ManualClock clock;
  Server server;
  server.metadata.namespace_ = kKey.namespace_;
  server.metadata.name = kKey.name;
  server.spec.host = "a";
  ASSERT_TRUE(Create<Server>(api, server).ok());
  Fleet fleet(api, clock, {});
  ASSERT_EQ(fleet.Start(), Status::Ok());
  ASSERT_TRUE(fleet.WaitUntilStarted(Seconds(20)));
  int written = 0;
  const auto told = [&](std::chrono::milliseconds patience) {
    TakeBack(api, std::to_string(++written));
    return WaitUntil([&] { return SaysUnknown(api); }, patience);
  };
  // The manager begins to wait for the host when it first looks.
  ASSERT_TRUE(WaitUntil([&] {
    clock.Advance(Seconds(11));
    return told(std::chrono::milliseconds(50));
  }));
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(told(std::chrono::milliseconds(200))) << "it is fought with";
  ASSERT_TRUE(WaitUntil([&] {
    clock.Advance(Seconds(11));
    return told(std::chrono::milliseconds(50));
  })) << "it is told no more";
  EXPECT_EQ(fleet.Stop(), Status::Ok());
}

}  // namespace
}  // namespace lockkeeper
