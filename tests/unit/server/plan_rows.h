// Rows of the plan's table: a world, and what is decided in it. The tests over them are in plan_test.cc.
#pragma once

#include <functional>
#include <ostream>
#include <vector>

#include "tests/unit/server/a_snapshot.h"

namespace lockkeeper::roll {

using Edit = std::function<void(ASnapshot&)>;

struct Row {
  const char* name;  // a sentence
  Edit world;
  const char* reason;  // of the plan
  // What the commit must say; empty: the plan must have no commit.
  std::function<bool(const ServerRecord&)> commit = {};
};
inline void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

// A lease from before the live slot was started, which has stood for so long.
inline ASnapshot& Leased(ASnapshot& a, const char* holder, Duration stands) {
  a.rec().spec.lease.emplace();
  const Time then = TestNow().wall - Seconds(1000);
  a.s().lease.lease = LeaseFact{"uid", "7", holder, then, then, 60, TestNow().wall};
  a.s().lease.unchanged_for = stands;
  return a;
}

// Of the steps Lease and Probe.
std::vector<Row> LeaseRows();

}  // namespace lockkeeper::roll
