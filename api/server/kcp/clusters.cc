#include "api/server/kcp/clusters.h"

#include <utility>

#include "api/server/kcp/root_files.h"

namespace lockkeeper::kcp {
namespace {

// Creates, or runs `fill` over what is there and replaces it.
template <typename Fill>
Status Upsert(apiserver::Txn& txn, apiserver::Key key, std::string_view api_version, std::string_view kind,
              const Fill& fill) {
  auto object = ReadObject(txn, key);
  if (!object.ok() && object.code() != Code::kNotFound) return object.status();
  Object result = object.ok() ? std::move(*object) : NewObject(std::move(key), api_version, kind, SystemClock().Read());
  fill(result.json);
  return WriteObject(txn, &result);
}

Status EnsureNamespace(apiserver::Txn& txn, const std::string& cluster, const std::string& name) {
  const apiserver::Key key{cluster, kNamespaces, "", name};
  const auto record = txn.Get(key);
  if (record.code() != Code::kNotFound) return record.status();
  return Upsert(txn, key, "v1", "Namespace", [](Json& json) { json["status"].Set("phase", "Active"); });
}

}  // namespace

Result<std::string> ResolveCluster(apiserver::Session& session, const std::string& path) {
  const Status unknown(Code::kNotFound, "there is no cluster " + path);
  size_t colon = path.find(':');
  if (path.rfind("system:", 0) == 0) colon = path.find(':', sizeof("system:") - 1);
  std::string cluster = path.substr(0, colon);
  const auto logical = session.Get({cluster, kLogicalClusters, "", "cluster"});
  if (!logical.ok()) return logical.code() == Code::kNotFound ? unknown : logical.status();
  while (colon != std::string::npos) {
    const size_t next = path.find(':', colon + 1);
    const std::string name = path.substr(colon + 1, next == std::string::npos ? next : next - colon - 1);
    const auto workspace = ReadObject(session, {cluster, kWorkspaces, "", name});
    if (!workspace.ok()) return workspace.code() == Code::kNotFound ? unknown : workspace.status();
    cluster = workspace->json.At({"spec", "cluster"}).AsString();
    if (cluster.empty()) return unknown;
    colon = next;
  }
  return cluster;
}

ShardUrls ShardUrlsOf(const Options& options, int port) {
  ShardUrls urls;
  urls.base = ExternalBaseUrl(options, port);
  urls.external = options.shard_external_url.empty() ? urls.base : options.shard_external_url;
  urls.virtual_workspace =
      options.shard_virtual_workspace_url.empty() ? urls.base : options.shard_virtual_workspace_url;
  return urls;
}

Status WriteBootstrap(apiserver::Store& store, const Options& options, int port) {
  const ShardUrls urls = ShardUrlsOf(options, port);
  return store.Write([&](apiserver::Txn& txn) -> Status {
    for (const char* cluster : {kAdminCluster, kRootCluster}) {
      LK_RETURN_IF_ERROR(EnsureNamespace(txn, cluster, "default"));
      LK_RETURN_IF_ERROR(EnsureNamespace(txn, cluster, "kube-system"));
      LK_RETURN_IF_ERROR(Upsert(txn, {cluster, kLogicalClusters, "", "cluster"}, "core.kcp.io/v1alpha1",
                                "LogicalCluster", [&](Json& json) {
                                  json["status"].Set("phase", "Ready");
                                  json["status"].Set("URL", urls.external + "/clusters/" + cluster);
                                }));
    }
    if (options.lease_namespace != "kube-system" && options.lease_namespace != "default") {
      LK_RETURN_IF_ERROR(EnsureNamespace(txn, kAdminCluster, options.lease_namespace));
    }
    return Upsert(txn, {kRootCluster, kShards, "", options.shard_name}, "core.kcp.io/v1alpha1", "Shard",
                  [&](Json& json) {
                    Json& spec = json["spec"];
                    spec.Set("baseURL", urls.base);
                    spec.Set("externalURL", urls.external);
                    spec.Set("virtualWorkspaceURL", urls.virtual_workspace);
                  });
  });
}

}  // namespace lockkeeper::kcp
