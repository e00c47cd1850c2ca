// roll_bench: the product's figures in one run, beside their limits.
//
//   start of `up`, first and again; memory (PSS) of `up` with its store, of a front and of a shim; requests at 500/s
//   from 50 kept-alive connections over a roll, with and without goaway; overhead of a roll; a planned outage.
//
// Exit status 1 when a limit is missed.
#include <poll.h>
#include <signal.h>

#include <cstdio>
#include <string>
#include <vector>

#include "api/base/file.h"
#include "api/types/front.h"
#include "api/types/roll.h"
#include "api/types/server.h"
#include "api/types/upgrade.h"
#include "controller/typed.h"
#include "controller/yaml.h"
#include "tests/support/lab.h"
#include "tests/support/wait.h"

namespace lockkeeper {
namespace {

constexpr char kOld[] = "v0.32.3";
constexpr char kNew[] = "v0.33.0";

// PSS of a process in MB, from smaps_rollup.
double PssOf(pid_t pid) {
  const Result<std::string> text = ReadFile("/proc/" + std::to_string(pid) + "/smaps_rollup");
  if (!text.ok()) return -1;
  const size_t at = text->find("\nPss:");
  return at == std::string::npos ? -1 : std::strtod(text->c_str() + at + 5, nullptr) / 1024;
}

class Bench {
 public:
  Bench() : lab_(OptionsOf()) {
    replace_ = {{"127.0.0.1:7443", "127.0.0.1:" + std::to_string(Lab::FreePort())},
                {"127.0.0.1:7444", "127.0.0.1:" + std::to_string(Lab::FreePort())}};
  }

  Status Run() {
    for (const char* version : {kOld, kNew}) LK_RETURN_IF_ERROR(lab_.Build(version));
    LK_ASSIGN_OR_RETURN(const double first, lab_.Up());
    Show("up, first start to ready", first, 0.5, "s");
    LK_RETURN_IF_ERROR(lab_.Down(SIGTERM).status());
    LK_ASSIGN_OR_RETURN(const double again, lab_.Up());
    Show("up, start to ready again", again, 0.3, "s");
    LK_RETURN_IF_ERROR(Install());
    ::poll(nullptr, 0, 2000);  // not synchronisation: an idle process is what is measured
    Show("up, idle with its store, PSS", PssOf(lab_.up_pid()), 25, "MB");
    Show("front, PSS", PssOf(Find(" front --config")), 8, "MB");
    Show("shim, PSS", PssOf(Find("slot-shim")), 1, "MB");
    LK_RETURN_IF_ERROR(Rolls("without goaway", "kcp"));
    LK_RETURN_IF_ERROR(Rolls("with goaway 1 %", "goaway"));
    return Outage();
  }

  bool missed() const { return missed_; }

 private:
  static LabOptions OptionsOf() {
    LabOptions options;
    options.lockkeeper = LK_LOCKKEEPER;
    return options;
  }

  void Show(const std::string& what, double value, double limit, const char* unit) {
    const bool ok = value >= 0 && value <= limit;
    missed_ = missed_ || !ok;
    std::printf("%-46s %10.3f %-3s limit %8.3f  ratio %5.2f  %s\n", what.c_str(), value, unit, limit,
                limit > 0 ? value / limit : value, ok ? "ok" : "MISSED");
    std::fflush(stdout);
  }

  pid_t Find(const std::string& word) const {
    for (const std::string& line : lab_.LeftOver()) {
      if (line.find(word) != std::string::npos) return static_cast<pid_t>(std::stol(line));
    }
    return 0;
  }

  Status Apply(const std::string& sample, const std::function<void(Json&)>& edit = {}) {
    LK_ASSIGN_OR_RETURN(const std::string text,
                        Sample(std::string(LK_SOURCE_DIR) + "/manifests/samples/" + sample, replace_));
    LK_ASSIGN_OR_RETURN(std::vector<Json> objects, ParseYamlStream(text, sample));
    for (Json& object : objects) {
      object["metadata"].Set("namespace", "default");
      if (edit) edit(object);
      const std::string kind = object.Get("kind").AsString();
      const Resource resource = kind == "Front" ? ResourceOf<Front>() : ResourceOf<Server>();
      LK_RETURN_IF_ERROR(lab_.api().Create(resource, object).status());
    }
    return Status::Ok();
  }

  Status Install() {
    LK_RETURN_IF_ERROR(Apply("10-fronts.yaml"));
    LK_RETURN_IF_ERROR(Apply("20-server-kcp.yaml"));
    LK_RETURN_IF_ERROR(Apply("21-server-single.yaml"));
    // A third one like the first, whose clients are told to come back on another connection now and then.
    const std::string port = "127.0.0.1:" + std::to_string(Lab::FreePort());
    const auto other = [&](Json& object) {
      object["metadata"].Set("name", "goaway");
      std::string text = object.Dump();
      const std::string& from = replace_[0].second;
      for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + port.size())) {
        text.replace(at, from.size(), port);
      }
      object = *Json::Parse(text);
      object["spec"]["frontRef"].Set("name", "goaway");
      object["spec"]["template"]["command"].Push("--goaway-chance=0.01");
    };
    LK_RETURN_IF_ERROR(Apply("20-server-kcp.yaml", other));
    Front front;
    front.metadata.namespace_ = "default";
    front.metadata.name = "goaway";
    front.spec.host = "local";
    front.spec.listen = port;
    LK_RETURN_IF_ERROR(Create<Front>(lab_.api(), front).status());
    for (const char* name : {"kcp", "single", "goaway"}) {
      const bool ready = WaitUntil(
          [&] {
            const Result<Server> s = Get<Server>(lab_.api(), {"default", name});
            return s.ok() && s->status.version == kOld && !s->status.operation;
          },
          std::chrono::seconds(60));
      if (!ready) return {Code::kTimeout, std::string("Server ") + name + " was not installed"};
    }
    return Status::Ok();
  }

