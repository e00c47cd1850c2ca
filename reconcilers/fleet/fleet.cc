#include "reconcilers/fleet/fleet.h"

#include <map>
#include <vector>

#include "api/base/log.h"
#include "api/base/sync.h"
#include "controller/typed.h"
#include "reconcilers/fleet/silent_host.h"
#include "reconcilers/heartbeat/heartbeat.h"
#include "reconcilers/upgrade/reconciler.h"
#include "reconcilers/upgrade/wake.h"

namespace lockkeeper {
namespace {

using upgrade::HostState;

// Unfinished Upgrades by "ns/server": the only ones that an event of another object can concern.
constexpr char kByServer[] = "unfinished-by-server";
// Servers by host.
constexpr char kByHost[] = "by-host";

constexpr Duration kHostLook = Seconds(5);
// An agent that posts and does not beat (its Lease is refused) takes what we wrote back at once.
constexpr Duration kSaidAgain = Seconds(30);

// Every pass may be cut anywhere: the next process looks again.
constexpr Duration kStopPatience = Milliseconds(500);
// An Upgrade tells up to some 30 events, and a Server those of a few in a row.
constexpr int kEventBurst = 100;

HostState StateOf(HostTracker::State state) {
  switch (state) {
    case HostTracker::State::kUndetermined: return HostState::kUndetermined;
    case HostTracker::State::kFresh: return HostState::kFresh;
    case HostTracker::State::kLost: return HostState::kLost;
    case HostTracker::State::kNeverSeen: return HostState::kNeverSeen;
  }
  return HostState::kUndetermined;
}

constexpr char kLeaseName[] = "lockkeeper-manager";

ObjectKey ServerOf(const CachedObject& object) {
  return {object.key().namespace_, object.Parse().At({"spec", "serverRef", "name"}).AsString()};
}

}  // namespace

class Fleet::Impl {
 public:
  Impl(Api& api, const Clock& clock, const FleetOptions& options)
      : clock_(clock), manager_(api, clock, ManagerOptionsOf(options)) {
    if (options.lease_api != nullptr) {
      LeaderElectionOptions election;
      election.namespace_ = kSystemNamespace;
      election.name = kLeaseName;
      manager_.AddElection(*options.lease_api, std::move(election));
    }
    reconciler_ = std::make_unique<upgrade::Reconciler>(
        upgrade::Dependencies{manager_.api(), clock_, [this](const std::string& host) { return HostOf(host); },
                              [this](const std::string& host, const std::string& uid) {
                                MutexLock lock(mutex_);
                                return tracker_.Posted(host, uid);
                              },
                              [this](const Upgrade& u, const upgrade::StoryEvent& event) {
                                manager_.recorder().Record(EventTarget::Of(ToJson(u)),
                                                           event.warning ? EventType::kWarning : EventType::kNormal,
                                                           event.reason, event.message);
                              },
                              [this](const ObjectKey& key) { return SeenServer(key); }});
    AddCaches();
    AddControllers();
  }

  // Its threads use members that go before it does.
  ~Impl() { (void)manager_.Stop(); }

  Manager& manager() { return manager_; }

 private:
  static ManagerOptions ManagerOptionsOf(const FleetOptions& options) {
    ManagerOptions out;
    out.metrics_address = options.metrics_address;
    out.event_component = "lockkeeper-manager";
    out.stop_timeout = kStopPatience;
    out.cancel_timeout = kStopPatience;
    out.event_burst = kEventBurst;
    out.cancel_calls = options.cancel_calls;
    out.on_fatal = options.on_fatal;
    return out;
  }

  // A cache that only wakes and finds: the reconciler reads what it decides on from the API, and of all that is ever
  // kept there the caches hold a few hundred bytes each.
  Cache& AddNames(const Resource& resource, std::vector<std::pair<std::string, std::string>> members = {}) {
    CacheOptions options;
    options.trim = KeepOnly(std::move(members));
    return manager_.AddCache(resource, std::move(options));
  }

