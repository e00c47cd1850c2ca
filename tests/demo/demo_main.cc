// lk-demo: five laps of a live API server under load, driven by kubectl as a user would, and what they cost.
//
//   lk-demo LOCKKEEPER KUBECTL SAMPLES [SECONDS_OF_LOAD_BETWEEN_LAPS]
//
// The last line of its output is one JSON object. Exit status: 0 when nothing failed and nothing was left running.
#include <poll.h>
#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "api/types/roll.h"
#include "api/types/upgrade.h"
#include "controller/typed.h"
#include "tests/support/lab.h"

namespace lockkeeper {
namespace {

constexpr char kFirst[] = "v0.32.3";

void Say(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fputs("\n", stdout);
  std::fflush(stdout);
}

struct Row {
  std::string lap, name, outcome;
  double total = 0, overhead = -1, outage = -1;
  int64_t cut = 0;
};

class Demo {
 public:
  Demo(std::string lockkeeper, std::string kubectl, std::string samples, double between)
      : samples_(std::move(samples)),
        between_(between),
        lab_(LabOptions{std::move(lockkeeper), std::move(kubectl), {}, {}, {}}) {}

  // What went wrong, "" for nothing.
  std::string Run() {
    const Status status = Laps();
    std::string failure = status.ok() ? "" : status.ToString();
    const auto add = [&failure](const std::string& text) { failure += (failure.empty() ? "" : "; ") + text; };
    if (!status.ok())
      Say("\nFAILED: " + status.message() + "\n--- the end of lockkeeper's log:\n" + Tail(lab_.UpLog()));
    StopLoad();
    if (lab_.IsUp()) {
      if (const Status down = lab_.TearDown(); !down.ok()) add(down.message());
      const Result<int> code = lab_.Down(SIGTERM);
      if (!code.ok() || *code != 0) add("lockkeeper up did not end as asked");
    }
    const std::vector<std::string> left = lab_.LeftOver();
    for (const std::string& line : left) add("left running: " + line);
    if (const std::string cost = Cost(); !cost.empty()) add(cost);
    Summary(failure);
    return failure;
  }

 private:
  static std::string Tail(const std::string& text) {
    constexpr size_t kShown = 4000;
    return text.size() <= kShown ? text : text.substr(text.size() - kShown);
  }

  Status Kubectl(std::vector<std::string> args, const std::string& input = "", const std::string& shown = "") {
    std::string command = "$ kubectl";
    for (const std::string& arg : args) command += " " + arg;
    Say(shown.empty() ? command : "$ kubectl " + shown);
    LK_ASSIGN_OR_RETURN(const std::string out, lab_.Kubectl(std::move(args), input));
    if (!out.empty()) Say(out.substr(0, out.size() - (out.back() == '\n' ? 1 : 0)));
    return Status::Ok();
  }

  // Applies one of the samples, its addresses moved to free ports.
  Status Apply(const std::string& file) {
    LK_ASSIGN_OR_RETURN(const std::string text, Sample(samples_ + "/" + file, ports_));
    return Kubectl({"apply", "-f", "-"}, text, "apply -f manifests/samples/" + file);
  }

  // Follows with `lockkeeper watch`, live; what it exits with is judged by the outcome in the API.
  Status Follow(const std::string& target) {
    Say("$ lockkeeper watch " + target);
    SubprocessOptions watch = lab_.VerbOptions({"watch", target, "--timeout", "120"});
    watch.inherit = true;
    LK_ASSIGN_OR_RETURN(Subprocess child, Subprocess::Start(watch));
    return child.Wait(std::chrono::seconds(130)).status();
  }

  void Lap(int number, const std::string& what) {
    lap_ = std::to_string(number);
    Say("\n== Lap " + lap_ + ": " + what);
    ::poll(nullptr, 0, static_cast<int>(between_ * 1000));
  }

  // Reads the Roll of an operation and notes its figures; kInternal when it ended otherwise than wanted.
  Status Note(const std::string& roll_name, Outcome wanted) {
    LK_ASSIGN_OR_RETURN(const Roll roll, Get<Roll>(lab_.api(), {"default", roll_name}));
    Row row;
    row.lap = lap_;
    row.name = roll_name;
    if (!roll.status.outcome) return {Code::kInternal, "Roll " + roll_name + " has no outcome"};
    row.outcome = EnumName(*roll.status.outcome);
    const RollReport& r = roll.status.report;
    row.total = r.total_seconds.value_or(0);
    row.overhead = r.overhead_seconds.value_or(-1);
    row.outage = r.outage_seconds.value_or(-1);
    row.cut = r.cut_connections.value_or(0);
    rows_.push_back(row);
    if (*roll.status.outcome != wanted) {
      return {Code::kInternal, "Roll " + roll_name + " ended " + row.outcome + ": " + roll.status.error};
    }
    return Status::Ok();
  }

