// Heartbeat: the Lease by which an agent says that it lives and how far it has posted its ledger.
//
// Purpose:   one coordination.k8s.io Lease a host. Its annotations carry ledger id and revision, machine and boot id,
//            and for each Server uid the ledger revision of the last change that was posted to its status. It is
//            renewed only by guarded writes (resourceVersion), and only after those posts.
// Who reads: the manager (HostTracker) acts on a Server only while its host is fresh and its status is at least that
//            recent; an agent that finds a foreign or newer heartbeat starts and stops nothing.
// Threads:   pure values and functions; HostTracker is used from one thread or under its owner's lock.
// Failure:   none; a Lease that cannot be read is an unknown Fact and decides nothing.
#pragma once

#include <map>
#include <string>

#include "api/types/lease.h"
#include "reconcilers/ports/fact.h"

namespace lockkeeper {

inline constexpr char kSystemNamespace[] = "lockkeeper-system";
// Half of a node's 10 s, so that a returning agent is noticed sooner.
inline constexpr Duration kHeartbeatPeriod = Seconds(5);
// As the node life-cycle controller: 40 s of silence is lost.
inline constexpr Duration kHostLostAfter = Seconds(40);
inline constexpr Duration kHostUnknownAfter = Seconds(10);

struct HeartbeatContent {
  std::string host;
  std::string identity;  // of this agent process: host and a UUID
  std::string ledger_id;
  int64_t ledger_revision = 0;
  std::string machine_id;
  std::string boot_id;
  std::map<std::string, int64_t> posted;  // Server uid to ledger revision
  bool operator==(const HeartbeatContent&) const = default;
};

std::string HeartbeatName(const std::string& host);
// The Lease to write; `old` keeps its acquireTime, transitions and resourceVersion (the guard).
Lease HeartbeatLease(const HeartbeatContent& content, const Lease* old, const Now& now);
HeartbeatContent ParseHeartbeat(const Lease& lease);

// What an agent may do in view of the heartbeat that stands.
enum class HeartbeatVerdict {
  kOurs,           // absent, ours, or silent and taken over: write it
  kUnknown,        // cannot be read: go on as before, write nothing
  kHostNameTaken,  // another ledger posts under this host name
  kLedgerLost,     // this machine posted with a ledger that is not the one we opened
  kLedgerOlder,    // our ledger, at a lower revision than it had posted
};
struct HeartbeatJudgement {
  HeartbeatVerdict verdict = HeartbeatVerdict::kUnknown;
  std::string message;
};
// `silent_for`: how long this agent itself has watched the Lease without a change.
HeartbeatJudgement JudgeHeartbeat(const Fact<Lease>& lease, const HeartbeatContent& self, Duration silent_for,
                                  bool take_over);

// The manager's own view of the hosts' heartbeats, by its own clock alone: a renewTime is never compared with it.
class HostTracker {
 public:
  enum class State { kUndetermined, kFresh, kLost, kNeverSeen };

  // A heartbeat as it now stands (or as absent), at boot-clock time `at`. Any change counts as a beat, except the
  // first sight: that one may be old.
  void Observe(const std::string& host, const Fact<Lease>& lease, Duration at);
  State Of(const std::string& host, Duration at) const;
  // How long until Of() may answer otherwise without a new beat; zero when it will not.
  Duration ChangesIn(const std::string& host, Duration at) const;
  // Ledger revision posted for a Server, 0 when unknown.
  int64_t Posted(const std::string& host, const std::string& server_uid) const;
  const std::string& LedgerId(const std::string& host) const;

 private:
  struct Seen {
    Duration first{};        // first look
    Duration last_change{};  // of the fingerprint, or of the first look
    bool changed = false;    // a change was seen by us
    bool present = false;
    std::string fingerprint;
    HeartbeatContent content;
  };
  std::map<std::string, Seen> hosts_;
};

}  // namespace lockkeeper
