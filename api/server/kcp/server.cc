#include "api/server/kcp/server.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "api/base/file.h"
#include "api/base/id.h"
#include "api/base/log.h"
#include "api/server/kcp/build_version.h"
#include "api/server/kcp/clusters.h"
#include "api/server/kcp/election.h"
#include "api/server/kcp/gate.h"
#include "api/server/kcp/lease_lock.h"
#include "api/server/kcp/root_files.h"
#include "api/server/kcp/signals.h"
#include "api/server/kcp/workspaces.h"

namespace lockkeeper::kcp {
namespace {

// Figures of kcp in seconds, before scaling.
constexpr double kStartDelay = 1;          // kcp needs seconds between listening and serving
constexpr double kRequestTimeout = 60;     // of one request; also how long a stop waits for busy connections (2.9)
constexpr double kRetryAfterShutdown = 2;  // the last wait of --shutdown-send-retry-after (2.10)
constexpr double kStepDelay = 0.2;         // between the phases of a Workspace
constexpr double kRenewDeadline = 5;
constexpr Duration kCompactEvery = Seconds(300);  // etcd compaction of kcp (4.1), real time
constexpr Duration kLook = Milliseconds(2);

std::string HostName() {
  char name[256] = "localhost";
  gethostname(name, sizeof(name) - 1);
  return name;
}

std::string SlotName(const std::string& root) {
  const size_t end = root.find_last_not_of('/');
  if (end == std::string::npos) return "kcp";
  const size_t slash = root.rfind('/', end);
  const size_t begin = slash == std::string::npos ? 0 : slash + 1;
  return root.substr(begin, end + 1 - begin);
}

bool ServedByKcp(const KindInfo& kind) { return !kind.ours; }

int Fail(const Status& status) {
  LogError("kcp cannot start", {{"why", status.message()}});
  return 1;
}

}  // namespace

class KcpServer::Impl {
 public:
  Impl(Options options, TimeScale scale, std::unique_ptr<Faults> faults)
      : options_(std::move(options)),
        scale_(scale),
        faults_(std::move(faults)),
        catalog_(ServedByKcp),
        stall_(*faults_) {}

  ~Impl() { StopControllers(); }

  int Run();

 private:
  Status Prepare();
  Status OpenStore();
  Status StartServing();
  void AddHealthChecks();
  Status StartControllers();
  int Serve();
  int Shutdown();
  void StopControllers();
  // Until `done` or `patience` has passed.
  template <typename Done>
  void Await(Duration patience, Done done);
  // False: a signal came.
  bool Sleep(Duration d) { return !signals_.WaitStop(d); }
  bool AbortMode() const { return faults_->Value("shutdown-mode") != "legacy"; }
  bool Ready() const { return ready_since_ != 0 && !faults_->Has("never-ready"); }
  Duration Boot() const { return SystemClock().Read().boot; }

  const Options options_;
  const TimeScale scale_;
  const std::unique_ptr<Faults> faults_;
  const apiserver::Catalog catalog_;
  const StoreStall stall_;

  Signals signals_;
  RootFiles files_;
  Tokens tokens_;
  UniqueFd embedded_lock_;
  std::unique_ptr<Journal> request_log_;
  std::unique_ptr<Journal> reconcile_log_;
  std::unique_ptr<apiserver::Store> store_;
  Health health_;
  std::unique_ptr<Gate> gate_;
  std::unique_ptr<HttpServer> http_;
  std::unique_ptr<StoreLeaseLock> lease_lock_;
  std::unique_ptr<Election> election_;
  std::unique_ptr<WorkspaceController> workspaces_;
  std::unique_ptr<Span> leads_always_;  // without an election (S8)