  Status NoteUpgrade(const std::string& name, Outcome wanted) {
    LK_RETURN_IF_ERROR(Kubectl({"wait", "--for=condition=Finished", "upgrade/" + name, "--timeout=60s"}));
    LK_ASSIGN_OR_RETURN(const Upgrade upgrade, Get<Upgrade>(lab_.api(), {"default", name}));
    if (!upgrade.status.roll_ref)
      return {Code::kInternal, "Upgrade " + name + " made no Roll: " + upgrade.status.error};
    return Note(upgrade.status.roll_ref->name, wanted);
  }

  Status Prepare() {
    for (const char* version : {kFirst, "v0.33.0"}) LK_RETURN_IF_ERROR(lab_.Build(version));
    LK_RETURN_IF_ERROR(lab_.Build("v0.34.0", "never-ready"));
    LK_ASSIGN_OR_RETURN(const double seconds, lab_.Up());
    char text[64];
    std::snprintf(text, sizeof text, "lockkeeper up: ready after %.2f s", seconds);
    Say(text);
    ports_ = {{"127.0.0.1:7443", "127.0.0.1:" + std::to_string(Lab::FreePort())},
              {"127.0.0.1:7444", "127.0.0.1:" + std::to_string(Lab::FreePort())}};
    for (const char* file : {"10-fronts.yaml", "20-server-kcp.yaml", "21-server-single.yaml"}) {
      LK_RETURN_IF_ERROR(Apply(file));
    }
    LK_RETURN_IF_ERROR(Kubectl({"wait", "--for=condition=Ready", "srv/kcp", "srv/single", "--timeout=60s"}));
    return Kubectl({"get", "srv,slot,front"});
  }

  Status StartLoad() {
    for (const char* server : {"kcp", "single"}) {
      LK_ASSIGN_OR_RETURN(load::LoadConfig config, lab_.LoadThrough(server));
      const bool main = std::string_view(server) == "kcp";
      config.connections = main ? 50 : 10;
      config.rate = main ? 500 : 50;
      config.watchers = main ? 2 : 1;
      config.seed = 1;
      auto generator = std::make_unique<load::LoadGenerator>(config);
      LK_RETURN_IF_ERROR(generator->Start());
      loads_.push_back(std::move(generator));
      Say(std::string("load through front ") + server + ": " + std::to_string(config.connections) + " connections, " +
          std::to_string(static_cast<int>(config.rate)) + " requests/s, reads and writes");
    }
    return Status::Ok();
  }

  void StopLoad() {
    for (auto& generator : loads_) results_.push_back(generator->Stop());
    loads_.clear();
  }

  Status Laps() {
    LK_RETURN_IF_ERROR(Prepare());
    LK_RETURN_IF_ERROR(StartLoad());
    Lap(1, "an Upgrade, blue to green");
    LK_RETURN_IF_ERROR(Apply("operations/1-upgrade.yaml"));
    LK_RETURN_IF_ERROR(Follow("upgrade/to-v0-33-0"));
    LK_RETURN_IF_ERROR(NoteUpgrade("to-v0-33-0", Outcome::kSucceeded));
    Lap(2, "a Roll by hand, back to blue");
    LK_RETURN_IF_ERROR(Apply("operations/2-roll.yaml"));
    LK_RETURN_IF_ERROR(Follow("roll/back-to-blue"));
    LK_RETURN_IF_ERROR(Note("back-to-blue", Outcome::kSucceeded));
    Lap(3, "a Roll held at a gate, approved by a person");
    LK_RETURN_IF_ERROR(Gated());
    Lap(4, "an Upgrade to a build that never becomes ready: undone before the flip");
    LK_RETURN_IF_ERROR(Apply("operations/4-upgrade-broken.yaml"));
    LK_RETURN_IF_ERROR(Follow("upgrade/to-v0-34-0"));
    LK_RETURN_IF_ERROR(NoteUpgrade("to-v0-34-0", Outcome::kRolledBack));
    Lap(5, "a planned outage of the Server with one slot: its front holds connections");
    LK_RETURN_IF_ERROR(Apply("operations/5-upgrade-single.yaml"));
    LK_RETURN_IF_ERROR(Follow("upgrade/single-to-v0-33-0"));
    LK_RETURN_IF_ERROR(NoteUpgrade("single-to-v0-33-0", Outcome::kSucceeded));
    ::poll(nullptr, 0, static_cast<int>(between_ * 1000));
    Say("");
    return Kubectl({"get", "srv,upg,roll", "-o", "wide"});
  }

