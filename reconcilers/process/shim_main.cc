// slot-shim RUN_FOLDER: starts one process and stays with it. See shim_protocol.h.
//
// It goes into a session of its own and outlives whoever spawned it; the spawned process ends with one of the
// kSpawn codes once the shim is ready, so that the driver need not poll.

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "reconcilers/process/shim.h"
#include "reconcilers/process/shim_protocol.h"

int main(int argc, char** argv) {
  using lockkeeper::shim::Shim;
  if (argc != 2) return 2;
  syscall(SYS_close_range, 3, ~0U, 0);
  umask(022);
  // Whatever ends the agent's group or terminal is not meant for this process.
  for (const int s : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGUSR1, SIGUSR2, SIGTSTP}) signal(s, SIG_IGN);
  signal(SIGCHLD, SIG_DFL);
  const int run = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (run < 0 || fchdir(run) != 0) return lockkeeper::shim::kSpawnFailed;
  int ready[2];
  if (pipe2(ready, O_CLOEXEC) != 0) return lockkeeper::shim::kSpawnFailed;
  const pid_t pid = fork();
  if (pid < 0) return lockkeeper::shim::kSpawnFailed;
  if (pid > 0) {
    close(ready[1]);
    unsigned char code = lockkeeper::shim::kSpawnFailed;
    if (read(ready[0], &code, 1) != 1) return lockkeeper::shim::kSpawnFailed;
    return code;
  }
  close(ready[0]);
  setsid();
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; fd < 3; ++fd) dup2(null, fd);
  close(null);
  Shim shim(run);
  const auto code = static_cast<unsigned char>(shim.Prepare());
  const bool told = write(ready[1], &code, 1) == 1;
  close(ready[1]);
  if (code != lockkeeper::shim::kSpawnReady) return code;
  (void)told;  // a spawner that is gone finds the shim by its lock
  return shim.Run();
}
