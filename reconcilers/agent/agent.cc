#include "reconcilers/agent/agent.h"

#include <unistd.h>

#include <vector>

#include "api/base/file.h"
#include "api/base/log.h"
#include "controller/manager.h"
#include "controller/typed.h"
#include "reconcilers/agent/agent_socket.h"
#include "reconcilers/agent/cached_objects.h"
#include "reconcilers/backup/reconciler.h"
#include "reconcilers/front/admin_client.h"
#include "reconcilers/front/reconciler.h"
#include "reconcilers/heartbeat/poster.h"
#include "reconcilers/host/host_files.h"
#include "reconcilers/host/identity.h"
#include "reconcilers/ledger/sqlite_ledger.h"
#include "reconcilers/peer/http_peer.h"
#include "reconcilers/peer/prompt.h"
#include "reconcilers/process/process_units.h"
#include "reconcilers/release/reconciler.h"
#include "reconcilers/server/reconciler.h"
#include "reconcilers/slot/reconciler.h"

namespace lockkeeper {
namespace {

// Every pass may be cut anywhere, as by a crash: what is persisted is taken up again.
constexpr Duration kStopPatience = Seconds(1);
// A Server tells some 25 events a roll.
constexpr int kEventBurst = 100;

ObjectKey ObjectOf(const ServerKey& key) { return {key.ns, key.name}; }

ReconcileResult After(Duration again) {
  ReconcileResult result;
  result.requeue_after = again;
  return result;
}

// A reconcile function that answers a Duration, as the runtime wants it.
template <typename F>
ReconcileFunction Pass(F f) {
  return [f](const Request& key) -> Result<ReconcileResult> {
    const Result<Duration> again = f(key);
    if (!again.ok()) return again.status();
    return After(*again);
  };
}

std::string SelfPath() {
  char path[4096];
  const ssize_t n = ::readlink("/proc/self/exe", path, sizeof path);
  return n > 0 ? std::string(path, static_cast<size_t>(n)) : std::string();
}

}  // namespace

class Agent::Impl {
 public:
  Impl(Api& api, const Clock& clock, AgentOptions options)
      : clock_(clock), options_(std::move(options)), manager_(api, clock, ManagerOptionsOf(options_)) {}

  // Threads use members that would go before what started them.
  ~Impl() { (void)Stop(); }

  Status Start();
  Status Stop();
  std::string LeftRunning();

 private:
  static ManagerOptions ManagerOptionsOf(const AgentOptions& options) {
    ManagerOptions out;
    out.metrics_address = options.metrics_address;
    out.event_component = "lockkeeper-agent";
    out.event_host = options.host;
    out.stop_timeout = kStopPatience;
    out.cancel_timeout = kStopPatience;
    out.event_burst = kEventBurst;
    out.cancel_calls = options.cancel_calls;
    out.on_fatal = options.on_fatal;
    return out;
  }

  Status OpenHost();
  void AddCaches();
  void AddReconcilers();
  void AddControllers();
  void WireWakeUps();
  void WakeAll();
  Controller& Add(const char* name, int workers, ReconcileFunction reconcile);
  Cache& AddCache(const Resource& resource, Cache::Trim trim = nullptr);
  roll::LedgerVerdict Trouble() const;
  // A pass that does nothing, and is made again after `pause`, while `barred` says so.
  static ReconcileFunction Unless(std::function<bool()> barred, ReconcileFunction pass, Duration pause = Seconds(1));
  Result<bool> ShuttingDown(const ServerRecord& record, const std::string& slot);
  void Event(const Json& object, bool warning, const std::string& reason, const std::string& message) {
    manager_.recorder().Record(EventTarget::Of(object), warning ? EventType::kWarning : EventType::kNormal, reason,
                               message);
  }

  const Clock& clock_;
  const AgentOptions options_;
  Manager manager_;
  HostIdentity identity_;

