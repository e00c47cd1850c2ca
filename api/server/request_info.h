// RequestInfo: what a request is about, from its method, path and query.
// Ownership: a value. Threads: pure. Failure: an unknown path is Target::kUnknown.
#pragma once

#include <string>

#include "api/transport/http_server.h"

namespace lockkeeper::apiserver {

enum class Target {
  kUnknown,
  kHealth,  // /healthz /readyz /livez, with sub-paths
  kVersion,
  kMetrics,
  kDiscovery,  // /api /apis /apis/G /api/V /apis/G/V
  kOpenApi,    // /openapi/…
  kResource,
};

struct RequestInfo {
  Target target = Target::kUnknown;
  bool has_cluster = false;  // the path began with /clusters/<cluster_path>
  std::string cluster_path;  // "root:a:b", "system:admin", "*"
  std::string cluster;       // the store's cluster key, after the cluster hook
  std::string path;          // without the /clusters part
  // Of Target::kResource:
  std::string verb;  // get list watch create update patch delete deletecollection
  std::string group, version, resource, ns, name, subresource;

  bool IsWatch() const { return verb == "watch"; }
};

// `clusters`: whether a /clusters/<path> prefix is understood.
RequestInfo ParseRequest(const HttpRequest& request, bool clusters);

// A request for ApiServer::Call: `target` is path and query, percent-encoded as in HTTP.
HttpRequest MakeRequest(std::string method, const std::string& target, std::string body = "",
                        std::string content_type = "application/json");

}  // namespace lockkeeper::apiserver
