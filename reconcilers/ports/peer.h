// Peer: the port to the server that is rolled: its readiness, its controller Lease, its probe object.
//
// Purpose:   what one pass observes of the rolled server through its own API, and the two guarded effects on it.
// Threads:   thread-safe. Each call has its own timeout (readyz: readiness.attemptTimeoutMilliseconds; others 5 s).
// Failure:   an error is "unknown"; kNotFound is "absent".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/base/time.h"
#include "api/types/server.h"

namespace lockkeeper {

struct ReadyzFact {
  int status = 0;              // 200 is ready
  bool shutting_down = false;  // the shutdown check failed
  std::string failed_checks;   // "poststarthook/a, etcd"
  bool operator==(const ReadyzFact&) const = default;
};

struct LeaseFact {
  std::string uid;
  std::string resource_version;
  std::string holder;
  Time acquire_time{};
  Time renew_time{};
  int64_t duration_seconds = 0;
  Time read_at{};  // wall clock when the GET was sent
  bool operator==(const LeaseFact&) const = default;
};

struct ProbeFact {
  std::string name;
  bool ready = false;
  std::string phase;  // what it says of itself
  bool operator==(const ProbeFact&) const = default;
};

class Peer {
 public:
  virtual ~Peer() = default;
  // GET of readiness.path on 127.0.0.1:port, a fresh deadline each time.
  virtual Result<ReadyzFact> Readyz(const ServerSpec& spec, int port) = 0;
  virtual Result<LeaseFact> GetLease(const ServerSpec& spec) = 0;
  // DELETE with uid and resourceVersion preconditions. kNotFound and kPrecondition mean: look again.
  virtual Status DeleteLease(const ServerSpec& spec, const LeaseFact& lease) = 0;
  // Probe objects are named "roll-probe-…". AlreadyExists is ok.
  virtual Status CreateProbe(const ServerSpec& spec, const std::string& name) = 0;
  virtual Result<ProbeFact> GetProbe(const ServerSpec& spec, const std::string& name) = 0;
  virtual Status DeleteProbe(const ServerSpec& spec, const std::string& name) = 0;
  virtual Result<std::vector<std::string>> ListProbes(const ServerSpec& spec) = 0;
};

}  // namespace lockkeeper
