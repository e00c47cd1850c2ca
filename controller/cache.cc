#include "controller/cache.h"

#include <poll.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <set>

#include "api/base/log.h"
#include "api/base/sync.h"

namespace lockkeeper {

namespace {

using SteadyClock = std::chrono::steady_clock;
// Handlers only enqueue. One that waits for something takes a round trip or more; one of microseconds that the machine
// was too busy to run is no news.
constexpr auto kHandlerBudget = std::chrono::milliseconds(250);
const std::string kOwnerIndex = "owner uid";

}  // namespace

std::shared_ptr<const CachedObject> CachedObject::Of(Json object) {
  auto out = std::make_shared<CachedObject>();
  out->key_ = ObjectKey::Of(object);
  if (Json* metadata = object.Find("metadata"); metadata != nullptr) {
    metadata->Remove("managedFields");
    out->uid_ = metadata->Get("uid").AsString();
    out->resource_version_ = metadata->Get("resourceVersion").AsString();
    out->version_ = ResourceVersionNumber(out->resource_version_);
    out->generation_ = metadata->Get("generation").AsInt();
    out->deleting_ = !metadata->Get("deletionTimestamp").IsNull();
    for (const auto& [name, value] : metadata->Get("labels").AsObject())
      out->labels_.emplace_back(name, value.AsString());
    for (const Json& owner : metadata->Get("ownerReferences").AsArray()) {
      out->owners_.push_back({owner.Get("kind").AsString(), owner.Get("name").AsString(), owner.Get("uid").AsString(),
                              owner.Get("controller").AsBool()});
    }
  }
  out->text_ = object.Dump();
  out->text_.shrink_to_fit();
  return out;
}

std::string CachedObject::Label(std::string_view name) const {
  for (const auto& [key, value] : labels_) {
    if (key == name) return value;
  }
  return "";
}

const CachedOwner* CachedObject::ControllerOwner() const {
  for (const CachedOwner& owner : owners_) {
    if (owner.controller) return &owner;
  }
  return nullptr;
}

Json CachedObject::Parse() const {
  auto parsed = Json::Parse(text_);
  LK_CHECK(parsed.ok());  // our own text
  return std::move(*parsed);
}

class Cache::Impl {
 public:
  explicit Impl(std::string name) : name_(std::move(name)) {
    indexers_[kOwnerIndex] = [](const CachedObject& object) {
      std::vector<std::string> uids;
      for (const CachedOwner& owner : object.owners()) uids.push_back(owner.uid);
      return uids;
    };
  }

  void AddIndex(const std::string& name, Indexer indexer) {
    MutexLock lock(mutex_);
    LK_CHECK(objects_.empty());
    indexers_[name] = std::move(indexer);
  }

  void AddHandler(Handler handler) {
    // Deliveries are serial, so that a late handler neither misses an event nor sees one twice.
    MutexLock serial(delivery_);
    std::vector<CacheEvent> events;
    {
      MutexLock lock(mutex_);
      for (const auto& [key, entry] : objects_)
        events.push_back({CacheEvent::Type::kAdded, nullptr, entry.object, true, false, false});
    }
    for (const CacheEvent& event : events) Call(handler, event);
    handlers_.push_back(std::move(handler));
  }

  ObjectPtr Get(const ObjectKey& key) const {
    MutexLock lock(mutex_);
    const auto it = objects_.find(key);
    return it == objects_.end() ? nullptr : it->second.object;
  }

  std::vector<ObjectPtr> List(const std::string& ns) const {
    std::vector<ObjectPtr> out;
    MutexLock lock(mutex_);
    for (auto it = objects_.lower_bound({ns, ""}); it != objects_.end(); ++it) {
      if (!ns.empty() && it->first.namespace_ != ns) break;
      out.push_back(it->second.object);
    }
    return out;
  }

  std::vector<ObjectPtr> ByIndex(const std::string& index, const std::string& value) const {
    std::vector<ObjectPtr> out;
    MutexLock lock(mutex_);
    const auto by_value = indexes_.find(index);
    if (by_value == indexes_.end()) return out;
    const auto keys = by_value->second.find(value);
    if (keys == by_value->second.end()) return out;
    for (const ObjectKey& key : keys->second) out.push_back(objects_.at(key).object);
    return out;
  }

  size_t size() const {
    MutexLock lock(mutex_);
    return objects_.size();
  }
  size_t bytes() const {
    MutexLock lock(mutex_);
    return bytes_;
  }

  bool HasSynced() const {
    MutexLock lock(mutex_);
    return synced_;
  }

