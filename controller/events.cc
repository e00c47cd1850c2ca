#include "controller/events.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <deque>

#include "api/base/id.h"
#include "api/base/log.h"
#include "api/base/sync.h"
#include "api/base/unique_fd.h"
#include "controller/event_correlator.h"
#include "controller/metrics.h"

namespace lockkeeper {

namespace {

const Resource& EventResource() {
  static const Resource kEvent{"", "v1", "events", "Event", true};
  return kEvent;
}

constexpr size_t kMaxMessage = 1024;

// At most `limit` bytes, not cut inside a character.
std::string Shortened(const std::string& text, size_t limit) {
  if (text.size() <= limit) return text;
  size_t end = limit - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

bool MayPass(Code code) {
  return code == Code::kUnavailable || code == Code::kTimeout || code == Code::kInternal || code == Code::kUnauthorized;
}

}  // namespace

EventTarget EventTarget::Of(const Json& object) {
  return {object.Get("apiVersion").AsString(), object.Get("kind").AsString(), ObjectKey::Of(object), UidOf(object)};
}

class EventWriter::Impl {
 public:
  Impl(Api& api, const Clock& clock, EventWriterOptions options)
      : api_(api), clock_(clock), options_(options), correlator_(options) {}

  void Record(const EventTarget& target, EventType type, const std::string& reason, const std::string& message) {
    EventNote note{target, type, Shortened(reason, 128), Shortened(message, kMaxMessage - 40), clock_.Read().wall};
    {
      MutexLock lock(mutex_);
      if (queue_.size() < options_.queue_limit) {
        // Two in one microsecond would have no order.
        if (note.time <= last_) note.time = last_ + Duration(1);
        last_ = note.time;
        queue_.push_back(std::move(note));
        (void)!eventfd_write(wake_.get(), 1);
        return;
      }
    }
    Dropped("queue full");
  }

  void Run(const CancelToken& cancel, Duration flush) {
    while (!cancel.cancelled()) {
      pollfd p[2] = {{wake_.get(), POLLIN, 0}, {cancel.fd(), POLLIN, 0}};
      poll(p, 2, -1);
      eventfd_t count;
      (void)!eventfd_read(wake_.get(), &count);
      WriteAll(&cancel, std::chrono::steady_clock::time_point::max());
    }
    WriteAll(nullptr, std::chrono::steady_clock::now() + flush);
  }

  size_t Flush() {
    WriteAll(nullptr, std::chrono::steady_clock::time_point::max());
    MutexLock lock(mutex_);
    return queue_.size();
  }

 private:
  void WriteAll(const CancelToken* cancel, std::chrono::steady_clock::time_point until) {
    while (cancel == nullptr || !cancel->cancelled()) {
      EventNote note;
      {
        MutexLock lock(mutex_);
        if (queue_.empty() || std::chrono::steady_clock::now() > until) return;
        note = std::move(queue_.front());
        queue_.pop_front();
      }
      EventCorrelator::Decision decision = correlator_.Decide(std::move(note));
      if (decision.kind == EventCorrelator::Decision::Kind::kDrop) {
        Dropped("too many");
        continue;
      }
      Write(decision, cancel);
    }
  }

  void Write(EventCorrelator::Decision& decision, const CancelToken* cancel) {
    Status status;
    for (int i = 0; i < options_.tries; ++i) {
      status = WriteOnce(decision);
      if (status.ok()) {
        correlator_.Written(decision.key, decision.record);
        return;
      }
      if (!MayPass(status.code()) || cancel == nullptr) break;
      pollfd p{cancel->fd(), POLLIN, 0};
      if (poll(&p, 1, static_cast<int>(options_.retry_pause.count())) != 0) break;
    }
    LogWarn("event not written", {{"object", decision.note.target.key.ToString()},
                                  {"reason", decision.note.reason},
                                  {"error", status.ToString()}});
    Dropped("not written");
  }

