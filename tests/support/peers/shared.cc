#include "tests/support/peers/shared.h"

namespace lockkeeper::peers {
namespace {

struct Shared {
  std::unique_ptr<Cluster> cluster;
  Status failed;
};

Shared& Only() {
  static Shared only;
  return only;
}

Result<std::unique_ptr<Cluster>> StartWithCrds() {
  LK_ASSIGN_OR_RETURN(std::unique_ptr<Cluster> cluster, Cluster::Start());
  const Status installed = cluster->InstallCrds();
  // Not found here is no reason to skip.
  if (!installed.ok()) return Status(Code::kInternal, installed.ToString());
  return cluster;
}

class Ending : public ::testing::Environment {
 public:
  void TearDown() override { Only().cluster.reset(); }
};
const ::testing::Environment* const kEnding = ::testing::AddGlobalTestEnvironment(new Ending);

}  // namespace

Result<Cluster*> SharedCluster() {
  Shared& only = Only();
  if (!only.failed.ok()) return only.failed;
  if (!only.cluster) {
    Result<std::unique_ptr<Cluster>> started = StartWithCrds();
    if (!started.ok()) return only.failed = started.status();
    only.cluster = std::move(*started);
  }
  return only.cluster.get();
}

}  // namespace lockkeeper::peers
