// client-go and controller-runtime, as a user would write them (tests/peers/cmd), against `lockkeeper apiserver`: an
// hour of a fleet's changes in less than a minute, with the server killed in between.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "api/base/file.h"
#include "api/base/time.h"
#include "api/types/lease.h"
#include "api/types/upgrade.h"
#include "controller/typed.h"
#include "tests/support/peers/endpoint.h"
#include "tests/support/wait.h"

namespace lockkeeper::peers {
namespace {

constexpr auto kPatience = std::chrono::seconds(60);

// One of our Go programs: each line of its output is one JSON object.
class GoProgram {
 public:
  GoProgram(const Embedded& server, const std::string& name, std::vector<std::string> args) {
    static int number = 0;
    SubprocessOptions options;
    options.argv = {*FindProgram(name), "--kubeconfig", server.kubeconfig()};
    options.argv.insert(options.argv.end(), args.begin(), args.end());
    options.env = {{"HOME", server.folder()}};
    options.output_file = JoinPath(server.folder(), name + std::to_string(++number) + ".out");
    options.dies_with_us = true;
    file_ = options.output_file;
    Result<Subprocess> started = Subprocess::Start(options);
    EXPECT_TRUE(started.ok()) << started.status().ToString();
    if (started.ok()) process_.emplace(std::move(*started));
  }

  std::string Text() const { return ReadFile(file_).value_or(""); }
  // Lines that are no JSON (klog's, on standard error) are left out.
  std::vector<Json> Lines() const {
    std::vector<Json> lines;
    const std::string text = Text();
    size_t begin = 0;
    for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
      Result<Json> line = Json::Parse(std::string_view(text).substr(begin, end - begin));
      if (line.ok() && line->IsObject()) lines.push_back(std::move(*line));
      begin = end + 1;
    }
    return lines;
  }
  bool AwaitText(const std::string& part) {
    return WaitUntil([&] { return Text().find(part) != std::string::npos; }, kPatience);
  }
  void Signal(int signal) { process_->Signal(signal); }
  int End(int signal) {
    process_->Signal(signal);
    return process_->Wait(kPatience).value_or(-1);
  }

 private:
  std::string file_;
  std::optional<Subprocess> process_;
};

class PeersClientGo : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"informer", "election", "manager"}) {
      const Result<std::string> program = FindProgram(name);
      if (!program.ok()) GTEST_SKIP() << program.status().message();
    }
    Result<std::unique_ptr<Embedded>> started = Embedded::Start();
    ASSERT_TRUE(started.ok()) << started.status().ToString();
    server_ = std::move(*started);
  }

  Api& api() { return server_->api(); }

  Upgrade Make(const std::string& name) {
    Upgrade upgrade;
    upgrade.metadata.namespace_ = "default";
    upgrade.metadata.name = name;
    upgrade.spec.server_ref.name = "kcp";
    upgrade.spec.version = "v0.33.1";
    return upgrade;
  }

  std::unique_ptr<Embedded> server_;
};

// What was written, as the server answered it: a version for each write of each object.
struct Written {
  std::vector<std::string> versions;
  bool deleted = false;
};

// Changes Upgrades as a fleet does, one write after another, and knows what an informer must have seen.
class Churn {
 public:
  Churn(Api& api, unsigned seed) : api_(api), random_(seed) {}

  void Write(int writes) {
    for (int i = 0; i < writes && !::testing::Test::HasFatalFailure(); ++i) One();
  }
  const std::map<std::string, Written>& by_uid() const { return by_uid_; }
  size_t alive() const { return alive_.size(); }
  int writes() const { return writes_; }

 private:
  struct Alive {
    std::string name, uid;
    bool paused = false;
  };

  unsigned Below(unsigned n) { return std::uniform_int_distribution<unsigned>(0, n - 1)(random_); }

  void One() {
    ++writes_;
    const unsigned what = Below(10);
    if (alive_.size() < 20 || (what == 0 && alive_.size() < 200)) return Create();
    Alive& at = alive_[Below(static_cast<unsigned>(alive_.size()))];
    if (what == 1 && alive_.size() > 100) return Delete(at);
    Json patch;
    if (what < 5) {
      at.paused = !at.paused;
      patch = Json::MakeObject({{"spec", Json::MakeObject({{"paused", at.paused}})}});
    } else {
      const Json progress = Json::MakeObject({{"message", "step " + std::to_string(writes_)}});
      patch = Json::MakeObject({{"status", Json::MakeObject({{"progress", progress}})}});
    }
    Note(at.uid,
         api_.Patch(ResourceOf<Upgrade>(), {"default", at.name}, PatchType::kMerge, patch, what < 5 ? "" : "status"));
  }