  Status WriteOnce(EventCorrelator::Decision& decision) {
    const std::string namespace_ = Namespace(decision.note.target);
    if (decision.kind == EventCorrelator::Decision::Kind::kPatch) {
      const Json patch = Json::MakeObject({{"count", decision.record.count},
                                           {"message", decision.note.message},
                                           {"lastTimestamp", FormatMicroTime(decision.note.time)}});
      auto answer = api_.Patch(EventResource(), {namespace_, decision.record.name}, PatchType::kMerge, patch, "");
      if (answer.code() != Code::kNotFound) return answer.status();
      // It was collected meanwhile: the story begins anew.
      decision.kind = EventCorrelator::Decision::Kind::kCreate;
      decision.record = {"", decision.note.time, 1};
    }
    if (decision.record.name.empty()) decision.record.name = NewName(decision.note);
    auto answer = api_.Create(EventResource(), ToObject(decision, namespace_));
    // The answer to an earlier try was lost.
    if (answer.code() == Code::kAlreadyExists) return {};
    return answer.status();
  }

  static std::string Namespace(const EventTarget& target) {
    return target.key.namespace_.empty() ? "default" : target.key.namespace_;
  }

  // "kcp.18f2b3c4d5e6f7a8": as client-go names them, sorting by time.
  static std::string NewName(const EventNote& note) {
    char hex[24];
    snprintf(hex, sizeof hex, "%016lx", static_cast<unsigned long>(note.time.time_since_epoch().count()) * 1000);
    return note.target.key.name.substr(0, 220) + "." + hex;
  }

  Json ToObject(const EventCorrelator::Decision& decision, const std::string& namespace_) const {
    const EventNote& note = decision.note;
    Json involved = Json::MakeObject({{"apiVersion", note.target.api_version},
                                      {"kind", note.target.kind},
                                      {"name", note.target.key.name},
                                      {"uid", note.target.uid}});
    if (!note.target.key.namespace_.empty()) involved.Set("namespace", note.target.key.namespace_);
    Json source = Json::MakeObject({{"component", options_.component}});
    if (!options_.host.empty()) source.Set("host", options_.host);
    return Json::MakeObject(
        {{"apiVersion", "v1"},
         {"kind", "Event"},
         {"metadata", Json::MakeObject({{"name", decision.record.name}, {"namespace", namespace_}})},
         {"involvedObject", std::move(involved)},
         {"reason", note.reason},
         {"message", note.message},
         {"type", note.type == EventType::kWarning ? "Warning" : "Normal"},
         {"source", std::move(source)},
         // kubectl sorts by these; where the server keeps the fraction, events of one second stay in order.
         {"firstTimestamp", FormatMicroTime(decision.record.first)},
         {"lastTimestamp", FormatMicroTime(note.time)},
         {"eventTime", FormatMicroTime(note.time)},
         {"count", decision.record.count},
         {"action", note.reason},
         {"reportingComponent", options_.component},
         {"reportingInstance", options_.host.empty() ? options_.component : options_.host}});
  }

  void Dropped(const char* reason) const {
    if (options_.metrics != nullptr) options_.metrics->Add("events_dropped_total", {{"reason", reason}});
  }

  Api& api_;
  const Clock& clock_;
  const EventWriterOptions options_;
  EventCorrelator correlator_;  // the writing thread's

  const UniqueFd wake_{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  Mutex mutex_;
  std::deque<EventNote> queue_ LK_GUARDED_BY(mutex_);
  Time last_ LK_GUARDED_BY(mutex_){};
};

EventWriter::EventWriter(Api& api, const Clock& clock, EventWriterOptions options)
    : impl_(std::make_unique<Impl>(api, clock, std::move(options))) {}
EventWriter::~EventWriter() = default;

void EventWriter::Record(const EventTarget& target, EventType type, const std::string& reason,
                         const std::string& message) {
  impl_->Record(target, type, reason, message);
}
void EventWriter::Run(const CancelToken& cancel, Duration flush) { impl_->Run(cancel, flush); }
size_t EventWriter::Flush() { return impl_->Flush(); }

}  // namespace lockkeeper
