// FrontAdmin: the port to the TCP fronts of one host.
//
// Purpose:   set, observe and drain the backend of a front process by its admin socket.
// Threads:   thread-safe; each call has its own deadline (2 s).
// Failure:   kUnavailable: the front does not answer (FrontSilent when its process runs); kPrecondition: a lower
//            revision than the front has; kInvalid: drain of the current backend (CurrentBackend).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/base/time.h"

namespace lockkeeper {

// Where new connections go. Two targets are the same backend when all fields but the revision are equal.
struct FrontTarget {
  bool hold = false;  // accept nothing new to a backend: keep connections waiting
  std::string slot;
  int64_t incarnation = 0;
  int64_t invocation = 0;
  std::string address;  // "127.0.0.1:43211"
  std::string boot_id;
  int64_t revision = 0;  // the ledger's; a front refuses a lower one than it has
  std::string ledger_id;

  bool SameBackend(const FrontTarget& o) const {
    return hold == o.hold && slot == o.slot && incarnation == o.incarnation && invocation == o.invocation &&
           address == o.address && boot_id == o.boot_id;
  }
  bool operator==(const FrontTarget&) const = default;
};

struct FrontBackendOpen {
  std::string slot;
  int64_t incarnation = 0;
  int64_t invocation = 0;
  std::string address;
  int open = 0;  // established and dialing
  int draining = 0;
  double oldest_seconds = 0;
  bool operator==(const FrontBackendOpen&) const = default;
};

struct FrontState {
  std::optional<FrontTarget> target;  // none: never set (holds and waits)
  int64_t generation = 0;             // counts changes of the target over the front's life, persisted
  std::vector<FrontBackendOpen> open;
  int held = 0;               // connections waiting for a backend
  int64_t drained_total = 0;  // connections closed by drains so far
  int64_t cut_total = 0;      // of those, cut with bytes possibly in flight (at the deadline)
  int64_t refused_total = 0;  // over a limit or held too long
  int64_t accepted_total = 0;
  int pid = 0;
  double uptime_seconds = 0;
  std::string version;
  std::string listen;
  bool stopping = false;      // asked to end: accepts nothing, drains
  std::string settings = {};  // hash of what it was started with; differs from the wanted: restart to apply
  bool operator==(const FrontState&) const = default;

  // Connections open on a backend; 0 when it has none.
  int OpenOn(const std::string& slot, int64_t incarnation) const {
    int n = 0;
    for (const auto& b : open) {
      if (b.slot == slot && b.incarnation == incarnation) n += b.open;
    }
    return n;
  }
};

class FrontAdmin {
 public:
  virtual ~FrontAdmin() = default;
  // `front` is "NAMESPACE/NAME".
  virtual Result<FrontState> Get(const std::string& front) = 0;
  // After ok, every connection accepted later goes to the target. Repeating is harmless.
  virtual Result<FrontState> Set(const std::string& front, const FrontTarget& target) = 0;
  // Begins to close what is open on a backend that is not current: quiet and streaming connections first, the
  // rest at the deadline. Answers how many are under drain. A repeat may only shorten the deadline.
  virtual Result<int> Drain(const std::string& front, const std::string& slot, int64_t incarnation,
                            Duration deadline) = 0;
};

}  // namespace lockkeeper