  void Create() {
    Upgrade upgrade;
    upgrade.metadata.namespace_ = "default";
    upgrade.metadata.name = "u" + std::to_string(writes_);
    upgrade.spec.server_ref.name = "kcp";
    upgrade.spec.version = "v0.33.1";
    const Result<Json> made = api_.Create(ResourceOf<Upgrade>(), ToJson(upgrade));
    ASSERT_TRUE(made.ok()) << made.status().ToString();
    alive_.push_back({upgrade.metadata.name, UidOf(*made)});
    Note(UidOf(*made), made);
  }

  void Delete(Alive& at) {
    const Result<Json> gone = api_.Delete(ResourceOf<Upgrade>(), {"default", at.name}, {});
    ASSERT_TRUE(gone.ok()) << gone.status().ToString();
    by_uid_[at.uid].deleted = true;
    std::swap(at, alive_.back());
    alive_.pop_back();
  }

  void Note(const std::string& uid, const Result<Json>& answer) {
    ASSERT_TRUE(answer.ok()) << answer.status().ToString();
    by_uid_[uid].versions.push_back(ResourceVersionOf(*answer));
  }

  Api& api_;
  std::mt19937 random_;
  std::vector<Alive> alive_;
  std::map<std::string, Written> by_uid_;
  int writes_ = 0;
};

// What an informer was handed.
struct Seen {
  std::vector<std::string> versions;
  int adds = 0, deletes = 0, missed = 0;
};

std::map<std::string, Seen> SeenBy(const GoProgram& informer, int* errors) {
  std::map<std::string, Seen> by_uid;
  for (const Json& line : informer.Lines()) {
    const std::string& type = line.Get("type").AsString();
    if (type == "watchError") ++*errors;
    Seen& seen = by_uid[line.Get("uid").AsString()];
    const std::string& version = line.Get("resourceVersion").AsString();
    if (type == "add") ++seen.adds;
    // A resync hands out what is known already.
    if (type == "add" || (type == "update" && line.Get("oldResourceVersion").AsString() != version)) {
      seen.versions.push_back(version);
    }
    if (type == "delete") ++seen.deletes;
    if (type == "delete" && line.Get("missed").AsBool()) ++seen.missed;
  }
  by_uid.erase("");
  return by_uid;
}

// Two hundred Upgrades, each with a write about every two minutes, are 6,000 writes an hour.
TEST_F(PeersClientGo, InformersMissNoEventOfAnHourWithFourRestarts) {
  constexpr int kWrites = 6000, kRestarts = 4;
  const std::vector<std::string> upgrades{"--group-version", "lockkeeper.dev/v1alpha1", "--resource", "upgrades"};
  GoProgram early(*server_, "informer", upgrades);
  ASSERT_TRUE(early.AwaitText("\"synced\"")) << early.Text();
  Churn churn(api(), 1);
  const Duration begin = SystemClock().Read().boot;
  std::optional<GoProgram> late;  // begins with a list of what is there
  for (int part = 0; part <= kRestarts; ++part) {
    ASSERT_TRUE(part == 0 || server_->Restart().ok());
    if (part == 1) {
      late.emplace(*server_, "informer", upgrades);
      ASSERT_TRUE(late->AwaitText("\"synced\"")) << late->Text();
    }
    // A watch that ends with nothing to show within a second makes client-go list anew; these have plenty to show.
    churn.Write(kWrites / (kRestarts + 1));
    ASSERT_FALSE(HasFatalFailure());
  }
  const double seconds = ToSeconds(SystemClock().Read().boot - begin);
  // The last write of all.
  const Upgrade last = Make("last");
  ASSERT_TRUE(api().Create(ResourceOf<Upgrade>(), ToJson(last)).ok());
  ASSERT_TRUE(early.AwaitText("\"last\"") && late->AwaitText("\"last\""));
  EXPECT_EQ(early.End(SIGTERM), 0);
  EXPECT_EQ(late->End(SIGTERM), 0);

  int errors = 0, events = 0;
  const std::map<std::string, Seen> seen = SeenBy(early, &errors), seen_late = SeenBy(*late, &errors);
  for (const auto& [uid, written] : churn.by_uid()) {
    const auto at = seen.find(uid);
    ASSERT_NE(at, seen.end()) << "never seen: " << uid;
    EXPECT_EQ(at->second.versions, written.versions) << uid;
    EXPECT_EQ(at->second.adds, 1) << uid;
    EXPECT_EQ(at->second.deletes, written.deleted ? 1 : 0) << uid;
    EXPECT_EQ(at->second.missed, 0) << uid;
    events += static_cast<int>(written.versions.size()) + at->second.deletes;
    // The late one saw the same from its first sight on.
    const auto late_at = seen_late.find(uid);
    if (late_at == seen_late.end()) {
      EXPECT_TRUE(written.deleted) << uid;
      continue;
    }
    const auto& tail = late_at->second.versions;
    ASSERT_LE(tail.size(), written.versions.size()) << uid;
    const std::vector<std::string> rest(written.versions.end() - static_cast<ptrdiff_t>(tail.size()),
                                        written.versions.end());
    EXPECT_EQ(tail, rest) << uid;
  }
  EXPECT_EQ(seen.size(), churn.by_uid().size() + 1);
  std::printf("%d writes in %.1f s, %zu objects, %zu left, %d restarts: %d events, %d watch errors\n", churn.writes(),
              seconds, churn.by_uid().size(), churn.alive(), kRestarts, events, errors);
}

