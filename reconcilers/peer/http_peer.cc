#include "reconcilers/peer/http_peer.h"

#include <algorithm>
#include <utility>

#include "reconcilers/peer/peer_answers.h"
#include "reconcilers/peer/peer_clients.h"

namespace lockkeeper {
namespace {

constexpr std::chrono::milliseconds kCallTimeout = std::chrono::seconds(5);
constexpr int kMaxPages = 100;

Result<std::string> LeaseTarget(const ServerSpec& spec) {
  if (!spec.lease || spec.lease->name.empty()) return Status(Code::kInvalid, "spec.lease names no Lease");
  return spec.lease->path + "/apis/coordination.k8s.io/v1/namespaces/" + PercentEncode(spec.lease->namespace_) +
         "/leases/" + PercentEncode(spec.lease->name);
}

// Where probe objects are made and listed.
Result<std::string> ProbeTarget(const ServerSpec& spec) {
  switch (spec.probe.type) {
    case ProbeType::kWorkspace:
      return "/clusters/" + spec.probe.workspace.value_or(WorkspaceProbe()).parent +
             "/apis/tenancy.kcp.io/v1alpha1/workspaces";
    case ProbeType::kConfigMap:
      return "/api/v1/namespaces/" + PercentEncode(spec.probe.config_map.value_or(ConfigMapProbe()).namespace_) +
             "/configmaps";
    case ProbeType::kNone: break;
  }
  return Status(Code::kInvalid, "spec.probe.type is None: there is no probe object");
}

}  // namespace

HttpPeer::HttpPeer(const Clock& clock, const CancelToken* cancel)
    : clock_(clock), cancel_(cancel), clients_(std::make_unique<peer::PeerClients>(clock)) {}

HttpPeer::~HttpPeer() = default;

Result<ReadyzFact> HttpPeer::Readyz(const ServerSpec& spec, int port) {
  const ReadinessSpec& readiness = spec.template_.readiness;
  ClientRequest request;
  request.target = readiness.path;
  request.timeout = std::chrono::milliseconds(std::max<int64_t>(readiness.attempt_timeout_milliseconds, 1));
  LK_ASSIGN_OR_RETURN(const ClientResponse answer, clients_->CallPort(readiness, port, request, cancel_));
  return peer::ReadyzOfAnswer(answer);
}

Result<ClientResponse> HttpPeer::Call(const ServerSpec& spec, const std::string& method, const std::string& target,
                                      const std::string& body) {
  if (!spec.access || spec.access->kubeconfig_file.empty()) {
    return Status(Code::kInvalid, "spec.access.kubeconfigFile is not set: the agent cannot speak to the server");
  }
  ClientRequest request;
  request.method = method;
  request.target = target;
  request.body = body;
  request.timeout = kCallTimeout;
  const bool strip_cluster = target.rfind("/clusters/", 0) == 0;
  return clients_->CallAccess(*spec.access, strip_cluster, std::move(request), cancel_);
}

Result<Json> HttpPeer::CallJson(const ServerSpec& spec, const std::string& method, const std::string& target,
                                const std::string& body, const std::string& name) {
  const std::string attempt = method + " " + target;
  LK_ASSIGN_OR_RETURN(const ClientResponse answer, Call(spec, method, target, body));
  const Status status = peer::StatusOfAnswer(answer, name);
  if (!status.ok()) return status.Annotate(attempt);
  auto json = Json::Parse(answer.body);
  if (!json.ok()) return Status(Code::kInternal, attempt + ": the answer is no JSON: " + json.status().message());
  return json;
}

Result<LeaseFact> HttpPeer::GetLease(const ServerSpec& spec) {
  LK_ASSIGN_OR_RETURN(const std::string target, LeaseTarget(spec));
  const Time sent = clock_.Read().wall;
  LK_ASSIGN_OR_RETURN(const Json lease, CallJson(spec, "GET", target, "", spec.lease->name));
  return peer::LeaseOf(lease, sent);
}

Status HttpPeer::DeleteLease(const ServerSpec& spec, const LeaseFact& lease) {
  LK_ASSIGN_OR_RETURN(const std::string target, LeaseTarget(spec));
  if (lease.uid.empty() || lease.resource_version.empty()) {
    return Status(Code::kInvalid, "deleting a Lease needs the uid and resourceVersion that were read");
  }
  return CallJson(spec, "DELETE", target, peer::GuardedDelete(lease).Dump(), spec.lease->name).status();
}

Status HttpPeer::CreateProbe(const ServerSpec& spec, const std::string& name) {
  LK_ASSIGN_OR_RETURN(const std::string target, ProbeTarget(spec));
  const Json object = spec.probe.type == ProbeType::kWorkspace
                          ? peer::ProbeWorkspace(spec.probe.workspace.value_or(WorkspaceProbe()), name)
                          : peer::ProbeConfigMap(spec.probe.config_map.value_or(ConfigMapProbe()), name);
  const Status status = CallJson(spec, "POST", target, object.Dump(), "").status();
  return status.code() == Code::kAlreadyExists ? Status::Ok() : status;
}

Result<ProbeFact> HttpPeer::GetProbe(const ServerSpec& spec, const std::string& name) {
  LK_ASSIGN_OR_RETURN(const std::string target, ProbeTarget(spec));
  LK_ASSIGN_OR_RETURN(const Json object, CallJson(spec, "GET", target + "/" + PercentEncode(name), "", name));
  if (spec.probe.type == ProbeType::kConfigMap) return ProbeFact{name, true, "Stored"};
  ProbeFact fact = peer::ProbeOfWorkspace(object);
  if (!fact.ready) return fact;
  const std::string path = spec.probe.workspace.value_or(WorkspaceProbe()).parent + ":" + name;
  const auto cluster =
      CallJson(spec, "GET", "/clusters/" + path + "/apis/core.kcp.io/v1alpha1/logicalclusters/cluster", "", "cluster");
  // The index of paths is fed by watches: a 404 for a moment is no failure.
  fact.ready = cluster.ok() && cluster->At({"status", "phase"}).AsString() == "Ready";
  if (!fact.ready) fact.phase = "Ready, but not served at its path yet";
  return fact;
}

Status HttpPeer::DeleteProbe(const ServerSpec& spec, const std::string& name) {
  LK_ASSIGN_OR_RETURN(const std::string target, ProbeTarget(spec));
  if (name.rfind(peer::kProbePrefix, 0) != 0) {
    return Status(Code::kInvalid,
                  "\"" + name + "\" is no probe object: its name must begin with " + std::string(peer::kProbePrefix));
  }
  return CallJson(spec, "DELETE", target + "/" + PercentEncode(name), "", name).status();
}

Result<std::vector<std::string>> HttpPeer::ListProbes(const ServerSpec& spec) {
  LK_ASSIGN_OR_RETURN(const std::string target, ProbeTarget(spec));
  const std::string query = "?limit=500&labelSelector=" + PercentEncode(std::string(peer::kProbeLabel) + "=true");
  std::vector<std::string> names;
  std::string token;
  for (int page = 0; page < kMaxPages; ++page) {
    const std::string more = token.empty() ? "" : "&continue=" + PercentEncode(token);
    LK_ASSIGN_OR_RETURN(const Json list, CallJson(spec, "GET", target + query + more, "", ""));
    for (const Json& item : list.Get("items").AsArray()) {
      const std::string& name = item.At({"metadata", "name"}).AsString();
      if (name.rfind(peer::kProbePrefix, 0) == 0) names.push_back(name);
    }
    token = list.At({"metadata", "continue"}).AsString();
    if (token.empty()) return names;
  }
  return Status(Code::kExhausted, "GET " + target + ": more than " + std::to_string(kMaxPages) + " pages of probes");
}

}  // namespace lockkeeper