  void AddCaches() {
    upgrades_ = &AddNames(ResourceOf<Upgrade>(), {{"spec", "serverRef"}, {"status", "outcome"}});
    upgrades_->AddIndex(kByServer, [](const CachedObject& object) -> std::vector<std::string> {
      const Json json = object.Parse();
      const bool settled = json.At({"status", "outcome"}).IsString() && json.At({"metadata", "finalizers"}).empty();
      if (settled) return {};
      return {ServerOf(object).ToString()};
    });
    servers_ = &manager_.AddCache(ResourceOf<Server>());
    servers_->AddIndex(kByHost, [](const CachedObject& object) -> std::vector<std::string> {
      return {object.Parse().At({"spec", "host"}).AsString()};
    });
    rolls_ = &AddNames(ResourceOf<Roll>());
    releases_ = &AddNames(ResourceOf<Release>(), {{"spec", "serverRef"}});
    backups_ = &AddNames(ResourceOf<StoreBackup>());
    CacheOptions system;
    system.namespace_ = kSystemNamespace;
    leases_ = &manager_.AddCache(ResourceOf<Lease>(), std::move(system));
    leases_->AddHandler([this](const CacheEvent& event) { Heartbeat(event); });
  }

  void AddControllers() {
    const auto result = [](Result<Duration> again) -> Result<ReconcileResult> {
      if (!again.ok()) return again.status();
      ReconcileResult r;
      r.requeue_after = *again;
      return r;
    };
    ControllerOptions operations;
    operations.name = "upgrade";
    operations.hot_loop_limit = 0;  // an operation is many quick passes over one key
    operations.reconcile = [this, result](const Request& key) { return result(reconciler_->Reconcile(key)); };
    Controller& upgrade = manager_.AddController(std::move(operations));
    upgrade.Watch(*upgrades_);
    upgrade.Watch(*rolls_, Controller::MapOwner("Upgrade"));
    upgrade.Watch(*backups_, Controller::MapOwner("Upgrade"));
    const auto of_server = [this](const std::string& server) {
      std::vector<Request> keys;
      for (const ObjectPtr& u : upgrades_->ByIndex(kByServer, server)) keys.push_back(u->key());
      return keys;
    };
    // What is fetched is of interest to who holds the place; the others read it when their turn has come.
    upgrade.Watch(*releases_, [this, of_server](const CacheEvent& e) {
      const ObjectKey key_of_server = ServerOf(*e.object);
      std::vector<Request> keys = of_server(key_of_server.ToString());
      const ObjectPtr server = servers_->Get(key_of_server);
      if (server != nullptr) LeaveTheHolder(*server, keys);
      return keys;
    });
    upgrade.Watch(*servers_, [of_server](const CacheEvent& e) {
      const std::string server = e.object->key().ToString();
      return Woken(e, of_server(server));
    });
    upgrade.Watch(*leases_, [this, of_server](const CacheEvent& e) {
      std::vector<Request> keys;
      const bool turned = HostTurned(e);
      for (const ObjectPtr& server : ServersOf(e)) {
        std::vector<Request> woken = of_server(server->key().ToString());
        if (!turned) LeaveTheHolder(*server, woken);  // a beat tells nothing new to who waits
        keys.insert(keys.end(), woken.begin(), woken.end());
      }
      return keys;
    });

    ControllerOptions declarations;
    declarations.name = "declared";
    declarations.hot_loop_limit = 0;  // woken by every status of a Server, and done at once
    declarations.workers = 1;
    declarations.reconcile = [this, result](const Request& key) { return result(reconciler_->ReconcileDeclared(key)); };
    Controller& declared = manager_.AddController(std::move(declarations));
    declared.Watch(*servers_);
    declared.Watch(*upgrades_, Controller::MapOwner("Server"));
    declared.Watch(*leases_, [this](const CacheEvent& e) { return Keys(ServersOf(e)); });

    ControllerOptions silence;
    silence.name = "silent-host";
    silence.hot_loop_limit = 0;  // as above
    silence.workers = 1;
    silence.reconcile = [this](const Request& key) { return SilentHost(key); };
    Controller& silent = manager_.AddController(std::move(silence));
    silent.Watch(*servers_);
    silent.Watch(*leases_, [this](const CacheEvent& e) { return Keys(ServersOf(e)); });
  }

