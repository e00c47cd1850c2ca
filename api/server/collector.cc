#include "api/server/collector.h"

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "api/base/log.h"

namespace lockkeeper::apiserver {
namespace {

constexpr const char* kUser = "system:serviceaccount:kube-system:generic-garbage-collector";
constexpr const char* kForeground = "foregroundDeletion";
constexpr const char* kOrphan = "orphan";

bool Has(const Json& list, const char* item) {
  const Json::Array& items = list.AsArray();
  return std::find(items.begin(), items.end(), Json(item)) != items.end();
}

// Removes what `gone` answers true for; whether anything was removed.
template <typename Fn>
bool RemoveFrom(Json& list, Fn gone) {
  if (!list.IsArray()) return false;
  Json::Array& items = list.MutableArray();
  const auto end = std::remove_if(items.begin(), items.end(), gone);
  const bool changed = end != items.end();
  items.erase(end, items.end());
  return changed;
}

bool DropFinalizer(Json& object, const char* finalizer) {
  Json& list = object["metadata"]["finalizers"];
  const bool changed = RemoveFrom(list, [&](const Json& item) { return item.AsString() == finalizer; });
  if (list.empty()) object["metadata"].Remove("finalizers");
  return changed;
}

}  // namespace

Collector::Collector(Objects& objects, CollectorOptions options)
    : objects_(objects), store_(objects.store()), options_(std::move(options)) {}

Collector::~Collector() { Stop(); }

void Collector::Start() {
  thread_ = std::thread([this] { Run(); });
}

void Collector::Stop() {
  stopping_ = true;
  store_.hub().WakeAll();
  if (thread_.joinable()) thread_.join();
}

void Collector::Report(const std::string& what, const Status& status) {
  if (status.ok() || status.code() == Code::kCancelled) return;
  LogWarn("collector: cannot " + what, {{"error", status.ToString()}});
}

void Collector::Run() {
  auto next = std::chrono::steady_clock::now() + options_.housekeeping;
  while (!stopping_) {
    if (!watch_) {
      // The position first: what changes while everything is looked at comes again as an event.
      watch_ = std::make_unique<WatchHub::Watch>(store_.hub(), "*", "", store_.hub().revision());
      LookAtAll();
    }
    if (stopping_) break;  // Stop() may have woken everyone just before this watch was there
    const auto now = std::chrono::steady_clock::now();
    if (now >= next) {
      Housekeep();
      if (options_.also) options_.also();
      next = now + options_.housekeeping;
    }
    const auto patience = std::chrono::duration_cast<std::chrono::milliseconds>(next - now);
    Result<std::vector<EventPtr>> events = watch_->Next(std::max(patience, std::chrono::milliseconds(1)));
    if (events.ok()) {
      for (const EventPtr& event : *events) OnEvent(*event);
    } else if (events.code() == Code::kCancelled) {
      break;
    } else {
      Report("follow the store's changes", events.status());
      watch_.reset();
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
  }
  watch_.reset();
}

void Collector::CatchUp(std::chrono::milliseconds quiet) {
  if (!watch_) {
    watch_ = std::make_unique<WatchHub::Watch>(store_.hub(), "*", "", store_.hub().revision());
    LookAtAll();
  }
  while (true) {
    Result<std::vector<EventPtr>> events = watch_->Next(quiet);
    if (!events.ok() || events->empty()) return;
    for (const EventPtr& event : *events) OnEvent(*event);
  }
}

void Collector::LookAtAll() {
  std::vector<Key> owned;
  std::vector<Key> deleting;
  Report("read all owners", store_.Read([&](Session& session) -> Status {
    LK_ASSIGN_OR_RETURN(owned, session.Owned());
    LK_ASSIGN_OR_RETURN(deleting, session.BeingDeleted());
    return Status::Ok();
  }));
  for (const Key& key : owned) CheckOwners(key);
  for (const Key& key : deleting) CheckDeleting(key);
}

void Collector::OnEvent(const StoredEvent& event) {
  // Most events concern nothing of this; a look at the text spares the parsing.
  const bool deleting = event.value.find("\"deletionTimestamp\"") != std::string::npos;
  const bool owned = event.value.find("\"ownerReferences\"") != std::string::npos;
  if (event.type != EventType::kDeleted) {
    if (deleting) CheckDeleting(event.key);
    if (owned && event.type == EventType::kAdded) CheckOwners(event.key);
    return;
  }
  const Result<Json> object = Json::Parse(event.value);
  if (!object.ok()) return;
  std::vector<Key> dependents;
  std::vector<Key> owners;
  Report("read owners", store_.Read([&](Session& session) -> Status {
    LK_ASSIGN_OR_RETURN(dependents, session.OwnedBy(object->At({"metadata", "uid"}).AsString()));
    for (const Json& reference : object->At({"metadata", "ownerReferences"}).AsArray()) {
      LK_ASSIGN_OR_RETURN(const std::optional<Key> owner, session.FindUid(reference.Get("uid").AsString()));
      if (owner) owners.push_back(*owner);
    }
    return Status::Ok();
  }));
  for (const Key& key : dependents) CheckOwners(key);
  // An owner in foreground deletion may have waited for this one.
  for (const Key& key : owners) CheckDeleting(key);
  const auto ns = std::make_pair(event.key.cluster, event.key.ns);
  if (!event.key.ns.empty() && terminating_.count(ns) > 0) {
    CheckDeleting({event.key.cluster, "/namespaces", "", event.key.ns});
  }
  if (event.key.resource == "/namespaces") terminating_.erase({event.key.cluster, event.key.name});
}

void Collector::CheckOwners(const Key& key) {
  std::string uid;
  size_t references = 0;
  std::vector<std::string> gone;
  const Status read = store_.Read([&](Session& session) -> Status {
    LK_ASSIGN_OR_RETURN(const Record record, session.Get(key));
    LK_ASSIGN_OR_RETURN(const Json object, Json::Parse(record.value));
    uid = record.uid;
    for (const Json& reference : object.At({"metadata", "ownerReferences"}).AsArray()) {
      ++references;
      // What this server does not serve it cannot miss.
      if (objects_.catalog().FindKindOf(reference.Get("apiVersion").AsString(), reference.Get("kind").AsString()) ==
          nullptr) {
        continue;
      }
      LK_ASSIGN_OR_RETURN(const std::optional<Key> owner, session.FindUid(reference.Get("uid").AsString()));
      if (!owner) gone.push_back(reference.Get("uid").AsString());
    }
    return Status::Ok();
  });
  if (!read.ok()) {
    if (read.code() != Code::kNotFound) Report("read " + key.name, read);
    return;
  }
  if (gone.empty()) return;
  if (gone.size() == references) return Remove(key, uid, "Background");
  Report("drop owners of " + key.name, objects_.Adjust(key, [&](Json& object) {
    return RemoveFrom(object["metadata"]["ownerReferences"], [&](const Json& reference) {
      return std::find(gone.begin(), gone.end(), reference.Get("uid").AsString()) != gone.end();
    });
  }));
}

void Collector::Remove(const Key& key, const std::string& uid, const char* propagation) {
  const ApiResource* resource = objects_.catalog().FindStorage(key.resource);
  if (resource == nullptr) {
    // A kind that an older or newer version served; nobody can look after its finalizers.
    Report("remove " + key.name, store_.Write([&](Txn& txn) -> Status {
      Result<int64_t> removed = txn.Delete(key, 0);
      return removed.code() == Code::kNotFound ? Status::Ok() : removed.status();
    }));
    return;
  }
  WriteContext context;
  context.cluster = key.cluster;
  context.user = kUser;
  DeleteOptions options;
  options.uid = uid;
  options.propagation = propagation;
  Outcome<Deleted> deleted = objects_.Delete(context, *resource, key.ns, key.name, options);
  // 404 and 409: somebody else removed or re-made it.
  if (!deleted.ok() && deleted.error().code != 404 && deleted.error().code != 409) {
    LogWarn("collector: cannot delete " + key.name, {{"resource", key.resource}, {"error", deleted.error().message}});
  }
}

void Collector::CheckDeleting(const Key& key) {
  Result<Record> record = store_.Get(key);
  if (!record.ok()) {
    if (record.code() != Code::kNotFound) Report("read " + key.name, record.status());
    return;
  }
  const Result<Json> object = Json::Parse(record->value);
  if (!object.ok() || object->At({"metadata", "deletionTimestamp"}).IsNull()) return;
  if (key.resource == "/namespaces") return EmptyNamespace(key);
  const Json& finalizers = object->At({"metadata", "finalizers"});
  const bool foreground = Has(finalizers, kForeground);
  const bool orphan = Has(finalizers, kOrphan);
  if (!foreground && !orphan) return;
  struct Dependent {
    Key key;
    std::string uid;
    bool blocks = false;
    bool has_own = false;
  };
  std::vector<Dependent> dependents;
  const Status read = store_.Read([&](Session& session) -> Status {
    LK_ASSIGN_OR_RETURN(const std::vector<Key> keys, session.OwnedBy(record->uid));
    for (const Key& dependent : keys) {
      Result<Record> found = session.Get(dependent);
      if (!found.ok()) continue;
      LK_ASSIGN_OR_RETURN(const Json json, Json::Parse(found->value));
      Dependent entry{dependent, found->uid, false, false};
      for (const Json& reference : json.At({"metadata", "ownerReferences"}).AsArray()) {
        if (reference.Get("uid").AsString() == record->uid) entry.blocks = reference.Get("blockOwnerDeletion").AsBool();
      }
      LK_ASSIGN_OR_RETURN(const std::vector<Key> own, session.OwnedBy(found->uid));
      entry.has_own = !own.empty();
      dependents.push_back(std::move(entry));
    }
    return Status::Ok();
  });
  if (!read.ok()) return Report("read what depends on " + key.name, read);
  if (orphan) {
    for (const Dependent& dependent : dependents) {
      Report("orphan " + dependent.key.name, objects_.Adjust(dependent.key, [&](Json& json) {
        Json& list = json["metadata"]["ownerReferences"];
        const bool changed =
            RemoveFrom(list, [&](const Json& reference) { return reference.Get("uid").AsString() == record->uid; });
        if (list.empty()) json["metadata"].Remove("ownerReferences");
        return changed;
      }));
    }
    return Report("finish " + key.name, objects_.Adjust(key, [](Json& json) { return DropFinalizer(json, kOrphan); }));
  }
  bool blocked = false;
  for (const Dependent& dependent : dependents) {
    Remove(dependent.key, dependent.uid, dependent.has_own ? "Foreground" : "Background");
    blocked = blocked || (dependent.blocks && store_.Get(dependent.key).ok());
  }
  // Otherwise the last dependent's deletion brings this here again.
  if (!blocked)
    Report("finish " + key.name, objects_.Adjust(key, [](Json& json) { return DropFinalizer(json, kForeground); }));
}

void Collector::EmptyNamespace(const Key& ns) {
  terminating_.insert({ns.cluster, ns.name});
  auto content = [&](std::vector<Key>* keys) {
    return store_.Read([&](Session& session) -> Status {
      LK_ASSIGN_OR_RETURN(*keys, session.InNamespace(ns.cluster, ns.name));
      return Status::Ok();
    });
  };
  std::vector<Key> keys;
  Status status = content(&keys);
  for (const Key& key : keys) Remove(key, "", "");
  if (status.ok() && !keys.empty()) status = content(&keys);
  if (!status.ok()) return Report("read namespace " + ns.name, status);
  if (!keys.empty()) return;  // finalizers hold some; their deletion brings this here again
  Report("finish namespace " + ns.name, objects_.Adjust(ns, [](Json& object) {
    Json& list = object["spec"]["finalizers"];
    return RemoveFrom(list, [](const Json& item) { return item.AsString() == "kubernetes"; });
  }));
}

void Collector::Housekeep() {
  const auto before = objects_.clock().Read().wall - options_.event_ttl;
  const int64_t before_ms = std::chrono::duration_cast<std::chrono::milliseconds>(before.time_since_epoch()).count();
  Report("remove old Events", [&]() -> Status {
    constexpr int kStep = 500;
    size_t found = kStep;
    while (found == kStep && !stopping_) {
      std::vector<Record> old;
      const Status read = store_.Read([&](Session& session) -> Status {
        LK_ASSIGN_OR_RETURN(old, session.OlderThan("/events", before_ms, kStep));
        return Status::Ok();
      });
      if (!read.ok()) return read;
      found = old.size();
      if (old.empty()) break;
      const Status removed = store_.Write([&](Txn& txn) -> Status {
        for (const Record& record : old) {
          // Changed or gone meanwhile: not this time.
          Result<int64_t> gone = txn.Delete(record.key, record.revision);
          if (!gone.ok() && gone.code() != Code::kConflict && gone.code() != Code::kNotFound) return gone.status();
        }
        return Status::Ok();
      });
      if (!removed.ok()) return removed;
    }
    return Status::Ok();
  }());
  Report("compact the store's history", store_.Compact(options_.retention));
}

}  // namespace lockkeeper::apiserver
