// Patches, selectors, JSON paths, tables, negotiation, protobuf, tokens: the pure parts, as tables.
#include <gtest/gtest.h>

#include "api/server/auth.h"
#include "api/server/json_path.h"
#include "api/server/negotiate.h"
#include "api/server/patch.h"
#include "api/server/protobuf.h"
#include "api/server/request_info.h"
#include "api/server/selector.h"
#include "api/server/table.h"

namespace lockkeeper::apiserver {
namespace {

Json J(const std::string& text) {
  Result<Json> json = Json::Parse(text);
  EXPECT_TRUE(json.ok()) << text << ": " << json.status().ToString();
  return json.ok() ? *json : Json();
}

struct MergeCase {
  const char* name;
  const char* target;
  const char* patch;
  const char* want;
};

class MergePatch : public testing::TestWithParam<MergeCase> {};

TEST_P(MergePatch, Gives) {
  Json target = J(GetParam().target);
  ApplyMergePatch(target, J(GetParam().patch));
  EXPECT_EQ(target, J(GetParam().want)) << target.Dump();
}

INSTANTIATE_TEST_SUITE_P(
    Rfc7386, MergePatch,
    testing::Values(MergeCase{"AMemberIsReplaced", R"({"a":"b"})", R"({"a":"c"})", R"({"a":"c"})"},
                    MergeCase{"AMemberIsAdded", R"({"a":"b"})", R"({"b":"c"})", R"({"a":"b","b":"c"})"},
                    MergeCase{"ANullRemoves", R"({"a":"b","b":"c"})", R"({"a":null})", R"({"b":"c"})"},
                    MergeCase{"AListIsReplacedWhole", R"({"a":[1,2]})", R"({"a":[3]})", R"({"a":[3]})"},
                    MergeCase{"ObjectsMergeDeeply", R"({"a":{"b":1,"c":2}})", R"({"a":{"b":null,"d":3}})",
                              R"({"a":{"c":2,"d":3}})"},
                    MergeCase{"ANullInANewObjectIsDropped", R"({})", R"({"a":{"b":null}})", R"({"a":{}})"},
                    MergeCase{"AScalarBecomesAnObject", R"({"a":1})", R"({"a":{"b":1}})", R"({"a":{"b":1}})"}),
    [](const auto& test) { return std::string(test.param.name); });

struct JsonPatchCase {
  const char* name;
  const char* target;
  const char* patch;
  const char* want;  // nullptr: refused, and the target is as it was
};

class JsonPatch : public testing::TestWithParam<JsonPatchCase> {};

TEST_P(JsonPatch, Gives) {
  const JsonPatchCase& c = GetParam();
  Json target = J(c.target);
  const Status status = ApplyJsonPatch(target, J(c.patch));
  EXPECT_EQ(status.ok(), c.want != nullptr) << status.ToString();
  EXPECT_EQ(target, J(c.want == nullptr ? c.target : c.want)) << target.Dump();
}

INSTANTIATE_TEST_SUITE_P(
    Rfc6902, JsonPatch,
    testing::Values(
        JsonPatchCase{"AddSetsAMember", "{}", R"([{"op":"add","path":"/a","value":1}])", R"({"a":1})"},
        JsonPatchCase{"AddInsertsIntoAList", R"({"a":[1,3]})", R"([{"op":"add","path":"/a/1","value":2}])",
                      R"({"a":[1,2,3]})"},
        JsonPatchCase{"AddAppendsWithADash", R"({"a":[1]})", R"([{"op":"add","path":"/a/-","value":2}])",
                      R"({"a":[1,2]})"},
        JsonPatchCase{"AddIntoAMissingParentIsRefused", "{}", R"([{"op":"add","path":"/a/b","value":1}])", nullptr},
        JsonPatchCase{"RemoveTakesAMember", R"({"a":1,"b":2})", R"([{"op":"remove","path":"/a"}])", R"({"b":2})"},
        JsonPatchCase{"RemoveOfAMissingOneIsRefused", "{}", R"([{"op":"remove","path":"/a"}])", nullptr},
        JsonPatchCase{"ReplaceOfAMissingMemberPasses", "{}", R"([{"op":"replace","path":"/a","value":1}])",
                      R"({"a":1})"},
        JsonPatchCase{"MoveTakesAndSets", R"({"a":1})", R"([{"op":"move","from":"/a","path":"/b"}])", R"({"b":1})"},
        JsonPatchCase{"CopyKeepsTheSource", R"({"a":1})", R"([{"op":"copy","from":"/a","path":"/b"}])",
                      R"({"a":1,"b":1})"},
        JsonPatchCase{"ATestThatHoldsPasses", R"({"a":1})",
                      R"([{"op":"test","path":"/a","value":1},{"op":"add","path":"/b","value":2}])",
                      R"({"a":1,"b":2})"},
        JsonPatchCase{"AFailedTestUndoesAll", R"({"a":1})",
                      R"([{"op":"add","path":"/b","value":2},{"op":"test","path":"/a","value":2}])", nullptr},
        JsonPatchCase{"AnAbsentMemberEqualsNull", "{}", R"([{"op":"test","path":"/a","value":null}])", "{}"},
        JsonPatchCase{"EscapesInPaths", R"({"a/b":{"c~d":1}})", R"([{"op":"remove","path":"/a~1b/c~0d"}])",
                      R"({"a/b":{}})"},
        JsonPatchCase{"AnUnknownOperationIsRefused", "{}", R"([{"op":"sing","path":"/a"}])", nullptr},
        JsonPatchCase{"AnObjectIsNoPatch", "{}", R"({"op":"add"})", nullptr},
        JsonPatchCase{"AnIndexBeyondTheEndIsRefused", R"({"a":[1]})", R"([{"op":"add","path":"/a/5","value":1}])",
                      nullptr}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(StrategicPatch, DirectivesDeleteReplaceAndMergeByKey) {
  Json target =
      J(R"({"data":{"a":"1","b":"2"},"metadata":{"finalizers":["x","y"],"ownerReferences":[{"uid":"1","name":"a"}]}})");
  ASSERT_TRUE(ApplyStrategicMergePatch(target, J(R"({"data":{"$patch":"replace","c":"3"},
      "metadata":{"$setElementOrder/finalizers":["y","z"],"$deleteFromPrimitiveList/finalizers":["x"],"finalizers":["z"],
                  "ownerReferences":[{"uid":"1","name":"b"},{"uid":"2","name":"c"}]}})"))
                  .ok());
  EXPECT_EQ(target, J(R"({"data":{"c":"3"},"metadata":{"finalizers":["y","z"],
      "ownerReferences":[{"uid":"1","name":"b"},{"uid":"2","name":"c"}]}})"))
      << target.Dump();
  ASSERT_TRUE(ApplyStrategicMergePatch(
                  target, J(R"({"data":{"c":null},"metadata":{"ownerReferences":[{"uid":"2","$patch":"delete"}]}})"))
                  .ok());
  EXPECT_EQ(target.Get("data"), J("{}"));
  EXPECT_EQ(target.At({"metadata", "ownerReferences"}).size(), 1U);
}

struct LabelCase {
  const char* selector;
  bool matches;  // {"app":"web","tier":"a"}
};

class Labels : public testing::TestWithParam<LabelCase> {};

TEST_P(Labels, Match) {
  const Result<LabelSelector> selector = LabelSelector::Parse(GetParam().selector);
  ASSERT_TRUE(selector.ok()) << selector.status().ToString();
  EXPECT_EQ(selector->Matches(J(R"({"app":"web","tier":"a"})")), GetParam().matches) << GetParam().selector;
}

INSTANTIATE_TEST_SUITE_P(Selectors, Labels,
                         testing::Values(LabelCase{"", true}, LabelCase{"app=web", true},
                                         LabelCase{"app==web,tier=a", true}, LabelCase{"app=web,tier=b", false},
                                         LabelCase{"app!=web", false}, LabelCase{"zone!=x", true},
                                         LabelCase{"tier in (a, b)", true}, LabelCase{"tier notin (a,b)", false},
                                         LabelCase{"zone notin (a)", true}, LabelCase{"app", true},
                                         LabelCase{"zone", false}, LabelCase{"!zone", true}, LabelCase{"!app", false},
                                         LabelCase{"app, tier in (a),!zone", true}, LabelCase{"app=", false},
                                         LabelCase{"a.b/c=d", false}));

TEST(LabelSelector, WhatIsNoSelectorIsRefused) {
  for (const char* bad : {"a in", "a in (b", "=x", "a b", "a=b c", "a=b,,c", "a/b/c=d", "a>1", "-a=b", "a=b,"}) {
    EXPECT_FALSE(LabelSelector::Parse(bad).ok()) << bad;
  }
}

TEST(FieldSelector, KnowsNamesAndTheFieldsOfEvents) {
  const KindInfo* event = FindKind("", "v1", "Event");
  const KindInfo* upgrade = FindKind("lockkeeper.dev", "v1alpha1", "Upgrade");
  ASSERT_NE(event, nullptr);
  ASSERT_NE(upgrade, nullptr);
  const Json object = J(
      R"({"metadata":{"name":"e","namespace":"n"},"involvedObject":{"kind":"Roll","name":"r,1","uid":"u"},"reason":"Up"})");
  auto matches = [&](const char* text) {
    const Result<FieldSelector> selector = FieldSelector::Parse(text, *event);
    EXPECT_TRUE(selector.ok()) << text;
    return selector.ok() && selector->Matches(object);
  };
  EXPECT_TRUE(matches("involvedObject.kind=Roll,involvedObject.uid=u"));
  EXPECT_TRUE(matches(R"(involvedObject.name=r\,1)"));
  EXPECT_FALSE(matches("involvedObject.kind!=Roll"));
  EXPECT_TRUE(matches("reason==Up,type="));
  EXPECT_EQ(FieldSelector::Parse("metadata.name=x", *upgrade)->name(), "x");
  const Result<FieldSelector> refused = FieldSelector::Parse("spec.version=1", *upgrade);
  EXPECT_EQ(refused.status().message(), "field label not supported: spec.version");
  EXPECT_FALSE(FieldSelector::Parse("metadata.name", *upgrade).ok());
}

struct PathCase {
  const char* path;
  const char* want;  // the first hit; "" for none, nullptr: does not parse
};

class Paths : public testing::TestWithParam<PathCase> {};

TEST_P(Paths, LeadTo) {
  const Json object = J(R"({"metadata":{"labels":{"a.b/c":"dotted"}},"list":[10,20,30],
      "status":{"conditions":[{"type":"Ready","status":"True","n":1},{"type":"Done","status":"False","n":2}]}})");
  const Result<JsonPath> path = JsonPath::Parse(GetParam().path);
  ASSERT_EQ(path.ok(), GetParam().want != nullptr) << GetParam().path;
  if (!path.ok()) return;
  const std::vector<const Json*> found = path->Find(object);
  EXPECT_EQ(found.empty() ? "" : found.front()->Dump(), GetParam().want) << GetParam().path;
}

INSTANTIATE_TEST_SUITE_P(
    PrinterColumns, Paths,
    testing::Values(PathCase{".list", "[10,20,30]"}, PathCase{".list[0]", "10"}, PathCase{".list[-1]", "30"},
                    PathCase{".list[*]", "10"}, PathCase{".list[9]", ""}, PathCase{".none.deeper", ""},
                    PathCase{R"(.status.conditions[?(@.type=="Ready")].status)", R"("True")"},
                    PathCase{R"(.status.conditions[?(@.type=='Done')].status)", R"("False")"},
                    PathCase{R"(.status.conditions[?(@.type!="Ready")].n)", "2"},
                    PathCase{R"(.status.conditions[?(@.n>1)].type)", R"("Done")"},
                    PathCase{R"(.status.conditions[?(@.type==Ready)].status)", ""}, PathCase{"..type", R"("Ready")"},
                    PathCase{R"(.metadata.labels.a\.b/c)", R"("dotted")"},
                    PathCase{R"(.metadata.labels['a.b/c'])", R"("dotted")"}, PathCase{"status", nullptr},
                    PathCase{R"(.x[?(@.a=="1"&&@.b=="2")])", nullptr}, PathCase{R"(.x[?(@.a=~"b")])", nullptr},
                    PathCase{".x[", nullptr}, PathCase{"..", nullptr}));

TEST(Table, CellsAreAgesNumbersAndTextAsTheColumnsSay) {
  KindInfo kind;
  kind.kind = "Thing";
  auto column = [&](const char* name, const char* type, const char* path) {
    PrinterColumn c;
    c.name = name;
    c.type = type;
    c.json_path = path;
    kind.columns.push_back(c);
  };
  column("Age", "date", ".metadata.creationTimestamp");
  column("Future", "date", ".future");
  column("Never", "date", ".never");
  column("Count", "integer", ".count");
  column("Wrong", "integer", ".text");
  column("Text", "string", ".text");
  column("List", "string", ".list");
  column("Broken", "string", ".x[?(@.a&&@.b)]");
  column("Flag", "boolean", ".flag");
  const Table table(kind);
  const Json object =
      J(R"({"kind":"Thing","apiVersion":"g/v","metadata":{"name":"a","creationTimestamp":"2026-11-30T08:55:00Z"},
      "future":"2027-01-01T00:00:00Z","count":7,"text":"t","list":[1,"x"],"flag":true})");
  const Time now = *ParseTime("2026-11-30T12:00:00Z");
  const Json row = table.Row(object, now, IncludeObject::kMetadata);
  EXPECT_EQ(row.Get("cells"), J(R"(["a","3h5m","<invalid>",null,7,null,"t","[1,\"x\"]",true])")) << row.Dump();
  EXPECT_EQ(row.At({"object", "kind"}).AsString(), "PartialObjectMetadata");
  EXPECT_FALSE(row.Get("object").Has("count"));
  EXPECT_EQ(table.Columns().size(), 9U) << "a column whose path does not parse is left out";
  EXPECT_TRUE(table.Row(object, now, IncludeObject::kNone).Get("object").IsNull());
  EXPECT_EQ(table.Row(object, now, IncludeObject::kObject).At({"object", "count"}).AsInt(), 7);
}

TEST(Negotiation, TheFirstShapeThatIsServedIsTaken) {
  const std::vector<Shape> shapes = {Shape::kTable, Shape::kPartialMetadata};
  auto shape = [&](const char* accept) { return NegotiateShape(accept, shapes); };
  EXPECT_EQ(shape(""), Shape::kPlain);
  EXPECT_EQ(shape("application/json"), Shape::kPlain);
  EXPECT_EQ(shape("*/*"), Shape::kPlain);
  EXPECT_EQ(shape("application/json;as=Table;v=v1;g=meta.k8s.io,application/json"), Shape::kTable);
  EXPECT_EQ(shape("application/json; as=Table; v=v1beta1; g=meta.k8s.io"), Shape::kTable);
  EXPECT_EQ(shape("application/vnd.kubernetes.protobuf,application/json"), Shape::kPlain);
  EXPECT_EQ(shape("application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"), Shape::kPartialMetadata);
  EXPECT_EQ(shape("application/json;as=Song;v=v1;g=meta.k8s.io,application/json"), Shape::kPlain);
  EXPECT_EQ(shape("application/json;as=Song;v=v1;g=meta.k8s.io"), std::nullopt);
  EXPECT_EQ(shape("application/vnd.kubernetes.protobuf"), std::nullopt);
  EXPECT_EQ(NegotiateShape("application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", {}), std::nullopt);
}

TEST(RequestInfo, PathsAreSplitIntoWhatTheyName) {
  auto parse = [](const std::string& method, const std::string& path, const std::string& watch = "") {
    HttpRequest request;
    request.method = method;
    request.path = path;
    if (!watch.empty()) request.query.emplace("watch", watch);
    const RequestInfo info = ParseRequest(request, true);
    return info.cluster_path + "|" + info.verb + "|" + info.group + "|" + info.version + "|" + info.ns + "|" +
           info.resource + "|" + info.name + "|" + info.subresource;
  };
  EXPECT_EQ(parse("GET", "/api/v1/namespaces/n/configmaps/c"), "|get||v1|n|configmaps|c|");
  EXPECT_EQ(parse("GET", "/api/v1/namespaces/n"), "|get||v1||namespaces|n|");
  EXPECT_EQ(parse("PUT", "/api/v1/namespaces/n/status"), "|update||v1||namespaces|n|status");
  EXPECT_EQ(parse("GET", "/api/v1/namespaces", "1"), "|watch||v1||namespaces||");
  EXPECT_EQ(parse("PATCH", "/apis/lockkeeper.dev/v1alpha1/namespaces/n/upgrades/u/status"),
            "|patch|lockkeeper.dev|v1alpha1|n|upgrades|u|status");
  EXPECT_EQ(parse("DELETE", "/apis/g/v/things"), "|deletecollection|g|v||things||");
  EXPECT_EQ(parse("GET", "/clusters/root:a/apis/g/v/things/x"), "root:a|get|g|v||things|x|");
  EXPECT_EQ(parse("GET", "/clusters/root:a"), "root:a|||||||");
  HttpRequest request;
  request.path = "/clusters/root/api/v1/configmaps";
  EXPECT_EQ(ParseRequest(request, false).target, Target::kUnknown) << "clusters are a mode";
}

TEST(Tokens, TheFileIsReadAsKubeApiserversAndABrokenLineIsNamedNotQuoted) {
  Result<std::vector<TokenEntry>> entries = ParseTokenFile("# a comment\nt1,alice,1,\"a,b\"\n\nt2,bob,2\n");
  ASSERT_TRUE(entries.ok());
  ASSERT_EQ(entries->size(), 2U);
  EXPECT_TRUE((*entries)[0].user.InGroup("b"));
  EXPECT_EQ(FormatTokenEntry((*entries)[0]), "t1,alice,1,\"a,b\"\n");
  const Result<std::vector<TokenEntry>> broken = ParseTokenFile("ok,a,1\nverysecret\n");
  ASSERT_FALSE(broken.ok());
  EXPECT_NE(broken.status().message().find("line 2"), std::string::npos);
  EXPECT_EQ(broken.status().message().find("verysecret"), std::string::npos);
}

TEST(Tokens, OnlyAKnownBearerTokenIsAUser) {
  const TokenAuthenticator tokens(std::vector<TokenEntry>{{"t1", {"alice", "1", {}}}});
  auto user = [&](const char* header) {
    HttpRequest request;
    request.headers.emplace("authorization", header);
    const std::optional<User> found = tokens.Authenticate(request);
    return found ? found->name : "";
  };
  EXPECT_EQ(user("Bearer t1"), "alice");
  EXPECT_EQ(user("bearer  t1"), "alice");
  EXPECT_EQ(user("Bearer t2"), "");
  EXPECT_EQ(user("Bearer "), "");
  EXPECT_EQ(user("Basic t1"), "");
  EXPECT_EQ(user("t1"), "");
}

TEST(Base64, IsStrictAndRoundTrips) {
  for (const char* text : {"", "a", "ab", "abc", "abcd"}) EXPECT_EQ(*FromBase64(Base64(text)), text);
  for (const char* bad : {"a", "ab=c", "====", "a b=", "YQ=", "YQ==="}) EXPECT_FALSE(FromBase64(bad).ok()) << bad;
}

TEST(Protobuf, BrokenBytesAndOtherKindsAreRefused) {
  EXPECT_EQ(DecodeProtobuf("{}").code(), Code::kInvalid);
  EXPECT_EQ(DecodeProtobuf(std::string("k8s\0\x0a\xff\xff\xff\xff\x0f", 10)).code(), Code::kInvalid);
  // typeMeta {apiVersion "v1", kind "Pod"}
  const std::string pod = std::string("k8s\0", 4) + "\x0a\x09\x0a\x02v1\x12\x03Pod";
  EXPECT_EQ(DecodeProtobuf(pod).code(), Code::kUnsupported);
  // A Namespace with metadata.name "n" and a label.
  const std::string meta = std::string("\x0a\x01n\x5a\x06\x0a\x01", 7) + "a\x12\x01" + "b";
  const std::string raw = std::string("\x0a") + static_cast<char>(meta.size()) + meta;
  const std::string body =
      std::string("k8s\0", 4) + "\x0a\x0f\x0a\x02v1\x12\x09Namespace\x12" + static_cast<char>(raw.size()) + raw;
  const Result<Json> ns = DecodeProtobuf(body);
  ASSERT_TRUE(ns.ok()) << ns.status().ToString();
  EXPECT_EQ(*ns, J(R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"n","labels":{"a":"b"}}})"))
      << ns->Dump();
}

// A field with bytes in it, as protobuf writes it: all below 128 bytes here.
std::string Part(int number, const std::string& bytes) {
  return std::string(1, static_cast<char>(number << 3 | 2)) + static_cast<char>(bytes.size()) + bytes;
}
std::string Part(int number, int value) {
  return std::string(1, static_cast<char>(number << 3)) + static_cast<char>(value);
}

TEST(Protobuf, WhatTypedClientsOfClientGoWriteIsRead) {
  const std::string time("\x08\x80\xcc\xb9\xff\x05\x10\xa8\xf8\xbf\x1d", 11);  // 2021-01-01T00:00:00.061865Z
  const auto body = [](const std::string& api_version, const std::string& kind, const std::string& raw) {
    return std::string("k8s\0", 4) + Part(1, Part(1, api_version) + Part(2, kind)) + Part(2, raw);
  };
  const std::string spec = Part(1, "me") + Part(2, 15) + Part(3, time) + Part(4, time) + Part(5, 2);
  const Result<Json> lease =
      DecodeProtobuf(body("coordination.k8s.io/v1", "Lease", Part(1, Part(1, "n")) + Part(2, spec)));
  ASSERT_TRUE(lease.ok()) << lease.status().ToString();
  EXPECT_EQ(*lease, J(R"({"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"n"},"spec":{
      "holderIdentity":"me","leaseDurationSeconds":15,"acquireTime":"2021-01-01T00:00:00.061865Z",
      "renewTime":"2021-01-01T00:00:00.061865Z","leaseTransitions":2}})"))
      << lease->Dump();
  // An empty time is none.
  const std::string event = Part(1, Part(1, "e")) + Part(2, Part(1, "Lease") + Part(3, "n")) + Part(3, "Led") +
                            Part(5, Part(1, "c")) + Part(6, time) + Part(8, 1) + Part(10, "");
  const Result<Json> core = DecodeProtobuf(body("v1", "Event", event));
  ASSERT_TRUE(core.ok()) << core.status().ToString();
  EXPECT_EQ(*core, J(R"({"apiVersion":"v1","kind":"Event","metadata":{"name":"e"},
      "involvedObject":{"kind":"Lease","name":"n"},"reason":"Led","source":{"component":"c"},
      "firstTimestamp":"2021-01-01T00:00:00Z","count":1})"))
      << core->Dump();
  const Result<Json> later = DecodeProtobuf(
      body("events.k8s.io/v1", "Event", Part(1, Part(1, "e")) + Part(2, time) + Part(7, "Led") + Part(10, "said")));
  ASSERT_TRUE(later.ok()) << later.status().ToString();
  const Result<Json> options =
      DecodeProtobuf(body("v1", "DeleteOptions", Part(2, Part(1, "u")) + Part(4, "Background") + Part(5, "All")));
  ASSERT_TRUE(options.ok()) << options.status().ToString();
  EXPECT_EQ(*options, J(R"({"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"uid":"u"},
      "propagationPolicy":"Background","dryRun":["All"]})"))
      << options->Dump();
  EXPECT_EQ(later->Get("note").AsString(), "said");
  EXPECT_EQ(later->Get("eventTime").AsString(), "2021-01-01T00:00:00.061865Z");
}

}  // namespace
}  // namespace lockkeeper::apiserver
