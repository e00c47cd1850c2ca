// Objects: what the kcp-like server itself writes into the shared store: Leases, Namespaces, Shards, Workspaces.
//
// Purpose:   JSON objects in and out of the store in the form that the request handler stores, so that both see
//            each other's.
// Ownership: values.
// Threads:   the store's; a Session or Txn belongs to one thread.
// Failure:   the store's Status.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "api/base/json.h"
#include "api/base/time.h"
#include "api/server/store.h"

namespace lockkeeper::kcp {

inline constexpr char kRootCluster[] = "root";
inline constexpr char kAdminCluster[] = "system:admin";

inline constexpr char kNamespaces[] = "/namespaces";
inline constexpr char kLeases[] = "coordination.k8s.io/leases";
inline constexpr char kWorkspaces[] = "tenancy.kcp.io/workspaces";
inline constexpr char kLogicalClusters[] = "core.kcp.io/logicalclusters";
inline constexpr char kShards[] = "core.kcp.io/shards";

// Which version of the product wrote an object last (S11).
inline constexpr char kVersionAnnotation[] = "lockkeeper.dev/written-by";

struct Object {
  apiserver::Key key;
  Json json;             // without metadata.resourceVersion
  int64_t revision = 0;  // 0: not stored yet
};

// {apiVersion, kind, metadata: {name, namespace, uid, creationTimestamp, annotation}}, revision 0.
Object NewObject(apiserver::Key key, std::string_view api_version, std::string_view kind, const Now& now);

Result<Object> ReadObject(apiserver::Session& session, const apiserver::Key& key);

// Stamps the version, then creates (revision 0) or replaces exactly the version read; sets object->revision.
Status WriteObject(apiserver::Txn& txn, Object* object);

bool IsDeleting(const Json& object);
bool HasFinalizer(const Json& object, std::string_view name);
void AddFinalizer(Json& object, std::string_view name);
void RemoveFinalizer(Json& object, std::string_view name);

// kcp's conditions carry no observedGeneration. lastTransitionTime moves with the status only.
void SetCondition(Json& object, std::string_view type, bool status, const Now& now, std::string_view reason = "",
                  std::string_view message = "");

}  // namespace lockkeeper::kcp
