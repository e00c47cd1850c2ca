// EventCorrelator: what becomes of one event: a new object, a higher count of an old one, or nothing.
// Purpose: the pure part of events.h, with client-go's figures. Ownership: a value. Threads: one. Failure: none.
#pragma once

#include <cstdint>
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
  // Of what an event is, whole: 64 bits, so that thousands of them cost nothing. Two that fall together would share a
  // count, once in some 10^12 tables.
  using Key = uint64_t;
  explicit EventCorrelator(const EventWriterOptions& options) : options_(options) {}

  struct Decision {
    enum class Kind { kDrop, kCreate, kPatch } kind = Kind::kDrop;
    EventNote note;      // its message may be the combined one
    Key key = 0;         // for Written
    EventRecord record;  // with the count to write
  };
  Decision Decide(EventNote note);
  // What was written under that key; or that the object is gone and the next must be a create.
  void Written(Key key, const EventRecord& record);
  void Forget(Key key);

 private:
  struct State {
    EventRecord record;            // by exact event
    std::map<Key, Time> messages;  // by similar events: distinct messages in the window
    double tokens = 0;             // by object
    Time refilled{};
    std::list<Key>::iterator age;
  };
  // The state under `key`, made when absent; the least recently used goes beyond the limit.
  State& Touch(Key key, bool* fresh);

  const EventWriterOptions options_;
  std::unordered_map<Key, State> states_;
  std::list<Key> ages_;  // oldest first
};

}  // namespace lockkeeper
