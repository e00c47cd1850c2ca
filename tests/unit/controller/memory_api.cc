#include "tests/unit/controller/memory_api.h"

#include "api/base/id.h"

namespace lockkeeper {

namespace {

std::string Named(const Resource& resource, const ObjectKey& key) {
  return resource.GroupResource() + " \"" + key.name + "\"";
}

void MergePatch(Json& target, const Json& patch) {
  if (!patch.IsObject()) {
    target = patch;
    return;
  }
  if (!target.IsObject()) target = Json::MakeObject();
  for (const auto& [name, value] : patch.AsObject()) {
    if (value.IsNull()) {
      target.Remove(name);
    } else {
      MergePatch(target[name], value);
    }
  }
}

}  // namespace

void MemoryApi::SetBefore(Before before) {
  MutexLock lock(mutex_);
  before_ = std::move(before);
}

void MemoryApi::LoseReplyOf(const std::string& verb) {
  MutexLock lock(mutex_);
  lose_reply_of_ = verb;
}

std::vector<std::string> MemoryApi::Calls() const {
  MutexLock lock(mutex_);
  return calls_;
}

Status MemoryApi::Enter(const std::string& verb, const Resource& resource, const ObjectKey& key) {
  Before before;
  {
    MutexLock lock(mutex_);
    calls_.push_back(verb + " " + resource.plural + " " + key.ToString());
    before = before_;
  }
  return before ? before(verb, resource, key) : Status();
}

Result<Json> MemoryApi::Leave(const std::string& verb, Result<Json> answer) {
  MutexLock lock(mutex_);
  if (!answer.ok() || lose_reply_of_ != verb) return answer;
  lose_reply_of_.clear();
  return Status(Code::kUnavailable, "the reply was lost");
}

Json MemoryApi::Store(const Resource& resource, Json object, WatchEventType type) {
  object["metadata"].Set("resourceVersion", std::to_string(++version_));
  const ObjectKey key = ObjectKey::Of(object);
  if (type == WatchEventType::kDeleted) {
    objects_[resource].erase(key);
  } else {
    objects_[resource][key] = object;
  }
  log_.push_back({version_, resource, {type, object}});
  changed_.NotifyAll();
  return object;
}

Result<Json> MemoryApi::Get(const Resource& resource, const ObjectKey& key) {
  LK_RETURN_IF_ERROR(Enter("get", resource, key));
  MutexLock lock(mutex_);
  const auto& objects = objects_[resource];
  const auto it = objects.find(key);
  if (it == objects.end()) return Status(Code::kNotFound, Named(resource, key) + " not found");
  return it->second;
}

Result<ListMeta> MemoryApi::ListEach(const Resource& resource, const std::string& namespace_, const ListOptions&,
                                     const std::function<void(Json)>& on_item) {
  LK_RETURN_IF_ERROR(Enter("list", resource, {namespace_, ""}));
  std::vector<Json> items;
  ListMeta meta;
  {
    MutexLock lock(mutex_);
    for (const auto& [key, object] : objects_[resource]) {
      if (namespace_.empty() || key.namespace_ == namespace_) items.push_back(object);
    }
    meta.resource_version = std::to_string(version_);
  }
  for (Json& item : items) on_item(std::move(item));
  return meta;
}

Result<Json> MemoryApi::Create(const Resource& resource, const Json& object) {
  Json fresh = object;
  Json& metadata = fresh["metadata"];
  if (metadata.Get("name").AsString().empty()) {
    metadata.Set("name", metadata.Get("generateName").AsString() + RandomName(5));
  }
  const ObjectKey key = ObjectKey::Of(fresh);
  LK_RETURN_IF_ERROR(Enter("create", resource, key));
  Json stored;
  {
    MutexLock lock(mutex_);
    if (objects_[resource].contains(key)) return Status(Code::kAlreadyExists, Named(resource, key) + " already exists");
    metadata.Set("uid", NewUuid());
    metadata.Set("generation", 1);
    stored = Store(resource, std::move(fresh), WatchEventType::kAdded);
  }
  return Leave("create", stored);
}

Result<Json> MemoryApi::Write(const Resource& resource, const Json& object, bool status) {
  const ObjectKey key = ObjectKey::Of(object);
  MutexLock lock(mutex_);
  auto& objects = objects_[resource];
  const auto it = objects.find(key);
  if (it == objects.end()) return Status(Code::kNotFound, Named(resource, key) + " not found");
  const std::string& version = ResourceVersionOf(object);
  if (!version.empty() && version != ResourceVersionOf(it->second)) {
    return Status(Code::kConflict, Named(resource, key) + ": the object has been modified");
  }
  Json fresh = status ? it->second : object;
  if (status) {
    fresh.Set("status", object.Get("status"));
  } else if (it->second.Has("status")) {
    fresh.Set("status", it->second.Get("status"));
  }
  Json& metadata = fresh["metadata"];
  metadata.Set("uid", UidOf(it->second));
  const bool spec_changed = !(fresh.Get("spec") == it->second.Get("spec"));
  metadata.Set("generation", it->second.At({"metadata", "generation"}).AsInt() + (spec_changed ? 1 : 0));
  metadata.Set("resourceVersion", ResourceVersionOf(it->second));
  if (fresh == it->second) return fresh;  // nothing changed: no event
  const bool gone = !metadata.Get("deletionTimestamp").IsNull() && metadata.Get("finalizers").empty();
  return Store(resource, std::move(fresh), gone ? WatchEventType::kDeleted : WatchEventType::kModified);
}

Result<Json> MemoryApi::Update(const Resource& resource, const Json& object) {
  LK_RETURN_IF_ERROR(Enter("update", resource, ObjectKey::Of(object)));
  return Leave("update", Write(resource, object, false));
}

Result<Json> MemoryApi::UpdateStatus(const Resource& resource, const Json& object) {
  LK_RETURN_IF_ERROR(Enter("updateStatus", resource, ObjectKey::Of(object)));
  return Leave("updateStatus", Write(resource, object, true));
}

Result<Json> MemoryApi::Patch(const Resource& resource, const ObjectKey& key, PatchType type, const Json& patch,
                              const std::string& subresource) {
  LK_RETURN_IF_ERROR(Enter("patch", resource, key));
  if (type != PatchType::kMerge) return Status(Code::kUnsupported, "MemoryApi knows merge patches only");
  Json object;
  {
    MutexLock lock(mutex_);
    const auto& objects = objects_[resource];
    const auto it = objects.find(key);
    if (it == objects.end()) return Status(Code::kNotFound, Named(resource, key) + " not found");
    object = it->second;
  }
  MergePatch(object, patch);
  return Leave("patch", Write(resource, object, subresource == "status"));
}

Result<Json> MemoryApi::Delete(const Resource& resource, const ObjectKey& key, const DeleteOptions& options) {
  LK_RETURN_IF_ERROR(Enter("delete", resource, key));
  MutexLock lock(mutex_);
  auto& objects = objects_[resource];
  const auto it = objects.find(key);
  if (it == objects.end()) return Status(Code::kNotFound, Named(resource, key) + " not found");
  if (!options.uid.empty() && options.uid != UidOf(it->second)) {
    return Status(Code::kConflict, Named(resource, key) + ": the uid is another one");
  }
  Json object = it->second;
  if (object.At({"metadata", "finalizers"}).empty()) {
    (void)Store(resource, std::move(object), WatchEventType::kDeleted);
    return Json();
  }
  object["metadata"].Set("deletionTimestamp", "2027-01-15T08:00:00Z");
  return Store(resource, std::move(object), WatchEventType::kModified);
}

Status MemoryApi::Watch(const Resource& resource, const std::string& namespace_, const WatchOptions& options,
                        const std::function<bool(WatchEvent)>& on_event, const CancelToken* cancel) {
  LK_RETURN_IF_ERROR(Enter("watch", resource, {namespace_, ""}));
  if (options.send_initial_events) return {Code::kInvalid, "sendInitialEvents is not supported"};
  int64_t seen = ResourceVersionNumber(options.resource_version);
  while (true) {
    std::vector<WatchEvent> events;
    {
      MutexLock lock(mutex_);
      for (const Logged& logged : log_) {
        if (logged.version <= seen) continue;
        seen = logged.version;
        const bool mine = namespace_.empty() || ObjectKey::Of(logged.event.object).namespace_ == namespace_;
        if (logged.resource == resource && mine) events.push_back(logged.event);
      }
      if (events.empty()) {
        if (cancel != nullptr && cancel->cancelled()) return {Code::kCancelled, "cancelled"};
        changed_.WaitFor(mutex_, std::chrono::milliseconds(5));  // a token cannot wake a CondVar
      }
    }
    for (WatchEvent& event : events) {
      if (!on_event(std::move(event))) return {};
    }
  }
}

}  // namespace lockkeeper
