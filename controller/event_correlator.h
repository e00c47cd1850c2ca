// EventCorrelator: what becomes of one event: a new object, a higher count of an old one, or nothing.
// Purpose: the pure part of events.h, with client-go's figures. Ownership: a value. Threads: one. Failure: none.
#pragma once

#include <list>
#include <map>
#include <string>
#include <unordered_map>

#include "controller/events.h"

namespace lockkeeper {

// What was said, before it is an object.
struct EventNote {
  EventTarget target;
  EventType type = EventType::kNormal;
  std::string reason;
  std::string message;
  Time time{};
};

struct EventRecord {
  std::string name;  // of the Event object
  Time first{};
  int64_t count = 0;
};

class EventCorrelator {
 public:
  explicit EventCorrelator(const EventWriterOptions& options) : options_(options) {}

  struct Decision {
    enum class Kind { kDrop, kCreate, kPatch } kind = Kind::kDrop;
    EventNote note;      // its message may be the combined one
    std::string key;     // for Written
    EventRecord record;  // with the count to write
  };
  Decision Decide(EventNote note);
  // What was written under that key; or that the object is gone and the next must be a create.
  void Written(const std::string& key, const EventRecord& record);
  void Forget(const std::string& key);

 private:
  struct State {
    EventRecord record;                    // by exact event
    std::map<std::string, Time> messages;  // by similar events: distinct messages in the window
    double tokens = 0;                     // by object
    Time refilled{};
    std::list<std::string>::iterator age;
  };
  // The state under `key`, made when absent; the least recently used goes beyond the limit.
  State& Touch(const std::string& key, bool* fresh);

  const EventWriterOptions options_;
  std::unordered_map<std::string, State> states_;
  std::list<std::string> ages_;  // oldest first
};

}  // namespace lockkeeper
