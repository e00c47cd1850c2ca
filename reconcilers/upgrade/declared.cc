#include "reconcilers/upgrade/declared.h"

#include <algorithm>

#include "reconcilers/upgrade/plan.h"

namespace lockkeeper::upgrade {
namespace {

constexpr Duration kFirstRetry = Seconds(60);
constexpr Duration kLongestRetry = Seconds(3600);

Upgrade Declared(const Server& server, std::string name) {
  Upgrade u;
  u.metadata.name = std::move(name);
  u.metadata.namespace_ = server.metadata.namespace_;
  u.metadata.labels[kDeclaredLabel] = "true";
  OwnerReference owner;
  owner.api_version = Server::kApiVersion;
  owner.kind = Server::kKind;
  owner.name = server.metadata.name;
  owner.uid = server.metadata.uid;
  owner.controller = true;
  u.metadata.owner_references.push_back(owner);
  u.spec.server_ref.name = server.metadata.name;
  u.spec.requested_by = "Server/" + server.metadata.name;
  return u;
}

bool Exists(const std::vector<Upgrade>& upgrades, const std::string& name) {
  return std::any_of(upgrades.begin(), upgrades.end(), [&](const Upgrade& u) { return u.metadata.name == name; });
}

bool AsksForRestart(const Server& server) {
  const auto& asked = server.spec.restarted_at;
  const auto& last = server.status.last_restarted_at;
  // The first sight only records it: until the agent has, there is nothing to compare with.
  return asked && last && *asked > *last;
}

bool AsksForVersion(const Server& server) {
  return !server.spec.version.empty() && server.spec.version != server.status.version;
}

std::optional<Upgrade> MissingRestart(const DeclaredSnapshot& s) {
  if (!AsksForRestart(s.server)) return std::nullopt;
  const auto& asked = s.server.spec.restarted_at;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(asked->time_since_epoch()).count();
  const std::string name = s.server.metadata.name + "-restart-" + std::to_string(seconds);
  if (Exists(s.upgrades, name)) return std::nullopt;
  Upgrade u = Declared(s.server, name);
  u.spec.action = UpgradeAction::kRestart;
  return u;
}

}  // namespace

bool MayDeclare(const Server& server) { return AsksForRestart(server) || AsksForVersion(server); }

DeclaredPlan DecideDeclared(const DeclaredSnapshot& s, const Now& now) {
  DeclaredPlan plan;
  const Server& server = s.server;
  if (server.metadata.Deleting() || server.spec.paused || s.host != HostState::kFresh || !s.server_is_current)
    return plan;
  // Not installed yet: the first install is the agent's own.
  if (server.status.version.empty() || server.status.observed_generation < server.metadata.generation) return plan;
  plan.create = MissingRestart(s);
  if (plan.create) return plan;

  const std::string& wanted = server.spec.version;
  if (!AsksForVersion(server)) return plan;
  const auto& rejected = server.status.rejected;
  if (std::any_of(rejected.begin(), rejected.end(), [&](const RejectedBuild& r) { return r.version == wanted; })) {
    return plan;
  }
  int failures = 0;
  Time last_end{};
  for (const Upgrade& u : s.upgrades) {
    if (u.metadata.labels.count(kDeclaredLabel) == 0 || u.spec.action != UpgradeAction::kUpgrade) continue;
    if (!u.status.outcome) return plan;  // one is on its way; the next is decided after it
    if (u.spec.version != wanted || *u.status.outcome == Outcome::kSucceeded) continue;
    ++failures;
    last_end = std::max(last_end, u.status.finished_at.value_or(Time{}));
  }
  if (failures > 0) {
    Duration wait = kFirstRetry;
    for (int i = 1; i < failures && wait < kLongestRetry; ++i) wait *= 2;
    const Duration left = last_end + std::min(wait, kLongestRetry) - now.wall;
    if (left > Duration::zero()) {
      plan.requeue_after = left;
      return plan;
    }
  }
  // The counter is the ledger's; names already taken by objects of an earlier API are stepped over.
  int64_t attempt = server.status.declared_attempts + 1;
  const auto name = [&] { return server.metadata.name + "-" + NamePart(wanted) + "-" + std::to_string(attempt); };
  while (Exists(s.upgrades, name())) ++attempt;
  plan.create = Declared(server, name());
  plan.create->spec.version = wanted;
  plan.create->spec.allow_downgrade = server.spec.allow_downgrade;
  return plan;
}

}  // namespace lockkeeper::upgrade
