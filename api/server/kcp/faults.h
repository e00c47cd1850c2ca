// Faults: what a kcp-like server does wrong on purpose.
//
// Purpose:   the knobs with which tests and the demo make a roll meet a bad build, a bad host or bad luck. They
//            come from three places, later ones on top: the build's own section (build_version.h), the environment
//            variable LOCKKEEPER_FAULTS, and the file that LOCKKEEPER_FAULTS_FILE names, which is read again
//            whenever it changes. Durations are real time, never scaled.
// Ownership: Faults outlives all that borrow it.
// Threads:   thread-safe.
// Failure:   an unknown knob is kInvalid at start; in a changed file the line is logged and the old set stays.
//
//   never-ready                readyz stays red at poststarthook/kcp-start-informers
//   ready-delay=D              readyz turns green D after the bootstrap
//   start-delay=D              listening, but no connection is taken for D (default: 1 s, scaled)
//   no-tls                     listening for ever, no connection is taken
//   crash-at-start             exits 1 before it listens
//   crash-after-ready=D        exits 1 D after readyz turned green
//   hang-on-stop               SIGTERM stops everything but the process
//   store-stall=D              in the file: from the edit on, D long, lease writes and the etcd check hang or fail
//   idle-leader                holds the Lease and reconciles nothing
//   refuse-lease-create        a create of the election's Lease fails
//   refuse-lease-renew         an update of it fails
//   reject-token=CLASS         401 for shard-admin, kcp-admin or token-file
//   slow-admission=D           Workspaces are refused with 403 "not yet ready" until D after ready
//   shutdown-mode=MODE         abort (0.32 and later, the default) or legacy (0.31 and before)
//   workspace-step-delay=D     between the phases of a Workspace (default: 0.2 s, scaled)
//   storage-flip               answers 500 on objects that a newer version wrote
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "api/base/status.h"
#include "api/base/sync.h"
#include "api/base/time.h"

namespace lockkeeper::kcp {

using FaultSet = std::map<std::string, std::string, std::less<>>;

// "a,b=2s" (or one a line, "#" begins a remark), every name known and every value well-formed.
Result<FaultSet> ParseFaults(std::string_view text);

class Faults {
 public:
  // From this process's build, environment and file.
  static Result<std::unique_ptr<Faults>> FromEnv();
  // `path` "": no file.
  static Result<std::unique_ptr<Faults>> Make(std::string_view fixed, std::string path);

  bool Has(std::string_view name) const;
  // The knob's value, "" when absent.
  std::string Value(std::string_view name) const;
  // The knob's duration; nothing when absent.
  std::optional<Duration> Time(std::string_view name) const;
  // Whether the knob with a duration was set less than that duration ago (boot clock).
  bool Within(std::string_view name) const;

 private:
  struct Entry {
    std::string value;
    Duration since{};  // boot clock
  };
  Faults(FaultSet fixed, std::string path);
  void Refresh() const LK_REQUIRES(mutex_);
  Status Load() const LK_REQUIRES(mutex_);
  void Merge(const FaultSet& live) const LK_REQUIRES(mutex_);

  const FaultSet fixed_;
  const std::string path_;
  mutable Mutex mutex_;
  mutable std::map<std::string, Entry, std::less<>> now_ LK_GUARDED_BY(mutex_);
  mutable std::string stamp_ LK_GUARDED_BY(mutex_);
};

}  // namespace lockkeeper::kcp