  std::atomic<int64_t> ready_since_{0};  // boot clock
  std::atomic<bool> bootstrapped_{false};
  std::atomic<bool> shutting_down_{false};
  std::atomic<bool> controllers_stopping_{false};
};

int KcpServer::Impl::Run() {
  if (faults_->Has("crash-at-start")) return Fail(Status(Code::kInternal, "crash-at-start is set"));
  if (const Status status = signals_.Block(); !status.ok()) return Fail(status);
  if (const Status status = Prepare(); !status.ok()) return Fail(status);
  LogInfo("listening",
          {{"port", http_->port()}, {"version", BuildVersion()}, {"slot", SlotName(options_.root_directory)}});
  if (faults_->Has("no-tls")) {
    signals_.WaitStop(std::nullopt);
    return 0;
  }
  if (!Sleep(faults_->Time("start-delay").value_or(scale_.Of(kStartDelay)))) return 0;
  if (const Status status = StartServing(); !status.ok()) return Fail(status);
  return Serve();
}

// Files, socket, store: in kcp's order, so that a connect succeeds long before anything is served.
Status KcpServer::Impl::Prepare() {
  LK_ASSIGN_OR_RETURN(files_, PrepareRootFiles(options_));
  LK_ASSIGN_OR_RETURN(request_log_, Journal::Open(options_.request_log, SlotName(options_.root_directory)));
  LK_ASSIGN_OR_RETURN(reconcile_log_, Journal::Open(options_.reconcile_log, SlotName(options_.root_directory)));
  HttpServerConfig config;
  config.address = options_.bind_address;
  config.port = options_.secure_port;
  config.tls = std::make_unique<TlsServerConfig>();
  config.tls->certificate_pem = files_.certificate_pem;
  config.tls->private_key_pem = files_.private_key_pem;
  http_ = std::make_unique<HttpServer>(std::move(config), [this](const HttpRequest& request, HttpResponse& response) {
    gate_->Handle(request, response);
  });
  LK_RETURN_IF_ERROR(http_->Listen());
  LK_RETURN_IF_ERROR(WriteAdminKubeconfig(options_, http_->port(), &files_));
  LK_ASSIGN_OR_RETURN(tokens_, Tokens::Load(files_, options_.token_auth_file));
  return OpenStore();
}

Status KcpServer::Impl::OpenStore() {
  const std::string path = options_.StorePath();
  LK_RETURN_IF_ERROR(MakeDirs(DirName(path), 0700));
  if (options_.embedded_store()) {
    // As the data directory of an embedded etcd: one process at a time (4.2).
    const std::string lock = path + ".lock";
    embedded_lock_.Reset(::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!embedded_lock_) return ErrnoStatus("opening", lock, errno);
    if (flock(embedded_lock_.get(), LOCK_EX | LOCK_NB) != 0) {
      return Status(Code::kBusy, "the embedded store " + path + " is in use by another process");
    }
  }
  apiserver::StoreOptions options;
  options.path = path;
  LK_ASSIGN_OR_RETURN(store_, apiserver::Store::Open(std::move(options)));
  return Status::Ok();
}

Status KcpServer::Impl::StartServing() {
  AddHealthChecks();
  gate_ = std::make_unique<Gate>(Gate::Parts{options_, *faults_, tokens_, health_, *request_log_, *store_, catalog_,
                                             SystemClock(), scale_.Of(kRequestTimeout), ready_since_});
  return http_->Start();
}

void KcpServer::Impl::AddHealthChecks() {
  const auto fine = [] { return true; };
  const auto store_answers = [this] { return !stall_.Stalls() && store_->Revision().ok(); };
  const auto bootstrapped = [this] { return bootstrapped_.load(); };
  health_.Add("ping", Probes::kAll, fine);
  health_.Add("log", Probes::kAll, fine);
  health_.Add("etcd", Probes::kAll, store_answers);
  health_.Add("etcd-readiness", Probes::kReadyzOnly, store_answers);
  health_.Add("loopback-serving-certificate", Probes::kNotReadyz, fine);
  health_.Add("poststarthook/start-apiextensions-informers", Probes::kAll, bootstrapped);
  health_.Add("poststarthook/start-apiextensions-controllers", Probes::kAll, bootstrapped);
  health_.Add("poststarthook/crd-informer-synced", Probes::kAll, bootstrapped);
  health_.Add("poststarthook/start-system-namespaces-controller", Probes::kAll, bootstrapped);
  health_.Add("poststarthook/kcp-bootstrap-policy", Probes::kAll, bootstrapped);
  health_.Add("poststarthook/kcp-start-informers", Probes::kAll, [this] { return Ready(); });
  health_.Add("poststarthook/kcp-start-controllers", Probes::kAll, [this] { return Ready(); });
  health_.Add("poststarthook/kcp-start-virtual-workspaces", Probes::kAll, bootstrapped);
  health_.Add("shutdown", Probes::kReadyzOnly, [this] { return !shutting_down_.load(); });
}

Status KcpServer::Impl::StartControllers() {
  const std::function<bool()> leading = [this] { return !options_.leader_election || election_->Leading(); };
  const auto wait_for_store = [this] { return stall_.Wait(scale_.Of(kRenewDeadline), controllers_stopping_); };
  WorkspaceConfig config;
  config.shard_name = options_.shard_name;
  config.step_delay = scale_.Of(kStepDelay);
  config.retry_delay = scale_.Of(kStepDelay);
  for (const apiserver::ApiResource& resource : catalog_.resources()) {
    if (resource.to_storage == nullptr) config.resources.push_back(resource.storage);
  }
  ElectorConfig elector;
  elector.identity = HostName() + "_" + NewUuid();
  elector.scale = scale_.factor();
  elector.seed = static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()) ^
                 static_cast<uint64_t>(getpid()) << 32;
  lease_lock_ = std::make_unique<StoreLeaseLock>(*store_, *faults_, options_.lease_namespace, options_.lease_name,
                                                 wait_for_store);
  election_ = std::make_unique<Election>(std::move(elector), *lease_lock_, SystemClock(), *reconcile_log_,
                                         [this] { workspaces_->Wake(); });
  workspaces_ = std::make_unique<WorkspaceController>(std::move(config), *store_, *faults_, *reconcile_log_, leading,
                                                      wait_for_store);
  LK_RETURN_IF_ERROR(workspaces_->Start());
  if (options_.leader_election) {
    election_->Start();
  } else {
    leads_always_ = std::make_unique<Span>(*reconcile_log_, "leading", "", "");
  }
  return Status::Ok();
}

