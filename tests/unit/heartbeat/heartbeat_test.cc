#include "reconcilers/heartbeat/heartbeat.h"

#include <gtest/gtest.h>

namespace lockkeeper {
namespace {

Lease At(const std::string& revision, HeartbeatContent content = {}) {
  content.host = "a";
  Lease lease = HeartbeatLease(content, nullptr, Now{});
  lease.metadata.uid = "u";
  lease.metadata.resource_version = revision;
  return lease;
}

HeartbeatContent Self() {
  HeartbeatContent self;
  self.host = "a";
  self.identity = "a_1";
  self.ledger_id = "L1";
  self.ledger_revision = 10;
  self.machine_id = "m";
  return self;
}

TEST(HostTracker, AHostNobodyLookedAtIsUndetermined) {
  EXPECT_EQ(HostTracker().Of("a", Seconds(1000)), HostTracker::State::kUndetermined);
}

TEST(HostTracker, AHeartbeatThatOnlyStoodThereAtFirstSightIsNeitherFreshNorLostUntilItWasWatchedFor40Seconds) {
  HostTracker t;
  t.Observe("a", At("1"), Seconds(100));
  EXPECT_EQ(t.Of("a", Seconds(100)), HostTracker::State::kUndetermined);
  EXPECT_EQ(t.Of("a", Seconds(139.9)), HostTracker::State::kUndetermined);
  EXPECT_EQ(t.ChangesIn("a", Seconds(139)), Seconds(1));
  EXPECT_EQ(t.Of("a", Seconds(140)), HostTracker::State::kLost);
}

TEST(HostTracker, AHeartbeatSeenToChangeIsFreshFor40SecondsThenLostThenFreshAgain) {
  HostTracker t;
  t.Observe("a", At("1"), Seconds(0));
  t.Observe("a", At("2"), Seconds(5));
  EXPECT_EQ(t.Of("a", Seconds(44)), HostTracker::State::kFresh);
  EXPECT_EQ(t.Of("a", Seconds(45)), HostTracker::State::kLost);
  t.Observe("a", At("3"), Seconds(60));
  EXPECT_EQ(t.Of("a", Seconds(60)), HostTracker::State::kFresh);
}

TEST(HostTracker, AHostWithoutAHeartbeatIsUnknownAfter10SecondsOfWatching) {
  HostTracker t;
  t.Observe("a", Absent{}, Seconds(0));
  EXPECT_EQ(t.Of("a", Seconds(9)), HostTracker::State::kUndetermined);
  EXPECT_EQ(t.Of("a", Seconds(10)), HostTracker::State::kNeverSeen);
  t.Observe("a", At("1"), Seconds(12));
  EXPECT_EQ(t.Of("a", Seconds(12)), HostTracker::State::kFresh) << "its creation was seen";
}

TEST(HostTracker, AnUnreadableHeartbeatChangesNothing) {
  HostTracker t;
  t.Observe("a", At("1"), Seconds(0));
  t.Observe("a", At("2"), Seconds(1));
  t.Observe("a", Unknown{"503"}, Seconds(30));
  EXPECT_EQ(t.Of("a", Seconds(40)), HostTracker::State::kFresh);
  EXPECT_EQ(t.Of("a", Seconds(41)), HostTracker::State::kLost);
}

TEST(HostTracker, ItRemembersWhatWasPostedForEachServer) {
  HeartbeatContent content;
  content.posted = {{"uid-1", 7}, {"uid-2", 9}};
  content.ledger_id = "L";
  HostTracker t;
  t.Observe("a", At("1", content), Seconds(0));
  EXPECT_EQ(t.Posted("a", "uid-1"), 7);
  EXPECT_EQ(t.Posted("a", "other"), 0);
  EXPECT_EQ(t.LedgerId("a"), "L");
}

TEST(Heartbeat, ContentSurvivesTheLease) {
  HeartbeatContent content = Self();
  content.boot_id = "b";
  content.posted = {{"uid", 42}};
  EXPECT_EQ(ParseHeartbeat(HeartbeatLease(content, nullptr, Now{})), content);
}

TEST(Heartbeat, RenewingKeepsAcquireTimeAndResourceVersionAndATakeOverCountsATransition) {
  const Now first{Time(Seconds(100)), Seconds(1), "b"};
  const Now later{Time(Seconds(200)), Seconds(2), "b"};
  Lease lease = HeartbeatLease(Self(), nullptr, first);
  lease.metadata.resource_version = "5";
  const Lease renewed = HeartbeatLease(Self(), &lease, later);
  EXPECT_EQ(renewed.spec.acquire_time, first.wall);
  EXPECT_EQ(renewed.spec.renew_time, later.wall);
  EXPECT_EQ(renewed.metadata.resource_version, "5");
  HeartbeatContent other = Self();
  other.identity = "a_2";
  EXPECT_EQ(HeartbeatLease(other, &lease, later).spec.lease_transitions, 1);
}

struct JudgeRow {
  const char* name;
  Fact<Lease> lease;
  Duration silent;
  bool take_over;
  HeartbeatVerdict want;
};

HeartbeatContent With(const std::string& ledger, int64_t revision, const std::string& machine) {
  HeartbeatContent c = Self();
  c.identity = "a_other";
  c.ledger_id = ledger;
  c.ledger_revision = revision;
  c.machine_id = machine;
  return c;
}

TEST(Heartbeat, Judgement) {
  const JudgeRow rows[] = {
      {"none yet", Absent{}, {}, false, HeartbeatVerdict::kOurs},
      {"unreadable", Unknown{"503"}, {}, false, HeartbeatVerdict::kUnknown},
      {"our ledger, an earlier process", At("1", With("L1", 10, "m")), {}, false, HeartbeatVerdict::kOurs},
      {"our ledger had been further", At("1", With("L1", 11, "m")), {}, false, HeartbeatVerdict::kLedgerOlder},
      {"another ledger on this machine", At("1", With("L2", 3, "m")), Seconds(99), true, HeartbeatVerdict::kLedgerLost},
      {"another machine", At("1", With("L2", 3, "x")), {}, false, HeartbeatVerdict::kHostNameTaken},
      {"another machine, take-over too early", At("1", With("L2", 3, "x")), Seconds(39), true,
       HeartbeatVerdict::kHostNameTaken},
      {"another machine, silent, not asked for", At("1", With("L2", 3, "x")), Seconds(99), false,
       HeartbeatVerdict::kHostNameTaken},
      {"another machine, silent, take-over", At("1", With("L2", 3, "x")), Seconds(40), true, HeartbeatVerdict::kOurs},
  };
  for (const JudgeRow& row : rows) {
    EXPECT_EQ(JudgeHeartbeat(row.lease, Self(), row.silent, row.take_over).verdict, row.want) << row.name;
  }
}

}  // namespace
}  // namespace lockkeeper