  Status Gated() {
    LK_RETURN_IF_ERROR(Apply("operations/3-roll-gated.yaml"));
    SubprocessOptions watch = lab_.VerbOptions({"watch", "roll/gated", "--timeout", "120"});
    watch.inherit = true;
    Say("$ lockkeeper watch roll/gated &");
    LK_ASSIGN_OR_RETURN(Subprocess follower, Subprocess::Start(watch));
    bool waiting = false;
    for (int i = 0; i < 300 && !waiting; ++i) {
      LK_ASSIGN_OR_RETURN(const Roll roll, Get<Roll>(lab_.api(), {"default", "gated"}));
      if (roll.status.outcome) return {Code::kInternal, "Roll gated ended before its gate: " + roll.status.error};
      for (const RollStep& step : roll.status.steps) waiting = waiting || step.state == StepState::kWaiting;
      ::poll(nullptr, 0, 100);
    }
    if (!waiting) return {Code::kTimeout, "Roll gated never waited at its gate"};
    ::poll(nullptr, 0, 1000);
    LK_RETURN_IF_ERROR(
        Kubectl({"patch", "roll", "gated", "--type=merge", "-p", R"({"spec":{"approve":["BeforeFlip"]}})"}));
    LK_RETURN_IF_ERROR(follower.Wait(std::chrono::seconds(130)).status());
    return Note("gated", Outcome::kSucceeded);
  }

  std::string Cost() const {
    std::string text;
    for (const load::LoadResult& r : results_) {
      if (r.Clean()) continue;
      text += "the load was not clean: " + r.ToJson().Dump();
    }
    return text;
  }

  void Summary(const std::string& failure) const {
    Json overheads = Json::MakeArray(), outages = Json::MakeArray();
    int64_t undone = 0;
    Say("\nLAP  ROLL                            OUTCOME      TOTAL     OVERHEAD  OUTAGE    CUT");
    for (const Row& row : rows_) {
      char line[160];
      const auto seconds = [](double s) {
        char cell[24];
        std::snprintf(cell, sizeof cell, "%.3f s", s);
        return s < 0 ? std::string("-") : std::string(cell);
      };
      std::snprintf(line, sizeof line, "%-4s %-31s %-12s %-9s %-9s %-9s %lld", row.lap.c_str(), row.name.c_str(),
                    row.outcome.c_str(), seconds(row.total).c_str(), seconds(row.overhead).c_str(),
                    seconds(row.outage).c_str(), static_cast<long long>(row.cut));
      Say(line);
      if (row.outcome == "Succeeded" && row.overhead >= 0) overheads.Push(row.overhead);
      if (row.outage >= 0) outages.Push(row.outage);
      if (row.outcome == "RolledBack") ++undone;
    }
    load::LoadCounts sum;
    int64_t missed = 0;
    for (const load::LoadResult& r : results_) {
      sum.requests += r.counts.requests;
      sum.retried += r.counts.retried;
      sum.failed += r.counts.failed + r.lost_writes + r.counts.stale_reads;
      sum.refused += r.counts.refused;
      sum.watch_events += r.counts.watch_events;
      missed += r.missed_events + r.duplicate_events + r.disordered_events;
    }
    Say("\nrequests " + std::to_string(sum.requests) + ", retried " + std::to_string(sum.retried) + ", failed " +
        std::to_string(sum.failed) + ", refused " + std::to_string(sum.refused) + ", watch events " +
        std::to_string(sum.watch_events) + ", missed " + std::to_string(missed));
    if (!failure.empty()) Say("FAILED: " + failure);
    Say(Json::MakeObject({{"rolls", static_cast<int64_t>(rows_.size())},
                          {"requests", sum.requests},
                          {"retried", sum.retried},
                          {"failed", sum.failed},
                          {"refused", sum.refused},
                          {"watchEvents", sum.watch_events},
                          {"missedEvents", missed},
                          {"overheadSeconds", std::move(overheads)},
                          {"outageSeconds", std::move(outages)},
                          {"undone", undone}})
            .Dump());
  }

  const std::string samples_;
  const double between_;
  Lab lab_;
  std::vector<std::pair<std::string, std::string>> ports_;
  std::vector<std::unique_ptr<load::LoadGenerator>> loads_;
  std::vector<load::LoadResult> results_;
  std::vector<Row> rows_;
  std::string lap_;
};

}  // namespace
}  // namespace lockkeeper

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: lk-demo LOCKKEEPER KUBECTL SAMPLES [SECONDS]\n");
    return 2;
  }
  ::signal(SIGPIPE, SIG_IGN);
  lockkeeper::Demo demo(argv[1], argv[2], argv[3], argc > 4 ? std::atof(argv[4]) : 2.0);
  return demo.Run().empty() ? 0 : 1;
}
