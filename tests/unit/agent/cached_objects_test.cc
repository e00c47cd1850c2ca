// What the Server reconciler sees of the agent's caches.
#include "reconcilers/agent/cached_objects.h"

#include <gtest/gtest.h>

#include "controller/typed.h"

namespace lockkeeper {
namespace {

class CachedObjectsTest : public ::testing::Test {
 protected:
  template <typename T>
  Json Operation(const std::string& name) {
    T object;
    object.metadata.namespace_ = "default";
    object.metadata.name = name;
    object.metadata.uid = "uid-" + name;
    object.metadata.resource_version = std::to_string(++version_);
    object.metadata.finalizers = {"lockkeeper.dev/operation"};
    object.spec.server_ref.name = "kcp";
    object.status.error = "why";
    return ToJson(object);
  }
  // As the server would tell it.
  void Tell(Cache& cache, Json object) {
    object["metadata"].Set("resourceVersion", std::to_string(++version_));
    cache.Apply(WatchEventType::kModified, cache.Make(std::move(object)));
  }
  static Json Ended(Json operation) {
    operation["status"].Set("outcome", "Succeeded");
    operation["status"].Set("finishedAt", "2026-01-02T03:04:05Z");
    operation["status"].Set("phases", Json::MakeArray({Json::MakeObject({{"name", "Pending"}})}));
    return operation;
  }
  static Json LetGo(Json operation) {
    operation["metadata"].Remove("finalizers");
    return operation;
  }

  int version_ = 0;
  Cache servers_{ResourceOf<Server>()}, fronts_{ResourceOf<Front>()};
  Cache upgrades_{ResourceOf<Upgrade>(), "", nullptr, CachedObjects::TrimSettled};
  Cache rolls_{ResourceOf<Roll>(), "", nullptr, CachedObjects::TrimSettled};
  CachedObjects objects_{servers_, fronts_, upgrades_, rolls_};
  const ObjectKey server_{"default", "kcp"};

  void SetUp() override {
    for (Cache* cache : {&servers_, &fronts_, &upgrades_, &rolls_}) cache->Replace({}, "1");
  }
  size_t Upgrades() { return objects_.UpgradesOf(server_).value_or({}).size(); }
};

TEST_F(CachedObjectsTest, AnOperationIsSeenUntilItHasEndedAndHoldsNoFinalizer) {
  const Json upgrade = Operation<Upgrade>("u"), roll = Operation<Roll>("r");
  Tell(upgrades_, upgrade);
  Tell(rolls_, roll);
  EXPECT_EQ(Upgrades(), 1u);
  EXPECT_EQ(objects_.RollsOf(server_)->size(), 1u);
  Tell(upgrades_, Ended(upgrade));
  Tell(rolls_, Ended(roll));
  EXPECT_EQ(Upgrades(), 1u) << "its finalizer is still to go";
  Tell(upgrades_, LetGo(Ended(upgrade)));
  Tell(rolls_, LetGo(Ended(roll)));
  EXPECT_EQ(Upgrades(), 0u);
  EXPECT_EQ(objects_.RollsOf(server_)->size(), 0u);
}

TEST_F(CachedObjectsTest, AnEndedRollThatIsToBeRemovedAfterATimeIsSeen) {
  Json roll = LetGo(Ended(Operation<Roll>("r")));
  roll["spec"].Set("ttlSecondsAfterFinished", 60);
  Tell(rolls_, roll);
  EXPECT_EQ(objects_.RollsOf(server_)->size(), 1u);
}

TEST_F(CachedObjectsTest, OfASettledOperationTheCacheKeepsHowItEndedAndNotHowItWent) {
  Tell(upgrades_, LetGo(Ended(Operation<Upgrade>("u"))));
  const Json kept = upgrades_.Get({"default", "u"})->Parse();
  EXPECT_EQ(kept.At({"status", "outcome"}).AsString(), "Succeeded");
  EXPECT_EQ(kept.At({"status", "error"}).AsString(), "why");
  EXPECT_FALSE(kept.Get("status").Has("phases"));
  EXPECT_EQ(kept.At({"spec", "serverRef", "name"}).AsString(), "kcp");
}

TEST_F(CachedObjectsTest, TheUpgradeThatTheServerNamesAsInFlightIsSeenWithoutItsFinalizer) {
  Tell(upgrades_, LetGo(Ended(Operation<Upgrade>("u"))));
  Tell(upgrades_, LetGo(Ended(Operation<Upgrade>("other"))));
  Server server;
  server.metadata.namespace_ = "default";
  server.metadata.name = "kcp";
  OperationRef op;
  op.kind = "Upgrade";
  op.name = "u";
  server.status.operation = op;
  Tell(servers_, ToJson(server));
  const Result<std::vector<Upgrade>> seen = objects_.UpgradesOf(server_);
  ASSERT_TRUE(seen.ok() && seen->size() == 1) << seen.status().ToString();
  EXPECT_EQ(seen->front().metadata.name, "u");
}

}  // namespace
}  // namespace lockkeeper
