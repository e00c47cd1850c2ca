#include "api/server/kcp/signals.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>

#include "api/base/file.h"
#include "api/base/log.h"

namespace lockkeeper::kcp {

Status Signals::Block() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  if (const int error = pthread_sigmask(SIG_BLOCK, &set, nullptr); error != 0) {
    return ErrnoStatus("blocking", "SIGTERM and SIGINT", error);
  }
  signal(SIGPIPE, SIG_IGN);
  signal_fd_.Reset(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  stop_event_.Reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  quit_event_.Reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!signal_fd_ || !stop_event_ || !quit_event_) return ErrnoStatus("opening", "a signal descriptor", errno);
  thread_ = std::thread([this] { Run(); });
  return Status::Ok();
}

Signals::~Signals() {
  if (!thread_.joinable()) return;
  (void)!eventfd_write(quit_event_.get(), 1);
  thread_.join();
}

void Signals::Run() {
  int count = 0;
  while (true) {
    pollfd fds[2] = {{signal_fd_.get(), POLLIN, 0}, {quit_event_.get(), POLLIN, 0}};
    if (poll(fds, 2, -1) < 0 && errno != EINTR) return;
    if (fds[1].revents != 0) return;
    signalfd_siginfo info;
    while (read(signal_fd_.get(), &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) {
      if (++count == 2) {
        LogWarn("a second signal: exiting at once", {{"signal", static_cast<int>(info.ssi_signo)}});
        _exit(1);
      }
      (void)!eventfd_write(stop_event_.get(), 1);
    }
  }
}

bool Signals::WaitStop(std::optional<Duration> patience) {
  const auto start = std::chrono::steady_clock::now();
  while (true) {
    int timeout = -1;
    if (patience) {
      const auto left = *patience - std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - start);
      // Rounded up: woken early it would spin.
      timeout = static_cast<int>(std::clamp<int64_t>((left.count() + 999) / 1000, 0, 1'000'000'000));
    }
    pollfd fd = {stop_event_.get(), POLLIN, 0};
    const int ready = poll(&fd, 1, timeout);
    if (ready > 0) return true;
    if (ready == 0) return false;
    if (errno != EINTR) return true;  // nothing to wait on any more: stop
  }
}

void Signals::WaitForever() {
  while (true) pause();
}

}  // namespace lockkeeper::kcp
