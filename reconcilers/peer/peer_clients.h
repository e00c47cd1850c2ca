// PeerClients: the HTTP clients to rolled servers, kept while nothing about them changes.
//
// Purpose:   a client per (kubeconfig content, context, address, certificates): an edited kubeconfig, a rewritten
//            token or a new CA takes effect at the next call, and nothing is parsed or shaken hands for when nothing
//            changed. Each roll leaves a port behind: a client that nobody used for 30 s goes, with its connections.
//            After a flip a pooled connection may still lead to the old slot: an answer of "not now" on a reused
//            connection is asked for once more on a fresh one.
// Ownership: owns the clients; callers hold shared pointers for a call.
// Threads:   thread-safe.
// Failure:   kNotFound never comes from here: a missing kubeconfig is kUnavailable, so that it does not read as an
//            absent object; a broken one is kInvalid.
#pragma once

#include <list>
#include <memory>
#include <string>

#include "api/base/sync.h"
#include "api/base/time.h"
#include "api/transport/http_client.h"
#include "api/types/server.h"
#include "controller/kubeconfig.h"

namespace lockkeeper::peer {

class PeerClients {
 public:
  explicit PeerClients(const Clock& clock);

  // By kubeconfig. `strip_cluster`: the request's target begins with /clusters/, so the server's own goes.
  Result<ClientResponse> CallAccess(const AccessSpec& access, bool strip_cluster, ClientRequest request,
                                    const CancelToken* cancel) LK_EXCLUDES(mutex_);
  // To a slot's own port, without credentials.
  Result<ClientResponse> CallPort(const ReadinessSpec& readiness, int port, const ClientRequest& request,
                                  const CancelToken* cancel) LK_EXCLUDES(mutex_);
  // Closes connections that no call uses.
  void CloseIdle() LK_EXCLUDES(mutex_);

 private:
  struct Access {
    std::string key;  // path, context and content
    RestConfig config;
  };
  struct Client {
    std::string key;
    std::shared_ptr<HttpClient> client;
    Duration used{};  // boot clock
  };
  Result<RestConfig> LoadAccess(const AccessSpec& access) LK_EXCLUDES(mutex_);
  Result<ClientResponse> CallOnce(const RestConfig& rest, const Credentials& credentials, bool strip_cluster,
                                  const ClientRequest& request, const CancelToken* cancel);
  std::shared_ptr<HttpClient> ClientFor(HttpClientConfig config) LK_EXCLUDES(mutex_);

  const Clock& clock_;
  Mutex mutex_;
  std::list<Access> accesses_ LK_GUARDED_BY(mutex_);  // most recently used first
  std::list<Client> clients_ LK_GUARDED_BY(mutex_);   // likewise
};

}  // namespace lockkeeper::peer