  std::unique_ptr<Ledger> ledger_;
  std::unique_ptr<Units> units_;
  std::unique_ptr<front::FrontAdminClient> fronts_admin_;
  CancelToken peer_cancel_;
  std::unique_ptr<HttpPeer> peer_;
  // What a pass over a Server asks, and does not wait for.
  std::unique_ptr<PromptPeer> prompt_peer_;
  std::unique_ptr<PromptFront> prompt_fronts_;
  std::unique_ptr<HostFiles> files_;
  std::unique_ptr<ReleaseSource> source_;
  std::unique_ptr<Snapshotter> snapshotter_;
  std::unique_ptr<HeartbeatPoster> heartbeat_;
  std::unique_ptr<AgentSocket> socket_;

  Cache* servers_ = nullptr;
  Cache* rolls_ = nullptr;
  Cache* upgrades_ = nullptr;
  Cache* fronts_ = nullptr;
  Cache* releases_ = nullptr;
  Cache* backups_ = nullptr;
  std::unique_ptr<CachedObjects> objects_;

  std::unique_ptr<roll::Reconciler> server_;
  std::unique_ptr<slot::Reconciler> slot_;
  std::unique_ptr<fronts::Reconciler> front_;
  std::unique_ptr<release::Reconciler> release_;
  std::unique_ptr<backup::Reconciler> backup_;

