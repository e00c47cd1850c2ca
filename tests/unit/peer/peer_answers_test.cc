// What a rolled server's answers mean: unknown never reads as absent.
#include "reconcilers/peer/peer_answers.h"

#include <gtest/gtest.h>

#include <string>

namespace lockkeeper::peer {
namespace {

struct AnswerCase {
  std::string name;
  int status;
  std::string body;
  std::string object;  // asked for
  Code code;
};
void PrintTo(const AnswerCase& c, std::ostream* out) { *out << c.name; }

std::string StatusBody(const std::string& reason, const std::string& message, const std::string& name = "") {
  return R"({"kind":"Status","reason":")" + reason + R"(","message":")" + message + R"(","details":{"name":")" + name +
         "\"}}";
}

class Answers : public ::testing::TestWithParam<AnswerCase> {};

TEST_P(Answers, Mean) {
  ClientResponse answer;
  answer.status = GetParam().status;
  answer.body = GetParam().body;
  const Status status = StatusOfAnswer(answer, GetParam().object);
  EXPECT_EQ(status.code(), GetParam().code) << status.ToString();
  if (!status.ok()) {
    EXPECT_NE(status.message().find(std::to_string(GetParam().status)), std::string::npos) << status.message();
  }
}

INSTANTIATE_TEST_SUITE_P(
    Peer, Answers,
    ::testing::Values(
        AnswerCase{"AnObject", 200, "{}", "a", Code::kOk}, AnswerCase{"ACreatedObject", 201, "{}", "", Code::kOk},
        AnswerCase{"ThisObjectIsAbsent", 404, StatusBody("NotFound", "x", "a"), "a", Code::kNotFound},
        AnswerCase{"AnotherObjectIsAbsent", 404, StatusBody("NotFound", "namespace", "kube-system"), "a",
                   Code::kUnavailable},
        AnswerCase{"APathThatIsNotServedIsUnknown", 404, "404 page not found\n", "a", Code::kUnavailable},
        AnswerCase{"AListThatIsNotServedIsUnknown", 404, StatusBody("NotFound", "no such resource"), "",
                   Code::kUnavailable},
        AnswerCase{"AGuardThatDoesNotHold", 409, StatusBody("Conflict", "uid differs", "a"), "a", Code::kPrecondition},
        AnswerCase{"ACreateOfWhatIsThere", 409, StatusBody("AlreadyExists", "x", "a"), "", Code::kAlreadyExists},
        AnswerCase{"AdmissionThatIsNotReadyYet", 403, StatusBody("Forbidden", "not yet ready to handle request"), "",
                   Code::kUnavailable},
        AnswerCase{"AUserWhoMayNot", 403, StatusBody("Forbidden", "access denied"), "", Code::kForbidden},
        AnswerCase{"AWrongToken", 401, StatusBody("Unauthorized", "x"), "a", Code::kUnauthorized},
        AnswerCase{"AContextThatEnded", 504, StatusBody("Timeout", "context canceled"), "a", Code::kTimeout},
        AnswerCase{"AServerInTrouble", 500, "panic", "a", Code::kUnavailable},
        AnswerCase{"AServerThatStops", 429, "shutting down", "a", Code::kUnavailable},
        AnswerCase{"AnObjectOfTheWrongForm", 422, StatusBody("Invalid", "x"), "", Code::kInvalid}),
    [](const auto& param) { return param.param.name; });

TEST(Readyz, NamesTheFailedChecksAndKnowsAShutdown) {
  ClientResponse answer;
  answer.status = 500;
  answer.body =
      "[+]ping ok\n[-]poststarthook/kcp-start-informers failed: reason withheld\n[-]shutdown failed: reason "
      "withheld\nreadyz check failed\n";
  const ReadyzFact fact = ReadyzOfAnswer(answer);
  EXPECT_EQ(fact.status, 500);
  EXPECT_TRUE(fact.shutting_down);
  EXPECT_EQ(fact.failed_checks, "poststarthook/kcp-start-informers, shutdown");
  answer.status = 200;
  answer.body = "ok";
  EXPECT_EQ(ReadyzOfAnswer(answer), (ReadyzFact{200, false, ""}));
}

TEST(Lease, NeedsItsIdentityAndReadableTimes) {
  const std::string good =
      R"({"metadata":{"uid":"u","resourceVersion":"7"},"spec":{"holderIdentity":"h_1","leaseDurationSeconds":60,)"
      R"("renewTime":"2026-11-30T12:00:00.250000Z"}})";
  const auto lease = LeaseOf(*Json::Parse(good), Time(Seconds(5)));
  ASSERT_TRUE(lease.ok()) << lease.status().ToString();
  EXPECT_EQ(lease->holder, "h_1");
  EXPECT_EQ(FormatMicroTime(lease->renew_time), "2026-11-30T12:00:00.250000Z");
  EXPECT_EQ(lease->acquire_time, Time{});
  EXPECT_EQ(lease->read_at, Time(Seconds(5)));
  EXPECT_EQ(GuardedDelete(*lease).Get("preconditions").Dump(), R"({"uid":"u","resourceVersion":"7"})");
  EXPECT_FALSE(LeaseOf(*Json::Parse("{}"), {}).ok());
  EXPECT_FALSE(
      LeaseOf(*Json::Parse(R"({"metadata":{"uid":"u","resourceVersion":"7"},"spec":{"renewTime":"soon"}})"), {}).ok());
}

TEST(Probe, OfAWorkspaceIsReadyOnlyWithClusterAndUrl) {
  const auto ready = [](const std::string& spec, const std::string& phase) {
    return ProbeOfWorkspace(*Json::Parse(R"({"metadata":{"name":"roll-probe-a"},"spec":)" + spec +
                                         R"(,"status":{"phase":")" + phase + "\"}}"))
        .ready;
  };
  EXPECT_TRUE(ready(R"({"cluster":"c","URL":"https://x"})", "Ready"));
  EXPECT_FALSE(ready(R"({"cluster":"c","URL":"https://x"})", "Initializing"));
  EXPECT_FALSE(ready(R"({"cluster":"c"})", "Ready"));
  EXPECT_FALSE(ready("{}", "Scheduling"));
}

TEST(Probe, ObjectsAreTypedAndMarked) {
  const Json workspace = ProbeWorkspace(WorkspaceProbe(), "roll-probe-a");
  EXPECT_EQ(workspace.At({"spec", "type"}).Dump(), R"({"name":"universal","path":"root"})");
  EXPECT_EQ(workspace.At({"metadata", "labels", "lockkeeper.dev/probe"}).AsString(), "true");
  EXPECT_EQ(ProbeConfigMap(ConfigMapProbe(), "roll-probe-a").At({"metadata", "namespace"}).AsString(), "default");
}

TEST(Server, LosesItsClusterForPathsThatNameTheirOwn) {
  EXPECT_EQ(WithoutCluster("https://a:1/clusters/root"), "https://a:1");
  EXPECT_EQ(WithoutCluster("https://a:1/"), "https://a:1");
  EXPECT_EQ(WithoutCluster("https://a:1/prefix/clusters/system:admin"), "https://a:1/prefix");
}

}  // namespace
}  // namespace lockkeeper::peer
