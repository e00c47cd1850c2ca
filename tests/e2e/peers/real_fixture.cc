#include "tests/e2e/peers/real_fixture.h"

#include <algorithm>
#include <cstdio>
#include <iterator>

#include "api/base/file.h"
#include "api/types/kind.h"
#include "api/types/lease.h"
#include "controller/base64.h"

namespace lockkeeper {
namespace {

constexpr const char* kSystem = "lockkeeper-system";
constexpr const char* kSteps[] = {"Admit", "Preflight", "NoteHolder", "BackUp", "Render", "Seed",
                                  "Start", "Listen",    "Ready",      "Record", "Flip",   "MemberToken",
                                  "Drain", "StopOld",   "Lease",      "Probe",  "Retire", "Done"};

ptrdiff_t PlaceOf(const std::string& step) {
  return std::find(std::begin(kSteps), std::end(kSteps), step) - std::begin(kSteps);
}

}  // namespace

void RealE2e::SetUp() {
  LK_NEED_CLUSTER(cluster);
  cluster_ = &cluster;
  // As README has it; the agent's user is one a host.
  const std::string agent = "agent-local";
  const std::vector<std::vector<std::string>> commands{
      {"apply", "-k", std::string(LK_SOURCE_DIR) + "/manifests"},
      {"create", "serviceaccount", agent, "-n", kSystem},
      {"create", "clusterrolebinding", agent, "--clusterrole=lockkeeper-agent",
       std::string("--serviceaccount=") + kSystem + ":" + agent}};
  for (const auto& command : commands) {
    const peers::Ran ran = cluster.Kubectl(command);
    ASSERT_TRUE(ran.exit == 0 || ran.err.find("already exists") != std::string::npos) << ran.All();
  }
  ASSERT_EQ(RemoveObjects(), Status::Ok());
  const Result<std::string> for_manager = KubeconfigOf("lockkeeper-manager");
  ASSERT_TRUE(for_manager.ok()) << for_manager.status().ToString();
  const Result<std::string> for_agent = KubeconfigOf(agent);
  ASSERT_TRUE(for_agent.ok()) << for_agent.status().ToString();
  lab_.UseApi({.admin = cluster.kubeconfig(), .manager = *for_manager, .agent = *for_agent});
}

void RealE2e::TearDown() {
  if (HasFailure()) {
    const std::string log = lab_.PartLog("manager");
    constexpr size_t kShown = 6000;
    std::fprintf(stderr, "--- the end of the manager's log:\n%s\n",
                 log.substr(log.size() > kShown ? log.size() - kShown : 0).c_str());
  }
  E2e::TearDown();
}

void RealE2e::ExpectNothingRefused() {
  for (const char* role : {"manager", "agent"}) {
    const std::string log = lab_.PartLog(role);
    const size_t at = std::min(log.find("orbidden"), log.find("Unauthorized"));
    EXPECT_EQ(at, std::string::npos) << "manifests/rbac does not give the " << role << " all that it asks for: ..."
                                     << log.substr(at > 300 ? at - 300 : 0, 600);
  }
}

Result<std::string> RealE2e::KubeconfigOf(const std::string& service_account) {
  const peers::Ran token = cluster_->Kubectl({"create", "token", service_account, "-n", kSystem, "--duration=2h"});
  if (token.exit != 0) return Status(Code::kInternal, "a token of " + service_account + ": " + token.All());
  std::string text = token.out;
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const auto named = [](const char* what, Json value) {
    return Json::MakeArray({Json::MakeObject({{"name", "real"}, {what, std::move(value)}})});
  };
  const Json config = Json::MakeObject(
      {{"apiVersion", "v1"},
       {"kind", "Config"},
       {"current-context", "real"},
       {"clusters",
        named("cluster", Json::MakeObject({{"server", cluster_->url()},
                                           {"certificate-authority-data", Base64Encode(cluster_->ca_pem())}}))},
       {"users", named("user", Json::MakeObject({{"token", text}}))},
       {"contexts", named("context", Json::MakeObject({{"cluster", "real"}, {"user", "real"}}))}});
  const std::string path = JoinPath(lab_.data(), service_account + ".kubeconfig");
  LK_RETURN_IF_ERROR(WriteFileAtomic(path, config.Dump(), 0600));
  return path;
}

// What a test before this one left: the API keeps it, though its host and its ledger are gone.
Status RealE2e::RemoveObjects() {
  Api& api = cluster_->api();
  const Json unbound = Json::MakeObject({{"metadata", Json::MakeObject({{"finalizers", Json()}})}});
  for (const KindInfo& kind : Kinds()) {
    if (!kind.ours && kind.kind != "Lease" && kind.ApiVersion() + kind.kind != "v1Event") continue;
    const Resource resource{kind.group, kind.version, kind.plural, kind.kind};
    LK_ASSIGN_OR_RETURN(const ObjectList list, api.List(resource, kind.kind == "Lease" ? kSystem : "", {}));
    for (const Json& object : list.items) {
      const ObjectKey key = ObjectKey::Of(object);
      if (!object.At({"metadata", "finalizers"}).empty()) {
        LK_RETURN_IF_ERROR(api.Patch(resource, key, PatchType::kMerge, unbound, "").status());
      }
      const Status gone = api.Delete(resource, key, {}).status();
      if (!gone.ok() && gone.code() != Code::kNotFound) return gone;
    }
  }
  return Status::Ok();
}

bool RealE2e::AwaitStep(const std::string& step) {
  return WaitUntil(
      [&] {
        const Result<std::string> now = StepNow();
        return now.ok() && !now->empty() && PlaceOf(*now) >= PlaceOf(step);
      },
      std::chrono::seconds(60));
}

bool RealE2e::AwaitNoOperation() {
  return WaitUntil(
      [&] {
        const Result<std::string> now = StepNow();
        return now.ok() && now->empty();
      },
      std::chrono::seconds(60));
}

Result<Upgrade> RealE2e::FinishedByKubectl(const std::string& upgrade) {
  const peers::Ran ran = cluster_->Kubectl({"wait", "--for=condition=Finished", "upg/" + upgrade, "--timeout=90s"});
  if (ran.exit != 0) return Status(Code::kTimeout, ran.All());
  return Get<Upgrade>(lab_.api(), {"default", upgrade});
}

void RealE2e::ExpectWhole(const Upgrade& upgrade, const std::string& version) {
  EXPECT_EQ(upgrade.status.outcome, Outcome::kSucceeded) << upgrade.status.error;
  EXPECT_EQ(upgrade.status.new_version, version);
  EXPECT_TRUE(upgrade.status.started_at && upgrade.status.finished_at);
  ASSERT_TRUE(upgrade.status.roll_ref) << upgrade.status.error;
  // A store that was restored may be told of the two in either order.
  const Result<Roll> roll =
      Await<Roll>(upgrade.status.roll_ref->name, [](const Roll& r) { return r.status.outcome.has_value(); });
  ASSERT_TRUE(roll.ok()) << roll.status().ToString();
  EXPECT_EQ(roll->status.outcome, Outcome::kSucceeded);
  EXPECT_FALSE(roll->status.steps.empty());
  for (const RollStep& step : roll->status.steps) {
    EXPECT_TRUE(step.state == StepState::kDone || step.state == StepState::kSkipped)
        << step.name << " is " << EnumName(step.state);
  }
  const RollReport& report = roll->status.report;
  EXPECT_TRUE(report.started_at && report.ready_at && report.flipped_at && report.old_exited_at && report.done_at)
      << ToJson(roll->status).Dump();
  const std::string& server_name = upgrade.spec.server_ref.name;
  const Result<Server> server = Await<Server>(server_name, [&](const Server& s) {
    return !s.status.operation && s.status.version == version && s.status.slots.size() == 1;
  });
  ASSERT_TRUE(server.ok()) << server.status().ToString();
  EXPECT_EQ(server->status.slots[0].name, server->status.active_slot);
  // Started once: the incarnation's first invocation still runs.
  EXPECT_TRUE(server->status.slots[0].invocation_id.ends_with(".1")) << server->status.slots[0].invocation_id;
  EXPECT_EQ(Overlaps(server_name), std::vector<std::string>{});
}

}  // namespace lockkeeper
