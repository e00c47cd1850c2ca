// MemoryApi: an Api without a server: resourceVersions, generations, optimistic locks, finalizers, watches.
//
// Purpose:   tests of what runs on Api. Selectors are not looked at. `before` may fail any call, or do something
//            first (another writer).
// Threads:   thread-safe; `before` runs under no lock. Failure: as Api.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "api/base/sync.h"
#include "controller/api.h"

namespace lockkeeper {

class MemoryApi : public Api {
 public:
  // verb: get, list, create, update, updateStatus, patch, delete, watch.
  using Before = std::function<Status(const std::string& verb, const Resource& resource, const ObjectKey& key)>;
  void SetBefore(Before before);
  // The reply to the next such call is lost: it has its effect and answers kUnavailable.
  void LoseReplyOf(const std::string& verb);
  std::vector<std::string> Calls() const;  // "update leases ns/name"

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

 private:
  struct Logged {
    int64_t version;
    Resource resource;
    WatchEvent event;
  };

  Status Enter(const std::string& verb, const Resource& resource, const ObjectKey& key);
  Result<Json> Leave(const std::string& verb, Result<Json> answer);
  Result<Json> Write(const Resource& resource, const Json& object, bool status);
  Json Store(const Resource& resource, Json object, WatchEventType type) LK_REQUIRES(mutex_);

  mutable Mutex mutex_;
  CondVar changed_;
  Before before_ LK_GUARDED_BY(mutex_);
  std::string lose_reply_of_ LK_GUARDED_BY(mutex_);
  std::vector<std::string> calls_ LK_GUARDED_BY(mutex_);
  std::map<Resource, std::map<ObjectKey, Json>> objects_ LK_GUARDED_BY(mutex_);
  std::vector<Logged> log_ LK_GUARDED_BY(mutex_);
  int64_t version_ LK_GUARDED_BY(mutex_) = 100;
};

}  // namespace lockkeeper
