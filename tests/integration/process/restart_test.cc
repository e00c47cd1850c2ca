// Units that their shim starts again, and the listener it binds for them.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/base/file.h"
#include "api/base/unique_fd.h"
#include "reconcilers/process/shim_client.h"
#include "reconcilers/process/shim_protocol.h"
#include "reconcilers/process/unit_folder.h"
#include "tests/integration/process/process_fixture.h"
#include "tests/support/wait.h"

namespace lockkeeper {
namespace {

using State = UnitStatus::State;

struct Bound {
  UniqueFd fd;
  int port = 0;
};

Bound BindFree() {
  Bound out;
  out.fd.Reset(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  EXPECT_EQ(bind(out.fd.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(listen(out.fd.get(), 4), 0);
  EXPECT_EQ(getsockname(out.fd.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  out.port = ntohs(address.sin_port);
  return out;
}

bool CanConnect(int port) {
  const UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
}

TEST(RestartBackoffTest, ACrashLoopIsTriedOnceASecond) {
  shim::RestartBackoff backoff;
  for (const int wait : {100, 200, 400, 800, 1000, 1000, 1000}) EXPECT_EQ(backoff.AfterLife(0), wait);
}

TEST(RestartBackoffTest, OneThatServedAWhileIsNoCrashLoopHoweverOftenItIsKilled) {
  shim::RestartBackoff backoff;
  for (int i = 0; i < 20; ++i) EXPECT_EQ(backoff.AfterLife(5000), 100);
  EXPECT_EQ(backoff.AfterLife(shim::RestartBackoff::kSteadyLife - 1), 200);
  EXPECT_EQ(backoff.AfterLife(shim::RestartBackoff::kSteadyLife), 100);
}

class RestartTest : public ProcessTest {
 protected:
  UnitSpec Front(const std::string& address) const {
    UnitSpec spec = Spec("lk-front", {"--inherited"});
    spec.restart = true;
    spec.listen_address = address;
    return spec;
  }
};

TEST_F(RestartTest, TheListenerIsBoundOnceAndOutlivesEveryProcess) {
  const Status started = units_->Start(Front("127.0.0.1:0"), 1);
  ASSERT_TRUE(started.ok()) << started.ToString();
  const UnitStatus first = AwaitPort("lk-front");
  const int port = first.listen_ports[0];
  // The listener is the shim's: its port says nothing of how far the process is.
  ASSERT_TRUE(WaitUntil([&] { return Starts().size() == 1; })) << "the first process did not begin";
  ASSERT_EQ(kill(first.id.pid, SIGKILL), 0);
  // Between two processes a client waits in the listener's queue: nothing is refused.
  EXPECT_TRUE(CanConnect(port));
  const UnitStatus second = Await("lk-front", [&](const UnitStatus& s) {
    return s.id.pid != first.id.pid && s.restarts == 1 && !s.listen_ports.empty();
  });
  EXPECT_EQ(second.listen_ports[0], port);
  EXPECT_EQ(second.id.invocation, 1);
  ASSERT_TRUE(WaitUntil([&] { return Starts().size() == 2; })) << "the second process did not begin";
  ASSERT_TRUE(units_->Terminate(second.id, SIGTERM).ok());
  const UnitStatus ended = AwaitExit("lk-front");
  EXPECT_EQ(ended.exit->code, 0);
  EXPECT_EQ(Starts().size(), 2u);
  ASSERT_TRUE(AwaitNoShim(JoinPath(Options().run_dir, "lk-front"), kShimPatience).ok());
  EXPECT_FALSE(CanConnect(port));
}

TEST_F(RestartTest, AnAddressInUseIsNamedAndStartsNothing) {
  const Bound taken = BindFree();
  const std::string address = "127.0.0.1:" + std::to_string(taken.port);
  const Status refused = units_->Start(Front(address), 1);
  EXPECT_EQ(refused.code(), Code::kBusy);
  EXPECT_NE(refused.message().find(address), std::string::npos) << refused.message();
  EXPECT_EQ(MustInspect("lk-front").failure, refused);
  EXPECT_TRUE(Starts().empty());
}

TEST_F(RestartTest, AnAddressThatIsNoneIsRefused) {
  EXPECT_EQ(units_->Start(Front("nonsense"), 1).code(), Code::kInvalid);
  EXPECT_EQ(units_->Start(Front("no.such.host.invalid:1"), 1).code(), Code::kInvalid);
}

TEST_F(RestartTest, ACrashLoopBacksOffAndCanBeStopped) {
  UnitSpec spec = Spec("lk-loop", {"--exit", "3"});
  spec.restart = true;
  ASSERT_TRUE(units_->Start(spec, 1).ok());
  Await("lk-loop", [](const UnitStatus& s) { return s.restarts >= 2; });
  EXPECT_LE(Starts().size(), 5u);
  const UnitStatus status = MustInspect("lk-loop");
  EXPECT_EQ(status.state, State::kRunning);
  ASSERT_TRUE(units_->Terminate(status.id, SIGTERM).ok());
  const UnitStatus ended = AwaitExit("lk-loop");
  ASSERT_TRUE(ended.exit);
}

TEST_F(RestartTest, KillEndsItForGood) {
  ASSERT_TRUE(units_->Start(Front("127.0.0.1:0"), 1).ok());
  const UnitStatus status = AwaitPort("lk-front");
  ASSERT_TRUE(WaitUntil([&] { return Starts().size() == 1; }));  // its listener was there before it ran
  ASSERT_TRUE(units_->Kill(status.id).ok());
  EXPECT_TRUE(AwaitExit("lk-front").exit->killed_by_us);
  EXPECT_EQ(Starts().size(), 1u);
}

TEST_F(RestartTest, AShimThatTookOverStillHasTheListenerAndRestarts) {
  ASSERT_TRUE(units_->Start(Front("127.0.0.1:0"), 1).ok());
  const UnitStatus first = AwaitPort("lk-front");
  const pid_t shim_pid = ReadUnit(Options().run_dir, "lk-front")->shim_pid;
  ASSERT_EQ(kill(shim_pid, SIGKILL), 0);
  ASSERT_TRUE(WaitUntil([&] {
    const Result<UnitView> view = ReadUnit(Options().run_dir, "lk-front");
    return view.ok() && view->shim_alive && view->shim_pid != shim_pid;
  }));
  ASSERT_TRUE(WaitUntil([&] { return AskShim(JoinPath(Options().run_dir, "lk-front/1"), "status").ok(); }));
  ASSERT_EQ(kill(first.id.pid, SIGKILL), 0);
  const UnitStatus second =
      Await("lk-front", [&](const UnitStatus& s) { return s.id.pid != first.id.pid && !s.listen_ports.empty(); });
  if (geteuid() == 0) {  // taking a descriptor of another process needs the right to trace it
    EXPECT_EQ(second.listen_ports, first.listen_ports);
  }
}

}  // namespace
}  // namespace lockkeeper
