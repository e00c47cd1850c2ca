// How long our runtime and a controller-runtime manager take to be right again after the same fault of the same server:
// from the fault's end until what each knows equals the server and a change made after the fault is seen. Printed as a
// table, with no limit but our own end state.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <optional>
#include <sstream>

#include "api/base/file.h"
#include "tests/integration/peers/mirror.h"
#include "tests/support/peers/shared.h"
#include "tests/support/wait.h"

// Seconds: how long the server is away and stopped, and how long a side is waited for.
#ifndef LK_AWAY_SECONDS
#define LK_AWAY_SECONDS 5
#define LK_STOP_SECONDS 5
#define LK_PATIENCE_SECONDS 15
#endif

namespace lockkeeper::peers {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr char kNamespace[] = "recovery";
constexpr int kObjects = 500;

void Pause(int seconds) {
  std::this_thread::sleep_for(std::chrono::seconds(seconds));  // not synchronisation: how long the fault lasts
}

// tests/peers/cmd/manager: what its reconciles were handed.
class GoManager {
 public:
  Status Start(const Cluster& cluster) {
    SubprocessOptions options;
    LK_ASSIGN_OR_RETURN(const std::string program, FindProgram("manager"));
    options.argv = {program,  "--kubeconfig", cluster.kubeconfig(), "--group-version", "v1",
                    "--kind", "ConfigMap",    "--namespace",        kNamespace};
    options.output_file = output_ = JoinPath(cluster.folder(), "manager.jsonl");
    options.dies_with_us = true;
    LK_ASSIGN_OR_RETURN(Subprocess child, Subprocess::Start(options));
    child_ = std::move(child);
    known_.clear();
    return Status::Ok();
  }

  const Versions& Known() {
    const std::string text = ReadFile(output_).value_or("");
    const size_t end = text.rfind('\n') + 1;  // 0 for none
    if (end <= read_) return known_;
    std::istringstream lines(text.substr(read_, end - read_));
    read_ = end;
    for (std::string line; std::getline(lines, line);) {
      const Result<Json> said = Json::Parse(line);
      if (!said.ok()) continue;  // a line of its log
      const ObjectKey key{said->Get("namespace").AsString(), said->Get("name").AsString()};
      if (said->Get("event").AsString() == "reconcile") known_[key] = said->Get("resourceVersion").AsString();
      if (said->Get("event").AsString() == "gone") known_.erase(key);
    }
    return known_;
  }

 private:
  std::optional<Subprocess> child_;
  std::string output_;
  size_t read_ = 0;
  Versions known_;
};

struct Row {
  std::string fault;
  std::optional<double> ours, theirs;
};

std::string Cell(const std::optional<double>& seconds) {
  char text[32];
  std::snprintf(text, sizeof text, seconds ? "%.2f" : "> %.0f", seconds.value_or(LK_PATIENCE_SECONDS));
  return text;
}

class PeersRecovery : public ::testing::Test {
 protected:
  void SetUp() override {
    if (InSample(LK_STOP_SECONDS)) GTEST_SKIP() << "takes longer than the sample of a nightly run";
    LK_NEED_CLUSTER(shared);
    cluster_ = &shared;
    ASSERT_EQ(MakeNamespace(api(), kNamespace), Status::Ok());
    ASSERT_EQ(MakeMany(shared.Rest(), kNamespace, "object-", kObjects), Status::Ok());
  }
  Api& api() { return cluster_->api(); }

  void Settle() {
    const Result<Versions> fresh = Fresh(api(), kNamespace);
    ASSERT_TRUE(fresh.ok()) << fresh.status().ToString();
    EXPECT_TRUE(
        WaitUntil([&] { return mirror_->Told() == *fresh && manager_.Known() == *fresh; }, std::chrono::seconds(60)));
  }
  Status Write(const std::string& name) {
    const ObjectKey key{kNamespace, name};
    const Json map = MakeMap(key, std::to_string(++written_));
    const Status made = api().Create(kConfigMaps, map).status();
    return made.code() == Code::kAlreadyExists ? api().Update(kConfigMaps, map).status() : made;
  }

