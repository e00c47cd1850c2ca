#include "api/server/watch_hub.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "api/base/file.h"
#include "api/base/log.h"

namespace lockkeeper::apiserver {
namespace {

// What the window keeps for watches that lag a little; beyond, they read the log.
constexpr size_t kWindowEvents = 512;
constexpr size_t kWindowBytes = 1 << 20;
constexpr int kLogBatch = 256;
// A commit is visible only after its fsync, some time after inotify told of its write. Look again at these
// intervals for up to kArmedMs.
constexpr int kFirstLookMs = 1;
constexpr int kLastLookMs = 16;
constexpr int kArmedMs = 3000;
// Should inotify miss something, this is how late a change is seen.
constexpr int kIdleLookMs = 1000;

size_t BytesOf(const StoredEvent& event) { return event.value.size() + event.prev.size() + 200; }

// Watches the -wal file, also when it is made anew.
class WalWatch {
 public:
  explicit WalWatch(std::string path) : path_(std::move(path)), fd_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
    Renew();
  }
  int fd() const { return fd_.get(); }
  void Renew() {
    if (fd_ && watch_ < 0)
      watch_ = ::inotify_add_watch(fd_.get(), path_.c_str(), IN_MODIFY | IN_DELETE_SELF | IN_MOVE_SELF);
  }
  void Drain() {
    alignas(inotify_event) char buffer[4096];
    while (true) {
      const ssize_t n = ::read(fd_.get(), buffer, sizeof(buffer));
      if (n <= 0) return;
      for (ssize_t at = 0; at < n;) {
        const auto* event = reinterpret_cast<const inotify_event*>(buffer + at);
        if ((event->mask & (IN_IGNORED | IN_DELETE_SELF | IN_MOVE_SELF)) != 0) watch_ = -1;
        at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
      }
    }
  }

 private:
  const std::string path_;
  UniqueFd fd_;
  int watch_ = -1;
};

}  // namespace

WatchHub::WatchHub(std::string path, sqlite::OpenOptions options)
    : path_(std::move(path)), options_(std::move(options)), wake_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

WatchHub::~WatchHub() { Stop(); }

Status WatchHub::Start(int64_t revision) {
  if (!wake_fd_) return ErrnoStatus("make an event descriptor for", path_, errno);
  LK_ASSIGN_OR_RETURN(session_, Session::Open(path_, options_));
  {
    MutexLock lock(mutex_);
    dispatched_ = revision;
    floor_ = revision;
  }
  thread_ = std::thread([this] { Run(); });
  return Status::Ok();
}

void WatchHub::Stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    for (Watch* watch : watches_) watch->wake_.NotifyAll();
    advanced_.NotifyAll();
  }
  Notify();
  if (thread_.joinable()) thread_.join();
}

void WatchHub::Notify() {
  const uint64_t one = 1;
  // A full counter means that the thread is awake already.
  if (::write(wake_fd_.get(), &one, sizeof(one)) < 0) return;
}

void WatchHub::WakeAll() {
  MutexLock lock(mutex_);
  for (Watch* watch : watches_) {
    watch->woken_ = true;
    watch->wake_.NotifyAll();
  }
}

int64_t WatchHub::revision() {
  MutexLock lock(mutex_);
  return dispatched_;
}

size_t WatchHub::watches() {
  MutexLock lock(mutex_);
  return watches_.size();
}

bool WatchHub::WaitFor(int64_t revision, std::chrono::milliseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  MutexLock lock(mutex_);
  while (dispatched_ < revision && !stopping_) {
    const auto left = end - std::chrono::steady_clock::now();
    if (left <= left.zero()) break;
    advanced_.WaitFor(mutex_, left);
  }
  return dispatched_ >= revision;
}

void WatchHub::Run() {
  WalWatch wal(path_ + "-wal");
  int64_t seen_version = -1;
  // 0: not armed. At first it is: a write may have come before the watch of the file.
  int look_ms = kFirstLookMs;
  auto armed_until = std::chrono::steady_clock::now();
  while (true) {
    pollfd fds[2] = {{wake_fd_.get(), POLLIN, 0}, {wal.fd(), POLLIN, 0}};
    ::poll(fds, 2, look_ms > 0 ? look_ms : kIdleLookMs);
    {
      MutexLock lock(mutex_);
      if (stopping_) return;
    }
    if ((fds[0].revents & POLLIN) != 0) {
      uint64_t count = 0;
      if (::read(wake_fd_.get(), &count, sizeof(count)) < 0) count = 0;
    }
    const auto now = std::chrono::steady_clock::now();
    const bool written = (fds[1].revents & POLLIN) != 0;
    if (written) {
      wal.Drain();
      look_ms = kFirstLookMs;
      armed_until = now + std::chrono::milliseconds(kArmedMs);
    } else if (look_ms > 0) {
      look_ms = std::min(look_ms * 2, kLastLookMs);
    }
    wal.Renew();
    Result<int64_t> version = session_->DataVersion();
    if (!version.ok()) {
      Report(version.status());
      continue;
    }
    const bool changed = *version != seen_version;
    seen_version = *version;
    const bool dispatched = changed && Dispatch();
    // What was seen together with a write may be the commit before that write: then its own is still to come.
    if ((dispatched && !written) || now > armed_until) look_ms = 0;
  }
}

