// The kind registry, defaults, pruning and metadata.
#include "api/types/kind.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace lockkeeper {
namespace {

Json Parse(std::string_view text) { return *Json::Parse(text); }
const KindInfo& Ours(std::string_view kind) { return *FindKind("lockkeeper.dev", "v1alpha1", kind); }

TEST(Kinds, AreFoundByKindAndByResource) {
  std::set<std::string> seen;
  for (const KindInfo& kind : Kinds()) {
    EXPECT_EQ(FindKind(kind.group, kind.version, kind.kind), &kind);
    EXPECT_EQ(FindResource(kind.group, kind.version, kind.plural), &kind);
    EXPECT_TRUE(seen.insert(kind.ApiVersion() + " " + kind.kind).second);
    EXPECT_EQ(kind.ours, kind.type != nullptr);
  }
  EXPECT_EQ(FindResource("lockkeeper.dev", "v1alpha1", "upgrades")->short_names, std::vector<std::string>{"upg"});
  EXPECT_EQ(FindKind("", "v1", "Pod"), nullptr);
  EXPECT_NE(FindResource("events.k8s.io", "v1", "events"), nullptr);
  EXPECT_FALSE(FindKind("tenancy.kcp.io", "v1alpha1", "Workspace")->namespaced);
}

TEST(Defaults, NullBecomesTheDefaultOrIsDropped) {  // crd-idioms 2.12
  Json upgrade = Parse(R"({"metadata": {"name": "u"}, "status": null,
      "spec": {"serverRef": {"name": "s"}, "action": null, "artifact": null, "runners": {"onFailure": null}}})");
  ApplyDefaults(Ours("Upgrade"), upgrade);
  EXPECT_EQ(upgrade.At({"spec", "action"}).AsString(), "Upgrade");
  EXPECT_FALSE(upgrade.Get("spec").Has("artifact"));
  EXPECT_EQ(upgrade.At({"spec", "runners", "onFailure"}).AsString(), "StopBeforeFirstSuccess");
  EXPECT_EQ(upgrade.At({"spec", "runners", "stepTimeoutSeconds"}).AsInt(), 1200);
  EXPECT_EQ(upgrade.At({"status", "observedGeneration"}).AsInt(), -1);
  EXPECT_FALSE(upgrade.Get("spec").Has("readyTimeoutSeconds")) << "its default is the Server's";
}

TEST(Defaults, ReachIntoListsAndLeaveUnionsUnset) {
  Json server = Parse(
      R"({"spec": {"host": "h", "template": {"command": ["x"], "companions": [{"name": "k", "command": ["k"]}]}}})");
  ApplyDefaults(Ours("Server"), server);
  const Json& companion = server.At({"spec", "template", "companions"}).AsArray()[0];
  EXPECT_EQ(companion.At({"port", "type"}).AsString(), "FromProcess");
  EXPECT_EQ(server.At({"spec", "probe"}).Dump(), R"({"type":"None"})");
  EXPECT_FALSE(server.Get("spec").Has("source"));
  const std::string once = server.Dump();
  ApplyDefaults(Ours("Server"), server);
  EXPECT_EQ(server.Dump(), once);
}

TEST(Prune, NamesEveryMemberThatTheSchemaDoesNotKnow) {
  Json server = Parse(R"({"apiVersion": "a", "kind": "Server", "top": 1,
      "metadata": {"name": "n", "bar": 1, "managedFields": [], "labels": {"any": "thing"}},
      "spec": {"foo": 1, "Host": "case counts", "template": {"command": ["x"], "companions": [{"name": "k", "x": 1}, {"y": {}}]},
               "runnerSelector": {"matchLabels": {"any": "thing"}}}})");
  std::vector<std::string> unknown;
  Prune(Ours("Server"), server, &unknown);
  EXPECT_EQ(unknown, (std::vector<std::string>{"top", "metadata.bar", "spec.foo", "spec.Host",
                                               "spec.template.companions[0].x", "spec.template.companions[1].y"}));
  EXPECT_FALSE(server.Has("top"));
  EXPECT_TRUE(server.Get("metadata").Has("managedFields"));
  EXPECT_EQ(server.At({"spec", "runnerSelector", "matchLabels", "any"}).AsString(), "thing");
}

TEST(Prune, LeavesKindsWithoutASchemaAloneButForTheirMetadata) {
  Json secret = Parse(R"({"metadata": {"name": "n", "bar": 1}, "data": {"a": "YQ=="}, "immutable": true})");
  std::vector<std::string> unknown;
  Prune(*FindKind("", "v1", "Secret"), secret, &unknown);
  EXPECT_EQ(unknown, std::vector<std::string>{"metadata.bar"});
  EXPECT_TRUE(secret.Has("immutable"));
}