  bool WaitForSync(Duration timeout, const CancelToken* cancel) const {
    const auto until = SteadyClock::now() + timeout;
    MutexLock lock(mutex_);
    while (!synced_) {
      if (cancel != nullptr && cancel->cancelled()) return false;
      const auto left = until - SteadyClock::now();
      if (left <= SteadyClock::duration::zero()) return false;
      // The token's event cannot wake a condition variable.
      changed_.WaitFor(mutex_,
                       cancel == nullptr ? left : std::min<SteadyClock::duration>(left, std::chrono::milliseconds(50)));
    }
    return true;
  }

  std::string resource_version() const {
    MutexLock lock(mutex_);
    return resource_version_;
  }

  bool WaitForVersion(const std::string& wanted, Duration timeout) const {
    const int64_t number = ResourceVersionNumber(wanted);
    const auto until = SteadyClock::now() + timeout;
    MutexLock lock(mutex_);
    while (resource_version_ != wanted && (number < 0 || ResourceVersionNumber(resource_version_) < number)) {
      const auto left = until - SteadyClock::now();
      if (left <= SteadyClock::duration::zero()) return false;
      changed_.WaitFor(mutex_, left);
    }
    return true;
  }

  Duration SinceLastActivity() const {
    return std::chrono::duration_cast<Duration>(SteadyClock::now().time_since_epoch()) -
           Duration(last_activity_.load());
  }

  void RecordWrite(ObjectPtr fresh) {
    MutexLock lock(mutex_);
    if (const auto gone = deleted_.find(fresh->key()); gone != deleted_.end() && gone->second == fresh->uid()) return;
    const auto it = objects_.find(fresh->key());
    if (it != objects_.end() && it->second.object->version() >= fresh->version()) return;
    Put(std::move(fresh), it != objects_.end() ? it->second.told : nullptr, true);
  }

  void RecordDelete(const ObjectKey& key, const std::string& uid) {
    MutexLock lock(mutex_);
    const auto it = objects_.find(key);
    if (it == objects_.end() || it->second.object->uid() != uid) return;
    // Its DELETED event is still to come and must be told to the handlers.
    deleted_objects_[key] = it->second.told != nullptr ? it->second.told : it->second.object;
    deleted_[key] = uid;
    Remove(it);
  }

  void Replace(std::vector<ObjectPtr> objects, const std::string& resource_version) {
    MutexLock serial(delivery_);
    std::vector<CacheEvent> events;
    {
      MutexLock lock(mutex_);
      const bool initial = !synced_;
      const int64_t at = ResourceVersionNumber(resource_version);
      if (at < ResourceVersionNumber(resource_version_)) {
        // Another store, or an older state of it: what we wrote there may not exist.
        for (auto& [key, entry] : objects_) entry.own_write = false;
        deleted_.clear();
      }
      std::set<ObjectKey> seen;
      for (ObjectPtr& object : objects) {
        const ObjectKey key = object->key();
        seen.insert(key);
        ApplyLocked(WatchEventType::kModified, std::move(object), initial, events);
      }
      std::vector<Objects::iterator> vanished;
      for (auto it = objects_.begin(); it != objects_.end(); ++it) {
        // Newer than the list: it will be seen by the watch from there.
        const bool ahead = it->second.own_write && it->second.object->version() > at;
        if (!seen.contains(it->first) && !ahead) vanished.push_back(it);
      }
      for (const Objects::iterator it : vanished) {
        const ObjectPtr object = it->second.object;
        events.push_back(Deleted(it->second.told != nullptr ? it->second.told : object, object));
        Remove(it);
      }
      for (const auto& [key, object] : deleted_objects_) {
        if (!seen.contains(key)) events.push_back(Deleted(object, object));
      }
      deleted_objects_.clear();
      deleted_.clear();
      resource_version_ = resource_version;
      synced_ = true;
      changed_.NotifyAll();
    }
    Touch();
    Deliver(events);
  }

  void Apply(WatchEventType type, ObjectPtr object) {
    MutexLock serial(delivery_);
    std::vector<CacheEvent> events;
    {
      MutexLock lock(mutex_);
      const std::string version = object->resource_version();
      ApplyLocked(type, std::move(object), false, events);
      if (synced_) resource_version_ = version;
      changed_.NotifyAll();
    }
    Touch();
    Deliver(events);
  }

  void Bookmark(const std::string& resource_version) {
    MutexLock lock(mutex_);
    resource_version_ = resource_version;
    changed_.NotifyAll();
    Touch();
  }

