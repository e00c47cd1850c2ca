#include "reconcilers/front/data_plane.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "api/base/file.h"

namespace lockkeeper::front {
namespace {

constexpr uint64_t kWakeTag = 2;
constexpr uint64_t kFirstWatchTag = 16;          // below Relay::kFirstTag
constexpr std::chrono::seconds kCallTimeout{2};  // as the port says

int64_t Micros() {
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// An answer that a thread waits for. Shared, so that a caller may give up on it.
class Answer {
 public:
  void Give() {
    const MutexLock lock(mutex_);
    given_ = true;
    cv_.NotifyAll();
  }
  bool WaitUntil(std::chrono::steady_clock::time_point deadline) {
    const MutexLock lock(mutex_);
    while (!given_) {
      const auto left = deadline - std::chrono::steady_clock::now();
      if (left <= std::chrono::steady_clock::duration::zero()) return false;
      cv_.WaitFor(mutex_, left);
    }
    return true;
  }

 private:
  Mutex mutex_;
  CondVar cv_;
  bool given_ LK_GUARDED_BY(mutex_) = false;
};

}  // namespace

struct DataPlane::Waiter {
  std::string slot;
  int64_t incarnation = 0;
  Answer answer;
};

DataPlane::DataPlane(const FrontLimits& limits, std::string version, std::string settings)
    : limits_(limits), version_(std::move(version)), settings_(std::move(settings)) {}

DataPlane::~DataPlane() = default;

Status DataPlane::Init(UniqueFd listener) {
  LK_ASSIGN_OR_RETURN(const SocketAddress bound, LocalAddress(listener.get()));
  listen_ = FormatAddress(bound);
  epoll_.Reset(::epoll_create1(EPOLL_CLOEXEC));
  wake_.Reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll_ || !wake_) return ErrnoStatus("make", "the loop", errno);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kWakeTag;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event) != 0) {
    return ErrnoStatus("watch", "the loop's eventfd", errno);
  }
  relay_ = std::make_unique<Relay>(limits_, epoll_.get(), std::move(listener));
  relay_->SetNow(Micros());
  return relay_->Start();
}

Status DataPlane::Watch(int fd, std::function<bool()> readable) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kFirstWatchTag + watched_.size();
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) return ErrnoStatus("watch", "a descriptor", errno);
  watched_.emplace_back(fd, std::move(readable));
  return Status::Ok();
}

void DataPlane::Run() {
  std::array<epoll_event, 256> events;
  int64_t began = Micros();
  while (true) {
    relay_->SetNow(Micros());
    const int64_t wait = relay_->EndTurn();
    WakeWaiters();
    if (relay_->Stopped()) break;
    const int64_t lag = Micros() - began;
    if (lag > relay_->metrics().lag_micros) relay_->metrics().lag_micros = lag;
    // Rounded up: waking before a due would spin.
    const int n = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()),
                               static_cast<int>((wait + 999) / 1000));
    began = Micros();
    relay_->SetNow(began);
    bool posted = false;
    for (int i = 0; i < n; ++i) {
      const uint64_t tag = events[i].data.u64;
      if (tag == kWakeTag) {
        posted = true;
      } else if (tag >= kFirstWatchTag && tag < Relay::kFirstTag) {
        const auto& [fd, readable] = watched_[tag - kFirstWatchTag];
        if (!readable()) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
      } else {
        relay_->Handle(tag, events[i].events);
      }
    }
    if (posted) RunPosted();
    if (stop_now_.load()) relay_->CutAll();
  }
  {
    const MutexLock lock(mutex_);
    ended_ = true;
  }
  RunPosted();
  for (const auto& w : waiters_) w->answer.Give();
  waiters_.clear();
}

void DataPlane::RunPosted() {
  uint64_t count = 0;
  while (::read(wake_.get(), &count, sizeof count) > 0) {
  }
  std::vector<std::function<void(Relay&)>> posted;
  {
    const MutexLock lock(mutex_);
    posted.swap(posted_);
  }
  for (const auto& f : posted) f(*relay_);
}

void DataPlane::WakeWaiters() {
  if (seen_ended_ == relay_->ended()) return;
  seen_ended_ = relay_->ended();
  std::erase_if(waiters_, [&](const std::shared_ptr<Waiter>& w) {
    if (w.use_count() == 1) return true;  // its caller gave up
    if (relay_->OpenOn(w->slot, w->incarnation) > 0) return false;
    w->answer.Give();
    return true;
  });
}

bool DataPlane::Post(std::function<void(Relay&)> f) {
  {
    const MutexLock lock(mutex_);
    if (ended_) return false;
    posted_.push_back(std::move(f));
  }
  const uint64_t one = 1;
  return ::write(wake_.get(), &one, sizeof one) == sizeof one || errno == EAGAIN;
}

Status DataPlane::Call(std::function<void(Relay&)> f) {
  const auto answer = std::make_shared<Answer>();
  const bool sent = Post([answer, f = std::move(f)](Relay& relay) {
    f(relay);
    answer->Give();
  });
  if (!sent) return {Code::kUnavailable, "the front is ending"};
  if (!answer->WaitUntil(std::chrono::steady_clock::now() + kCallTimeout)) {
    return {Code::kTimeout, "the front's loop did not answer within 2 s"};
  }
  return Status::Ok();
}

Status DataPlane::Publish(const FrontTarget& target, int64_t generation, std::chrono::steady_clock::time_point asked) {
  return Call([target, generation, asked](Relay& relay) {
    relay.Publish(target, generation);
    relay.metrics().flip.Observe(std::chrono::duration<double>(std::chrono::steady_clock::now() - asked).count());
  });
}

Result<FrontState> DataPlane::Get() {
  // Shared with the call, which may outlive our patience.
  const auto state = std::make_shared<FrontState>();
  LK_RETURN_IF_ERROR(Call([state](Relay& relay) { relay.Report(state.get()); }));
  state->pid = static_cast<int>(::getpid());
  state->uptime_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
  state->version = version_;
  state->listen = listen_;
  state->settings = settings_;
  return *state;
}

Result<int> DataPlane::Drain(const std::string& slot, int64_t incarnation, Duration deadline) {
  const auto answer = std::make_shared<Result<int>>(0);
  LK_RETURN_IF_ERROR(Call([=](Relay& relay) { *answer = relay.Drain(slot, incarnation, deadline); }));
  return *answer;
}

Status DataPlane::WaitOpenZero(const std::string& slot, int64_t incarnation, Duration timeout) {
  const auto waiter = std::make_shared<Waiter>();
  waiter->slot = slot;
  waiter->incarnation = incarnation;
  LK_RETURN_IF_ERROR(Call([this, waiter](Relay& relay) {
    if (relay.OpenOn(waiter->slot, waiter->incarnation) == 0) {
      waiter->answer.Give();
    } else {
      waiters_.push_back(waiter);
    }
  }));
  if (waiter->answer.WaitUntil(std::chrono::steady_clock::now() + timeout)) return Status::Ok();
  return {Code::kTimeout, "connections are still open on " + slot + "#" + std::to_string(incarnation)};
}

Result<std::string> DataPlane::MetricsText() {
  const auto text = std::make_shared<std::string>();
  LK_RETURN_IF_ERROR(Call([text](Relay& relay) { *text = relay.MetricsText(); }));
  return *text;
}

void DataPlane::BeginStop(Duration deadline) {
  Post([deadline](Relay& relay) { relay.BeginStop(deadline); });
}

void DataPlane::StopNow() {
  stop_now_.store(true);
  Post([](Relay&) {});
}

}  // namespace lockkeeper::front
