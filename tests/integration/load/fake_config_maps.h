// FakeConfigMaps: just enough of a Kubernetes API server to put load on, with one fault at a time.
// Threads: thread-safe. Failure: a request it does not know is answered 404.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/base/json.h"
#include "api/base/sync.h"
#include "api/transport/http_server.h"

namespace lockkeeper::load {

struct Faults {
  // Asked with the number of the write, from 1.
  std::function<bool(int64_t)> lose_write{};    // said to be accepted, not kept; its event is sent
  std::function<bool(int64_t)> drop_event{};    // kept, but no watch hears of it
  std::function<bool(int64_t)> repeat_event{};  // the watches hear of it twice
  std::function<bool(int64_t)> cut_watches{};   // every watch is cut after it
  // Asked with each request; "before" or "after" its effect the connection is cut without an answer.
  std::function<bool(const HttpRequest&)> cut_before{};
  std::function<bool(const HttpRequest&)> cut_after{};
  std::function<bool(const HttpRequest&)> unavailable{};  // 503
  std::function<bool(const HttpRequest&)> stale{};        // a GET answers the object's first state
};

class FakeConfigMaps {
 public:
  explicit FakeConfigMaps(Faults faults);
  ~FakeConfigMaps();

  std::string url() const;
  HttpServer& server() { return *server_; }
  size_t objects() const;
  int watching() const { return watching_.load(); }

 private:
  struct Event {
    std::string type;
    Json object;
    int64_t write;
  };

  void Handle(const HttpRequest& request, HttpResponse& response);
  void Create(const HttpRequest& request, HttpResponse& response);
  void Update(const HttpRequest& request, const std::string& name, HttpResponse& response);
  void Get(const HttpRequest& request, const std::string& name, HttpResponse& response);
  void List(const HttpRequest& request, HttpResponse& response);
  void Watch(const HttpRequest& request, HttpResponse& response);
  bool SendEvents(ChunkWriter& writer, int64_t after);
  // Keeps the object under the next revision and answers it.
  void Keep(Json object, const std::string& type, HttpResponse& response) LK_REQUIRES(mutex_);

  const Faults faults_;
  std::atomic<int> watching_{0};
  mutable Mutex mutex_;
  CondVar changed_;
  bool ending_ LK_GUARDED_BY(mutex_) = false;
  int64_t revision_ LK_GUARDED_BY(mutex_) = 100;
  int64_t writes_ LK_GUARDED_BY(mutex_) = 0;
  int64_t cuts_ LK_GUARDED_BY(mutex_) = 0;
  std::map<std::string, Json> objects_ LK_GUARDED_BY(mutex_);
  std::map<std::string, Json> first_ LK_GUARDED_BY(mutex_);
  std::vector<Event> events_ LK_GUARDED_BY(mutex_);
  std::unique_ptr<HttpServer> server_;
};

}  // namespace lockkeeper::load
