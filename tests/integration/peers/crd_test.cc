// The files of crd/ on a real kube-apiserver: accepted, served, shown and explained as the types' tables say.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "api/base/file.h"
#include "api/types/kind.h"
#include "tests/support/peers/cluster.h"
#include "tests/support/wait.h"
#include "tests/unit/types/verdicts.h"

namespace lockkeeper::peers {
namespace {

const Resource kCrds{"apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", false};
const std::string kFolder = std::string(LK_SOURCE_DIR) + "/crd";

std::vector<const KindInfo*> OurKinds() {
  std::vector<const KindInfo*> out;
  for (const KindInfo& kind : Kinds()) {
    if (kind.ours) out.push_back(&kind);
  }
  return out;
}

std::string CrdName(const KindInfo& kind) { return kind.plural + "." + kind.group; }
Resource ResourceFor(const KindInfo& kind) { return {kind.group, kind.version, kind.plural, kind.kind}; }

// "True", "False", "" where there is none.
std::string ConditionOf(const Json& object, const std::string& type) {
  for (const Json& condition : object.At({"status", "conditions"}).AsArray()) {
    if (condition.Get("type").AsString() == type) return condition.Get("status").AsString();
  }
  return "";
}

// As kstatus reads an object (crd-idioms 3.3): what Helm and Flux wait for.
std::string KStatusOf(const Json& object) {
  if (object.At({"metadata", "deletionTimestamp"}).IsString()) return "Terminating";
  const Json* observed = object.Get("status").Find("observedGeneration");
  if (observed != nullptr && observed->AsInt() != object.At({"metadata", "generation"}).AsInt()) return "InProgress";
  if (ConditionOf(object, "Reconciling") == "True") return "InProgress";
  if (ConditionOf(object, "Stalled") == "True") return "Failed";
  const std::string ready = ConditionOf(object, "Ready");
  return ready.empty() || ready == "True" ? "Current" : "InProgress";
}

std::string Collapsed(const std::string& text) {
  std::istringstream words(text);
  std::string out;
  for (std::string word; words >> word;) out += (out.empty() ? "" : " ") + word;
  return out;
}

// A cluster without CRDs: kubectl brings them, as a user's would.
class PeersCrd : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    Result<std::unique_ptr<Cluster>> started = Cluster::Start();
    status_ = started.status();
    if (!started.ok()) return;
    cluster_ = started->release();
    first_ = cluster_->Kubectl({"apply", "-f", kFolder});
  }
  static void TearDownTestSuite() {
    delete cluster_;
    cluster_ = nullptr;
  }
  void SetUp() override {
    if (status_.code() == Code::kNotFound) GTEST_SKIP() << status_.message();
    ASSERT_TRUE(status_.ok()) << status_.ToString();
    const Status installed = cluster_->InstallCrds();  // they are there: waits until they are served
    ASSERT_TRUE(installed.ok()) << installed.ToString();
  }

  static inline Cluster* cluster_ = nullptr;
  static inline Status status_;
  static inline Ran first_;
};

TEST_F(PeersCrd, ClientSideApplyMakesThemAndFindsNothingToChange) {
  EXPECT_EQ(first_.exit, 0) << first_.All();
  EXPECT_EQ(first_.err, "") << "no warning either";
  const Ran again = cluster_->Kubectl({"apply", "-f", kFolder});
  EXPECT_EQ(again.exit, 0) << again.All();
  for (const KindInfo* kind : OurKinds()) {
    const std::string name = "customresourcedefinition.apiextensions.k8s.io/" + CrdName(*kind);
    EXPECT_NE(first_.out.find(name + " created\n"), std::string::npos) << first_.out;
    EXPECT_NE(again.out.find(name + " unchanged\n"), std::string::npos) << again.out;
  }
}

