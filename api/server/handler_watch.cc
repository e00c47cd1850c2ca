// The handler's watches.
#include <algorithm>
#include <cstdlib>
#include <random>
#include <utility>

#include "api/base/log.h"
#include "api/server/handler_call.h"
#include "api/server/metrics.h"
#include "api/server/watch_hub.h"

namespace lockkeeper::apiserver {
namespace {

using SteadyClock = std::chrono::steady_clock;

// Initial events are read in pages, so that a watch of many objects does not hold them all.
constexpr size_t kInitialPage = 200;
// Without timeoutSeconds a watch ends by itself after 30 to 60 minutes, as kube-apiserver's.
constexpr int kMinWatchSeconds = 1800;

int RandomWatchSeconds() {
  thread_local std::minstd_rand random(std::random_device{}());
  return kMinWatchSeconds + static_cast<int>(random() % kMinWatchSeconds);
}

std::string Line(const char* type, const std::string& object) {
  return std::string(R"({"type":")") + type + R"(","object":)" + object + "}\n";
}

}  // namespace

struct ApiHandler::WatchState {
  HttpRequest request;  // without its body; for the hooks
  RequestInfo info;
  const ApiResource* resource;
  ListOptions options;
  Presenter presenter;
  bool initial = false;           // begin with an ADDED per object
  bool initial_bookmark = false;  // and then the bookmark that says "that was all" (sendInitialEvents)
  bool bookmarks = false;
  int64_t from = 0;
  SteadyClock::time_point end;
  bool first = true;  // a Table's first event carries the columns
  // Labels or fields decide: what leaves the selection is a DELETED, what enters it an ADDED.
  bool selects = false;

