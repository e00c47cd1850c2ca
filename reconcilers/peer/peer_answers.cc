#include "reconcilers/peer/peer_answers.h"

#include <utility>

#include "controller/api.h"

namespace lockkeeper::peer {
Status StatusOfAnswer(const ClientResponse& answer, std::string_view name) {
  if (answer.status / 100 == 2) return Status::Ok();
  const auto parsed = Json::Parse(answer.body);
  Json body = parsed.ok() ? *parsed : Json();
  if (body.Get("message").AsString().empty()) body = Json::MakeObject({{"message", answer.body.substr(0, 200)}});
  const Status status = lockkeeper::StatusOfAnswer(answer.status, body, "answered " + std::to_string(answer.status));
  const auto as = [&](Code code) { return Status(code, status.message()); };
  switch (status.code()) {
    case Code::kConflict: return as(Code::kPrecondition);
    case Code::kNotFound:
      // A path that is not served, or a cluster that is not known yet, says nothing about the object.
      if (name.empty() || body.At({"details", "name"}).AsString() != name) return as(Code::kUnavailable);
      return status;
    case Code::kForbidden:
      // Admission right after a start (kcp.md 3.1).
      if (status.message().find("not yet ready") != std::string::npos) return as(Code::kUnavailable);
      return status;
    case Code::kInternal: return answer.status >= 500 ? as(Code::kUnavailable) : status;
    default: return status;
  }
}

ReadyzFact ReadyzOfAnswer(const ClientResponse& answer) {
  ReadyzFact fact;
  fact.status = answer.status;
  std::string_view text = answer.body;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.substr(0, 3) != "[-]") continue;
    const std::string_view name = line.substr(3, line.find(' ') - 3);
    if (name == "shutdown") fact.shutting_down = true;
    if (!fact.failed_checks.empty()) fact.failed_checks += ", ";
    fact.failed_checks += name;
  }
  return fact;
}

Result<LeaseFact> LeaseOf(const Json& lease, Time read_at) {
  LeaseFact fact;
  const Json& metadata = lease.Get("metadata");
  const Json& spec = lease.Get("spec");
  fact.uid = metadata.Get("uid").AsString();
  fact.resource_version = metadata.Get("resourceVersion").AsString();
  if (fact.uid.empty() || fact.resource_version.empty()) {
    return Status(Code::kInternal, "the answer is no Lease: it has no uid or no resourceVersion");
  }
  fact.holder = spec.Get("holderIdentity").AsString();
  fact.duration_seconds = spec.Get("leaseDurationSeconds").AsInt();
  // A record without times is legal; a time that cannot be read is not.
  for (const auto& [member, time] : {std::pair<const char*, Time*>{"acquireTime", &fact.acquire_time},
                                     std::pair<const char*, Time*>{"renewTime", &fact.renew_time}}) {
    const Json* value = spec.Find(member);
    if (value == nullptr || value->IsNull()) continue;
    LK_ASSIGN_OR_RETURN(*time, ParseTime(value->AsString()));
  }
  fact.read_at = read_at;
  return fact;
}

Json GuardedDelete(const LeaseFact& lease) {
  return Json::MakeObject(
      {{"kind", "DeleteOptions"},
       {"apiVersion", "v1"},
       {"preconditions", Json::MakeObject({{"uid", lease.uid}, {"resourceVersion", lease.resource_version}})}});
}

namespace {

Json ProbeObject(std::string_view api_version, std::string_view kind, const std::string& name) {
  return Json::MakeObject(
      {{"apiVersion", api_version},
       {"kind", kind},
       {"metadata",
        Json::MakeObject({{"name", name}, {"labels", Json::MakeObject({{std::string(kProbeLabel), "true"}})}})}});
}

}  // namespace

Json ProbeWorkspace(const WorkspaceProbe& probe, const std::string& name) {
  Json object = ProbeObject("tenancy.kcp.io/v1alpha1", "Workspace", name);
  // Named always: without a type kcp may answer 403 (kcp.md 3.1).
  object["spec"].Set("type", Json::MakeObject({{"name", probe.type.name}, {"path", probe.type.path}}));
  return object;
}

Json ProbeConfigMap(const ConfigMapProbe& probe, const std::string& name) {
  Json object = ProbeObject("v1", "ConfigMap", name);
  object["metadata"].Set("namespace", probe.namespace_);
  object["data"].Set("probe", name);
  return object;
}

ProbeFact ProbeOfWorkspace(const Json& workspace) {
  ProbeFact fact;
  fact.name = workspace.At({"metadata", "name"}).AsString();
  fact.phase = workspace.At({"status", "phase"}).AsString();
  fact.ready = fact.phase == "Ready" && !workspace.At({"spec", "cluster"}).AsString().empty() &&
               !workspace.At({"spec", "URL"}).AsString().empty();
  return fact;
}

std::string WithoutCluster(const std::string& server) {
  std::string base = server.substr(0, server.find("/clusters/"));
  while (!base.empty() && base.back() == '/') base.pop_back();
  return base;
}

}  // namespace lockkeeper::peer