  // Owned by the manager.
  Controller* server_control_ = nullptr;
  Controller* server_mirror_ = nullptr;
  Controller* slot_control_ = nullptr;
  Controller* slot_mirror_ = nullptr;
  Controller* front_control_ = nullptr;
  Controller* front_mirror_ = nullptr;
  Controller* release_control_ = nullptr;
  Controller* backup_control_ = nullptr;
};

Status Agent::Impl::OpenHost() {
  const std::string& data = options_.data_dir;
  LK_RETURN_IF_ERROR(MakeDirs(data, 0700));
  LK_ASSIGN_OR_RETURN(identity_, ReadHostIdentity(data));
  SqliteLedgerOptions ledger;
  ledger.path = JoinPath(data, "ledger.db");
  ledger.host = options_.host;
  ledger.machine_id = identity_.machine_id;
  ledger.lockkeeper_version = options_.version;
  LK_ASSIGN_OR_RETURN(ledger_, OpenLedger(std::move(ledger)));
  ProcessUnitsOptions units;
  units.run_dir = JoinPath(data, "run");
  LK_ASSIGN_OR_RETURN(units_, OpenProcessUnits(std::move(units)));
  fronts_admin_ = std::make_unique<front::FrontAdminClient>(JoinPath(data, "admin"));
  peer_ = std::make_unique<HttpPeer>(clock_, &peer_cancel_);
  prompt_peer_ = std::make_unique<PromptPeer>(*peer_, clock_);
  const auto revision = [this] { return ledger_->Info().revision; };
  prompt_fronts_ = std::make_unique<PromptFront>(*fronts_admin_, revision, clock_);
  files_ = NewHostFiles();
  source_ = NewReleaseSource();
  snapshotter_ = NewSqliteSnapshotter();
  const std::string releases = JoinPath(data, "releases");
  LK_RETURN_IF_ERROR(MakeDirs(releases));
  return SweepReleases(releases);
}

Cache& Agent::Impl::AddCache(const Resource& resource, Cache::Trim trim) {
  CacheOptions options;
  options.trim = std::move(trim);
  // The API may be what is being rolled, or away: the host's work never waits for it.
  options.required = false;
  return manager_.AddCache(resource, std::move(options));
}

void Agent::Impl::AddCaches() {
  servers_ = &AddCache(ResourceOf<Server>());
  rolls_ = &AddCache(ResourceOf<Roll>(), CachedObjects::TrimSettled);
  upgrades_ = &AddCache(ResourceOf<Upgrade>(), CachedObjects::TrimSettled);
  fronts_ = &AddCache(ResourceOf<Front>());
  // These only wake their reconcilers.
  releases_ = &AddCache(ResourceOf<Release>(), KeepOnly({{"spec", "host"}}));
  backups_ = &AddCache(ResourceOf<StoreBackup>(), KeepOnly({}));
  objects_ = std::make_unique<CachedObjects>(*servers_, *fronts_, *upgrades_, *rolls_);
}

roll::LedgerVerdict Agent::Impl::Trouble() const {
  const HeartbeatJudgement judgement = heartbeat_->Judgement();
  switch (judgement.verdict) {
    case HeartbeatVerdict::kOurs:
    case HeartbeatVerdict::kUnknown: return {};
    case HeartbeatVerdict::kHostNameTaken: return {"HostNameTaken", judgement.message};
    case HeartbeatVerdict::kLedgerLost: return {"LedgerLost", judgement.message};
    case HeartbeatVerdict::kLedgerOlder: return {"LedgerOlderThanHost", judgement.message};
  }
  return {};
}

ReconcileFunction Agent::Impl::Unless(std::function<bool()> barred, ReconcileFunction pass, Duration pause) {
  return [barred = std::move(barred), pass = std::move(pass), pause](const Request& key) -> Result<ReconcileResult> {
    if (barred()) return After(pause);
    return pass(key);
  };
}

Result<bool> Agent::Impl::ShuttingDown(const ServerRecord& record, const std::string& slot) {
  const auto entry = record.slots.find(slot);
  if (entry == record.slots.end() || entry->second.actual.port == 0) return false;
  const Result<ReadyzFact> readyz = peer_->Readyz(record.spec, entry->second.actual.port);
  if (readyz.ok()) return readyz->shutting_down;
  // Nobody listens any more: it has closed its listener on the way down.
  if (readyz.code() == Code::kUnavailable) return true;
  return readyz.status();
}

void Agent::Impl::AddReconcilers() {
  Api& api = manager_.api();
  const std::string& data = options_.data_dir;

  roll::Dependencies server{.api = api,
                            .objects = *objects_,
                            .clock = clock_,
                            .ledger = *ledger_,
                            .units = *units_,
                            .fronts = *prompt_fronts_,
                            .peer = *prompt_peer_,
                            .files = *files_,
                            .host = {options_.host, identity_.hostname, data},
                            .mirror = {}};
  server.recorder = &manager_.recorder();
  server.requested = [this](const std::string& kind, const std::string& key) {
    const size_t slash = key.find('/');
    const ObjectKey object{key.substr(0, slash), key.substr(slash + 1)};
    (kind == kReleaseDocument ? release_control_ : backup_control_)->queue().Add(object);
  };
  server.mirror = [this](const ServerKey& key) { server_mirror_->queue().Add(ObjectOf(key)); };
  server.posted = [this](const std::string& uid, int64_t revision) { heartbeat_->Posted(uid, revision); };
  server.passes = 16;
  server.trouble = [this] { return Trouble(); };
  server_ = std::make_unique<roll::Reconciler>(std::move(server));

  slot::Dependencies slots{.api = api,
                           .clock = clock_,
                           .ledger = *ledger_,
                           .units = *units_,
                           .host = options_.host,
                           .says_shutting_down = {}};
  slots.says_shutting_down = [this](const ServerRecord& record, const std::string& slot) {
    return ShuttingDown(record, slot);
  };
  slots.forbidden = [this] { return Trouble().reason; };
  slot_ = std::make_unique<slot::Reconciler>(std::move(slots));

  fronts::Dependencies front{api, clock_, *ledger_, *units_, *fronts_admin_, {}, {}, {}, {}, {}};
  front.paths.host = options_.host;
  front.paths.lockkeeper = SelfPath();
  front.paths.version = options_.version;
  front.paths.fronts_dir = JoinPath(data, "fronts");
  front.paths.admin_dir = JoinPath(data, "admin");
  front.object = [this](const ObjectKey& key) { return Fact<Front>::Of(objects_->GetFront(key)); };
  front.restart = [this](const std::string& name) { return fronts_admin_->Restart(name); };
  front.changed = [this](const ObjectKey& key, const std::string& claimant) {
    front_mirror_->queue().Add(key);
    if (!claimant.empty()) server_control_->queue().Add({key.namespace_, claimant});
  };
  front.event = [this](const ObjectKey& key, bool warning, const std::string& reason, const std::string& message) {
    const Result<Front> object = objects_->GetFront(key);
    if (object.ok()) Event(ToJson(*object), warning, reason, message);
  };
  front_ = std::make_unique<fronts::Reconciler>(std::move(front));

  const auto wake_server = [this](const ServerKey& key) { server_control_->queue().Add(ObjectOf(key)); };
  release_ = std::make_unique<release::Reconciler>(release::Dependencies{
      api, clock_, *ledger_, *source_, *files_, options_.host, JoinPath(data, "releases"), wake_server});
  backup_ = std::make_unique<backup::Reconciler>(
      backup::Dependencies{api, clock_, *ledger_, *snapshotter_, options_.host, data, wake_server});
}

Controller& Agent::Impl::Add(const char* name, int workers, ReconcileFunction reconcile) {
  ControllerOptions options;
  options.name = name;
  options.workers = workers;
  options.needs_leader = false;
  options.hot_loop_limit = 0;  // a roll is many quick passes over one key
  // An API that was away for long is told soon after it is back.
  options.queue.backoff_max = Seconds(15);
  options.reconcile = std::move(reconcile);
  return manager_.AddController(std::move(options));
}

void Agent::Impl::AddControllers() {
  // What acts on the host and what writes to the API are apart, so that a slow API holds up no flip.
  // Another agent of this name may be at work: its objects, fronts, releases and backups are not ours to touch. A lost
  // ledger is told of on the Servers.
  const auto no_host = [this] { return !Trouble().reason.empty(); };
  const auto name_taken = [this] { return heartbeat_->Judgement().verdict == HeartbeatVerdict::kHostNameTaken; };
  // What it mirrors into must have been read first. An API that is away is waited for without a word here: the
  // reflectors say so.
  const auto unread = [this] { return !servers_->HasSynced() || !rolls_->HasSynced(); };
  // A readiness try on a process that hangs takes its whole second, and a score of them may hang at once.
  server_control_ = &Add("server", 12, Pass([this](const Request& key) { return server_->Reconcile(key); }));
  server_mirror_ =
      &Add("server-mirror", 2,
           Unless(unread, Unless(name_taken, Pass([this](const Request& key) { return server_->Mirror(key); })),
                  Milliseconds(100)));
  slot_control_ = &Add("slot", 4, Pass([this](const Request& key) { return slot_->Reconcile(key); }));
  slot_mirror_ =
      &Add("slot-mirror", 1, Unless(no_host, Pass([this](const Request& key) { return slot_->Mirror(key); })));
  front_control_ =
      &Add("front", 2, Unless(no_host, Pass([this](const Request& key) { return front_->Converge(key); })));
  front_mirror_ =
      &Add("front-mirror", 1, Unless(no_host, Pass([this](const Request& key) { return front_->Mirror(key); })));
  release_control_ =
      &Add("release", 2, Unless(no_host, Pass([this](const Request& key) { return release_->Reconcile(key); })));
  backup_control_ =
      &Add("backup", 1, Unless(no_host, Pass([this](const Request& key) { return backup_->Reconcile(key); })));

  const auto ours = [this](const CacheEvent& e) {
    return e.object->Parse().At({"spec", "host"}).AsString() == options_.host;
  };
  server_control_->Watch(*servers_, Controller::MapSelf, ours);
  server_mirror_->Watch(*servers_, Controller::MapSelf, ours);
  const auto server_of = [](const CacheEvent& e) { return std::vector<Request>{CachedObjects::ServerOf(*e.object)}; };
  for (Cache* cache : {upgrades_, rolls_}) {
    server_control_->Watch(*cache, server_of);
    server_mirror_->Watch(*cache, server_of);
  }
  front_control_->Watch(*fronts_, Controller::MapSelf, ours);
  front_mirror_->Watch(*fronts_, Controller::MapSelf, ours);
  release_control_->Watch(*releases_, Controller::MapSelf, ours);
  backup_control_->Watch(*backups_, Controller::MapSelf);
}

void Agent::Impl::WireWakeUps() {
  ledger_->AddListener([this](const ServerKey& key) {
    const ObjectKey object = ObjectOf(key);
    server_control_->queue().Add(object);
    slot_control_->queue().Add(object);
    slot_mirror_->queue().Add(object);
    server_mirror_->queue().Add(object);
    for (const ObjectKey& front : front_->FrontsOf(key)) front_control_->queue().Add(front);
  });
  units_->SetListener([this](const std::string& unit) {
    const std::vector<ServerKey> owners = slot_->OwnersOf(unit);
    for (const ServerKey& key : owners) {
      slot_control_->queue().Add(ObjectOf(key));
      server_control_->queue().Add(ObjectOf(key));
    }
    // Else a front's: there are few, and none has a step when nothing changed.
    if (!owners.empty()) return;
    const Result<std::vector<ObjectKey>> fronts = front_->Known();
    if (!fronts.ok()) return;
    for (const ObjectKey& key : *fronts) front_control_->queue().Add(key);
  });
}

void Agent::Impl::WakeAll() {
  const Result<std::vector<ServerKey>> servers = ledger_->Servers();
  if (servers.ok()) {
    for (const ServerKey& key : *servers) {
      slot_control_->queue().Add(ObjectOf(key));
      server_control_->queue().Add(ObjectOf(key));
    }
  }
  const Result<std::vector<ObjectKey>> fronts = front_->Known();
  if (fronts.ok()) {
    for (const ObjectKey& key : *fronts) front_control_->queue().Add(key);
  }
}

Status Agent::Impl::Start() {
  LK_RETURN_IF_ERROR(OpenHost());
  HeartbeatIdentity identity;
  identity.host = options_.host;
  identity.ledger_id = ledger_->Info().id;
  identity.machine_id = identity_.machine_id;
  identity.take_over = options_.take_over;
  heartbeat_ = std::make_unique<HeartbeatPoster>(manager_.api(), clock_, std::move(identity),
                                                 [this] { return ledger_->Info().revision; });
  AddCaches();
  AddReconcilers();
  AddControllers();
  socket_ = std::make_unique<AgentSocket>(JoinPath(options_.data_dir, "agent.sock"), *ledger_, *units_, clock_,
                                          options_.version);
  socket_->SetTrouble([this] {
    const roll::LedgerVerdict verdict = Trouble();
    return verdict.reason.empty() ? std::string() : verdict.reason + ": " + verdict.message;
  });
  LK_RETURN_IF_ERROR(socket_->Start());
  // A foreign heartbeat is looked for before anything is touched; an API that is away rules nothing out.
  const Status beat = heartbeat_->Beat();
  if (!beat.ok()) LogWarn("the first heartbeat was not written", {{"error", beat.ToString()}});
  WireWakeUps();
  LK_RETURN_IF_ERROR(manager_.Start());
  heartbeat_->Start();
  WakeAll();
  const auto wake_documents = [this](const char* kind, Controller* control) {
    const auto documents = ledger_->ListDocuments(kind);
    if (!documents.ok()) return;
    for (const auto& [key, text] : *documents) {
      const size_t slash = key.find('/');
      control->queue().Add({key.substr(0, slash), key.substr(slash + 1)});
    }
  };
  wake_documents(kReleaseDocument, release_control_);
  wake_documents(kBackupDocument, backup_control_);
  return Status::Ok();
}

Status Agent::Impl::Stop() {
  if (heartbeat_) heartbeat_->BeginStop();
  if (socket_) socket_->Stop();
  peer_cancel_.Cancel();
  const Status stopped = manager_.Stop();
  // Nothing else calls any more; a beat may still wait for an API that does not answer.
  if (heartbeat_ && options_.cancel_calls) options_.cancel_calls();
  if (heartbeat_) heartbeat_->Stop();
  if (units_) units_->SetListener(nullptr);
  return stopped;
}

std::string Agent::Impl::LeftRunning() {
  std::string text;
  if (!units_) return text;
  const Result<std::vector<std::string>> names = units_->List();
  if (!names.ok()) return text;
  for (const std::string& name : *names) {
    const Result<UnitStatus> unit = units_->Inspect(name);
    if (!unit.ok() || unit->state != UnitStatus::State::kRunning) continue;
    text += "  " + name + "  pid " + std::to_string(unit->id.pid) + "\n";
  }
  return text;
}

Agent::Agent(Api& api, const Clock& clock, AgentOptions options)
    : impl_(std::make_unique<Impl>(api, clock, std::move(options))) {}
Agent::~Agent() = default;
Status Agent::Start() { return impl_->Start(); }
Status Agent::Stop() { return impl_->Stop(); }
std::string Agent::LeftRunning() { return impl_->LeftRunning(); }

}  // namespace lockkeeper
