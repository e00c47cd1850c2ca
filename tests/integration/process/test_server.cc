// A small server for the tests of the driver: listens, prints, ends and resists as its arguments say.
//
//   --listen              listens on a free port of 127.0.0.1
//   --listen-port N       … on this one; exits 98 when it is taken
//   --inherited           takes its listener from LISTEN_FDS; exits 97 when LISTEN_PID is not its own
//   --print N             prints N lines of 100 bytes to standard output
//   --say TEXT            prints a line to standard error
//   --ignore-term         SIGTERM does nothing
//   --kcp-like            SIGTERM closes the listener and waits for SIGUSR1; a second one ends it with 1, as kcp does
//   --linger              a child in a session of its own that ignores SIGTERM
//   --append FILE         appends a line with its process id: the record of starts
//   --exit N              ends with this code once the rest is done; otherwise it waits for SIGTERM and exits 0
//   --crash               ends by SIGSEGV

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

int listener = -1;

void Listen(int port) {
  const int fd = listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || listen(fd, 16) != 0) _exit(98);
}

void CheckInherited() {
  const char* pid = getenv("LISTEN_PID");
  const char* count = getenv("LISTEN_FDS");
  if (pid == nullptr || count == nullptr || atoi(pid) != getpid() || strcmp(count, "1") != 0) _exit(97);
  int listening = 0;
  socklen_t size = sizeof listening;
  if (getsockopt(3, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) != 0 || listening != 1) _exit(96);
}

void Linger() {
  if (fork() != 0) return;
  setsid();
  signal(SIGTERM, SIG_IGN);
  for (;;) pause();
}

}  // namespace

int main(int argc, char** argv) {
  int code = -1;
  bool crash = false;
  bool resist = false;
  bool kcp_like = false;
  sigset_t term;
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  sigaddset(&term, SIGUSR1);
  sigprocmask(SIG_BLOCK, &term, nullptr);
  sigdelset(&term, SIGUSR1);
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : "";
    if (arg == "--listen") {
      Listen(0);
    } else if (arg == "--listen-port") {
      Listen(atoi(value));
    } else if (arg == "--inherited") {
      CheckInherited();
    } else if (arg == "--print") {
      for (int n = 0; n < atoi(value); ++n) printf("%08d %090d\n", n, 0);
      fflush(stdout);
    } else if (arg == "--say") {
      fprintf(stderr, "%s\n", value);
    } else if (arg == "--ignore-term") {
      resist = true;
    } else if (arg == "--kcp-like") {
      kcp_like = true;
    } else if (arg == "--linger") {
      Linger();
    } else if (arg == "--append") {
      const int fd = open(value, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
      const std::string line = std::to_string(getpid()) + "\n";
      if (write(fd, line.data(), line.size()) < 0) _exit(95);
      close(fd);
    } else if (arg == "--exit") {
      code = atoi(value);
    } else if (arg == "--crash") {
      crash = true;
    }
  }
  if (crash) {
    const rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    signal(SIGSEGV, SIG_DFL);  // sanitizers have a handler of their own, which exits
    signal(SIGSEGV, SIG_DFL);  // a sanitizer would make an exit code of it
    raise(SIGSEGV);
  }
  if (code >= 0) return code;
  while (resist) pause();
  int got = 0;
  while (sigwait(&term, &got) != 0) {
  }
  if (!kcp_like) return 0;
  close(listener);
  sigaddset(&term, SIGUSR1);
  while (sigwait(&term, &got) != 0) {
  }
  return got == SIGUSR1 ? 0 : 1;
}
