// The Slot reconciler on real shims, real processes and the real ledger.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>

#include "api/base/file.h"
#include "api/base/unique_fd.h"
#include "controller/typed.h"
#include "reconcilers/ledger/sqlite_ledger.h"
#include "reconcilers/slot/reconciler.h"
#include "reconcilers/slot/status.h"
#include "tests/integration/process/process_fixture.h"
#include "tests/support/wait.h"
#include "tests/unit/controller/memory_api.h"

namespace lockkeeper {
namespace {

const ServerKey kKey{"default", "kcp"};
const ObjectKey kObject{"default", "kcp"};

class SlotReconcilerTest : public ProcessTest {
 protected:
  void SetUp() override {
    ProcessTest::SetUp();
    SqliteLedgerOptions options;
    options.path = JoinPath(dir_, "ledger.db");
    ledger_ = std::move(*OpenLedger(options));
    NewAgent();
  }
  void TearDown() override {
    reconciler_.reset();
    ledger_.reset();
    ProcessTest::TearDown();
  }

  // Another process of the agent: nothing in memory, the same ledger and host.
  void NewAgent() {
    Reopen();
    reconciler_ = std::make_unique<slot::Reconciler>(
        slot::Dependencies{api_, SystemClock(), *ledger_, *units_, "host-a",
                           [this](const ServerRecord&, const std::string&) -> Result<bool> {
                             ++asked_;
                             return Status(Code::kUnavailable, "the test server has no /readyz");
                           }});
  }

  ServerRecord Edit(const std::function<void(SlotIntent&)>& edit) {
    return *ledger_->Update(kKey, [&](ServerRecord& r) {
      edit(r.slots["blue"].intent);
      return Status::Ok();
    });
  }
  // Wants this command as slot blue.
  void Want(std::vector<std::string> args, int64_t invocation = 1) {
    Edit([&](SlotIntent& i) {
      i.incarnation = 1;
      i.invocation = invocation;
      i.unit = Spec("lk-default-kcp-blue-1", std::move(args));
      i.running = true;
      i.stop_seconds = 20;
    });
  }
  CompanionIntent Kine(std::vector<std::string> args, int port = 0) {
    CompanionIntent c;
    c.name = "kine";
    c.port = port;
    c.unit = Spec("lk-default-kcp-blue-1-kine", std::move(args));
    c.unit.argv.erase(c.unit.argv.begin() + 1, c.unit.argv.begin() + 3);  // starts of the server alone are counted
    return c;
  }
  SlotActual Actual() { return ledger_->Get(kKey)->slots["blue"].actual; }

  // Reconciles until `done`, woken by events and by what the reconciler asks for.
  bool Drive(const std::function<bool(const SlotActual&)>& done) {
    return WaitUntil([&] {
      const Result<Duration> after = reconciler_->Reconcile(kObject);
      EXPECT_TRUE(after.ok()) << after.status().ToString();
      return done(Actual());
    });
  }
  bool DriveToPort() {
    return Drive([](const SlotActual& a) { return a.port != 0; });
  }

