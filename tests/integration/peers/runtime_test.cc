// Reflector and cache against a real kube-apiserver: whatever happens to the server, the cache equals it afterwards and
// the handlers were told of all that became of each object.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>

#include "api/base/file.h"
#include "tests/integration/peers/mirror.h"
#include "tests/support/peers/shared.h"
#include "tests/support/wait.h"

// Of the nightly run: a stop that outlasts every patience.
#ifndef LK_STOP_SECONDS
#define LK_STOP_SECONDS 4
#endif

namespace lockkeeper::peers {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kMany = 10000;
constexpr int kPage = 500;

class PeersRuntime : public ::testing::Test {
 protected:
  void SetUp() override {
    if (InSample(LK_STOP_SECONDS)) GTEST_SKIP() << "takes longer than the sample of a nightly run";
    LK_NEED_CLUSTER(shared);
    cluster_ = &shared;
    static int number = 0;
    namespace_ = "runtime-" + std::to_string(++number);
    ASSERT_EQ(MakeNamespace(api(), namespace_), Status::Ok());
  }
  Cluster& cluster() { return *cluster_; }
  Api& api() { return cluster_->api(); }
  ObjectKey Key(const std::string& name) const { return {namespace_, name}; }

  std::unique_ptr<Mirror> Start(ReflectorOptions options = {}) {
    auto mirror = std::make_unique<Mirror>(cluster().Rest(), namespace_, options);
    EXPECT_TRUE(mirror->cache().WaitForSync(Seconds(60)));
    return mirror;
  }
  Status Write(const std::string& name, const std::string& value) {
    const Status made = api().Create(kConfigMaps, MakeMap(Key(name), value)).status();
    if (made.code() != Code::kAlreadyExists) return made;
    return api().Update(kConfigMaps, MakeMap(Key(name), value)).status();
  }
  // The end of each test: all is equal, what is written now is seen, and no event was out of place.
  void ExpectEqual(const Mirror& mirror, milliseconds patience = seconds(60)) {
    EXPECT_EQ(mirror.Differs(api(), patience), "");
    EXPECT_EQ(Write("after", std::to_string(++after_)), Status::Ok());
    EXPECT_EQ(mirror.Differs(api(), patience), "");
    EXPECT_EQ(mirror.Faults(), std::vector<std::string>{});
  }

