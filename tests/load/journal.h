// Journal and WatchLog: what was written, what a watch saw, and whether the two agree.
//
// Purpose:   the judgement of a load run, apart from its network: which accepted writes are gone, which events a
//            watch missed, saw twice or saw out of order.
// Ownership: values. Threads: one at a time. Failure: none.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_set>
#include <vector>

#include "api/base/json.h"

namespace lockkeeper::load {

// Each object is written by one connection only; its data.sequence rises with each write.
class Journal {
 public:
  // Before a write is sent: from here on it may be there.
  void Attempt(const std::string& name, int64_t sequence);
  // The server said yes; `revision` is the resourceVersion it answered.
  void Accept(const std::string& name, int64_t sequence, int64_t revision);
  void Merge(const Journal& other);

  // `stored`: the sequence of each object found at the end. One line per accepted write that is gone: an object
  // that is missing, older than its last accepted write, or holding what nobody wrote.
  std::vector<std::string> Lost(const std::map<std::string, int64_t>& stored) const;

  // The resourceVersions of all accepted writes.
  const std::vector<int64_t>& revisions() const { return revisions_; }
  int64_t newest_revision() const { return newest_revision_; }
  std::vector<std::string> Names() const;
  bool MayHold(const std::string& name, int64_t sequence) const;

 private:
  struct Object {
    int64_t attempted = 0;
    int64_t accepted = 0;
  };
  std::map<std::string, Object> objects_;
  std::vector<int64_t> revisions_;
  int64_t newest_revision_ = 0;
};

class WatchLog {
 public:
  void Event(int64_t revision);

  int64_t events() const { return events_; }
  int64_t duplicates() const { return duplicates_; }
  int64_t out_of_order() const { return out_of_order_; }
  // The newest revision of an event.
  int64_t newest() const { return newest_; }
  // How many of `revisions` no event had.
  int64_t Missed(const std::vector<int64_t>& revisions) const;

 private:
  std::unordered_set<int64_t> seen_;
  int64_t events_ = 0;
  int64_t duplicates_ = 0;
  int64_t out_of_order_ = 0;
  int64_t newest_ = 0;
};

// metadata.resourceVersion as a number; 0 when it is none.
int64_t RevisionOf(const Json& object);

}  // namespace lockkeeper::load
