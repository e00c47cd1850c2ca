// Peer answers: what a rolled server's HTTP answers mean. Pure.
//
// Purpose:   an answer becomes a Status with the meaning that the port Peer promises: kNotFound only where the
//            server says that this very object is absent, kUnavailable for "not now", kPrecondition for a guard that
//            did not hold. Objects become facts.
// Ownership: values.
// Threads:   pure.
// Failure:   Status; a body that is no JSON is quoted, cut to 200 characters.
#pragma once

#include <string>
#include <string_view>

#include "api/base/json.h"
#include "api/transport/http_client.h"
#include "reconcilers/ports/peer.h"

namespace lockkeeper::peer {

inline constexpr std::string_view kProbePrefix = "roll-probe-";
inline constexpr std::string_view kProbeLabel = "lockkeeper.dev/probe";

// `name`: the object asked for; "" for a list or a create.
Status StatusOfAnswer(const ClientResponse& answer, std::string_view name);

// "[-]poststarthook/a failed: …" lines as "poststarthook/a, etcd".
ReadyzFact ReadyzOfAnswer(const ClientResponse& answer);

Result<LeaseFact> LeaseOf(const Json& lease, Time read_at);

// {"kind":"DeleteOptions", …, "preconditions": {uid, resourceVersion}}
Json GuardedDelete(const LeaseFact& lease);

Json ProbeWorkspace(const WorkspaceProbe& probe, const std::string& name);
Json ProbeConfigMap(const ConfigMapProbe& probe, const std::string& name);

// Ready: phase Ready with spec.cluster and spec.URL (kcp.md 3.4); the default phase of a create proves nothing.
ProbeFact ProbeOfWorkspace(const Json& workspace);

// "https://host:port/clusters/root" -> "https://host:port": what paths with a /clusters/ part of their own go behind.
std::string WithoutCluster(const std::string& server);

}  // namespace lockkeeper::peer
