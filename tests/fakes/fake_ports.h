// FakeUnits, FakeFront, FakePeer, FakeHostFiles, FakeReleaseSource, FakeSnapshotter: the ports on a World.
//
// Ownership: borrow the world. Threads: one thread. Failure: as each port; faults by World::faults.
#pragma once

#include "reconcilers/ports/host_files.h"
#include "tests/fakes/world.h"

namespace lockkeeper::fakes {

class FakeUnits : public Units {
 public:
  explicit FakeUnits(World& world) : w_(world) {}
  Result<UnitStatus> Inspect(const std::string& unit) override;
  Status Start(const UnitSpec& spec, int64_t invocation) override;
  Status Terminate(const UnitIdentity& id, int signal) override;
  Status Kill(const UnitIdentity& id) override;
  Status Reset(const std::string& unit) override;
  Result<std::string> ExecutableSha256(const UnitIdentity& id) override;
  Result<std::vector<std::string>> LastOutput(const UnitSpec& spec, int lines) override;
  Result<PortHolder> HolderOf(int) override { return Status(Code::kNotFound, "nobody listens there"); }
  Result<std::vector<std::string>> List() override;
  void SetListener(std::function<void(const std::string&)>) override {}

 private:
  World& w_;
};

class FakeFront : public FrontAdmin {
 public:
  explicit FakeFront(World& world) : w_(world) {}
  Result<FrontState> Get(const std::string& front) override;
  Result<FrontState> Set(const std::string& front, const FrontTarget& target) override;
  Result<int> Drain(const std::string& front, const std::string& slot, int64_t incarnation, Duration deadline) override;

 private:
  World& w_;
};

class FakePeer : public Peer {
 public:
  explicit FakePeer(World& world) : w_(world) {}
  Result<ReadyzFact> Readyz(const ServerSpec& spec, int port) override;
  Result<LeaseFact> GetLease(const ServerSpec& spec) override;
  Status DeleteLease(const ServerSpec& spec, const LeaseFact& lease) override;
  Status CreateProbe(const ServerSpec& spec, const std::string& name) override;
  Result<ProbeFact> GetProbe(const ServerSpec& spec, const std::string& name) override;
  Status DeleteProbe(const ServerSpec& spec, const std::string& name) override;
  Result<std::vector<std::string>> ListProbes(const ServerSpec& spec) override;

 private:
  Status Reachable();
  World& w_;
};

class FakeHostFiles : public HostFiles {
 public:
  explicit FakeHostFiles(World& world) : w_(world) {}
  Result<std::vector<std::string>> MissingShared(const SeedPlan& plan) override;
  Result<bool> IsSeeded(const SeedPlan& plan) override;
  Status Seed(const SeedPlan& plan) override;
  Status Harvest(const SeedPlan& plan) override;
  Result<bool> IsEmptyDir(const std::string& path) override;
  Status EnsureDir(const std::string& path, const std::string& user, const std::string& group) override;
  Status ClearRoot(const std::string& root) override;
  Result<std::string> Sha256Executable(const std::string& path) override;
  Result<std::string> ReadToken(const std::string& kubeconfig, const std::string& context) override;
  Result<std::string> FileSha256(const std::string& path) override;
  Status WriteToken(const std::string& path, const std::string& token) override;
  Status PointLink(const std::string& link, const std::string& target) override;
  Result<int64_t> FreeBytes(const std::string& path) override;

 private:
  World& w_;
};

}  // namespace lockkeeper::fakes
