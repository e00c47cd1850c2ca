#include "reconcilers/fleet/fleet.h"

#include <gtest/gtest.h>

#include "api/types/conditions.h"
#include "api/types/server.h"
#include "controller/typed.h"
#include "reconcilers/heartbeat/heartbeat.h"
#include "reconcilers/upgrade/plan.h"
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

// Three Upgrades queued behind one that rolls, on a host that beats.
class Queue {
 public:
  Queue() {
    Server server;
    server.metadata.namespace_ = kKey.namespace_;
    server.metadata.name = kKey.name;
    server.spec.host = "a";
    EXPECT_TRUE(Create<Server>(api, server).ok());
    for (const char* name : {"first", "w1", "w2", "w3"}) {
      Upgrade u;
      u.metadata.namespace_ = kKey.namespace_;
      u.metadata.name = name;
      u.metadata.finalizers = {upgrade::kFinalizer};
      u.spec.server_ref.name = kKey.name;
      u.spec.version = "v2";
      const Result<Upgrade> made = Create<Upgrade>(api, u);
      EXPECT_TRUE(made.ok());
      if (std::string_view(name) == "first") uid_ = made->metadata.uid;
    }
    SetPhase(OperationPhase::kDownloading);
    EXPECT_TRUE(Create<Lease>(api, HeartbeatLease(beat_, nullptr, clock.Read())).ok());
  }

  void SetPhase(OperationPhase phase) {
    Result<Server> server = Get<Server>(api, kKey);
    ASSERT_TRUE(server.ok());
    server->status.ledger = LedgerRef{"ledger", 1, {}};
    OperationRef op;
    op.kind = "Upgrade";
    op.name = "first";
    op.uid = uid_;
    op.phase = phase;
    server->status.operation = op;
    ASSERT_TRUE(UpdateStatus<Server>(api, *server).ok());
  }
  void Beat() {
    const Result<Lease> old = Get<Lease>(api, {kSystemNamespace, HeartbeatName("a")});
    ASSERT_TRUE(old.ok());
    ++beat_.ledger_revision;
    ASSERT_TRUE(Update<Lease>(api, HeartbeatLease(beat_, &*old, clock.Read())).ok());
  }
  bool AllWait() {
    for (const char* name : {"w1", "w2", "w3"}) {
      const Result<Upgrade> u = Get<Upgrade>(api, {kKey.namespace_, name});
      const Condition* c = u.ok() ? FindCondition(u->status.conditions, "Admitted") : nullptr;
      if (c == nullptr || c->message != "waits for Upgrade first") return false;
    }
    return true;
  }
  // Calls of the fleet so far that begin with one of these; ours for statuses go by w1 to w3 only before the mark.
  int64_t Count(const std::vector<std::string>& starts) const {
    int64_t count = 0;
    for (const std::string& call : api.Calls()) {
      for (const std::string& start : starts) count += call.rfind(start, 0) == 0;
    }
    return count;
  }
  int64_t Holders() const { return Count({"get upgrades default/first"}); }
  int64_t Waiters() const { return Count({"get upgrades default/w"}); }

  MemoryApi api;
  ManualClock clock;

 private:
  HeartbeatContent beat_ = [] {
    HeartbeatContent c;
    c.host = "a";
    c.ledger_id = "ledger";
    return c;
  }();
  std::string uid_;
};

TEST(Fleet, APhaseOfTheRunningOneIsLookedAtByItAloneHoweverManyWait) {
  Queue q;
  Fleet fleet(q.api, q.clock, {});
  ASSERT_EQ(fleet.Start(), Status::Ok());
  ASSERT_TRUE(fleet.WaitUntilStarted(Seconds(20)));
  ASSERT_TRUE(WaitUntil([&] {
    q.Beat();
    q.clock.Advance(Milliseconds(1100));
    return q.AllWait();
  }));
  const auto round = [&](OperationPhase phase) {
    const int64_t before = q.Holders();
    q.SetPhase(phase);
    q.Beat();
    EXPECT_TRUE(WaitUntil([&] { return q.Holders() > before; })) << EnumName(phase);
  };
  round(OperationPhase::kBackingUp);  // what the waiters still had to do is done beside it
  round(OperationPhase::kInstalling);
  const int64_t before = q.Waiters();
  for (int i = 0; i < 5; ++i) {
    round(OperationPhase::kRestarting);
    round(OperationPhase::kVerifying);
  }
  EXPECT_LE(q.Waiters() - before, 3) << "of the 30 that one pass each for every phase would be";
  // They look again by themselves, and read neither the Server nor what would be theirs.
  const int64_t holders = q.Holders(), servers = q.Count({"get servers"}), waited = q.Waiters();
  for (int i = 0; i < 3; ++i) {
    const int64_t looked = q.Waiters();
    ASSERT_TRUE(WaitUntil([&] {
      q.Beat();
      q.clock.Advance(Seconds(1));
      return q.Waiters() >= looked + 3;
    }));
  }
  EXPECT_GE(q.Waiters() - waited, 9);
  EXPECT_LE(q.Count({"get servers"}) - servers, q.Holders() - holders + 3) << "but for who holds the place";
  EXPECT_EQ(q.Count({"get rolls default/w"}), 0);
  EXPECT_EQ(fleet.Stop(), Status::Ok());
}

}  // namespace
}  // namespace lockkeeper