  Cluster* cluster_ = nullptr;
  std::string namespace_;
  int after_ = 0;
};

TEST_F(PeersRuntime, TenThousandObjectsComeInPagesByAListAndByAStream) {
  ASSERT_EQ(MakeMany(cluster().Rest(), namespace_, "many-", kMany), Status::Ok());
  ListOptions options;
  options.limit = kPage;
  int pages = 0, items = 0;
  do {
    const Result<ListMeta> page = api().ListEach(kConfigMaps, namespace_, options, [&](Json) { ++items; });
    ASSERT_TRUE(page.ok()) << page.status().ToString();
    options.continue_token = page->continue_token;
    ++pages;
  } while (!options.continue_token.empty());
  EXPECT_EQ(items, kMany);
  EXPECT_EQ(pages, kMany / kPage);
  for (const bool stream : {true, false}) {
    ReflectorOptions how;
    how.watch_list = stream;
    how.page_size = kPage;
    const auto begun = std::chrono::steady_clock::now();
    const auto mirror = Start(how);
    const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    std::printf("%d objects %s: %.2f s\n", kMany, stream ? "by a stream" : "by a list", took);
    EXPECT_EQ(mirror->cache().size(), static_cast<size_t>(kMany) + (stream ? 0 : 1));
    ExpectEqual(*mirror);
  }
}

TEST_F(PeersRuntime, AVersionThatTheServerHasNotReachedIsExpired) {
  ASSERT_EQ(Write("a", "1"), Status::Ok());
  ListOptions options;
  options.resource_version = "1000000000";
  options.resource_version_match = "NotOlderThan";
  const Result<ListMeta> list = api().ListEach(kConfigMaps, namespace_, options, [](Json) {});
  EXPECT_EQ(list.code(), Code::kExpired) << list.status().ToString();
  EXPECT_NE(list.status().message().find("Too large resource version"), std::string::npos) << list.status().message();
}

#if LK_STOP_SECONDS >= 75
// The server sends one a minute to a watch that is behind it, and none to one that is as far as it.
TEST_F(PeersRuntime, BookmarksSayHowFarAQuietWatchHasCome) {
  const auto mirror = Start();
  ASSERT_EQ(MakeNamespace(api(), namespace_ + "-other"), Status::Ok());
  const Result<Json> other = api().Create(kConfigMaps, MakeMap({namespace_ + "-other", "b"}, "1"));
  ASSERT_TRUE(other.ok());
  EXPECT_TRUE(mirror->cache().WaitForVersion(ResourceVersionOf(*other), Seconds(70)));
  EXPECT_EQ(mirror->Restarts("silent"), 0) << "the watch is given up before its bookmark comes";
}
#endif

TEST_F(PeersRuntime, AQuietWatchIsFoundToBeRightAndGoesOn) {
  ReflectorOptions options;
  options.idle_timeout = seconds(1);
  const auto mirror = Start(options);
  ASSERT_EQ(Write("a", "1"), Status::Ok());
  ASSERT_TRUE(WaitUntil([&] { return mirror->Restarts("silent") >= 2; }));
  EXPECT_LT(mirror->cache().SinceLastActivity(), Seconds(2)) << "readiness would be lost";
  ExpectEqual(*mirror);
}

TEST_F(PeersRuntime, AnUpdateOfAnOldStateIsAConflictAndOneOfTheNewStateIsNot) {
  const Result<Json> first = api().Create(kConfigMaps, MakeMap(Key("a"), "1"));
  ASSERT_TRUE(first.ok()) << first.status().ToString();
  ASSERT_EQ(Write("a", "2"), Status::Ok());
  EXPECT_EQ(api().Update(kConfigMaps, *first).code(), Code::kConflict);
  Json patch = Json::MakeObject({{"metadata", Json::MakeObject({{"resourceVersion", ResourceVersionOf(*first)}})},
                                 {"data", Json::MakeObject({{"value", "3"}})}});
  EXPECT_EQ(api().Patch(kConfigMaps, Key("a"), PatchType::kMerge, patch, "").code(), Code::kConflict);
  DeleteOptions only;
  only.resource_version = ResourceVersionOf(*first);
  EXPECT_EQ(api().Delete(kConfigMaps, Key("a"), only).code(), Code::kConflict);
  const Result<Json> now = api().Get(kConfigMaps, Key("a"));
  ASSERT_TRUE(now.ok());
  patch["metadata"].Set("resourceVersion", ResourceVersionOf(*now));
  EXPECT_TRUE(api().Patch(kConfigMaps, Key("a"), PatchType::kMerge, patch, "").ok());
}

TEST_F(PeersRuntime, AWatchFromBeforeACompactionIsExpiredAndListedAgain) {
  ReflectorOptions options;
  options.away_after = std::chrono::hours(1);  // it is watched on, not listed for having been away
  const auto mirror = Start(options);
  ASSERT_EQ(Write("a", "1"), Status::Ok());
  ASSERT_EQ(Write("gone", "1"), Status::Ok());
  ASSERT_EQ(mirror->Differs(api()), "");
  mirror->network().Cut();
  ASSERT_EQ(Write("a", "2"), Status::Ok());
  ASSERT_TRUE(api().Delete(kConfigMaps, Key("gone"), {}).ok());
  ASSERT_EQ(Write("new", "1"), Status::Ok());
  const Result<int64_t> compacted = cluster().Compact();
  ASSERT_TRUE(compacted.ok()) << compacted.status().ToString();
  ASSERT_EQ(cluster().Restart(Part::kApiServer), Status::Ok());
  mirror->network().Heal();
  ExpectEqual(*mirror);
  EXPECT_GE(mirror->Restarts("expired"), 1);
}

TEST_F(PeersRuntime, AnApiServerThatIsKilledUnderWritesIsCaughtUpWith) {
  const auto mirror = Start();
  Churn churn(cluster().Rest(), namespace_, 1);
  ASSERT_TRUE(WaitUntil([&] { return churn.accepted() > 50; }));
  ASSERT_EQ(cluster().Kill(Part::kApiServer), Status::Ok());
  ASSERT_EQ(cluster().Restart(Part::kApiServer), Status::Ok());
  const int before = churn.accepted();
  ASSERT_TRUE(WaitUntil([&] { return churn.accepted() > before + 50; }));
  churn.Stop();
  ExpectEqual(*mirror);
}

TEST_F(PeersRuntime, AnApiServerThatIsStoppedUnderWritesIsCaughtUpWith) {
  ReflectorOptions options;
  if (LK_STOP_SECONDS < 75)
    options.idle_timeout = seconds(2);  // shorter than the stop, as 75 s is than the nightly one
  const auto mirror = Start(options);
  Churn churn(cluster().Rest(), namespace_, 2);
  ASSERT_TRUE(WaitUntil([&] { return churn.accepted() > 50; }));
  cluster().Stop(Part::kApiServer);
  std::this_thread::sleep_for(seconds(LK_STOP_SECONDS));  // not synchronisation: how long the fault lasts
  cluster().Continue(Part::kApiServer);
  ASSERT_EQ(cluster().AwaitReady(), Status::Ok());
  const int before = churn.accepted();
  ASSERT_TRUE(WaitUntil([&] { return churn.accepted() > before + 50; }));
  churn.Stop();
  ExpectEqual(*mirror);
  EXPECT_GE(mirror->Restarts("silent"), 1);
}

TEST_F(PeersRuntime, AStoreThatIsRestoredToAnOlderSnapshotIsTakenAsItIs) {
  const auto mirror = Start();
  ASSERT_EQ(Write("changed", "1"), Status::Ok());
  ASSERT_EQ(Write("deleted", "1"), Status::Ok());
  const std::string file = JoinPath(cluster().folder(), namespace_ + ".snapshot");
  ASSERT_EQ(cluster().Snapshot(file), Status::Ok());
  ASSERT_EQ(Write("changed", "2"), Status::Ok());
  ASSERT_TRUE(api().Delete(kConfigMaps, Key("deleted"), {}).ok());
  ASSERT_EQ(MakeMany(cluster().Rest(), namespace_, "later-", 300), Status::Ok());
  ASSERT_EQ(mirror->Differs(api()), "");
  ASSERT_EQ(cluster().Restore(file), Status::Ok());
  ExpectEqual(*mirror);
  EXPECT_EQ(mirror->cache().size(), 3u);
}

// Versions alone cannot tell: the restored store has gone beyond the last one seen before anybody looks.
TEST_F(PeersRuntime, AStoreThatIsRestoredAndHasGoneOnBeyondTheVersionSeenIsListedAgain) {
  const auto mirror = Start();
  const std::string file = JoinPath(cluster().folder(), namespace_ + ".snapshot");
  ASSERT_EQ(cluster().Snapshot(file), Status::Ok());
  ASSERT_EQ(Write("lost", "1"), Status::Ok());
  ASSERT_EQ(mirror->Differs(api()), "");
  const std::string seen = mirror->cache().resource_version();
  mirror->network().Cut();
  ASSERT_EQ(cluster().Restore(file), Status::Ok());
  ASSERT_EQ(MakeMany(cluster().Rest(), namespace_, "later-", 100), Status::Ok());
  const Result<Json> last = api().Get(kConfigMaps, Key("later-99"));
  ASSERT_TRUE(last.ok());
  ASSERT_GT(ResourceVersionNumber(ResourceVersionOf(*last)), ResourceVersionNumber(seen));
  mirror->network().Heal();
  ExpectEqual(*mirror);
}

}  // namespace
}  // namespace lockkeeper::peers
