#include "tests/load/journal.h"

#include <gtest/gtest.h>

namespace lockkeeper::load {
namespace {

using Lines = std::vector<std::string>;

Journal Written() {
  Journal journal;
  journal.Attempt("a", 1);
  journal.Accept("a", 1, 11);
  journal.Attempt("a", 2);
  journal.Accept("a", 2, 12);
  journal.Attempt("a", 3);  // no answer came
  return journal;
}

TEST(Journal, AnAcceptedWriteOrALaterOneInDoubtMayBeFound) {
  EXPECT_EQ(Written().Lost({{"a", 2}}), Lines());
  EXPECT_EQ(Written().Lost({{"a", 3}}), Lines());
}

TEST(Journal, AnObjectThatIsGoneIsLost) {
  EXPECT_EQ(Written().Lost({}), Lines{"a: write 2 was accepted, the object is gone"});
}

TEST(Journal, AnOlderWriteOrOneThatNobodySentIsLoss) {
  EXPECT_EQ(Written().Lost({{"a", 1}}), Lines{"a: write 2 was accepted, found 1"});
  EXPECT_EQ(Written().Lost({{"a", 4}}), Lines{"a: write 2 was accepted, found 4"});
}

TEST(Journal, WhatWasNeverAcceptedMayBeMissing) {
  Journal journal;
  journal.Attempt("b", 1);
  EXPECT_EQ(journal.Lost({}), Lines());
  EXPECT_EQ(journal.Lost({{"b", 1}}), Lines());
}

TEST(Journal, MergedOnesHoldAllRevisions) {
  Journal other;
  other.Attempt("b", 1);
  other.Accept("b", 1, 40);
  Journal journal = Written();
  journal.Merge(other);
  EXPECT_EQ(journal.revisions(), (std::vector<int64_t>{11, 12, 40}));
  EXPECT_EQ(journal.newest_revision(), 40);
  EXPECT_EQ(journal.Lost({{"a", 2}}), Lines{"b: write 1 was accepted, the object is gone"});
}

TEST(WatchLog, CountsWhatIsMissedSeenTwiceAndOutOfOrder) {
  WatchLog log;
  for (const int64_t revision : {11, 13, 12, 13, 15}) log.Event(revision);
  EXPECT_EQ(log.events(), 5);
  EXPECT_EQ(log.duplicates(), 1);
  EXPECT_EQ(log.out_of_order(), 1);
  EXPECT_EQ(log.newest(), 15);
  EXPECT_EQ(log.Missed({11, 12, 13, 15}), 0);
  EXPECT_EQ(log.Missed({11, 14, 16}), 2);
}

TEST(Revisions, AreNumbersOrNone) {
  Json object;
  EXPECT_EQ(RevisionOf(object), 0);
  object["metadata"].Set("resourceVersion", "42");
  EXPECT_EQ(RevisionOf(object), 42);
  object["metadata"].Set("resourceVersion", "42x");
  EXPECT_EQ(RevisionOf(object), 0);
}

}  // namespace
}  // namespace lockkeeper::load
