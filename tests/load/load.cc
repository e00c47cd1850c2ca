#include "tests/load/load.h"

#include <algorithm>
#include <optional>
#include <thread>

#include "api/base/id.h"
#include "tests/load/shared.h"
#include "tests/load/watcher.h"
#include "tests/load/worker.h"

namespace lockkeeper::load {
namespace {

constexpr std::chrono::seconds kCatchUp(10);

Status EnsureNamespace(Shared& shared, HttpClient& client) {
  Json body = Json::MakeObject({{"apiVersion", "v1"}, {"kind", "Namespace"}});
  body["metadata"].Set("name", shared.config.ns);
  const ClientRequest request = shared.Request("POST", "/api/v1/namespaces", &body);
  LK_ASSIGN_OR_RETURN(const ClientResponse response, client.Do(request));
  return response.status == 201 || response.status == 409 ? Status::Ok() : ApiError(request, response);
}

// The sequence of every object of this run.
Result<std::map<std::string, int64_t>> ReadBack(Shared& shared, HttpClient& client) {
  std::map<std::string, int64_t> found;
  std::string more;
  do {
    ClientRequest request =
        shared.Request("GET", shared.CollectionPath() + "?limit=500&labelSelector=" + shared.Selector() +
                                  (more.empty() ? "" : "&continue=" + PercentEncode(more)));
    LK_ASSIGN_OR_RETURN(const ClientResponse response, client.Do(request));
    if (response.status != 200) return ApiError(request, response);
    LK_ASSIGN_OR_RETURN(const Json list, Json::Parse(response.body));
    for (const Json& item : list.Get("items").AsArray()) {
      found[item.At({"metadata", "name"}).AsString()] = std::atoll(item.At({"data", "sequence"}).AsString().c_str());
    }
    more = list.At({"metadata", "continue"}).AsString();
  } while (!more.empty());
  return found;
}

}  // namespace

class LoadGenerator::Impl {
 public:
  explicit Impl(const LoadConfig& config) : shared_(config, "load-" + RandomName(6)), client_(shared_.ClientConfig()) {}

  Status Start() {
    LK_CHECK(threads_.empty());
    LK_RETURN_IF_ERROR(EnsureNamespace(shared_, client_));
    LK_ASSIGN_OR_RETURN(const int64_t revision, CurrentRevision(shared_, client_));
    for (int i = 0; i < shared_.config.watchers; ++i) {
      watchers_.push_back(std::make_unique<Watcher>(shared_));
      watchers_.back()->StartFrom(revision);
    }
    for (int i = 0; i < shared_.config.connections; ++i) workers_.push_back(std::make_unique<Worker>(shared_, i));
    begun_ = std::chrono::steady_clock::now();
    shared_.Begin(begun_);
    for (auto& watcher : watchers_) watching_.emplace_back([&w = *watcher] { w.Run(); });
    for (auto& worker : workers_) threads_.emplace_back([&w = *worker] { w.Run(); });
    return Status::Ok();
  }

  bool running() const { return !threads_.empty() || !watching_.empty(); }
  LoadCounts Counts() const { return shared_.Counts(); }

  LoadResult Stop() {
    LoadResult result;
    result.seed = shared_.config.seed;
    shared_.stop.Cancel();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count();
    Journal journal;
    for (const auto& worker : workers_) journal.Merge(worker->journal());
    const Instant end = std::chrono::steady_clock::now() + kCatchUp;
    for (auto& watcher : watchers_) {
      if (!watcher->CaughtUp(journal.newest_revision(), end)) shared_.Note("a watch did not catch up within 10 s");
    }
    shared_.abandon.Cancel();
    for (std::thread& thread : watching_) thread.join();
    watching_.clear();
    for (auto& watcher : watchers_) Judge(*watcher, journal, result);
    JudgeStore(journal, result);
    shared_.Report(result);
    if (shared_.config.cleanup) CleanUp(journal);
    return result;
  }

 private:
  static void Judge(Watcher& watcher, const Journal& journal, LoadResult& result) {
    const WatchLog log = watcher.log();
    result.missed_events += log.Missed(journal.revisions());
    result.duplicate_events += log.duplicates();
    result.disordered_events += log.out_of_order();
    result.expired_watches += watcher.expired();
    result.most_reconnects = std::max(result.most_reconnects, watcher.reconnects());
  }

  void JudgeStore(const Journal& journal, LoadResult& result) {
    const auto stored = ReadBack(shared_, client_);
    if (!stored.ok()) {
      result.lost_writes = static_cast<int64_t>(journal.revisions().size());
      shared_.Note("reading back: " + stored.status().ToString());
      return;
    }
    const auto lost = journal.Lost(*stored);
    result.read_back = static_cast<int64_t>(stored->size());
    result.lost_writes = static_cast<int64_t>(lost.size());
    for (const std::string& line : lost) shared_.Note(line);
  }

  // Best effort: what is left is labelled with the run.
  void CleanUp(const Journal& journal) {
    for (const std::string& name : journal.Names()) {
      if (!client_.Do(shared_.Request("DELETE", shared_.ObjectPath(name))).ok()) return;
    }
  }

  Shared shared_;
  HttpClient client_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::unique_ptr<Watcher>> watchers_;
  std::vector<std::thread> threads_;
  std::vector<std::thread> watching_;
  Instant begun_;
};

bool LoadResult::Clean() const {
  return counts.failed == 0 && counts.refused == 0 && counts.stale_reads == 0 && lost_writes == 0 &&
         missed_events == 0 && duplicate_events == 0 && disordered_events == 0 && expired_watches == 0 && counts.ok > 0;
}

Json LoadResult::ToJson() const {
  Json json = Json::MakeObject({{"requests", counts.requests},
                                {"ok", counts.ok},
                                {"retried", counts.retried},
                                {"failed", counts.failed},
                                {"refused", counts.refused},
                                {"reads", counts.reads},
                                {"writes", counts.writes},
                                {"acceptedWrites", counts.accepted_writes},
                                {"readBack", read_back},
                                {"lostWrites", lost_writes},
                                {"staleReads", counts.stale_reads},
                                {"connections", counts.connections},
                                {"watchEvents", counts.watch_events},
                                {"missedEvents", missed_events},
                                {"duplicateEvents", duplicate_events},
                                {"disorderedEvents", disordered_events},
                                {"expiredWatches", expired_watches},
                                {"watchReconnects", counts.watch_reconnects},
                                {"mostReconnects", most_reconnects},
                                {"seconds", seconds},
                                {"longestGapSeconds", longest_gap_seconds},
                                {"readMilliseconds", read_latency.ToJson()},
                                {"writeMilliseconds", write_latency.ToJson()},
                                {"seed", seed},
                                {"clean", Clean()}});
  Json list = Json::MakeArray();
  for (const std::string& error : errors) list.Push(error);
  json.Set("errors", std::move(list));
  return json;
}

LoadGenerator::LoadGenerator(const LoadConfig& config) : impl_(std::make_unique<Impl>(config)) {}
LoadGenerator::~LoadGenerator() {
  if (impl_->running()) Stop();
}
Status LoadGenerator::Start() { return impl_->Start(); }
LoadCounts LoadGenerator::Counts() const { return impl_->Counts(); }
LoadResult LoadGenerator::Stop() { return impl_->Stop(); }

Result<LoadResult> RunLoad(const LoadConfig& config, Duration duration) {
  LoadGenerator generator(config);
  LK_RETURN_IF_ERROR(generator.Start());
  const CancelToken never;
  WaitCancelled(never, std::chrono::steady_clock::now() + duration);
  return generator.Stop();
}

}  // namespace lockkeeper::load
