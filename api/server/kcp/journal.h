// Journal: the two logs with which a test can prove what a roll did, and how to read them.
//
// Purpose:   one JSON object a line. The request log has one line per answered request; the reconcile log says when
//            a process led and what it reconciled. Both carry the boot-time clock in microseconds, which all
//            processes of a host share, so lines of several processes can be put in order.
// Ownership: a Journal owns its descriptor.
// Threads:   Append is thread-safe; several processes may append to one file.
// Failure:   Open answers Status. A line that cannot be written is dropped.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/json.h"
#include "api/base/time.h"
#include "api/base/unique_fd.h"

namespace lockkeeper::kcp {

class Journal {
 public:
  // `path` "" makes a journal that keeps nothing. `slot` stands in each line.
  static Result<std::unique_ptr<Journal>> Open(const std::string& path, std::string slot);

  bool enabled() const { return static_cast<bool>(fd_); }
  // {"boot", "time", "slot", "pid", "version"} and then `members`. `at` 0: now.
  void Append(Json members, Duration at = Duration::zero());

 private:
  Journal(UniqueFd fd, std::string slot) : fd_(std::move(fd)), slot_(std::move(slot)) {}

  const UniqueFd fd_;
  const std::string slot_;
};

// Writes {"event": "begin"} now and {"event": "end"} when it goes.
class Span {
 public:
  // `kind` is "leading" or "reconcile".
  Span(Journal& journal, std::string_view kind, std::string_view workspace, std::string_view step);
  ~Span();
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;
  // The span ended then, not now.
  void EndAt(Duration boot) { end_ = boot; }

 private:
  void Write(std::string_view event, Duration at);

  Journal& journal_;
  const std::string kind_, workspace_, step_;
  const int64_t id_;
  Duration end_{};
};

// Lines of journals, in the order of their "boot". A last line without an end is left out.
Result<std::vector<Json>> ReadJournals(const std::vector<std::string>& paths);

struct SpanRecord {
  std::string kind, slot, workspace, step;
  int64_t pid = 0;
  Duration begin{}, end{};  // an unfinished one ends with the last line of its process
};
std::vector<SpanRecord> SpansOf(const std::vector<Json>& lines);

// One sentence per pair of spans of the same kind that overlap in two processes: two leaders, or two reconcilers, at
// once. Empty is what a roll must show.
std::vector<std::string> FindOverlaps(const std::vector<SpanRecord>& spans);

}  // namespace lockkeeper::kcp
