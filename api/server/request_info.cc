#include "api/server/request_info.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "api/transport/http_client.h"

namespace lockkeeper::apiserver {
namespace {

std::vector<std::string> Split(const std::string& path) {
  std::vector<std::string> parts;
  size_t at = 0;
  while (at < path.size()) {
    const size_t slash = path.find('/', at);
    const size_t end = slash == std::string::npos ? path.size() : slash;
    if (end > at) parts.push_back(path.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

std::string VerbOf(const HttpRequest& request, const RequestInfo& info) {
  const std::string& method = request.method;
  if (method == "GET" || method == "HEAD") {
    const std::string watch = request.Query("watch");
    if (watch == "true" || watch == "1") return "watch";
    return info.name.empty() ? "list" : "get";
  }
  if (method == "POST") return "create";
  if (method == "PUT") return "update";
  if (method == "PATCH") return "patch";
  if (method == "DELETE") return info.name.empty() ? "deletecollection" : "delete";
  return "";
}

void ParseResource(const std::vector<std::string>& parts, size_t at, RequestInfo& info) {
  // namespaces/NS/RESOURCE… is namespaced; namespaces[/NS[/status|finalize]] is the Namespace itself.
  if (parts[at] == "namespaces" && parts.size() > at + 2 && parts[at + 2] != "status" && parts[at + 2] != "finalize") {
    info.ns = parts[at + 1];
    at += 2;
  }
  info.resource = parts[at];
  if (parts.size() > at + 1) info.name = parts[at + 1];
  if (parts.size() > at + 2) info.subresource = parts[at + 2];
  if (parts.size() > at + 3) return;  // nothing of ours is that deep
  info.target = Target::kResource;
}

}  // namespace

RequestInfo ParseRequest(const HttpRequest& request, bool clusters) {
  RequestInfo info;
  info.path = request.path;
  if (clusters && info.path.rfind("/clusters/", 0) == 0) {
    const size_t slash = info.path.find('/', 10);
    info.has_cluster = true;
    info.cluster_path = info.path.substr(10, slash == std::string::npos ? slash : slash - 10);
    info.path = slash == std::string::npos ? "/" : info.path.substr(slash);
  }
  const std::vector<std::string> parts = Split(info.path);
  if (parts.empty()) return info;
  const std::string& first = parts[0];
  if (first == "healthz" || first == "readyz" || first == "livez") {
    info.target = Target::kHealth;
  } else if (first == "version" && parts.size() == 1) {
    info.target = Target::kVersion;
  } else if (first == "metrics" && parts.size() == 1) {
    info.target = Target::kMetrics;
  } else if (first == "openapi") {
    info.target = Target::kOpenApi;
  } else if (first == "api") {
    if (parts.size() <= 2) {
      info.target = Target::kDiscovery;
      if (parts.size() == 2) info.version = parts[1];
    } else {
      info.version = parts[1];
      ParseResource(parts, 2, info);
    }
  } else if (first == "apis") {
    if (parts.size() > 1) info.group = parts[1];
    if (parts.size() > 2) info.version = parts[2];
    if (parts.size() <= 3) {
      info.target = Target::kDiscovery;
    } else {
      ParseResource(parts, 3, info);
    }
  }
  if (info.target == Target::kResource) info.verb = VerbOf(request, info);
  return info;
}

HttpRequest MakeRequest(std::string method, const std::string& target, std::string body, std::string content_type) {
  HttpRequest request;
  request.method = std::move(method);
  request.target = target;
  const size_t mark = target.find('?');
  request.path = PercentDecode(target.substr(0, mark));
  std::string query = mark == std::string::npos ? "" : target.substr(mark + 1);
  while (!query.empty()) {
    const std::string pair = query.substr(0, query.find('&'));
    const size_t equals = std::min(pair.find('='), pair.size());
    request.query.emplace(PercentDecode(pair.substr(0, equals)),
                          PercentDecode(pair.substr(std::min(equals + 1, pair.size()))));
    query.erase(0, pair.size() + 1);
  }
  if (!body.empty()) request.headers.emplace("content-type", std::move(content_type));
  request.body = std::move(body);
  request.peer = "in process";
  return request;
}

}  // namespace lockkeeper::apiserver
