// Builds, versions and quantities.
#include "api/types/build.h"

#include <gtest/gtest.h>

#include "api/types/quantity.h"
#include "api/types/server.h"

namespace lockkeeper {
namespace {

TEST(SameBuild, CommitsDecideWhereBothAreKnownElseVersions) {  // L14
  EXPECT_FALSE(SameBuild("v1", "aaa", "v1", "bbb")) << "two builds with one version string";
  EXPECT_TRUE(SameBuild("v1", "aaa", "v2", "aaa"));
  EXPECT_TRUE(SameBuild("v1", "", "v1", "bbb"));
  EXPECT_TRUE(SameBuild("v1", "unknown", "v1", "bbb"));
  EXPECT_FALSE(SameBuild("v1", "unknown", "v2", "unknown")) << "unknown is no commit";
  EXPECT_FALSE(SameBuild("", "", "", "")) << "nothing known is not the same";
}

TEST(SameBuild, TheExecutablesHashDecidesFirst) {
  BuildRef a, b;
  a.version = b.version = "v1";
  a.sha256 = "1";
  b.sha256 = "2";
  EXPECT_FALSE(SameBuild(a, b));
  b.version = "v2";
  b.sha256 = "1";
  EXPECT_TRUE(SameBuild(a, b));
  b.sha256 = "";
  EXPECT_FALSE(SameBuild(a, b));
}

TEST(Versions, AreOrderedAsSemanticVersionsAre) {
  const std::vector<const char*> rising = {"v0.9",          "v1.0.0-alpha",   "1.0.0-alpha.1", "v1.0.0-alpha.beta",
                                           "v1.0.0-beta.2", "v1.0.0-beta.11", "v1.0.0-rc.1",   "v1",
                                           "v1.0.1",        "v1.2",           "v1.10.0",       "v2"};
  for (size_t i = 0; i < rising.size(); ++i) {
    for (size_t j = 0; j < rising.size(); ++j) {
      const auto order = CompareVersions(rising[i], rising[j]);
      ASSERT_TRUE(order.has_value()) << rising[i] << " " << rising[j];
      EXPECT_EQ(*order < 0, i < j) << rising[i] << " " << rising[j];
      EXPECT_EQ(IsDowngrade(rising[i], rising[j]), j < i) << rising[i] << " " << rising[j];
    }
  }
  EXPECT_EQ(CompareVersions("v1.2.3+kcp-v0.26", "1.2.3"), 0) << "what follows + does not count";
}

TEST(Versions, WhatCannotBeOrderedIsNoDowngrade) {
  for (const char* text :
       {"main", "latest", "", "v", "v1.x", "1.2.3.4", "feature-1", "v1..2", "v99999999999999999999999"}) {
    EXPECT_EQ(CompareVersions(text, "v1"), std::nullopt) << text;
    EXPECT_FALSE(IsDowngrade("v9", text)) << text;
  }
  EXPECT_TRUE(IsMovingTarget("main"));
  EXPECT_FALSE(IsMovingTarget("v1"));
}

TEST(Quantities, AreReadAsKubernetesReadsThem) {
  EXPECT_EQ(*ParseCpuMillis("2"), 2000);
  EXPECT_EQ(*ParseCpuMillis("500m"), 500);
  EXPECT_EQ(*ParseCpuMillis("0.25"), 250);
  EXPECT_EQ(*ParseCpuMillis("1.5"), 1500);
  EXPECT_EQ(*ParseByteQuantity("1024"), 1024);
  EXPECT_EQ(*ParseByteQuantity("512Mi"), int64_t{512} << 20);
  EXPECT_EQ(*ParseByteQuantity("2G"), 2000000000);
  for (const char* text : {"", "m", "x", "-1", "1.2345", "1.", "99999999999999999999", "1 "})
    EXPECT_FALSE(ParseCpuMillis(text).ok()) << text;
  for (const char* text : {"", "Mi", "1.5Gi", "-1", "9999999999Ti", "1KB"})
    EXPECT_FALSE(ParseByteQuantity(text).ok()) << text;
}

TEST(Timeouts, TheOperationsOwnGoesBeforeTheServersAndZeroMeansTheDefault) {
  Timeouts server;
  server.ready_seconds = 90;
  server.stop_seconds = 0;
  TimeoutOverrides own;
  own.ready_seconds = 0;
  own.drain_seconds = 1;
  const Timeouts resolved = ResolveTimeouts(own, server);
  EXPECT_EQ(resolved.ready_seconds, 90);
  EXPECT_EQ(resolved.stop_seconds, 75);
  EXPECT_EQ(resolved.drain_seconds, 1);
  EXPECT_EQ(resolved.lease_seconds, 30);
}

TEST(Selectors, AnEmptyOneSelectsNoRunner) {
  LabelSelector selector;
  EXPECT_FALSE(selector.Matches({{"a", "b"}}));
  selector.match_labels = {{"a", "b"}};
  EXPECT_TRUE(selector.Matches({{"a", "b"}, {"c", "d"}}));
  EXPECT_FALSE(selector.Matches({{"a", "x"}}));
}

}  // namespace
}  // namespace lockkeeper
