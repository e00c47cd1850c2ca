#include "reconcilers/agent/cached_objects.h"

#include <algorithm>

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
  if (entries_.size() >= look_at_) {
    std::erase_if(entries_, [&](const auto& entry) { return cache.Get(entry.first) != entry.second.object; });
    look_at_ = 2 * entries_.size() + 64;
  }
  entries_.insert_or_assign(object->key(), Entry{object, decoded});
  return decoded;
}

CachedObjects::CachedObjects(Cache& servers, Cache& fronts, Cache& upgrades, Cache& rolls)
    : servers_(servers), fronts_(fronts), upgrades_(upgrades), rolls_(rolls) {
  for (Cache* cache : {&upgrades_, &rolls_}) {
    cache->AddIndex(kByServer, [](const CachedObject& object) -> std::vector<std::string> {
      const Json operation = object.Parse();
      if (Settled(operation)) return {};
      return {object.key().namespace_ + "/" + operation.At({"spec", "serverRef", "name"}).AsString()};
    });
  }
}

ObjectKey CachedObjects::ServerOf(const CachedObject& operation) {
  return {operation.key().namespace_, operation.Parse().At({"spec", "serverRef", "name"}).AsString()};
}

bool CachedObjects::Settled(const Json& operation) {
  return operation.At({"status", "outcome"}).IsString() && operation.At({"metadata", "finalizers"}).empty() &&
         operation.At({"metadata", "deletionTimestamp"}).IsNull() &&
         operation.At({"spec", "ttlSecondsAfterFinished"}).IsNull();
}

void CachedObjects::TrimSettled(Json& operation) {
  if (!Settled(operation)) return;
  Json* status = operation.Find("status");
  Json kept = Json::MakeObject();
  for (const char* member : {"outcome", "error", "finishedAt"}) {
    if (const Json* value = status->Find(member); value != nullptr) kept.Set(member, *value);
  }
  *status = std::move(kept);
  if (Json* metadata = operation.Find("metadata"); metadata != nullptr) metadata->Remove("annotations");
}

Result<Server> CachedObjects::GetServer(const ObjectKey& key) { return ReadOne(servers_, key, decoded_servers_); }
Result<Front> CachedObjects::GetFront(const ObjectKey& key) { return ReadOne(fronts_, key, decoded_fronts_); }
Result<std::vector<Upgrade>> CachedObjects::UpgradesOf(const ObjectKey& server) {
  LK_ASSIGN_OR_RETURN(std::vector<Upgrade> upgrades, ReadOf(upgrades_, server, decoded_upgrades_));
  // Somebody may have taken its finalizer by hand: what holds the place is seen to its end.
  const Result<Server> object = GetServer(server);
  if (!object.ok() || !object->status.operation || object->status.operation->kind != Upgrade::kKind) return upgrades;
  const OperationRef& op = *object->status.operation;
  if (std::any_of(upgrades.begin(), upgrades.end(), [&](const Upgrade& u) { return u.metadata.name == op.name; }))
    return upgrades;
  const ObjectPtr held = upgrades_.Get({server.namespace_, op.name});
  if (held == nullptr) return upgrades;
  LK_ASSIGN_OR_RETURN(Upgrade root, decoded_upgrades_.Of(held, upgrades_));
  upgrades.push_back(std::move(root));
  return upgrades;
}
Result<std::vector<Roll>> CachedObjects::RollsOf(const ObjectKey& server) {
  return ReadOf(rolls_, server, decoded_rolls_);
}

}  // namespace lockkeeper
