// HttpApi: Api over HTTP, the Kubernetes client.
//
// Purpose:   one API server reached through an HttpClient: credentials kept fresh (a 401 asks for new ones once, a
//            changed certificate makes a new client), Retry-After obeyed on 429 and 5xx (at most 10 times and 60 s in
//            all), GETs repeated once after a cut connection, warnings of the server logged once each. No rate limit.
// Ownership: borrows metrics and fence; they outlive its calls.
// Threads:   thread-safe.
// Failure:   as Api. Errors of the transport keep their code.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "controller/api.h"
#include "controller/kubeconfig.h"

namespace lockkeeper {

class Metrics;

struct HttpApiOptions {
  std::string user_agent = "lockkeeper";
  std::string field_manager = "lockkeeper";
  std::chrono::milliseconds timeout{std::chrono::seconds(30)};  // of one try
  std::chrono::milliseconds retry_budget{std::chrono::seconds(60)};
  Metrics* metrics = nullptr;
  // Reads the configuration again. Asked when a call fails for want of a connection or is refused, at most every 2 s,
  // so that a kubeconfig that is mended or renewed takes effect without a restart. Optional.
  std::function<Result<RestConfig>()> reload{};
};

class HttpApi : public Api {
 public:
  HttpApi(RestConfig config, HttpApiOptions options);
  ~HttpApi() override;

  Result<Json> Get(const Resource& resource, const ObjectKey& key) override;
  Result<ListMeta> ListEach(const Resource& resource, const std::string& namespace_, const ListOptions& options,
                            const std::function<void(Json)>& on_item) override;
  Result<Json> Create(const Resource& resource, const Json& object) override;
  Result<Json> Update(const Resource& resource, const Json& object) override;
  Result<Json> UpdateStatus(const Resource& resource, const Json& object) override;
  Result<Json> Patch(const Resource& resource, const ObjectKey& key, PatchType type, const Json& patch,
                     const std::string& subresource) override;
  Result<Json> Delete(const Resource& resource, const ObjectKey& key, const DeleteOptions& options) override;
  Status Watch(const Resource& resource, const std::string& namespace_, const WatchOptions& options,
               const std::function<bool(WatchEvent)>& on_event, const CancelToken* cancel) override;

  // A GET of any path ("/readyz", "/version"): status and body as they come.
  Result<ClientResponse> GetRaw(const std::string& target, std::chrono::milliseconds timeout);
  // From now on writes are sent only while the fence is open, and their time is clipped to it. Borrowed; may be made
  // after the HttpApi, since an election is.
  void SetFence(const WriteFence* fence);
  // Ends every call under way and refuses new ones (kCancelled), for good. A watch with a token of its own ends by
  // that one alone.
  void CancelAll();
  RestConfig config() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockkeeper
