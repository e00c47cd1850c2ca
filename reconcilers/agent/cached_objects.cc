#include "reconcilers/agent/cached_objects.h"

#include "controller/typed.h"

namespace lockkeeper {
namespace {

constexpr char kByServer[] = "server";

Status NotSynced(const Cache& cache) {
  return {Code::kUnavailable, cache.resource().GroupResource() + " were not read from the API yet"};
}

template <typename T>
Result<T> ReadOne(const Cache& cache, const ObjectKey& key) {
  const ObjectPtr object = cache.Get(key);
  if (object != nullptr) return Decode<T>(object->Parse());
  if (!cache.HasSynced()) return NotSynced(cache);
  return Status(Code::kNotFound, cache.resource().GroupResource() + " \"" + key.ToString() + "\" not found");
}

template <typename T>
Result<std::vector<T>> ReadOf(const Cache& cache, const ObjectKey& server) {
  if (!cache.HasSynced()) return NotSynced(cache);
  std::vector<T> out;
  for (const ObjectPtr& object : cache.ByIndex(kByServer, server.ToString())) {
    LK_ASSIGN_OR_RETURN(T decoded, Decode<T>(object->Parse()));
    out.push_back(std::move(decoded));
  }
  return out;
}

}  // namespace

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

Result<Server> CachedObjects::GetServer(const ObjectKey& key) { return ReadOne<Server>(servers_, key); }
Result<Front> CachedObjects::GetFront(const ObjectKey& key) { return ReadOne<Front>(fronts_, key); }
Result<std::vector<Upgrade>> CachedObjects::UpgradesOf(const ObjectKey& server) {
  return ReadOf<Upgrade>(upgrades_, server);
}
Result<std::vector<Roll>> CachedObjects::RollsOf(const ObjectKey& server) { return ReadOf<Roll>(rolls_, server); }

}  // namespace lockkeeper
