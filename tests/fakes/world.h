// World: one simulated host, rolled server and front, under one fake clock and one seed.
//
// Purpose:   the stateful fakes of Units, FrontAdmin, Peer, HostFiles, ReleaseSource and Snapshotter (fake_ports.h) all
//            act on it: processes start, listen, become ready, lead by client-go's election and end; connections stay
//            on a backend until they are drained; a probe object progresses only under a leader. Tests assert on the
//            world, not on calls.
// Ownership: outlives its ports and the agent that crashes. Threads: one thread.
// Failure:   what must never happen is written into violations().
#pragma once

#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "reconcilers/ports/front_admin.h"
#include "reconcilers/ports/peer.h"
#include "reconcilers/ports/units.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/fake_ledger.h"

namespace lockkeeper::fakes {

// How the processes of one build behave.
struct Build {
  std::string version;
  std::string path;      // release folder; the executable is below it
  std::string sha;       // of the executable on disk
  std::string runs_sha;  // of what really runs; "": the same
  Duration listens_after = Milliseconds(60);
  Duration ready_after = Milliseconds(700);
  bool missing = false;  // no executable
  bool never_listens = false;
  bool never_ready = false;
  std::optional<Duration> dies_after;  // of its start
  int dies_times = 1000000;            // only the first so many starts die
  Duration stop_takes = Milliseconds(150);
  bool ignores_term = false;
  bool leads_idly = false;  // leads and reconciles nothing
};

struct Process {
  std::string unit;
  UnitSpec spec;
  UnitIdentity id;
  std::string build_path;
  bool server = false;  // of a slot; else a companion
  std::string slot;
  int64_t incarnation = 0;
  bool prepared = false;  // the shim waits; nothing was executed
  Time started{};
  int port = 0;                                         // listens once port_at is passed
  Time listens_at{}, ready_at{}, dies_at{}, ends_at{};  // zero: never
  std::optional<Time> sigterm;
  int terms = 0;
  std::optional<UnitExit> exit;
  bool no_record = false;  // it went with the host: nobody wrote down how it ended
  Time unready_until{};
  bool wrote_files = false;
  // Its elector.
  std::string holder;
  bool leading = false;
  std::string seen_mark;
  Time seen_at{}, next_try{};

  bool alive() const { return !prepared && !exit; }
};

struct FrontProcess {
  bool answers = true;
  FrontState state;
  bool ignores_set = false;                 // answers and does not move
  Duration lingers = Milliseconds(40);      // a drained connection closes after this
  std::map<std::string, Time> drain_until;  // backend key to when its connections are gone
};

// What a scenario may begin with: all of the world but its ledger and its faults.
struct WorldState {
  FakeClock clock;
  std::mt19937_64 rng;

  // What is on the host.
  std::map<std::string, Build> builds;       // by release path
  std::map<std::string, std::string> files;  // path to content
  std::map<std::string, Process> units;      // by unit name: the latest invocation
  FrontProcess front;
  int connections = 3;  // that clients keep open, on whatever backend they reached
  std::optional<LeaseFact> lease;
  std::map<std::string, Duration> probes;  // name to time spent under a leader
  int64_t free_bytes = int64_t{1} << 30;
  std::string hostname = "box";
  bool election = true;
  bool fixed_ports = false;
  double election_scale = 1;                 // client-go's 60/5/2 s, times this
  Duration probe_takes = Milliseconds(150);  // of a leader's work
  bool api_away = false;

  // Books, which the invariants are read from.
  std::map<std::pair<std::string, int64_t>, int> starts;  // unit and invocation to executions
  std::map<std::string, int> terms;                       // unit to SIGTERMs
  std::vector<std::string> flips;                         // backends in order, "hold" among them
  int lease_deletes = 0;
  bool outage_allowed = false;  // of the Server under test: Single or planned

 protected:
  int next_pid_ = 1000;
  int next_port_ = 40000;
  int next_uid_ = 1;
  std::map<std::string, int> deaths_;  // by build path
  std::vector<std::string> violations_;
};

class World : public WorldState {
 public:
  explicit World(uint64_t seed);

  Faults faults;
  FakeLedger ledger{faults};

  void Begin(const WorldState& state) { static_cast<WorldState&>(*this) = state; }
  // Time passes; everything that is due in it happens, in order.
  void Advance(Duration d);
  // The power goes and comes back: every process is gone, without an exit record.
  void Reboot();
  void KillProcess(const std::string& unit, int signal = 9);
  // The readyz of this slot answers 500 for so long.
  void MakeUnready(const std::string& slot, Duration d);

  Process* ProcessOfSlot(const std::string& slot);  // the live one with the highest incarnation, or nullptr
  Process* Listener(int port);
  bool IsReady(const Process& p) const;
  bool Serves();  // the front reaches a ready process
  Time wall() const { return clock.Read().wall; }
  std::vector<std::string> Leaders() const;

  // Effects, with the books that the invariants are read from.
  Status StartUnit(const UnitSpec& spec, int64_t invocation);
  Status TerminateUnit(const UnitIdentity& id, int signal);
  Status KillUnit(const UnitIdentity& id);
  Result<FrontState> SetFront(const FrontTarget& target);
  Result<int> DrainFront(const std::string& slot, int64_t incarnation, Duration deadline);

  std::vector<std::string>& violations() { return violations_; }
  void Violate(const std::string& what) { violations_.push_back(what); }

 private:
  void Tick();
  void TickElection();
  void TickFront();
  void EndProcess(Process& p, UnitExit exit);
  std::string Backend(const FrontTarget& t) const {
    return t.slot + "#" + std::to_string(t.incarnation) + "." + std::to_string(t.invocation);
  }
};

}  // namespace lockkeeper::fakes
