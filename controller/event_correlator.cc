#include "controller/event_correlator.h"

#include <algorithm>
#include <functional>

namespace lockkeeper {

namespace {

std::string ObjectOf(const EventNote& note) {
  const EventTarget& t = note.target;
  return t.api_version + "\n" + t.kind + "\n" + t.key.namespace_ + "\n" + t.key.name + "\n" + t.uid;
}

EventCorrelator::Key KeyOf(const std::string& text) { return std::hash<std::string>()(text); }

}  // namespace

EventCorrelator::State& EventCorrelator::Touch(Key key, bool* fresh) {
  auto it = states_.find(key);
  *fresh = it == states_.end();
  if (*fresh) {
    if (states_.size() >= options_.lru_size) {
      states_.erase(ages_.front());
      ages_.pop_front();
    }
    it = states_.emplace(key, State()).first;
    it->second.age = ages_.insert(ages_.end(), key);
  } else {
    ages_.splice(ages_.end(), ages_, it->second.age);
  }
  return it->second;
}

EventCorrelator::Decision EventCorrelator::Decide(EventNote note) {
  Decision out;
  bool fresh = false;
  const std::string object = ObjectOf(note);
  const std::string type = note.type == EventType::kWarning ? "Warning" : "Normal";

  // An object may burst, then only trickle. Warnings have a bucket of their own.
  State& bucket = Touch(KeyOf("spam\n" + object + "\n" + type), &fresh);
  if (fresh) {
    bucket.tokens = options_.spam_burst;
  } else {
    const double gained = ToSeconds(note.time - bucket.refilled) / ToSeconds(options_.spam_refill);
    bucket.tokens = std::min<double>(options_.spam_burst, bucket.tokens + std::max(0.0, gained));
  }
  bucket.refilled = note.time;
  if (bucket.tokens < 1) return out;
  bucket.tokens -= 1;

  const std::string similar_key = "similar\n" + object + "\n" + type + "\n" + note.reason;
  State& similar = Touch(KeyOf(similar_key), &fresh);
  std::erase_if(similar.messages, [&](const auto& m) { return note.time - m.second > options_.similar_window; });
  similar.messages[KeyOf(note.message)] = note.time;
  out.key = KeyOf("exact\n" + object + "\n" + type + "\n" + note.reason + "\n" + note.message);
  if (similar.messages.size() > static_cast<size_t>(options_.max_similar)) {
    // The newest message is kept; which of the old ones fall out does not matter.
    while (similar.messages.size() > static_cast<size_t>(options_.max_similar) + 1) {
      auto oldest = std::min_element(similar.messages.begin(), similar.messages.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
      similar.messages.erase(oldest);
    }
    out.key = KeyOf("combined\n" + similar_key);
    note.message = "(combined from similar events): " + note.message;
  }

  State& exact = Touch(out.key, &fresh);
  out.kind = exact.record.count > 0 ? Decision::Kind::kPatch : Decision::Kind::kCreate;
  out.record = exact.record;
  ++out.record.count;
  if (out.kind == Decision::Kind::kCreate) out.record.first = note.time;
  out.note = std::move(note);
  return out;
}

void EventCorrelator::Written(Key key, const EventRecord& record) {
  bool fresh = false;
  Touch(key, &fresh).record = record;
}

void EventCorrelator::Forget(Key key) {
  const auto it = states_.find(key);
  if (it != states_.end()) it->second.record = EventRecord();
}

}  // namespace lockkeeper
