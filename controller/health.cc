#include "controller/health.h"

namespace lockkeeper {

void Health::AddLive(const std::string& name, Check check) {
  MutexLock lock(mutex_);
  live_.emplace_back(name, std::move(check));
}

void Health::AddReady(const std::string& name, Check check) {
  MutexLock lock(mutex_);
  ready_.emplace_back(name, std::move(check));
}

Health::Report Health::Live() const {
  Checks checks;
  {
    MutexLock lock(mutex_);
    checks = live_;
  }
  return Run(checks, "healthz");
}

Health::Report Health::Ready() const {
  Checks checks;
  {
    MutexLock lock(mutex_);
    checks = ready_;
  }
  return Run(checks, "readyz");
}

Health::Report Health::Run(const Checks& checks, const char* what) {
  Report report;
  report.text = "[+]ping ok\n";
  for (const auto& [name, check] : checks) {
    const Status status = check();
    if (status.ok()) {
      report.text += "[+]" + name + " ok\n";
    } else {
      report.ok = false;
      report.text += "[-]" + name + " failed: " + status.message() + "\n";
    }
  }
  report.text += std::string(what) + (report.ok ? " check passed\n" : " check failed\n");
  return report;
}

}  // namespace lockkeeper