// One that sleeps through it all has the right state afterwards, by what is kept of the past or by a new list.
TEST_F(PeersClientGo, AnInformerThatWasStoppedHasTheRightStateAfterwards) {
  GoProgram informer(*server_, "informer", {"--group-version", "lockkeeper.dev/v1alpha1", "--resource", "upgrades"});
  Churn churn(api(), 2);
  churn.Write(300);
  ASSERT_TRUE(informer.AwaitText("\"synced\"")) << informer.Text();
  informer.Signal(SIGSTOP);
  churn.Write(900);
  ASSERT_TRUE(server_->Restart().ok());
  churn.Write(300);
  informer.Signal(SIGCONT);
  ASSERT_TRUE(api().Create(ResourceOf<Upgrade>(), ToJson(Make("last"))).ok());
  ASSERT_TRUE(informer.AwaitText("\"last\"")) << informer.Text();
  int errors = 0;
  const std::map<std::string, Seen> seen = SeenBy(informer, &errors);
  for (const auto& [uid, written] : churn.by_uid()) {
    const auto at = seen.find(uid);
    if (at == seen.end()) {
      EXPECT_TRUE(written.deleted) << "never seen: " << uid;
      continue;
    }
    EXPECT_EQ(at->second.deletes, written.deleted ? 1 : 0) << uid;
    EXPECT_TRUE(written.deleted || at->second.versions.back() == written.versions.back()) << uid;
  }
}

// What a line of election says of when it was written.
Time TimeOf(const GoProgram& candidate, const std::string& event) {
  for (const Json& line : candidate.Lines()) {
    if (line.Get("event").AsString() == event) return *ParseTime(line.Get("time").AsString());
  }
  return Time();
}

TEST_F(PeersClientGo, LeadershipGoesOnFromCandidateToCandidate) {
  constexpr int kHandOvers = 6;
  const auto candidate = [&](int number) {
    return std::make_unique<GoProgram>(
        *server_, "election",
        std::vector<std::string>{"--name", "peers", "--identity", "candidate-" + std::to_string(number), "--lease",
                                 "2s", "--renew", "1500ms", "--retry", "250ms", "--release"});
  };
  auto leader = candidate(0);
  ASSERT_TRUE(leader->AwaitText("\"leading\"")) << leader->Text();
  double slowest_kill = 0, slowest_release = 0;
  for (int i = 1; i <= kHandOvers; ++i) {
    auto next = candidate(i);
    ASSERT_TRUE(next->AwaitText("candidate-" + std::to_string(i - 1))) << next->Text();
    EXPECT_EQ(next->Text().find("\"leading\""), std::string::npos) << "there is a leader";
    // A restart of the server is shorter than the lease: nobody loses it.
    ASSERT_TRUE(i != 2 || server_->Restart().ok());
    const bool killed = i % 2 == 0;
    const Time ended = SystemClock().Read().wall;
    EXPECT_EQ(leader->End(killed ? SIGKILL : SIGTERM), killed ? 128 + SIGKILL : 0) << leader->Text();
    ASSERT_TRUE(next->AwaitText("\"leading\"")) << next->Text();
    const double took = ToSeconds(TimeOf(*next, "leading") - ended);
    EXPECT_GE(took, 0) << "two leaders at once";
    (killed ? slowest_kill : slowest_release) = std::max(killed ? slowest_kill : slowest_release, took);
    leader = std::move(next);
  }
  const Result<Lease> lease = Get<Lease>(api(), {"default", "peers"});
  ASSERT_TRUE(lease.ok()) << lease.status().ToString();
  EXPECT_EQ(lease->spec.holder_identity, "candidate-" + std::to_string(kHandOvers));
  EXPECT_GE(lease->spec.lease_transitions, kHandOvers);
  std::printf("%d hand-overs: at most %.1f s after a kill (lease 2 s), %.1f s after a release\n", kHandOvers,
              slowest_kill, slowest_release);
}

