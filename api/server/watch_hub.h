// WatchHub: hands the store's changes to watches, in order, whichever process made them.
//
// Purpose:   one thread notices commits (its own process's by Notify(), others' by inotify on the -wal file and
//            then SQLite's data_version), reads the new events once and wakes the watches that want them. A
//            watch that is behind the window in memory reads the log.
// Ownership: a Watch holds its hub by reference and must end before it.
// Threads:   thread-safe; one Watch is used by one thread.
// Failure:   Next answers kExpired when the log no longer reaches back, kCancelled after Stop(), or the
//            store's error.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "api/base/sync.h"
#include "api/base/unique_fd.h"
#include "api/server/store.h"

namespace lockkeeper::apiserver {

using EventPtr = std::shared_ptr<const StoredEvent>;

class WatchHub {
 public:
  WatchHub(std::string path, sqlite::OpenOptions options);
  ~WatchHub();
  WatchHub(const WatchHub&) = delete;
  WatchHub& operator=(const WatchHub&) = delete;

  // Hands out events after `revision`.
  Status Start(int64_t revision) LK_EXCLUDES(mutex_);
  // Ends every Next() with kCancelled, now and later, and joins the thread.
  void Stop() LK_EXCLUDES(mutex_);
  // A commit of this process happened.
  void Notify();
  // Makes every Next() return early with no events, so that callers look at their own reasons to end.
  void WakeAll() LK_EXCLUDES(mutex_);
  // The newest revision handed out.
  int64_t revision() LK_EXCLUDES(mutex_);
  // Waits until `revision` was handed out; false after `patience`.
  bool WaitFor(int64_t revision, std::chrono::milliseconds patience) LK_EXCLUDES(mutex_);
  size_t watches() LK_EXCLUDES(mutex_);

  class Watch {
   public:
    // Events of `resource` ("": all) in `cluster` ("*": all) after revision `after`.
    Watch(WatchHub& hub, std::string cluster, std::string resource, int64_t after);
    ~Watch();
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

    // The next events; empty when `patience` passed or WakeAll() was called.
    Result<std::vector<EventPtr>> Next(std::chrono::milliseconds patience);
    // All events up to here were handed out.
    int64_t position() const { return position_; }

   private:
    friend class WatchHub;
    bool Wants(const StoredEvent& event) const;

    WatchHub& hub_;
    const std::string cluster_;
    const std::string resource_;
    int64_t position_;
    CondVar wake_;
    bool woken_ = false;  // by WakeAll; guarded by the hub's mutex_
    std::list<Watch*>::iterator place_;
  };

 private:
  void Run();
  // Reads what is new; whether there was anything.
  bool Dispatch();
  Result<std::vector<EventPtr>> ReadLog(Watch& watch, int64_t upto) LK_EXCLUDES(log_mutex_);
  void Report(const Status& status);

  const std::string path_;
  const sqlite::OpenOptions options_;
  UniqueFd wake_fd_;
  std::unique_ptr<Session> session_;  // of the thread
  std::thread thread_;
  bool reported_ = false;  // of the thread: an error is logged once until it ends

  Mutex log_mutex_;
  std::unique_ptr<Session> log_session_ LK_GUARDED_BY(log_mutex_);

  Mutex mutex_;
  CondVar advanced_;
  bool stopping_ LK_GUARDED_BY(mutex_) = false;
  int64_t dispatched_ LK_GUARDED_BY(mutex_) = 0;
  // Events after floor_ up to dispatched_, all of them.
  std::deque<EventPtr> window_ LK_GUARDED_BY(mutex_);
  size_t window_bytes_ LK_GUARDED_BY(mutex_) = 0;
  int64_t floor_ LK_GUARDED_BY(mutex_) = 0;
  std::list<Watch*> watches_ LK_GUARDED_BY(mutex_);
};

}  // namespace lockkeeper::apiserver
