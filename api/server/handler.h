// ApiHandler: an HTTP request in, a Kubernetes API answer out.
//
// Purpose:   the whole API behind one function, so that it can stand behind an HttpServer, be called in process, or
//            be wrapped by a mode that adds clusters, faults and shutdown behaviour through hooks.
// Ownership: borrows store, catalog, authenticator and clock; hooks are copied. Streams of answers hold on to the
//            handler: stop the server before it goes.
// Threads:   Handle is called on many threads at once.
// Failure:   every failure is a Status body; nothing throws.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/server/auth.h"
#include "api/server/catalog.h"
#include "api/server/objects.h"
#include "api/server/request_info.h"
#include "api/server/store.h"
#include "api/transport/http_server.h"

namespace lockkeeper::apiserver {

// One line of /readyz?verbose. `check` runs on each request and must be quick.
struct HealthCheck {
  std::string name;
  std::function<Status()> check;
  bool livez = true;  // also part of /livez and /healthz
};

struct Hooks {
  // Before authentication; true: the response is written already (aborted, 429, 403 "not yet ready").
  std::function<bool(const HttpRequest&, const RequestInfo&, HttpResponse&)> before;
  // After the answer was made and before it is sent; may change it (goaway: response.close). For a watch the status
  // is known and the stream not yet begun.
  std::function<void(const HttpRequest&, const RequestInfo&, const User*, HttpResponse&)> after;
  // The stream of a watch ended.
  std::function<void(const HttpRequest&, const RequestInfo&)> stream_ended;
  // Looked at by running watches: at each event, each few seconds, and after WatchHub::WakeAll(). True cuts them.
  std::function<bool(const RequestInfo&)> aborted;
  // The store's cluster key of a /clusters/<path>; nullopt: 404. Required with HandlerOptions::clusters.
  std::function<std::optional<std::string>(const std::string& cluster_path)> resolve_cluster;
  // A refusal, or nothing. All authenticated users may do all when it is not set.
  std::function<std::optional<ApiError>(const User&, const RequestInfo&)> authorize;
  AdmitFn admit;
};

struct HandlerOptions {
  bool clusters = false;        // understand /clusters/<path>/…
  bool need_namespaces = true;  // a create in a missing namespace is 404
  std::string git_version;      // of /version: a semantic version
  std::string git_commit;
  std::chrono::milliseconds bookmark_interval{std::chrono::seconds(60)};  // kube-apiserver's minute
  std::chrono::milliseconds future_patience{std::chrono::seconds(3)};     // for a resourceVersion not there yet
  std::chrono::milliseconds watch_look{std::chrono::seconds(5)};  // how often a silent watch looks for its client
  std::vector<HealthCheck> health;                                // beside ping and the store's
};

// Counters of /metrics (metrics.cc).
class Metrics;

class ApiHandler {
 public:
  ApiHandler(Store& store, const Catalog& catalog, const Authenticator& authenticator, const Clock& clock,
             HandlerOptions options, Hooks hooks = {});
  ~ApiHandler();
  ApiHandler(const ApiHandler&) = delete;
  ApiHandler& operator=(const ApiHandler&) = delete;

  void Handle(const HttpRequest& request, HttpResponse& response);
  // The same for a caller in this process, who is `user` without a token.
  void HandleAs(const User& user, const HttpRequest& request, HttpResponse& response);

  // Makes running watches look at Hooks::aborted.
  void WakeWatches();
  Objects& objects() { return objects_; }

 private:
  struct Call;
  void Dispatch(Call& call, const User* known);
  void Respond(Call& call, const ApiError& error);
  void RespondJson(Call& call, int code, const Json& body);
  void RespondWith(Call& call, int code, std::string body);

  void Health(Call& call);
  void Version(Call& call);
  void Discovery(Call& call);
  void OpenApi(Call& call);
  void EmptyOpenApiV2(Call& call);
  void Resource(Call& call);
  void Review(Call& call);

  void Get(Call& call);
  void List(Call& call);
  void Watch(Call& call);
  void Create(Call& call);
  void Replace(Call& call);
  void Patch(Call& call);
  void Delete(Call& call);
  void DeleteCollection(Call& call);

  struct ListOptions;
  struct WatchState;
  // limit, continue, resourceVersion, selectors; shared by list, watch and deletecollection.
  Outcome<ListOptions> ReadListOptions(Call& call);
  // Waits for a resourceVersion that is not there yet.
  std::optional<ApiError> AwaitRevision(int64_t revision);
  bool RunWatch(const std::shared_ptr<WatchState>& state, ChunkWriter& writer);
  Status SendInitialEvents(WatchState& state, ChunkWriter& writer, bool* alive);
  // Reads dryRun, fieldValidation and the JSON body; false: the response is written.
  bool ReadBody(Call& call, WriteContext& context, Json& body);
  bool ReadWriteOptions(Call& call, WriteContext& context);
  void RespondObject(Call& call, int code, const Json& object, const WriteContext* context);

  Store& store_;
  const Catalog& catalog_;
  const Authenticator& authenticator_;
  const Clock& clock_;
  const HandlerOptions options_;
  const Hooks hooks_;
  Objects objects_;
  std::unique_ptr<Metrics> metrics_;
};

}  // namespace lockkeeper::apiserver
