// SharedCluster: the one Cluster of a test program, with our CRDs.
//
// Purpose:   started by the first test that asks, ended after the last.
// Threads:   the tests' thread.
// Failure:   LK_NEED_CLUSTER skips the test, with the reason, when the programs are missing, and fails it otherwise.
#pragma once

#include <gtest/gtest.h>

#include "tests/support/peers/cluster.h"

namespace lockkeeper::peers {

// Asked again after a failure it answers the same.
Result<Cluster*> SharedCluster();

}  // namespace lockkeeper::peers

// LK_NEED_CLUSTER(cluster); defines Cluster& cluster, in a test or in a SetUp.
#define LK_NEED_CLUSTER(name)                                                                                  \
  const auto name##_result = ::lockkeeper::peers::SharedCluster();                                             \
  if (name##_result.code() == ::lockkeeper::Code::kNotFound) GTEST_SKIP() << name##_result.status().message(); \
  ASSERT_TRUE(name##_result.ok()) << name##_result.status().ToString();                                        \
  ::lockkeeper::peers::Cluster& name = **name##_result
