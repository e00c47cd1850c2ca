// Scenario: the real Server reconciler on the fakes, in one thread, under one clock and one seed.
//
// Purpose:   applies objects, runs passes in a fixed or shuffled order, crashes and restarts the agent, keeps a log
// line
//            a pass, and checks after every pass what must never be.
// Threads:   one. Failure: violations() of the world, and Settle() answering false.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "reconcilers/server/reconciler.h"
#include "tests/fakes/fake_ports.h"
#include "tests/unit/controller/memory_api.h"

namespace lockkeeper::sequence {

// A Server of kcp's kind: lease, probe, token, seed, front; blue/green unless told otherwise.
ServerSpec KcpSpec();

// The API's objects as structs: what most scenarios need of an API, without its JSON.
class StoreObjects : public roll::Objects {
 public:
  Result<Server> GetServer(const ObjectKey& key) override;
  Result<lockkeeper::Front> GetFront(const ObjectKey&) override { return lockkeeper::Front{}; }
  Result<std::vector<Upgrade>> UpgradesOf(const ObjectKey&) override;
  Result<std::vector<Roll>> RollsOf(const ObjectKey&) override;

  bool away = false;
  std::optional<Server> server;
  std::map<std::string, Upgrade> upgrades;
  std::map<std::string, Roll> rolls;
  int64_t uids = 0;
};

struct Options {
  uint64_t seed = 0;
  bool shuffled = false;  // the order of the reconcilers in each round
  bool api = false;       // objects live in a MemoryApi, and are mirrored
};

class Scenario {
 public:
  explicit Scenario(Options options);
  ~Scenario();

  fakes::World world;
  MemoryApi api;
  StoreObjects store;
  const ServerKey key{"ns", "kcp"};

  // Builds v1 (active at first), v2, v3: BuildOf("v2").never_ready = true …
  fakes::Build& BuildOf(const std::string& version);

  void ApplyServer(const ServerSpec& spec);
  void EditServer(const std::function<void(ServerSpec&)>& edit);
  void DeleteServer();
  // A Release that the host already holds.
  void PlantRelease(const std::string& version);
  // A parentless Roll. `version` "": a restart.
  void ApplyRoll(const std::string& name, const std::string& version, const std::function<void(RollSpec&)>& edit = {});
  void EditRoll(const std::string& name, const std::function<void(RollSpec&)>& edit);
  // An Upgrade as the manager leaves it, with its finalizer; the Roll is its child.
  void ApplyUpgrade(const std::string& name, const std::string& version);
  void ApplyChildRoll(const std::string& upgrade, const std::string& name, const std::string& version);
  void CloseUpgrade(const std::string& name, Outcome outcome);

  // Applies the Server, and runs until v1 is installed and nothing is left to do.
  bool Install(const ServerSpec& spec);

  // Begins where the other one stands.
  void Begin(const Scenario& other);

  // Rounds until `done`, at most `limit`. After each: the invariants.
  bool RunUntil(const std::function<bool()>& done, int limit = 4000);
  // Until the operation in flight has ended and a whole quiet round has passed.
  bool Settle(int limit = 4000);
  void Round();
  // The agent's process ends and another takes over.
  void CrashAgent();

  ServerRecord& record() { return world.ledger.Peek(key); }
  bool HasOperation() { return record().operation.has_value(); }
  std::optional<OutcomeRecord> OutcomeOf(const std::string& name);
  Server server();
  Roll roll(const std::string& name);
  // "True AsDesired" of the Server's condition, as the last pass would show it.
  std::string ReasonOf(std::string_view condition);
  int crashes() const { return crashes_; }
  const std::vector<std::string>& log() const { return log_; }
  std::string LogText() const;
  const roll::Plan& last_plan() const { return last_plan_; }

  bool release_ready = true;  // documents of Releases become Ready by themselves
  bool backup_fails = false;
  bool log_on = false;
  bool happened = false;  // what a case lets happen once

 private:
  struct Agent;
  void NewAgent();
  void RunPart(int part);
  void Slots();
  void Slot(const std::string& name);
  void Front();
  void Documents();
  void CheckInvariants();
  void Note(std::string line);
  Status CommitActual(const std::string& name, const std::function<void(SlotActual&)>& change);

  const Options options_;
  fakes::FakeUnits units_{world};
  fakes::FakeFront front_{world};
  fakes::FakePeer peer_{world};
  fakes::FakeHostFiles files_{world};
  roll::ApiObjects api_objects_{api};
  std::unique_ptr<Agent> agent_;
  Time started_{};
  Duration next_{};
  int crashes_ = 0;
  std::vector<std::string> log_;
  std::string last_line_;
  int repeats_ = 0;
  int64_t documents_quiet_ = -1;  // the ledger's count of document changes that was looked at last
  int pending_ = 0;
  roll::Plan last_plan_;
  std::map<std::string, int> flips_of_;  // of each operation
};

}  // namespace lockkeeper::sequence
