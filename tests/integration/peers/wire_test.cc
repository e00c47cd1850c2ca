// kubectl's commands (tests/data/wire) through a recording proxy, on the embedded server and on a real kube-apiserver:
// the same requests, and answers that are equal member by member but for the differences that have a name.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <regex>
#include <set>
#include <thread>

#include "api/base/file.h"
#include "tests/integration/peers/wire_table.h"
#include "tests/support/peers/shared.h"
#include "tests/support/wait.h"

namespace lockkeeper::peers {
namespace {

constexpr char kNamespace[] = "wire";

struct Played {
  std::string name;
  std::vector<Exchange> exchanges;
};

// Plays steps against one server, each through a Recorder of its own, so kubectl knows nothing of it yet.
class Player {
 public:
  Player(const Endpoint& endpoint, std::string folder) : endpoint_(endpoint), folder_(std::move(folder)) {}

  void Prepare() {
    const Json metadata = Json::MakeObject({{"name", kNamespace}});
    const auto made = endpoint_.Send("POST", "/api/v1/namespaces", Json::MakeObject({{"metadata", metadata}}));
    ASSERT_TRUE(made.ok() && made->status == 201) << (made.ok() ? made->http.body : made.status().ToString());
    // kube-apiserver publishes the document of new CRDs a little later.
    ASSERT_TRUE(WaitUntil([&] {
      const auto document = endpoint_.Send("GET", "/openapi/v3/apis/lockkeeper.dev/v1alpha1");
      return document.ok() && document->status == 200 && document->http.body.find("StoreRestore") != std::string::npos;
    }));
  }

  void Play(const WireStep& step) {
    Result<std::unique_ptr<Recorder>> recorder = Recorder::Start(endpoint_, folder_, kNamespace);
    ASSERT_TRUE(recorder.ok()) << recorder.status().ToString();
    SubprocessOptions options;
    options.argv = {*FindProgram("kubectl")};
    options.argv.insert(options.argv.end(), step.args.begin(), step.args.end());
    options.env = step.env;
    options.env["KUBECONFIG"] = (*recorder)->kubeconfig();
    options.env["HOME"] = options.env["TMPDIR"] = folder_;
    options.env["KUBECACHEDIR"] = (*recorder)->kubeconfig() + ".cache";
    options.stdin_text = WithUid(step.input);
    options.output_file = (*recorder)->kubeconfig() + ".out";
    options.dies_with_us = true;
    Result<Subprocess> kubectl = Subprocess::Start(options);
    ASSERT_TRUE(kubectl.ok()) << kubectl.status().ToString();
    const size_t at = played_.size();
    played_.push_back({step.name, {}});
    if (!step.during.empty()) {
      EXPECT_TRUE(WaitUntil([&] { return Watches(**recorder); })) << step.name << " does not watch";
      for (const WireStep& inner : step.during) Play(inner);
    }
    const auto said = [&] { return ReadFile(options.output_file).value_or(""); };
    if (!step.until.empty()) {
      // [^] where ECMAScript's dot stops at a line's end.
      const std::regex until(std::regex_replace(step.until, std::regex("\\.\\*"), "[^]*"));
      EXPECT_TRUE(WaitUntil([&] { return std::regex_search(said(), until); })) << step.name << " said\n" << said();
      kubectl->Signal(SIGTERM);
    }
    const Result<int> exit = kubectl->Wait(std::chrono::seconds(90));
    EXPECT_TRUE(exit.ok()) << step.name << ": " << exit.status().ToString() << said();
    const bool compared = step.until.empty() && step.exit.has_value();
    played_[at].exchanges = (*recorder)->Exchanges();
    EXPECT_EQ(exit.value_or(-1), compared ? *step.exit : exit.value_or(-1))
        << step.name << " said\n"
        << said() << "after\n"
        << played_[at].exchanges.back().answer.substr(0, 2000);
  }

  const std::vector<Played>& played() const { return played_; }

 private:
  static bool Watches(const Recorder& recorder) {
    const std::vector<Exchange> exchanges = recorder.Exchanges();
    return std::any_of(exchanges.begin(), exchanges.end(), [](const Exchange& e) {
      return e.target.find("watch=true") != std::string::npos && e.status == 200;
    });
  }

  std::string WithUid(std::string text) const {
    const size_t at = text.find("{uid}");
    if (at == std::string::npos) return text;
    const auto object =
        endpoint_.Send("GET", std::string("/apis/lockkeeper.dev/v1alpha1/namespaces/") + kNamespace + "/upgrades/u1");
    return text.replace(at, 5, object.ok() ? object->body.At({"metadata", "uid"}).AsString() : "");
  }