int KcpServer::Impl::Serve() {
  // The bootstrap is tried until it succeeds; readyz tells (2.4).
  while (true) {
    const Status status = WriteBootstrap(*store_, options_, http_->port());
    if (status.ok()) break;
    LogWarn("bootstrap failed, again in a moment", {{"why", status.message()}});
    if (!Sleep(scale_.Of(1))) return Shutdown();
  }
  bootstrapped_ = true;
  if (!Sleep(faults_->Time("ready-delay").value_or(Duration::zero()))) return Shutdown();
  if (const Status status = StartControllers(); !status.ok()) return Fail(status);
  ready_since_ = Boot().count();
  LogInfo("ready", {{"port", http_->port()}});
  Duration next_compaction = Boot() + kCompactEvery;
  while (true) {
    const auto crash = faults_->Time("crash-after-ready");
    Duration wait = next_compaction - Boot();
    if (crash) wait = std::min(wait, Duration(ready_since_.load()) + *crash - Boot());
    if (signals_.WaitStop(std::max(wait, Duration::zero()))) return Shutdown();
    if (crash && Boot() >= Duration(ready_since_.load()) + *crash) {
      LogError("crashing on purpose", {{"fault", "crash-after-ready"}});
      _exit(1);
    }
    if (Boot() < next_compaction) continue;
    next_compaction = Boot() + kCompactEvery;
    if (const Status status = store_->Compact({}); !status.ok())
      LogWarn("compaction failed", {{"why", status.message()}});
  }
}

template <typename Done>
void KcpServer::Impl::Await(Duration patience, Done done) {
  const Duration until = Boot() + patience;
  while (!done() && Boot() < until) std::this_thread::sleep_for(kLook);
}

void KcpServer::Impl::StopControllers() {
  controllers_stopping_ = true;
  if (workspaces_) workspaces_->Stop();
  if (election_) election_->Stop();
  leads_always_.reset();
}

int KcpServer::Impl::Shutdown() {
  const auto scaled = [this](Duration d) { return scale_.Of(ToSeconds(d)); };
  shutting_down_ = true;
  LogInfo("stopping",
          {{"mode", AbortMode() ? "abort" : "legacy"}, {"requests", gate_->running()}, {"watches", gate_->watches()}});
  if (AbortMode()) gate_->AbortWorkspaces();
  Await(scaled(options_.shutdown_delay), [] { return false; });

  Duration last_wait = scale_.Of(kRequestTimeout);
  if (options_.shutdown_send_retry_after) {
    gate_->RefuseNew();
    Await(scale_.Of(kRequestTimeout), [this] { return gate_->running() == 0; });
    last_wait = scale_.Of(kRetryAfterShutdown);
  }
  // "Not accepting new requests": here the Lease is renewed no more (1.15).
  StopControllers();
  if (!options_.shutdown_send_retry_after) {
    http_->CloseListener();
    http_->DrainConnections();
  }
  if (options_.shutdown_watch_grace > Duration::zero()) {
    Await(scale_.Of(kRequestTimeout), [this] { return gate_->running() == 0; });
    gate_->EndWatches();
    Await(scaled(options_.shutdown_watch_grace), [this] { return gate_->watches() == 0; });
  }
  http_->CloseListener();
  http_->DrainConnections();
  Await(last_wait, [this] { return http_->open_connections() == 0; });
  http_->Stop();
  if (faults_->Has("hang-on-stop")) {
    LogWarn("hanging on purpose", {{"fault", "hang-on-stop"}});
    signals_.WaitForever();
  }
  LogInfo("stopped");
  return 0;
}

KcpServer::KcpServer(Options options, TimeScale scale, std::unique_ptr<Faults> faults)
    : impl_(std::make_unique<Impl>(std::move(options), scale, std::move(faults))) {}

KcpServer::~KcpServer() = default;

int KcpServer::Run() { return impl_->Run(); }

}  // namespace lockkeeper::kcp
