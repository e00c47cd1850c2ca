// Snapshot: everything one pass has observed of one Server, as plain values.
//
// Purpose:   the only input of the plan beside the clock. Each fact is known, absent, or unknown with the reason; what
// a
//            pass had no need to look at is unknown ("not observed"). Conditions and statuses are not in it.
// Threads:   values. Failure: none.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/types/front.h"
#include "api/types/upgrade.h"
#include "reconcilers/ports/fact.h"
#include "reconcilers/ports/front_admin.h"
#include "reconcilers/ports/ledger.h"
#include "reconcilers/ports/peer.h"
#include "reconcilers/ports/records.h"

namespace lockkeeper::roll {

// One slot of the record as the host shows it.
struct SlotFacts {
  Fact<UnitStatus> unit;          // of the intent's unit
  Fact<ReadyzFact> readyz;        // of its own port, one try with its own timeout
  Fact<std::string> exec_sha256;  // of the running bytes
  // Tries in a row that found this slot not ready while the other slot answered 200 in the same pass.
  int unready_tries = 0;
  Fact<int> companions;  // companion units of it that still exist

  bool operator==(const SlotFacts&) const = default;
};

// A Release of this host: Server.release of the operation in flight, or of the first install.
struct ReleaseFact {
  enum class State { kPending, kReady, kFailed };
  std::string name;
  State state = State::kPending;
  HostBuild build;
  std::string reason;   // of a failed one, of the documented list
  std::string message;  // progress, or why it failed
  bool operator==(const ReleaseFact&) const = default;
};

struct BackupFact {
  enum class State { kPending, kReady, kFailed };
  std::string name;
  State state = State::kPending;
  std::string reference;
  Time started_at{}, finished_at{};
  std::optional<int64_t> writes_since;
  std::string message;
  bool operator==(const BackupFact&) const = default;
};

// An Upgrade or a Roll of this Server in the API.
struct Candidate {
  std::string kind;  // Upgrade, Roll
  std::string ns, name, uid;
  Time created{};
  int64_t generation = 0;
  bool deleting = false;
  bool has_finalizer = false;  // ours (kFinalizer): only such an object is admitted
  std::string parent_uid;      // of the Upgrade that controls a Roll; empty: parentless
  std::string spec_hash;       // of the spec without controls and ttl
  RollSpec roll;               // kind Roll: its spec. kind Upgrade: what its Roll inherits, controls included
  UpgradeAction action = UpgradeAction::kUpgrade;  // of an Upgrade
  std::string version;                             // asked for by an Upgrade
  std::optional<Outcome> closed;                   // an Upgrade's status.outcome, written by the manager
  std::string closed_message;
  std::string stalled;           // why an Upgrade does not go on, as its manager says; for those who wait for it
  Fact<OutcomeRecord> recorded;  // the ledger's newest outcome under this kind and name
  bool operator==(const Candidate&) const = default;
};

struct ServerObject {
  std::string uid;
  int64_t generation = 0;
  bool deleting = false;
  bool has_finalizer = false;
  ServerSpec spec;
  std::optional<LedgerRef> posted;  // status.ledger: a witness of the ledger
  bool operator==(const ServerObject&) const = default;
};

// Somewhere that the ledger's id and revision stand outside the ledger.
struct LedgerWitness {
  std::string where;  // "the front kcp", "Server.status", "the unit lk-…"
  std::string id;     // empty: not said
  int64_t revision = 0;
  bool operator==(const LedgerWitness&) const = default;
};

struct HostFacts {
  std::string name;      // of the host, as in spec.host
  std::string hostname;  // os.Hostname(): the first part of a lease holder's identity
  std::string data_dir;
  Fact<int64_t> free_bytes;  // where slots and backups are written
  bool operator==(const HostFacts&) const = default;
};

struct FileFacts {
  Fact<std::vector<std::string>> missing_shared;  // of seed.files
  Fact<bool> seeded;                              // the new slot's root holds the shared files
  Fact<bool> base_empty;                          // the Server's base folder is empty or absent
  // Of the commands of the unit that is about to be started: path to SHA-256 of the executable.
  std::map<std::string, Fact<std::string>> commands;
  // Of its fixed ports, its companions' too: who listens there; absent: nobody.
  std::map<int, Fact<PortHolder>> ports;
  bool operator==(const FileFacts&) const = default;
};

struct LeaseWatch {
  Fact<LeaseFact> lease;
  // How long this agent has seen it without a change of holder or renewTime, by its boot clock and since its own start.
  Duration unchanged_for{};
  bool operator==(const LeaseWatch&) const = default;
};

struct Snapshot {
  ServerKey key;
  LedgerInfo ledger;
  Fact<ServerRecord> record;
  std::vector<LedgerWitness> witnesses;
  std::vector<std::string> unrecorded_units;  // units of this Server's name that no slot of the record names
  HostFacts host;
  Fact<ServerObject> object;
  Fact<std::vector<Candidate>> candidates;  // unknown: the API is away
  std::map<std::string, SlotFacts> slots;
  Fact<FrontState> front;
  Fact<FrontSpec> front_spec;
  std::string front_claimed_by;  // another Server that claimed the same Front first
  LeaseWatch lease;
  Fact<ProbeFact> probe;  // the one of record.probe_name
  Fact<ReleaseFact> release;
  Fact<BackupFact> backup;
  FileFacts files;

  bool operator==(const Snapshot&) const = default;
};

std::string DebugString(const Snapshot& snapshot);

}  // namespace lockkeeper::roll
