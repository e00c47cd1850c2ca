// TestFront: a whole front in the test's own process, on port 0, in a folder of its own.
// Threads: methods from any thread. Failure: a start that fails aborts.
#pragma once

#include <stdlib.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "api/base/file.h"
#include "api/base/log.h"
#include "reconcilers/front/front_service.h"
#include "tests/integration/front/sockets.h"

namespace lockkeeper::front {

// A folder below the temporary one, short enough for a socket's path; removed at the end.
class TempDir {
 public:
  TempDir() {
    std::string pattern = "/tmp/lkf-XXXXXX";
    path_ = ::mkdtemp(pattern.data());
  }
  ~TempDir() { (void)RemoveTree(path_); }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// A target on this boot; each call has a higher revision than the one before.
inline FrontTarget TargetAt(const std::string& slot, const std::string& address, int64_t incarnation = 1) {
  static std::atomic<int64_t> revision{0};
  FrontTarget t;
  t.hold = address.empty();
  t.slot = slot;
  t.incarnation = incarnation;
  t.invocation = 1;
  t.address = address;
  t.boot_id = BootId();
  t.revision = ++revision;
  t.ledger_id = "ledger";
  return t;
}

class TestFront {
 public:
  explicit TestFront(FrontLimits limits = {}) {
    static const bool quiet = [] { return ConfigureLog(LogLevel::kError, LogFormat::kText), true; }();
    (void)quiet;
    FrontConfig config;
    config.name = "default/test";
    config.listen = "127.0.0.1:0";
    config.state_dir = dir_.path() + "/state";
    config.admin_path = FrontAdminPath(dir_.path(), "default", "test");
    config.version = "v-test";
    config.limits = limits;
    service_ = std::make_unique<FrontService>(config);
    const Status started = service_->Start();
    LK_CHECK(started.ok());
    thread_ = std::thread([this] { service_->Run(); });
  }
  ~TestFront() {
    service_->StopNow();
    thread_.join();
  }

  FrontService& service() { return *service_; }
  const std::string& dir() const { return dir_.path(); }
  std::string address() const { return service_->listen(); }
  Peer Connect() const { return Peer::Connect(address()); }
  bool Point(const std::string& slot, const std::string& at, int64_t incarnation = 1) {
    return service_->Set(TargetAt(slot, at, incarnation)).ok();
  }
  bool Hold() { return service_->Set(TargetAt("", "")).ok(); }
  FrontState Get() { return *service_->Get(); }
  double Metric(const std::string& line) {
    const std::string text = "\n" + *service_->plane().MetricsText();
    const size_t at = text.find("\n" + line + " ");
    return at == std::string::npos ? -1 : std::strtod(text.c_str() + at + line.size() + 2, nullptr);
  }

 private:
  TempDir dir_;
  std::unique_ptr<FrontService> service_;
  std::thread thread_;
};

}  // namespace lockkeeper::front
