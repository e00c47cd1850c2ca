// Clusters: logical clusters by path, and what a start writes into the shared store (2.4, 2.20, 4.8).
//
// Purpose:   "root:a:b" or a cluster's own name to the key that objects are stored under; the bootstrap objects.
// Ownership: values.
// Threads:   a Session or Txn belongs to one thread.
// Failure:   kNotFound for a path that leads nowhere; the store's Status.
#pragma once

#include <string>

#include "api/server/kcp/objects.h"
#include "api/server/kcp/options.h"

namespace lockkeeper::kcp {

// The cluster key of `path`. The first part is a cluster's name, each further one a Workspace that is scheduled.
Result<std::string> ResolveCluster(apiserver::Session& session, const std::string& path);

// The URLs of the Shard object, for a server that listens on `port`.
struct ShardUrls {
  std::string base;
  std::string external;
  std::string virtual_workspace;
};
ShardUrls ShardUrlsOf(const Options& options, int port);

// Namespaces (made once), the LogicalClusters root and system:admin and the Shard object (written at every start, as
// the last starter wins), in one transaction.
Status WriteBootstrap(apiserver::Store& store, const Options& options, int port);

}  // namespace lockkeeper::kcp
