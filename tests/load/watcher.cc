#include "tests/load/watcher.h"

#include <algorithm>

namespace lockkeeper::load {
namespace {

// A server sends a bookmark each minute; half as much again is silence.
constexpr std::chrono::milliseconds kIdle = std::chrono::seconds(90);
constexpr std::chrono::milliseconds kPause = std::chrono::milliseconds(50);

}  // namespace

Watcher::Watcher(Shared& shared) : shared_(shared), client_(shared.ClientConfig()) {}

void Watcher::Run() {
  while (!shared_.abandon.cancelled()) {
    const ClientRequest request = shared_.Request(
        "GET", shared_.CollectionPath() + "?watch=true&allowWatchBookmarks=true&labelSelector=" + shared_.Selector() +
                   "&resourceVersion=" + std::to_string(revision_));
    std::string rest;
    const auto end = client_.Stream(
        request, kIdle,
        [&](std::string_view piece) {
          rest += piece;
          size_t begin = 0;
          for (size_t newline; (newline = rest.find('\n', begin)) != std::string::npos; begin = newline + 1) {
            Line(std::string_view(rest).substr(begin, newline - begin));
          }
          rest.erase(0, begin);
          return !gone_;
        },
        &shared_.abandon);
    if (shared_.abandon.cancelled()) return;
    if (end.status.ok() && end.response.status == 410) gone_ = true;
    ++reconnects_;
    shared_.WatchEnded(end.status.ok() && end.response.status / 100 != 2 ? ApiError(request, end.response)
                                                                         : end.status);
    if (gone_) {
      ++expired_;
      const auto now = CurrentRevision(shared_, client_);
      if (now.ok()) {
        revision_ = *now;
        gone_ = false;
      }
    }
    const bool trouble = !end.status.ok() || end.response.status / 100 != 2;
    if (trouble && WaitCancelled(shared_.abandon, std::chrono::steady_clock::now() + kPause)) return;
  }
}

void Watcher::Line(std::string_view line) {
  const auto event = Json::Parse(line);
  if (!event.ok()) return shared_.Note("watch: " + event.status().ToString());
  const std::string& type = event->Get("type").AsString();
  if (type == "ERROR") {
    gone_ = gone_ || event->At({"object", "code"}).AsInt() == 410;
    return shared_.Note("watch: " + event->Get("object").Dump());
  }
  const int64_t revision = RevisionOf(event->Get("object"));
  revision_ = std::max(revision_, revision);
  if (type == "BOOKMARK") return;
  shared_.WatchEvent();
  const MutexLock lock(mutex_);
  log_.Event(revision);
  moved_.NotifyAll();
}

bool Watcher::CaughtUp(int64_t revision, Instant end) {
  const MutexLock lock(mutex_);
  while (log_.newest() < revision) {
    const auto left = end - std::chrono::steady_clock::now();
    if (left <= left.zero()) return false;
    moved_.WaitFor(mutex_, left);
  }
  return true;
}

WatchLog Watcher::log() {
  const MutexLock lock(mutex_);
  return log_;
}

Result<int64_t> CurrentRevision(Shared& shared, HttpClient& client) {
  const ClientRequest request =
      shared.Request("GET", shared.CollectionPath() + "?limit=1&labelSelector=" + shared.Selector());
  LK_ASSIGN_OR_RETURN(const ClientResponse response, client.Do(request, &shared.abandon));
  if (response.status != 200) return ApiError(request, response);
  LK_ASSIGN_OR_RETURN(const Json list, Json::Parse(response.body));
  const int64_t revision = RevisionOf(list);
  if (revision == 0) return Status(Code::kInternal, request.target + ": the list has no resourceVersion");
  return revision;
}

}  // namespace lockkeeper::load