  // `fault` returns when the server is ready again. Both sides begin anew, so that neither still backs off from the
  // fault before.
  void Measure(const std::string& name, const std::function<void()>& fault) {
    mirror_ = std::make_unique<Mirror>(cluster_->Rest(), kNamespace, ReflectorOptions{});
    ASSERT_EQ(manager_.Start(*cluster_), Status::Ok());
    Settle();
    for (int i = 0; i < 20; ++i) ASSERT_EQ(Write("before-" + std::to_string(i)), Status::Ok());
    Settle();
    fault();
    const auto ended = SteadyClock::now();
    ASSERT_EQ(Write("after"), Status::Ok());
    const Result<Versions> fresh = Fresh(api(), kNamespace);
    ASSERT_TRUE(fresh.ok()) << fresh.status().ToString();
    Row row{name, std::nullopt, std::nullopt};
    WaitUntil(
        [&] {
          const double now = std::chrono::duration<double>(SteadyClock::now() - ended).count();
          if (!row.ours && mirror_->Told() == *fresh && mirror_->Cached() == *fresh) row.ours = now;
          if (!row.theirs && manager_.Known() == *fresh) row.theirs = now;
          return row.ours && row.theirs;
        },
        std::chrono::seconds(LK_PATIENCE_SECONDS));
    rows_.push_back(row);
    EXPECT_TRUE(row.ours.has_value()) << name << ": " << mirror_->Differs(api(), std::chrono::milliseconds(0));
  }

  // On standard output, and in a file that scripts/test.sh shows after a run.
  void Print() const {
    const std::string table = Table();
    std::printf("%s", table.c_str());
    const std::string report = GTEST_FLAG_GET(output);  // "xml:FILE.xml"
    if (!report.starts_with("xml:") || !report.ends_with(".xml")) return;
    EXPECT_EQ(WriteFileAtomic(report.substr(4, report.size() - 8) + ".table", table, 0644), Status::Ok());
  }
  std::string Table() const {
    const auto line = [](const std::string& fault, const std::string& ours, const std::string& theirs,
                         const std::string& ratio) {
      char text[160];
      std::snprintf(text, sizeof text, "%-50s %11s %19s %7s\n", fault.c_str(), ours.c_str(), theirs.c_str(),
                    ratio.c_str());
      return std::string(text);
    };
    std::string table = "seconds until all of " + std::to_string(kObjects) + " objects is known again\n" +
                        line("", "lockkeeper", "controller-runtime", "ratio");
    for (const Row& row : rows_) {
      table += line(row.fault, Cell(row.ours), Cell(row.theirs),
                    row.ours && row.theirs ? Cell(*row.theirs / *row.ours) : "");
    }
    return table;
  }

  Cluster* cluster_ = nullptr;
  std::unique_ptr<Mirror> mirror_;
  GoManager manager_;
  std::vector<Row> rows_;
  int written_ = 0;
};

TEST_F(PeersRecovery, AfterEveryFaultOursIsRightAgain) {
  Cluster& cluster = *cluster_;
  const auto restart = [&] { ASSERT_EQ(cluster.Restart(Part::kApiServer), Status::Ok()); };
  const auto away = [&](int seconds) {
    ASSERT_EQ(cluster.Kill(Part::kApiServer), Status::Ok());
    Pause(seconds);
    restart();
  };
  Measure("API server killed (-9), started at once", restart);
  Measure("API server killed, away for " + std::to_string(LK_AWAY_SECONDS) + " s", [&] { away(LK_AWAY_SECONDS); });
  Measure("API server stopped (SIGSTOP) for " + std::to_string(LK_STOP_SECONDS) + " s", [&] {
    cluster.Stop(Part::kApiServer);
    Pause(LK_STOP_SECONDS);
    cluster.Continue(Part::kApiServer);
    ASSERT_EQ(cluster.AwaitReady(), Status::Ok());
  });
  Measure("etcd killed (-9), started at once", [&] { ASSERT_EQ(cluster.Restart(Part::kEtcd), Status::Ok()); });
  Measure("compacted, API server killed: 410", [&] {
    ASSERT_TRUE(cluster.Compact().ok());
    restart();
  });
  const std::string file = JoinPath(cluster.folder(), "recovery.snapshot");
  ASSERT_EQ(cluster.Snapshot(file), Status::Ok());
  Measure("etcd restored to a snapshot, 20 writes older", [&] { ASSERT_EQ(cluster.Restore(file), Status::Ok()); });
  Print();
}

}  // namespace
}  // namespace lockkeeper::peers