TEST_F(PeersClientGo, AControllerRuntimeManagerReconcilesThroughRestartsAndItsOwnDeath) {
  constexpr int kObjects = 150;
  const std::vector<std::string> args{"--group-version", "lockkeeper.dev/v1alpha1",
                                      "--kind",          "Upgrade",
                                      "--workers",       "4",
                                      "--status-field",  "observedGeneration",
                                      "--leader-elect",  "--leader-election-id",
                                      "peers-manager"};
  auto first = std::make_unique<GoProgram>(*server_, "manager", args);
  ASSERT_TRUE(first->AwaitText("\"leading\"")) << first->Text();
  const auto settled = [&] {
    const auto all = List<Upgrade>(api(), "default");
    if (!all.ok() || all->size() != kObjects) return false;
    return std::all_of(all->begin(), all->end(),
                       [](const Upgrade& u) { return u.status.observed_generation == u.metadata.generation; });
  };
  const auto pause_all = [&](bool paused) {
    const Json patch = Json::MakeObject({{"spec", Json::MakeObject({{"paused", paused}})}});
    for (int i = 0; i < kObjects; ++i) {
      const ObjectKey key{"default", "u" + std::to_string(i)};
      ASSERT_TRUE(api().Patch(ResourceOf<Upgrade>(), key, PatchType::kMerge, patch, "").ok());
    }
  };
  for (int i = 0; i < kObjects; ++i) {
    ASSERT_TRUE(api().Create(ResourceOf<Upgrade>(), ToJson(Make("u" + std::to_string(i)))).ok());
  }
  EXPECT_TRUE(WaitUntil(settled, kPatience)) << "after the creates: " << first->Text().substr(0, 2000);
  // Killed between two writes: what was not reconciled yet is, once the server is back.
  pause_all(true);
  ASSERT_TRUE(server_->Restart().ok());
  EXPECT_TRUE(WaitUntil(settled, kPatience)) << "after a restart";
  // The manager dies; another one takes the Lease and what was written meanwhile.
  EXPECT_EQ(first->End(SIGKILL), 128 + SIGKILL);
  pause_all(false);
  GoProgram second(*server_, "manager", args);
  EXPECT_TRUE(WaitUntil(settled, kPatience)) << "after the manager's death: " << second.Text().substr(0, 2000);
  for (int i = 0; i < kObjects; ++i) {
    ASSERT_TRUE(api().Delete(ResourceOf<Upgrade>(), {"default", "u" + std::to_string(i)}, {}).ok());
  }
  std::set<std::string> gone;
  EXPECT_TRUE(WaitUntil(
      [&] {
        for (const Json& line : second.Lines()) {
          if (line.Get("event").AsString() == "gone") gone.insert(line.Get("name").AsString());
        }
        return gone.size() == kObjects;
      },
      kPatience));
  // Its election says so in an Event.
  const Resource events{"", "v1", "events", "Event"};
  EXPECT_TRUE(WaitUntil([&] {
    const auto all = api().List(events, "default", {});
    return all.ok() && std::any_of(all->items.begin(), all->items.end(), [](const Json& event) {
             return event.At({"involvedObject", "name"}).AsString() == "peers-manager";
           });
  })) << second.Text().substr(0, 2000);
  EXPECT_EQ(second.End(SIGTERM), 0);
  std::printf("%d objects; reconciles: %zu by the first manager, %zu by the second\n", kObjects, first->Lines().size(),
              second.Lines().size());
}

}  // namespace
}  // namespace lockkeeper::peers
