// FromJson and ToJson: what is read, what is written, what is kept.
#include <gtest/gtest.h>

#include <random>

#include "api/types/backup.h"
#include "api/types/event.h"
#include "api/types/front.h"
#include "api/types/kind.h"
#include "api/types/lease.h"
#include "api/types/release.h"
#include "api/types/server.h"
#include "api/types/slot.h"
#include "api/types/upgrade.h"
#include "tests/unit/types/random_object.h"
#include "tests/unit/types/verdicts.h"

namespace lockkeeper {
namespace {

Json Parse(std::string_view text) {
  Result<Json> json = Json::Parse(text);
  EXPECT_TRUE(json.ok()) << json.status().ToString();
  return json.ok() ? *json : Json();
}

TEST(Codec, AMinimalServerReadsWithTheDefaultsOfItsSchema) {
  const auto server = FromJson<Server>(Parse(R"({"apiVersion": "lockkeeper.dev/v1alpha1", "kind": "Server",
      "metadata": {"name": "kcp"}, "spec": {"host": "host-a", "template": {"command": ["bin/kcp"]}}})"));
  ASSERT_TRUE(server.ok()) << server.status().ToString();
  EXPECT_EQ(server->spec.shape, ServerShape::kBlueGreen);
  EXPECT_EQ(server->spec.timeouts.ready_seconds, 60);
  EXPECT_EQ(server->spec.timeouts.stop_seconds, 75);
  EXPECT_EQ(server->spec.template_.readiness.path, "/readyz");
  EXPECT_EQ(server->spec.deletion_policy, DeletionPolicy::kOrphan);
  EXPECT_EQ(server->status.observed_generation, -1);
  EXPECT_FALSE(server->spec.front_ref.has_value());
}

// The struct's member initialisers and the schema's defaults are one thing written twice; this holds them together.
template <typename T>
void ExpectSameDefaults(const Json& minimal) {
  Json filled = minimal;
  ApplyDefaults(*FindKind(kGroup, kVersion, T::kKind), filled);
  const auto read = FromJson<T>(minimal);
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  Json written = ToJson(*read);
  // Empty objects with nothing to say are not written; the rest must be the same.
  EXPECT_EQ(written.DumpCanonical(), filled.DumpCanonical()) << T::kKind;
}

TEST(Codec, WhatAStructStartsWithIsWhatTheSchemaDefaultsTo) {
  const auto bases = LoadBases(LK_VERDICTS_DIR);
  ASSERT_TRUE(bases.ok()) << bases.status().ToString();
  for (const auto& [kind, base] : *bases) {
    if (kind->kind == Server::kKind) ExpectSameDefaults<Server>(base);
    if (kind->kind == Upgrade::kKind) ExpectSameDefaults<Upgrade>(base);
    if (kind->kind == Roll::kKind) ExpectSameDefaults<Roll>(base);
    if (kind->kind == Slot::kKind) ExpectSameDefaults<Slot>(base);
    if (kind->kind == Front::kKind) ExpectSameDefaults<Front>(base);
    if (kind->kind == Release::kKind) ExpectSameDefaults<Release>(base);
    if (kind->kind == StoreBackup::kKind) ExpectSameDefaults<StoreBackup>(base);
    if (kind->kind == StoreRestore::kKind) ExpectSameDefaults<StoreRestore>(base);
  }
}

TEST(Codec, DefaultsOfOptionalPartsAreTheStructsOwnToo) {
  Json base =
      Parse(R"({"apiVersion": "lockkeeper.dev/v1alpha1", "kind": "Server", "metadata": {"name": "kcp"}, "spec": {
      "host": "host-a", "source": {"url": "/srv/kcp"}, "seed": {}, "lease": {"name": "l"},
      "probe": {"type": "Workspace", "workspace": {}}, "backup": {"driver": "SQLite", "sqlite": {"file": "/f"}},
      "maintenance": {"windows": [{"start": "0 0 * * *", "durationMinutes": 5}]},
      "template": {"command": ["x"], "companions": [{"name": "kine", "command": ["kine"]}]}}})");
  ExpectSameDefaults<Server>(base);
}

