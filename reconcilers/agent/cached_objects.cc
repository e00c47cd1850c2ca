#include "reconcilers/agent/cached_objects.h"

#include "controller/typed.h"

namespace lockkeeper {
namespace {

constexpr char kByServer[] = "server";

Status NotSynced(const Cache& cache) {
  return {Code::kUnavailable, cache.resource().GroupResource() + " were not read from the API yet"};
}

template <typename T>
Result<T> ReadOne(const Cache& cache, const ObjectKey& key, DecodedObjects<T>& decoded) {
  const ObjectPtr object = cache.Get(key);
  if (object != nullptr) return decoded.Of(object, cache);
  if (!cache.HasSynced()) return NotSynced(cache);
  return Status(Code::kNotFound, cache.resource().GroupResource() + " \"" + key.ToString() + "\" not found");
}

template <typename T>
Result<std::vector<T>> ReadOf(const Cache& cache, const ObjectKey& server, DecodedObjects<T>& decoded) {
  if (!cache.HasSynced()) return NotSynced(cache);
  std::vector<T> out;
  for (const ObjectPtr& object : cache.ByIndex(kByServer, server.ToString())) {
    LK_ASSIGN_OR_RETURN(T one, decoded.Of(object, cache));
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace

template <typename T>
Result<T> DecodedObjects<T>::Of(const ObjectPtr& object, const Cache& cache) {
  {
    const MutexLock lock(mutex_);
    const auto known = entries_.find(object->key());
    if (known != entries_.end() && known->second.object == object) return known->second.decoded;
  }
  LK_ASSIGN_OR_RETURN(T decoded, Decode<T>(object->Parse()));
  const MutexLock lock(mutex_);
  if (entries_.size() > cache.size() + kSpare) {
    std::erase_if(entries_, [&](const auto& entry) { return cache.Get(entry.first) == nullptr; });
  }
  entries_.insert_or_assign(object->key(), Entry{object, decoded});
  return decoded;
}

CachedObjects::CachedObjects(Cache& servers, Cache& fronts, Cache& upgrades, Cache& rolls)
    : servers_(servers), fronts_(fronts), upgrades_(upgrades), rolls_(rolls) {
  for (Cache* cache : {&upgrades_, &rolls_}) {
    cache->AddIndex(kByServer, [](const CachedObject& object) -> std::vector<std::string> {
      return {ServerOf(object).ToString()};
    });
  }
}

ObjectKey CachedObjects::ServerOf(const CachedObject& operation) {
  return {operation.key().namespace_, operation.Parse().At({"spec", "serverRef", "name"}).AsString()};
}

Result<Server> CachedObjects::GetServer(const ObjectKey& key) { return ReadOne(servers_, key, decoded_servers_); }
Result<Front> CachedObjects::GetFront(const ObjectKey& key) { return ReadOne(fronts_, key, decoded_fronts_); }
Result<std::vector<Upgrade>> CachedObjects::UpgradesOf(const ObjectKey& server) {
  return ReadOf(upgrades_, server, decoded_upgrades_);
}
Result<std::vector<Roll>> CachedObjects::RollsOf(const ObjectKey& server) {
  return ReadOf(rolls_, server, decoded_rolls_);
}

}  // namespace lockkeeper
