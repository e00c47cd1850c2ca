#include "api/server/kcp/workspaces.h"

#include <algorithm>
#include <utility>

#include "api/base/hash.h"
#include "api/base/log.h"
#include "api/server/watch_hub.h"

namespace lockkeeper::kcp {
namespace {

constexpr char kFinalizer[] = "core.kcp.io/logicalcluster";
constexpr char kUniversal[] = "root:universal";
constexpr char kApiBindings[] = "system:apibindings";
constexpr int kMaxDepth = 20;
constexpr size_t kDeletesPerTxn = 200;
constexpr Duration kIdle = Milliseconds(1000);

// 16 characters of base36, as kcp names clusters. Made of the uid: a repeated step finds the same cluster.
std::string ClusterNameFor(const std::string& uid) {
  static constexpr char kDigits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
  const std::string hash = Sha256Hex(uid);
  std::string name;
  for (size_t i = 0; i < 16; ++i) name.push_back(kDigits[std::stoul(hash.substr(i * 4, 4), nullptr, 16) % 36]);
  return name;
}

apiserver::Key LogicalClusterKey(const std::string& cluster) { return {cluster, kLogicalClusters, "", "cluster"}; }

}  // namespace

WorkspaceController::WorkspaceController(WorkspaceConfig config, apiserver::Store& store, const Faults& faults,
                                         Journal& journal, std::function<bool()> leading,
                                         std::function<Status()> wait_for_store)
    : config_(std::move(config)),
      store_(store),
      faults_(faults),
      journal_(journal),
      leading_(std::move(leading)),
      wait_for_store_(std::move(wait_for_store)) {}

WorkspaceController::~WorkspaceController() { Stop(); }

Status WorkspaceController::Start() {
  LK_ASSIGN_OR_RETURN(const int64_t revision, store_.Revision());
  thread_ = std::thread([this, revision] { Run(revision); });
  return Status::Ok();
}

void WorkspaceController::Wake() { store_.hub().WakeAll(); }

void WorkspaceController::Stop() {
  stopping_ = true;
  if (!thread_.joinable()) return;
  Wake();
  thread_.join();
}

bool WorkspaceController::MayStep() const { return !stopping_ && leading_() && !faults_.Has("idle-leader"); }

void WorkspaceController::Run(int64_t revision) {
  apiserver::WatchHub::Watch watch(store_.hub(), "*", kWorkspaces, revision);
  Duration wait{};
  while (!stopping_) {
    const auto patience = std::chrono::duration_cast<std::chrono::milliseconds>(wait + Milliseconds(1));
    if (wait > Duration::zero() && watch.Next(patience).code() == Code::kCancelled) return;
    wait = MayStep() ? Pass() : kIdle;
  }
}

Duration WorkspaceController::Pass() {
  std::vector<Item> items;
  const Status collected =
      store_.Read([&](apiserver::Session& session) { return Collect(session, kRootCluster, kRootCluster, 0, &items); });
  if (!collected.ok()) {
    LogWarn("cannot list workspaces", {{"why", collected.message()}});
    return config_.retry_delay;
  }
  const Duration delay = faults_.Time("workspace-step-delay").value_or(config_.step_delay);
  Duration wait = kIdle;
  decltype(due_) due;
  for (const Item& item : items) {
    const std::string uid = item.workspace.json.At({"metadata", "uid"}).AsString();
    const Duration now = SystemClock().Read().boot;
    const auto known = due_.find(uid);
    Duration at = known != due_.end() && known->second.first == item.step ? known->second.second : now + delay;
    if (at <= now) {
      if (!MayStep()) return kIdle;
      const Status status = Reconcile(item);
      if (status.ok() || status.code() == Code::kConflict || status.code() == Code::kNotFound) {
        wait = Duration::zero();  // look again at once
        continue;
      }
      if (status.code() != Code::kUnavailable) {
        LogWarn("workspace step failed",
                {{"workspace", item.path}, {"step", StepName(item.step)}, {"why", status.message()}});
      }
      at = now + config_.retry_delay;
    }
    due[uid] = {item.step, at};
    wait = std::min(wait, at - now);
  }
  due_ = std::move(due);
  return std::max(wait, Duration::zero());
}

WorkspaceController::Step WorkspaceController::StepOf(const Json& workspace) {
  if (IsDeleting(workspace)) return HasFinalizer(workspace, kFinalizer) ? Step::kDelete : Step::kNone;
  const std::string& phase = workspace.At({"status", "phase"}).AsString();
  if (workspace.At({"spec", "cluster"}).AsString().empty()) return Step::kSchedule;
  if (phase == "Scheduling") return Step::kInitialize;
  return phase == "Initializing" ? Step::kBind : Step::kNone;
}

const char* WorkspaceController::StepName(Step step) {
  switch (step) {
    case Step::kNone: return "none";
    case Step::kSchedule: return "schedule";
    case Step::kInitialize: return "initialize";
    case Step::kBind: return "bind";
    case Step::kDelete: return "delete";
  }
  return "";
}

Status WorkspaceController::Collect(apiserver::Session& session, const std::string& cluster, const std::string& path,
                                    int depth, std::vector<Item>* items) {
  if (depth > kMaxDepth) return Status::Ok();
  apiserver::ListQuery query;
  query.cluster = cluster;
  query.resource = kWorkspaces;
  std::vector<Item> found;
  LK_RETURN_IF_ERROR(session.List(query, [&](apiserver::Record&& record, std::string_view) {
    auto json = Json::Parse(record.value);
    if (!json.ok()) return true;
    const std::string child = path + ":" + record.key.name;
    const Step step = StepOf(*json);
    found.push_back({Object{record.key, std::move(*json), record.revision}, child, step});
    return true;
  }));
  for (Item& item : found) {
    const std::string below = item.workspace.json.At({"spec", "cluster"}).AsString();
    if (!below.empty()) LK_RETURN_IF_ERROR(Collect(session, below, item.path, depth + 1, items));
    if (item.step != Step::kNone) items->push_back(std::move(item));
  }
  return Status::Ok();
}

Status WorkspaceController::Reconcile(const Item& item) {
  const Span span(journal_, "reconcile", item.path, StepName(item.step));
  LK_RETURN_IF_ERROR(wait_for_store_());
  const Now now = SystemClock().Read();
  if (item.step == Step::kDelete) return Delete(item.workspace, now);
  return store_.Write([&](apiserver::Txn& txn) -> Status {
    switch (item.step) {
      case Step::kSchedule: return Schedule(txn, item.workspace, item.path, now);
      case Step::kInitialize: return Initialize(txn, item.workspace);
      case Step::kBind: return Bind(txn, item.workspace, now);
      case Step::kDelete:
      case Step::kNone: break;
    }
    return Status::Ok();
  });
}

// The scheduler: a cluster on this shard, with the initializers of its type.
Status WorkspaceController::Schedule(apiserver::Txn& txn, Object workspace, const std::string& path, const Now& now) {
  const auto shard = ReadObject(txn, {kRootCluster, kShards, "", config_.shard_name});
  const std::string url = shard.ok() ? shard->json.At({"spec", "externalURL"}).AsString() : "";
  if (url.empty()) {
    const Json before = workspace.json;
    SetCondition(workspace.json, "WorkspaceScheduled", false, now, "Unschedulable",
                 "no available shard: " + config_.shard_name + " is missing or has no externalURL");
    return workspace.json == before ? Status(Code::kUnavailable, "unschedulable") : WriteObject(txn, &workspace);
  }
  const std::string uid = workspace.json.At({"metadata", "uid"}).AsString();
  const std::string cluster = ClusterNameFor(uid);
  Object logical = NewObject(LogicalClusterKey(cluster), "core.kcp.io/v1alpha1", "LogicalCluster", now);
  logical.json["metadata"]["annotations"].Set("kcp.io/path", path);
  logical.json["spec"].Set("owner", Json::MakeObject({{"apiVersion", "tenancy.kcp.io/v1alpha1"},
                                                      {"resource", "workspaces"},
                                                      {"cluster", workspace.key.cluster},
                                                      {"name", workspace.key.name},
                                                      {"uid", uid}}));
  const Json initializers = Json::MakeArray({kUniversal, kApiBindings});
  logical.json["spec"].Set("initializers", initializers);
  logical.json["status"] =
      Json::MakeObject({{"phase", "Scheduling"}, {"initializers", initializers}, {"URL", url + "/clusters/" + path}});
  Object ns = NewObject({cluster, kNamespaces, "", "default"}, "v1", "Namespace", now);
  ns.json["status"].Set("phase", "Active");
  for (Object* object : {&logical, &ns}) {
    const Status written = WriteObject(txn, object);
    if (!written.ok() && written.code() != Code::kAlreadyExists) return written;
  }
  workspace.json["spec"].Set("cluster", cluster);
  workspace.json["spec"].Set("URL", url + "/clusters/" + path);
  workspace.json["status"].Set("phase", "Scheduling");
  AddFinalizer(workspace.json, kFinalizer);
  SetCondition(workspace.json, "WorkspaceScheduled", true, now);
  SetCondition(workspace.json, "WorkspaceInitialized", false, now, "InitializerExists", "initializers still exist");
  return WriteObject(txn, &workspace);
}

// The universal type's bootstrap: its initializer goes, the phase moves on.
Status WorkspaceController::Initialize(apiserver::Txn& txn, const Object& from) {
  Object workspace = from;
  LK_ASSIGN_OR_RETURN(Object logical,
                      ReadObject(txn, LogicalClusterKey(workspace.json.At({"spec", "cluster"}).AsString())));
  logical.json["status"].Set("phase", "Initializing");
  logical.json["status"].Set("initializers", Json::MakeArray({kApiBindings}));
  LK_RETURN_IF_ERROR(WriteObject(txn, &logical));
  workspace.json["status"].Set("phase", "Initializing");
  return WriteObject(txn, &workspace);
}

// The API binder: the last initializer goes.
Status WorkspaceController::Bind(apiserver::Txn& txn, Object workspace, const Now& now) {
  LK_ASSIGN_OR_RETURN(Object logical,
                      ReadObject(txn, LogicalClusterKey(workspace.json.At({"spec", "cluster"}).AsString())));
  logical.json["status"].Set("phase", "Ready");
  logical.json["status"].Remove("initializers");
  LK_RETURN_IF_ERROR(WriteObject(txn, &logical));
  workspace.json["status"].Set("phase", "Ready");
  for (const char* type : {"APIBindingsInitialized", "APIBindingsReconciled", "WorkspaceInitialized"}) {
    SetCondition(workspace.json, type, true, now);
  }
  return WriteObject(txn, &workspace);
}

Status WorkspaceController::Delete(Object workspace, const Now& now) {
  const std::string cluster = workspace.json.At({"spec", "cluster"}).AsString();
  bool empty = cluster.empty();
  while (!empty) {
    if (!MayStep()) return Status(Code::kCancelled, "leads no longer");
    bool nested = false;
    LK_RETURN_IF_ERROR(store_.Write([&](apiserver::Txn& txn) -> Status {
      LK_ASSIGN_OR_RETURN(empty, RemoveContent(txn, cluster, now));
      apiserver::ListQuery query;
      query.cluster = cluster;
      query.resource = kWorkspaces;
      return txn.List(query, [&](apiserver::Record&&, std::string_view) {
        nested = true;
        return false;
      });
    }));
    if (nested) return Status(Code::kUnavailable, "workspaces below it are not gone yet");
  }
  return store_.Write([&](apiserver::Txn& txn) -> Status {
    const auto logical = txn.Delete(LogicalClusterKey(cluster), 0);
    if (!logical.ok() && logical.code() != Code::kNotFound) return logical.status();
    RemoveFinalizer(workspace.json, kFinalizer);
    if (workspace.json.At({"metadata", "finalizers"}).empty())
      return txn.Delete(workspace.key, workspace.revision).status();
    workspace.json["status"].Set("phase", "Deleting");
    SetCondition(workspace.json, "WorkspaceContentDeleted", true, now);
    return WriteObject(txn, &workspace);
  });
}

Result<bool> WorkspaceController::RemoveContent(apiserver::Txn& txn, const std::string& cluster, const Now& now) {
  std::vector<Object> found;
  for (const std::string& resource : config_.resources) {
    if (resource == kLogicalClusters) continue;
    apiserver::ListQuery query;
    query.cluster = cluster;
    query.resource = resource;
    LK_RETURN_IF_ERROR(txn.List(query, [&](apiserver::Record&& record, std::string_view) {
      auto json = Json::Parse(record.value);
      if (!json.ok()) return true;
      if (resource == kWorkspaces && IsDeleting(*json)) return true;  // on its way
      found.push_back({record.key, std::move(*json), record.revision});
      return found.size() < kDeletesPerTxn;
    }));
    if (found.size() >= kDeletesPerTxn) break;
  }
  for (Object& object : found) {
    if (object.key.resource == kWorkspaces && HasFinalizer(object.json, kFinalizer)) {
      object.json["metadata"].Set("deletionTimestamp", FormatTime(now.wall));
      LK_RETURN_IF_ERROR(WriteObject(txn, &object));
      continue;
    }
    LK_RETURN_IF_ERROR(txn.Delete(object.key, object.revision).status());
  }
  return found.size() < kDeletesPerTxn;
}

}  // namespace lockkeeper::kcp