  // The line for this event, or "".
  std::string Render(const StoredEvent& event);
};

std::string ApiHandler::WatchState::Render(const StoredEvent& event) {
  if (!options.query.ns.empty() && event.key.ns != options.query.ns) return "";
  if (!options.fields.name().empty() && event.key.name != options.fields.name()) return "";
  const char* type = "";
  Json object = FromStored(*resource, event.value, event.revision);
  if (!selects) {
    type = event.type == EventType::kAdded ? "ADDED" : event.type == EventType::kModified ? "MODIFIED" : "DELETED";
  } else {
    const bool now = event.type != EventType::kDeleted && options.Matches(object);
    bool before = false;
    Json prev;
    if (event.type != EventType::kAdded) {
      // A deletion's value is the last state, which is its prev.
      prev = event.type == EventType::kDeleted ? object : FromStored(*resource, event.prev, event.revision);
      before = options.Matches(prev);
    }
    if (!now && !before) return "";
    type = now && before ? "MODIFIED" : now ? "ADDED" : "DELETED";
    if (!now) object = std::move(prev);
  }
  return Line(type, presenter.Object(object, std::exchange(first, false)));
}

void ApiHandler::Watch(Call& call) {
  Outcome<ListOptions> read = ReadListOptions(call);
  if (!read.ok()) return Respond(call, read.error());
  const HttpRequest& request = call.request;
  const std::string send_initial = request.Query("sendInitialEvents");
  const std::string match = request.Query("resourceVersionMatch");
  auto flag = [&](const char* name) { return request.Query(name) == "true" || request.Query(name) == "1"; };
  const KindInfo& kind = call.kind();
  if (!send_initial.empty() && match != "NotOlderThan") {
    return Respond(call, Invalid(kind, call.info.name, FieldReason::kForbidden, "resourceVersionMatch",
                                 "Forbidden: sendInitialEvents needs resourceVersionMatch=NotOlderThan"));
  }
  if (send_initial.empty() && !match.empty()) {
    return Respond(call, Invalid(kind, call.info.name, FieldReason::kForbidden, "resourceVersionMatch",
                                 "Forbidden: resourceVersionMatch of a watch needs sendInitialEvents"));
  }
  auto state = std::make_shared<WatchState>(WatchState{{},
                                                       call.info,
                                                       call.resource,
                                                       *read,
                                                       Presenter(*call.resource, call.shape, read->include, clock_),
                                                       false,
                                                       false,
                                                       flag("allowWatchBookmarks"),
                                                       0,
                                                       {},
                                                       true,
                                                       !read->labels.empty() || !read->fields.empty()});
  state->request = HttpRequest{request.method,     request.target,   request.path, request.query,   request.headers, "",
                               request.connection, request.sequence, request.peer, request.peer_uid};
  if (!call.info.name.empty()) {
    // A watch of one object by its path: what fieldSelector=metadata.name=… does.
    Result<FieldSelector> one = FieldSelector::Parse("metadata.name=" + call.info.name, kind);
    if (one.ok()) state->options.fields = std::move(*one);
    state->selects = true;
  }
  if (state->options.revision > 0) {
    if (auto error = AwaitRevision(state->options.revision)) return Respond(call, *error);
  }
  state->initial_bookmark = send_initial == "true" || send_initial == "1";
  state->initial = send_initial.empty() ? state->options.revision == 0 : state->initial_bookmark;
  state->from = state->options.revision;
  int64_t seconds = std::strtoll(request.Query("timeoutSeconds").c_str(), nullptr, 10);
  if (seconds <= 0) seconds = RandomWatchSeconds();
  state->end = SteadyClock::now() + std::chrono::seconds(std::min<int64_t>(seconds, 86400));
  call.response.status = 200;
  call.response.content_type = "application/json";
  call.response.headers.emplace_back("Cache-Control", "no-cache, private");
  call.response.stream = [this, state](ChunkWriter& writer) {
    metrics_->WatchBegan();
    const bool whole = RunWatch(state, writer);
    metrics_->WatchEnded();
    if (hooks_.stream_ended) hooks_.stream_ended(state->request, state->info);
    return whole;
  };
}

Status ApiHandler::SendInitialEvents(WatchState& state, ChunkWriter& writer, bool* alive) {
  ListQuery query = state.options.query;
  query.at = 0;
  size_t read = kInitialPage;
  while (read == kInitialPage && *alive) {
    read = 0;
    std::string lines;
    const Status status = store_.Read([&](Session& session) -> Status {
      if (query.at == 0) {
        LK_ASSIGN_OR_RETURN(query.at, session.Revision());
      }
      return session.List(query, [&](Record&& record, std::string_view) {
        const Json object = FromRecord(*state.resource, record);
        if (state.options.Matches(object)) {
          lines += Line("ADDED", state.presenter.Object(object, std::exchange(state.first, false)));
        }
        query.has_after = true;
        query.after_ns = record.key.ns;
        query.after_name = record.key.name;
        return ++read < kInitialPage;
      });
    });
    if (!status.ok()) return status;
    if (!lines.empty()) *alive = writer.Write(lines);
  }
  state.from = query.at;
  if (*alive && state.initial_bookmark)
    *alive = writer.Write(Line("BOOKMARK", state.presenter.Bookmark(state.from, true)));
  return Status::Ok();
}

bool ApiHandler::RunWatch(const std::shared_ptr<WatchState>& state, ChunkWriter& writer) {
  bool alive = true;
  auto fail = [&](const Status& status) {
    if (status.code() == Code::kCancelled) return alive;
    ApiError error = FromStore(status);
    return writer.Write(Line("ERROR", error.Body().Dump()));
  };
  if (state->initial) {
    const Status sent = SendInitialEvents(*state, writer, &alive);
    if (!sent.ok()) return fail(sent);
    if (!alive) return false;
  }
  WatchHub::Watch watch(store_.hub(), state->info.cluster, state->resource->storage, state->from);
  auto next_bookmark = SteadyClock::now() + options_.bookmark_interval;
  while (true) {
    const auto now = SteadyClock::now();
    if (now >= state->end) {
      if (state->bookmarks) alive = writer.Write(Line("BOOKMARK", state->presenter.Bookmark(watch.position(), false)));
      return alive;
    }
    if (state->bookmarks && now >= next_bookmark) {
      if (!writer.Write(Line("BOOKMARK", state->presenter.Bookmark(watch.position(), false)))) return false;
      next_bookmark = now + options_.bookmark_interval;
    }
    auto wake = std::min(now + options_.watch_look, state->end);
    if (state->bookmarks) wake = std::min(wake, next_bookmark);
    // Rounded up, or the last millisecond would be spent in a busy loop.
    const auto patience =
        std::chrono::duration_cast<std::chrono::milliseconds>(wake - now) + std::chrono::milliseconds(1);
    Result<std::vector<EventPtr>> events = watch.Next(patience);
    if (hooks_.aborted && hooks_.aborted(state->info)) return false;
    if (!events.ok()) return fail(events.status());
    if (events->empty()) {
      if (!writer.Alive()) return false;
      continue;
    }
    std::string lines;
    for (const EventPtr& event : *events) lines += state->Render(*event);
    if (lines.empty()) continue;
    metrics_->WatchEvents(state->resource->kind->plural,
                          static_cast<size_t>(std::count(lines.begin(), lines.end(), '\n')));
    if (!writer.Write(lines)) return false;
  }
}

}  // namespace lockkeeper::apiserver
