// HttpPeer: the port Peer over HTTP.
//
// Purpose:   readiness of a slot on its own port; Lease and probe object of the rolled server through the kubeconfig
//            and context of spec.access, hence through the front. File paths of the spec are used as they stand: the
//            caller has filled placeholders in.
// Ownership: owns its clients; borrows the clock and the cancel token.
// Threads:   thread-safe.
// Failure:   as the port says. kInvalid where the Server's spec lacks what a call needs (access, lease, probe), or
//            its kubeconfig is broken; kUnauthorized and kForbidden name what was refused.
#pragma once

#include <memory>

#include "api/transport/http_client.h"
#include "reconcilers/ports/peer.h"

namespace lockkeeper {

namespace peer {
class PeerClients;
}

class HttpPeer : public Peer {
 public:
  // `cancel` may be null; cancelled, every call ends at once with kCancelled.
  explicit HttpPeer(const Clock& clock, const CancelToken* cancel = nullptr);
  ~HttpPeer() override;

  Result<ReadyzFact> Readyz(const ServerSpec& spec, int port) override;
  Result<LeaseFact> GetLease(const ServerSpec& spec) override;
  Status DeleteLease(const ServerSpec& spec, const LeaseFact& lease) override;
  Status CreateProbe(const ServerSpec& spec, const std::string& name) override;
  // A Workspace is ready only when its LogicalCluster is served at its path, too (kcp.md 3.5).
  Result<ProbeFact> GetProbe(const ServerSpec& spec, const std::string& name) override;
  Status DeleteProbe(const ServerSpec& spec, const std::string& name) override;
  Result<std::vector<std::string>> ListProbes(const ServerSpec& spec) override;

 private:
  Result<ClientResponse> Call(const ServerSpec& spec, const std::string& method, const std::string& target,
                              const std::string& body);
  // The answer's object, or what the answer means for `name`.
  Result<Json> CallJson(const ServerSpec& spec, const std::string& method, const std::string& target,
                        const std::string& body, const std::string& name);

  const Clock& clock_;
  const CancelToken* const cancel_;
  const std::unique_ptr<peer::PeerClients> clients_;
};

}  // namespace lockkeeper
