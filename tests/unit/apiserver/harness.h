// Harness: the API handler on a store of its own, called in process under a clock that the test moves.
#pragma once

#include <concepts>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/base/json.h"
#include "api/base/sync.h"
#include "api/server/collector.h"
#include "api/server/handler.h"
#include "tests/unit/apiserver/temp_dir.h"

namespace lockkeeper::apiserver {

class ManualClock : public Clock {
 public:
  explicit ManualClock(Time start) : wall_(start) {}
  Now Read() const override {
    MutexLock lock(mutex_);
    return {wall_, Duration(wall_.time_since_epoch()), "boot"};
  }
  void Advance(Duration d) {
    MutexLock lock(mutex_);
    wall_ += d;
  }

 private:
  mutable Mutex mutex_;
  Time wall_ LK_GUARDED_BY(mutex_);
};

// One answer. `json` is null when the body is none.
struct Answer {
  int code = 0;
  Json json;
  HttpResponse http;

  std::string Header(std::string_view name) const;
  // "NotFound", … of a Status; "" for another body.
  const std::string& reason() const { return json.Get("reason").AsString(); }
  const std::string& message() const { return json.Get("message").AsString(); }
};

// Collects what a watch writes; says that the client is gone once it has `enough` lines, or at the first look after
// that many seconds.
class Lines : public ChunkWriter {
 public:
  explicit Lines(size_t enough) : enough_(enough) {}
  bool Write(std::string_view chunk) override;
  bool Alive() override;
  // The events, parsed.
  std::vector<Json> events() const;

 private:
  const size_t enough_;
  std::string text_;
};

class Harness {
 public:
  explicit Harness(Hooks hooks = {}, HandlerOptions options = Quick());
  ~Harness();

  // A request of user "alice" with the token of the token file. `target` has path and query.
  Answer Do(const std::string& method, const std::string& target, const std::string& body = "",
            std::vector<std::pair<std::string, std::string>> headers = {});
  template <std::same_as<Json> Body>
  Answer Do(const std::string& method, const std::string& target, const Body& body) {
    return Do(method, target, body.Dump());
  }
  Answer MergePatch(const std::string& target, const Json& body);
  // Runs a watch until it has that many lines (or ends by itself).
  std::vector<Json> Watch(const std::string& target, size_t lines);

  static HandlerOptions Quick();
  Store& store() { return *store_; }
  ApiHandler& handler() { return *handler_; }
  ManualClock& clock() { return clock_; }
  Collector& collector() { return *collector_; }

  // What the next request sends as its token.
  std::string token = "secret-token";

 private:
  TempDir dir_;
  ManualClock clock_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Authenticator> authenticator_;
  std::unique_ptr<ApiHandler> handler_;
  std::unique_ptr<Collector> collector_;
};

// {"metadata": {"name": NAME}, "data": {"k": VALUE}}
Json ConfigMapBody(const std::string& name, const std::string& value = "v");
// A valid Upgrade.
Json UpgradeBody(const std::string& name);

inline const std::string kMaps = "/api/v1/namespaces/default/configmaps";
inline const std::string kUpgrades = "/apis/lockkeeper.dev/v1alpha1/namespaces/default/upgrades";
inline const std::string kLeases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";

}  // namespace lockkeeper::apiserver