std::string MetaErrors(const KindInfo& kind, const char* metadata) {
  std::string out;
  for (const FieldError& error : ValidateObjectMeta(kind, Json::MakeObject({{"metadata", Parse(metadata)}}))) {
    out += error.field + ": " + error.message.substr(0, error.message.find(" (e.g.")) + "\n";
  }
  return out;
}

TEST(ObjectMeta, NamesLabelsAndFinalizersAreCheckedAsKubernetesDoes) {
  const KindInfo& kind = Ours("Server");
  EXPECT_EQ(MetaErrors(kind, R"({"name": "a.b-c", "labels": {"app.kubernetes.io/name": "", "x": "A_b.C"},
      "annotations": {"UPPER.example.com/x": "any thing"}, "finalizers": ["lockkeeper.dev/operation"]})"),
            "");
  EXPECT_EQ(MetaErrors(kind, R"({})"), "metadata.name: Required value: name or generateName is required\n");
  EXPECT_EQ(MetaErrors(kind, R"({"generateName": "roll-"})"), "");
  EXPECT_EQ(
      MetaErrors(kind, R"({"name": "A b"})"),
      "metadata.name: Invalid value: \"A b\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric "
      "characters, '-' or '.', and must start and end with an alphanumeric character\n");
  EXPECT_EQ(MetaErrors(kind, R"({"name": "a", "labels": {"b c": "d e"}})"),
            "metadata.labels: Invalid value: \"b c\": name part must consist of alphanumeric characters, '-', '_' or "
            "'.', and "
            "must start and end with an alphanumeric character\n"
            "metadata.labels: Invalid value: \"d e\": a valid label must be an empty string or consist of alphanumeric "
            "characters, '-', '_' or '.', and must start and end with an alphanumeric character\n");
  EXPECT_EQ(MetaErrors(kind, R"({"name": "a", "finalizers": ["/x"]})"),
            "metadata.finalizers[0]: Invalid value: \"/x\": prefix part must be non-empty\n");
  EXPECT_EQ(MetaErrors(kind, R"({"name": "a", "ownerReferences": [{"apiVersion": "v1", "kind": "K", "name": "n"}]})"),
            "metadata.ownerReferences.uid: Invalid value: \"\": uid must not be empty\n");
  EXPECT_EQ(
      MetaErrors(kind, R"({"name": "a", "ownerReferences": [
      {"apiVersion": "v1", "kind": "K", "name": "n", "uid": "1", "controller": true},
      {"apiVersion": "v1", "kind": "K", "name": "m", "uid": "2", "controller": true}]})"),
      "metadata.ownerReferences: Invalid value: \"K/m\": Only one reference can have Controller set to true. Found "
      "\"true\" in references for K/n and K/m\n");
  EXPECT_NE(MetaErrors(*FindKind("", "v1", "Namespace"), R"({"name": "a.b"})"), "") << "a namespace is a label";
}

TEST(ObjectMeta, AnnotationsAreBoundedInAll) {
  Json object = Json::MakeObject({{"metadata", Json::MakeObject({{"name", "a"}})}});
  object["metadata"].Set("annotations",
                         Json::MakeObject({{"a", std::string(200000, 'x')}, {"b", std::string(70000, 'x')}}));
  const auto errors = ValidateObjectMeta(Ours("Server"), object);
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].ToString(), "metadata.annotations: Too long: may not be more than 262144 bytes");
}

TEST(Columns, EventsAndCountsAreComputed) {
  const KindInfo& events = *FindKind("", "v1", "Event");
  EXPECT_FALSE(events.name_column);
  const Json event =
      Parse(R"({"involvedObject": {"kind": "Upgrade", "name": "u"}, "count": 3, "lastTimestamp": "2026-11-30T12:00:00Z",
      "source": {"component": "lockkeeper-agent", "host": "h"}, "message": "m"})");
  std::map<std::string, std::string> cells;
  for (const PrinterColumn& column : events.columns) {
    if (column.cell != nullptr) cells[column.name] = column.cell(event).Dump();
  }
  EXPECT_EQ(cells["Object"], "\"upgrade/u\"");
  EXPECT_EQ(cells["Last Seen"], "\"2026-11-30T12:00:00Z\"");
  EXPECT_EQ(cells["Count"], "3");
  EXPECT_EQ(cells["Source"], "\"lockkeeper-agent, h\"");
  const KindInfo& config_map = *FindKind("", "v1", "ConfigMap");
  EXPECT_EQ(config_map.columns[0].cell(Parse(R"({"data": {"a": "1", "b": "2"}, "binaryData": {"c": ""}})")).AsInt(), 3);
}

}  // namespace
}  // namespace lockkeeper
