#include "controller/reflector.h"

#include <poll.h>

#include <algorithm>
#include <optional>
#include <random>

#include "api/base/log.h"
#include "api/base/sync.h"
#include "controller/backoff.h"
#include "controller/metrics.h"

namespace lockkeeper {

namespace {

using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

constexpr std::string_view kInitialEventsEnd = "k8s.io/initial-events-end";

}  // namespace

class Reflector::Impl {
 public:
  Impl(Api& api, Cache& cache, ReflectorOptions options)
      : api_(api),
        cache_(cache),
        options_(std::move(options)),
        random_(options_.seed != 0 ? options_.seed : std::random_device{}()),
        backoff_({options_.backoff_base, options_.backoff_max, options_.backoff_reset, 1.0}, random_()),
        watch_list_(options_.watch_list) {}

  void Run(const CancelToken& cancel) {
    while (!cancel.cancelled()) {
      const Status status = ListAndWatch(cancel);
      if (cancel.cancelled()) return;
      if (status.ok()) continue;
      SetError(status);
      const milliseconds wait = backoff_.Next();
      LogInfo("watch will be begun again",
              {{"resource", Name()}, {"error", status.ToString()}, {"milliseconds", static_cast<long>(wait.count())}});
      Pause(wait, cancel);
    }
  }

  Status LastError() const {
    MutexLock lock(mutex_);
    return error_;
  }

  const Cache& cache() const { return cache_; }

 private:
  enum class WatchEnd { kAgain, kRelist };

  std::string Name() const { return cache_.resource().GroupResource(); }

  void SetError(const Status& status) {
    Status error = status;
    if (status.code() == Code::kForbidden) {
      const Resource& r = cache_.resource();
      error = Status(Code::kForbidden,
                     status.message() + ". Allow it: a Role or ClusterRole with apiGroups [\"" + r.group +
                         "\"], resources [\"" + r.plural + "\"], verbs [\"get\", \"list\", \"watch\"]" +
                         (cache_.namespace_scope().empty() ? ", bound for all namespaces"
                                                           : ", bound in namespace " + cache_.namespace_scope()));
    }
    MutexLock lock(mutex_);
    error_ = error;
  }

  void ClearError() {
    MutexLock lock(mutex_);
    error_ = Status();
  }

  // False when cancelled meanwhile.
  static bool Pause(milliseconds wait, const CancelToken& cancel) {
    pollfd p{cancel.fd(), POLLIN, 0};
    return poll(&p, 1, static_cast<int>(wait.count())) == 0;
  }

  void Restarted(const char* reason) {
    if (options_.metrics != nullptr) {
      options_.metrics->Add("watch_restarts_total", {{"resource", Name()}, {"reason", reason}});
    }
  }

  // Ok: begin again at once. An error: after a pause.
  Status ListAndWatch(const CancelToken& cancel) {
    if (watch_list_) {
      bool handled = false;
      const Status status = WatchListOnce(cancel, &handled);
      if (handled) return status;
    }
    LK_RETURN_IF_ERROR(ListOnce());
    return WatchLoop(cancel);
  }

  Status ListOnce() {
    ListOptions options;
    options.label_selector = options_.label_selector;
    options.field_selector = options_.field_selector;
    // After trouble with versions: once at the newest.
    options.resource_version = newest_once_ ? "" : last_version_.empty() ? "0" : last_version_;
    const bool newest = options.resource_version.empty();
    // From the watch cache a list comes whole; a limit would send it to the store.
    if (options.resource_version.empty() || options.resource_version == "0") options.limit = options_.page_size;
    std::vector<ObjectPtr> objects;
    const auto keep = [&](Json item) { objects.push_back(cache_.Make(std::move(item))); };
    std::string version;
    while (true) {
      auto page = api_.ListEach(cache_.resource(), cache_.namespace_scope(), options, keep);
      if (!page.ok() && page.code() == Code::kExpired && !options.continue_token.empty()) {
        // The pages grew too old: all at once.
        objects.clear();
        options.continue_token.clear();
        options.limit = 0;
        continue;
      }
      if (!page.ok() && !newest && (page.code() == Code::kExpired || page.code() == Code::kInvalid)) {
        newest_once_ = true;
        Restarted("version");
        return ListOnce();
      }
      if (!page.ok()) return page.status();
      if (version.empty()) version = page->resource_version;
      if (page->continue_token.empty()) break;
      options.continue_token = page->continue_token;
      options.resource_version.clear();
    }
    if (WentBack(version)) {
      LogWarn("the server's version went back", {{"resource", Name()}, {"seen", last_version_}, {"listed", version}});
      // An answer from a cache that is behind must not take us back; the newest one may.
      if (!newest) {
        newest_once_ = true;
        return ListOnce();
      }
    }
    newest_once_ = false;
    last_version_ = version;
    cache_.Replace(std::move(objects), version);
    ClearError();
    return {};
  }

