// Api: the Kubernetes API as the runtime and the reconcilers see it.
//
// Purpose:   the one port to an API server: objects as Json, addressed by resource, namespace and name. HttpApi
//            (http_api.h) is the real one, typed.h puts structs on top; tests run on an in-memory one.
// Ownership: an Api outlives what borrows it.
// Threads:   thread-safe.
// Failure:   the server's reason decides the Code: NotFound kNotFound, AlreadyExists kAlreadyExists, Conflict
//            kConflict, Gone and Expired kExpired (so is a resourceVersion that the server has not reached),
//            Invalid and BadRequest kInvalid with each cause in the message, Unauthorized kUnauthorized, Forbidden
//            kForbidden, MethodNotAllowed and UnsupportedMediaType kUnsupported, TooManyRequests,
//            ServiceUnavailable and the like kUnavailable, Timeout kTimeout. Messages begin with verb and object.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/json.h"
#include "api/base/time.h"
#include "api/transport/http_client.h"

namespace lockkeeper {

struct Resource {
  std::string group;    // "" for core
  std::string version;  // "v1alpha1"
  std::string plural;   // "servers"
  std::string kind;     // "Server"
  bool namespaced = true;

  std::string ApiVersion() const { return group.empty() ? version : group + "/" + version; }
  // "servers.lockkeeper.dev", as RBAC and kubectl name it.
  std::string GroupResource() const { return group.empty() ? plural : plural + "." + group; }
  bool operator==(const Resource&) const = default;
  auto operator<=>(const Resource&) const = default;
};

// A namespace and a name; the namespace is empty for cluster-scoped objects.
struct ObjectKey {
  std::string namespace_;
  std::string name;

  static ObjectKey Of(const Json& object);
  std::string ToString() const {
    return namespace_.empty() || name.empty() ? namespace_ + name : namespace_ + "/" + name;
  }
  bool operator==(const ObjectKey&) const = default;
  auto operator<=>(const ObjectKey&) const = default;
};

struct ListOptions {
  std::string label_selector{};
  std::string field_selector{};
  std::string resource_version{};        // "" newest, "0" any, else at least that
  std::string resource_version_match{};  // "", Exact, NotOlderThan
  int limit = 0;                         // 0: all
  std::string continue_token{};
};

struct ListMeta {
  std::string resource_version;
  std::string continue_token;
};

struct ObjectList {
  std::vector<Json> items;
  ListMeta meta;
};

struct WatchOptions {
  std::string label_selector{};
  std::string field_selector{};
  std::string resource_version{};
  std::string resource_version_match{};
  bool allow_bookmarks = true;
  bool send_initial_events = false;  // WatchList; needs resource_version_match NotOlderThan
  int timeout_seconds = 0;           // 0: the server's choice
  std::chrono::milliseconds idle_timeout{std::chrono::seconds(75)};  // without a byte: kTimeout
};

enum class WatchEventType { kAdded, kModified, kDeleted, kBookmark };

struct WatchEvent {
  WatchEventType type = WatchEventType::kAdded;
  Json object;
};

enum class PatchType { kMerge, kJson };

struct DeleteOptions {
  std::string uid{};  // preconditions: kConflict when they do not hold
  std::string resource_version{};
  std::string propagation{};  // "", Background, Foreground, Orphan
};

class Api {
 public:
  virtual ~Api() = default;

  virtual Result<Json> Get(const Resource& resource, const ObjectKey& key) = 0;
  // Calls `on_item` for each object, one at a time, and answers where the list stood. All namespaces for "".
  virtual Result<ListMeta> ListEach(const Resource& resource, const std::string& namespace_, const ListOptions& options,
                                    const std::function<void(Json)>& on_item) = 0;
  // The object names its namespace, and its name or generateName. Answers what the server stored.
  virtual Result<Json> Create(const Resource& resource, const Json& object) = 0;
  // With metadata.resourceVersion: optimistic lock, kConflict when it has moved.
  virtual Result<Json> Update(const Resource& resource, const Json& object) = 0;
  virtual Result<Json> UpdateStatus(const Resource& resource, const Json& object) = 0;
  // `subresource`: "" or "status". A merge patch with metadata.resourceVersion in it is an optimistic lock.
  virtual Result<Json> Patch(const Resource& resource, const ObjectKey& key, PatchType type, const Json& patch,
                             const std::string& subresource) = 0;
  // The object as it stays for its finalizers, or null once it is gone.
  virtual Result<Json> Delete(const Resource& resource, const ObjectKey& key, const DeleteOptions& options) = 0;
  // Calls `on_event` until it answers false (ok), the server ends the stream in order (ok), or an error. An ERROR
  // event of the stream is an error like an HTTP status of its code. `cancel` may be null.
  virtual Status Watch(const Resource& resource, const std::string& namespace_, const WatchOptions& options,
                       const std::function<bool(WatchEvent)>& on_event, const CancelToken* cancel) = 0;

  // All pages, in one.
  Result<ObjectList> List(const Resource& resource, const std::string& namespace_, ListOptions options);
};

// Says until when writes may be sent: the leader's lease. Checked by HttpApi before each write.
class WriteFence {
 public:
  virtual ~WriteFence() = default;
  // Time left in which a write may still be under way; zero or less: none may be sent.
  virtual Duration Left() const = 0;
};

// "ns/name" metadata read from an object.
const std::string& ResourceVersionOf(const Json& object);
const std::string& UidOf(const Json& object);
// A resourceVersion as a number; client-go compares those of one resource so. -1 when it is none.
int64_t ResourceVersionNumber(std::string_view resource_version);

// The error that a Status object (kind: Status) or an HTTP status without one speaks of.
Status StatusOfAnswer(int http_status, const Json& body, std::string_view attempt);

}  // namespace lockkeeper