TEST(Codec, UnknownMembersSurviveAReadModifyWriteAtEveryDepth) {
  const Json stored = Parse(R"({"apiVersion": "lockkeeper.dev/v1alpha1", "kind": "Upgrade", "later": {"a": [1]},
      "metadata": {"name": "u", "managedFields": [{"manager": "kubectl"}]},
      "spec": {"serverRef": {"name": "kcp", "cluster": "west"}, "version": "v1", "urgency": 7,
               "runners": {"onFailure": "Stop", "stepTimeoutSeconds": 1, "rejoinTimeoutSeconds": 2, "order": ["a"]}},
      "status": {"observedGeneration": 3, "mood": "good",
                 "conditions": [{"type": "Ready", "status": "True", "reason": "AsDesired", "message": "",
                                 "lastTransitionTime": "2026-11-30T12:00:00Z", "severity": "Low"}]}})");
  auto upgrade = FromJson<Upgrade>(stored);
  ASSERT_TRUE(upgrade.ok()) << upgrade.status().ToString();
  upgrade->status.driven_by = "manager-1";
  const Json written = ToJson(*upgrade);
  EXPECT_EQ(written.At({"later", "a"}).Dump(), "[1]");
  EXPECT_EQ(written.At({"metadata", "managedFields"}).size(), 1u);
  EXPECT_EQ(written.At({"spec", "serverRef", "cluster"}).AsString(), "west");
  EXPECT_EQ(written.At({"spec", "urgency"}).AsInt(), 7);
  EXPECT_EQ(written.At({"spec", "runners", "order"}).size(), 1u);
  EXPECT_EQ(written.At({"status", "mood"}).AsString(), "good");
  EXPECT_EQ(written.At({"status", "conditions"}).AsArray()[0].Get("severity").AsString(), "Low");
  EXPECT_EQ(written.At({"status", "drivenBy"}).AsString(), "manager-1");
  EXPECT_EQ(ToJson(*FromJson<Upgrade>(written)).DumpCanonical(), written.DumpCanonical());
}

TEST(Codec, ControlsAndReportStandAmongTheOtherMembers) {
  Roll roll;
  roll.spec.controls.abort = true;
  roll.spec.controls.approve = {Gate::kBeforeFlip};
  roll.status.report.from = "blue";
  roll.status.report.outage_seconds = 0;
  roll.status.report.flipped_at = *ParseTime("2026-11-30T12:00:00.000001Z");
  const Json json = ToJson(roll);
  EXPECT_EQ(json.At({"spec", "abort"}).AsBool(), true);
  EXPECT_EQ(json.At({"spec", "approve"}).Dump(), R"(["BeforeFlip"])");
  EXPECT_EQ(json.At({"status", "from"}).AsString(), "blue");
  EXPECT_TRUE(json.Get("status").Has("outageSeconds")) << "a zero that was measured is written";
  EXPECT_EQ(json.At({"status", "flippedAt"}).AsString(), "2026-11-30T12:00:00.000001Z");
  const auto back = FromJson<Roll>(json);
  ASSERT_TRUE(back.ok()) << back.status().ToString();
  EXPECT_EQ(*back, roll);
}

TEST(Codec, UnsetMembersAreNotWrittenAndChosenZerosAre) {
  Server server;
  server.spec.host = "h";
  server.spec.template_.command = {"x"};
  server.spec.timeouts.ready_seconds = 0;  // "the default", which a schema default would turn into 60
  const Json json = ToJson(server);
  EXPECT_EQ(json.At({"spec", "timeouts", "readySeconds"}).Dump(), "0");
  EXPECT_FALSE(json.Get("spec").Has("frontRef"));
  EXPECT_FALSE(json.Get("spec").Has("layout"));
  EXPECT_FALSE(json.Get("spec").Has("version"));
  EXPECT_FALSE(json.Get("status").Has("declaredAttempts"));
  EXPECT_EQ(json.AsObject()[0].first, "apiVersion");
  EXPECT_EQ(json.AsObject()[1].first, "kind");
}

TEST(Codec, AWrongTypeIsNamedWithItsPath) {
  struct Row {
    const char* spec;
    const char* what;
  };
  for (const Row& row : std::initializer_list<Row>{
           {R"({"timeouts": {"readySeconds": "60"}})",
            "spec.timeouts.readySeconds: expected an integer, found a string"},
           {R"({"template": {"companions": [{}, {"name": 5}]}})",
            "spec.template.companions[1].name: expected a string, found an integer"},
           {R"({"shape": "Round"})", "spec.shape: this build does not know the value \"Round\" of ServerShape"},
           {R"({"runnerSelector": {"matchLabels": {"a": true}}})",
            "spec.runnerSelector.matchLabels.a: expected a string, found a boolean"},
           {R"({"soakSeconds": 1.5})", "spec.soakSeconds: expected an integer, found a number"},
           {R"({"template": []})", "spec.template: expected an object, found an array"}}) {
    const auto server = FromJson<Server>(Json::MakeObject({{"spec", Parse(row.spec)}}));
    ASSERT_FALSE(server.ok());
    EXPECT_EQ(server.code(), Code::kInvalid);
    EXPECT_EQ(server.status().message(), std::string("reading Server: ") + row.what);
  }
}

