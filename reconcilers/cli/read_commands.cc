#include <poll.h>

#include <algorithm>
#include <set>
#include <thread>

#include "controller/typed.h"
#include "reconcilers/cli/commands.h"
#include "reconcilers/cli/target.h"
#include "reconcilers/cli/view.h"

namespace lockkeeper::cli {
namespace {

constexpr int kLookMilliseconds = 100;

std::string Text(const Json& json) {
  if (json.IsString()) return json.AsString().empty() ? "-" : json.AsString();
  if (json.IsNull()) return "-";
  return json.Dump();
}

// A preflight that succeeded brought up nothing: its line must not read as an upgrade.
std::string KindText(const std::string& kind, bool preflight) { return preflight ? kind + " (plan)" : kind; }

// The agent's own view, for when the API is away.
Status StatusFromAgent(Session& session, const Status& why, const Out& out) {
  const Result<Json> status = session.agent().Get("/v1/status");
  if (!status.ok()) {
    return Status(why.code(), why.message() + "; nor does an agent answer at " + session.agent().path() +
                                  ": is `lockkeeper up` running, and is LOCKKEEPER_DATA (or --data) its folder?");
  }
  out("The API does not answer (" + why.message() + "); this is what the agent's ledger says.\n\n");
  out("host " + Text(status->Get("host")) + ", ledger " + Text(status->At({"ledger", "id"})) + " at revision " +
      Text(status->At({"ledger", "revision"})) + "\n");
  if (!status->Get("trouble").AsString().empty()) out("trouble: " + status->Get("trouble").AsString() + "\n");
  std::vector<std::vector<std::string>> rows;
  for (const Json& server : status->Get("servers").AsArray()) {
    for (const Json& slot : server.Get("slots").AsArray()) {
      rows.push_back({server.Get("namespace").AsString() + "/" + server.Get("name").AsString(),
                      slot.Get("name").AsString() + (slot.Get("active").AsBool() ? "*" : ""), Text(slot.Get("state")),
                      Text(slot.Get("version")), Text(slot.Get("pid")), Text(slot.Get("port")),
                      server.Has("operation")
                          ? Text(server.At({"operation", "name"})) + " at " + Text(server.At({"operation", "step"}))
                          : "-"});
    }
  }
  out(Table({"SERVER", "SLOT", "STATE", "VERSION", "PID", "PORT", "OPERATION"}, rows));
  const std::string released = ReleasedText(status->Get("servers").AsArray());
  if (!released.empty()) out("\n" + released);
  return Status::Ok();
}

// Views of the Servers that were deleted and run on, by the agent of this host; none when no agent answers.
std::vector<Json> ReleasedViews(Session& session, bool all_namespaces, const std::string& name,
                                const std::vector<Server>& known) {
  std::vector<Json> views;
  const Result<Json> status = session.agent().Get("/v1/status");
  if (!status.ok()) return views;
  for (const Json& view : status->Get("servers").AsArray()) {
    const std::string &ns = view.Get("namespace").AsString(), &its = view.Get("name").AsString();
    const bool wanted = view.Get("released").AsBool() && (all_namespaces || ns == session.ns()) &&
                        (name.empty() || its == name) && std::none_of(known.begin(), known.end(), [&](const Server& s) {
                          return s.metadata.namespace_ == ns && s.metadata.name == its;
                        });
    if (wanted) views.push_back(view);
  }
  return views;
}

// What a watch is about: an Upgrade and its Roll, or a Roll alone.
struct Followed {
  std::string upgrade;
  std::string roll;
};

Result<Followed> FindTarget(Api& api, const std::string& ns, const std::string& text) {
  LK_ASSIGN_OR_RETURN(const OperationTarget target, ParseOperation(text));
  if (target.kind != Roll::kKind) {
    const Status found = Get<Upgrade>(api, {ns, target.name}).status();
    if (found.ok()) return Followed{target.name, ""};
    if (found.code() != Code::kNotFound) return found;
  }
  if (target.kind != Upgrade::kKind) {
    const Status found = Get<Roll>(api, {ns, target.name}).status();
    if (found.ok()) return Followed{"", target.name};
    if (found.code() != Code::kNotFound) return found;
  }
  return NoSuchOperation(ns, target);
}

// What the operations in flight say; one that cannot be read says nothing.
std::vector<OperationNews> NewsOf(Api& api, const std::vector<Server>& servers) {
  std::vector<OperationNews> news;
  const auto add = [&](const auto& object) {
    if (object.ok()) news.push_back({object->metadata.uid, object->status.conditions, object->status.next_actions});
  };
  for (const Server& s : servers) {
    if (!s.status.operation) continue;
    const ObjectKey key{s.metadata.namespace_, s.status.operation->name};
    if (s.status.operation->kind == Upgrade::kKind) add(Get<Upgrade>(api, key));
    if (s.status.operation->kind == Roll::kKind) add(Get<Roll>(api, key));
  }
  return news;
}

}  // namespace

Status ShowStatus(Session& session, const std::string& server, bool all_namespaces, const Out& out) {
  const auto api = session.api();
  if (!api.ok()) return IsAway(api.status()) ? StatusFromAgent(session, api.status(), out) : api.status();
  const Time now = SystemClock().Read().wall;
  if (!server.empty()) {
    LK_ASSIGN_OR_RETURN(const std::string name, ParseServer(server));
    const Result<Server> one = FindServer(**api, session.ns(), name);
    if (!one.ok()) {
      const std::string released = ReleasedText(ReleasedViews(session, false, name, {}));
      if (one.code() == Code::kNotFound && !released.empty()) {
        out(released);
        return Status::Ok();
      }
      return one.code() != Code::kNotFound && IsAway(one.status()) ? StatusFromAgent(session, one.status(), out)
                                                                   : one.status();
    }
    out(ServerText(*one, NewsOf(**api, {*one}), now));
    return Status::Ok();
  }
  const Result<std::vector<Server>> all = List<Server>(**api, all_namespaces ? "" : session.ns());
  if (!all.ok()) return IsAway(all.status()) ? StatusFromAgent(session, all.status(), out) : all.status();
  const std::string released = ReleasedText(ReleasedViews(session, all_namespaces, "", *all));
  if (!all->empty()) {
    out(StatusText(*all, NewsOf(**api, *all), now) + (released.empty() ? "" : "\n" + released));
    return Status::Ok();
  }
  const std::string none =
      all_namespaces ? "No Servers." : "No Servers in namespace " + session.ns() + " (-A: of every namespace).";
  out(none + (released.empty() ? " Apply one: kubectl apply -f manifests/samples/\n" : "\n\n" + released));
  return Status::Ok();
}

Status ShowHistory(Session& session, const std::string& of_server, int limit, const Out& out) {
  LK_ASSIGN_OR_RETURN(const std::string server, ParseServer(of_server));
  std::vector<std::vector<std::string>> rows;
  const auto add = [&](const std::string& of, const std::string& kind, const std::string& name,
                       const std::string& version, const std::string& outcome, const std::string& finished,
                       const std::string& by) {
    rows.push_back({of, finished, kind, name, version, outcome, by});
  };
  const auto from_agent = [&]() -> Status {
    const std::string query = server.empty() ? "" : "&server=" + PercentEncode(session.ns() + "/" + server);
    LK_ASSIGN_OR_RETURN(const Json items, session.agent().Get("/v1/history?limit=" + std::to_string(limit) + query));
    for (const Json& o : items.Get("items").AsArray()) {
      add(server.empty() ? "-" : server, KindText(Text(o.Get("kind")), o.Get("mode").AsString() == "Preflight"),
          Text(o.Get("name")), Text(o.Get("version")), Text(o.Get("outcome")), Text(o.Get("finishedAt")),
          Text(o.Get("requestedBy")));
    }
    return Status::Ok();
  };
  const auto api = session.api();
  const Result<std::vector<Server>> all =
      api.ok() ? List<Server>(**api, session.ns()) : Result<std::vector<Server>>(api.status());
  if (all.ok()) {
    bool found = server.empty();
    for (const Server& s : *all) {
      if (!server.empty() && s.metadata.name != server) continue;
      found = true;
      for (const HistoryEntry& h : s.status.history) {
        add(s.metadata.name, KindText(h.kind, h.mode == OperationMode::kPreflight), h.name,
            h.version.empty() ? "-" : h.version, h.outcome ? std::string(EnumName(*h.outcome)) : "-",
            h.finished_at ? FormatTime(*h.finished_at) : "-", h.requested_by.empty() ? "-" : h.requested_by);
      }
    }
    // The ledger keeps the outcomes of one that was deleted and runs on.
    if (!found && ReleasedViews(session, false, server, {}).empty()) return NoSuchServer(session.ns(), server);
    if (!found) LK_RETURN_IF_ERROR(from_agent());
  } else if (IsAway(all.status())) {
    LK_RETURN_IF_ERROR(from_agent());
  } else {
    return all.status();
  }
  // Each Server's are newest first already; the times are RFC 3339 in UTC, which sort as text.
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a[1] > b[1]; });
  if (limit >= 0 && rows.size() > static_cast<size_t>(limit)) rows.resize(static_cast<size_t>(limit));
  // The ledger keeps what the objects no longer show.
  if (rows.empty() && all.ok()) (void)from_agent().ok();
  if (rows.empty()) {
    out("No operation has ended yet.\n");
    return Status::Ok();
  }
  out(Table({"SERVER", "FINISHED", "KIND", "NAME", "VERSION", "OUTCOME", "BY"}, rows));
  return Status::Ok();
}