 private:
  struct Entry {
    ObjectPtr object;
    ObjectPtr told;          // to the handlers, last; null: they do not know of it
    bool own_write = false;  // `object` is ours and not yet told by the server
  };
  using Objects = std::map<ObjectKey, Entry>;

  static CacheEvent Deleted(ObjectPtr old, ObjectPtr object) {
    return {CacheEvent::Type::kDeleted, std::move(old), std::move(object), false, false, false};
  }

  void ApplyLocked(WatchEventType type, ObjectPtr object, bool initial, std::vector<CacheEvent>& events)
      LK_REQUIRES(mutex_) {
    const ObjectKey key = object->key();
    const auto it = objects_.find(key);
    if (type == WatchEventType::kDeleted) return ApplyDelete(it, std::move(object), events);
    if (const auto gone = deleted_.find(key); gone != deleted_.end()) {
      if (gone->second == object->uid()) return;  // older than our delete
      events.push_back(Deleted(deleted_objects_[key], deleted_objects_[key]));
      deleted_.erase(gone);
      deleted_objects_.erase(key);
    }
    const Entry entry = it != objects_.end() ? it->second : Entry();
    ObjectPtr told = entry.told;
    // An older state than the one we wrote is not taken; the newer one's event is on its way.
    const bool older = entry.own_write && entry.object->version() > object->version();
    const ObjectPtr now = older ? entry.object : object;
    if (told != nullptr && told->uid() != now->uid()) {
      events.push_back(Deleted(told, told));  // deleted and made again between two events
      told = nullptr;
    }
    const bool unchanged = told != nullptr && told->resource_version() == now->resource_version();
    const bool echo = entry.own_write && entry.object->resource_version() == object->resource_version();
    events.push_back(
        {told == nullptr ? CacheEvent::Type::kAdded : CacheEvent::Type::kUpdated, told, now, initial, unchanged, echo});
    Put(now, now, older);
  }

  void ApplyDelete(Objects::iterator it, ObjectPtr object, std::vector<CacheEvent>& events) LK_REQUIRES(mutex_) {
    const ObjectKey key = object->key();
    ObjectPtr told;
    if (const auto gone = deleted_objects_.find(key); gone != deleted_objects_.end()) {
      told = gone->second;
      deleted_objects_.erase(gone);
      deleted_.erase(key);
    }
    if (it != objects_.end()) {
      if (it->second.told != nullptr) told = it->second.told;
      if (it->second.own_write && it->second.object->version() > object->version()) {
        it->second.told = nullptr;  // a new one of that name, which we wrote to already
      } else {
        if (told == nullptr) told = it->second.object;
        Remove(it);
      }
    }
    if (told != nullptr) events.push_back(Deleted(std::move(told), std::move(object)));
  }

  void Put(ObjectPtr object, ObjectPtr told, bool own_write) LK_REQUIRES(mutex_) {
    const ObjectKey key = object->key();
    if (const auto it = objects_.find(key); it != objects_.end()) Remove(it);
    for (const auto& [name, indexer] : indexers_) {
      for (const std::string& value : indexer(*object)) indexes_[name][value].insert(key);
    }
    bytes_ += object->text().size();
    objects_[key] = {std::move(object), std::move(told), own_write};
  }

  void Remove(Objects::iterator it) LK_REQUIRES(mutex_) {
    for (const auto& [name, indexer] : indexers_) {
      auto& values = indexes_[name];
      for (const std::string& value : indexer(*it->second.object)) {
        const auto keys = values.find(value);
        if (keys == values.end()) continue;
        keys->second.erase(it->first);
        if (keys->second.empty()) values.erase(keys);
      }
    }
    bytes_ -= it->second.object->text().size();
    objects_.erase(it);
  }

  void Deliver(const std::vector<CacheEvent>& events) LK_REQUIRES(delivery_) {
    for (const CacheEvent& event : events) {
      for (const Handler& handler : handlers_) Call(handler, event);
    }
  }

  void Call(const Handler& handler, const CacheEvent& event) {
    const auto start = SteadyClock::now();
    handler(event);
    const auto took = SteadyClock::now() - start;
    if (took > kHandlerBudget) {
      LogWarn(
          "slow cache handler",
          {{"resource", name_},
           {"milliseconds", static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(took).count())}});
    }
  }

  void Touch() {
    last_activity_.store(std::chrono::duration_cast<Duration>(SteadyClock::now().time_since_epoch()).count());
  }

