// RealE2e: manager and agent with their objects in a real kube-apiserver, each with a token that is bound to what
// manifests/rbac gives it and to nothing else.
//
// Purpose:   what the tests of whole rolls on a real server share. The Cluster is the test program's; each test begins
//            with none of our objects in it.
// Ownership: as E2e.
// Threads:   one thread.
// Failure:   skipped, with the reason, where the programs are missing; else as E2e.
#pragma once

#include <string>
#include <vector>

#include "tests/e2e/fixture.h"
#include "tests/support/peers/shared.h"

namespace lockkeeper {

class RealE2e : public E2e {
 protected:
  void SetUp() override;
  void TearDown() override;

  peers::Cluster& cluster() { return *cluster_; }
  // Until the operation in flight is at `step` or behind it, by the agent's socket; false when none began in time.
  bool AwaitStep(const std::string& step);
  // RBAC gives both roles all that they asked for so far. An API server that has just begun refuses everything for a
  // moment, so this is asked before it is touched.
  void ExpectNothingRefused();
  // Until no operation is in flight, by the agent's socket.
  bool AwaitNoOperation();
  Result<Upgrade> FinishedByKubectl(const std::string& upgrade);
  // A roll with all of its story: Succeeded, its steps done, its report's times there, nothing started twice.
  void ExpectWhole(const Upgrade& upgrade, const std::string& version);

 private:
  Result<std::string> KubeconfigOf(const std::string& service_account);
  Status RemoveObjects();

  peers::Cluster* cluster_ = nullptr;
};

}  // namespace lockkeeper
