// Faults: what befalls the k-th call to a port.
//
// Purpose:   the sequence tests run a scenario once to count its calls, and then once for each call and each fault.
// Threads:   one thread. Failure: Crash is thrown where the agent's process would die.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "api/base/status.h"

namespace lockkeeper::fakes {

// The agent's process is gone: its caller drops what lived in memory, and begins anew on the same world and ledger.
struct Crash {};

enum class FaultKind { kNone, kFail, kLoseReply, kCrashBefore, kCrashAfter };

class Faults {
 public:
  // Armed: the calls that change something, or only those that read.
  void Arm(FaultKind kind, int64_t at, bool reads) {
    kind_ = kind;
    at_ = at;
    reads_ = reads;
  }
  int64_t changes() const { return changes_; }
  int64_t looks() const { return looks_; }
  bool fired() const { return fired_; }
  const std::string& fired_at() const { return fired_at_; }

  // R is Status or a Result. `changes`: the call changes something.
  template <typename R, typename F>
  R Call(const char* name, bool changes, F body) {
    const int64_t number = changes ? changes_++ : looks_++;
    const bool mine = kind_ != FaultKind::kNone && number == at_ && changes == !reads_ && !fired_;
    if (!mine) return body();
    fired_ = true;
    fired_at_ = name;
    switch (kind_) {
      case FaultKind::kNone: break;
      case FaultKind::kFail: return Status(Code::kUnavailable, std::string(name) + ": injected failure");
      case FaultKind::kLoseReply: {
        R lost = body();
        (void)lost.ok();
        return Status(Code::kTimeout, std::string(name) + ": the reply was lost");
      }
      case FaultKind::kCrashBefore: throw Crash{};
      case FaultKind::kCrashAfter: {
        R done = body();
        (void)done.ok();
        throw Crash{};
      }
    }
    return body();
  }

 private:
  FaultKind kind_ = FaultKind::kNone;
  int64_t at_ = -1;
  bool reads_ = false;
  bool fired_ = false;
  std::string fired_at_;
  int64_t changes_ = 0;
  int64_t looks_ = 0;
};

}  // namespace lockkeeper::fakes
