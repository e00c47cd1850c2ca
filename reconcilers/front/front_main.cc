#include "reconcilers/front/front_main.h"

#include <malloc.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>

#include "api/base/file.h"
#include "api/base/log.h"
#include "reconcilers/front/front_service.h"

namespace lockkeeper::front {
namespace {

Result<UniqueFd> BlockSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  const int error = ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  if (error != 0) return ErrnoStatus("block", "SIGTERM", error);
  UniqueFd fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd) return ErrnoStatus("signalfd", "for SIGTERM", errno);
  return fd;
}

Status Run(const FrontConfig& config, CancelToken& cancel) {
  UniqueFd signals;
  if (config.handle_signals) {
    LK_ASSIGN_OR_RETURN(signals, BlockSignals());
  }
  FrontService service(config);
  LK_RETURN_IF_ERROR(service.Start());
  bool stopping = false;
  const auto stop = [&] {
    if (stopping) {
      LogInfo("asked again: every connection is cut");
      service.StopNow();
      return;
    }
    stopping = true;
    LogInfo("asked to stop: nothing is accepted any more, connections drain", {{"seconds", ToSeconds(kStopDeadline)}});
    service.BeginStop(kStopDeadline);
  };
  LK_RETURN_IF_ERROR(service.plane().Watch(cancel.fd(), [&] {
    stop();
    return false;
  }));
  if (signals) {
    LK_RETURN_IF_ERROR(service.plane().Watch(signals.get(), [&] {
      signalfd_siginfo info;
      while (::read(signals.get(), &info, sizeof info) == sizeof info) stop();
      return true;
    }));
  }
  service.Run();
  return Status::Ok();
}

}  // namespace

int RunFront(const FrontConfig& config, CancelToken& cancel) {
  // The admin's threads are few and idle; an arena for each would cost more than they hold.
  ::mallopt(M_ARENA_MAX, 1);
  const Status status = Run(config, cancel);
  if (status.ok()) return 0;
  LogError("the front cannot run", {{"front", config.name}, {"reason", status.message()}});
  if (status.code() == Code::kBusy) return kExitAddressInUse;
  return status.code() == Code::kInvalid ? 2 : 1;
}

}  // namespace lockkeeper::front
