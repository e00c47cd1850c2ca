// A slot that cannot run as its Server wants it: what the condition says, that nothing else changes, that it goes on.
#include <sys/stat.h>

#include "api/base/file.h"
#include "tests/e2e/fixture.h"

namespace lockkeeper {
namespace {

class BadSlotE2e : public E2e {
 protected:
  // Applies Front and Server, `edit` done to the Server's spec; `up` runs.
  void ApplyServer(const std::function<void(Json& spec)>& edit) {
    ASSERT_EQ(Apply("10-fronts.yaml"), Status::Ok());
    ASSERT_EQ(Apply("20-server-kcp.yaml", [&](Json& object) { edit(object["spec"]); }), Status::Ok());
  }
  Status PatchSpec(const Json& spec) {
    return lab_.api()
        .Patch(ResourceOf<Server>(), {"default", "kcp"}, PatchType::kMerge, Json::MakeObject({{"spec", spec}}), "")
        .status();
  }
  // The command with one argument in place of another.
  static void Replace(Json& spec, const std::string& old, const std::string& fresh) {
    Json command = Json::MakeArray();
    for (const Json& arg : spec.At({"template", "command"}).AsArray()) {
      command.Push(arg.AsString() == old ? Json(fresh) : arg);
    }
    spec["template"].Set("command", std::move(command));
  }
  Result<Server> AwaitReady() {
    return Await<Server>(
        "kcp", [](const Server& s) { return SaysReady(s) && !s.status.operation; }, 90);
  }
};

TEST_F(BadSlotE2e, AServerWhoseCommandDoesNotExistNamesItAndGoesOnOnceTheSpecIsMended) {
  ASSERT_EQ(lab_.Build(kOld), Status::Ok());
  ASSERT_TRUE(lab_.Up().ok());
  ApplyServer([](Json& spec) { Replace(spec, "bin/kcp", "bin/nothing"); });
  const Result<Server> stalled = Await<Server>("kcp", [](const Server& s) { return SaysStalled(s, "bin/nothing"); });
  ASSERT_TRUE(stalled.ok()) << stalled.status().ToString();
  EXPECT_EQ(FindProcess({"/bin/", "slots/blue"}), 0) << "nothing was started";
  Json spec = ToJson(*stalled).Get("spec");
  Replace(spec, "bin/nothing", "bin/kcp");
  ASSERT_EQ(PatchSpec(spec), Status::Ok());
  const Result<Server> ready = AwaitReady();
  EXPECT_TRUE(ready.ok()) << ready.status().ToString();
}

TEST_F(BadSlotE2e, AFixedPortThatIsTakenIsNamedAndTheInstallGoesOnOnceItIsFree) {
  ASSERT_EQ(lab_.Build(kOld), Status::Ok());
  ASSERT_TRUE(lab_.Up().ok());
  int port = 0;
  UniqueFd taken = Lab::TakePort(&port);
  ApplyServer([&](Json& spec) {
    spec["template"].Set(
        "port", Json::MakeObject(
                    {{"type", "Fixed"}, {"fixed", Json::MakeObject({{"blue", port}, {"green", Lab::FreePort()}})}}));
    Replace(spec, "--secure-port=0", "--secure-port={port}");
  });
  const std::string name = std::to_string(port);
  const Result<Server> stalled = Await<Server>("kcp", [&](const Server& s) { return SaysStalled(s, name); });
  ASSERT_TRUE(stalled.ok()) << stalled.status().ToString();
  EXPECT_EQ(FindOf(*stalled, "Stalled")->reason, "PortTaken");
  EXPECT_EQ(FindProcess({"/bin/kcp", "slots/blue"}), 0) << "nothing was started";
  taken.Reset();
  const Result<Server> ready = AwaitReady();
  ASSERT_TRUE(ready.ok()) << ready.status().ToString();
  EXPECT_EQ(ready->status.slots.at(0).port, port);
}

TEST_F(BadSlotE2e, AChecksumThatDoesNotFitInstallsNothingAndGoesOnOnceTheBuildIsWhole) {
  const std::string file = lab_.data() + "/builds/" + kOld + "/bin/kcp";
  ASSERT_EQ(lab_.Build(kOld), Status::Ok());
  const Result<std::string> whole = Sha256File(file);
  ASSERT_TRUE(whole.ok());
  ASSERT_EQ(WriteFileAtomic(file + ".sha256", std::string(64, '0') + "  kcp\n"), Status::Ok());
  ASSERT_TRUE(lab_.Up().ok());
  ApplyServer([](Json& spec) {
    spec.Set("source", Json::MakeObject({{"url", "file://{data}/builds/{version}/bin/kcp"}}));
  });
  const Result<Server> stalled = Await<Server>("kcp", [&](const Server& s) { return SaysStalled(s, *whole); });
  ASSERT_TRUE(stalled.ok()) << stalled.status().ToString();
  const std::string message = FindOf(*stalled, "Stalled")->message;
  EXPECT_NE(message.find(file + ".sha256"), std::string::npos) << message;
  EXPECT_EQ(FindProcess({"/bin/kcp", "slots/blue"}), 0);
  ASSERT_EQ(WriteFileAtomic(file + ".sha256", *whole + "  kcp\n"), Status::Ok());
  const Result<Server> ready = AwaitReady();
  EXPECT_TRUE(ready.ok()) << ready.status().ToString();
}

TEST_F(BadSlotE2e, AFirstInstallThatNeverBecomesReadySaysWhatItWaitsForAndGoesOnWithAnotherVersion) {
  ASSERT_EQ(lab_.Build(kOld, "never-ready"), Status::Ok());
  ASSERT_EQ(lab_.Build(kNew), Status::Ok());
  ASSERT_TRUE(lab_.Up().ok());
  ApplyServer([](Json& spec) { spec["timeouts"].Set("readySeconds", 2); });
  const Result<Server> stalled = Await<Server>("kcp", [](const Server& s) { return SaysStalled(s, "not ready"); });
  ASSERT_TRUE(stalled.ok()) << stalled.status().ToString();
  ASSERT_EQ(PatchSpec(Json::MakeObject({{"installVersion", kNew}})), Status::Ok());
  const Result<Server> ready = AwaitReady();
  ASSERT_TRUE(ready.ok()) << ready.status().ToString();
  EXPECT_EQ(ready->status.version, kNew);
}

TEST_F(BadSlotE2e, ABuildThatRunsAnotherProgramThanItsOwnIsUndoneAsTheWrongBuild) {
  Install();
  // A release whose program hands over to another one, as a wrapper that was left behind does.
  const std::string wrong = lab_.data() + "/builds/v0.34.0/bin/kcp";
  ASSERT_EQ(MakeDirs(DirName(wrong)), Status::Ok());
  const std::string other = lab_.data() + "/builds/" + kOld + "/bin/kcp";
  ASSERT_EQ(WriteFileAtomic(wrong, "#!/bin/sh\nexec " + other + " \"$@\"\n"), Status::Ok());
  ASSERT_EQ(::chmod(wrong.c_str(), 0755), 0);
  const pid_t serving = FindProcess({"/bin/kcp", "slots/blue"});
  ASSERT_EQ(MakeUpgrade("up", "v0.34.0"), Status::Ok());
  const Result<Upgrade> done = AwaitFinished("up");
  ASSERT_TRUE(done.ok()) << done.status().ToString();
  EXPECT_EQ(done->status.outcome, Outcome::kRolledBack) << done->status.error;
  const Result<std::string> runs = Sha256File(other);
  ASSERT_TRUE(runs.ok());
  EXPECT_NE(done->status.error.find(runs->substr(0, 12)), std::string::npos)
      << "names what runs instead: " << done->status.error;
  EXPECT_EQ(FindProcess({"/bin/kcp", "slots/blue"}), serving);
  EXPECT_EQ(FindProcess({"slots/green"}), 0);
  const Result<Server> server = Await<Server>("kcp", [](const Server& s) { return !s.status.rejected.empty(); });
  ASSERT_TRUE(server.ok()) << server.status().ToString();
  EXPECT_EQ(server->status.rejected[0].reason, "WrongBuild");
}

TEST_F(BadSlotE2e, AServerThatCrashesAfterReadyIsStartedAgainAndSaysHowOftenItEnded) {
  // Long enough for the install to end, also under sanitizers.
  ASSERT_EQ(lab_.Build(kOld, "crash-after-ready=2s"), Status::Ok());
  ASSERT_EQ(lab_.Build(kNew), Status::Ok());
  ASSERT_TRUE(lab_.Up().ok());
  ApplyServer([](Json&) {});
  const Result<Server> degraded = Await<Server>("kcp", [](const Server& s) {
    const Condition* c = FindOf(s, "Degraded");
    return c != nullptr && c->status == ConditionStatus::kTrue && c->reason == "CrashLooping";
  });
  ASSERT_TRUE(degraded.ok()) << degraded.status().ToString();
  // The way out is a build that works.
  ASSERT_EQ(MakeUpgrade("up", kNew), Status::Ok());
  const Result<Upgrade> done = AwaitFinished("up");
  ASSERT_TRUE(done.ok()) << done.status().ToString();
  EXPECT_EQ(done->status.outcome, Outcome::kSucceeded) << done->status.error;
  const Result<Server> ready = AwaitReady();
  ASSERT_TRUE(ready.ok()) << ready.status().ToString();
  EXPECT_EQ(ready->status.version, kNew);
}

}  // namespace
}  // namespace lockkeeper
