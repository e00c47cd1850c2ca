// ApiServer: the embedded Kubernetes-style API server as a whole: store, certificates, tokens, kubeconfig, HTTPS.
//
// Purpose:   one object that `lockkeeper up` holds and `lockkeeper apiserver` runs. In a data directory it makes
//            store.db, pki/, tokens.csv and admin.kubeconfig, and finds them again at the next start.
// Ownership: owns everything below it. Callers of Call() must be done before Stop().
// Threads:   Start and Stop from one thread; the rest is thread-safe.
// Failure:   Start answers a Status that names the file, address or name and the way out; nothing listens then.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/server/collector.h"
#include "api/server/handler.h"
#include "api/transport/http_client.h"
#include "api/transport/http_server.h"

namespace lockkeeper::apiserver {

struct ApiServerConfig {
  std::string data_dir;  // made, 0700
  std::string address = "127.0.0.1";
  int port = 0;                         // 0: any free one
  bool tls = true;                      // false: plain HTTP, for a loopback address only
  std::string store_path;               // "": data_dir/store.db. Two servers may name one
  std::string token_file;               // "": data_dir/tokens.csv, made when absent
  std::string kubeconfig;               // "": data_dir/admin.kubeconfig
  std::string advertise_address;        // host in the kubeconfig; "": the address, or 127.0.0.1 for 0.0.0.0 and ::
  std::vector<std::string> more_names;  // further names of the serving certificate
  CollectorOptions collector;
  HandlerOptions handler;
  Hooks hooks;
  bool (*serve)(const KindInfo&) = ServedByDefault;
  std::string vfs;               // SQLite's; tests name a faulty one
  const Clock* clock = nullptr;  // default: the system's
};

class ApiServer {
 public:
  explicit ApiServer(ApiServerConfig config);
  ~ApiServer();  // Stop()
  ApiServer(const ApiServer&) = delete;
  ApiServer& operator=(const ApiServer&) = delete;

  // Everything, until requests are answered. First time ≤ 0.5 s, later ≤ 0.3 s.
  Status Start();
  // Ends watches, closes connections, joins all threads. Idempotent.
  void Stop();

  int port() const;
  std::string url() const;  // "https://127.0.0.1:6443"
  const std::string& kubeconfig_path() const { return config_.kubeconfig; }
  const std::string& ca_pem() const { return ca_pem_; }

  // A call without a socket, as `user` (default: the admin). A watch's answer has its `stream` set: run it with a
  // ChunkWriter of your own.
  void Call(const HttpRequest& request, HttpResponse& response);
  void CallAs(const User& user, const HttpRequest& request, HttpResponse& response);

  Store& store() { return *store_; }
  ApiHandler& handler() { return *handler_; }

 private:
  Status Prepare();
  Status MakeNamespaces();
  // Makes and serves a new certificate when the old one is in its last third.
  void RenewCertificate();

  ApiServerConfig config_;
  const Clock& clock_;
  std::string ca_pem_;
  std::vector<std::string> names_;  // of the serving certificate
  Time renew_at_{};                 // of the collector's thread once it runs
  std::unique_ptr<Store> store_;
  std::unique_ptr<Catalog> catalog_;
  std::unique_ptr<Authenticator> authenticator_;
  std::unique_ptr<ApiHandler> handler_;
  std::unique_ptr<Collector> collector_;
  std::unique_ptr<HttpServer> server_;
};

// Runs a server until `cancel`: the body of `lockkeeper apiserver`. `ready` is called once it serves. Answers 0, or 1
// after a start that failed (the reason is on standard error).
int RunApiServer(ApiServerConfig config, const CancelToken& cancel, const std::function<void(ApiServer&)>& ready = {});

}  // namespace lockkeeper::apiserver
