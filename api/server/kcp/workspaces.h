// WorkspaceController: moves Workspaces from Scheduling to Ready and takes deleted ones apart (S9).
//
// Purpose:   the controllers of kcp that a probe needs, as one level-triggered loop: it looks at every Workspace
//            below root and does at most one step for each, while this process leads. Steps are written to the
//            reconcile log, begin and end.
// Ownership: borrows all it is given; owns its thread.
// Threads:   Start, Wake and Stop by any thread.
// Failure:   a step that fails is tried again after the retry delay; conflicts with another reconciler at once.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "api/server/kcp/faults.h"
#include "api/server/kcp/journal.h"
#include "api/server/kcp/objects.h"

namespace lockkeeper::kcp {

struct WorkspaceConfig {
  std::string shard_name;
  Duration step_delay = Milliseconds(200);   // default of the knob workspace-step-delay
  Duration retry_delay = Milliseconds(100);  // after a failed step
  std::vector<std::string> resources;        // Key::resource of all kinds: the content of a workspace
};

class WorkspaceController {
 public:
  // `leading`: whether this process may reconcile now. `wait_for_store`: kTimeout while the store stalls.
  WorkspaceController(WorkspaceConfig config, apiserver::Store& store, const Faults& faults, Journal& journal,
                      std::function<bool()> leading, std::function<Status()> wait_for_store);
  ~WorkspaceController();  // Stop()
  WorkspaceController(const WorkspaceController&) = delete;
  WorkspaceController& operator=(const WorkspaceController&) = delete;

  Status Start();
  // Leadership may have changed.
  void Wake();
  // Joins; no step begins after it was called.
  void Stop();

 private:
  enum class Step { kNone, kSchedule, kInitialize, kBind, kDelete };
  struct Item {
    Object workspace;
    std::string path;  // "root:a"
    Step step = Step::kNone;
  };
  static Step StepOf(const Json& workspace);
  static const char* StepName(Step step);

  void Run(int64_t revision);
  bool MayStep() const;
  // One pass over everything; how long until something is due.
  Duration Pass();
  Status Collect(apiserver::Session& session, const std::string& cluster, const std::string& path, int depth,
                 std::vector<Item>* items);
  Status Reconcile(const Item& item);
  Status Schedule(apiserver::Txn& txn, Object workspace, const std::string& path, const Now& now);
  Status Initialize(apiserver::Txn& txn, const Object& workspace);
  Status Bind(apiserver::Txn& txn, Object workspace, const Now& now);
  Status Delete(Object workspace, const Now& now);
  // Removes up to a few hundred objects of a cluster; whether all are gone.
  Result<bool> RemoveContent(apiserver::Txn& txn, const std::string& cluster, const Now& now);

  const WorkspaceConfig config_;
  apiserver::Store& store_;
  const Faults& faults_;
  Journal& journal_;
  const std::function<bool()> leading_;
  const std::function<Status()> wait_for_store_;

  std::map<std::string, std::pair<Step, Duration>> due_;  // by uid; of the thread
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace lockkeeper::kcp
