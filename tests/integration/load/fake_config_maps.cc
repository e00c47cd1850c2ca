#include "tests/integration/load/fake_config_maps.h"

#include <cstdlib>

#include "tests/load/journal.h"

namespace lockkeeper::load {
namespace {

constexpr std::string_view kCollection = "/api/v1/namespaces/default/configmaps";

template <typename... Args>
bool Asked(const std::function<bool(Args...)>& fault, Args... args) {
  return fault && fault(args...);
}
bool Asked(const std::function<bool(const HttpRequest&)>& fault, const HttpRequest& request) {
  return fault && fault(request);
}

void Answer(HttpResponse& response, int status, const std::string& message) {
  response.status = status;
  response.body = Json::MakeObject({{"kind", "Status"}, {"code", status}, {"message", message}}).Dump();
}

}  // namespace

FakeConfigMaps::FakeConfigMaps(Faults faults) : faults_(std::move(faults)) {
  server_ = std::make_unique<HttpServer>(
      HttpServerConfig(), [this](const HttpRequest& request, HttpResponse& response) { Handle(request, response); });
  const Status status = server_->Start();
  LK_CHECK(status.ok());
}

FakeConfigMaps::~FakeConfigMaps() {
  {
    const MutexLock lock(mutex_);
    ending_ = true;
    changed_.NotifyAll();
  }
  server_->Stop();
}

std::string FakeConfigMaps::url() const { return "http://127.0.0.1:" + std::to_string(server_->port()); }

size_t FakeConfigMaps::objects() const {
  const MutexLock lock(mutex_);
  return objects_.size();
}

void FakeConfigMaps::Handle(const HttpRequest& request, HttpResponse& response) {
  if (Asked(faults_.cut_before, request)) {
    response.abort = true;
    return;
  }
  if (Asked(faults_.unavailable, request)) return Answer(response, 503, "not now");
  const std::string name = request.path.size() > kCollection.size() ? request.path.substr(kCollection.size() + 1) : "";
  if (request.path == "/api/v1/namespaces") {
    Answer(response, 409, "namespaces \"default\" already exists");
  } else if (request.path.compare(0, kCollection.size(), kCollection) != 0) {
    Answer(response, 404, "no such path");
  } else if (request.method == "POST") {
    Create(request, response);
  } else if (request.method == "PUT") {
    Update(request, name, response);
  } else if (request.method == "DELETE") {
    const MutexLock lock(mutex_);
    objects_.erase(name);
    Answer(response, 200, "");
  } else if (!name.empty()) {
    Get(request, name, response);
  } else if (request.HasQuery("watch")) {
    Watch(request, response);
  } else {
    List(request, response);
  }
  if (Asked(faults_.cut_after, request)) response.abort = true;
}

void FakeConfigMaps::Keep(Json object, const std::string& type, HttpResponse& response) {
  const int64_t write = ++writes_;
  const std::string name = object.At({"metadata", "name"}).AsString();
  object["metadata"].Set("resourceVersion", std::to_string(++revision_));
  response.body = object.Dump();
  events_.push_back({type, object, write});
  if (Asked(faults_.cut_watches, write)) ++cuts_;
  changed_.NotifyAll();
  if (Asked(faults_.lose_write, write)) return;
  first_.emplace(name, object);
  objects_[name] = std::move(object);
}

void FakeConfigMaps::Create(const HttpRequest& request, HttpResponse& response) {
  const Json object = *Json::Parse(request.body);
  const MutexLock lock(mutex_);
  if (objects_.count(object.At({"metadata", "name"}).AsString()) > 0) return Answer(response, 409, "already exists");
  response.status = 201;
  Keep(object, "ADDED", response);
}

void FakeConfigMaps::Update(const HttpRequest& request, const std::string& name, HttpResponse& response) {
  const Json object = *Json::Parse(request.body);
  const MutexLock lock(mutex_);
  const auto it = objects_.find(name);
  if (it == objects_.end()) return Answer(response, 404, "not found");
  if (RevisionOf(it->second) != RevisionOf(object)) return Answer(response, 409, "the object has been modified");
  Keep(object, "MODIFIED", response);
}

void FakeConfigMaps::Get(const HttpRequest& request, const std::string& name, HttpResponse& response) {
  const MutexLock lock(mutex_);
  const auto& from = Asked(faults_.stale, request) ? first_ : objects_;
  const auto it = from.find(name);
  if (it == from.end()) return Answer(response, 404, "not found");
  response.body = it->second.Dump();
}

// Pages of two, so that the way with `continue` is walked.
void FakeConfigMaps::List(const HttpRequest& request, HttpResponse& response) {
  const MutexLock lock(mutex_);
  Json list = Json::MakeObject({{"kind", "ConfigMapList"}, {"items", Json::MakeArray()}});
  list["metadata"].Set("resourceVersion", std::to_string(revision_));
  for (auto it = objects_.upper_bound(request.Query("continue")); it != objects_.end(); ++it) {
    if (list["items"].size() == 2) {
      list["metadata"].Set("continue", list["items"].AsArray().back().At({"metadata", "name"}).AsString());
      break;
    }
    list["items"].Push(it->second);
  }
  response.body = list.Dump();
}

void FakeConfigMaps::Watch(const HttpRequest& request, HttpResponse& response) {
  const int64_t after = std::atoll(request.Query("resourceVersion").c_str());
  response.stream = [this, after](ChunkWriter& writer) { return SendEvents(writer, after); };
}

bool FakeConfigMaps::SendEvents(ChunkWriter& writer, int64_t after) {
  int64_t cuts = -1;
  size_t next = 0;
  while (true) {
    std::string lines;
    {
      const MutexLock lock(mutex_);
      if (cuts < 0) {
        cuts = cuts_;
        ++watching_;
      }
      while (!ending_ && cuts == cuts_ && next == events_.size() && writer.Alive()) {
        changed_.WaitFor(mutex_, std::chrono::milliseconds(20));
      }
      if (ending_ || cuts != cuts_) return false;
      for (; next < events_.size(); ++next) {
        const Event& event = events_[next];
        if (RevisionOf(event.object) <= after || Asked(faults_.drop_event, event.write)) continue;
        const std::string line = Json::MakeObject({{"type", event.type}, {"object", event.object}}).Dump() + "\n";
        lines += line;
        if (Asked(faults_.repeat_event, event.write)) lines += line;
      }
    }
    if (!lines.empty() && !writer.Write(lines)) return false;
    if (!writer.Alive()) return false;
  }
}

}  // namespace lockkeeper::load
