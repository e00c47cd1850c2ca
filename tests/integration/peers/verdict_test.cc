// The verdict table (tests/data/verdicts, and what is generated from the field tables) on the embedded server and on a
// real kube-apiserver: both accept and refuse the same, for the same reasons, naming the same fields. The table itself
// is held against the C++ twins by tests/unit/types/verdict_test.cc.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <thread>

#include "tests/support/peers/endpoint.h"
#include "tests/support/peers/shared.h"
#include "tests/unit/types/verdicts.h"

namespace lockkeeper::peers {
namespace {

constexpr int kThreads = 4;
constexpr int kRandomWrites = 40;  // a kind

const std::vector<Verdict>& Table() {
  static const auto* all = [] {
    auto* out = new std::vector<Verdict>;
    const auto verdicts = LoadVerdicts(LK_VERDICTS_DIR);
    const auto bases = LoadBases(LK_VERDICTS_DIR);
    EXPECT_TRUE(verdicts.ok() && bases.ok()) << verdicts.status().ToString() << bases.status().ToString();
    if (!verdicts.ok() || !bases.ok()) return out;
    *out = *verdicts;
    for (const auto& [kind, base] : *bases) {
      for (GeneratedVerdict& generated : GenerateVerdicts(*kind, base)) out->push_back(std::move(generated.verdict));
    }
    // The same ones each time, unless LK_SEED asks for others.
    RandomObject random(::getenv("LK_SEED") != nullptr ? TestSeed() : 1, false);
    for (const auto& [kind, base] : *bases) {
      for (int i = 0; i < kRandomWrites; ++i) out->push_back(RandomWrite(*kind, base, &random, i));
    }
    return out;
  }();
  return *all;
}

std::string Sorted(std::vector<std::string> lines) {
  std::sort(lines.begin(), lines.end());
  std::string out;
  for (const std::string& line : lines) out += line + "\n";
  return out;
}

std::string Lines(const std::vector<FieldError>& errors, bool texts) {
  std::vector<std::string> lines;
  for (const FieldError& error : errors) {
    lines.push_back(std::string(FieldReasonName(error.reason)) + " " + error.field +
                    (texts ? ": " + error.message : ""));
  }
  return lines.empty() ? "accepted\n" : Sorted(std::move(lines));
}

// What a server said, in the same lines; something that is no verdict stands there as it came.
std::string Lines(const Result<Reply>& reply, bool texts) {
  if (!reply.ok()) return reply.status().ToString() + "\n";
  if (reply->status == 200 || reply->status == 201) return "accepted\n";
  std::vector<std::string> lines;
  for (const Json& cause : reply->body.At({"details", "causes"}).AsArray()) {
    lines.push_back(cause.Get("reason").AsString() + " " + cause.Get("field").AsString() +
                    (texts ? ": " + cause.Get("message").AsString() : ""));
  }
  if (reply->status != 422 || lines.empty()) return std::to_string(reply->status) + " " + reply->http.body + "\n";
  return Sorted(std::move(lines));
}

// Asks one server all of it by dry runs. What an update starts from is stored first, each different one in a namespace
// of its own, since the names matter.
class Court {
 public:
  explicit Court(const Endpoint& endpoint) : endpoint_(endpoint) {}

  std::vector<Result<Reply>> Ask(const std::vector<Verdict>& table) {
    for (const Verdict& verdict : table) {
      if (!verdict.stored.IsNull()) Store(verdict);
    }
    std::vector<Result<Reply>> replies(table.size(), Result<Reply>(Code::kInternal, "not asked"));
    std::atomic<size_t> next{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        for (size_t at = next++; at < table.size(); at = next++) replies[at] = Ask(table[at]);
      });
    }
    for (std::thread& thread : threads) thread.join();
    return replies;
  }

  size_t stored() const { return stored_.size(); }

 private:
  struct Stored {
    std::string name_space;
    std::string resource_version;
  };

  static std::string Key(const Verdict& verdict) { return verdict.kind->plural + verdict.stored.DumpCanonical(); }

  static std::string Path(const Verdict& verdict, const std::string& name_space) {
    return "/apis/" + verdict.kind->ApiVersion() + "/namespaces/" + name_space + "/" + verdict.kind->plural;
  }