  // Of the Server's unfinished Upgrades those that its change concerns.
  static std::vector<Request> Woken(const CacheEvent& e, std::vector<Request> unfinished) {
    if (e.type != CacheEvent::Type::kUpdated || e.old_object == nullptr || unfinished.empty()) return unfinished;
    const Result<Server> before = Decode<Server>(e.old_object->Parse());
    const Result<Server> after = Decode<Server>(e.object->Parse());
    if (!before.ok() || !after.ok()) return unfinished;
    const upgrade::Wake wake = upgrade::WokenBy(&*before, *after);
    if (!wake.all) std::erase_if(unfinished, [&](const Request& key) { return !wake.names.contains(key.name); });
    return unfinished;
  }

  // Of a Server's unfinished Upgrades the one that holds the place, if any.
  static void LeaveTheHolder(const CachedObject& server, std::vector<Request>& unfinished) {
    if (unfinished.empty()) return;
    const Json operation = server.Parse().At({"status", "operation"});
    const std::string& name = operation.Get("name").AsString();
    const bool upgrade = operation.Get("kind").AsString() == Upgrade::kKind;
    std::erase_if(unfinished, [&](const Request& key) { return !upgrade || key.name != name; });
  }

  // Whether the beat is the first after a silence, or there is none any more.
  bool HostTurned(const CacheEvent& heartbeat) {
    const std::string& host = heartbeat.object->key().name;
    const HostState now = HostOf(host.substr(std::min(host.size(), HeartbeatName("").size())));
    MutexLock lock(mutex_);
    const auto [was, first] = beat_state_.try_emplace(host, now);
    const bool turned = first || was->second != now;
    was->second = now;
    return turned;
  }

  std::vector<ObjectPtr> ServersOf(const CacheEvent& heartbeat) const {
    const std::string prefix = HeartbeatName("");
    const std::string& name = heartbeat.object->key().name;
    if (!name.starts_with(prefix)) return {};
    return servers_->ByIndex(kByHost, name.substr(prefix.size()));
  }

  static std::vector<Request> Keys(const std::vector<ObjectPtr>& objects) {
    std::vector<Request> keys;
    for (const ObjectPtr& object : objects) keys.push_back(object->key());
    return keys;
  }

  void Heartbeat(const CacheEvent& event) {
    const std::string prefix = HeartbeatName("");
    const std::string& name = event.object->key().name;
    if (!name.starts_with(prefix)) return;
    Fact<Lease> lease = Absent{};
    if (event.type != CacheEvent::Type::kDeleted) {
      const Result<Lease> decoded = Decode<Lease>(event.object->Parse());
      if (!decoded.ok()) return;
      lease = *decoded;
    }
    MutexLock lock(mutex_);
    tracker_.Observe(name.substr(prefix.size()), lease, clock_.Read().boot);
  }

  std::shared_ptr<const Server> SeenServer(const ObjectKey& key) {
    const ObjectPtr object = servers_->Get(key);
    if (object == nullptr) {
      MutexLock lock(mutex_);
      seen_servers_.erase(key);
      return nullptr;
    }
    {
      MutexLock lock(mutex_);
      const auto seen = seen_servers_.find(key);
      if (seen != seen_servers_.end() && seen->second.first == object) return seen->second.second;
    }
    Result<Server> decoded = Decode<Server>(object->Parse());
    if (!decoded.ok()) return nullptr;
    auto server = std::make_shared<const Server>(std::move(*decoded));
    MutexLock lock(mutex_);
    seen_servers_.insert_or_assign(key, std::pair(object, server));
    return server;
  }

