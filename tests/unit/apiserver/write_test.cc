// Creates, updates, patches and deletes: generation, finalizers, preconditions, field validation, dry run.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/unit/apiserver/harness.h"

namespace lockkeeper::apiserver {
namespace {

Json J(const std::string& text) { return *Json::Parse(text); }

const Json& Meta(const Answer& answer, std::string_view member) { return answer.json.At({"metadata", member}); }

TEST(Create, TheServerGivesIdentityAndIgnoresTheClients) {
  Harness server;
  Json body = UpgradeBody("u1");
  body["metadata"]["uid"] = "mine";
  body["metadata"]["generation"] = 7;
  body["metadata"]["creationTimestamp"] = "2001-01-01T00:00:00Z";
  body["metadata"]["managedFields"] = Json::MakeArray({Json::MakeObject()});
  body["status"] = Json::MakeObject({{"phase", "Succeeded"}});
  const Answer made = server.Do("POST", kUpgrades, body);
  ASSERT_EQ(made.code, 201) << made.message();
  EXPECT_NE(Meta(made, "uid").AsString(), "mine");
  EXPECT_EQ(Meta(made, "generation").AsInt(), 1);
  EXPECT_EQ(Meta(made, "creationTimestamp").AsString(), "2026-11-30T12:00:00Z");
  EXPECT_FALSE(made.json.Get("metadata").Has("managedFields"));
  EXPECT_TRUE(made.json.At({"status", "phase"}).AsString() != "Succeeded") << "a create drops the status";
  EXPECT_EQ(made.json.At({"status", "observedGeneration"}).AsInt(), -1) << "reads as in progress";
  EXPECT_EQ(made.json.At({"spec", "action"}).AsString(), "Upgrade") << "defaults are filled in";
  EXPECT_EQ(Meta(made, "annotations").Get(kRequestedByAnnotation).AsString(), "alice");
}

TEST(Create, WhatCannotBeIsRefusedWithTheFieldThatIsWrong) {
  Harness server;
  ASSERT_EQ(server.Do("POST", kUpgrades, UpgradeBody("u1")).code, 201);
  const Answer again = server.Do("POST", kUpgrades, UpgradeBody("u1"));
  EXPECT_EQ(again.code, 409);
  EXPECT_EQ(again.reason(), "AlreadyExists");
  EXPECT_EQ(again.message(), "upgrades.lockkeeper.dev \"u1\" already exists");
  EXPECT_EQ(again.json.Get("details"), J(R"({"name":"u1","group":"lockkeeper.dev","kind":"upgrades"})"));

  Json body = UpgradeBody("u2");
  body["metadata"].Remove("name");
  EXPECT_EQ(server.Do("POST", kUpgrades, body).code, 422);
  body["metadata"]["name"] = "No_Good";
  EXPECT_EQ(server.Do("POST", kUpgrades, body).json.At({"details", "causes"}).AsArray().front().Get("field").AsString(),
            "metadata.name");
  body["metadata"]["name"] = "u2";
  body["metadata"]["namespace"] = "other";
  EXPECT_EQ(server.Do("POST", kUpgrades, body).code, 400);
  body["metadata"].Remove("namespace");
  body["metadata"]["resourceVersion"] = "5";
  EXPECT_EQ(server.Do("POST", kUpgrades, body).code, 500);
  body["metadata"].Remove("resourceVersion");
  body["kind"] = "Roll";
  EXPECT_EQ(server.Do("POST", kUpgrades, body).code, 400);
  body["kind"] = "Upgrade";
  body["apiVersion"] = "lockkeeper.dev/v2";
  EXPECT_EQ(server.Do("POST", kUpgrades, body).code, 400);
  body["apiVersion"] = "lockkeeper.dev/v1alpha1";
  body["spec"]["version"] = "../../etc";
  const Answer invalid = server.Do("POST", kUpgrades, body);
  EXPECT_EQ(invalid.code, 422);
  EXPECT_EQ(invalid.json.At({"details", "kind"}).AsString(), "Upgrade");
  EXPECT_EQ(server.Do("POST", kUpgrades, "{not json").code, 400);
  EXPECT_EQ(server.Do("POST", kUpgrades, "[]").code, 400);
  EXPECT_EQ(server.Do("POST", kUpgrades, "a: b", {{"content-type", "application/yaml"}}).code, 415);
}

TEST(Create, NeedsItsNamespaceToExist) {
  Harness server;
  const Answer missing = server.Do("POST", "/api/v1/namespaces/nope/configmaps", ConfigMapBody("a"));
  EXPECT_EQ(missing.code, 404);
  EXPECT_EQ(missing.message(), "namespaces \"nope\" not found");
}

TEST(Create, GenerateNameAddsFiveCharactersAndTriesAgainOnAClash) {
  Harness server;
  Json body = ConfigMapBody("x");
  body["metadata"] = Json::MakeObject({{"generateName", "run-"}});
  const Answer one = server.Do("POST", kMaps, body);
  const Answer two = server.Do("POST", kMaps, body);
  ASSERT_EQ(one.code, 201);
  EXPECT_EQ(Meta(one, "name").AsString().size(), 9U);
  EXPECT_NE(Meta(one, "name"), Meta(two, "name"));
}

TEST(Create, DryRunAnswersAsIfAndStoresNothing) {
  Harness server;
  const int64_t before = *server.store().Revision();
  const Answer as_if = server.Do("POST", kMaps + "?dryRun=All", ConfigMapBody("a"));
  EXPECT_EQ(as_if.code, 201);
  EXPECT_FALSE(as_if.json.Get("metadata").Has("resourceVersion")) << "what is not stored has no version";
  EXPECT_EQ(server.Do("GET", kMaps + "/a").code, 404);
  EXPECT_EQ(*server.store().Revision(), before);
  EXPECT_EQ(server.Do("POST", kMaps + "?dryRun=Some", ConfigMapBody("a")).code, 422);
  ASSERT_EQ(server.Do("POST", kMaps, ConfigMapBody("a")).code, 201);
  EXPECT_EQ(server.Do("POST", kMaps + "?dryRun=All", ConfigMapBody("a")).code, 409);
  EXPECT_EQ(server.MergePatch(kMaps + "/a?dryRun=All", J(R"({"data":{"k":"new"}})")).json.At({"data", "k"}).AsString(),
            "new");
  EXPECT_EQ(server.Do("DELETE", kMaps + "/a?dryRun=All").code, 200);
  EXPECT_EQ(server.Do("GET", kMaps + "/a").json.At({"data", "k"}).AsString(), "v");
}

TEST(Delete, NamespacesGoOneByOne) {
  Harness server;
  EXPECT_EQ(server.Do("DELETE", "/api/v1/namespaces").code, 405);
  const Json resources = server.Do("GET", "/api/v1").json.Get("resources");
  for (const Json& resource : resources.AsArray()) {
    const bool many = resource.Get("verbs").Dump().find("deletecollection") != std::string::npos;
    EXPECT_EQ(many, resource.Get("name").AsString().find("namespaces") != 0) << resource.Dump();
  }
}

TEST(FieldValidation, StrictRefusesWarnWarnsIgnoreIsSilentAndAllPrune) {
  Harness server;
  const std::string text =
      R"({"metadata":{"name":"NAME"},"spec":{"serverRef":{"name":"k"},"version":"v1","version":"v2","foo":1}})";
  auto post = [&](const std::string& name, const std::string& mode) {
    std::string body = text;
    body.replace(body.find("NAME"), 4, name);
    return server.Do("POST", kUpgrades + mode, body);
  };
  const Answer strict = post("a", "?fieldValidation=Strict");
  EXPECT_EQ(strict.code, 400);
  EXPECT_EQ(strict.message(),
            "Upgrade in version \"v1alpha1\" cannot be handled as a Upgrade: strict decoding error: unknown field "
            "\"spec.foo\", duplicate field \"spec.version\"");
  const Answer warn = post("b", "");
  EXPECT_EQ(warn.code, 201);
  EXPECT_EQ(warn.Header("Warning"), R"(299 - "unknown field \"spec.foo\"")");
  EXPECT_FALSE(warn.json.Get("spec").Has("foo"));
  const Answer ignore = post("c", "?fieldValidation=Ignore");
  EXPECT_EQ(ignore.code, 201);
  EXPECT_EQ(ignore.Header("Warning"), "");
  EXPECT_EQ(post("d", "?fieldValidation=Maybe").code, 422);
  EXPECT_EQ(server.MergePatch(kUpgrades + "/c?fieldValidation=Strict", J(R"({"spec":{"foo":1}})")).code, 422);
  EXPECT_EQ(server.MergePatch(kUpgrades + "/c", J(R"({"spec":{"foo":1}})")).Header("Warning"),
            R"(299 - "unknown field \"spec.foo\"")");
}

TEST(Update, GenerationRisesWithTheSpecAlone) {
  Harness server;
  ASSERT_EQ(server.Do("POST", kUpgrades, UpgradeBody("u")).code, 201);
  const std::string u = kUpgrades + "/u";
  auto generation = [&] { return server.Do("GET", u).json.At({"metadata", "generation"}).AsInt(); };
  server.MergePatch(u, J(R"({"metadata":{"labels":{"a":"b"},"annotations":{"c":"d"}}})"));
  EXPECT_EQ(generation(), 1);
  server.MergePatch(u + "/status", J(R"({"status":{"phase":"Pending"}})"));
  EXPECT_EQ(generation(), 1);
  server.MergePatch(u, J(R"({"spec":{"paused":true}})"));
  EXPECT_EQ(generation(), 2);
  server.MergePatch(u, J(R"({"metadata":{"generation":9}})"));
  EXPECT_EQ(generation(), 2);
}

TEST(Update, WhatChangesNothingRaisesNoResourceVersion) {
  Harness server;
  ASSERT_EQ(server.Do("POST", kUpgrades, UpgradeBody("u")).code, 201);
  const std::string u = kUpgrades + "/u";
  const Answer before = server.Do("GET", u);
  const int64_t revision = *server.store().Revision();
  server.clock().Advance(Seconds(100));
  EXPECT_EQ(Meta(server.MergePatch(u, J(R"({"spec":{"paused":false}})")), "resourceVersion"),
            Meta(before, "resourceVersion"));
  EXPECT_EQ(server.Do("PUT", u, before.json).code, 200);
  EXPECT_EQ(server
                .Do("PATCH", u, R"([{"op":"test","path":"/metadata/name","value":"u"}])",
                    {{"content-type", "application/json-patch+json"}})
                .code,
            200);
  EXPECT_EQ(*server.store().Revision(), revision);
}

TEST(Update, StatusAndSpecDoNotTouchEachOther) {
  Harness server;
  ASSERT_EQ(server.Do("POST", kUpgrades, UpgradeBody("u")).code, 201);
  const std::string u = kUpgrades + "/u";
  Answer answer = server.MergePatch(
      u + "/status",
      J(R"({"status":{"phase":"Pending"},"spec":{"paused":true},"metadata":{"labels":{"a":"b"},"uid":"0"}})"));
  ASSERT_EQ(answer.code, 200) << answer.message();
  EXPECT_EQ(answer.json.At({"status", "phase"}).AsString(), "Pending");
  EXPECT_FALSE(answer.json.At({"spec", "paused"}).AsBool());
  EXPECT_FALSE(answer.json.Get("metadata").Has("labels"));
  answer = server.MergePatch(u, J(R"({"status":{"phase":"Failed"},"spec":{"paused":true}})"));
  ASSERT_EQ(answer.code, 200) << answer.message();
  EXPECT_EQ(answer.json.At({"status", "phase"}).AsString(), "Pending");
  EXPECT_TRUE(answer.json.At({"spec", "paused"}).AsBool());
}

TEST(Update, ResourceVersionIsTheGuard) {
  Harness server;
  ASSERT_EQ(server.Do("POST", kUpgrades, UpgradeBody("u")).code, 201);
  const std::string u = kUpgrades + "/u";
  const Json first = server.Do("GET", u).json;
  ASSERT_EQ(server.MergePatch(u, J(R"({"spec":{"paused":true}})")).code, 200);
  const Answer stale = server.Do("PUT", u, first);
  EXPECT_EQ(stale.code, 409);
  EXPECT_EQ(
      stale.message(),
      "Operation cannot be fulfilled on upgrades.lockkeeper.dev \"u\": the object has been modified; please apply "
      "your changes to the latest version and try again");
  Json patch = J(R"({"spec":{"paused":false}})");
  patch["metadata"] = Json::MakeObject({{"resourceVersion", first.At({"metadata", "resourceVersion"})}});
  EXPECT_EQ(server.MergePatch(u, patch).code, 409);
  EXPECT_EQ(server.MergePatch(u + "/status", patch).code, 409);
  patch["metadata"]["resourceVersion"] = "0";
  EXPECT_EQ(server.MergePatch(u, patch).code, 422);
  Json blind = first;
  blind["metadata"].Remove("resourceVersion");
  EXPECT_EQ(server.Do("PUT", u, blind).code, 422) << "a custom resource is not replaced blindly";
  ASSERT_EQ(server.Do("POST", kMaps, ConfigMapBody("c")).code, 201);
  EXPECT_EQ(server.Do("PUT", kMaps + "/c", ConfigMapBody("c", "new")).code, 200) << "a ConfigMap is";
  EXPECT_EQ(server
                .Do("PATCH", u, R"([{"op":"test","path":"/metadata/resourceVersion","value":"1"}])",
                    {{"content-type", "application/json-patch+json"}})
                .code,
            422);
}

TEST(Update, OfTwentyClaimsWithTheGuardOneWinsAndTwentyBlindOnesAllPass) {
  Harness server;
  ASSERT_EQ(server.Do("POST", kUpgrades, UpgradeBody("u")).code, 201);
  const std::string u = kUpgrades + "/u";
  const Json version = server.Do("GET", u).json.At({"metadata", "resourceVersion"});
  auto race = [&](bool guarded) {
    std::atomic<int> won{0};
    std::atomic<int> conflicts{0};
    std::vector<std::thread> claimers;
    for (int i = 0; i < 20; ++i) {
      claimers.emplace_back([&, i] {
        Json patch = J(R"({"metadata":{"labels":{"claim":")" + std::to_string(i) + R"("}}})");
        if (guarded) patch["metadata"]["resourceVersion"] = version;
        const int code = server.MergePatch(u, patch).code;
        if (code == 200) ++won;
        if (code == 409) ++conflicts;
      });
    }
    for (std::thread& claimer : claimers) claimer.join();
    return std::make_pair(won.load(), conflicts.load());
  };
  EXPECT_EQ(race(true), std::make_pair(1, 19));
  EXPECT_EQ(race(false), std::make_pair(20, 0));
}

TEST(Update, UidNameAndNamespaceStay) {
  Harness server;
  ASSERT_EQ(server.Do("POST", kUpgrades, UpgradeBody("u")).code, 201);
  const std::string u = kUpgrades + "/u";
  EXPECT_EQ(server.MergePatch(u, J(R"({"metadata":{"uid":"0"}})")).code, 422);
  Json put = server.Do("GET", u).json;
  put["metadata"]["uid"] = "0";
  EXPECT_EQ(server.Do("PUT", u, put).code, 409);
  EXPECT_EQ(server.MergePatch(u, J(R"({"metadata":{"name":"x"}})")).code, 400);
  EXPECT_EQ(server.MergePatch(u, J(R"({"metadata":{"namespace":"x"}})")).code, 400);
  put["metadata"]["name"] = "none";
  EXPECT_EQ(server.Do("PUT", u, put).code, 400);
  EXPECT_EQ(server.Do("PUT", kUpgrades + "/none", put).code, 404);
}

TEST(Update, WhoAskedIsTheServersWord) {
  Harness server;
  ASSERT_EQ(server.Do("POST", kUpgrades, UpgradeBody("u")).code, 201);
  const Answer patched = server.MergePatch(
      kUpgrades + "/u", J(R"({"metadata":{"annotations":{"lockkeeper.dev/requested-by":"eve","x":"y"}}})"));
  ASSERT_EQ(patched.code, 200) << patched.message();
  EXPECT_EQ(Meta(patched, "annotations"), J(R"({"lockkeeper.dev/requested-by":"alice","x":"y"})"));
}

TEST(Update, OnlyTheAcceptedPatchTypesAreTaken) {
  Harness server;
  ASSERT_EQ(server.Do("POST", kUpgrades, UpgradeBody("u")).code, 201);
  for (const char* type :
       {"application/strategic-merge-patch+json", "application/apply-patch+yaml", "application/json"}) {
    const Answer refused = server.Do("PATCH", kUpgrades + "/u", "{}", {{"content-type", type}});
    EXPECT_EQ(refused.code, 415) << type;
    EXPECT_EQ(refused.message(),
              "the body of the request was in an unknown format - accepted media types include: "
              "application/json-patch+json, application/merge-patch+json");
  }
  ASSERT_EQ(server.Do("POST", kMaps, ConfigMapBody("c")).code, 201);
  const Answer strategic = server.Do("PATCH", kMaps + "/c", R"({"data":{"$patch":"replace","z":"1"}})",
                                     {{"content-type", "application/strategic-merge-patch+json"}});
  EXPECT_EQ(strategic.json.Get("data"), J(R"({"z":"1"})")) << "kubectl sends these for the kinds it knows by heart";
}

TEST(Lease, ALatePutOfADeletedOneIsAConflictAndAFreshOneIsCreated) {
  Harness server;
  Json lease = J(R"({"metadata":{"name":"l"},"spec":{"holderIdentity":"a","leaseDurationSeconds":15}})");
  EXPECT_EQ(server.Do("PUT", kLeases + "/l", lease).code, 201);
  const Json held = server.Do("GET", kLeases + "/l").json;
  ASSERT_EQ(server.Do("DELETE", kLeases + "/l").code, 200);
  EXPECT_EQ(server.Do("PUT", kLeases + "/l", held).code, 409);
  EXPECT_EQ(server.Do("GET", kLeases + "/l").code, 404);
  lease["spec"]["leaseDurationSeconds"] = 0;
  EXPECT_EQ(server.Do("POST", kLeases, lease).code, 422);
}

TEST(Delete, WithoutFinalizersItIsGoneAndTheAnswerSaysSo) {
  Harness server;
  ASSERT_EQ(server.Do("POST", kMaps, ConfigMapBody("c")).code, 201);
  const std::string uid = server.Do("GET", kMaps + "/c").json.At({"metadata", "uid"}).AsString();
  const Answer deleted = server.Do("DELETE", kMaps + "/c", R"({"propagationPolicy":"Background"})");
  EXPECT_EQ(deleted.code, 200);
  EXPECT_EQ(deleted.json.Get("status").AsString(), "Success");
  EXPECT_EQ(deleted.json.At({"details", "uid"}).AsString(), uid);
  EXPECT_EQ(server.Do("DELETE", kMaps + "/c").code, 404);
}

TEST(Delete, FinalizersHoldItUntilTheLastIsTaken) {
  Harness server;
  Json body = UpgradeBody("u");
  body["metadata"]["finalizers"] = Json::MakeArray({"lockkeeper.dev/one", "lockkeeper.dev/two"});
  ASSERT_EQ(server.Do("POST", kUpgrades, body).code, 201);
  const std::string u = kUpgrades + "/u";
  const Answer first = server.Do("DELETE", u);
  EXPECT_EQ(first.code, 200);
  EXPECT_EQ(Meta(first, "deletionTimestamp").AsString(), "2026-11-30T12:00:00Z");
  EXPECT_EQ(Meta(first, "deletionGracePeriodSeconds").AsInt(-1), 0);
  EXPECT_EQ(Meta(first, "generation").AsInt(), 2);
  server.clock().Advance(Seconds(50));
  const Answer again = server.Do("DELETE", u);
  EXPECT_EQ(Meta(again, "resourceVersion"), Meta(first, "resourceVersion")) << "deleting twice is deleting once";
  EXPECT_EQ(server.Do("POST", kUpgrades, UpgradeBody("u")).message(),
            "object is being deleted: upgrades.lockkeeper.dev \"u\" already exists");
  EXPECT_EQ(
      server
          .MergePatch(
              u, J(R"({"metadata":{"finalizers":["lockkeeper.dev/one","lockkeeper.dev/two","lockkeeper.dev/three"]}})"))
          .code,
      422);
  EXPECT_EQ(Meta(server.MergePatch(u, J(R"({"metadata":{"deletionTimestamp":null},"spec":{"paused":true}})")),
                 "deletionTimestamp")
                .AsString(),
            "2026-11-30T12:00:00Z");
  EXPECT_EQ(server.MergePatch(u, J(R"({"metadata":{"finalizers":["lockkeeper.dev/two"]}})")).code, 200);
  EXPECT_EQ(server.Do("GET", u).code, 200);
  EXPECT_EQ(server.MergePatch(u, J(R"({"metadata":{"finalizers":null}})")).code, 200);
  EXPECT_EQ(server.Do("GET", u).code, 404);
}

TEST(Delete, PreconditionsMustHold) {
  Harness server;
  ASSERT_EQ(server.Do("POST", kMaps, ConfigMapBody("c")).code, 201);
  EXPECT_EQ(server.Do("DELETE", kMaps + "/c", R"({"preconditions":{"uid":"0"}})").code, 409);
  EXPECT_EQ(server.Do("DELETE", kMaps + "/c", R"({"preconditions":{"resourceVersion":"1"}})").code, 409);
  EXPECT_EQ(server.Do("DELETE", kMaps + "/c", R"({"propagationPolicy":"Sideways"})").code, 422);
  EXPECT_EQ(server.Do("DELETE", kMaps + "/c", "{}").code, 200);
}

TEST(Delete, ACollectionIsDeletedBySelector) {
  Harness server;
  for (const char* name : {"a", "b", "c"}) {
    Json body = ConfigMapBody(name);
    body["metadata"]["labels"] = Json::MakeObject({{"keep", name == std::string("b") ? "yes" : "no"}});
    ASSERT_EQ(server.Do("POST", kMaps, body).code, 201);
  }
  EXPECT_EQ(server.Do("DELETE", kMaps + "?labelSelector=keep%3Dno").json.Get("items").size(), 2U);
  EXPECT_EQ(server.Do("GET", kMaps).json.Get("items").size(), 1U);
}

TEST(Builtin, SecretsAreEncodedCheckedAndImmutableWhenTheySaySo) {
  Harness server;
  const std::string secrets = "/api/v1/namespaces/default/secrets";
  const Answer made =
      server.Do("POST", secrets, J(R"({"metadata":{"name":"s"},"stringData":{"p":"q"},"immutable":true})"));
  ASSERT_EQ(made.code, 201) << made.message();
  EXPECT_EQ(made.json.Get("data"), J(R"({"p":"cQ=="})"));
  EXPECT_EQ(made.json.Get("type").AsString(), "Opaque");
  EXPECT_EQ(server.MergePatch(secrets + "/s", J(R"({"data":{"p":"cg=="}})")).code, 422);
  const Answer bad = server.Do("POST", secrets, J(R"({"metadata":{"name":"t"},"data":{"p":"not base64 hunter2"}})"));
  EXPECT_EQ(bad.code, 422);
  EXPECT_EQ(bad.http.body.find("hunter2"), std::string::npos) << "a secret's value is not repeated";
}

TEST(Events, BothGroupsShowTheSameObjects) {
  Harness server;
  const std::string core = "/api/v1/namespaces/default/events";
  const std::string later = "/apis/events.k8s.io/v1/namespaces/default/events";
  ASSERT_EQ(
      server
          .Do("POST", core,
              J(R"({"metadata":{"name":"e"},"involvedObject":{"kind":"Roll","name":"r"},"message":"m","count":2})"))
          .code,
      201);
  const Answer seen = server.Do("GET", later + "/e");
  ASSERT_EQ(seen.code, 200);
  EXPECT_EQ(seen.json.At({"regarding", "name"}).AsString(), "r");
  EXPECT_EQ(seen.json.Get("note").AsString(), "m");
  EXPECT_EQ(seen.json.Get("apiVersion").AsString(), "events.k8s.io/v1");
  ASSERT_EQ(server.MergePatch(later + "/e", J(R"({"note":"changed","series":{"count":3}})")).code, 200);
  EXPECT_EQ(server.Do("GET", core + "/e").json.Get("message").AsString(), "changed");
}

}  // namespace
}  // namespace lockkeeper::apiserver