  void Store(const Verdict& verdict) {
    if (stored_.contains(Key(verdict))) return;
    Stored& stored = stored_[Key(verdict)];
    stored.name_space = "verdict-" + std::to_string(stored_.size());
    const Json metadata = Json::MakeObject({{"name", stored.name_space}});
    const auto made = endpoint_.Send("POST", "/api/v1/namespaces", Json::MakeObject({{"metadata", metadata}}));
    ASSERT_TRUE(made.ok() && made->status == 201) << (made.ok() ? made->http.body : made.status().ToString());
    Json object = verdict.stored;
    object["metadata"].Set("namespace", stored.name_space);
    auto written = endpoint_.Send("POST", Path(verdict, stored.name_space), object);
    if (written.ok() && written->status == 201 && object.Has("status")) {
      object["metadata"] = written->body.Get("metadata");
      written = endpoint_.Send("PUT", Path(verdict, stored.name_space) + "/" + Name(object) + "/status", object);
    }
    ASSERT_TRUE(written.ok() && written->status < 300)
        << verdict.name << ": " << (written.ok() ? written->http.body : written.status().ToString());
    stored.resource_version = written->body.At({"metadata", "resourceVersion"}).AsString();
  }

  static std::string Name(const Json& object) { return object.At({"metadata", "name"}).AsString(); }

  Result<Reply> Ask(const Verdict& verdict) const {
    const std::string query = "?dryRun=All&fieldValidation=Ignore";
    Json object = verdict.object;
    if (verdict.stored.IsNull()) {
      object["metadata"].Set("namespace", "default");
      return endpoint_.Send("POST", Path(verdict, "default") + query, object);
    }
    const Stored& stored = stored_.at(Key(verdict));
    object["metadata"].Set("namespace", stored.name_space);
    object["metadata"].Set("resourceVersion", stored.resource_version);
    return endpoint_.Send(
        "PUT", Path(verdict, stored.name_space) + "/" + Name(object) + (verdict.status ? "/status" : "") + query,
        object);
  }

  const Endpoint& endpoint_;
  std::map<std::string, Stored> stored_;
};

void Compare(const std::string& kubeconfig, bool texts, const char* server) {
  const auto endpoint = Endpoint::Of(kubeconfig);
  ASSERT_TRUE(endpoint.ok()) << endpoint.status().ToString();
  Court court(**endpoint);
  const auto replies = court.Ask(Table());
  if (::testing::Test::HasFatalFailure()) return;
  size_t accepted = 0, differ = 0;
  for (size_t i = 0; i < replies.size(); ++i) {
    const Verdict& verdict = Table()[i];
    const std::string said = Lines(replies[i], texts), expected = Lines(verdict.errors, texts);
    if (expected == "accepted\n") ++accepted;
    if (said == expected) continue;
    if (++differ <= 20)
      ADD_FAILURE() << verdict.kind->kind << ": " << verdict.name << "\nexpected " << expected << "said " << said
                    << verdict.object.Dump();
  }
  EXPECT_EQ(differ, 0u);
  std::printf("%s: %zu verdicts (%zu accepted, %zu refused, %zu objects stored before an update), %zu differ\n", server,
              replies.size(), accepted, replies.size() - accepted, court.stored(), differ);
}

TEST(PeersVerdicts, TheEmbeddedServerSaysWhatTheTableSaysWordForWord) {
  const auto embedded = Embedded::Start();
  ASSERT_TRUE(embedded.ok()) << embedded.status().ToString();
  Compare((*embedded)->kubeconfig(), true, "lockkeeper apiserver");
}

// Word for word only on the minor version that the texts were taken from; verdict, reason and field on any.
TEST(PeersVerdicts, ARealKubeApiServerSaysWhatTheTableSays) {
  LK_NEED_CLUSTER(cluster);
  const auto endpoint = Endpoint::Of(cluster.kubeconfig());
  ASSERT_TRUE(endpoint.ok()) << endpoint.status().ToString();
  const auto version = (*endpoint)->Send("GET", "/version");
  ASSERT_TRUE(version.ok()) << version.status().ToString();
  const std::string& git_version = version->body.Get("gitVersion").AsString();
  Compare(cluster.kubeconfig(), git_version.starts_with("v1.37."), ("kube-apiserver " + git_version).c_str());
}

}  // namespace
}  // namespace lockkeeper::peers
