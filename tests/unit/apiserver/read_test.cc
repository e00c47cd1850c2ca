// Gets, lists, watches, discovery, health and refusals.
#include <gtest/gtest.h>

#include <set>

#include "api/server/watch_hub.h"
#include "tests/unit/apiserver/harness.h"

namespace lockkeeper::apiserver {
namespace {

Json J(const std::string& text) { return *Json::Parse(text); }

std::vector<std::string> NamesOf(const Answer& answer) {
  std::vector<std::string> names;
  for (const Json& item : answer.json.Get("items").AsArray()) names.push_back(item.At({"metadata", "name"}).AsString());
  return names;
}

std::vector<std::string> StoryOf(const std::vector<Json>& events) {
  std::vector<std::string> story;
  for (const Json& event : events) {
    story.push_back(event.Get("type").AsString() + " " + event.At({"object", "metadata", "name"}).AsString());
  }
  return story;
}

using Names = std::vector<std::string>;

void Fill(Harness& server, int count) {
  for (int i = 0; i < count; ++i) {
    Json body = ConfigMapBody("m" + std::to_string(10 + i));
    body["metadata"]["labels"] = Json::MakeObject({{"odd", i % 2 == 1 ? "yes" : "no"}});
    ASSERT_EQ(server.Do("POST", kMaps, body).code, 201);
  }
}

TEST(Get, AMissingOneIsAStatusThatNamesIt) {
  Harness server;
  const Answer missing = server.Do("GET", kUpgrades + "/x");
  EXPECT_EQ(missing.json, J(R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",
      "message":"upgrades.lockkeeper.dev \"x\" not found","reason":"NotFound",
      "details":{"name":"x","group":"lockkeeper.dev","kind":"upgrades"},"code":404})"))
      << missing.http.body;
}

TEST(List, PagesShowOneSnapshotWhateverChangesMeanwhile) {
  Harness server;
  Fill(server, 5);
  const Answer first = server.Do("GET", kMaps + "?limit=2");
  EXPECT_EQ(NamesOf(first), (Names{"m10", "m11"}));
  EXPECT_EQ(first.json.Get("kind").AsString(), "ConfigMapList");
  ASSERT_EQ(server.Do("DELETE", kMaps + "/m12").code, 200);
  ASSERT_EQ(server.Do("POST", kMaps, ConfigMapBody("m115")).code, 201);
  const std::string token = first.json.At({"metadata", "continue"}).AsString();
  const Answer second = server.Do("GET", kMaps + "?limit=2&continue=" + token);
  EXPECT_EQ(NamesOf(second), (Names{"m12", "m13"}));
  EXPECT_EQ(second.json.At({"metadata", "resourceVersion"}), first.json.At({"metadata", "resourceVersion"}));
  const Answer third = server.Do("GET", kMaps + "?continue=" + second.json.At({"metadata", "continue"}).AsString());
  EXPECT_EQ(NamesOf(third), (Names{"m14"}));
  EXPECT_FALSE(third.json.Get("metadata").Has("continue"));
  EXPECT_EQ(server.Do("GET", kMaps + "?continue=rubbish").code, 400);
}

TEST(List, AContinueFromBeforeTheHistoryIsGoneWithAFreshToken) {
  Harness server;
  Fill(server, 5);
  const Answer first = server.Do("GET", kMaps + "?limit=2");
  Fill(server, 0);
  for (int i = 0; i < 20; ++i) server.MergePatch(kMaps + "/m14", J(R"({"data":{"k":")" + std::to_string(i) + R"("}})"));
  ASSERT_TRUE(server.store().Compact({5, 5, Seconds(600)}).ok());
  const Answer expired = server.Do("GET", kMaps + "?continue=" + first.json.At({"metadata", "continue"}).AsString());
  EXPECT_EQ(expired.code, 410);
  EXPECT_EQ(expired.reason(), "Expired");
  const Answer rest = server.Do("GET", kMaps + "?continue=" + expired.json.At({"metadata", "continue"}).AsString());
  EXPECT_EQ(NamesOf(rest), (Names{"m12", "m13", "m14"}));
}

TEST(List, SelectorsAndExactRevisions) {
  Harness server;
  Fill(server, 4);
  EXPECT_EQ(NamesOf(server.Do("GET", kMaps + "?labelSelector=odd%3Dyes")), (Names{"m11", "m13"}));
  EXPECT_EQ(NamesOf(server.Do("GET", kMaps + "?labelSelector=odd%3Dyes&limit=1")), (Names{"m11"}));
  EXPECT_EQ(NamesOf(server.Do("GET", kMaps + "?fieldSelector=metadata.name%3Dm12")), (Names{"m12"}));
  EXPECT_EQ(NamesOf(server.Do("GET", "/api/v1/configmaps?fieldSelector=metadata.name%3Dm12")), (Names{"m12"}));
  EXPECT_EQ(NamesOf(server.Do("GET", kMaps + "?fieldSelector=metadata.name%21%3Dm12&labelSelector=odd%3Dno")),
            (Names{"m10"}));
  EXPECT_EQ(server.Do("GET", kMaps + "?labelSelector=%3D").code, 400);
  EXPECT_EQ(server.Do("GET", kMaps + "?fieldSelector=data.k%3Dv").code, 400);
  const std::string then = server.Do("GET", kMaps).json.At({"metadata", "resourceVersion"}).AsString();
  ASSERT_EQ(server.Do("DELETE", kMaps + "/m10").code, 200);
  EXPECT_EQ(NamesOf(server.Do("GET", kMaps + "?resourceVersionMatch=Exact&resourceVersion=" + then)).size(), 4U);
  EXPECT_EQ(NamesOf(server.Do("GET", kMaps + "?resourceVersion=0")).size(), 3U);
}

TEST(List, ARevisionOfTheFutureIsAnsweredAfterAWhile) {
  Harness server;
  const Answer future = server.Do("GET", kMaps + "?resourceVersion=999999999");
  EXPECT_EQ(future.code, 504);
  EXPECT_EQ(future.reason(), "Timeout");
  EXPECT_EQ(future.json.At({"details", "retryAfterSeconds"}).AsInt(), 1);
  EXPECT_EQ(future.json.At({"details", "causes"}).AsArray().front().Get("reason").AsString(),
            "ResourceVersionTooLarge");
  EXPECT_EQ(future.Header("Retry-After"), "1");
  EXPECT_EQ(server.Do("GET", kMaps + "?resourceVersion=abc").code, 400);
}

TEST(List, OfOursAlwaysHasContinueAndOfBuiltInKindsOnlyWhenThereIsMore) {
  Harness server;
  const Answer ours = server.Do("GET", kUpgrades);
  const Json* of_ours = ours.json.Get("metadata").Find("continue");
  ASSERT_NE(of_ours, nullptr);
  EXPECT_EQ(of_ours->AsString(), "");
  EXPECT_FALSE(server.Do("GET", kMaps).json.Get("metadata").Has("continue"));
}

TEST(List, TableAndMetadataShapes) {
  Harness server;
  ASSERT_EQ(server.Do("POST", kUpgrades, UpgradeBody("u")).code, 201);
  const std::pair<std::string, std::string> table = {"accept",
                                                     "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"};
  server.clock().Advance(Seconds(0.5));
  EXPECT_NE(server.Do("GET", kUpgrades, "", {table}).json.Dump().find("\"0s\""), std::string::npos);
  server.clock().Advance(Seconds(64.5));
  const Answer list = server.Do("GET", kUpgrades + "?limit=500", "", {table});
  EXPECT_EQ(list.json.Get("kind").AsString(), "Table");
  ASSERT_EQ(list.json.Get("rows").size(), 1U);
  const Json& row = list.json.Get("rows").AsArray().front();
  EXPECT_EQ(row.Get("cells").size(), list.json.Get("columnDefinitions").size());
  EXPECT_EQ(row.Get("cells").AsArray().front().AsString(), "u");
  EXPECT_NE(row.Get("cells").Dump().find("\"65s\""), std::string::npos) << row.Dump();
  EXPECT_EQ(row.At({"object", "kind"}).AsString(), "PartialObjectMetadata");
  EXPECT_EQ(
      server.Do("GET", kUpgrades + "?includeObject=None", "", {table}).json.Get("rows").AsArray().front().Get("object"),
      Json());
  EXPECT_EQ(server.Do("GET", kUpgrades + "/u", "", {table}).json.Get("kind").AsString(), "Table");
  const Answer metadata =
      server.Do("GET", kUpgrades, "", {{"accept", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"}});
  EXPECT_EQ(metadata.json.Get("kind").AsString(), "PartialObjectMetadataList");
  EXPECT_FALSE(metadata.json.Get("items").AsArray().front().Has("spec"));
  EXPECT_EQ(server.Do("GET", kUpgrades, "", {{"accept", "application/yaml"}}).code, 406);
}

TEST(Watch, BeginsWithWhatIsThereAndGoesOnWithWhatChanges) {
  Harness server;
  Fill(server, 2);
  EXPECT_EQ(StoryOf(server.Watch(kMaps + "?watch=true", 2)), (Names{"ADDED m10", "ADDED m11"}));
  const std::string from = server.Do("GET", kMaps).json.At({"metadata", "resourceVersion"}).AsString();
  server.MergePatch(kMaps + "/m10", J(R"({"data":{"k":"2"}})"));
  server.Do("DELETE", kMaps + "/m11");
  server.Do("POST", kUpgrades, UpgradeBody("u"));
  server.Do("POST", kMaps, ConfigMapBody("m12"));
  const std::vector<Json> events = server.Watch(kMaps + "?watch=1&resourceVersion=" + from, 3);
  EXPECT_EQ(StoryOf(events), (Names{"MODIFIED m10", "DELETED m11", "ADDED m12"}));
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[1].At({"object", "data", "k"}).AsString(), "v") << "a DELETED carries the last state";
  EXPECT_GT(std::stoll(events[1].At({"object", "metadata", "resourceVersion"}).AsString()),
            std::stoll(events[0].At({"object", "metadata", "resourceVersion"}).AsString()));
}

TEST(Watch, SelectorsTurnAChangeIntoAnAddOrADelete) {
  Harness server;
  Fill(server, 2);
  const std::string from = server.Do("GET", kMaps).json.At({"metadata", "resourceVersion"}).AsString();
  server.MergePatch(kMaps + "/m10", J(R"({"metadata":{"labels":{"odd":"yes"}}})"));
  server.MergePatch(kMaps + "/m10", J(R"({"data":{"k":"2"}})"));
  server.MergePatch(kMaps + "/m10", J(R"({"metadata":{"labels":{"odd":"no"}}})"));
  server.MergePatch(kMaps + "/m10", J(R"({"data":{"k":"3"}})"));
  server.Do("DELETE", kMaps + "/m11");
  EXPECT_EQ(StoryOf(server.Watch(kMaps + "?watch=1&labelSelector=odd%3Dyes&resourceVersion=" + from, 4)),
            (Names{"ADDED m10", "MODIFIED m10", "DELETED m10", "DELETED m11"}));
  EXPECT_EQ(StoryOf(server.Watch(kMaps + "?watch=1&fieldSelector=metadata.name%3Dm11&resourceVersion=" + from, 1)),
            (Names{"DELETED m11"}));
}

TEST(Watch, BookmarksComeWhenAskedForAndAtTheEnd) {
  Harness server;
  Fill(server, 1);
  const std::vector<Json> events = server.Watch(kMaps + "?watch=1&resourceVersion=0&allowWatchBookmarks=true", 2);
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[1].Get("type").AsString(), "BOOKMARK");
  EXPECT_EQ(events[1].At({"object", "kind"}).AsString(), "ConfigMap");
  EXPECT_EQ(events[1].At({"object", "metadata", "resourceVersion"}).AsString(),
            std::to_string(*server.store().Revision()));
  const std::vector<Json> timed = server.Watch(kMaps + "?watch=1&allowWatchBookmarks=true&timeoutSeconds=1", 1000);
  ASSERT_FALSE(timed.empty());
  EXPECT_EQ(timed.back().Get("type").AsString(), "BOOKMARK");
}

TEST(Watch, SendInitialEventsEndsWithItsBookmark) {
  Harness server;
  Fill(server, 2);
  const std::vector<Json> events = server.Watch(
      kMaps +
          "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion=",
      3);
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(StoryOf(events), (Names{"ADDED m10", "ADDED m11", "BOOKMARK "}));
  EXPECT_EQ(events[2].At({"object", "metadata", "annotations", "k8s.io/initial-events-end"}).AsString(), "true");
  EXPECT_EQ(server.Do("GET", kMaps + "?watch=1&sendInitialEvents=true").code, 422);
  EXPECT_EQ(server.Do("GET", kMaps + "?watch=1&resourceVersionMatch=NotOlderThan").code, 422);
}

TEST(Watch, ATableWatchSendsTheColumnsOnce) {
  Harness server;
  Fill(server, 2);
  Answer answer =
      server.Do("GET", kMaps + "?watch=1", "", {{"accept", "application/json;as=Table;v=v1;g=meta.k8s.io"}});
  Lines out(2);
  answer.http.stream(out);
  const std::vector<Json> events = out.events();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_FALSE(events[0].At({"object", "columnDefinitions"}).IsNull());
  EXPECT_TRUE(events[1].At({"object", "columnDefinitions"}).IsNull());
  EXPECT_EQ(events[1].At({"object", "rows"}).size(), 1U);
}

TEST(Watch, AHundredsOfObjectsBeginInPagesWithoutLossOrRepeat) {
  Harness server;
  for (int i = 0; i < 450; i += 50) {
    ASSERT_TRUE(server.store()
                    .Write([&](Txn& txn) -> Status {
                      for (int k = i; k < i + 50; ++k) {
                        const std::string name = "p" + std::to_string(1000 + k);
                        Result<int64_t> put =
                            txn.Put({"", "/configmaps", "default", name}, 0,
                                    R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":")" + name + "\"}}",
                                    {name, "", {}});
                        if (!put.ok()) return put.status();
                      }
                      return Status::Ok();
                    })
                    .ok());
  }
  const std::vector<Json> events = server.Watch(kMaps + "?watch=1", 450);
  std::set<std::string> names;
  for (const Json& event : events) names.insert(event.At({"object", "metadata", "name"}).AsString());
  EXPECT_EQ(events.size(), 450U);
  EXPECT_EQ(names.size(), 450U);
}

TEST(Watch, AnAbortCutsItAndAStopEndsItInOrder) {
  std::atomic<bool> aborted{false};
  Hooks hooks;
  hooks.aborted = [&](const RequestInfo&) { return aborted.load(); };
  Harness server(hooks);
  Answer answer = server.Do("GET", kMaps + "?watch=1");
  Lines out(1);
  aborted = true;
  EXPECT_FALSE(answer.http.stream(out));
  aborted = false;
  Answer stopped = server.Do("GET", kMaps + "?watch=1");
  server.store().hub().Stop();
  Lines quiet(1);
  EXPECT_TRUE(stopped.http.stream(quiet));
}

TEST(Discovery, AggregatedWithItsOwnContentTypeAndA304WithoutOne) {
  Harness server;
  const std::string accept =
      "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
      "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";
  const Answer found = server.Do("GET", "/apis?timeout=32s", "", {{"accept", accept}});
  EXPECT_EQ(found.http.content_type, "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");
  EXPECT_EQ(found.json.Get("apiVersion").AsString(), "apidiscovery.k8s.io/v2");
  EXPECT_NE(found.http.body.find(R"("shortNames":["upg"])"), std::string::npos);
  const Answer same = server.Do("GET", "/apis", "", {{"accept", accept}, {"if-none-match", found.Header("ETag")}});
  EXPECT_EQ(same.code, 304);
  EXPECT_EQ(same.http.content_type, "");
  EXPECT_EQ(same.http.body, "");
  EXPECT_EQ(server.Do("GET", "/api").json.Get("kind").AsString(), "APIVersions");
  EXPECT_EQ(server.Do("GET", "/apis").json.Get("kind").AsString(), "APIGroupList");
  EXPECT_EQ(server.Do("GET", "/apis/lockkeeper.dev").json.Get("kind").AsString(), "APIGroup");
  EXPECT_EQ(server.Do("GET", "/apis/lockkeeper.dev/v1alpha1").json.Get("kind").AsString(), "APIResourceList");
  EXPECT_EQ(server.Do("GET", "/api/v1").json.Get("resources").AsArray().front().Get("name").AsString(), "namespaces");
  EXPECT_EQ(server.Do("GET", "/apis/none.dev/v1").code, 404);
  EXPECT_EQ(server.Do("GET", "/nothing").http.body, "404 page not found\n");
}

TEST(OpenApi, HasWhatKubectlNeedsAndAHashThatFits) {
  Harness server;
  const Answer index = server.Do("GET", "/openapi/v3?timeout=32s");
  const std::string url = index.json.At({"paths", "apis/lockkeeper.dev/v1alpha1", "serverRelativeURL"}).AsString();
  const Answer document = server.Do("GET", url);
  ASSERT_EQ(document.code, 200) << url;
  const Json& patch =
      document.json.At({"paths", "/apis/lockkeeper.dev/v1alpha1/namespaces/{namespace}/upgrades/{name}", "patch"});
  EXPECT_EQ(patch.Get("x-kubernetes-group-version-kind"),
            J(R"({"group":"lockkeeper.dev","version":"v1alpha1","kind":"Upgrade"})"));
  EXPECT_NE(patch.Get("parameters").Dump().find("fieldValidation"), std::string::npos);
  const Json& schema = document.json.At({"components", "schemas", "dev.lockkeeper.v1alpha1.Upgrade"});
  EXPECT_FALSE(schema.At({"properties", "spec", "description"}).AsString().empty());
  EXPECT_EQ(server.Do("GET", "/openapi/v3/apis/lockkeeper.dev/v1alpha1?hash=wrong").code, 301);
  EXPECT_EQ(server.Do("GET", "/openapi/v1").code, 404);
}

TEST(OpenApi, V2IsEmptySoThatKubectlGoesOnToSayThatItKnowsNoSuchKind) {
  Harness server;
  EXPECT_EQ(server.Do("GET", "/openapi/v2").json.Get("swagger").AsString(), "2.0");
  const std::string type = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
  const Answer answer = server.Do("GET", "/openapi/v2?timeout=32s", "", {{"accept", type}});
  EXPECT_EQ(answer.code, 200);
  EXPECT_EQ(answer.http.content_type, "application/com.github.proto-openapi.spec.v2.v1.0+protobuf");
  EXPECT_EQ(answer.http.body, std::string("\x0a\x03"
                                          "2.0\x12\x10\x0a\x0a"
                                          "lockkeeper\x12\x02"
                                          "v1\x42\x00",
                                          25));
}

TEST(Refusals, WithoutATokenOnlyHealthIsAnswered) {
  Harness server;
  server.token = "";
  for (const char* path : {"/healthz", "/livez", "/readyz", "/readyz?verbose"})
    EXPECT_EQ(server.Do("GET", path).code, 200) << path;
  const std::string verbose = server.Do("GET", "/readyz?verbose").http.body;
  EXPECT_NE(verbose.find("[+]ping ok\n"), std::string::npos) << verbose;
  EXPECT_NE(verbose.find("readyz check passed\n"), std::string::npos);
  for (const char* path : {"/readyz/ping", "/version", "/metrics", "/apis", "/openapi/v3"}) {
    EXPECT_EQ(server.Do("GET", path).code, 401) << path;
  }
  server.token = "wrong";
  const Answer refused = server.Do("GET", kMaps);
  EXPECT_EQ(refused.code, 401);
  EXPECT_EQ(refused.reason(), "Unauthorized");
  server.token = "secret-token";
  EXPECT_EQ(server.Do("GET", "/readyz/ping").code, 200);
  EXPECT_EQ(server.Do("GET", "/readyz/none").code, 404);
}

TEST(Refusals, AFailedCheckIs500WithItsReasonWithheld) {
  HandlerOptions options = Harness::Quick();
  options.health.push_back({"poststarthook/x", [] { return Status(Code::kUnavailable, "private"); }, false});
  Harness server({}, std::move(options));
  server.token = "";
  const Answer ready = server.Do("GET", "/readyz");
  EXPECT_EQ(ready.code, 500);
  EXPECT_EQ(ready.http.body,
            "[+]ping ok\n[+]store ok\n[-]poststarthook/x failed: reason withheld\nreadyz check failed\n");
  EXPECT_EQ(server.Do("GET", "/readyz?exclude=poststarthook/x").code, 200);
  EXPECT_EQ(server.Do("GET", "/livez").code, 200);
}

TEST(Refusals, MethodsAndResourcesThatAreNotServed) {
  Harness server;
  EXPECT_EQ(server.Do("PUT", kMaps).code, 405);
  EXPECT_EQ(server.Do("GET", "/api/v1/namespaces/default/pods").code, 404);
  EXPECT_EQ(server.Do("GET", kMaps + "/a/status").code, 404) << "a ConfigMap has no status";
  EXPECT_EQ(server.Do("POST", "/api/v1/configmaps", ConfigMapBody("a")).code, 400) << "no namespace";
}

TEST(Reviews, SayWhoAsksAndThatAllIsAllowed) {
  Harness server;
  const Answer who = server.Do("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", Json::MakeObject());
  EXPECT_EQ(who.code, 201);
  EXPECT_EQ(who.json.At({"status", "userInfo", "username"}).AsString(), "alice");
  const Answer can = server.Do("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
                               J(R"({"spec":{"resourceAttributes":{"verb":"get"}}})"));
  EXPECT_TRUE(can.json.At({"status", "allowed"}).AsBool());
}

TEST(Metrics, CountRequestsByVerbResourceAndCode) {
  Harness server;
  server.Do("GET", kMaps + "/none");
  const std::string text = server.Do("GET", "/metrics").http.body;
  EXPECT_NE(text.find(R"(apiserver_request_total{code="404",resource="configmaps",verb="get"} 1)"), std::string::npos)
      << text;
}

}  // namespace
}  // namespace lockkeeper::apiserver
