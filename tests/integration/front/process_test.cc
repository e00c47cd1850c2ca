// A front as a process of its own: killed at any point of a Set, restarted, out of descriptors, full of idlers.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "api/base/file.h"
#include "api/base/log.h"
#include "reconcilers/front/admin_client.h"
#include "tests/integration/front/child_main.h"
#include "tests/integration/front/line_server.h"
#include "tests/integration/front/test_front.h"

namespace {

// In a front that was told so, the process dies before or after the Nth of these calls, counted from the moment at
// which a Set begins to write its file: every point at which the disk, the loop or the caller could see a difference.
long g_die_at = -1;
std::atomic<bool> g_armed{false};
std::atomic<long> g_calls{0};

void MaybeDie() {
  if (g_die_at >= 0 && g_armed && g_calls++ == g_die_at) ::raise(SIGKILL);
}

template <typename Call>
auto Between(Call call) {
  MaybeDie();
  const auto result = call();
  MaybeDie();
  return result;
}

}  // namespace

extern "C" int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  if ((flags & O_CREAT) != 0 && std::strstr(path, "front-state") != nullptr) g_armed = true;
  return Between([&] { return static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags, mode)); });
}
extern "C" ssize_t write(int fd, const void* data, size_t size) {
  return Between([&] { return ::syscall(SYS_write, fd, data, size); });
}
extern "C" int fsync(int fd) {
  return Between([&] { return static_cast<int>(::syscall(SYS_fsync, fd)); });
}
extern "C" int rename(const char* from, const char* to) {
  return Between([&] { return static_cast<int>(::syscall(SYS_rename, from, to)); });
}

namespace lockkeeper::front {
namespace {

using std::chrono::milliseconds;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

constexpr char kFront[] = "default/test";
constexpr char kDieAt[] = "LKF_DIE_AT";

// One front process at a time, in one folder.
class FrontProcess {
 public:
  FrontProcess() : client_(dir_.path()) {}
  ~FrontProcess() { Kill(); }

  struct Options {
    std::string listen = "127.0.0.1:0";
    int listener = -1;  // passed as LISTEN_FDS
    long die_at = -1;
    std::vector<std::string> flags = {};
  };

