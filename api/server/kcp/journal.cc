#include "api/server/kcp/journal.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <utility>

#include "api/base/file.h"
#include "api/server/kcp/build_version.h"

namespace lockkeeper::kcp {
namespace {

std::atomic<int64_t> g_next_span{1};

}  // namespace

Result<std::unique_ptr<Journal>> Journal::Open(const std::string& path, std::string slot) {
  UniqueFd fd;
  if (!path.empty()) {
    fd.Reset(::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
    if (!fd) return ErrnoStatus("opening the log", path, errno);
  }
  return std::unique_ptr<Journal>(new Journal(std::move(fd), std::move(slot)));
}

void Journal::Append(Json members, Duration at) {
  if (!enabled()) return;
  const Now now = SystemClock().Read();
  if (at == Duration::zero()) at = now.boot;
  Json line = Json::MakeObject({{"boot", static_cast<int64_t>(at.count())},
                                {"time", FormatMicroTime(now.wall)},
                                {"slot", slot_},
                                {"pid", static_cast<int64_t>(getpid())},
                                {"version", BuildVersion()}});
  for (Json::Member& member : members.MutableObject()) line.MutableObject().push_back(std::move(member));
  const std::string text = line.Dump() + "\n";
  (void)!::write(fd_.get(), text.data(), text.size());  // O_APPEND: one write is one piece
}

Span::Span(Journal& journal, std::string_view kind, std::string_view workspace, std::string_view step)
    : journal_(journal), kind_(kind), workspace_(workspace), step_(step), id_(g_next_span++) {
  Write("begin", Duration::zero());
}

Span::~Span() { Write("end", end_); }

void Span::Write(std::string_view event, Duration at) {
  journal_.Append(
      Json::MakeObject({{"event", event}, {"kind", kind_}, {"span", id_}, {"workspace", workspace_}, {"step", step_}}),
      at);
}

Result<std::vector<Json>> ReadJournals(const std::vector<std::string>& paths) {
  std::vector<Json> lines;
  for (const std::string& path : paths) {
    LK_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
    size_t begin = 0;
    for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
      auto line = Json::Parse(std::string_view(text).substr(begin, end - begin));
      if (!line.ok()) return line.status().Annotate("reading " + path + " at byte " + std::to_string(begin));
      lines.push_back(std::move(*line));
      begin = end + 1;
    }
  }
  std::stable_sort(lines.begin(), lines.end(),
                   [](const Json& a, const Json& b) { return a.Get("boot").AsInt() < b.Get("boot").AsInt(); });
  return lines;
}

std::vector<SpanRecord> SpansOf(const std::vector<Json>& lines) {
  std::vector<SpanRecord> spans;
  std::map<std::pair<int64_t, int64_t>, size_t> open;  // pid and span
  std::map<int64_t, Duration> last;                    // line of each process
  for (const Json& line : lines) {
    const int64_t pid = line.Get("pid").AsInt();
    const Duration at(line.Get("boot").AsInt());
    last[pid] = at;
    const std::pair<int64_t, int64_t> id(pid, line.Get("span").AsInt());
    if (line.Get("event").AsString() == "begin") {
      open[id] = spans.size();
      spans.push_back({line.Get("kind").AsString(), line.Get("slot").AsString(), line.Get("workspace").AsString(),
                       line.Get("step").AsString(), pid, at, at});
    } else if (const auto begun = open.find(id); line.Get("event").AsString() == "end" && begun != open.end()) {
      spans[begun->second].end = at;
      open.erase(begun);
    }
  }
  for (const auto& [id, index] : open) spans[index].end = last[id.first];
  return spans;
}

std::vector<std::string> FindOverlaps(const std::vector<SpanRecord>& spans) {
  const auto describe = [](const SpanRecord& s) {
    return s.slot + " (pid " + std::to_string(s.pid) + ")" + (s.workspace.empty() ? "" : " at " + s.workspace) +
           " from " + std::to_string(s.begin.count()) + " to " + std::to_string(s.end.count());
  };
  std::vector<const SpanRecord*> sorted;
  for (const SpanRecord& span : spans) sorted.push_back(&span);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const SpanRecord* a, const SpanRecord* b) { return a->begin < b->begin; });
  std::vector<std::string> found;
  for (size_t i = 0; i < sorted.size(); ++i) {
    const SpanRecord& a = *sorted[i];
    for (size_t j = i + 1; j < sorted.size() && sorted[j]->begin < a.end; ++j) {
      const SpanRecord& b = *sorted[j];
      if (a.pid != b.pid && a.kind == b.kind)
        found.push_back("two at once, " + a.kind + ": " + describe(a) + "; " + describe(b));
    }
  }
  return found;
}

}  // namespace lockkeeper::kcp