  bool WentBack(const std::string& version) const {
    const int64_t seen = ResourceVersionNumber(last_version_);
    const int64_t now = ResourceVersionNumber(version);
    return seen >= 0 && now >= 0 && now < seen;
  }

  // After a silent watch. A server has no bookmark for one that is as far as it is itself, and nothing at all for one
  // that is further. False: a full resync.
  Result<bool> StillThere() {
    Restarted("silent");
    ListOptions options;
    options.label_selector = options_.label_selector;
    options.field_selector = options_.field_selector;
    options.limit = 1;
    LK_ASSIGN_OR_RETURN(const ListMeta now,
                        api_.ListEach(cache_.resource(), cache_.namespace_scope(), options, [](const Json&) {}));
    if (WentBack(now.resource_version)) {
      newest_once_ = true;
      Restarted("went back");
      return false;
    }
    cache_.Bookmark(last_version_);  // nothing new is news, too
    return true;
  }

  // It may be back with an older store. A list from the last version seen would wait there, as a stream without an end,
  // until the server is as far as that: the newest state it is.
  bool WasAway(SteadyClock::time_point since) {
    if (SteadyClock::now() - since <= options_.away_after) return false;
    newest_once_ = true;
    return true;
  }

  WatchOptions NewWatch() {
    WatchOptions options;
    options.label_selector = options_.label_selector;
    options.field_selector = options_.field_selector;
    options.resource_version = last_version_;
    std::uniform_int_distribution<int> seconds(options_.min_watch_seconds, 2 * options_.min_watch_seconds);
    options.timeout_seconds = seconds(random_);
    options.idle_timeout = options_.idle_timeout;
    return options;
  }

  // Watches from the last version, over and over, until a list is due.
  Status WatchLoop(const CancelToken& cancel) {
    int unavailable = 0;
    SteadyClock::time_point cut_at;
    while (!cancel.cancelled()) {
      const auto start = SteadyClock::now();
      int events = 0;
      Status broken;
      const Status status = api_.Watch(
          cache_.resource(), cache_.namespace_scope(), NewWatch(),
          [&](WatchEvent event) {
            ++events;
            broken = Take(std::move(event));
            return broken.ok();
          },
          &cancel);
      if (cancel.cancelled()) return {};
      if (!broken.ok()) return broken;
      if (events > 0) {
        ClearError();
        unavailable = 0;
      }
      switch (status.code()) {
        case Code::kOk:
          if (events == 0 && SteadyClock::now() - start < options_.very_short_watch) {
            Restarted("short");
            return {Code::kUnavailable, "the watch of " + Name() + " ended at once without an event"};
          }
          Restarted("ended");
          continue;
        case Code::kExpired:
          // A list from the last version first: only if that is refused at the newest. Sparing the store matters
          // when all watchers are thrown out at once.
          Restarted("expired");
          if (events == 0 && ++expired_in_a_row_ > 1) return status;
          return {};
        case Code::kTimeout: {
          const Result<bool> same = StillThere();
          if (!same.ok()) return same.status();
          if (!*same) return {};
          continue;
        }
        case Code::kUnavailable:
        case Code::kInternal: {
          // Nothing says that we missed anything: the watch goes on from where it was.
          Restarted("cut");
          if (++unavailable == 1) {
            cut_at = SteadyClock::now();
            // A watch that worked and was cut (a server rolled over) is begun again at once.
            if (events > 0 || cut_at - start > options_.very_short_watch) continue;
          }
          if (WasAway(cut_at)) return status;
          SetError(status);
          if (!Pause(backoff_.Next(), cancel)) return {};
          if (WasAway(cut_at)) return {};
          continue;
        }
        default: Restarted("error"); return status;
      }
    }
    return {};
  }

