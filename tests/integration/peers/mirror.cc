#include "tests/integration/peers/mirror.h"

#include <cstdlib>
#include <random>

#include "tests/support/wait.h"

namespace lockkeeper::peers {
namespace {

constexpr int kWriters = 8;
constexpr int kNames = 50;  // of Churn

HttpApiOptions Impatient() {
  HttpApiOptions options;
  options.user_agent = "churn";
  options.timeout = std::chrono::seconds(2);
  options.retry_budget = std::chrono::milliseconds(0);
  return options;
}

}  // namespace

bool InSample(int stop_seconds) { return stop_seconds > 60 && std::getenv("LK_SAMPLE_SECONDS") != nullptr; }

Json MakeMap(const ObjectKey& key, const std::string& value) {
  return Json::MakeObject({{"apiVersion", "v1"},
                           {"kind", "ConfigMap"},
                           {"metadata", Json::MakeObject({{"namespace", key.namespace_}, {"name", key.name}})},
                           {"data", Json::MakeObject({{"value", value}})}});
}

Status MakeNamespace(Api& api, const std::string& name) {
  const Json object =
      Json::MakeObject({{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", Json::MakeObject({{"name", name}})}});
  const Status made = api.Create({"", "v1", "namespaces", "Namespace", false}, object).status();
  return made.code() == Code::kAlreadyExists ? Status::Ok() : made;
}

Status MakeMany(const RestConfig& rest, const std::string& namespace_, const std::string& prefix, int count) {
  std::atomic<int> next{0};
  Mutex mutex;
  Status failed;
  std::vector<std::thread> writers;
  for (int w = 0; w < kWriters; ++w) {
    writers.emplace_back([&] {
      HttpApi api(rest, {});
      for (int i = next++; i < count; i = next++) {
        const Status made = api.Create(kConfigMaps, MakeMap({namespace_, prefix + std::to_string(i)}, "0")).status();
        if (made.ok()) continue;
        MutexLock lock(mutex);
        failed = made;
        return;
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  return failed;
}

Result<Versions> Fresh(Api& api, const std::string& namespace_) {
  LK_ASSIGN_OR_RETURN(const ObjectList list, api.List(kConfigMaps, namespace_, {}));
  Versions out;
  for (const Json& object : list.items) out[ObjectKey::Of(object)] = ResourceVersionOf(object);
  return out;
}

Result<ListMeta> Partition::ListEach(const Resource& resource, const std::string& namespace_,
                                     const ListOptions& options, const std::function<void(Json)>& on_item) {
  if (cut_) return Nobody();
  return inner_.ListEach(resource, namespace_, options, on_item);
}

Status Partition::Watch(const Resource& resource, const std::string& namespace_, const WatchOptions& options,
                        const std::function<bool(WatchEvent)>& on_event, const CancelToken* cancel) {
  if (cut_) return Nobody();
  const Status ended = inner_.Watch(
      resource, namespace_, options, [&](WatchEvent event) { return !cut_ && on_event(std::move(event)); }, cancel);
  return cut_ ? Nobody() : ended;
}

Mirror::Mirror(RestConfig rest, const std::string& namespace_, ReflectorOptions options)
    : http_(std::move(rest), {}), network_(http_), cache_(kConfigMaps, namespace_), reflector_(network_, cache_, [&] {
        options.metrics = &metrics_;
        return options;
      }()) {
  cache_.AddHandler([this](const CacheEvent& event) { Take(event); });
  thread_ = std::thread([this] { reflector_.Run(cancel_); });
}

Mirror::~Mirror() {
  cancel_.Cancel();
  http_.CancelAll();
  thread_.join();
}

void Mirror::Take(const CacheEvent& event) {
  const ObjectKey& key = event.object->key();
  MutexLock lock(mutex_);
  const auto known = told_.find(key);
  if (event.type == CacheEvent::Type::kAdded) {
    if (known != told_.end()) faults_.push_back(key.ToString() + " was added and is there already");
  } else if (known == told_.end()) {
    faults_.push_back(key.ToString() + " was changed or deleted and is not there");
  } else if (event.old_object == nullptr || event.old_object->resource_version() != known->second) {
    faults_.push_back(key.ToString() + " was changed from a state that nobody was told of");
  }
  if (event.type == CacheEvent::Type::kDeleted) {
    told_.erase(key);
  } else {
    told_[key] = event.object->resource_version();
  }
}

Versions Mirror::Cached() const {
  Versions out;
  for (const ObjectPtr& object : cache_.List("")) out[object->key()] = object->resource_version();
  return out;
}

Versions Mirror::Told() const {
  MutexLock lock(mutex_);
  return told_;
}

std::vector<std::string> Mirror::Faults() const {
  MutexLock lock(mutex_);
  return faults_;
}

std::string Mirror::Differs(Api& api, std::chrono::milliseconds patience) const {
  const Result<Versions> fresh = Fresh(api, cache_.namespace_scope());
  if (!fresh.ok()) return fresh.status().ToString();
  if (WaitUntil([&] { return Cached() == *fresh && Told() == *fresh; }, patience)) return "";
  const Versions cached = Cached();
  std::string text = "the server has " + std::to_string(fresh->size()) + ", the cache " +
                     std::to_string(cached.size()) + ", handlers know of " + std::to_string(Told().size()) +
                     "; the reflector says " + reflector_.LastError().ToString();
  int shown = 0;
  for (const auto& [key, version] : *fresh) {
    const auto it = cached.find(key);
    if (it != cached.end() && it->second == version) continue;
    text +=
        "\n  " + key.ToString() + ": " + version + " there, " + (it == cached.end() ? "none" : it->second) + " here";
    if (++shown == 5) break;
  }
  return text;
}

double Mirror::Restarts(const std::string& reason) const {
  return metrics_.Value("watch_restarts_total", {{"resource", kConfigMaps.GroupResource()}, {"reason", reason}});
}

Churn::Churn(RestConfig rest, std::string namespace_in, uint64_t seed)
    : api_(std::move(rest), Impatient()), namespace_(std::move(namespace_in)), thread_([this, seed] { Run(seed); }) {}

int Churn::Stop() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
  return accepted_;
}

void Churn::Run(uint64_t seed) {
  std::mt19937_64 random(seed);
  while (!stopping_) {
    const ObjectKey key{namespace_, "churn-" + std::to_string(random() % kNames)};
    const uint64_t what = random() % 4;
    Status done;
    if (what == 0) {
      done = api_.Delete(kConfigMaps, key, {}).status();
    } else {
      const Json map = MakeMap(key, std::to_string(random()));
      done = api_.Create(kConfigMaps, map).status();
      if (done.code() == Code::kAlreadyExists) done = api_.Update(kConfigMaps, map).status();
    }
    if (done.ok()) ++accepted_;
    // Not faster than both sides can read: 200 a second at most. While nobody answers it is no busy loop either.
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // not synchronisation: the pace of the writes
  }
}

}  // namespace lockkeeper::peers
