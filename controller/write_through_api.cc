#include "controller/cache.h"

namespace lockkeeper {

Result<Json> WriteThroughApi::Record(const Resource& resource, Result<Json> answer) {
  if (!answer.ok() || !answer->IsObject()) return answer;
  for (Cache* cache : caches_) {
    if (cache->resource() == resource) cache->RecordWrite(*answer);
  }
  return answer;
}

Result<Json> WriteThroughApi::Get(const Resource& resource, const ObjectKey& key) { return inner_.Get(resource, key); }

Result<ListMeta> WriteThroughApi::ListEach(const Resource& resource, const std::string& namespace_,
                                           const ListOptions& options, const std::function<void(Json)>& on_item) {
  return inner_.ListEach(resource, namespace_, options, on_item);
}

Result<Json> WriteThroughApi::Create(const Resource& resource, const Json& object) {
  return Record(resource, inner_.Create(resource, object));
}

Result<Json> WriteThroughApi::Update(const Resource& resource, const Json& object) {
  return Record(resource, inner_.Update(resource, object));
}

Result<Json> WriteThroughApi::UpdateStatus(const Resource& resource, const Json& object) {
  return Record(resource, inner_.UpdateStatus(resource, object));
}

Result<Json> WriteThroughApi::Patch(const Resource& resource, const ObjectKey& key, PatchType type, const Json& patch,
                                    const std::string& subresource) {
  return Record(resource, inner_.Patch(resource, key, type, patch, subresource));
}

Result<Json> WriteThroughApi::Delete(const Resource& resource, const ObjectKey& key, const DeleteOptions& options) {
  std::vector<std::pair<Cache*, std::string>> before;
  for (Cache* cache : caches_) {
    if (cache->resource() != resource) continue;
    if (const ObjectPtr object = cache->Get(key)) before.emplace_back(cache, object->uid());
  }
  Result<Json> answer = Record(resource, inner_.Delete(resource, key, options));
  // Without the uid in the call, another object of that name may be the one that went.
  if (answer.ok() && answer->IsNull() && !options.uid.empty()) {
    for (const auto& [cache, uid] : before) {
      if (uid == options.uid) cache->RecordDelete(key, uid);
    }
  }
  return answer;
}

Status WriteThroughApi::Watch(const Resource& resource, const std::string& namespace_, const WatchOptions& options,
                              const std::function<bool(WatchEvent)>& on_event, const CancelToken* cancel) {
  return inner_.Watch(resource, namespace_, options, on_event, cancel);
}

}  // namespace lockkeeper
