#include "reconcilers/process/process_watch.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <set>
#include <thread>
#include <vector>

#include "api/base/file.h"
#include "api/base/log.h"
#include "api/base/sync.h"
#include "api/base/unique_fd.h"
#include "reconcilers/process/proc_fs.h"
#include "reconcilers/process/shim_client.h"
#include "reconcilers/process/shim_io.h"
#include "reconcilers/process/unit_folder.h"

namespace lockkeeper {
namespace {

constexpr Duration kFastPortPoll = Seconds(120);
constexpr Duration kSlowPortPoll = Seconds(1);
constexpr Duration kTakeOverPause = Seconds(1);

struct Watched {
  int wd = -1;
  int64_t invocation = -1;
  UnitIdentity id;
  UniqueFd process;
  UniqueFd shim;
  pid_t shim_pid = 0;
  bool awaits_port = false;
  Duration since{};
  Duration next_port_look{};
  Duration next_take_over{};
};

class WatchThread final : public ProcessWatch {
 public:
  explicit WatchThread(Options options) : options_(std::move(options)) {}
  ~WatchThread() override {
    {
      const MutexLock lock(mutex_);
      stop_ = true;
    }
    Wake();
    if (thread_.joinable()) thread_.join();
  }

  Status Begin() {
    wake_.Reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    inotify_.Reset(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    if (!wake_ || !inotify_) return ErrnoStatus("watch", options_.run_dir, errno);
    const Result<std::vector<std::string>> units = ListDir(options_.run_dir);
    if (!units.ok()) return units.status();
    const MutexLock lock(mutex_);
    touched_.insert(units->begin(), units->end());
    thread_ = std::thread([this] { Loop(); });
    return Status::Ok();
  }

  void Touch(const std::string& unit) override {
    {
      const MutexLock lock(mutex_);
      touched_.insert(unit);
    }
    Wake();
  }

 private:
  void Wake() {
    const uint64_t one = 1;
    if (write(wake_.get(), &one, sizeof one) < 0) return;  // full means awake already
  }

  void Loop() {
    while (true) {
      std::set<std::string> dirty;
      {
        const MutexLock lock(mutex_);
        if (stop_) return;
        dirty.swap(touched_);
      }
      if (dirty.empty()) dirty = Poll();
      for (const std::string& unit : dirty) {
        Refresh(unit);
        options_.changed(unit);
      }
    }
  }

  // Waits for one round of events; answers the units to look at.
  std::set<std::string> Poll() {
    std::vector<pollfd> fds{{wake_.get(), POLLIN, 0}, {inotify_.get(), POLLIN, 0}};
    std::vector<std::string> owner{"", ""};
    Duration timeout = Seconds(60);
    const Duration now = SystemClock().Read().boot;
    for (const auto& [unit, w] : units_) {
      for (const UniqueFd* fd : {&w.process, &w.shim}) {
        if (!*fd) continue;
        fds.push_back({fd->get(), POLLIN, 0});
        owner.push_back(unit);
      }
      if (w.awaits_port) timeout = std::min(timeout, std::max(Duration::zero(), w.next_port_look - now));
    }
    const int milliseconds = static_cast<int>((timeout.count() + 999) / 1000);
    std::set<std::string> changed;
    if (poll(fds.data(), fds.size(), milliseconds) < 0) return changed;
    uint64_t drained = 0;
    while (read(wake_.get(), &drained, sizeof drained) > 0) {
    }
    if (fds[1].revents != 0) DrainInotify(&changed);
    for (size_t i = 2; i < fds.size(); ++i) {
      if (fds[i].revents == 0) continue;
      Watched& w = units_[owner[i]];
      (fds[i].fd == w.process.get() ? w.process : w.shim).Reset();
      changed.insert(owner[i]);
    }
    LookForPorts(&changed);
    return changed;
  }

  void LookForPorts(std::set<std::string>* changed) {
    const Duration now = SystemClock().Read().boot;
    for (auto& [unit, w] : units_) {
      if (!w.awaits_port || now < w.next_port_look) continue;
      w.next_port_look = now + (now - w.since < kFastPortPoll ? options_.port_poll : kSlowPortPoll);
      if (!ListenPorts(w.id.pid).empty()) {
        w.awaits_port = false;
        changed->insert(unit);
      }
    }
  }

  void DrainInotify(std::set<std::string>* changed) {
    alignas(inotify_event) std::array<char, 16384> buffer;
    ssize_t n = 0;
    while ((n = read(inotify_.get(), buffer.data(), buffer.size())) > 0) {
      for (ssize_t at = 0; at < n;) {
        const auto* event = reinterpret_cast<const inotify_event*>(buffer.data() + at);
        at += static_cast<ssize_t>(sizeof *event + event->len);
        for (auto& [unit, w] : units_) {
          if ((event->mask & IN_Q_OVERFLOW) == 0 && w.wd != event->wd) continue;
          if ((event->mask & IN_IGNORED) != 0) w.wd = -1;
          changed->insert(unit);
        }
      }
    }
  }

  void Refresh(const std::string& unit) {
    Result<UnitView> view = ReadUnit(options_.run_dir, unit);
    Watched& w = units_[unit];
    if (!view.ok() || view->invocation != w.invocation) {
      if (w.wd >= 0) inotify_rm_watch(inotify_.get(), w.wd);
      w = Watched{};
    }
    if (!view.ok()) {
      if (view.code() != Code::kNotFound)
        LogWarn("cannot watch a unit", {{"unit", unit}, {"why", view.status().message()}});
      units_.erase(unit);
      return;
    }
    w.invocation = view->invocation;
    if (w.wd < 0 && view->State() != UnitStatus::State::kExited) {
      w.wd = inotify_add_watch(inotify_.get(), view->run_folder.c_str(), IN_MOVED_TO | IN_ONLYDIR);
      view = ReadUnit(options_.run_dir, unit);  // what was written before the watch was there
      if (!view.ok()) return;
    }
    if (view->State() == UnitStatus::State::kExited) {
      w.process.Reset();
      w.shim.Reset();
      w.awaits_port = false;
      return;
    }
    FollowProcess(*view, &w);
    FollowShim(*view, &w);
  }

  static UniqueFd Pin(pid_t pid) { return UniqueFd(pid > 0 ? shim::PidfdOpen(pid) : -1); }

  void FollowProcess(const UnitView& view, Watched* w) {
    if (!view.process_alive) {
      w->process.Reset();
      w->awaits_port = false;
      w->id = {};
      return;
    }
    if (w->id == view.Id() && w->process) return;
    const bool again = w->id == view.Id();
    w->id = view.Id();
    w->process = Pin(w->id.pid);
    if (again) return;
    w->awaits_port = ListenPorts(w->id.pid).empty();
    w->since = SystemClock().Read().boot;
    w->next_port_look = w->since;
  }

  void FollowShim(const UnitView& view, Watched* w) {
    if (view.shim_alive) {
      if (w->shim && w->shim_pid == view.shim_pid) return;
      w->shim = Pin(view.shim_pid);
      w->shim_pid = view.shim_pid;
      return;
    }
    w->shim.Reset();
    const Duration now = SystemClock().Read().boot;
    if (!view.process_alive || now < w->next_take_over) return;
    w->next_take_over = now + kTakeOverPause;
    const Result<int> code = SpawnShim(options_.shim_path, view.run_folder);
    LogWarn("the shim of a running process is gone; a new one takes over its output",
            {{"unit", view.unit}, {"result", code.ok() ? std::to_string(*code) : code.status().message()}});
    const Result<UnitView> after = ReadUnit(options_.run_dir, view.unit);
    if (after.ok() && after->shim_alive) {
      w->shim = Pin(after->shim_pid);
      w->shim_pid = after->shim_pid;
    }
  }

  const Options options_;
  UniqueFd wake_;
  UniqueFd inotify_;
  std::thread thread_;
  std::map<std::string, Watched> units_;  // of the watch thread
  Mutex mutex_;
  bool stop_ LK_GUARDED_BY(mutex_) = false;
  std::set<std::string> touched_ LK_GUARDED_BY(mutex_);
};

}  // namespace

Result<std::unique_ptr<ProcessWatch>> ProcessWatch::Start(Options options) {
  auto watch = std::make_unique<WatchThread>(std::move(options));
  LK_RETURN_IF_ERROR(watch->Begin());
  return std::unique_ptr<ProcessWatch>(std::move(watch));
}

}  // namespace lockkeeper
