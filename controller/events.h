// Events: the story of an object as core/v1 Events, so that kubectl describe tells it in order.
//
// Purpose:   Recorder::Record says what happened, EventWriter writes it: repeats raise a count by PATCH, more than ten
//            that differ only in their message become one "(combined from similar events)", and an object that
//            floods is cut to 25 and then one per 300 s. All times carry microseconds, and no two events have the same,
//            so that kubectl describe keeps their order.
// Ownership: the writer borrows Api, clock and metrics.
// Threads:   Record from any thread, never blocks; one thread writes (Run, or Flush in tests).
// Failure:   an event is help, not truth: beyond 1000 waiting it is dropped and counted; writing is tried 12 times,
//            10 s apart, for errors that may pass.
#pragma once

#include <memory>
#include <string>

#include "controller/api.h"

namespace lockkeeper {

class Metrics;

struct EventTarget {
  std::string api_version;
  std::string kind;
  ObjectKey key;
  std::string uid;

  static EventTarget Of(const Json& object);
};

enum class EventType { kNormal, kWarning };

class Recorder {
 public:
  virtual ~Recorder() = default;
  // `reason`: CamelCase; `message`: short, for a person.
  virtual void Record(const EventTarget& target, EventType type, const std::string& reason,
                      const std::string& message) = 0;
};

struct EventWriterOptions {
  std::string component = "lockkeeper";
  std::string host{};
  size_t queue_limit = 1000;
  size_t lru_size = 4096;
  int spam_burst = 25;
  Duration spam_refill = Seconds(300);
  int max_similar = 10;
  Duration similar_window = Seconds(600);
  int tries = 12;
  std::chrono::milliseconds retry_pause{std::chrono::seconds(10)};
  Metrics* metrics = nullptr;
};

class EventWriter : public Recorder {
 public:
  EventWriter(Api& api, const Clock& clock, EventWriterOptions options);
  ~EventWriter() override;
  EventWriter(const EventWriter&) = delete;
  EventWriter& operator=(const EventWriter&) = delete;

  void Record(const EventTarget& target, EventType type, const std::string& reason,
              const std::string& message) override;

  // Writes until cancelled; then what is queued, once each, for at most `flush`.
  void Run(const CancelToken& cancel, Duration flush = Seconds(2));
  // Writes what is queued, on this thread; answers how many are left.
  size_t Flush();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockkeeper
