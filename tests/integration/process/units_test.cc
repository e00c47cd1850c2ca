// The driver Process with real shims and real processes.

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "api/base/file.h"
#include "api/base/unique_fd.h"
#include "reconcilers/process/proc_fs.h"
#include "reconcilers/process/shim_client.h"
#include "reconcilers/process/shim_io.h"
#include "reconcilers/process/unit_folder.h"
#include "tests/integration/process/process_fixture.h"
#include "tests/support/wait.h"

namespace lockkeeper {
namespace {

using State = UnitStatus::State;

TEST_F(ProcessTest, StartsAProcessInASessionOfItsOwnAndFindsItsPort) {
  UnitSpec spec = Spec("lk-a", {"--listen", "--say", "hello", "--say", "Authorization: Bearer abc.def.ghi"});
  spec.env = {{"COLOUR", "blue"}};
  spec.working_directory = dir_;
  ASSERT_TRUE(units_->Start(spec, 1).ok());
  const UnitStatus status = AwaitPort("lk-a");
  EXPECT_EQ(status.state, State::kRunning);
  EXPECT_EQ(status.id.invocation, 1);
  EXPECT_EQ(status.id.boot_id, BootId());
  EXPECT_EQ(status.executable, TestServerPath());
  EXPECT_EQ(status.listen_ports.size(), 1u);
  EXPECT_TRUE(status.shim_alive);
  EXPECT_EQ(getsid(status.id.pid), status.id.pid);
  EXPECT_NE(getsid(status.id.pid), getsid(0));
  EXPECT_EQ(Read("/proc/" + std::to_string(status.id.pid) + "/environ"), std::string("COLOUR=blue\0", 12));
  const Result<std::string> hash = units_->ExecutableSha256(status.id);
  ASSERT_TRUE(hash.ok()) << hash.status().ToString();
  EXPECT_EQ(*hash, *Sha256File(TestServerPath()));
  ASSERT_TRUE(WaitUntil([&] { return units_->LastOutput(spec, 5)->size() == 2; }));
  const std::vector<std::string> output = *units_->LastOutput(spec, 5);
  EXPECT_EQ(output[0], "hello");
  EXPECT_EQ(output[1].find("abc.def"), std::string::npos) << output[1];
  EXPECT_EQ(*units_->List(), std::vector<std::string>{"lk-a"});
}

// Connections of a listener have its port, too; and a host has thousands of sockets that are not the unit's.
TEST(ProcFs, OnlyListenersOfTheProcessCountOldestFirst) {
  const auto listen_on = [](int family) {
    UniqueFd fd(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    return fd && listen(fd.get(), 8) == 0 ? std::move(fd) : UniqueFd();
  };
  const auto port_of = [](const UniqueFd& fd) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    EXPECT_EQ(getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    return static_cast<int>(ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                                                                : reinterpret_cast<sockaddr_in*>(&address)->sin_port));
  };
  const std::vector<int> before = ListenPorts(getpid());
  const UniqueFd first = listen_on(AF_INET);
  ASSERT_TRUE(first);
  std::vector<int> wanted = {port_of(first)};
  const UniqueFd second = listen_on(AF_INET6);  // where the host has it
  if (second) wanted.push_back(port_of(second));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(static_cast<uint16_t>(wanted[0]));
  const UniqueFd client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(connect(client.get(), reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  const UniqueFd accepted(accept4(first.get(), nullptr, nullptr, SOCK_CLOEXEC));
  ASSERT_TRUE(accepted);
  EXPECT_EQ(before, std::vector<int>{});
  EXPECT_EQ(ListenPorts(getpid()), wanted);
}

TEST_F(ProcessTest, AStartRepeatedIsHarmless) {
  const UnitSpec spec = Spec("lk-a", {"--listen"});
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(units_->Start(spec, 1).ok());
  const UnitStatus status = AwaitPort("lk-a");
  Reopen();
  ASSERT_TRUE(units_->Start(spec, 1).ok());
  EXPECT_EQ(MustInspect("lk-a").id, status.id);
  EXPECT_EQ(Starts(), std::vector<int>{status.id.pid});
  const Status other = units_->Start(spec, 2);
  EXPECT_EQ(other.code(), Code::kPrecondition) << other.ToString();
  ASSERT_TRUE(units_->Terminate(status.id, SIGTERM).ok());
  AwaitExit("lk-a");
  ASSERT_TRUE(units_->Start(spec, 1).ok());  // exited: nothing is changed
  EXPECT_EQ(MustInspect("lk-a").state, State::kExited);
  EXPECT_EQ(Starts().size(), 1u);
}

TEST_F(ProcessTest, TheGoIsTakenAnyNumberOfTimes) {
  const UnitSpec spec = Spec("lk-a", {"--listen"});
  ASSERT_TRUE(units_->Start(spec, 1).ok());
  const UnitStatus status = AwaitPort("lk-a");
  std::vector<std::thread> callers;
  for (int i = 0; i < 8; ++i) {
    callers.emplace_back([&] {
      const Result<shim::Record> answer = AskShim(JoinPath(Options().run_dir, "lk-a/1"), "go");
      ASSERT_TRUE(answer.ok()) << answer.status().ToString();
      EXPECT_EQ(answer->Get("state"), "running");
      EXPECT_EQ(answer->GetInt("pid"), status.id.pid);
    });
  }
  for (std::thread& t : callers) t.join();
  EXPECT_EQ(Starts().size(), 1u);
}

TEST_F(ProcessTest, ConcurrentStartsOfOneInvocationStartOneProcess) {
  const UnitSpec spec = Spec("lk-a", {"--listen"});
  std::vector<std::thread> callers;
  for (int i = 0; i < 6; ++i) {
    callers.emplace_back([&] { EXPECT_TRUE(units_->Start(spec, 1).ok()); });
  }
  for (std::thread& t : callers) t.join();
  AwaitPort("lk-a");
  EXPECT_EQ(Starts().size(), 1u);
}

TEST_F(ProcessTest, AnExitIsRecordedWithCodeOrSignal) {
  ASSERT_TRUE(units_->Start(Spec("lk-code", {"--exit", "7"}), 1).ok());
  const UnitStatus code = AwaitExit("lk-code");
  ASSERT_TRUE(code.exit);
  EXPECT_EQ(code.exit->code, 7);
  EXPECT_EQ(code.exit->signal, 0);
  EXPECT_GE(code.exit->at, code.started_at);
  ASSERT_TRUE(units_->Start(Spec("lk-signal", {"--crash"}), 1).ok());
  const UnitStatus signal = AwaitExit("lk-signal");
  ASSERT_TRUE(signal.exit);
  EXPECT_EQ(signal.exit->signal, SIGSEGV);
  EXPECT_FALSE(signal.exit->killed_by_us);
  EXPECT_FALSE(signal.exit->oom);
}

TEST_F(ProcessTest, ACommandThatDoesNotExistIsNamedAndStaysRefusedForItsInvocation) {
  UnitSpec spec = Spec("lk-a", {});
  spec.argv[0] = "/nonexistent/kcp";
  const Status first = units_->Start(spec, 1);
  EXPECT_EQ(first.code(), Code::kNotFound);
  EXPECT_NE(first.message().find("/nonexistent/kcp: No such file"), std::string::npos) << first.message();
  EXPECT_EQ(units_->Start(spec, 1), first);
  const UnitStatus status = MustInspect("lk-a");
  EXPECT_EQ(status.state, State::kExited);
  EXPECT_EQ(status.id.pid, 0);
  EXPECT_EQ(status.failure, first);
  // Mended: the next invocation starts.
  ASSERT_TRUE(units_->Start(Spec("lk-a", {"--listen"}), 2).ok());
  AwaitPort("lk-a");
}

TEST_F(ProcessTest, AFileThatMayNotBeExecutedAndAMissingFolderAreNamed) {
  UnitSpec spec = Spec("lk-a", {});
  spec.argv[0] = JoinPath(dir_, "plain");
  ASSERT_TRUE(WriteFileAtomic(spec.argv[0], "text").ok());
  const Status forbidden = units_->Start(spec, 1);
  EXPECT_EQ(forbidden.code(), Code::kForbidden);
  EXPECT_NE(forbidden.message().find(spec.argv[0]), std::string::npos);
  UnitSpec folder = Spec("lk-b", {});
  folder.working_directory = JoinPath(dir_, "gone");
  const Status missing = units_->Start(folder, 1);
  EXPECT_EQ(missing.code(), Code::kNotFound);
  EXPECT_NE(missing.message().find(folder.working_directory), std::string::npos) << missing.message();
  EXPECT_TRUE(Starts().empty());
}

TEST_F(ProcessTest, ANameThatIsNoFileNameAndARelativeCommandAreRefused) {
  UnitSpec spec = Spec("../evil", {});
  EXPECT_EQ(units_->Start(spec, 1).code(), Code::kInvalid);
  spec = Spec("lk-a", {});
  spec.argv[0] = "bin/kcp";
  EXPECT_EQ(units_->Start(spec, 1).code(), Code::kInvalid);
  EXPECT_EQ(units_->Start(Spec("lk-a", {}), 0).code(), Code::kInvalid);
  EXPECT_TRUE(units_->List()->empty());
}

TEST_F(ProcessTest, AnUnknownUserIsNamed) {
  UnitSpec spec = Spec("lk-a", {});
  spec.user = "nobody-of-that-name";
  const Status status = units_->Start(spec, 1);
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_NE(status.message().find("nobody-of-that-name"), std::string::npos);
}

TEST_F(ProcessTest, RunsAsAnotherUserWithItsLimit) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can start a process as another user";
  UnitSpec spec = Spec("lk-a", {"--listen"});
  spec.argv = {TestServerPath(), "--listen"};
  spec.user = "nobody";
  spec.limits.files = 77;
  const Status started = units_->Start(spec, 1);
  ASSERT_TRUE(started.ok()) << started.ToString();
  const UnitStatus status = AwaitPort("lk-a");
  const std::string proc = "/proc/" + std::to_string(status.id.pid);
  EXPECT_NE(Read(proc + "/status").find("Uid:\t65534\t65534\t65534"), std::string::npos);
  EXPECT_NE(Read(proc + "/limits").find("Max open files            77"), std::string::npos);
}

TEST_F(ProcessTest, TerminateHitsExactlyTheNamedProcess) {
  ASSERT_TRUE(units_->Start(Spec("lk-a", {"--listen"}), 1).ok());
  const UnitIdentity first = AwaitPort("lk-a").id;
  UnitIdentity wrong = first;
  wrong.start_ticks += 1;
  wrong.invocation = 9;
  EXPECT_EQ(units_->Terminate(wrong, SIGTERM).code(), Code::kPrecondition);
  EXPECT_EQ(units_->Kill(wrong).code(), Code::kPrecondition);
  ASSERT_TRUE(units_->Terminate(first, SIGTERM).ok());
  const UnitStatus ended = AwaitExit("lk-a");
  EXPECT_EQ(ended.exit->code, 0);
  ASSERT_TRUE(units_->Terminate(first, SIGTERM).ok());  // gone already
  ASSERT_TRUE(units_->Start(Spec("lk-a", {"--listen"}), 2).ok());
  const UnitIdentity second = AwaitPort("lk-a").id;
  EXPECT_EQ(units_->Terminate(first, SIGKILL).code(), Code::kPrecondition);
  EXPECT_TRUE(IsAlive(second));
}

TEST_F(ProcessTest, KillEndsAProcessThatResistsAndAllOfItsDescendants) {
  ASSERT_TRUE(units_->Start(Spec("lk-a", {"--ignore-term", "--linger", "--listen"}), 1).ok());
  const UnitStatus status = AwaitPort("lk-a");
  ASSERT_TRUE(WaitUntil([&] { return shim::ChildrenOf(status.id.pid).size() == 1; }));
  const pid_t descendant = shim::ChildrenOf(status.id.pid)[0];
  ASSERT_TRUE(WaitUntil([&] { return getsid(descendant) == descendant; }));
  ASSERT_TRUE(units_->Terminate(status.id, SIGTERM).ok());
  ASSERT_TRUE(units_->Kill(status.id).ok());
  const UnitStatus ended = AwaitExit("lk-a");
  EXPECT_EQ(ended.exit->signal, SIGKILL);
  EXPECT_TRUE(ended.exit->killed_by_us);
  EXPECT_FALSE(ended.exit->oom);
  EXPECT_EQ(shim::StartTicks(descendant), 0u) << "a descendant outlived its unit";
}

TEST_F(ProcessTest, WhatAProcessLeavesBehindIsGoneBeforeItsExitIsRecorded) {
  ASSERT_TRUE(units_->Start(Spec("lk-a", {"--linger", "--listen"}), 1).ok());
  const UnitStatus status = AwaitPort("lk-a");
  const std::vector<pid_t> children = shim::ChildrenOf(status.id.pid);
  ASSERT_EQ(children.size(), 1u);
  ASSERT_TRUE(units_->Terminate(status.id, SIGTERM).ok());
  EXPECT_EQ(AwaitExit("lk-a").exit->code, 0);
  EXPECT_EQ(shim::StartTicks(children[0]), 0u);
}

TEST_F(ProcessTest, ResetForgetsWhatEndedAndRefusesWhatRuns) {
  const UnitSpec spec = Spec("lk-a", {"--listen", "--say", "kept"});
  ASSERT_TRUE(units_->Start(spec, 1).ok());
  const UnitStatus status = AwaitPort("lk-a");
  EXPECT_EQ(units_->Reset("lk-a").code(), Code::kPrecondition);
  ASSERT_TRUE(units_->Terminate(status.id, SIGTERM).ok());
  AwaitExit("lk-a");
  ASSERT_TRUE(units_->Reset("lk-a").ok());
  EXPECT_EQ(units_->Inspect("lk-a").code(), Code::kNotFound);
  EXPECT_EQ(units_->LastOutput(spec, 5)->size(), 1u);
  ASSERT_TRUE(units_->Reset("lk-a").ok());
}

TEST_F(ProcessTest, LogsAreRotatedAndOldOnesGo) {
  UnitSpec spec = Spec("lk-a", {"--print", "2000", "--exit", "0"});  // 200 kB
  spec.log_max_bytes = 20000;
  spec.log_keep = 3;
  ASSERT_TRUE(units_->Start(spec, 1).ok());
  AwaitExit("lk-a");
  const std::vector<std::string> files = *ListDir(spec.log_dir);
  EXPECT_EQ(files, (std::vector<std::string>{"current.log", "current.log.1", "current.log.2", "current.log.3"}));
  std::string all;
  for (const char* name : {"current.log.3", "current.log.2", "current.log.1", "current.log"}) {
    const std::string text = Read(JoinPath(spec.log_dir, name));
    EXPECT_LE(text.size(), 20000u);
    EXPECT_EQ(text.back(), '\n') << name;
    all += text;
  }
  // No line is missing between the first that is left and the last that was printed.
  const int first = std::stoi(all.substr(0, 8));
  EXPECT_EQ(all.size(), static_cast<size_t>(2000 - first) * 100);
  const std::vector<std::string> last = *units_->LastOutput(spec, 250);
  ASSERT_EQ(last.size(), 250u);
  EXPECT_EQ(last.back().substr(0, 8), "00001999");
  EXPECT_EQ(last.front().substr(0, 8), "00001750");
}

TEST_F(ProcessTest, ALogFolderThatIsGoneNeverHoldsTheProcessUp) {
  UnitSpec spec = Spec("lk-a", {"--listen", "--print", "30000", "--exit", "0"});  // 3 MB, past every pipe
  ASSERT_TRUE(WriteFileAtomic(JoinPath(dir_, "file"), "").ok());
  spec.log_dir = "";
  ASSERT_TRUE(units_->Start(spec, 1).ok());
  EXPECT_EQ(AwaitExit("lk-a").exit->code, 0);
}

TEST_F(ProcessTest, AProcessOutlivesItsShimAndANewOneTakesItsOutput) {
  const UnitSpec spec = Spec("lk-a", {"--listen", "--say", "before"});
  ASSERT_TRUE(units_->Start(spec, 1).ok());
  const UnitStatus before = AwaitPort("lk-a");
  const pid_t shim_pid = ReadUnit(Options().run_dir, "lk-a")->shim_pid;
  ASSERT_EQ(kill(shim_pid, SIGKILL), 0);
  ASSERT_TRUE(WaitUntil([&] {
    const Result<UnitView> view = ReadUnit(Options().run_dir, "lk-a");
    return view.ok() && view->shim_alive && view->shim_pid != shim_pid;
  }));
  const UnitStatus after = MustInspect("lk-a");
  EXPECT_EQ(after.id, before.id);
  EXPECT_EQ(after.state, State::kRunning);
  // Its standard error is the same FIFO, and somebody reads it.
  {
    std::ofstream out("/proc/" + std::to_string(after.id.pid) + "/fd/2");
    out << "after" << std::endl;
  }
  ASSERT_TRUE(WaitUntil([&] { return units_->LastOutput(spec, 5)->size() == 2; }));
  EXPECT_EQ(units_->LastOutput(spec, 5)->back(), "after");
  ASSERT_TRUE(units_->Terminate(after.id, SIGTERM).ok());
  const UnitStatus ended = AwaitExit("lk-a");
  EXPECT_FALSE(ended.exit) << "the code went to init; a made-up one is worse than none";
}

TEST_F(ProcessTest, WithNoShimAndNoDriverOutputWaitsInTheFifo) {
  const UnitSpec spec = Spec("lk-a", {"--listen"});
  ASSERT_TRUE(units_->Start(spec, 1).ok());
  const UnitStatus status = AwaitPort("lk-a");
  const pid_t shim_pid = ReadUnit(Options().run_dir, "lk-a")->shim_pid;
  units_.reset();
  ASSERT_EQ(kill(shim_pid, SIGKILL), 0);
  ASSERT_TRUE(WaitUntil([&] { return !ShimAlive(JoinPath(Options().run_dir, "lk-a")); }));
  {
    std::ofstream out("/proc/" + std::to_string(status.id.pid) + "/fd/1");
    out << std::string(50000, 'x') << std::endl;  // more than a pipe of four pages
  }
  EXPECT_TRUE(IsAlive(status.id));
  Reopen();
  ASSERT_TRUE(WaitUntil([&] { return Read(JoinPath(spec.log_dir, "current.log")).size() == 50001; }));
}

TEST_F(ProcessTest, OnlyOneShimOfAUnitLives) {
  ASSERT_TRUE(units_->Start(Spec("lk-a", {"--listen"}), 1).ok());
  AwaitPort("lk-a");
  const Result<int> second = SpawnShim(ShimPath(), JoinPath(Options().run_dir, "lk-a/1"));
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(*second, shim::kSpawnLocked);
  EXPECT_EQ(Starts().size(), 1u);
}

TEST_F(ProcessTest, TheSocketAndTheFoldersAreForTheirOwnerAlone) {
  ASSERT_TRUE(units_->Start(Spec("lk-a", {"--listen"}), 1).ok());
  struct stat st = {};
  for (const auto& [path, mode] : std::vector<std::pair<std::string, mode_t>>{{"", 0700},
                                                                              {"lk-a", 0700},
                                                                              {"lk-a/1", 0700},
                                                                              {"lk-a/1/sock", 0600},
                                                                              {"lk-a/1/spec", 0600},
                                                                              {"lk-a/1/out", 0600}}) {
    ASSERT_EQ(stat(JoinPath(Options().run_dir, path).c_str(), &st), 0) << path;
    EXPECT_EQ(st.st_mode & 07777, mode) << path;
  }
}

TEST_F(ProcessTest, NothingOfTheDriverIsInheritedAndItsSignalsPassTheShimBy) {
  const int leaky = open("/dev/null", O_RDONLY);  // no CLOEXEC: as a library of others may do
  ASSERT_TRUE(units_->Start(Spec("lk-a", {"--listen"}), 1).ok());
  const UnitStatus status = AwaitPort("lk-a");
  close(leaky);
  const pid_t shim_pid = ReadUnit(Options().run_dir, "lk-a")->shim_pid;
  const std::vector<std::string> fds = *ListDir("/proc/" + std::to_string(status.id.pid) + "/fd");
  EXPECT_EQ(fds.size(), 4u) << "0, 1, 2 and its listener";
  for (const int s : {SIGHUP, SIGTERM, SIGINT, SIGUSR1, SIGPIPE}) ASSERT_EQ(kill(shim_pid, s), 0);
  ASSERT_TRUE(AskShim(JoinPath(Options().run_dir, "lk-a/1"), "status").ok());
  EXPECT_NE(shim::SessionOf(shim_pid), getsid(0));
  EXPECT_TRUE(IsAlive(status.id));
}

TEST_F(ProcessTest, ARecordOfAnotherBootCountsAsExited) {
  const UnitSpec spec = Spec("lk-a", {"--listen"});
  ASSERT_TRUE(units_->Start(spec, 1).ok());
  const UnitStatus status = AwaitPort("lk-a");
  ASSERT_TRUE(units_->Kill(status.id).ok());
  AwaitExit("lk-a");
  ASSERT_TRUE(AwaitNoShim(JoinPath(Options().run_dir, "lk-a"), kShimPatience).ok());
  // As a reboot leaves it: a start record of that boot and no exit record.
  const std::string run = JoinPath(Options().run_dir, "lk-a/1/");
  ASSERT_TRUE(RemoveFile(run + "exit").ok());
  std::string started = Read(run + "started");
  started.replace(started.find(BootId()), BootId().size(), "11111111-2222-3333-4444-555555555555");
  ASSERT_TRUE(WriteFileAtomic(run + "started", started).ok());
  const UnitStatus after = MustInspect("lk-a");
  EXPECT_EQ(after.state, State::kExited);
  EXPECT_FALSE(after.exit);
  EXPECT_NE(after.id.boot_id, BootId());
  ASSERT_TRUE(units_->Terminate(after.id, SIGTERM).ok());
  ASSERT_TRUE(units_->Start(spec, 2).ok());
  AwaitPort("lk-a");
}

TEST_F(ProcessTest, ADamagedRecordIsAnErrorNotAnAbsence) {
  const UnitSpec spec = Spec("lk-a", {"--exit", "0"});
  ASSERT_TRUE(units_->Start(spec, 1).ok());
  AwaitExit("lk-a");
  const std::string path = JoinPath(Options().run_dir, "lk-a/1/started");
  ASSERT_TRUE(WriteFileAtomic(path, "pid=").ok());
  const Result<UnitStatus> status = units_->Inspect("lk-a");
  EXPECT_EQ(status.code(), Code::kCorrupt);
  EXPECT_NE(status.status().message().find(path), std::string::npos);
  EXPECT_EQ(units_->Start(spec, 2).code(), Code::kCorrupt);
  ASSERT_TRUE(RemoveFile(path).ok());
}

TEST_F(ProcessTest, TheListenerHearsOfStartPortAndExit) {
  ASSERT_TRUE(units_->Start(Spec("lk-a", {"--listen"}), 1).ok());
  const UnitStatus status = AwaitPort("lk-a");
  int before = 0;
  ASSERT_TRUE(WaitUntil([&] {
    const MutexLock lock(mutex_);
    before = events_;
    return events_ > 0;
  }));
  ASSERT_EQ(kill(status.id.pid, SIGKILL), 0);
  EXPECT_TRUE(WaitUntil([&] {
    const MutexLock lock(mutex_);
    return events_ > before;
  }));
  const UnitStatus ended = AwaitExit("lk-a");
  EXPECT_FALSE(ended.exit->killed_by_us);
}

TEST_F(ProcessTest, AShimIsSmall) {
  ASSERT_TRUE(units_->Start(Spec("lk-a", {"--listen", "--print", "3000"}), 1).ok());
  AwaitPort("lk-a");
  const pid_t shim_pid = ReadUnit(Options().run_dir, "lk-a")->shim_pid;
  const std::string rollup = Read("/proc/" + std::to_string(shim_pid) + "/smaps_rollup");
  const size_t at = rollup.find("Pss:");
  ASSERT_NE(at, std::string::npos);
  const int kib = std::stoi(rollup.substr(at + 4));
  std::printf("shim PSS: %d KiB\n", kib);
  EXPECT_LE(kib, 1024);  // the shim is built the same way in every preset
}

}  // namespace
}  // namespace lockkeeper
