// Agent: the reconcilers of one host around its ledger: Server (with its Roll), Slot, Front, Release, StoreBackup.
//
// Purpose:   what a kubelet is to Pods. Opens the ledger (one agent a data folder), brings up what the ledger desires
//            even with the API away, mirrors it to the API, beats the host's heartbeat, serves the agent's socket.
// Ownership: owns all of it; borrows api and clock, which outlive it.
// Threads:   Start and Stop from one thread.
// Failure:   Start: kBusy when another agent holds the ledger, kCorrupt when it is damaged, each with the way out.
//            Stop touches no operand: slots and fronts run on under their shims. kTimeout: some work hangs; leave by
//            std::_Exit, as Manager says.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "controller/api.h"

namespace lockkeeper {

struct AgentOptions {
  std::string host;
  std::string data_dir;
  std::string version;
  bool take_over = false;  // of a host name whose other agent is silent for 40 s
  std::string metrics_address = "0";
  std::function<void()> cancel_calls;
  std::function<void(const Status&)> on_fatal;
};

class Agent {
 public:
  Agent(Api& api, const Clock& clock, AgentOptions options);
  ~Agent();

  Status Start();
  Status Stop();
  // A line for each process that runs on without us, for a person who ends the agent.
  std::string LeftRunning();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockkeeper
