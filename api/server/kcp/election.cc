#include "api/server/kcp/election.h"

#include <algorithm>
#include <utility>

#include "api/base/log.h"

namespace lockkeeper::kcp {

Election::Election(ElectorConfig config, LeaseLock& lock, const Clock& clock, Journal& journal,
                   std::function<void()> changed)
    : clock_(clock),
      journal_(journal),
      changed_(std::move(changed)),
      elector_(std::move(config), lock, clock,
               {[this] { Began(); }, [this] { Ended(); },
                [](const std::string& holder) {
                  LogInfo("new leader", {{"holder", holder}});
                }}) {}

Election::~Election() { Stop(); }

void Election::Start() {
  thread_ = std::thread([this] { Run(); });
}

void Election::Began() {
  span_ = std::make_unique<Span>(journal_, "leading", "", "");
  changed_();
}

void Election::Ended() {
  // It ended by the clock, even where a hanging call comes back later.
  if (span_) span_->EndAt(std::min(clock_.Read().boot, elector_.leader_until()));
  span_.reset();
  changed_();
}

void Election::Run() {
  while (true) {
    const Duration wait = elector_.Step();
    MutexLock lock(mutex_);
    const Duration until = clock_.Read().boot + wait;
    while (!stopping_ && clock_.Read().boot < until) stop_.WaitFor(mutex_, until - clock_.Read().boot);
    if (stopping_) return;
  }
}

void Election::Stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    stop_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
  elector_.Stop();
}

}  // namespace lockkeeper::kcp
