// The admin socket, through the adapter and bare.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "api/base/json.h"
#include "api/transport/http_client.h"
#include "reconcilers/front/admin_client.h"
#include "tests/integration/front/test_front.h"

namespace lockkeeper::front {
namespace {

constexpr char kFront[] = "default/test";

class Admin : public testing::Test {
 protected:
  Admin() : client_(front_.dir()) {}

  ClientResponse Raw(const std::string& method, const std::string& target, const std::string& body = "") {
    HttpClientConfig config;
    config.base_url = "unix:" + Socket();
    HttpClient http(config);
    ClientRequest request;
    request.method = method;
    request.target = target;
    request.body = body;
    const auto response = http.Do(request);
    return response.ok() ? *response : ClientResponse{};
  }
  std::string Socket() const { return FrontAdminPath(front_.dir(), "default", "test"); }

  ManualBackend blue_;
  ManualBackend green_;
  TestFront front_;
  FrontAdminClient client_;
};

TEST_F(Admin, TheAdapterSetsReadsAndDrains) {
  const FrontTarget blue = TargetAt("blue", blue_.address(), 1);
  auto state = client_.Set(kFront, blue);
  ASSERT_TRUE(state.ok()) << state.status().ToString();
  EXPECT_EQ(state->target, blue);
  EXPECT_EQ(state->generation, 1);
  Peer client = front_.Connect();
  Peer server = blue_.Accept();
  state = client_.Get(kFront);
  ASSERT_TRUE(state.ok());
  EXPECT_EQ(state->OpenOn("blue", 1), 1);
  EXPECT_EQ(state->open.at(0).address, blue_.address());
  EXPECT_EQ(state->pid, ::getpid());
  EXPECT_EQ(state->version, "v-test");
  EXPECT_EQ(state->listen, front_.address());
  EXPECT_EQ(state->accepted_total, 1);
  ASSERT_TRUE(client_.Set(kFront, TargetAt("green", green_.address(), 2)).ok());
  const auto n = client_.Drain(kFront, "blue", 1, Seconds(5));
  ASSERT_TRUE(n.ok()) << n.status().ToString();
  EXPECT_EQ(*n, 1);
  EXPECT_TRUE(green_.Accept().ok());  // it had said nothing, and moved
}

TEST_F(Admin, ALowerRevisionIsRefusedByItsKind) {
  const FrontTarget older = TargetAt("blue", blue_.address(), 1);
  ASSERT_TRUE(client_.Set(kFront, TargetAt("green", green_.address(), 2)).ok());
  const auto refused = client_.Set(kFront, older);
  EXPECT_EQ(refused.code(), Code::kPrecondition);
  EXPECT_NE(refused.status().message().find("revision"), std::string::npos) << refused.status().message();
  EXPECT_EQ(client_.Get(kFront)->target->slot, "green");
}

TEST_F(Admin, TheSameSetTwiceIsOneFlip) {
  const FrontTarget blue = TargetAt("blue", blue_.address(), 1);
  ASSERT_TRUE(client_.Set(kFront, blue).ok());
  ASSERT_TRUE(client_.Set(kFront, blue).ok());
  EXPECT_EQ(client_.Get(kFront)->generation, 1);
}

TEST_F(Admin, ADrainOfTheCurrentBackendIsInvalid) {
  ASSERT_TRUE(client_.Set(kFront, TargetAt("blue", blue_.address(), 1)).ok());
  const auto n = client_.Drain(kFront, "blue", 1, Seconds(5));
  EXPECT_EQ(n.code(), Code::kInvalid);
  EXPECT_NE(n.status().message().find("CurrentBackend"), std::string::npos);
}

TEST_F(Admin, ASilentFrontIsUnavailableAndItsSocketIsNamed) {
  const auto state = client_.Get("default/other");
  EXPECT_EQ(state.code(), Code::kUnavailable) << state.status().ToString();
  EXPECT_NE(state.status().message().find("default.other.sock"), std::string::npos) << state.status().message();
}

TEST_F(Admin, TheSocketIsForItsOwnerAlone) {
  struct stat info {};
  ASSERT_EQ(::stat(Socket().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(Admin, AnotherUserMayLookAndNotTouch) {
  if (::geteuid() != 0) GTEST_SKIP() << "becoming another user needs root";
  ::chmod(Socket().c_str(), 0666);
  ::chmod(front_.dir().c_str(), 0755);
  const std::string body = "{}";
  const pid_t pid = ::fork();
  if (pid == 0) {
    // A thread of the parent may hold any lock: only sockets and numbers from here on.
    if (::setuid(65534) != 0) ::_exit(9);
    const int get = Raw("GET", "/status").status;
    const int put = Raw("PUT", "/target", body).status;
    const int post = Raw("POST", "/drain", body).status;
    ::_exit(get == 200 && put == 403 && post == 403 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(Admin, WhatMakesNoSenseIsAnsweredWithItsReason) {
  EXPECT_EQ(Raw("PUT", "/target", "{").status, 400);
  EXPECT_EQ(Raw("PUT", "/target", R"({"slot": 7})").status, 400);
  EXPECT_EQ(Raw("POST", "/drain", R"({"slot": "blue"})").status, 400);
  EXPECT_EQ(Raw("POST", "/drain", R"({"slot": "blue", "incarnation": 1, "deadlineSeconds": -1})").status, 400);
  EXPECT_EQ(Raw("GET", "/status?wait=never").status, 400);
  EXPECT_EQ(Raw("GET", "/status?wait=openZero:blue%231&timeout=1e9").status, 400);
  EXPECT_EQ(Raw("DELETE", "/target").status, 404);
  const auto target = TargetAt("blue", "localhost:80", 1);
  const auto refused = client_.Set(kFront, target);
  EXPECT_EQ(refused.code(), Code::kInvalid);
  EXPECT_NE(refused.status().message().find("localhost:80"), std::string::npos);
}

TEST_F(Admin, AWaitForZeroAnswersTheCounts) {
  ASSERT_TRUE(client_.Set(kFront, TargetAt("blue", blue_.address(), 1)).ok());
  EXPECT_EQ(Raw("GET", "/status?wait=openZero:blue%231&timeout=5").status, 200);
  Peer client = front_.Connect();
  ASSERT_TRUE(blue_.Accept().ok());
  const auto response = Raw("GET", "/status?wait=openZero:green%239&timeout=0");
  EXPECT_EQ(response.status, 200);
  EXPECT_TRUE(Json::Parse(response.body)->Has("generation"));
}

TEST_F(Admin, MetricsHaveTheNamesOfTheDesign) {
  ASSERT_TRUE(client_.Set(kFront, TargetAt("blue", blue_.address(), 1)).ok());
  Peer client = front_.Connect();
  Peer server = blue_.Accept();
  ASSERT_TRUE(client.Send("abc"));
  ASSERT_TRUE(server.Read(3));
  const auto response = Raw("GET", "/metrics");
  EXPECT_EQ(response.status, 200);
  for (const char* line :
       {"lockkeeper_front_connections_open{backend=\"blue#1\"} 1",
        "lockkeeper_front_connections_total{backend=\"blue#1\"} 1", "lockkeeper_front_dial_seconds_count 1",
        "lockkeeper_front_bytes_total{dir=\"up\",mode=\"copy\"} 3", "lockkeeper_front_drain_cut_total 0",
        "lockkeeper_front_accept_paused_seconds_total ", "lockkeeper_front_flips_total 0",
        "lockkeeper_front_flip_seconds_count 1", "lockkeeper_front_generation 1", "lockkeeper_front_loop_lag_seconds ",
        "# TYPE lockkeeper_front_dial_failures_total counter"}) {
    EXPECT_NE(response.body.find(line), std::string::npos) << line << "\n" << response.body;
  }
  EXPECT_EQ(Raw("GET", "/healthz").body, "ok\n");
}

}  // namespace
}  // namespace lockkeeper::front
