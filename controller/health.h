// Health: what /healthz and /readyz answer.
// Ownership: checks are functions; what they borrow outlives the Health. Threads: thread-safe; checks run on the
// thread that asks and must not block. Failure: a check's Status is its line of the answer.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "api/base/sync.h"

namespace lockkeeper {

class Health {
 public:
  using Check = std::function<Status()>;
  void AddLive(const std::string& name, Check check);
  void AddReady(const std::string& name, Check check);

  struct Report {
    bool ok = true;
    std::string text;  // "[+]ping ok", "[-]leader: …", as kube-apiserver prints it
  };
  Report Live() const;
  Report Ready() const;

 private:
  using Checks = std::vector<std::pair<std::string, Check>>;
  static Report Run(const Checks& checks, const char* what);

  mutable Mutex mutex_;
  Checks live_ LK_GUARDED_BY(mutex_);
  Checks ready_ LK_GUARDED_BY(mutex_);
};

}  // namespace lockkeeper