void WatchHub::Report(const Status& status) {
  if (!std::exchange(reported_, true)) {
    LogError("the store's changes cannot be read; watches stand still",
             {{"store", path_}, {"error", status.ToString()}});
  }
  // A broken store must not turn this thread into a busy loop.
  ::poll(nullptr, 0, 100);
}

bool WatchHub::Dispatch() {
  int64_t from = 0;
  {
    MutexLock lock(mutex_);
    from = dispatched_;
  }
  std::vector<EventPtr> events;
  int64_t upto = from;
  int64_t compacted = 0;
  const Status status = [&]() -> Status {
    LK_RETURN_IF_ERROR(session_->db().Exec("BEGIN"));
    Status read = [&]() -> Status {
      LK_ASSIGN_OR_RETURN(upto, session_->Revision());
      LK_ASSIGN_OR_RETURN(compacted, session_->Compacted());
      if (upto <= from) return Status::Ok();
      return session_->Events(from, upto, "*", "", [&](StoredEvent&& event) {
        events.push_back(std::make_shared<const StoredEvent>(std::move(event)));
        return true;
      });
    }();
    Status ended = session_->db().Exec("COMMIT");
    return read.ok() ? ended : read;
  }();
  if (!status.ok()) {
    Report(status);
    return false;
  }
  reported_ = false;
  if (upto <= from) return false;
  MutexLock lock(mutex_);
  if (compacted > from) {
    // Another process compacted what this one had not read yet: the log decides who is too old.
    window_.clear();
    window_bytes_ = 0;
    floor_ = compacted;
  }
  for (EventPtr& event : events) {
    window_bytes_ += BytesOf(*event);
    window_.push_back(event);
  }
  dispatched_ = upto;
  while (window_.size() > kWindowEvents || (window_bytes_ > kWindowBytes && window_.size() > 1)) {
    floor_ = window_.front()->revision;
    window_bytes_ -= BytesOf(*window_.front());
    window_.pop_front();
  }
  for (Watch* watch : watches_) {
    const bool wanted = std::any_of(events.begin(), events.end(), [&](const EventPtr& e) { return watch->Wants(*e); });
    if (wanted) watch->wake_.NotifyAll();
  }
  advanced_.NotifyAll();
  return true;
}

Result<std::vector<EventPtr>> WatchHub::ReadLog(Watch& watch, int64_t upto) {
  MutexLock lock(log_mutex_);
  if (!log_session_) {
    LK_ASSIGN_OR_RETURN(log_session_, Session::Open(path_, options_));
  }
  Session& log = *log_session_;
  std::vector<EventPtr> events;
  LK_RETURN_IF_ERROR(log.db().Exec("BEGIN"));
  const Status status = [&]() -> Status {
    LK_ASSIGN_OR_RETURN(const int64_t compacted, log.Compacted());
    if (watch.position_ < compacted) {
      return {Code::kExpired, "too old resource version: " + std::to_string(watch.position_) + " (" +
                                  std::to_string(compacted + 1) + ")"};
    }
    return log.Events(watch.position_, upto, watch.cluster_, watch.resource_, [&](StoredEvent&& event) {
      events.push_back(std::make_shared<const StoredEvent>(std::move(event)));
      return events.size() < kLogBatch;
    });
  }();
  Status ended = log.db().Exec("COMMIT");
  LK_RETURN_IF_ERROR(status);
  LK_RETURN_IF_ERROR(ended);
  watch.position_ = events.size() < kLogBatch ? upto : events.back()->revision;
  return events;
}

WatchHub::Watch::Watch(WatchHub& hub, std::string cluster, std::string resource, int64_t after)
    : hub_(hub), cluster_(std::move(cluster)), resource_(std::move(resource)), position_(after) {
  MutexLock lock(hub_.mutex_);
  place_ = hub_.watches_.insert(hub_.watches_.end(), this);
}

WatchHub::Watch::~Watch() {
  MutexLock lock(hub_.mutex_);
  hub_.watches_.erase(place_);
}

bool WatchHub::Watch::Wants(const StoredEvent& event) const {
  return (resource_.empty() || event.key.resource == resource_) && (cluster_ == "*" || event.key.cluster == cluster_);
}

Result<std::vector<EventPtr>> WatchHub::Watch::Next(std::chrono::milliseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (true) {
    int64_t read_upto = 0;
    {
      MutexLock lock(hub_.mutex_);
      while (true) {
        if (hub_.stopping_) return Status(Code::kCancelled, "the server is stopping");
        if (position_ < hub_.dispatched_) {
          if (position_ < hub_.floor_) {
            read_upto = hub_.dispatched_;
            break;
          }
          std::vector<EventPtr> events;
          auto first = std::upper_bound(hub_.window_.begin(), hub_.window_.end(), position_,
                                        [](int64_t position, const EventPtr& e) { return position < e->revision; });
          for (; first != hub_.window_.end(); ++first) {
            if (Wants(**first)) events.push_back(*first);
          }
          position_ = hub_.dispatched_;
          if (!events.empty()) return events;
        }
        if (std::exchange(woken_, false)) return std::vector<EventPtr>();
        const auto left = end - std::chrono::steady_clock::now();
        if (left <= left.zero()) return std::vector<EventPtr>();
        wake_.WaitFor(hub_.mutex_, left);
      }
    }
    Result<std::vector<EventPtr>> events = hub_.ReadLog(*this, read_upto);
    if (!events.ok() || !events->empty()) return events;
  }
}

}  // namespace lockkeeper::apiserver