TEST(Codec, AnotherKindIsRefusedAndListItemsWithoutKindAreRead) {
  EXPECT_FALSE(FromJson<Server>(Parse(R"({"kind": "Front", "apiVersion": "lockkeeper.dev/v1alpha1"})")).ok());
  EXPECT_FALSE(FromJson<Server>(Parse(R"({"kind": "Server", "apiVersion": "lockkeeper.dev/v2"})")).ok());
  EXPECT_TRUE(FromJson<Server>(Parse(R"({"metadata": {"name": "a"}})")).ok());
}

TEST(Codec, NullCountsAsAbsentAndAWholeFractionAsAnInteger) {
  const auto front = FromJson<Front>(Parse(R"({"spec": {"host": null, "maxConnections": 12.0, "hold": null}})"));
  ASSERT_TRUE(front.ok()) << front.status().ToString();
  EXPECT_EQ(front->spec.host, "");
  EXPECT_EQ(front->spec.max_connections, 12);
  EXPECT_EQ(front->spec.hold.connections, 4096);
}

TEST(Codec, LeaseAndEventTimesCarryMicroseconds) {
  const Json json = Parse(R"({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"},
      "spec": {"holderIdentity": "a_1", "leaseDurationSeconds": 15, "acquireTime": "2026-11-30T12:00:00.000000Z",
               "renewTime": "2026-11-30T12:00:01.500000Z", "leaseTransitions": 0}})");
  const auto lease = FromJson<Lease>(json);
  ASSERT_TRUE(lease.ok()) << lease.status().ToString();
  EXPECT_EQ(ToJson(*lease).DumpCanonical(), json.DumpCanonical());

  Event event;
  event.involved_object.kind = "Server";
  event.event_time = *ParseTime("2026-11-30T12:00:00.25Z");
  event.last_timestamp = *ParseTime("2026-11-30T12:00:00Z");
  EXPECT_EQ(ToJson(event).Get("eventTime").AsString(), "2026-11-30T12:00:00.250000Z");
  EXPECT_EQ(ToJson(event).Get("lastTimestamp").AsString(), "2026-11-30T12:00:00Z");
}

template <typename T>
void RoundTrip(uint64_t seed) {
  RandomObject random(seed);
  for (int i = 0; i < 60; ++i) {
    const Json json = random.Make(T::Type());
    const auto once = FromJson<T>(json);
    ASSERT_TRUE(once.ok()) << "seed " << seed << ": " << once.status().ToString() << "\n" << json.Dump();
    const Json written = ToJson(*once);
    const auto twice = FromJson<T>(written);
    ASSERT_TRUE(twice.ok()) << "seed " << seed << ": " << twice.status().ToString() << "\n" << written.Dump();
    ASSERT_EQ(*twice, *once) << "seed " << seed << "\n" << json.Dump();
    ASSERT_EQ(ToJson(*twice), written) << "seed " << seed << "\n" << json.Dump();
  }
}

TEST(Codec, RandomObjectsOfEveryKindSurviveTheRoundTrip) {
  const uint64_t seed = TestSeed();
  RoundTrip<Server>(seed);
  RoundTrip<Upgrade>(seed);
  RoundTrip<Roll>(seed);
  RoundTrip<Slot>(seed);
  RoundTrip<Front>(seed);
  RoundTrip<Release>(seed);
  RoundTrip<StoreBackup>(seed);
  RoundTrip<StoreRestore>(seed);
  RoundTrip<Lease>(seed);
  RoundTrip<Event>(seed);
}

TEST(Codec, WhatTheStructsWriteIsWhatTheSchemaKnows) {
  // Nothing that a struct writes is pruned or refused for its type by the server.
  const uint64_t seed = TestSeed();
  RandomObject random(seed, false);
  for (const KindInfo& kind : Kinds()) {
    if (!kind.ours) continue;
    for (int i = 0; i < 20; ++i) {
      Json json = random.Make(*kind.type);
      json.Set("metadata", Json::MakeObject({{"name", "n"}}));
      std::vector<std::string> unknown;
      Prune(kind, json, &unknown);
      EXPECT_EQ(unknown, std::vector<std::string>{}) << "seed " << seed;
      for (const FieldError& error : Validate(kind, json, nullptr, false)) {
        EXPECT_NE(error.reason, FieldReason::kTypeInvalid) << "seed " << seed << " " << error.ToString();
      }
    }
  }
}

}  // namespace
}  // namespace lockkeeper
