// Election: an Elector on a thread of its own, with what it means to lead.
//
// Purpose:   runs the election loop of kcp (or leads for ever without --enable-leader-election), keeps the "leading"
//            spans of the reconcile log, wakes the controllers.
// Ownership: borrows lock, clock and journal; owns its thread.
// Threads:   Leading by any thread; Start and Stop by one.
// Failure:   none: a failed try is tried again.
#pragma once

#include <functional>
#include <memory>
#include <thread>

#include "api/base/sync.h"
#include "api/server/kcp/elector.h"
#include "api/server/kcp/journal.h"

namespace lockkeeper::kcp {

class Election {
 public:
  // `changed`: leadership began or ended; called on the election's thread.
  Election(ElectorConfig config, LeaseLock& lock, const Clock& clock, Journal& journal, std::function<void()> changed);
  ~Election();  // Stop()
  Election(const Election&) = delete;
  Election& operator=(const Election&) = delete;

  void Start();
  // Ends the loop and the leading; the Lease stays as it is.
  void Stop() LK_EXCLUDES(mutex_);
  bool Leading() const { return elector_.Leading(); }

 private:
  void Run() LK_EXCLUDES(mutex_);
  void Began();
  void Ended();

  const Clock& clock_;
  Journal& journal_;
  const std::function<void()> changed_;
  Elector elector_;
  std::unique_ptr<Span> span_;  // of the thread
  std::thread thread_;

  Mutex mutex_;
  CondVar stop_;
  bool stopping_ LK_GUARDED_BY(mutex_) = false;
};

}  // namespace lockkeeper::kcp
