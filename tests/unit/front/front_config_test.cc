#include "reconcilers/front/front_config.h"

#include <gtest/gtest.h>

#include "api/base/file.h"

namespace lockkeeper::front {
namespace {

TEST(FrontConfig, ArgumentsComeBackAsTheyWent) {
  FrontConfig config;
  config.name = "default/kcp";
  config.listen = "127.0.0.1:6443";
  config.state_dir = "/var/lib/x";
  config.admin_path = "/run/x.sock";
  config.limits.hold_connections = 4096;
  config.limits.hold_time = Seconds(180);
  config.limits.connect_timeout = Milliseconds(250);
  config.limits.keepalive.count = 5;
  const auto back = FrontConfigFromArgs(FrontArgs(config));
  ASSERT_TRUE(back.ok()) << back.status().ToString();
  EXPECT_EQ(*back, config);
}

TEST(FrontConfig, DefaultsAreThoseOfTheDesign) {
  const auto c = FrontConfigFromArgs({"--state=/s", "--admin=/a"});
  ASSERT_TRUE(c.ok());
  EXPECT_EQ(c->limits.max_connections, 8192);
  EXPECT_EQ(c->limits.hold_connections, 1024);
  EXPECT_EQ(c->limits.hold_time, Seconds(30));
  EXPECT_EQ(c->limits.connect_timeout, Seconds(1));
  EXPECT_EQ(c->limits.connect_tries, 3);
  EXPECT_EQ(c->limits.connect_budget, Seconds(3));
  EXPECT_EQ(c->limits.idle_timeout, Seconds(3600));
  EXPECT_EQ(c->limits.keepalive, (KeepaliveOptions{30, 10, 3, 60}));
}

TEST(FrontConfig, AFileGivesTheSameNamesAndFlagsOverrideIt) {
  const std::string path = testing::TempDir() + "front-config.json";
  ASSERT_TRUE(WriteFileAtomic(path, R"({"state":"/s","admin":"/a","holdSeconds":7,"maxConnections":10})").ok());
  const auto c = FrontConfigFromArgs({"--config", path, "--max-connections", "20"});
  ASSERT_TRUE(c.ok()) << c.status().ToString();
  EXPECT_EQ(c->limits.hold_time, Seconds(7));
  EXPECT_EQ(c->limits.max_connections, 20);
}

TEST(FrontConfig, WhatIsWrongIsNamed) {
  const auto message = [](const std::vector<std::string>& args) {
    return FrontConfigFromArgs(args).status().message();
  };
  EXPECT_NE(message({"--state", "/s"}).find("--admin"), std::string::npos);
  EXPECT_NE(message({"--hold-seconds", "0"}).find("--hold-seconds"), std::string::npos);
  EXPECT_NE(message({"--hold-seconds", "soon"}).find("whole number"), std::string::npos);
  EXPECT_NE(message({"--bogus", "1"}).find("--bogus"), std::string::npos);
  EXPECT_NE(message({"stray"}).find("stray"), std::string::npos);
  EXPECT_NE(message({"--listen"}).find("needs a value"), std::string::npos);
  EXPECT_FALSE(FrontConfigFromJson(*Json::Parse(R"({"state":"/s","admin":"/a","lissten":"x"})")).ok());
}

TEST(FrontConfig, AnAdminPathFitsASocketAndTwoFrontsNeverShareOne) {
  EXPECT_EQ(FrontAdminPath("/run/lk", "default", "kcp"), "/run/lk/default.kcp.sock");
  const std::string deep(90, 'd');
  const std::string a = FrontAdminPath("/" + deep, "default", "a-front");
  EXPECT_LE(a.size(), 115u);
  EXPECT_NE(a, FrontAdminPath("/" + deep, "default", "b-front"));
  EXPECT_NE(FrontAdminPath("/run", "a-b", "c"), FrontAdminPath("/run", "a", "b-c"));
}

}  // namespace
}  // namespace lockkeeper::front