Status ShowLogs(Session& session, const std::string& of_server, const std::string& slot, int lines, const Out& out) {
  LK_ASSIGN_OR_RETURN(const std::string server, ParseServer(of_server));
  std::string target =
      "/v1/logs?server=" + PercentEncode(session.ns() + "/" + server) + "&lines=" + std::to_string(lines);
  if (!slot.empty()) target += "&slot=" + PercentEncode(slot);
  const Result<Json> answer = session.agent().Get(target);
  if (!answer.ok() && answer.code() != Code::kUnavailable) return answer.status();
  if (!answer.ok()) {
    return answer.status().Annotate("logs are kept on the host of the Server and read through its agent");
  }
  for (const Json& line : answer->Get("lines").AsArray()) out(line.AsString() + "\n");
  return Status::Ok();
}

Result<Outcome> Watch(Session& session, const WatchOptions& options, const Out& out) {
  LK_ASSIGN_OR_RETURN(Api * api, session.api());
  const std::string ns = session.ns();
  LK_ASSIGN_OR_RETURN(Followed followed, FindTarget(*api, ns, options.target));
  const Duration started = SystemClock().Read().boot;
  std::set<std::string> printed;
  std::string bar;
  const auto wipe = [&] {
    if (!bar.empty()) out("\r\x1b[K");
    bar.clear();
  };
  const auto print = [&](const std::vector<StepLine>& lines) {
    for (const StepLine& line : lines) {
      if (!printed.insert(line.key).second) continue;
      wipe();
      out(line.text + "\n");
    }
  };
  for (;;) {
    std::optional<Outcome> outcome;
    std::optional<Progress> progress;
    std::string end;
    std::vector<StepLine> lines;
    // The API may be what is being rolled: an error is waited out.
    if (!followed.upgrade.empty()) {
      const Result<Upgrade> upgrade = Get<Upgrade>(*api, {ns, followed.upgrade});
      if (upgrade.code() == Code::kNotFound) return upgrade.status();
      if (upgrade.ok()) {
        lines = PhaseLines(*upgrade);
        if (upgrade->status.roll_ref) followed.roll = upgrade->status.roll_ref->name;
        outcome = upgrade->status.outcome;
        progress = upgrade->status.progress;
        if (outcome) end = OutcomeText(*upgrade);
      }
    }
    if (!followed.roll.empty()) {
      const Result<Roll> roll = Get<Roll>(*api, {ns, followed.roll});
      if (roll.ok()) {
        for (StepLine& line : StepLines(*roll)) lines.push_back(std::move(line));
        progress = roll->status.progress;
        if (followed.upgrade.empty()) outcome = roll->status.outcome;
        if (outcome) end += OutcomeText(*roll);
      }
    }
    std::stable_sort(lines.begin(), lines.end(), [](const StepLine& a, const StepLine& b) { return a.at < b.at; });
    print(lines);
    if (outcome) {
      wipe();
      out(end);
      return *outcome;
    }
    const Now now = SystemClock().Read();
    if (options.terminal && progress) {
      const std::string line = ProgressLine(*progress, now.wall);
      if (line != bar) {
        wipe();
        out(line);
        bar = line;
      }
    }
    if (options.timeout_seconds > 0 && now.boot - started > Seconds(options.timeout_seconds)) {
      wipe();
      return Status(
          Code::kTimeout,
          options.target + " has not finished; it goes on. Look again with: lockkeeper watch " + options.target);
    }
    ::poll(nullptr, 0, kLookMilliseconds);
  }
}

}  // namespace lockkeeper::cli
