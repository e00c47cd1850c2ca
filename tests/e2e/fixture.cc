#include "tests/e2e/fixture.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "api/base/file.h"
#include "api/server/kcp/journal.h"
#include "controller/yaml.h"
#include "reconcilers/cli/agent_client.h"
#include "reconcilers/cli/session.h"

namespace lockkeeper {
namespace {

// A tenth of kcp's own times: a lease of 6 s, a retry of 0.2 s, a start of 0.1 s.
constexpr char kScale[] = "0.1";

LabOptions OptionsOf(bool split) {
  LabOptions options;
  options.split = split;
  options.lockkeeper = LK_LOCKKEEPER;
  return options;
}

}  // namespace

E2e::E2e(bool split) : lab_(OptionsOf(split)) {
  replace_ = {{"127.0.0.1:7443", "127.0.0.1:" + std::to_string(Lab::FreePort())},
              {"127.0.0.1:7444", "127.0.0.1:" + std::to_string(Lab::FreePort())}};
}

void E2e::TearDown() {
  if (HasFailure()) {
    const std::string log = lab_.UpLog();
    constexpr size_t kShown = 6000;
    std::fprintf(stderr, "--- the end of lockkeeper's log:\n%s\n",
                 (log.size() <= kShown ? log : log.substr(log.size() - kShown)).c_str());
  }
  lab_.KillAll();
}

Status E2e::ApplyObject(const Json& object) {
  const std::string kind = object.Get("kind").AsString();
  const Resource resource{"lockkeeper.dev", "v1alpha1",
                          kind == "StoreBackup"
                              ? "storebackups"
                              : std::string(1, static_cast<char>(std::tolower(kind[0]))) + kind.substr(1) + "s",
                          kind, true};
  Json with_namespace = object;
  with_namespace["metadata"].Set("namespace", "default");
  return lab_.api().Create(resource, with_namespace).status();
}

Status E2e::Apply(const std::string& sample, const std::function<void(Json&)>& edit) {
  LK_ASSIGN_OR_RETURN(const std::string text,
                      Sample(std::string(LK_SOURCE_DIR) + "/manifests/samples/" + sample, replace_));
  LK_ASSIGN_OR_RETURN(std::vector<Json> objects, ParseYamlStream(text, sample));
  for (Json& object : objects) {
    if (object.Get("kind").AsString() == "Server") {
      Json& env = object["spec"]["template"]["env"];
      env.Push(Json::MakeObject({{"name", "LOCKKEEPER_TIME_SCALE"}, {"value", kScale}}));
    }
    if (edit) edit(object);
    LK_RETURN_IF_ERROR(ApplyObject(object));
  }
  return Status::Ok();
}

void E2e::Install(bool single, const std::function<void(Json&)>& edit) {
  for (const char* version : {kOld, kNew}) ASSERT_EQ(lab_.Build(version), Status::Ok());
  const Result<double> up = lab_.Up();
  ASSERT_TRUE(up.ok()) << up.status().ToString();
  ASSERT_EQ(Apply("10-fronts.yaml"), Status::Ok());
  ASSERT_EQ(Apply("20-server-kcp.yaml", edit), Status::Ok());
  if (single) {
    ASSERT_EQ(Apply("21-server-single.yaml", edit), Status::Ok());
  }
  for (const char* name : {"kcp", "single"}) {
    if (!single && std::string_view(name) == "single") continue;
    const Result<Server> ready = Await<Server>(name, [](const Server& s) {
      for (const Condition& c : s.status.conditions) {
        if (c.type == "Ready" && c.status == ConditionStatus::kTrue)
          return s.status.version == kOld && !s.status.operation;
      }
      return false;
    });
    ASSERT_TRUE(ready.ok()) << ready.status().ToString();
  }
}

Status E2e::MakeUpgrade(const std::string& name, const std::string& version,
                        const std::function<void(Upgrade&)>& edit) {
  Upgrade upgrade;
  upgrade.metadata.namespace_ = "default";
  upgrade.metadata.name = name;
  upgrade.spec.server_ref.name = "kcp";
  upgrade.spec.version = version;
  if (edit) edit(upgrade);
  return Create<Upgrade>(lab_.api(), upgrade).status();
}

Status E2e::StartManagerAgain() {
  if (lab_.PartLog("manager").find("lost the lease") == std::string::npos) return Status::Ok();
  const Result<int> ended = lab_.EndPart("manager", SIGTERM);
  if (ended.value_or(-1) != 1) return {Code::kInternal, "it is to leave at once with 1, and not in order"};
  return lab_.StartPart("manager");
}

Result<Upgrade> E2e::AwaitFinished(const std::string& upgrade, double seconds) {
  return Await<Upgrade>(
      upgrade, [](const Upgrade& u) { return u.status.outcome.has_value(); }, seconds);
}

Result<Roll> E2e::RollOf(const Upgrade& upgrade) {
  if (!upgrade.status.roll_ref) return Status(Code::kNotFound, "the Upgrade made no Roll: " + upgrade.status.error);
  return Get<Roll>(lab_.api(), {"default", upgrade.status.roll_ref->name});
}

Result<std::string> E2e::StepNow() {
  cli::AgentClient agent(cli::AgentSocketIn(lab_.data()));
  LK_ASSIGN_OR_RETURN(const Json status, agent.Get("/v1/status"));
  for (const Json& server : status.Get("servers").AsArray()) {
    if (server.Has("operation")) return server.At({"operation", "step"}).AsString();
  }
  return std::string();
}

void E2e::ExpectSucceeds(const std::string& upgrade) {
  const Result<Upgrade> done = AwaitFinished(upgrade);
  ASSERT_TRUE(done.ok()) << done.status().ToString();
  EXPECT_EQ(done->status.outcome, Outcome::kSucceeded) << done->status.error;
}

bool E2e::AwaitStep(const std::vector<std::string>& wanted) {
  return WaitUntil([&] {
    const Result<std::string> step = StepNow();
    return step.ok() && std::find(wanted.begin(), wanted.end(), *step) != wanted.end();
  });
}

std::vector<Json> E2e::History() {
  const Result<Json> history = cli::AgentClient(cli::AgentSocketIn(lab_.data())).Get("/v1/history?limit=100");
  return history.ok() ? history->Get("items").AsArray() : std::vector<Json>();
}

pid_t E2e::FindProcess(const std::vector<std::string>& words) const {
  for (const std::string& line : lab_.LeftOver()) {
    bool all = true;
    for (const std::string& word : words) all = all && line.find(word) != std::string::npos;
    if (all) return static_cast<pid_t>(std::stol(line));
  }
  return 0;
}

load::LoadResult E2e::UnderLoad(const std::string& server, const std::function<void()>& operation) {
  Result<load::LoadConfig> config = lab_.LoadThrough(server);
  EXPECT_TRUE(config.ok()) << config.status().ToString();
  if (!config.ok()) return {};
  config->connections = 50;
  config->rate = 200;  // a tenth of the time, sanitizers, two cores; the benchmark runs 500 a second
  config->watchers = 2;
  config->seed = 1;
  load::LoadGenerator generator(*config);
  const Status started = generator.Start();
  EXPECT_TRUE(started.ok()) << started.ToString();
  operation();
  load::LoadResult result = generator.Stop();
  std::printf("load: %s\n", result.ToJson().Dump().c_str());
  return result;
}

void E2e::ExpectNothingLost(const load::LoadResult& load) {
  EXPECT_GT(load.counts.requests, 0);
  EXPECT_EQ(load.counts.failed, 0);
  EXPECT_EQ(load.counts.refused, 0);
  EXPECT_EQ(load.lost_writes, 0);
  EXPECT_EQ(load.missed_events, 0);
  EXPECT_EQ(load.duplicate_events, 0);
  EXPECT_LE(load.most_reconnects, 1);
}

std::vector<std::string> E2e::Overlaps(const std::string& server) const {
  const Result<std::vector<Json>> lines =
      kcp::ReadJournals({lab_.data() + "/servers/default/" + server + "/reconciles.jsonl"});
  if (!lines.ok()) return {lines.status().ToString()};
  const std::vector<kcp::SpanRecord> spans = kcp::SpansOf(*lines);
  if (spans.empty()) return {"the oracle saw no reconciler at all"};
  return kcp::FindOverlaps(spans);
}

}  // namespace lockkeeper
