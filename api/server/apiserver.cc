#include "api/server/apiserver.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "api/base/file.h"
#include "api/base/log.h"
#include "api/base/unique_fd.h"
#include "api/server/pki.h"
#include "api/server/watch_hub.h"

namespace lockkeeper::apiserver {
namespace {

// How long a stop waits for answers that are on their way.
constexpr std::chrono::milliseconds kStopPatience{1000};

bool IsAnyAddress(const std::string& address) { return address.empty() || address == "0.0.0.0" || address == "::"; }
bool IsLoopback(const std::string& address) {
  return address == "localhost" || address == "::1" || address.rfind("127.", 0) == 0;
}

const User& Admin() {
  static const User admin{"admin", "admin", {std::string(kMastersGroup), "system:authenticated"}};
  return admin;
}

// Two servers that start at once in one directory make one CA, one token file.
Result<UniqueFd> LockSetup(const std::string& dir) {
  const std::string path = JoinPath(dir, ".setup.lock");
  UniqueFd fd(::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  if (!fd) return ErrnoStatus("open", path, errno);
  while (::flock(fd.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return ErrnoStatus("lock", path, errno);
  }
  return fd;
}

}  // namespace

ApiServer::ApiServer(ApiServerConfig config)
    : config_(std::move(config)), clock_(config_.clock == nullptr ? SystemClock() : *config_.clock) {
  auto set_default = [&](std::string& path, const char* name) {
    if (path.empty()) path = JoinPath(config_.data_dir, name);
  };
  set_default(config_.store_path, "store.db");
  set_default(config_.token_file, "tokens.csv");
  set_default(config_.kubeconfig, "admin.kubeconfig");
}

ApiServer::~ApiServer() { Stop(); }

int ApiServer::port() const { return server_ ? server_->port() : 0; }

std::string ApiServer::url() const {
  std::string host = config_.advertise_address;
  if (host.empty()) host = IsAnyAddress(config_.address) ? "127.0.0.1" : config_.address;
  if (host.find(':') != std::string::npos) host = "[" + host + "]";
  return (config_.tls ? "https://" : "http://") + host + ":" + std::to_string(port());
}

Status ApiServer::Start() {
  Status status = Prepare();
  if (!status.ok()) Stop();
  return status;
}

Status ApiServer::Prepare() {
  if (!config_.tls && !IsLoopback(config_.address)) {
    return {Code::kInvalid, "plain HTTP is served on a loopback address only, not on " + config_.address};
  }
  LK_RETURN_IF_ERROR(MakeDirs(config_.data_dir, 0700));
  LK_ASSIGN_OR_RETURN(UniqueFd setup, LockSetup(config_.data_dir));
  StoreOptions store;
  store.path = config_.store_path;
  store.vfs = config_.vfs;
  store.clock = &clock_;
  LK_ASSIGN_OR_RETURN(store_, Store::Open(std::move(store)));
  LK_ASSIGN_OR_RETURN(const std::string admin_token, EnsureTokenFile(config_.token_file));
  LK_ASSIGN_OR_RETURN(authenticator_, TokenAuthenticator::FromFile(config_.token_file));
  catalog_ = std::make_unique<Catalog>(config_.serve);
  handler_ = std::make_unique<ApiHandler>(*store_, *catalog_, *authenticator_, clock_, config_.handler, config_.hooks);
  LK_RETURN_IF_ERROR(MakeNamespaces());

  HttpServerConfig http;
  http.address = config_.address;
  http.port = config_.port;
  if (config_.tls) {
    names_ = ServingNames(config_.address);
    for (const std::string& name : config_.more_names) {
      if (std::find(names_.begin(), names_.end(), name) == names_.end()) names_.push_back(name);
    }
    const std::string& advertised = config_.advertise_address;
    if (!advertised.empty() && std::find(names_.begin(), names_.end(), advertised) == names_.end()) {
      names_.push_back(advertised);
    }
    LK_ASSIGN_OR_RETURN(ServingPki pki,
                        EnsureServingPki(JoinPath(config_.data_dir, "pki"), names_, clock_.Read().wall));
    ca_pem_ = std::move(pki.ca_pem);
    renew_at_ = pki.renew_at;
    http.tls = std::make_unique<TlsServerConfig>();
    http.tls->certificate_pem = std::move(pki.serving.certificate_pem);
    http.tls->private_key_pem = std::move(pki.serving.private_key_pem);
  }
  server_ = std::make_unique<HttpServer>(std::move(http), [this](const HttpRequest& request, HttpResponse& response) {
    handler_->Handle(request, response);
  });
  LK_RETURN_IF_ERROR(server_->Listen());
  // Before the first answer: who sees the server up finds a kubeconfig that fits.
  LK_RETURN_IF_ERROR(WriteKubeconfig(config_.kubeconfig, {{"lockkeeper", url(), ca_pem_, "admin", admin_token}}));
  LK_RETURN_IF_ERROR(server_->Start());
  CollectorOptions collector = config_.collector;
  if (config_.tls) collector.also = [this] { RenewCertificate(); };
  collector_ = std::make_unique<Collector>(handler_->objects(), std::move(collector));
  collector_->Start();
  LogInfo("API server is up", {{"url", url()}, {"store", config_.store_path}, {"kubeconfig", config_.kubeconfig}});
  return Status::Ok();
}

void ApiServer::RenewCertificate() {
  const Time now = clock_.Read().wall;
  if (now < renew_at_) return;
  Result<ServingPki> pki = EnsureServingPki(JoinPath(config_.data_dir, "pki"), names_, now);
  Status status = pki.status();
  if (status.ok()) status = server_->SetTls({pki->serving.certificate_pem, pki->serving.private_key_pem, ""});
  if (!status.ok()) {
    LogWarn("the serving certificate cannot be renewed", {{"error", status.ToString()}});
    return;
  }
  renew_at_ = pki->renew_at;
}

Status ApiServer::MakeNamespaces() {
  const ApiResource* namespaces = catalog_->namespaces();
  if (namespaces == nullptr) return Status::Ok();
  for (const char* name : {"default", "kube-system"}) {
    WriteContext context;
    context.user = "system:apiserver";
    Outcome<Json> made = handler_->objects().Create(
        context, *namespaces, "", Json::MakeObject({{"metadata", Json::MakeObject({{"name", name}})}}));
    if (!made.ok() && made.error().code != 409) {
      return {made.error().code == 507 ? Code::kExhausted : Code::kInternal,
              "make namespace " + std::string(name) + ": " + made.error().message};
    }
  }
  return Status::Ok();
}

void ApiServer::Stop() {
  if (server_) server_->CloseListener();
  // Watches end in order, with their last chunk, and running requests are answered; who then still holds a connection
  // is cut.
  if (store_) store_->hub().Stop();
  if (collector_) collector_->Stop();
  if (server_) {
    server_->DrainConnections();
    const auto patience = std::chrono::steady_clock::now() + kStopPatience;
    while (server_->open_connections() > 0 && std::chrono::steady_clock::now() < patience) ::poll(nullptr, 0, 2);
    server_->Stop();
  }
  collector_.reset();
  server_.reset();
  handler_.reset();
  authenticator_.reset();
  store_.reset();
}

void ApiServer::Call(const HttpRequest& request, HttpResponse& response) { CallAs(Admin(), request, response); }

void ApiServer::CallAs(const User& user, const HttpRequest& request, HttpResponse& response) {
  handler_->HandleAs(user, request, response);
}

int RunApiServer(ApiServerConfig config, const CancelToken& cancel, const std::function<void(ApiServer&)>& ready) {
  // A watch is a descriptor, and the usual soft limit is 1024.
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
    files.rlim_cur = files.rlim_max;
    if (::setrlimit(RLIMIT_NOFILE, &files) != 0) LogWarn("the limit of open files stays", {{"limit", files.rlim_cur}});
  }
  ApiServer server(std::move(config));
  const Status started = server.Start();
  if (!started.ok()) {
    std::fprintf(stderr, "lockkeeper apiserver: %s\n", started.ToString().c_str());
    return 1;
  }
  if (ready) ready(server);
  pollfd fd{cancel.fd(), POLLIN, 0};
  while (!cancel.cancelled()) ::poll(&fd, 1, -1);
  server.Stop();
  return 0;
}

}  // namespace lockkeeper::apiserver
