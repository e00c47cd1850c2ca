// HeartbeatPoster: writes this host's heartbeat, and says whether the agent may act.
//
// Purpose:   renews the Lease each kHeartbeatPeriod and soon after a change was posted; every write is guarded by the
//            resourceVersion that was read. Until a foreign or newer heartbeat is ruled out the agent starts and stops
//            nothing; an API that does not answer rules nothing out and nothing in.
// Ownership: borrows api, clock and `revision`; they outlive it. Stop() joins its thread.
// Threads:   thread-safe.
// Failure:   an unreachable API is retried at the next beat and logged once per change of the error.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "controller/api.h"
#include "reconcilers/heartbeat/heartbeat.h"

namespace lockkeeper {

struct HeartbeatIdentity {
  std::string host;
  std::string ledger_id;
  std::string machine_id;
  bool take_over = false;
};

// Makes kSystemNamespace where it is missing. Harmless to repeat: it meets what is there.
Status EnsureSystemNamespace(Api& api);

class HeartbeatPoster {
 public:
  HeartbeatPoster(Api& api, const Clock& clock, HeartbeatIdentity identity, std::function<int64_t()> ledger_revision);
  ~HeartbeatPoster();

  void Start();
  void BeginStop();  // no beat after the one that runs; waits for nothing
  void Stop();
  // The status of this Server was posted up to `revision`. Beats within 50 ms.
  void Posted(const std::string& server_uid, int64_t revision);
  // What the last heartbeat read says of us; its message names the way out.
  HeartbeatJudgement Judgement() const;
  // One beat now, on the caller's thread.
  Status Beat();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockkeeper
