#include "reconcilers/upgrade/reconciler.h"

#include <algorithm>

#include "controller/typed.h"

namespace lockkeeper::upgrade {
namespace {

template <typename T>
Fact<T> Read(Api& api, const std::string& ns, const std::string& name) {
  return Fact<T>::Of(Get<T>(api, ObjectKey{ns, name}));
}

// Another operation holds the place and this one has never had it: nothing of its own stands anywhere yet.
bool OnlyWaits(const Upgrade& upgrade, const Server& server) {
  const auto& op = server.status.operation;
  if (!op || op->uid == upgrade.metadata.uid || upgrade.status.outcome || upgrade.status.roll_ref) return false;
  const auto& history = server.status.history;
  return std::none_of(history.begin(), history.end(),
                      [&](const HistoryEntry& h) { return h.uid == upgrade.metadata.uid; });
}

// A create that met the object it wanted to make is done.
template <typename T>
Status CreateOnce(Api& api, const T& object) {
  const Status status = Create<T>(api, object).status();
  return status.code() == Code::kAlreadyExists ? Status::Ok() : status;
}

}  // namespace

bool Reconciler::Current(const Server& server) const {
  const int64_t posted = deps_.posted(server.spec.host, server.metadata.uid);
  return server.status.ledger.has_value() && server.status.ledger->revision >= posted;
}

Result<Snapshot> Reconciler::Observe(const ObjectKey& key) {
  Snapshot s;
  LK_ASSIGN_OR_RETURN(s.upgrade, Get<Upgrade>(deps_.api, key));
  const std::string& server_name = s.upgrade.spec.server_ref.name;
  const std::shared_ptr<const Server> seen =
      deps_.seen_server ? deps_.seen_server({key.namespace_, server_name}) : nullptr;
  if (seen != nullptr && OnlyWaits(s.upgrade, *seen)) {
    s.server = *seen;
  } else {
    s.server = Read<Server>(deps_.api, key.namespace_, server_name);
  }
  if (s.server.known()) {
    s.host = deps_.host_of(s.server->spec.host);
    s.server_is_current = Current(*s.server);
    const auto& op = s.server->status.operation;
    if (op && op->kind == Upgrade::kKind && op->uid != s.upgrade.metadata.uid) {
      s.holder = Read<Upgrade>(deps_.api, key.namespace_, op->name);
    }
    if (OnlyWaits(s.upgrade, *s.server)) return s;
  }
  const std::string child = ChildName(s.upgrade);
  s.roll = Read<Roll>(deps_.api, key.namespace_, child);
  s.backup = Read<StoreBackup>(deps_.api, key.namespace_, child);
  s.release = Absent{};
  if (s.upgrade.spec.action == UpgradeAction::kUpgrade) {
    s.release = Read<Release>(deps_.api, key.namespace_, ReleaseName(s.upgrade, s.upgrade.spec.server_ref.name));
  }
  return s;
}

Status Reconciler::Act(const Snapshot& s, const Step& step) {
  const ObjectMeta& meta = s.upgrade.metadata;
  const ObjectKey key{meta.namespace_, meta.name};
  const auto set_finalizers = [&](std::vector<std::string> finalizers) {
    // The whole list under a resourceVersion: a stale write is refused, and repeating one is refused or changes
    // nothing.
    Json list = Json::MakeArray();
    for (std::string& f : finalizers) list.Push(std::move(f));
    const Json patch = Json::MakeObject({{"metadata", Json::MakeObject({{"resourceVersion", meta.resource_version},
                                                                        {"finalizers", std::move(list)}})}});
    return deps_.api.Patch(ResourceOf<Upgrade>(), key, PatchType::kMerge, patch, "").status();
  };
  if (std::holds_alternative<AddFinalizer>(step)) {
    std::vector<std::string> finalizers = meta.finalizers;
    finalizers.emplace_back(kFinalizer);
    return set_finalizers(std::move(finalizers));
  }
  if (std::holds_alternative<RemoveFinalizer>(step)) {
    std::vector<std::string> finalizers = meta.finalizers;
    finalizers.erase(std::remove(finalizers.begin(), finalizers.end(), kFinalizer), finalizers.end());
    return set_finalizers(std::move(finalizers));
  }
  // Children have deterministic names: making one twice meets the first.
  if (const auto* release = std::get_if<CreateRelease>(&step)) return CreateOnce(deps_.api, release->release);
  if (const auto* backup = std::get_if<CreateBackup>(&step)) return CreateOnce(deps_.api, backup->backup);
  if (const auto* roll = std::get_if<CreateRoll>(&step)) return CreateOnce(deps_.api, roll->roll);
  if (std::holds_alternative<DeleteSelf>(step)) {
    DeleteOptions options;
    options.uid = meta.uid;
    const Status status = Delete<Upgrade>(deps_.api, key, options);
    return status.code() == Code::kNotFound ? Status::Ok() : status;
  }
  return Status::Ok();
}

Status Reconciler::WriteStatus(const Snapshot& s, const Plan& plan, const Now& now) {
  const UpgradeStatus after = Summarize(s, plan, now);
  if (after == s.upgrade.status) return Status::Ok();
  Upgrade updated = s.upgrade;
  updated.status = after;
  // Under the resourceVersion that was read; a conflict is re-observed.
  LK_RETURN_IF_ERROR(UpdateStatus<Upgrade>(deps_.api, updated).status());
  for (const StoryEvent& event : EventsBetween(s.upgrade.status, after)) deps_.event(updated, event);
  return Status::Ok();
}

Result<Duration> Reconciler::Reconcile(const ObjectKey& key) {
  Result<Snapshot> snapshot = Observe(key);
  if (snapshot.code() == Code::kNotFound) return Duration{};
  if (!snapshot.ok()) return snapshot.status();
  const Now now = deps_.clock.Read();
  const Plan plan = Decide(*snapshot, now);
  // Status first: it is under the resourceVersion that was read, and the step below may move it.
  if (!std::holds_alternative<AddFinalizer>(plan.step)) LK_RETURN_IF_ERROR(WriteStatus(*snapshot, plan, now));
  if (std::holds_alternative<RemoveFinalizer>(plan.step)) {
    LK_ASSIGN_OR_RETURN(snapshot->upgrade, Get<Upgrade>(deps_.api, key));
  }
  LK_RETURN_IF_ERROR(Act(*snapshot, plan.step));
  // Something was done: look at once at what it brought.
  const bool acted = !std::holds_alternative<std::monostate>(plan.step);
  return acted ? Milliseconds(1) : plan.requeue_after;
}

Result<Duration> Reconciler::ReconcileDeclared(const ObjectKey& key) {
  if (const auto seen = deps_.seen_server ? deps_.seen_server(key) : nullptr; seen != nullptr && !MayDeclare(*seen)) {
    return Duration{};  // what changes that wakes it
  }
  DeclaredSnapshot s;
  Result<Server> server = Get<Server>(deps_.api, key);
  if (server.code() == Code::kNotFound) return Duration{};
  if (!server.ok()) return server.status();
  s.server = std::move(*server);
  if (!MayDeclare(s.server)) return Duration{};
  LK_ASSIGN_OR_RETURN(std::vector<Upgrade> all, List<Upgrade>(deps_.api, key.namespace_));
  for (Upgrade& u : all) {
    if (u.spec.server_ref.name == key.name) s.upgrades.push_back(std::move(u));
  }
  s.host = deps_.host_of(s.server.spec.host);
  s.server_is_current = Current(s.server);
  const DeclaredPlan plan = DecideDeclared(s, deps_.clock.Read());
  if (plan.create) LK_RETURN_IF_ERROR(CreateOnce(deps_.api, *plan.create));
  return plan.requeue_after;
}

}  // namespace lockkeeper::upgrade