  const Endpoint& endpoint_;
  const std::string folder_;
  std::vector<Played> played_;
};

Exchange Answered(const std::string& target, int status, const std::string& answer) {
  Exchange exchange;
  exchange.method = "GET";
  exchange.target = target;
  exchange.status = status;
  exchange.answer = answer;
  return exchange;
}

TEST(WireTable, ChanceIsTakenOutAndAllElseIsCompared) {
  const Exchange real = Answered(
      "/u?timeoutSeconds=7&fieldSelector=b%3D1%2Ca%3D2", 200,
      R"({"metadata":{"uid":"11111111-2222-3333-4444-555555555555","resourceVersion":"7"},"items":[{"name":"a","n":1}]})");
  Exchange ours = Answered(
      "/u?fieldSelector=a%3D2%2Cb%3D1&timeoutSeconds=9", 200,
      R"({"items":[{"n":1,"name":"a"}],"metadata":{"resourceVersion":"9","uid":"99999999-2222-3333-4444-555555555555"}})");
  EXPECT_TRUE(Compare({real}, {ours}).empty());
  ours.answer.replace(ours.answer.find("\"n\":1"), 5, "\"n\":2");
  ours.status = 201;
  const std::vector<WireDifference> differences = Compare({real}, {ours});
  ASSERT_EQ(differences.size(), 2u);
  EXPECT_EQ(differences[0].path, "body.items.a.n");
  EXPECT_EQ(differences[1].path, "status");
  EXPECT_EQ(Compare({real}, {}).front().path, "sent");
  EXPECT_EQ(Compare({real, real}, {real}).front().path, "sent");
}

TEST(WireTable, ANameCoversItsStepsRequestsPathsAndSideOnly) {
  NamedDifference named;
  named.steps = {"get"};
  named.requests = {"GET /u[?]*"};
  named.paths = {"body.*", "!body.kind"};
  named.only = "real";
  std::vector<NamedDifference> names{named};
  const auto left = [&](const char* step, WireDifference difference) {
    return WithoutNamed(step, {std::move(difference)}, &names).size();
  };
  EXPECT_EQ(left("get", {"GET /u?a=b", "body.x", "1", {}}), 0u);
  EXPECT_EQ(left("describe", {"GET /u?a=b", "body.x", "1", {}}), 1u);
  EXPECT_EQ(left("get", {"GET /uu?a=b", "body.x", "1", {}}), 1u);
  EXPECT_EQ(left("get", {"GET /u?a=b", "body.kind", "1", {}}), 1u);
  EXPECT_EQ(left("get", {"GET /u?a=b", "body.x", "1", "2"}), 1u);
  EXPECT_EQ(names.front().used, 1);
}

TEST(PeersWire, KubectlSpeaksToTheEmbeddedServerAsToARealOne) {
  LK_NEED_CLUSTER(cluster);
  const auto steps = LoadSteps(std::string(LK_WIRE_DIR) + "/commands.json");
  ASSERT_TRUE(steps.ok()) << steps.status().ToString();
  auto named = LoadDifferences(std::string(LK_WIRE_DIR) + "/differences.json");
  ASSERT_TRUE(named.ok()) << named.status().ToString();
  const auto embedded = Embedded::Start();
  ASSERT_TRUE(embedded.ok()) << embedded.status().ToString();
  const auto real_end = Endpoint::Of(cluster.kubeconfig()), embedded_end = Endpoint::Of((*embedded)->kubeconfig());
  ASSERT_TRUE(real_end.ok() && embedded_end.ok());
  Player real(**real_end, cluster.folder()), ours(**embedded_end, (*embedded)->folder());
  real.Prepare();
  ours.Prepare();
  size_t exchanges = 0, watches = 0, events = 0, left = 0;
  std::set<std::string> distinct;
  const auto play = [&steps](Player& player) {
    for (const WireStep& step : *steps) {
      if (HasFatalFailure()) return;
      player.Play(step);
    }
  };
  std::thread beside([&] { play(ours); });
  play(real);
  beside.join();
  ASSERT_EQ(real.played().size(), ours.played().size());
  std::string report;
  for (size_t i = 0; i < real.played().size(); ++i) {
    const Played &a = real.played()[i], &b = ours.played()[i];
    const std::vector<WireDifference> all = Compare(a.exchanges, b.exchanges);
    for (const WireDifference& difference : all) distinct.insert(difference.request + " " + difference.path);
    const std::vector<WireDifference> unnamed = WithoutNamed(a.name, all, &*named);
    left += unnamed.size();
    for (const WireDifference& difference : unnamed) report += a.name + ": " + difference.ToString() + "\n";
    std::string text;
    for (size_t n = 0; n < std::min<size_t>(unnamed.size(), 12); ++n) text += "  " + unnamed[n].ToString() + "\n";
    EXPECT_TRUE(unnamed.empty()) << a.name << ": " << unnamed.size() << " differences\n" << text;
    for (const Exchange& exchange : b.exchanges) {
      ++exchanges;
      if (exchange.target.find("watch=true") == std::string::npos) continue;
      ++watches;
      events += static_cast<size_t>(std::count(exchange.answer.begin(), exchange.answer.end(), '\n'));
    }
  }
  std::printf(
      "%zu commands of kubectl, %zu requests, %zu of them watches with %zu events: %zu members differ, %zu of "
      "them without a name; %zu named differences\n",
      real.played().size(), exchanges, watches, events, distinct.size(), left, named->size());
  // For a person: all of them, in a file.
  if (const char* file = ::getenv("LK_WIRE_REPORT")) {
    EXPECT_TRUE(WriteFileAtomic(file, report).ok());
  }
  for (const NamedDifference& n : *named) {
    EXPECT_GT(n.used, 0) << "no such difference any more: " << n.name;
    std::printf("  %4d %s: %s\n", n.used, n.name.c_str(), n.why.c_str());
  }
}

}  // namespace
}  // namespace lockkeeper::peers
