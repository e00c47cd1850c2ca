// Objects: create, read, update, patch, delete over the store, with the rules of object_rules.h.
//
// Purpose:   what a request does once it is parsed, and what the collector and in-process callers use without HTTP.
// Ownership: borrows the store, the catalog and the clock.
// Threads:   thread-safe. Writes are compare-and-swap loops: a lost race is tried again unless the client named a
//            resourceVersion.
// Failure:   ApiError.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "api/server/catalog.h"
#include "api/server/object_rules.h"
#include "api/server/store.h"

namespace lockkeeper::apiserver {

// What an admission hook sees. It may change `object`.
struct Admission {
  enum class Operation { kCreate, kUpdate, kDelete } operation = Operation::kCreate;
  const ApiResource* resource = nullptr;
  Key key;
  std::string user;
  bool status = false;
  Json* object = nullptr;     // kDelete: the object as it is
  const Json* old = nullptr;  // kUpdate
};
using AdmitFn = std::function<std::optional<ApiError>(Admission&)>;

struct WriteContext {
  std::string cluster;
  std::string user;
  bool dry_run = false;
  BodyOptions body;
  std::vector<std::string> warnings;  // filled
};

enum class PatchType { kMerge, kJson, kStrategic };

struct Deleted {
  Json object;
  bool gone = false;  // false: finalizers hold it
};

class Objects {
 public:
  // `admit` may be empty. `need_namespaces`: a namespaced object's Namespace must exist and not be terminating.
  Objects(Store& store, const Catalog& catalog, const Clock& clock, AdmitFn admit, bool need_namespaces);

  Outcome<Json> Get(const std::string& cluster, const ApiResource& resource, const std::string& ns,
                    const std::string& name);
  Outcome<Json> Create(WriteContext& context, const ApiResource& resource, const std::string& ns, const Json& body);
  // A PUT. `created` is set when the kind creates on update and nothing was there.
  Outcome<Json> Replace(WriteContext& context, const ApiResource& resource, const std::string& ns,
                        const std::string& name, bool status, const Json& body, bool* created);
  Outcome<Json> Patch(WriteContext& context, const ApiResource& resource, const std::string& ns,
                      const std::string& name, bool status, PatchType type, const Json& patch);
  Outcome<Deleted> Delete(WriteContext& context, const ApiResource& resource, const std::string& ns,
                          const std::string& name, const DeleteOptions& options);
  // For the server itself: changes the object as `change` says (nullopt: leave it), past admission and validation.
  // The last finalizer's going removes the object.
  Status Adjust(const Key& key, const std::function<bool(Json& object)>& change);

  Store& store() { return store_; }
  const Catalog& catalog() const { return catalog_; }
  const Clock& clock() const { return clock_; }

 private:
  using Change = std::function<Outcome<Json>(const Json& old)>;
  Outcome<Json> Update(WriteContext& context, const ApiResource& resource, const Key& key, const UpdateFacts& facts,
                       const Change& change);
  // Inside the write: the Namespace of `key` is there and not going away.
  std::optional<ApiError> CheckNamespace(Session& session, const Key& key);
  std::optional<ApiError> CheckSize(const std::string& value) const;

  Store& store_;
  const Catalog& catalog_;
  const Clock& clock_;
  const AdmitFn admit_;
  const bool need_namespaces_;
};

}  // namespace lockkeeper::apiserver