  HostState HostOf(const std::string& host) {
    const bool absent = leases_->HasSynced() && leases_->Get({kSystemNamespace, HeartbeatName(host)}) == nullptr;
    const Duration now = clock_.Read().boot;
    MutexLock lock(mutex_);
    if (absent) tracker_.Observe(host, Absent{}, now);
    return StateOf(tracker_.Of(host, now));
  }

  Result<ReconcileResult> SilentHost(const Request& key) {
    ReconcileResult again;
    const ObjectPtr object = servers_->Get(key);
    if (object == nullptr) {
      said_at_.erase(key);
      return again;
    }
    LK_ASSIGN_OR_RETURN(Server server, Decode<Server>(object->Parse()));
    const HostState state = HostOf(server.spec.host);
    again.requeue_after = kHostLook;
    const Duration now = clock_.Read().boot;
    const auto said = said_at_.find(key);
    if (said != said_at_.end() && now - said->second < kSaidAgain) return again;
    if (const auto status = SilentHostStatus(server, state, clock_.Read().wall)) {
      server.status = *status;
      // Under the resourceVersion of the cache: an agent that came back in between wins.
      LK_RETURN_IF_ERROR(UpdateStatus<Server>(manager_.api(), server).status());
      said_at_[key] = now;
      LogWarn("host is silent", {{"host", server.spec.host}, {"server", key.ToString()}});
    }
    return again;
  }

  const Clock& clock_;
  Manager manager_;
  std::unique_ptr<upgrade::Reconciler> reconciler_;
  Cache* upgrades_ = nullptr;
  Cache* servers_ = nullptr;
  Cache* rolls_ = nullptr;
  Cache* releases_ = nullptr;
  Cache* backups_ = nullptr;
  Cache* leases_ = nullptr;
  std::map<Request, Duration> said_at_;  // of the one worker of silent-host
  Mutex mutex_;
  HostTracker tracker_ LK_GUARDED_BY(mutex_);
  // Decoded once for all that wait.
  std::map<ObjectKey, std::pair<ObjectPtr, std::shared_ptr<const Server>>> seen_servers_ LK_GUARDED_BY(mutex_);
  std::map<std::string, HostState> beat_state_ LK_GUARDED_BY(mutex_);  // of the last beat, by heartbeat Lease
};

Status NobodyLeads(Api& api, const Now& now) {
  const Result<Lease> lease = Get<Lease>(api, {kSystemNamespace, kLeaseName});
  if (lease.code() == Code::kNotFound) return Status::Ok();
  if (!lease.ok()) return lease.status();
  const LeaseSpec& spec = lease->spec;
  if (spec.holder_identity.empty() || !spec.renew_time) return Status::Ok();
  const Duration ago = now.wall - *spec.renew_time;
  const Duration lasts = Seconds(static_cast<double>(spec.lease_duration_seconds.value_or(15)));
  if (ago >= lasts) return Status::Ok();
  char text[64];
  std::snprintf(text, sizeof text, "%.1f s ago, for %.0f s", ToSeconds(ago), ToSeconds(lasts));
  return {Code::kBusy, "manager " + spec.holder_identity + " leads: it renewed Lease " + kSystemNamespace + "/" +
                           kLeaseName + " " + text};
}

Fleet::Fleet(Api& api, const Clock& clock, const FleetOptions& options)
    : impl_(std::make_unique<Impl>(api, clock, options)) {}
Fleet::~Fleet() = default;
Status Fleet::Start() { return impl_->manager().Start(); }
Status Fleet::Stop() { return impl_->manager().Stop(); }
bool Fleet::WaitUntilStarted(Duration timeout) { return impl_->manager().WaitUntilStarted(timeout); }

}  // namespace lockkeeper
