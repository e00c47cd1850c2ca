#include "tests/load/journal.h"

#include <algorithm>
#include <charconv>

namespace lockkeeper::load {

void Journal::Attempt(const std::string& name, int64_t sequence) {
  Object& object = objects_[name];
  object.attempted = std::max(object.attempted, sequence);
}

void Journal::Accept(const std::string& name, int64_t sequence, int64_t revision) {
  Object& object = objects_[name];
  object.attempted = std::max(object.attempted, sequence);
  object.accepted = std::max(object.accepted, sequence);
  revisions_.push_back(revision);
  newest_revision_ = std::max(newest_revision_, revision);
}

void Journal::Merge(const Journal& other) {
  for (const auto& [name, theirs] : other.objects_) {
    Object& ours = objects_[name];
    ours.attempted = std::max(ours.attempted, theirs.attempted);
    ours.accepted = std::max(ours.accepted, theirs.accepted);
  }
  revisions_.insert(revisions_.end(), other.revisions_.begin(), other.revisions_.end());
  newest_revision_ = std::max(newest_revision_, other.newest_revision_);
}

bool Journal::MayHold(const std::string& name, int64_t sequence) const {
  const auto it = objects_.find(name);
  return it != objects_.end() && sequence >= it->second.accepted && sequence <= it->second.attempted;
}

std::vector<std::string> Journal::Lost(const std::map<std::string, int64_t>& stored) const {
  std::vector<std::string> lost;
  for (const auto& [name, object] : objects_) {
    if (object.accepted == 0) continue;  // none was ever accepted: it may be there or not
    const auto it = stored.find(name);
    if (it == stored.end()) {
      lost.push_back(name + ": write " + std::to_string(object.accepted) + " was accepted, the object is gone");
    } else if (!MayHold(name, it->second)) {
      lost.push_back(name + ": write " + std::to_string(object.accepted) + " was accepted, found " +
                     std::to_string(it->second));
    }
  }
  return lost;
}

std::vector<std::string> Journal::Names() const {
  std::vector<std::string> names;
  for (const auto& [name, object] : objects_) names.push_back(name);
  return names;
}

void WatchLog::Event(int64_t revision) {
  ++events_;
  if (!seen_.insert(revision).second) {
    ++duplicates_;
  } else if (revision < newest_) {
    ++out_of_order_;
  }
  newest_ = std::max(newest_, revision);
}

int64_t WatchLog::Missed(const std::vector<int64_t>& revisions) const {
  return std::count_if(revisions.begin(), revisions.end(), [&](int64_t r) { return seen_.count(r) == 0; });
}

int64_t RevisionOf(const Json& object) {
  const std::string& text = object.At({"metadata", "resourceVersion"}).AsString();
  int64_t revision = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), revision);
  return error == std::errc() && end == text.data() + text.size() ? revision : 0;
}

}  // namespace lockkeeper::load