// Also no rule text stands twice in a list, which only this form of apply refuses.
TEST_F(PeersCrd, ServerSideApplyTakesThemOver) {
  const Ran ran = cluster_->Kubectl({"apply", "--server-side", "--force-conflicts", "-f", kFolder});
  EXPECT_EQ(ran.exit, 0) << ran.All();
  for (const KindInfo* kind : OurKinds()) {
    EXPECT_NE(ran.out.find(CrdName(*kind) + " serverside-applied\n"), std::string::npos) << ran.out;
  }
}

// A rule over the cost budget, a schema that is not structural, or a name taken would show here.
TEST_F(PeersCrd, EachIsEstablishedUnderItsNamesWithNothingToComplainOf) {
  for (const KindInfo* kind : OurKinds()) {
    const Result<Json> crd = cluster_->api().Get(kCrds, {"", CrdName(*kind)});
    ASSERT_TRUE(crd.ok()) << crd.status().ToString();
    EXPECT_EQ(ConditionOf(*crd, "Established"), "True") << kind->kind;
    EXPECT_EQ(ConditionOf(*crd, "NamesAccepted"), "True") << kind->kind;
    EXPECT_NE(ConditionOf(*crd, "NonStructuralSchema"), "True") << kind->kind;
    EXPECT_TRUE(crd->At({"status", "acceptedNames"}) == crd->At({"spec", "names"})) << kind->kind;
  }
}

// What the budget is, so that the tests above can fail: the same server refuses a rule that may cost too much.
TEST_F(PeersCrd, ARuleOverTheCostBudgetWouldBeRefused) {
  Json crd = CrdOf(*FindKind("lockkeeper.dev", "v1alpha1", "Front"));
  crd["metadata"].Set("name", "dears.lockkeeper.dev");
  crd["spec"]["names"] = Json::MakeObject({{"kind", "Dear"}, {"plural", "dears"}});
  Json& schema = crd["spec"]["versions"].MutableArray().front()["schema"]["openAPIV3Schema"];
  const Json rule = *Json::Parse(R"j({"rule": "self.all(x, self.all(y, x.contains(y)))", "message": "too dear"})j");
  const Json list = Json::MakeObject({{"type", "array"},
                                      {"items", Json::MakeObject({{"type", "string"}})},
                                      {"x-kubernetes-validations", Json::MakeArray({rule})}});
  schema["properties"]["spec"]["properties"].Set("dear", list);
  const Status made = cluster_->api().Create(kCrds, crd).status();
  EXPECT_EQ(made.code(), Code::kInvalid);
  EXPECT_NE(made.message().find("exceeds budget"), std::string::npos) << made.ToString();
}

TEST_F(PeersCrd, EveryPrinterColumnIsThere) {
  HttpClient client(cluster_->Http());
  int columns = 0;
  for (const KindInfo* kind : OurKinds()) {
    ClientRequest request;
    request.target = "/apis/lockkeeper.dev/v1alpha1/" + kind->plural;
    request.headers = {{"Accept", "application/json;as=Table;v=v1;g=meta.k8s.io"}};
    const Result<ClientResponse> answer = client.Do(request);
    ASSERT_TRUE(answer.ok()) << answer.status().ToString();
    const Json table = *Json::Parse(answer->body);
    std::string expected = "Name string 0\n", served;
    for (const PrinterColumn& column : kind->columns) {
      expected +=
          column.name + " " + column.type + " " + std::to_string(column.priority) + " " + column.description + "\n";
    }
    for (const Json& column : table.Get("columnDefinitions").AsArray()) {
      const std::string& name = column.Get("name").AsString();
      served += name + " " + column.Get("type").AsString() + " " + std::to_string(column.Get("priority").AsInt());
      served += (name == "Name" ? "" : " " + column.Get("description").AsString()) + "\n";
    }
    EXPECT_EQ(served, expected) << kind->kind;
    columns += static_cast<int>(kind->columns.size());
  }
  std::printf("%d printer columns of %zu kinds\n", columns, OurKinds().size());
}

