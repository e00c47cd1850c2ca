// Health texts, journals and their oracle, tokens.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "api/base/file.h"
#include "api/server/kcp/gate.h"
#include "api/server/kcp/health.h"
#include "api/server/kcp/journal.h"
#include "api/server/kcp/tokens.h"

namespace lockkeeper::kcp {
namespace {

Health Checks(bool etcd, bool shutdown) {
  Health health;
  health.Add("ping", Probes::kAll, [] { return true; });
  health.Add("etcd", Probes::kAll, [etcd] { return etcd; });
  health.Add("loopback-serving-certificate", Probes::kNotReadyz, [] { return true; });
  health.Add("shutdown", Probes::kReadyzOnly, [shutdown] { return !shutdown; });
  return health;
}

TEST(Health, IsShortWhenAllIsWellAndVerboseOnDemand) {  // 2.2
  const Health health = Checks(true, false);
  EXPECT_EQ(health.Answer("readyz", "", false, {}).body, "ok");
  EXPECT_EQ(health.Answer("readyz", "", true, {}).body,
            "[+]ping ok\n[+]etcd ok\n[+]shutdown ok\nreadyz check passed\n");
  EXPECT_EQ(health.Answer("livez", "", true, {}).body,
            "[+]ping ok\n[+]etcd ok\n[+]loopback-serving-certificate ok\nlivez check passed\n");
}

TEST(Health, IsAlwaysVerboseWhenSomethingFailedAndHonoursExclude) {  // 2.1, 2.2
  const Health health = Checks(false, true);
  const HealthAnswer red = health.Answer("readyz", "", false, {});
  EXPECT_EQ(red.status, 500);
  EXPECT_EQ(red.body,
            "[+]ping ok\n[-]etcd failed: reason withheld\n[-]shutdown failed: reason withheld\nreadyz check failed\n");
  EXPECT_EQ(health.Answer("readyz", "", false, {"etcd", "shutdown"}).body, "ok");
  EXPECT_EQ(health.Answer("livez", "", false, {"etcd"}).status, 200) << "a shutdown is no matter of livez";
  EXPECT_EQ(health.Answer("readyz", "etcd", false, {}).status, 500);
  EXPECT_EQ(health.Answer("readyz", "ping", false, {}).status, 200);
  EXPECT_EQ(health.Answer("livez", "shutdown", false, {}).status, 404);
}

Json Line(int64_t boot, int64_t pid, const char* event, const char* kind, int64_t span) {
  return Json::MakeObject({{"boot", boot}, {"pid", pid}, {"event", event}, {"kind", kind}, {"span", span}});
}

TEST(Oracle, SeesTwoProcessesAtOnce) {
  const auto overlaps = [](std::vector<Json> lines) { return FindOverlaps(SpansOf(lines)).size(); };
  EXPECT_EQ(overlaps({Line(1, 10, "begin", "leading", 1), Line(5, 10, "end", "leading", 1),
                      Line(6, 20, "begin", "leading", 1), Line(9, 20, "end", "leading", 1)}),
            0u);
  EXPECT_EQ(overlaps({Line(1, 10, "begin", "leading", 1), Line(4, 20, "begin", "leading", 1),
                      Line(5, 10, "end", "leading", 1), Line(9, 20, "end", "leading", 1)}),
            1u);
  EXPECT_EQ(overlaps({Line(1, 10, "begin", "reconcile", 1), Line(2, 10, "begin", "reconcile", 2),
                      Line(3, 10, "end", "reconcile", 2), Line(4, 10, "end", "reconcile", 1)}),
            0u)
      << "one process may do two things";
  EXPECT_EQ(overlaps({Line(1, 10, "begin", "leading", 1), Line(2, 20, "begin", "reconcile", 1),
                      Line(3, 20, "end", "reconcile", 1), Line(4, 10, "end", "leading", 1)}),
            0u)
      << "kinds are judged apart";
}

TEST(Oracle, EndsTheSpanOfAKilledProcessAtItsLastLine) {
  std::vector<Json> lines = {Line(1, 10, "begin", "leading", 1), Line(3, 10, "begin", "reconcile", 2),
                             Line(4, 10, "end", "reconcile", 2), Line(7, 20, "begin", "leading", 1)};
  EXPECT_TRUE(FindOverlaps(SpansOf(lines)).empty());
  lines.push_back(Line(8, 10, "begin", "reconcile", 3));  // it was alive after all
  EXPECT_EQ(FindOverlaps(SpansOf(lines)).size(), 1u);
}

TEST(Journal, IsReadInTheOrderOfItsClockAcrossFiles) {
  const std::string a = ::testing::TempDir() + "journal_a", b = ::testing::TempDir() + "journal_b";
  std::remove(a.c_str());
  std::remove(b.c_str());
  auto first = Journal::Open(a, "blue"), second = Journal::Open(b, "green");
  ASSERT_TRUE(first.ok() && second.ok());
  (*first)->Append(Json::MakeObject({{"event", "x"}}), Milliseconds(5));
  (*second)->Append(Json::MakeObject({{"event", "y"}}), Milliseconds(3));
  auto lines = ReadJournals({a, b});
  ASSERT_TRUE(lines.ok()) << lines.status().ToString();
  ASSERT_EQ(lines->size(), 2u);
  EXPECT_EQ((*lines)[0].Get("slot").AsString(), "green");
  EXPECT_EQ((*lines)[1].Get("event").AsString(), "x");
  EXPECT_FALSE((*Journal::Open("", "blue"))->enabled());
  EXPECT_FALSE(Journal::Open("/nowhere/at/all", "blue").ok());
}

TEST(Tokens, TellShardAdminByItsHashAndOthersByValue) {  // S4, 2.18
  const std::string path = ::testing::TempDir() + "tokens_test.csv";
  ASSERT_TRUE(WriteFileAtomic(path, "t1,ops,1,\"system:kcp:admin,team\"\n").ok());
  RootFiles files;
  files.shard_admin_hash = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";  // of "secret"
  files.kcp_admin_token = "volatile";
  const auto tokens = Tokens::Load(files, path);
  ASSERT_TRUE(tokens.ok()) << tokens.status().ToString();
  const auto find = [&](const std::string& header) {
    HttpRequest request;
    if (!header.empty()) request.headers.emplace("authorization", header);
    return tokens->Find(request);
  };
  EXPECT_EQ(find("Bearer secret")->token_class, TokenClass::kShardAdmin);
  EXPECT_EQ(find("Bearer volatile")->token_class, TokenClass::kKcpAdmin);
  EXPECT_EQ(find("Bearer t1")->user.name, "ops");
  EXPECT_EQ(find("")->user.name, "system:anonymous");
  EXPECT_FALSE(find("Bearer nobody"));
  EXPECT_FALSE(find("Basic secret"));
  EXPECT_TRUE(MayUse(find("Bearer secret")->user, "system:admin"));
  EXPECT_FALSE(MayUse(find("Bearer volatile")->user, "system:admin"));
  EXPECT_TRUE(MayUse(find("Bearer t1")->user, "root:a"));
  EXPECT_FALSE(MayUse(find("")->user, "root"));
  EXPECT_EQ(Tokens::Load(files, "/nowhere").code(), Code::kNotFound);
  std::remove(path.c_str());
}

TEST(Versions, AreComparedByTheirNumbers) {
  EXPECT_TRUE(IsNewerVersion("v0.28.0", "v0.27.9"));
  EXPECT_TRUE(IsNewerVersion("v0.100.0", "v0.28.0"));
  EXPECT_FALSE(IsNewerVersion("v0.28.0", "v0.28.0"));
  EXPECT_FALSE(IsNewerVersion("v0.27.1", "v0.28"));
}

}  // namespace
}  // namespace lockkeeper::kcp
