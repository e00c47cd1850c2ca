// Garbage collection, namespaces that empty, Events past their age.
#include <gtest/gtest.h>

#include "tests/unit/apiserver/harness.h"

namespace lockkeeper::apiserver {
namespace {

using std::chrono::milliseconds;

Json J(const std::string& text) { return *Json::Parse(text); }

// A ConfigMap `name` owned by the ConfigMaps `owners`.
void MakeOwned(Harness& server, const std::string& name, const std::vector<std::string>& owners, bool blocks = false) {
  Json body = ConfigMapBody(name);
  Json references = Json::MakeArray();
  for (const std::string& owner : owners) {
    const Answer found = server.Do("GET", kMaps + "/" + owner);
    references.Push(
        Json::MakeObject({{"apiVersion", "v1"},
                          {"kind", "ConfigMap"},
                          {"name", owner},
                          {"uid", found.code == 200 ? found.json.At({"metadata", "uid"}) : Json("gone-" + owner)},
                          {"blockOwnerDeletion", blocks}}));
  }
  if (!owners.empty()) body["metadata"]["ownerReferences"] = std::move(references);
  const Answer made = server.Do("POST", kMaps, body);
  ASSERT_EQ(made.code, 201) << made.message();
}

std::string Left(Harness& server) {
  std::string names;
  const Answer list = server.Do("GET", kMaps);
  for (const Json& item : list.json.Get("items").AsArray()) {
    names += item.At({"metadata", "name"}).AsString();
    if (item.Get("metadata").Has("deletionTimestamp")) names += "!";
  }
  return names;
}

TEST(Collector, DependentsGoWithTheLastOfTheirOwners) {
  Harness server;
  server.collector().CatchUp(milliseconds(1));
  MakeOwned(server, "a", {});
  MakeOwned(server, "b", {});
  MakeOwned(server, "c", {"a", "b"});
  MakeOwned(server, "d", {"c"});
  server.collector().CatchUp(milliseconds(50));
  EXPECT_EQ(Left(server), "abcd");
  server.Do("DELETE", kMaps + "/a");
  server.collector().CatchUp(milliseconds(50));
  EXPECT_EQ(Left(server), "bcd");
  EXPECT_EQ(server.Do("GET", kMaps + "/c").json.At({"metadata", "ownerReferences"}).size(), 1U)
      << "the gone one is dropped";
  server.Do("DELETE", kMaps + "/b");
  server.collector().CatchUp(milliseconds(50));
  EXPECT_EQ(Left(server), "");
}

TEST(Collector, WhatWasMissedIsFoundAtTheStart) {
  Harness server;
  MakeOwned(server, "a", {});
  MakeOwned(server, "b", {"a"});
  server.Do("DELETE", kMaps + "/a");
  server.collector().CatchUp(milliseconds(20));
  EXPECT_EQ(Left(server), "");
}

TEST(Collector, AnOwnerThatNeverWasDoesNotKeepADependent) {
  Harness server;
  server.collector().CatchUp(milliseconds(1));
  MakeOwned(server, "a", {"ghost"});
  server.collector().CatchUp(milliseconds(50));
  EXPECT_EQ(Left(server), "");
}

TEST(Collector, AnOwnerOfAKindThatIsNotServedIsTakenAsThere) {
  Harness server;
  Json body = ConfigMapBody("a");
  body["metadata"]["ownerReferences"] = J(R"([{"apiVersion":"v1","kind":"Pod","name":"p","uid":"1"}])");
  ASSERT_EQ(server.Do("POST", kMaps, body).code, 201);
  server.collector().CatchUp(milliseconds(20));
  EXPECT_EQ(Left(server), "a");
}

TEST(Collector, ForegroundDeletionWaitsForWhatBlocks) {
  Harness server;
  server.collector().CatchUp(milliseconds(1));
  MakeOwned(server, "a", {});
  MakeOwned(server, "b", {"a"}, true);
  server.MergePatch(kMaps + "/b", J(R"({"metadata":{"finalizers":["x.dev/hold"]}})"));
  const Answer deleted = server.Do("DELETE", kMaps + "/a", R"({"propagationPolicy":"Foreground"})");
  EXPECT_EQ(deleted.json.At({"metadata", "finalizers"}), J(R"(["foregroundDeletion"])"));
  server.collector().CatchUp(milliseconds(50));
  EXPECT_EQ(Left(server), "a!b!");
  server.MergePatch(kMaps + "/b", J(R"({"metadata":{"finalizers":null}})"));
  server.collector().CatchUp(milliseconds(50));
  EXPECT_EQ(Left(server), "");
}

TEST(Collector, OrphansStayAndForgetTheirOwner) {
  Harness server;
  server.collector().CatchUp(milliseconds(1));
  MakeOwned(server, "a", {});
  MakeOwned(server, "b", {"a"});
  server.Do("DELETE", kMaps + "/a", R"({"propagationPolicy":"Orphan"})");
  server.collector().CatchUp(milliseconds(50));
  EXPECT_EQ(Left(server), "b");
  EXPECT_FALSE(server.Do("GET", kMaps + "/b").json.Get("metadata").Has("ownerReferences"));
}

TEST(Collector, ADeletedNamespaceEmptiesAndTakesNothingNew) {
  Harness server;
  server.collector().CatchUp(milliseconds(1));
  ASSERT_EQ(server.Do("POST", "/api/v1/namespaces", J(R"({"metadata":{"name":"team"}})")).code, 201);
  const std::string maps = "/api/v1/namespaces/team/configmaps";
  ASSERT_EQ(server.Do("POST", maps, ConfigMapBody("a")).code, 201);
  Json held = ConfigMapBody("b");
  held["metadata"]["finalizers"] = Json::MakeArray({"x.dev/hold"});
  ASSERT_EQ(server.Do("POST", maps, held).code, 201);
  const Answer deleted = server.Do("DELETE", "/api/v1/namespaces/team");
  EXPECT_EQ(deleted.json.At({"status", "phase"}).AsString(), "Terminating");
  EXPECT_EQ(server.Do("POST", maps, ConfigMapBody("late")).code, 403);
  server.collector().CatchUp(milliseconds(50));
  EXPECT_EQ(server.Do("GET", maps + "/a").code, 404);
  EXPECT_EQ(server.Do("GET", "/api/v1/namespaces/team").code, 200) << "a finalizer holds b";
  server.MergePatch(maps + "/b", J(R"({"metadata":{"finalizers":null}})"));
  server.collector().CatchUp(milliseconds(50));
  EXPECT_EQ(server.Do("GET", "/api/v1/namespaces/team").code, 404);
  EXPECT_EQ(server.Do("DELETE", "/api/v1/namespaces/default").code, 403);
}

TEST(Collector, EventsGoAfterTheirTime) {
  Harness server;
  const std::string events = "/api/v1/namespaces/default/events";
  ASSERT_EQ(server.Do("POST", events, J(R"({"metadata":{"name":"old"}})")).code, 201);
  server.clock().Advance(Seconds(23 * 3600));
  ASSERT_EQ(server.Do("POST", events, J(R"({"metadata":{"name":"new"}})")).code, 201);
  server.collector().Housekeep();
  EXPECT_EQ(server.Do("GET", events).json.Get("items").size(), 2U);
  server.clock().Advance(Seconds(2 * 3600));
  server.collector().Housekeep();
  EXPECT_EQ(server.Do("GET", events + "/old").code, 404);
  EXPECT_EQ(server.Do("GET", events + "/new").code, 200);
}

}  // namespace
}  // namespace lockkeeper::apiserver