  MemoryApi api_;
  std::unique_ptr<Ledger> ledger_;
  std::unique_ptr<slot::Reconciler> reconciler_;
  int asked_ = 0;
};

TEST_F(SlotReconcilerTest, AWantedSlotRunsAndTheLedgerKnowsIt) {
  Want({"--listen"});
  ASSERT_TRUE(DriveToPort());
  const SlotActual a = Actual();
  EXPECT_EQ(a.id, MustInspect("lk-default-kcp-blue-1").id);
  EXPECT_EQ(a.exec_sha256, *Sha256File(TestServerPath()));
  EXPECT_EQ(a.executable, TestServerPath());
  EXPECT_EQ(a.boots, 1);
  EXPECT_GE(a.listening_at, a.started_at);
  const int64_t revision = ledger_->Info().revision;
  NewAgent();
  ASSERT_TRUE(reconciler_->Reconcile(kObject).ok());
  EXPECT_EQ(ledger_->Info().revision, revision) << "a converged slot writes nothing";
  EXPECT_EQ(Starts().size(), 1u);
  EXPECT_EQ(reconciler_->OwnersOf("lk-default-kcp-blue-1"), std::vector<ServerKey>{kKey});
  EXPECT_TRUE(reconciler_->OwnersOf("lk-other").empty());
}

TEST_F(SlotReconcilerTest, ADeadServerIsStartedAgainByOrderOnly) {
  Want({"--listen"});
  ASSERT_TRUE(DriveToPort());
  const int port = Actual().port;
  kill(Actual().id.pid, SIGKILL);
  ASSERT_TRUE(Drive([](const SlotActual& a) { return a.exited_at != Time{}; }));
  EXPECT_EQ(Actual().stop_reason, StopReason::kSignal);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(reconciler_->Reconcile(kObject).ok());
  EXPECT_EQ(Starts().size(), 1u);
  Edit([](SlotIntent& i) { i.invocation = 2; });
  ASSERT_TRUE(DriveToPort());
  EXPECT_NE(Actual().port, port) << "the new port is recorded";
  EXPECT_EQ(Actual().boots, 2);
  EXPECT_EQ(Starts().size(), 2u);
}

TEST_F(SlotReconcilerTest, ACommandThatDoesNotExistIsNamedInTheLedger) {
  Want({});
  Edit([](SlotIntent& i) { i.unit.argv[0] = "/nonexistent/kcp"; });
  ASSERT_TRUE(Drive([](const SlotActual& a) { return !a.error.empty(); }));
  EXPECT_NE(Actual().error.find("/nonexistent/kcp"), std::string::npos) << Actual().error;
  EXPECT_EQ(Actual().error_code, "NotFound");
  // Goes on once mended and ordered.
  Want({"--listen"}, 2);
  ASSERT_TRUE(DriveToPort());
  EXPECT_TRUE(Actual().error.empty());
}

TEST_F(SlotReconcilerTest, CompanionsStartFirstAndTheServerGetsTheirPort) {
  Want({"--listen", "--say", "store={companion.kine.port}"});
  Edit([&](SlotIntent& i) { i.companions = {Kine({"--listen"})}; });
  ASSERT_TRUE(DriveToPort());
  const SlotActual a = Actual();
  ASSERT_EQ(a.companions.size(), 1u);
  EXPECT_NE(a.companions[0].port, 0);
  const SlotIntent intent = ledger_->Get(kKey)->slots["blue"].intent;
  ASSERT_TRUE(WaitUntil([&] { return units_->LastOutput(intent.unit, 1)->size() == 1; }));
  EXPECT_EQ(units_->LastOutput(intent.unit, 1)->front(), "store=" + std::to_string(a.companions[0].port));
  // One that dies under a running server comes back, and the server is left alone.
  kill(a.companions[0].id.pid, SIGKILL);
  ASSERT_TRUE(Drive([&](const SlotActual& now) {
    return now.companions[0].id.pid != a.companions[0].id.pid && now.companions[0].port != 0;
  }));
  EXPECT_EQ(Actual().id, a.id);
  EXPECT_EQ(Starts().size(), 1u);
}

TEST_F(SlotReconcilerTest, APortOfACompanionThatIsTakenEndsTheStartWithItsName) {
  const UniqueFd taken(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(bind(taken.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(taken.get(), 1), 0);
  ASSERT_EQ(getsockname(taken.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  const int port = ntohs(address.sin_port);
  Want({"--listen"});
  Edit([&](SlotIntent& i) { i.companions = {Kine({"--listen-port", std::to_string(port)}, port)}; });
  ASSERT_TRUE(Drive([](const SlotActual& a) { return !a.error.empty(); }));
  EXPECT_EQ(Actual().error, "companion kine of slot blue does not stay up: it ended with exit code 98");
  EXPECT_TRUE(Starts().empty());
}

TEST_F(SlotReconcilerTest, AStopIsSignalledOnceEvenWhenTheAgentIsReplaced) {
  Want({"--listen", "--kcp-like"});
  ASSERT_TRUE(DriveToPort());
  const pid_t pid = Actual().id.pid;
  Edit([](SlotIntent& i) { i.running = false; });
  ASSERT_TRUE(Drive([](const SlotActual& a) { return a.sigterm_at != Time{}; }));
  ASSERT_TRUE(WaitUntil([&] { return MustInspect("lk-default-kcp-blue-1").listen_ports.empty(); }));
  NewAgent();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(reconciler_->Reconcile(kObject).ok());
  EXPECT_GT(asked_, 0) << "whether it was sent is asked, not guessed";
  kill(pid, SIGUSR1);
  ASSERT_TRUE(Drive([](const SlotActual& a) { return a.exited_at != Time{}; }));
  EXPECT_EQ(Actual().exit->code, 0) << "a second SIGTERM makes it exit with 1";
  EXPECT_EQ(Actual().stop_reason, StopReason::kRequested);
}

TEST_F(SlotReconcilerTest, AnAgentThatDiedBetweenNoteAndSignalSendsIt) {
  Want({"--listen"});
  ASSERT_TRUE(DriveToPort());
  ASSERT_TRUE(ledger_
                  ->Update(kKey,
                           [](ServerRecord& r) {
                             SlotEntry& e = r.slots["blue"];
                             e.intent.running = false;
                             e.actual.stop_asked_at = e.actual.sigterm_at = SystemClock().Read().wall - Seconds(15);
                             e.actual.kill_at = Deadline::After(SystemClock().Read(), Seconds(5));
                             return Status::Ok();
                           })
                  .ok());
  NewAgent();
  ASSERT_TRUE(Drive([](const SlotActual& a) { return a.exited_at != Time{}; }));
  EXPECT_EQ(Actual().exit->code, 0);
  EXPECT_FALSE(Actual().exit->killed_by_us);
}

TEST_F(SlotReconcilerTest, AServerThatResistsIsKilledAtItsTime) {
  Want({"--listen", "--ignore-term", "--linger"});
  ASSERT_TRUE(DriveToPort());
  Edit([](SlotIntent& i) {
    i.running = false;
    i.stop_seconds = 1;
  });
  ASSERT_TRUE(Drive([](const SlotActual& a) { return a.exited_at != Time{}; }));
  EXPECT_EQ(Actual().stop_reason, StopReason::kTimeout);
  EXPECT_TRUE(Actual().exit->killed_by_us);
  EXPECT_GE(Actual().killed_at - Actual().sigterm_at, Seconds(1));
}

TEST_F(SlotReconcilerTest, AForgottenSlotLeavesNothingButItsLogs) {
  Want({"--listen", "--say", "bye"});
  Edit([&](SlotIntent& i) { i.companions = {Kine({"--listen"})}; });
  ASSERT_TRUE(DriveToPort());
  Edit([](SlotIntent& i) {
    i.running = false;
    i.forget = true;
  });
  ASSERT_TRUE(Drive([&](const SlotActual&) { return units_->List()->empty(); }));
  EXPECT_EQ(Actual().stop_reason, StopReason::kRequested);
  EXPECT_EQ(units_->LastOutput(Spec("lk-default-kcp-blue-1", {}), 1)->size(), 1u);
}

TEST_F(SlotReconcilerTest, SlotObjectsMirrorTheLedgerAndCommandNothing) {
  Want({"--listen", "--say", "hello"});
  Edit([](SlotIntent& i) { i.unit.env = {{"TOKEN", "secret"}}; });
  ASSERT_TRUE(DriveToPort());
  ASSERT_TRUE(WaitUntil([&] { return units_->LastOutput(Spec("lk-default-kcp-blue-1", {}), 1)->size() == 1; }));
  ASSERT_TRUE(reconciler_->Mirror(kObject).ok());
  const ObjectKey key{"default", "kcp-blue"};
  Result<Slot> object = Get<Slot>(api_, key);
  ASSERT_TRUE(object.ok()) << object.status().ToString();
  EXPECT_EQ(object->status.state, SlotState::kListening);
  EXPECT_EQ(object->status.pid, Actual().id.pid);
  EXPECT_EQ(object->status.last_output, std::vector<std::string>{"hello"});
  EXPECT_TRUE(object->spec.running);
  const size_t writes = api_.Calls().size();
  ASSERT_TRUE(reconciler_->Mirror(kObject).ok());
  EXPECT_EQ(api_.Calls().size(), writes + 2) << "a look at it and the list: nothing is written that stands";
  // A user edits it, then deletes it: written again, and the process never noticed.
  object->spec.running = false;
  ASSERT_TRUE(Update<Slot>(api_, *object).ok());
  ASSERT_TRUE(reconciler_->Mirror(kObject).ok());
  EXPECT_TRUE(Get<Slot>(api_, key)->spec.running);
  ASSERT_TRUE(Delete<Slot>(api_, key).ok());
  ASSERT_TRUE(reconciler_->Mirror(kObject).ok());
  EXPECT_TRUE(Get<Slot>(api_, key).ok());
  EXPECT_EQ(Starts().size(), 1u);
  // A slot that the ledger forgot has no object.
  ASSERT_TRUE(units_->Kill(Actual().id).ok());
  ASSERT_TRUE(Drive([](const SlotActual& a) { return a.exited_at != Time{}; }));
  ASSERT_TRUE(ledger_
                  ->Update(kKey,
                           [](ServerRecord& r) {
                             r.slots.clear();
                             return Status::Ok();
                           })
                  .ok());
  ASSERT_TRUE(reconciler_->Mirror(kObject).ok());
  EXPECT_EQ(Get<Slot>(api_, key).code(), Code::kNotFound);
}

TEST_F(SlotReconcilerTest, AnApiThatIsAwayHoldsUpNothing) {
  api_.SetBefore([](const std::string&, const Resource&, const ObjectKey&) {
    return Status(Code::kUnavailable, "connection refused");
  });
  Want({"--listen"});
  ASSERT_TRUE(DriveToPort());
  EXPECT_EQ(reconciler_->Mirror(kObject).code(), Code::kUnavailable);
}

}  // namespace
}  // namespace lockkeeper
