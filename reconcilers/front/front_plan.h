// Plan and status of one Front on this host. Pure.
//
// Purpose:   Snapshot and clock in; at most one mutating step on the host and one on the object out, with the verdict
//            that becomes Ready, Reconciling or Stalled. Where the connections go is not decided here: it is the
//            recorded active slot of the Server that claims the front (WantedFrontTarget of the Server's plan).
// Guarantee: total, deterministic, reads no clock, does no I/O. Conditions are not read: wiping them changes nothing.
// Threads:   pure. Failure: none.
//
// A running front is never restarted by itself: not for a new build, not for edited limits. They are written to its
// configuration and said (FrontOutdated); the annotation kRestartAnnotation with a new value is the explicit verb. It
// drains, ends, and its shim starts it again on the same listener, so nobody is refused. Only another listen address
// takes a new shim.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "api/types/conditions.h"
#include "reconcilers/front/front_document.h"
#include "reconcilers/ports/fact.h"
#include "reconcilers/ports/front_admin.h"
#include "reconcilers/ports/units.h"

namespace lockkeeper::fronts {

inline constexpr char kFinalizer[] = "lockkeeper.dev/front";
inline constexpr char kRestartAnnotation[] = "lockkeeper.dev/restarted-at";

// Where things of this host are.
struct HostPaths {
  std::string host;
  std::string lockkeeper;  // absolute path of the program
  std::string version;     // of the program
  std::string fronts_dir;  // DIR/NAMESPACE.NAME/{front.json,state,log}
  std::string admin_dir;   // of the admin sockets
  bool operator==(const HostPaths&) const = default;
};

// A claim a Server of the same namespace makes by spec.frontRef.
struct Claim {
  std::string server;
  std::string uid;
  // Where it wants the connections to go; unset: it leaves the front as it is.
  std::optional<FrontTarget> target;
  bool stopped = false;  // by `lockkeeper stop`
  bool operator==(const Claim&) const = default;
};

struct Snapshot {
  std::string ns, name;
  HostPaths paths;
  LedgerInfo ledger;  // read before everything else: its revision is never newer than a claim
  Fact<FrontDocument> document;
  Fact<Front> object;
  Fact<std::vector<Claim>> claims;  // by name; released Servers claim nothing
  Fact<UnitStatus> unit;
  Fact<FrontState> state;
  Fact<std::string> config;  // of the configuration file
  bool operator==(const Snapshot&) const = default;
};

struct Commit {
  FrontDocument next;
  bool operator==(const Commit&) const = default;
};
struct ForgetDocument {
  bool operator==(const ForgetDocument&) const = default;
};
struct WriteConfig {
  std::string path, text;
  bool operator==(const WriteConfig&) const = default;
};
struct StartFront {
  UnitSpec unit;
  int64_t invocation = 0;
  bool operator==(const StartFront&) const = default;
};
struct StopFront {
  UnitIdentity id;
  bool kill = false;
  bool operator==(const StopFront&) const = default;
};
struct ResetFront {
  std::string unit;
  bool operator==(const ResetFront&) const = default;
};
struct SetTarget {
  FrontTarget target;
  bool operator==(const SetTarget&) const = default;
};
struct RestartFront {
  bool operator==(const RestartFront&) const = default;
};
using HostStep = std::variant<std::monostate, Commit, ForgetDocument, WriteConfig, StartFront, StopFront, ResetFront,
                              SetTarget, RestartFront>;
enum class ObjectStep { kNone, kAddFinalizer, kRemoveFinalizer };

struct Plan {
  HostStep step;
  ObjectStep object_step = ObjectStep::kNone;
  ReadySummary verdict;
  std::string why;  // of the step, for the log
  Duration requeue_after{};

  bool operator==(const Plan& o) const {
    return step == o.step && object_step == o.object_step && verdict.ready == o.verdict.ready &&
           verdict.settling == o.verdict.settling && verdict.reason == o.verdict.reason &&
           verdict.message == o.verdict.message && why == o.why && requeue_after == o.requeue_after;
  }
};

Plan Decide(const Snapshot& snapshot, const Now& now);
// status.open's ages are rounded, so that a quiet front's status stays as it is.
FrontStatus Summarize(const Snapshot& snapshot, const Plan& plan, const Now& now);
// Whether two statuses differ in more than counts of connections, which are written at most every few seconds.
bool DiffersInSubstance(const FrontStatus& a, const FrontStatus& b);

// "lk-front-NAMESPACE.NAME": a namespace has no dot, so two fronts never share a unit.
std::string FrontUnitName(const std::string& ns, const std::string& name);
std::string FrontConfigPath(const HostPaths& paths, const std::string& ns, const std::string& name);
// The configuration that a front of this spec runs with, as text of its file.
std::string RenderConfig(const HostPaths& paths, const FrontDocument& document);
UnitSpec RenderUnit(const HostPaths& paths, const FrontDocument& document, const std::string& listen);
// "127.0.0.1:6443" of spec.listen: an empty host is every address, localhost is 127.0.0.1; kInvalid for another name.
Result<std::string> NumericListen(const std::string& listen);
// Between starts that fail: 1 s doubled to 30 s.
Duration StartBackoff(int64_t failures);

}  // namespace lockkeeper::fronts
