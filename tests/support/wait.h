// WaitUntil: a test's wait for something another thread or process does.
//
// Purpose: the one place where tests sleep between two looks. Where there is a descriptor or a CondVar to wait on,
//          that is better.
// Failure: false when the deadline passed; the caller says what it waited for: ASSERT_TRUE(WaitUntil(...)) << what.
#pragma once

#include <chrono>
#include <thread>

namespace lockkeeper {

// Looks every millisecond. The default deadline is for a loaded machine under sanitizers, not a measure of anything.
template <typename Predicate>
bool WaitUntil(Predicate predicate, std::chrono::milliseconds deadline = std::chrono::seconds(20)) {
  const auto end = std::chrono::steady_clock::now() + deadline;
  while (!predicate()) {
    if (std::chrono::steady_clock::now() >= end) return predicate();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // not synchronisation: the pause between two looks
  }
  return true;
}

}  // namespace lockkeeper