  const std::string name_;
  std::atomic<Duration::rep> last_activity_{
      std::chrono::duration_cast<Duration>(SteadyClock::now().time_since_epoch()).count()};

  Mutex delivery_;  // before mutex_
  std::vector<Handler> handlers_ LK_GUARDED_BY(delivery_);

  mutable Mutex mutex_;
  mutable CondVar changed_;
  Objects objects_ LK_GUARDED_BY(mutex_);
  std::map<std::string, Indexer> indexers_ LK_GUARDED_BY(mutex_);
  std::map<std::string, std::map<std::string, std::set<ObjectKey>>> indexes_ LK_GUARDED_BY(mutex_);
  std::map<ObjectKey, std::string> deleted_ LK_GUARDED_BY(mutex_);        // by us, uid; until the event comes
  std::map<ObjectKey, ObjectPtr> deleted_objects_ LK_GUARDED_BY(mutex_);  // the same, last state
  size_t bytes_ LK_GUARDED_BY(mutex_) = 0;
  std::string resource_version_ LK_GUARDED_BY(mutex_);
  bool synced_ LK_GUARDED_BY(mutex_) = false;
};

Cache::Cache(Resource resource, std::string namespace_scope, std::function<bool(const CachedObject&)> selects,
             Trim trim)
    : resource_(std::move(resource)),
      namespace_(std::move(namespace_scope)),
      selects_(std::move(selects)),
      trim_(std::move(trim)),
      impl_(std::make_unique<Impl>(resource_.GroupResource())) {}
Cache::~Cache() = default;

void Cache::AddIndex(const std::string& name, Indexer indexer) { impl_->AddIndex(name, std::move(indexer)); }
void Cache::AddHandler(Handler handler) { impl_->AddHandler(std::move(handler)); }
ObjectPtr Cache::Get(const ObjectKey& key) const { return impl_->Get(key); }
std::vector<ObjectPtr> Cache::List(const std::string& of_namespace) const { return impl_->List(of_namespace); }
std::vector<ObjectPtr> Cache::OwnedBy(const std::string& uid) const { return impl_->ByIndex(kOwnerIndex, uid); }
std::vector<ObjectPtr> Cache::ByIndex(const std::string& index, const std::string& value) const {
  return impl_->ByIndex(index, value);
}
size_t Cache::size() const { return impl_->size(); }
size_t Cache::bytes() const { return impl_->bytes(); }
bool Cache::HasSynced() const { return impl_->HasSynced(); }
bool Cache::WaitForSync(Duration timeout, const CancelToken* cancel) const {
  return impl_->WaitForSync(timeout, cancel);
}
std::string Cache::resource_version() const { return impl_->resource_version(); }
bool Cache::WaitForVersion(const std::string& resource_version, Duration timeout) const {
  return impl_->WaitForVersion(resource_version, timeout);
}
Duration Cache::SinceLastActivity() const { return impl_->SinceLastActivity(); }
ObjectPtr Cache::Make(Json object) const {
  if (trim_) trim_(object);
  return CachedObject::Of(std::move(object));
}
void Cache::RecordWrite(const Json& object) {
  ObjectPtr fresh = Make(object);
  if (fresh->version() < 0) return;  // cannot be compared with what the watch will say
  if (!namespace_.empty() && fresh->key().namespace_ != namespace_) return;
  if (selects_ && !selects_(*fresh)) return;
  impl_->RecordWrite(std::move(fresh));
}
Cache::Trim KeepOnly(std::vector<std::pair<std::string, std::string>> members) {
  return [members = std::move(members)](Json& object) {
    Json kept = Json::MakeObject();
    for (const char* whole : {"apiVersion", "kind", "metadata"}) kept.Set(whole, object.Get(whole));
    if (Json* metadata = kept.Find("metadata"); metadata != nullptr) metadata->Remove("annotations");
    for (const auto& [group, member] : members) {
      const Json& value = object.At({group, member});
      if (!value.IsNull()) kept[group].Set(member, value);
    }
    object = std::move(kept);
  };
}
void Cache::RecordDelete(const ObjectKey& key, const std::string& uid) { impl_->RecordDelete(key, uid); }
void Cache::Replace(std::vector<ObjectPtr> objects, const std::string& resource_version) {
  impl_->Replace(std::move(objects), resource_version);
}
void Cache::Apply(WatchEventType type, ObjectPtr object) { impl_->Apply(type, std::move(object)); }
void Cache::Bookmark(const std::string& resource_version) { impl_->Bookmark(resource_version); }

}  // namespace lockkeeper
