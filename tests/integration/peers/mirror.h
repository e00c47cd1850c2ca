// Mirror: a Cache kept by a Reflector beside what its handlers were told, to be compared with the server.
//
// Purpose:   the runtime's promise, "the cache equals the server and no event is lost", as values. Partition takes the
//            server away from one Mirror alone; Churn writes while a fault lasts.
// Ownership: a Mirror owns its client, cache and thread; it ends them in its destructor.
// Threads:   Mirror and Churn are used from the test's thread.
// Failure:   Faults() are sentences; calls that a fault ends are no failure of Churn.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "api/base/sync.h"
#include "controller/cache.h"
#include "controller/http_api.h"
#include "controller/metrics.h"
#include "controller/reflector.h"

namespace lockkeeper::peers {

inline const Resource kConfigMaps{"", "v1", "configmaps", "ConfigMap"};

Json MakeMap(const ObjectKey& key, const std::string& value);
Status MakeNamespace(Api& api, const std::string& name);
// Makes `count` of them, PREFIX0 and so on, by several clients at once.
Status MakeMany(const RestConfig& rest, const std::string& namespace_, const std::string& prefix, int count);

// Whether this is the nightly build of a test, with stops of minutes, in a run of LK_SAMPLE_SECONDS.
bool InSample(int stop_seconds);

using Versions = std::map<ObjectKey, std::string>;  // resourceVersion of each object
// As the store has them now.
Result<Versions> Fresh(Api& api, const std::string& namespace_);

// Reads alone go through it; while cut they find nobody.
class Partition : public Api {
 public:
  explicit Partition(Api& inner) : inner_(inner) {}
  void Cut() { cut_ = true; }
  void Heal() { cut_ = false; }

  Result<ListMeta> ListEach(const Resource& resource, const std::string& namespace_, const ListOptions& options,
                            const std::function<void(Json)>& on_item) override;
  // A stream that runs is cut at its next event, which is lost.
  Status Watch(const Resource& resource, const std::string& namespace_, const WatchOptions& options,
               const std::function<bool(WatchEvent)>& on_event, const CancelToken* cancel) override;

  Result<Json> Get(const Resource&, const ObjectKey&) override { return ReadsAlone(); }
  Result<Json> Create(const Resource&, const Json&) override { return ReadsAlone(); }
  Result<Json> Update(const Resource&, const Json&) override { return ReadsAlone(); }
  Result<Json> UpdateStatus(const Resource&, const Json&) override { return ReadsAlone(); }
  Result<Json> Patch(const Resource&, const ObjectKey&, PatchType, const Json&, const std::string&) override {
    return ReadsAlone();
  }
  Result<Json> Delete(const Resource&, const ObjectKey&, const DeleteOptions&) override { return ReadsAlone(); }

 private:
  static Status ReadsAlone() { return {Code::kUnsupported, "a reflector only reads"}; }
  Status Nobody() const { return {Code::kUnavailable, "the network is cut"}; }

  Api& inner_;
  std::atomic<bool> cut_{false};
};

class Mirror {
 public:
  Mirror(RestConfig rest, const std::string& namespace_, ReflectorOptions options);
  ~Mirror();

  Versions Cached() const;
  // What a controller knows that took in every event.
  Versions Told() const;
  // Events that do not follow from those before them.
  std::vector<std::string> Faults() const;
  // Cache and handlers have what the server has, within `patience`; "" or what differs.
  std::string Differs(Api& api, std::chrono::milliseconds patience = std::chrono::seconds(60)) const;

  const Cache& cache() const { return cache_; }
  Partition& network() { return network_; }
  double Restarts(const std::string& reason) const;

 private:
  void Take(const CacheEvent& event);

  HttpApi http_;
  Partition network_;
  Cache cache_;
  Metrics metrics_;
  Reflector reflector_;
  CancelToken cancel_;
  mutable Mutex mutex_;
  Versions told_ LK_GUARDED_BY(mutex_);
  std::vector<std::string> faults_ LK_GUARDED_BY(mutex_);
  std::thread thread_;
};

// Makes, changes and deletes objects of one namespace until stopped.
class Churn {
 public:
  Churn(RestConfig rest, std::string namespace_, uint64_t seed);
  ~Churn() { Stop(); }
  // Answers how many writes were accepted.
  int Stop();
  int accepted() const { return accepted_; }

 private:
  void Run(uint64_t seed);

  HttpApi api_;
  const std::string namespace_;
  std::atomic<bool> stopping_{false};
  std::atomic<int> accepted_{0};
  std::thread thread_;
};

}  // namespace lockkeeper::peers
