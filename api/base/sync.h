// Mutex, MutexLock and CondVar with clang's thread-safety annotations (no-ops under g++).
//
// Purpose:   lock discipline that is compiled: every guarded member says LK_GUARDED_BY(mutex_), and a
//            clang pass with -Wthread-safety -Werror refuses an unguarded access.
// Threads:   that is what these are for.
// Failure:   none.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define LK_TSA(x) __attribute__((x))
#else
#define LK_TSA(x)
#endif
#define LK_CAPABILITY(x) LK_TSA(capability(x))
#define LK_SCOPED_CAPABILITY LK_TSA(scoped_lockable)
#define LK_GUARDED_BY(x) LK_TSA(guarded_by(x))
#define LK_PT_GUARDED_BY(x) LK_TSA(pt_guarded_by(x))
#define LK_REQUIRES(...) LK_TSA(requires_capability(__VA_ARGS__))
#define LK_EXCLUDES(...) LK_TSA(locks_excluded(__VA_ARGS__))
#define LK_ACQUIRE(...) LK_TSA(acquire_capability(__VA_ARGS__))
#define LK_RELEASE(...) LK_TSA(release_capability(__VA_ARGS__))
#define LK_NO_TSA LK_TSA(no_thread_safety_analysis)

namespace lockkeeper {

class LK_CAPABILITY("mutex") Mutex {
 public:
  void Lock() LK_ACQUIRE() { mutex_.lock(); }
  void Unlock() LK_RELEASE() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

class LK_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) LK_ACQUIRE(mutex) : mutex_(mutex) { mutex_.Lock(); }
  ~MutexLock() LK_RELEASE() { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// Callers loop on their condition; a wake-up proves nothing.
class CondVar {
 public:
  void Wait(Mutex& mutex) LK_REQUIRES(mutex) LK_NO_TSA {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    cv_.wait(lock);
    lock.release();
  }
  // False when `d` passed without a wake-up.
  template <typename Rep, typename Period>
  bool WaitFor(Mutex& mutex, std::chrono::duration<Rep, Period> d) LK_REQUIRES(mutex) LK_NO_TSA {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    const bool woken = cv_.wait_for(lock, d) == std::cv_status::no_timeout;
    lock.release();
    return woken;
  }
  void NotifyOne() { cv_.notify_one(); }
  void NotifyAll() { cv_.notify_all(); }

 private:
  std::condition_variable cv_;
};

}  // namespace lockkeeper