TEST_F(PeersCrd, AFreshObjectReadsAsInProgress) {
  const auto bases = LoadBases(LK_VERDICTS_DIR);
  ASSERT_TRUE(bases.ok()) << bases.status().ToString();
  for (const auto& [kind, base] : *bases) {
    Json object = base;
    object["metadata"].Set("name", "fresh");
    const Result<Json> made = cluster_->api().Create(ResourceFor(*kind), object);
    ASSERT_TRUE(made.ok()) << made.status().ToString();
    const Result<Json> read = cluster_->api().Get(ResourceFor(*kind), ObjectKey::Of(object));
    ASSERT_TRUE(read.ok()) << read.status().ToString();
    EXPECT_EQ(KStatusOf(*read), "InProgress") << read->Dump();
    // A first status that forgets the field keeps the guard.
    const Json patch = Json::MakeObject({{"status", Json::MakeObject({{"conditions", Json::MakeArray()}})}});
    const auto patched =
        cluster_->api().Patch(ResourceFor(*kind), ObjectKey::Of(object), PatchType::kMerge, patch, "status");
    ASSERT_TRUE(patched.ok()) << patched.status().ToString();
    EXPECT_EQ(KStatusOf(*patched), "InProgress") << patched->Dump();
  }
  EXPECT_EQ(bases->size(), OurKinds().size());
}

TEST_F(PeersCrd, TheCategoryAndTheShortNamesListThem) {
  // First this, which asks the server anew: kubectl keeps what it once found for six hours.
  const Ran resources = cluster_->Kubectl({"api-resources", "--api-group=lockkeeper.dev", "--no-headers"});
  EXPECT_EQ(static_cast<size_t>(std::count(resources.out.begin(), resources.out.end(), '\n')), OurKinds().size());
  const Ran all = cluster_->Kubectl({"get", "lockkeeper", "-A"});
  EXPECT_EQ(all.exit, 0) << all.All();
  for (const KindInfo* kind : OurKinds()) {
    for (const std::string& name : kind->short_names) {
      EXPECT_EQ(cluster_->Kubectl({"get", name, "-A"}).exit, 0) << name;
    }
  }
}

// kubectl explain of each object of the schemas, each different one once.
class Explainer {
 public:
  explicit Explainer(const Cluster& cluster) : cluster_(cluster) {}

  void Node(const std::string& path, const Json& schema) {
    const Json* node = &schema;
    while (node->Get("type").AsString() == "array") node = node->Find("items");
    if (node->Find("additionalProperties") != nullptr) node = node->Find("additionalProperties");
    if (node->Get("properties").empty()) return;
    if (std::find(seen_.begin(), seen_.end(), *node) != seen_.end()) return;
    seen_.push_back(*node);
    const Ran ran = cluster_.Kubectl({"explain", path});
    const std::string text = Collapsed(ran.out);
    ASSERT_EQ(ran.exit, 0) << ran.All();
    for (const auto& [name, field] : node->Get("properties").AsObject()) {
      if (name == "apiVersion" || name == "kind" || name == "metadata") continue;  // kube-apiserver has its own
      const std::string description = Collapsed(field.Get("description").AsString());
      EXPECT_NE(description, "") << path << "." << name;
      EXPECT_NE(text.find(description), std::string::npos) << path << "." << name << " in\n" << ran.out;
      ++descriptions_;
      Node(path + "." + name, field);
    }
  }

  size_t calls() const { return seen_.size(); }
  int descriptions() const { return descriptions_; }

 private:
  const Cluster& cluster_;
  std::vector<Json> seen_;
  int descriptions_ = 0;
};

TEST_F(PeersCrd, ExplainShowsEveryDescription) {
  Explainer explainer(*cluster_);
  for (const KindInfo* kind : OurKinds()) {
    const Ran ran = cluster_->Kubectl({"explain", kind->plural});
    EXPECT_NE(Collapsed(ran.out).find(Collapsed(SchemaOf(*kind).Get("description").AsString())), std::string::npos)
        << ran.All();
    explainer.Node(kind->plural, SchemaOf(*kind));
  }
  std::printf("%d descriptions in %zu calls of kubectl explain\n", explainer.descriptions(), explainer.calls());
}

}  // namespace
}  // namespace lockkeeper::peers