  void Start(const Options& options) {
    std::vector<std::string> args = {"/proc/self/exe", "front",
                                     "--name",         kFront,
                                     "--listen",       options.listen,
                                     "--state",        dir_.path() + "/state",
                                     "--admin",        FrontAdminPath(dir_.path(), "default", "test")};
    args.insert(args.end(), options.flags.begin(), options.flags.end());
    std::vector<char*> argv;
    for (auto& a : args) argv.push_back(a.data());
    argv.push_back(nullptr);
    const std::string errors = Errors();
    const std::string die_at = std::to_string(options.die_at);
    pid_ = ::fork();
    if (pid_ != 0) return;
    const int out = ::open(errors.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    ::dup2(out, 2);
    if (options.listener >= 0) {
      ::dup2(options.listener, 3);
      ::setenv("LISTEN_FDS", "1", 1);
      ::setenv("LISTEN_PID", std::to_string(::getpid()).c_str(), 1);
    }
    ::setenv(kDieAt, die_at.c_str(), 1);
    ::execv("/proc/self/exe", argv.data());
    ::_exit(127);
  }
  // Waits until it answers.
  bool Up() {
    return Eventually([&] { return client_.Get(kFront).ok(); });
  }
  std::string Address() { return client_.Get(kFront)->listen; }
  Status Set(const FrontTarget& target) { return client_.Set(kFront, target).status(); }
  FrontState Get() { return *client_.Get(kFront); }
  void Signal(int signal) { ::kill(pid_, signal); }
  // The wait status.
  int WaitEnd() {
    int status = -1;
    if (pid_ > 0) ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return status;
  }
  void Kill() {
    if (pid_ > 0) Signal(SIGKILL);
    WaitEnd();
  }
  pid_t pid() const { return pid_; }
  std::string Errors() const { return dir_.path() + "/stderr"; }
  std::string StateFilePath() const { return dir_.path() + "/state/front-state.json"; }

 private:
  TempDir dir_;
  FrontAdminClient client_;
  pid_t pid_ = -1;
};

TEST(FrontProcess, KilledAtAnyPointOfASetItServesTheOldOrTheNewAndNeverNeither) {
  LineServer blue("blue");
  LineServer green("green");
  int killed = 0;
  int old_kept = 0;
  int new_taken = 0;
  bool survived = false;
  for (long at = 0; !survived; ++at) {
    ASSERT_LT(at, 200);
    SCOPED_TRACE("killed at call " + std::to_string(at));
    FrontProcess front;
    front.Start({});
    ASSERT_TRUE(front.Up());
    ASSERT_TRUE(front.Set(TargetAt("blue", blue.address(), 1)).ok());
    front.Kill();
    front.Start({.die_at = at});
    ASSERT_TRUE(front.Up());
    const Status set = front.Set(TargetAt("green", green.address(), 2));
    int status = 0;
    // Killed behind the reply too: the process may end just after it.
    survived = set.ok() && !Eventually([&] { return ::waitpid(front.pid(), &status, WNOHANG) != 0; }, milliseconds(50));
    killed += survived ? 0 : 1;
    front.Kill();
    front.Start({});
    ASSERT_TRUE(front.Up());
    const FrontState state = front.Get();
    ASSERT_TRUE(state.target.has_value());
    const std::string slot = state.target->slot;
    EXPECT_EQ(Ask(front.Address(), "1"), slot + " 1");
    (slot == "blue" ? old_kept : new_taken) += 1;
    // What was answered is kept.
    if (set.ok()) {
      EXPECT_EQ(slot, "green");
    }
  }
  std::printf("killed at %d points: %d started with the old target, %d with the new\n", killed, old_kept, new_taken);
  EXPECT_GT(old_kept, 3);
  EXPECT_GT(new_taken, 2);
}

TEST(FrontProcess, WithAPassedListenerARestartRefusesNoConnection) {
  LineServer blue("blue");
  ManualBackend listener;  // as a shim binds it, once
  const std::string address = listener.address();
  FrontProcess front;
  const FrontProcess::Options options{.listen = address, .listener = listener.fd()};
  front.Start(options);
  ASSERT_TRUE(front.Up());
  EXPECT_EQ(front.Address(), address);
  ASSERT_TRUE(front.Set(TargetAt("blue", blue.address(), 1)).ok());
  std::atomic<bool> stop{false};
  std::atomic<int> asked{0};
  std::atomic<int> refused{0};
  std::atomic<int> cut{0};
  std::vector<std::thread> clients;
  for (int c = 0; c < 4; ++c) {
    clients.emplace_back([&, c] {
      for (int i = 0; !stop; ++i) {
        const std::string id = std::to_string(c) + "-" + std::to_string(i);
        const std::string answer = Ask(address, id);
        ++asked;
        // One that was open when the front was killed dies with it; a new one never meets a closed door.
        refused += answer == "no connection";
        cut += answer == "no answer";
      }
    });
  }
  for (int i = 0; i < 5; ++i) {
    const int before = asked;
    ASSERT_TRUE(Eventually([&] { return asked > before + 50; }));
    front.Kill();
    front.Start(options);
    ASSERT_TRUE(front.Up());
  }
  stop = true;
  for (auto& c : clients) c.join();
  std::printf("5 kills: %d asked, %d refused, %d were open at a kill\n", asked.load(), refused.load(), cut.load());
  EXPECT_EQ(refused, 0);
  EXPECT_LE(cut, 5 * 4);
}

TEST(FrontProcess, ItStartsFastAndResumesItsTarget) {
  LineServer blue("blue");
  FrontProcess front;
  front.Start({});
  ASSERT_TRUE(front.Up());
  ASSERT_TRUE(front.Set(TargetAt("blue", blue.address(), 1)).ok());
  const int64_t generation = front.Get().generation;
  const std::string address = front.Address();
  double best = 1e9;
  for (int i = 0; i < 5; ++i) {
    front.Kill();
    const auto began = std::chrono::steady_clock::now();
    front.Start({.listen = address});
    std::string answer;
    ASSERT_TRUE(Eventually([&] { return (answer = Ask(address, "1")) == "blue 1"; }));
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
  }
  std::printf("from exec to the first answer: %.1f ms\n", best * 1e3);
  EXPECT_EQ(front.Get().generation, generation);
  // The design says 50 ms; a loaded machine and the sanitizers get more.
  EXPECT_LT(best, kSanitized ? 2 : 0.2);
}

TEST(FrontProcess, ADamagedStateFileMeansHoldUntilTheAgentSpeaks) {
  LineServer blue("blue");
  FrontProcess front;
  front.Start({});
  ASSERT_TRUE(front.Up());
  ASSERT_TRUE(front.Set(TargetAt("blue", blue.address(), 1)).ok());
  front.Kill();
  ASSERT_TRUE(WriteFileAtomic(front.StateFilePath(), "{\"version\": 1").ok());
  front.Start({});
  ASSERT_TRUE(front.Up());
  EXPECT_FALSE(front.Get().target.has_value());
  const Peer client = Peer::Connect(front.Address());
  ASSERT_TRUE(client.Send("1\n"));
  EXPECT_TRUE(Eventually([&] { return front.Get().held == 1; }));
  ASSERT_TRUE(front.Set(TargetAt("blue", blue.address(), 1)).ok());
  EXPECT_EQ(client.ReadLine(), "blue 1");
}

TEST(FrontProcess, AnAddressInUseEndsWith98AndNamesIt) {
  ManualBackend taken;
  FrontProcess front;
  front.Start({.listen = taken.address()});
  const int status = front.WaitEnd();
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 98);
  const std::string said = *ReadFile(front.Errors());
  EXPECT_NE(said.find(taken.address()), std::string::npos) << said;
  EXPECT_NE(said.find("in use"), std::string::npos) << said;
}

TEST(FrontProcess, AFlagThatMakesNoSenseEndsWith2) {
  FrontProcess front;
  front.Start({.listen = "localhost:80"});
  EXPECT_EQ(WEXITSTATUS(front.WaitEnd()), 2);
}

// A front that was told to stop while a request is on its way.
struct Stopping {
  Stopping() {
    front.Start({});
    EXPECT_TRUE(front.Up());
    EXPECT_TRUE(front.Set(TargetAt("blue", blue.address(), 1)).ok());
    address = front.Address();
    client = Peer::Connect(address);
    EXPECT_TRUE(client.Send("?"));
    server = blue.Accept();
    EXPECT_EQ(server.Read(1), "?");
    front.Signal(SIGTERM);
  }
  void EndsWell() {
    const int status = front.WaitEnd();
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  ManualBackend blue;
  FrontProcess front;
  std::string address;
  Peer client;
  Peer server;
};

TEST(FrontProcess, SigtermAnswersWhatIsOnItsWayAndThenEnds) {
  Stopping s;
  // Each connection that still comes in is ended on both sides, so that none is waited for.
  ASSERT_TRUE(Eventually([&] { return !Peer::Connect(s.address).ok() || !s.blue.Accept().ok(); }));
  EXPECT_TRUE(s.client.StaysSilent(milliseconds(50)));
  ASSERT_TRUE(s.server.Send("!"));
  EXPECT_EQ(s.client.Read(1), "!");
  EXPECT_EQ(s.client.ReadToEnd(), End::kEof);
  s.EndsWell();
}

TEST(FrontProcess, ASecondSigtermCutsAtOnce) {
  Stopping s;
  ASSERT_TRUE(Eventually([&] { return !Peer::Connect(s.address).ok(); }));
  s.front.Signal(SIGTERM);
  EXPECT_EQ(s.client.ReadToEnd(), End::kReset);
  s.EndsWell();
}

TEST(FrontProcess, OutOfDescriptorsItPausesAndLosesNobody) {
  LineServer blue("blue");
  FrontProcess front;
  front.Start({});
  ASSERT_TRUE(front.Up());
  ASSERT_TRUE(front.Set(TargetAt("blue", blue.address(), 1)).ok());
  const std::string address = front.Address();
  rlimit before{};
  ASSERT_EQ(::prlimit(front.pid(), RLIMIT_NOFILE, nullptr, &before), 0);
  const auto used = ListDir("/proc/" + std::to_string(front.pid()) + "/fd");
  ASSERT_TRUE(used.ok());
  // Room for three connections and an odd one; the hard limit stays, so that it can be given back.
  const rlimit tight{used->size() + 7, before.rlim_max};
  ASSERT_EQ(::prlimit(front.pid(), RLIMIT_NOFILE, &tight, nullptr), 0);
  std::vector<Peer> clients;
  for (int i = 0; i < 12; ++i) {
    clients.push_back(Peer::Connect(address));
    ASSERT_TRUE(clients.back().Send(std::to_string(i) + "\n"));
  }
  for (int i = 0; i < 3; ++i) EXPECT_EQ(clients[i].ReadLine(), "blue " + std::to_string(i));
  EXPECT_TRUE(clients[11].StaysSilent(milliseconds(150)));
  ASSERT_EQ(::prlimit(front.pid(), RLIMIT_NOFILE, &before, nullptr), 0);
  for (int i = 3; i < 12; ++i) EXPECT_EQ(clients[i].ReadLine(), "blue " + std::to_string(i));
  EXPECT_EQ(front.Get().refused_total, 0);
  EXPECT_NE(ReadFile(front.Errors())->find("accepting pauses"), std::string::npos);
}

// "Rss" or "Pss" of a process, in KiB.
long Memory(pid_t pid, const std::string& what) {
  const auto text = ReadFile("/proc/" + std::to_string(pid) + "/smaps_rollup");
  if (!text.ok()) return -1;
  const size_t at = text->find("\n" + what + ":");
  return at == std::string::npos ? -1 : std::atol(text->c_str() + at + what.size() + 2);
}

TEST(FrontProcess, ThousandsOfIdleConnectionsCostLittleMemory) {
  ManualBackend backend(0, 4096);
  FrontProcess front;
  front.Start({.flags = {"--max-connections", "20000"}});
  ASSERT_TRUE(front.Up());
  ASSERT_TRUE(front.Set(TargetAt("blue", backend.address(), 1)).ok());
  const std::string address = front.Address();
  const long empty = Memory(front.pid(), "Rss");
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  // Two descriptors each, here as in the front.
  const int count = static_cast<int>(std::min<rlim_t>(10'000, (limit.rlim_cur - 200) / 2));
  std::vector<Peer> clients;
  std::vector<Peer> servers;
  for (int i = 0; i < count; ++i) {
    clients.push_back(Peer::Connect(address));
    ASSERT_TRUE(clients.back().Send("x"));
    servers.push_back(backend.Accept());
    ASSERT_TRUE(servers.back().Read(1)) << i;
  }
  EXPECT_EQ(front.Get().OpenOn("blue", 1), count);
  const long full = Memory(front.pid(), "Rss");
  std::printf("%d idle connections: RSS %ld KiB, %ld empty, %ld bytes each; PSS %ld KiB\n", count, full, empty,
              (full - empty) * 1024 / count, Memory(front.pid(), "Pss"));
  if (!kSanitized) {
    EXPECT_LT(full, 40 * 1024);
    EXPECT_LT((full - empty) * 1024 / count, 300);
  }
  // And they all still work.
  for (int i = 0; i < count; i += 97) {
    ASSERT_TRUE(servers[i].Send("y"));
    ASSERT_EQ(clients[i].Read(1), "y");
  }
}

}  // namespace
}  // namespace lockkeeper::front

int main(int argc, char** argv) {
  using namespace lockkeeper;
  if (const char* at = std::getenv("LKF_DIE_AT")) g_die_at = std::atol(at);
  if (const auto code = front::RunAsFront(argc, argv)) return *code;
  ConfigureLog(LogLevel::kError, LogFormat::kText);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
