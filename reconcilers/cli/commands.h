// Commands: what a person types, each as one function of a Session and its arguments.
//
// Purpose:   status, watch, history, logs; upgrade, restart, rollback, approve, pause, resume, abort, abandon, retry,
//            stop, start. With the API away status, history, logs, approve, abort and abandon go to the agent's socket.
// Threads:   one caller. Failure: a Status that main prints as one line; exit codes are main's (0, or 1 on an error, 2
//            on an operation that did not end well).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "api/types/upgrade.h"
#include "reconcilers/cli/session.h"

namespace lockkeeper::cli {

// Where the text goes; standard output in main.
using Out = std::function<void(const std::string&)>;

struct WatchOptions {
  std::string target;          // "upgrade/NAME", "roll/NAME" or a name: Upgrade first, then Roll
  bool terminal = false;       // a moving progress line is drawn
  double timeout_seconds = 0;  // 0: none
};

Status ShowStatus(Session& session, const std::string& server, bool all_namespaces, const Out& out);
Status ShowHistory(Session& session, const std::string& server, int limit, const Out& out);
Status ShowLogs(Session& session, const std::string& server, const std::string& slot, int lines, const Out& out);
// A line a step until it has finished; answers how it ended.
Result<Outcome> Watch(Session& session, const WatchOptions& options, const Out& out);

struct UpgradeRequest {
  std::string server;
  std::string name;     // "": a ULID is minted
  std::string version;  // "" with action Restart
  bool restart = false;
  bool preflight = false;
  bool gate = false;
  bool no_rollback = false;
  bool allow_downgrade = false;
  int ready_timeout_seconds = 0;
};
// Makes an Upgrade; answers its name.
Result<std::string> MakeUpgrade(Session& session, const UpgradeRequest& request, const Out& out);
// A Roll back to the build before the active one; answers its name.
Result<std::string> MakeRollback(Session& session, const std::string& server, bool allow_outage, const Out& out);
// A copy of a finished Upgrade or Roll under a new name; answers it.
Result<std::string> Retry(Session& session, const std::string& name, const Out& out);

enum class Control { kApprove, kPause, kResume, kAbort, kAbandon };
Status SetControl(Session& session, const std::string& name, Control control, const Out& out);
// stop and start go to the agent of this host: desired state of its ledger.
Status StopOrStart(Session& session, const std::string& server, bool stop, const Out& out);

}  // namespace lockkeeper::cli