  // One upgrade under load; answers its Roll.
  Result<Roll> UpgradeUnderLoad(const std::string& server, const std::string& version, load::LoadResult* result) {
    LK_ASSIGN_OR_RETURN(load::LoadConfig config, lab_.LoadThrough(server));
    config.connections = 50;
    config.rate = 500;
    config.watchers = 2;
    load::LoadGenerator generator(config);
    LK_RETURN_IF_ERROR(generator.Start());
    ::poll(nullptr, 0, 1000);  // not synchronisation: load before the roll is part of the figure
    const std::string name = server + "-" + std::to_string(++count_);
    Upgrade upgrade;
    upgrade.metadata.namespace_ = "default";
    upgrade.metadata.name = name;
    upgrade.spec.server_ref.name = server;
    upgrade.spec.version = version;
    upgrade.spec.allow_downgrade = true;
    LK_RETURN_IF_ERROR(Create<Upgrade>(lab_.api(), upgrade).status());
    Result<Upgrade> done(Code::kTimeout, "not finished");
    WaitUntil(
        [&] {
          done = Get<Upgrade>(lab_.api(), {"default", name});
          return done.ok() && done->status.outcome.has_value();
        },
        std::chrono::seconds(90));
    ::poll(nullptr, 0, 1000);  // not synchronisation: as above
    *result = generator.Stop();
    if (!done.ok()) return done.status();
    if (done->status.outcome != Outcome::kSucceeded)
      return Status(Code::kInternal, "it ended otherwise: " + done->status.error);
    return Get<Roll>(lab_.api(), {"default", done->status.roll_ref->name});
  }

  void ShowLoad(const std::string& label, const load::LoadResult& r) {
    std::printf("%-46s %lld requests, %lld retried, %lld writes accepted, most reconnects of a watch %lld\n",
                label.c_str(), static_cast<long long>(r.counts.requests), static_cast<long long>(r.counts.retried),
                static_cast<long long>(r.counts.accepted_writes), static_cast<long long>(r.most_reconnects));
    Show(label + ": failed", static_cast<double>(r.counts.failed), 0, "");
    Show(label + ": refused", static_cast<double>(r.counts.refused), 0, "");
    Show(label + ": lost writes", static_cast<double>(r.lost_writes), 0, "");
    Show(label + ": events missed or doubled", static_cast<double>(r.missed_events + r.duplicate_events), 0, "");
    Show(label + ": most reconnects of a watch", static_cast<double>(r.most_reconnects), 1, "");
  }

  Status Rolls(const std::string& label, const std::string& server) {
    for (const char* version : {kNew, kOld, kNew}) {
      load::LoadResult result;
      LK_ASSIGN_OR_RETURN(const Roll roll, UpgradeUnderLoad(server, version, &result));
      ShowLoad("roll " + label, result);
      const RollReport& r = roll.status.report;
      Show("roll " + label + ": overheadSeconds", r.overhead_seconds.value_or(-1), 0.25, "s");
      std::printf("%-46s start->ready %.3f, drain %.3f, old exit %.3f, lease %.3f, probe %.3f, total %.3f s\n", "",
                  r.start_to_ready_seconds.value_or(0), r.drain_seconds.value_or(0), r.old_exit_seconds.value_or(0),
                  r.lease_handover_seconds.value_or(0), r.probe_seconds.value_or(0), r.total_seconds.value_or(0));
    }
    return Status::Ok();
  }

  Status Outage() {
    load::LoadResult result;
    LK_ASSIGN_OR_RETURN(const Roll roll, UpgradeUnderLoad("single", kNew, &result));
    ShowLoad("planned outage", result);
    std::printf("%-46s %10.3f s\n", "planned outage: outageSeconds", roll.status.report.outage_seconds.value_or(-1));
    return Status::Ok();
  }

  Lab lab_;
  std::vector<std::pair<std::string, std::string>> replace_;
  int count_ = 0;
  bool missed_ = false;
};

}  // namespace
}  // namespace lockkeeper

int main() {
  ::signal(SIGPIPE, SIG_IGN);
  lockkeeper::Bench bench;
  if (const lockkeeper::Status status = bench.Run(); !status.ok()) {
    std::fprintf(stderr, "roll_bench: %s\n", status.ToString().c_str());
    return 1;
  }
  return bench.missed() ? 1 : 0;
}
