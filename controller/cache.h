// Cache: the objects of one resource as the API server last told them, and as we last wrote them.
//
// Purpose:   reads without a round trip. Filled by a Reflector; our own writes go in at once (RecordWrite), so that a
//            reconcile never reads back an older state than it wrote; an event older than such a write is not
//            applied. Indexed by namespace, owner uid and functions of the user's.
// Ownership: objects are immutable and shared: a reader keeps its pointer without a copy. A small header is kept
//            parsed, the rest is compact JSON text without managedFields, parsed on demand.
// Threads:   thread-safe. Handlers run on the Reflector's thread, under no lock, and may only enqueue: one that
//            takes more than 10 ms is warned about.
// Failure:   none; waiting answers whether it came true.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/base/time.h"
#include "controller/api.h"

namespace lockkeeper {

struct CachedOwner {
  std::string kind;
  std::string name;
  std::string uid;
  bool controller = false;
};

class CachedObject {
 public:
  // Takes what it needs of `object` and keeps the rest as text.
  static std::shared_ptr<const CachedObject> Of(Json object);

  const ObjectKey& key() const { return key_; }
  const std::string& uid() const { return uid_; }
  const std::string& resource_version() const { return resource_version_; }
  // As a number, -1 when it is none.
  int64_t version() const { return version_; }
  int64_t generation() const { return generation_; }
  bool deleting() const { return deleting_; }
  const std::vector<std::pair<std::string, std::string>>& labels() const { return labels_; }
  // "" when absent.
  std::string Label(std::string_view name) const;
  const std::vector<CachedOwner>& owners() const { return owners_; }
  const CachedOwner* ControllerOwner() const;
  const std::string& text() const { return text_; }
  // A fresh value, the caller's own.
  Json Parse() const;

 private:
  ObjectKey key_;
  std::string uid_;
  std::string resource_version_;
  int64_t version_ = -1;
  int64_t generation_ = 0;
  bool deleting_ = false;
  std::vector<std::pair<std::string, std::string>> labels_;
  std::vector<CachedOwner> owners_;
  std::string text_;
};
using ObjectPtr = std::shared_ptr<const CachedObject>;  // shared: readers outlive the cache's entry

struct CacheEvent {
  enum class Type { kAdded, kUpdated, kDeleted };
  Type type = Type::kAdded;
  ObjectPtr old_object;    // what handlers were told last; null for kAdded
  ObjectPtr object;        // for kDeleted the last state known
  bool initial = false;    // of the first list, or told to a late handler
  bool unchanged = false;  // a resync that says what is known already
  bool own_write = false;  // the echo of a write of ours
};

class Cache {
 public:
  using Handler = std::function<void(const CacheEvent&)>;
  using Indexer = std::function<std::vector<std::string>(const CachedObject&)>;

  // Takes out of an object what no reader of the cache needs, and leaves metadata's names, versions and owners.
  using Trim = std::function<void(Json&)>;

  // Of one namespace, or of all (""). `selects` says which objects the list and watch give, when selectors leave
  // some out: our own writes of others are not kept. It sees what `trim` left.
  explicit Cache(Resource resource, std::string namespace_scope = "",
                 std::function<bool(const CachedObject&)> selects = nullptr, Trim trim = nullptr);
  ~Cache();
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  const Resource& resource() const { return resource_; }
  const std::string& namespace_scope() const { return namespace_; }

  // Before the first object.
  void AddIndex(const std::string& name, Indexer indexer);
  // A handler that comes late is told of all that is there, as initial.
  void AddHandler(Handler handler);

  // nullptr when there is none.
  ObjectPtr Get(const ObjectKey& key) const;
  // Ordered by namespace and name; "" is every namespace.
  std::vector<ObjectPtr> List(const std::string& of_namespace) const;
  std::vector<ObjectPtr> OwnedBy(const std::string& uid) const;
  std::vector<ObjectPtr> ByIndex(const std::string& index, const std::string& value) const;
  size_t size() const;
  size_t bytes() const;

  // The first list is in.
  bool HasSynced() const;
  bool WaitForSync(Duration timeout, const CancelToken* cancel = nullptr) const;
  // Up to here the cache has seen everything (list, events, bookmarks).
  std::string resource_version() const;
  // Until the cache has seen at least that version. False at the timeout.
  bool WaitForVersion(const std::string& resource_version, Duration timeout) const;
  // Time since the last list, event or bookmark.
  Duration SinceLastActivity() const;

  // Our own writes: the object as the server answered it, or what we deleted for good.
  void RecordWrite(const Json& object);
  void RecordDelete(const ObjectKey& key, const std::string& uid);

  // For the Reflector: an object as it is kept here; then what to do with such.
  ObjectPtr Make(Json object) const;
  void Replace(std::vector<ObjectPtr> objects, const std::string& resource_version);
  void Apply(WatchEventType type, ObjectPtr object);
  void Bookmark(const std::string& resource_version);

 private:
  class Impl;
  const Resource resource_;
  const std::string namespace_;
  const std::function<bool(const CachedObject&)> selects_;
  const Trim trim_;
  std::unique_ptr<Impl> impl_;
};

// For a cache whose readers ask only for names, owners and a few members: metadata without its annotations, and these
// members of others ({"spec", "serverRef"}).
Cache::Trim KeepOnly(std::vector<std::pair<std::string, std::string>> members);

// Api that tells caches of each write that went through it.
class WriteThroughApi : public Api {
 public:
  // Borrows both. Caches are added before the first call.
  explicit WriteThroughApi(Api& inner) : inner_(inner) {}
  void AddCache(Cache& cache) { caches_.push_back(&cache); }

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
  Result<Json> Record(const Resource& resource, Result<Json> answer);

  Api& inner_;
  std::vector<Cache*> caches_;
};

}  // namespace lockkeeper
