// PromptPeer and PromptFront: the ports Peer and FrontAdmin for a pass that must not wait.
//
// Purpose:   what is asked through a front whose backend has died, or of a front that hangs, is answered after seconds
//            or not at all. A pass waits a tenth of a second for it and then goes by what it knows (asker.h). Readyz is
//            asked at once: it ends with the process it asks, and has the spec's own deadline.
// Ownership: borrow the inner port, which outlives them.
// Threads:   thread-safe.
// Failure:   as the port says, and kBusy: no answer yet. Neither known nor absent, and an effect of unknown state; the
//            same call again waits for the same answer.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "api/base/sync.h"
#include "reconcilers/peer/asker.h"
#include "reconcilers/ports/front_admin.h"
#include "reconcilers/ports/peer.h"

namespace lockkeeper {

// How long a pass waits for one answer. A server of this host answers in some 5 ms, a front in one.
inline constexpr Duration kPassPatience = Milliseconds(100);

class PromptPeer : public Peer {
 public:
  PromptPeer(Peer& inner, const Clock& clock, Duration patience = kPassPatience)
      : inner_(inner), asker_(clock, patience) {}

  Result<ReadyzFact> Readyz(const ServerSpec& spec, int port) override { return inner_.Readyz(spec, port); }
  Result<LeaseFact> GetLease(const ServerSpec& spec) override;
  Status DeleteLease(const ServerSpec& spec, const LeaseFact& lease) override;
  Status CreateProbe(const ServerSpec& spec, const std::string& name) override;
  Result<ProbeFact> GetProbe(const ServerSpec& spec, const std::string& name) override;
  Status DeleteProbe(const ServerSpec& spec, const std::string& name) override;
  Result<std::vector<std::string>> ListProbes(const ServerSpec& spec) override;

 private:
  Peer& inner_;
  peer::Asker asker_;
};

class PromptFront : public FrontAdmin {
 public:
  // `revision`: the ledger's. What a front said before the last word of the ledger says nothing after it.
  PromptFront(FrontAdmin& inner, std::function<int64_t()> revision, const Clock& clock,
              Duration patience = kPassPatience)
      : inner_(inner), revision_(std::move(revision)), clock_(clock), asker_(clock, patience) {}

  Result<FrontState> Get(const std::string& front) override;
  Result<FrontState> Set(const std::string& front, const FrontTarget& target) override {
    return inner_.Set(front, target);
  }
  Result<int> Drain(const std::string& front, const std::string& slot, int64_t incarnation,
                    Duration deadline) override {
    return inner_.Drain(front, slot, incarnation, deadline);
  }

 private:
  // What a front said last. It stands for a moment while the next answer is late: one that is slow is not silent.
  struct Said {
    int64_t revision = 0;
    Duration at{};
    FrontState state;
  };

  FrontAdmin& inner_;
  const std::function<int64_t()> revision_;
  const Clock& clock_;
  Mutex mutex_;
  std::map<std::string, Said> said_ LK_GUARDED_BY(mutex_);
  peer::Asker asker_;
};

}  // namespace lockkeeper