  // One event of a running watch. An error makes a full resync.
  Status Take(WatchEvent event) {
    const std::string version = ResourceVersionOf(event.object);
    if (version.empty()) return {Code::kInternal, "an event of " + Name() + " without a resourceVersion"};
    if (WentBack(version)) {
      newest_once_ = true;
      Restarted("went back");
      return {Code::kExpired, "the version of " + Name() + " went back from " + last_version_ + " to " + version +
                                  " (a restored store, or another server): full resync"};
    }
    last_version_ = version;
    expired_in_a_row_ = 0;
    if (event.type == WatchEventType::kBookmark) {
      cache_.Bookmark(version);
    } else {
      cache_.Apply(event.type, cache_.Make(std::move(event.object)));
    }
    return {};
  }

  // One stream that first gives all there is, then goes on as a watch. `handled` stays false when the server cannot.
  Status WatchListOnce(const CancelToken& cancel, bool* handled) {
    WatchOptions options = NewWatch();
    options.send_initial_events = true;
    options.resource_version_match = "NotOlderThan";
    if (newest_once_) options.resource_version.clear();
    std::map<ObjectKey, ObjectPtr> initial;
    bool complete = false;
    Status broken;
    auto warn_at = SteadyClock::now() + std::chrono::seconds(10);
    const Status status = api_.Watch(
        cache_.resource(), cache_.namespace_scope(), options,
        [&](WatchEvent event) {
          *handled = true;
          if (complete) {
            broken = Take(std::move(event));
            return broken.ok();
          }
          const std::string version = ResourceVersionOf(event.object);
          if (event.type == WatchEventType::kBookmark) {
            if (event.object.At({"metadata", "annotations", kInitialEventsEnd}).AsString() != "true") return true;
            std::vector<ObjectPtr> objects;
            for (auto& [key, object] : initial) objects.push_back(std::move(object));
            initial.clear();
            complete = true;
            newest_once_ = false;
            last_version_ = version;
            cache_.Replace(std::move(objects), version);
            ClearError();
            return true;
          }
          ObjectPtr object = cache_.Make(std::move(event.object));
          if (event.type == WatchEventType::kDeleted) {
            initial.erase(object->key());
          } else {
            initial[object->key()] = std::move(object);
          }
          if (SteadyClock::now() > warn_at) {
            warn_at += std::chrono::seconds(10);
            LogWarn("still waiting for the first events",
                    {{"resource", Name()}, {"objects", static_cast<long>(initial.size())}});
          }
          return true;
        },
        &cancel);
    if (cancel.cancelled()) {
      *handled = true;
      return {};
    }
    if (!broken.ok()) return broken;
    if (complete) {
      // From here as a plain watch.
      if (status.code() == Code::kTimeout) {
        const Result<bool> same = StillThere();
        if (!same.ok() || !*same) return same.ok() ? Status() : same.status();
      }
      if (status.ok() || status.code() == Code::kTimeout || status.code() == Code::kUnavailable)
        return WatchLoop(cancel);
      return status.code() == Code::kExpired ? Status() : status;
    }
    if (!*handled && (status.code() == Code::kInvalid || status.code() == Code::kUnsupported || status.ok())) {
      // Older servers refuse it, or ignore it and end in order.
      LogDebug("this server cannot stream lists", {{"resource", Name()}});
      watch_list_ = false;
      return {};
    }
    *handled = true;
    if (status.code() == Code::kExpired) {
      newest_once_ = true;
      return {};
    }
    return status.ok()
               ? Status(Code::kUnavailable, "the stream of " + Name() + " ended before its first state was whole")
               : status;
  }

  Api& api_;
  Cache& cache_;
  const ReflectorOptions options_;
  std::mt19937_64 random_;
  Backoff backoff_;
  bool watch_list_;
  bool newest_once_ = false;
  int expired_in_a_row_ = 0;
  std::string last_version_;

  mutable Mutex mutex_;
  Status error_ LK_GUARDED_BY(mutex_);
};

Reflector::Reflector(Api& api, Cache& cache, ReflectorOptions options)
    : impl_(std::make_unique<Impl>(api, cache, std::move(options))) {}
Reflector::~Reflector() = default;

void Reflector::Run(const CancelToken& cancel) { impl_->Run(cancel); }
Status Reflector::LastError() const { return impl_->LastError(); }
const Cache& Reflector::cache() const { return impl_->cache(); }

}  // namespace lockkeeper
