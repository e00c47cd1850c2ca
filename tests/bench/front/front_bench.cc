// front_bench: what a front costs against a direct connection, on one machine over loopback.
//
// Prints median and 99th percentile of a 64-byte question and answer on a kept-alive connection, new connections a
// second, and the rate of one stream, each direct, through the front, and as a ratio; the front's memory; and one JSON
// line. Best of three runs each: neighbours only ever make it slower.
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "api/base/file.h"
#include "api/base/json.h"
#include "api/base/log.h"
#include "reconcilers/front/admin_client.h"
#include "reconcilers/front/front_main.h"
#include "tests/integration/front/sockets.h"
#include "tests/integration/front/test_front.h"

namespace lockkeeper::front {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kRuns = 3;
constexpr int kQuestions = 5'000;
constexpr int kConnections = 1'500;
constexpr size_t kStreamBytes = 256u << 20;

double Since(Clock::time_point began) { return std::chrono::duration<double>(Clock::now() - began).count(); }

// Answers what it is asked, until its client ends; "S" asks for a stream. One thread a connection.
void Serve(const ManualBackend& backend) {
  while (true) {
    Peer peer = backend.Accept(std::chrono::hours(1));
    if (!peer.ok()) return;
    std::thread([peer = std::move(peer)] {
      const std::string block(64 << 10, 'x');
      char buffer[4096];
      while (true) {
        const ssize_t n = ::recv(peer.fd(), buffer, sizeof buffer, 0);
        if (n <= 0) return;
        if (buffer[0] == 'S') {
          for (size_t sent = 0; sent < kStreamBytes; sent += block.size()) {
            if (!peer.Send(block)) return;
          }
          return;
        }
        if (!peer.Send(std::string(buffer, static_cast<size_t>(n)))) return;
      }
    }).detach();
  }
}

struct Figures {
  double p50_micros = 1e9;
  double p99_micros = 1e9;
  double connections_per_second = 0;
  double gbit_per_second = 0;
};

void MeasureQuestions(const std::string& address, Figures* f) {
  const Peer peer = Peer::Connect(address);
  const std::string question(64, 'q');
  std::vector<double> micros;
  micros.reserve(kQuestions);
  for (int i = 0; i < kQuestions; ++i) {
    const auto began = Clock::now();
    if (!peer.Send(question) || !peer.Read(question.size())) std::abort();
    micros.push_back(Since(began) * 1e6);
  }
  std::sort(micros.begin(), micros.end());
  f->p50_micros = std::min(f->p50_micros, micros[micros.size() / 2]);
  f->p99_micros = std::min(f->p99_micros, micros[micros.size() * 99 / 100]);
}

void MeasureConnections(const std::string& address, Figures* f) {
  const auto began = Clock::now();
  for (int i = 0; i < kConnections; ++i) {
    const Peer peer = Peer::Connect(address);
    if (!peer.Send("q") || !peer.Read(1)) std::abort();
  }
  f->connections_per_second = std::max(f->connections_per_second, kConnections / Since(began));
}

void MeasureStream(const std::string& address, Figures* f) {
  const Peer peer = Peer::Connect(address);
  const auto began = Clock::now();
  if (!peer.Send("S")) std::abort();
  std::vector<char> buffer(256 << 10);
  size_t got = 0;
  while (got < kStreamBytes) {
    const ssize_t n = ::recv(peer.fd(), buffer.data(), buffer.size(), 0);
    if (n <= 0) std::abort();
    got += static_cast<size_t>(n);
  }
  f->gbit_per_second = std::max(f->gbit_per_second, static_cast<double>(got) * 8 / 1e9 / Since(began));
}

Figures Measure(const std::string& address) {
  Figures f;
  for (int i = 0; i < kRuns; ++i) {
    MeasureQuestions(address, &f);
    MeasureConnections(address, &f);
    MeasureStream(address, &f);
  }
  return f;
}

long PssKiB(pid_t pid) {
  const auto text = ReadFile("/proc/" + std::to_string(pid) + "/smaps_rollup");
  const size_t at = text.ok() ? text->find("\nPss:") : std::string::npos;
  return at == std::string::npos ? -1 : std::atol(text->c_str() + at + 5);
}

int Main() {
  ConfigureLog(LogLevel::kError, LogFormat::kText);
  const TempDir dir;
  FrontConfig config;
  config.name = "default/bench";
  config.listen = "127.0.0.1:0";
  config.state_dir = dir.path();
  config.admin_path = FrontAdminPath(dir.path(), "default", "bench");
  const pid_t pid = ::fork();  // before the first thread
  if (pid == 0) {
    CancelToken cancel;
    ::_exit(RunFront(config, cancel));
  }
  const ManualBackend backend(0, 4096);
  std::thread([&] { Serve(backend); }).detach();
  FrontAdminClient admin(dir.path());
  if (!Eventually([&] { return admin.Get(config.name).ok(); })) return 1;
  if (!admin.Set(config.name, TargetAt("blue", backend.address())).ok()) return 1;
  const std::string front = admin.Get(config.name)->listen;
  const long idle = PssKiB(pid);
  const Figures direct = Measure(backend.address());
  const Figures through = Measure(front);
  const long after = PssKiB(pid);
  rusage usage{};
  ::kill(pid, SIGKILL);
  ::wait4(pid, nullptr, 0, &usage);
  const auto row = [](const char* what, double a, double b) {
    std::printf("%-22s %12.1f %12.1f %8.2f\n", what, a, b, b / a);
  };
  std::printf("%-22s %12s %12s %8s\n", "", "direct", "front", "ratio");
  row("64 B p50, us", direct.p50_micros, through.p50_micros);
  row("64 B p99, us", direct.p99_micros, through.p99_micros);
  row("connections/s", direct.connections_per_second, through.connections_per_second);
  row("one stream, Gbit/s", direct.gbit_per_second, through.gbit_per_second);
  std::printf("front PSS: %ld KiB idle, %ld KiB after\n", idle, after);
  std::printf("%s\n",
              Json::MakeObject({{"bench", "front"},
                                {"p50DirectMicros", direct.p50_micros},
                                {"p50FrontMicros", through.p50_micros},
                                {"p99FrontMicros", through.p99_micros},
                                {"connectionsRatio", through.connections_per_second / direct.connections_per_second},
                                {"streamGbit", through.gbit_per_second},
                                {"pssIdleKiB", idle},
                                {"pssAfterKiB", after}})
                  .Dump()
                  .c_str());
  return 0;
}

}  // namespace
}  // namespace lockkeeper::front

int main() {
  const int code = lockkeeper::front::Main();
  std::fflush(stdout);
  std::_Exit(code);  // its servers' threads wait for ever
}
