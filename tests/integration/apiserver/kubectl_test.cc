// The real kubectl against the server, over HTTPS with the kubeconfig that the server wrote.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include "api/base/log.h"
#include "api/server/apiserver.h"
#include "tests/integration/apiserver/program.h"
#include "tests/support/peers/programs.h"
#include "tests/unit/apiserver/temp_dir.h"

namespace lockkeeper::apiserver {
namespace {

constexpr const char* kUpgrade = R"(apiVersion: lockkeeper.dev/v1alpha1
kind: Upgrade
metadata: {name: u1, labels: {team: core}}
spec: {serverRef: {name: kcp}, version: v0.33.1}
)";

using peers::Ran;

// The one on PATH, else the one of the peers.
const Result<std::string>& KubectlPath() {
  static const auto* path = new Result<std::string>(OnPath("kubectl") ? Result<std::string>(std::string("kubectl"))
                                                                      : peers::FindProgram("kubectl"));
  return *path;
}

class Kubectl : public testing::Test {
 protected:
  void SetUp() override {
    if (!KubectlPath().ok()) GTEST_SKIP() << KubectlPath().status().message();
    ConfigureLog(LogLevel::kWarn, LogFormat::kText);
    ApiServerConfig config;
    config.data_dir = dir_ / "data";
    server_ = std::make_unique<ApiServer>(std::move(config));
    const Status started = server_->Start();
    ASSERT_TRUE(started.ok()) << started.ToString();
    Write("upgrade.yaml", kUpgrade);
  }

  std::string Write(const std::string& name, const std::string& text) {
    EXPECT_TRUE(WriteFileAtomic(dir_ / name, text).ok());
    return dir_ / name;
  }

  std::vector<std::string> Environment() const {
    // A home of its own: kubectl caches discovery there.
    return {"KUBECONFIG=" + server_->kubeconfig_path(), "HOME=" + dir_.path(), "KUBE_EDITOR=" + (dir_ / "edit.sh")};
  }

  Ran Run(std::vector<std::string> args) {
    args.insert(args.begin(), *KubectlPath());
    Program program(args, Environment());
    Ran ran;
    ran.exit = program.Wait();
    ran.out = program.output();
    ran.err = program.errors();
    return ran;
  }

  Ran Apply() { return Run({"apply", "-f", dir_ / "upgrade.yaml"}); }

  TempDir dir_;
  std::unique_ptr<ApiServer> server_;
};

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST_F(Kubectl, AppliesTwiceAndTheSecondTimeSaysUnchanged) {
  EXPECT_EQ(Apply().out, "upgrade.lockkeeper.dev/u1 created\n");
  EXPECT_EQ(Apply().out, "upgrade.lockkeeper.dev/u1 unchanged\n");
  Write("upgrade.yaml", std::string(kUpgrade) + "  # a comment\n");
  EXPECT_EQ(Apply().out, "upgrade.lockkeeper.dev/u1 unchanged\n");
}

TEST_F(Kubectl, AnotherSpecUnderTheNameIsRefusedInOneSentence) {
  Apply();
  std::string other = kUpgrade;
  other.replace(other.find("v0.33.1"), 7, "v0.34.0");
  const std::string file = Write("other.yaml", other);
  for (const char* verb : {"apply", "diff"}) {
    const Ran ran = Run({verb, "-f", file});
    EXPECT_NE(ran.exit, 0);
    EXPECT_HAS(ran.All(), "The Upgrade \"u1\" is invalid: ");
    EXPECT_HAS(ran.All(), "version is immutable");
  }
  EXPECT_EQ(Run({"apply", "--dry-run=server", "-f", dir_ / "upgrade.yaml"}).out,
            "upgrade.lockkeeper.dev/u1 unchanged (server dry run)\n");
}

TEST_F(Kubectl, AnUnknownFieldIsRefusedWarnedOfOrIgnored) {
  std::string typo = kUpgrade;
  typo.replace(typo.find("version: v0"), 8, "versoin: x, version:");
  const std::string file = Write("typo.yaml", typo);
  const Ran strict = Run({"apply", "-f", file});
  EXPECT_NE(strict.exit, 0);
  EXPECT_HAS(strict.All(), "unknown field \"spec.versoin\"");
  const Ran warned = Run({"apply", "--validate=warn", "-f", file});
  EXPECT_EQ(warned.exit, 0) << warned.All();
  EXPECT_HAS(warned.err, "Warning: unknown field \"spec.versoin\"");
  EXPECT_EQ(Run({"apply", "--validate=false", "-f", file}).err, "");
}

TEST_F(Kubectl, GetsInEveryOutput) {
  Apply();
  const Ran table = Run({"get", "upg"});
  EXPECT_HAS(table.out, "NAME   SERVER");
  EXPECT_HAS(table.out, "u1     kcp");
  EXPECT_HAS(Run({"get", "upg", "-o", "wide"}).out, "REASON");
  EXPECT_HAS(Run({"get", "upgrade/u1", "-o", "yaml"}).out, "observedGeneration: -1");
  EXPECT_HAS(Run({"get", "upgrades.lockkeeper.dev", "u1", "-o", "json"}).out,
             "\"lockkeeper.dev/requested-by\": \"admin\"");
  EXPECT_EQ(Run({"get", "upg", "-o", "name"}).out, "upgrade.lockkeeper.dev/u1\n");
  EXPECT_EQ(Run({"get", "upg", "u1", "-o", "jsonpath={.spec.version}"}).out, "v0.33.1");
  EXPECT_HAS(Run({"get", "upg", "-A"}).out, "default     u1");
  EXPECT_HAS(Run({"get", "upg", "--show-labels"}).out, "team=core");
  EXPECT_HAS(Run({"get", "upg", "-l", "team in (core)"}).out, "u1");
  EXPECT_HAS(Run({"get", "upg", "-l", "team!=core"}).err, "No resources found");
  EXPECT_HAS(Run({"get", "upg", "--field-selector", "metadata.name=u1"}).out, "u1");
  EXPECT_HAS(Run({"get", "upg", "--field-selector", "spec.version=x"}).err, "field label not supported: spec.version");
  EXPECT_HAS(Run({"get", "upg", "--sort-by", ".metadata.name"}).out, "u1");
  EXPECT_HAS(Run({"get", "lockkeeper"}).out, "u1");
  EXPECT_HAS(Run({"get", "srv,upg,roll,slot,front"}).out, "u1");
  EXPECT_HAS(Run({"get", "upg", "u1", "--subresource=status"}).out, "u1");
  EXPECT_HAS(Run({"get", "upg", "nope"}).err,
             "Error from server (NotFound): upgrades.lockkeeper.dev \"nope\" not found");
}

TEST_F(Kubectl, PagesALongList) {
  for (int i = 0; i < 5; ++i) ASSERT_EQ(Run({"create", "cm", "m" + std::to_string(i)}).exit, 0);
  const Ran ran = Run({"get", "cm", "--chunk-size=2", "-o", "name"});
  EXPECT_EQ(ran.out, "configmap/m0\nconfigmap/m1\nconfigmap/m2\nconfigmap/m3\nconfigmap/m4\n") << ran.err;
}

TEST_F(Kubectl, PatchesLabelsAnnotatesAndEdits) {
  Apply();
  EXPECT_EQ(Run({"patch", "upg", "u1", "--type=merge", "-p", R"({"spec":{"paused":true}})"}).out,
            "upgrade.lockkeeper.dev/u1 patched\n");
  EXPECT_EQ(
      Run({"patch", "upg", "u1", "--type=json", "-p", R"([{"op":"replace","path":"/spec/paused","value":false}])"})
          .exit,
      0);
  EXPECT_HAS(Run({"patch", "upg", "u1", "-p", "{}"}).err,
             "application/strategic-merge-patch+json is not supported by "
             "lockkeeper.dev/v1alpha1, Kind=Upgrade");
  EXPECT_EQ(Run({"label", "upg", "u1", "a=b"}).exit, 0);
  EXPECT_EQ(Run({"annotate", "upg", "u1", "c=d"}).exit, 0);
  Write("edit.sh", "#!/bin/sh\nsed -i 's/paused: false/paused: true/' \"$1\"\n");
  ASSERT_EQ(::chmod((dir_ / "edit.sh").c_str(), 0700), 0);
  EXPECT_EQ(Run({"edit", "upg", "u1"}).out, "upgrade.lockkeeper.dev/u1 edited\n");
  EXPECT_EQ(Run({"get", "upg", "u1", "-o", "jsonpath={.spec.paused}{.metadata.labels.a}{.metadata.generation}"}).out,
            "trueb4");
  EXPECT_HAS(Run({"apply", "--server-side", "-f", dir_ / "upgrade.yaml"}).err,
             "Server-side apply not available on the server");
}

TEST_F(Kubectl, ReplacesCreatesAndDeletes) {
  const std::string file = dir_ / "upgrade.yaml";
  EXPECT_HAS(Run({"replace", "-f", file}).err, "NotFound");
  EXPECT_EQ(Run({"create", "-f", file}).out, "upgrade.lockkeeper.dev/u1 created\n");
  EXPECT_HAS(Run({"create", "-f", file}).err, "AlreadyExists");
  EXPECT_EQ(Run({"replace", "-f", file}).out, "upgrade.lockkeeper.dev/u1 replaced\n");
  EXPECT_EQ(Run({"delete", "upg", "u1", "--timeout=20s"}).out, "upgrade.lockkeeper.dev \"u1\" deleted\n");
  EXPECT_HAS(Run({"delete", "upg", "u1"}).err, "NotFound");
  EXPECT_EQ(Run({"apply", "-f", file}).exit, 0);
  EXPECT_EQ(Run({"delete", "upg", "--all"}).out, "upgrade.lockkeeper.dev \"u1\" deleted\n");
}

TEST_F(Kubectl, WatchesFromTheListOn) {
  Apply();
  Program watch({*KubectlPath(), "get", "upg", "-w"}, Environment());
  ASSERT_TRUE(watch.WaitForOutput("u1 ")) << watch.errors();
  ASSERT_EQ(
      Run({"patch", "upg", "u1", "--subresource=status", "--type=merge", "-p", R"({"status":{"phase":"Downloading"}})"})
          .exit,
      0);
  EXPECT_TRUE(watch.WaitForOutput("Downloading")) << watch.output() << watch.errors();
  watch.Signal(SIGTERM);
}

TEST_F(Kubectl, WaitsForAConditionAndADeletion) {
  Apply();
  Program wait({*KubectlPath(), "wait", "--for=condition=Finished", "upg/u1", "--timeout=30s"}, Environment());
  const Ran patched = Run(
      {"patch", "upg", "u1", "--subresource=status", "--type=merge", "-p",
       R"({"status":{"observedGeneration":1,"conditions":[{"type":"Finished","status":"True","observedGeneration":1,)"
       R"("lastTransitionTime":"2026-11-30T12:00:00Z","reason":"Succeeded","message":"done"}]}})"});
  ASSERT_EQ(patched.exit, 0) << patched.All();
  EXPECT_EQ(wait.Wait(), 0) << wait.errors();
  EXPECT_EQ(wait.output(), "upgrade.lockkeeper.dev/u1 condition met\n");
  Program gone({*KubectlPath(), "wait", "--for=delete", "upg/u1", "--timeout=30s"}, Environment());
  ASSERT_EQ(Run({"delete", "upg", "u1"}).exit, 0);
  EXPECT_EQ(gone.Wait(), 0) << gone.errors();
  EXPECT_HAS(Run({"wait", "--for=condition=Finished", "upg/none", "--timeout=5s"}).err, "NotFound");
}

TEST_F(Kubectl, DescribesWithEvents) {
  Apply();
  const std::string uid = Run({"get", "upg", "u1", "-o", "jsonpath={.metadata.uid}"}).out;
  const std::string file = Write("event.yaml", R"(apiVersion: v1
kind: Event
metadata: {name: u1.1, namespace: default}
involvedObject: {apiVersion: lockkeeper.dev/v1alpha1, kind: Upgrade, name: u1, namespace: default, uid: )" +
                                                   uid + R"(}
type: Normal
reason: Flipped
message: the front points at green
source: {component: manager}
count: 1
firstTimestamp: "2026-11-30T12:00:00Z"
lastTimestamp: "2026-11-30T12:00:00Z"
)");
  ASSERT_EQ(Run({"create", "-f", file}).exit, 0);
  EXPECT_HAS(Run({"describe", "upg", "u1"}).out, "the front points at green");
  EXPECT_HAS(Run({"events", "--for", "upgrade/u1"}).out, "Flipped");
  EXPECT_HAS(Run({"get", "events"}).out, "upgrade/u1");
  EXPECT_HAS(Run({"get", "events.events.k8s.io"}).out, "the front points at green");
}

TEST_F(Kubectl, ExplainsAndListsWhatIsServed) {
  const Ran explained = Run({"explain", "upgrade.spec"});
  EXPECT_HAS(explained.out, "FIELDS:");
  EXPECT_HAS(explained.out, "serverRef");
  EXPECT_HAS(explained.out, "-required-");
  EXPECT_HAS(Run({"explain", "upgrade.spec.version"}).out, "DESCRIPTION:");
  EXPECT_HAS(Run({"explain", "configmap"}).out, "KIND:       ConfigMap");
  const Ran resources = Run({"api-resources"});
  EXPECT_EQ(resources.exit, 0) << resources.err;
  EXPECT_HAS(resources.out, "upgrades");
  EXPECT_HAS(Run({"api-versions"}).out, "lockkeeper.dev/v1alpha1");
  EXPECT_HAS(Run({"version"}).out, "Server Version: v1.32.0-lockkeeper");
  EXPECT_EQ(Run({"get", "--raw", "/readyz"}).out, "ok");
  EXPECT_HAS(Run({"get", "--raw", "/readyz?verbose"}).out, "readyz check passed");
}

TEST_F(Kubectl, MakesAndEmptiesNamespacesConfigMapsAndSecrets) {
  EXPECT_EQ(Run({"create", "ns", "team"}).out, "namespace/team created\n");
  EXPECT_EQ(Run({"create", "cm", "c", "-n", "team", "--from-literal=a=b"}).exit, 0);
  EXPECT_EQ(Run({"create", "secret", "generic", "s", "-n", "team", "--from-literal=p=q"}).exit, 0);
  EXPECT_EQ(Run({"get", "secret", "s", "-n", "team", "-o", "jsonpath={.data.p}"}).out, "cQ==");
  EXPECT_HAS(Run({"create", "cm", "c", "-n", "nope"}).err, "namespaces \"nope\" not found");
  const std::string file = Write(
      "cm.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: d, namespace: team}\ndata: {a: \"1\", b: \"2\"}\n");
  EXPECT_EQ(Run({"apply", "-f", file}).out, "configmap/d created\n");
  Write("cm.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: d, namespace: team}\ndata: {a: \"3\"}\n");
  const Ran changed = Run({"apply", "-f", file});
  EXPECT_EQ(changed.out, "configmap/d configured\n") << changed.err;
  EXPECT_EQ(Run({"get", "cm", "d", "-n", "team", "-o", "jsonpath={.data}"}).out, R"({"a":"3"})");
  EXPECT_EQ(Run({"delete", "ns", "team", "--timeout=30s"}).out, "namespace \"team\" deleted\n");
  EXPECT_HAS(Run({"get", "cm", "-n", "team"}).err, "No resources found");
  EXPECT_EQ(Run({"auth", "can-i", "delete", "upg"}).out, "yes\n");
  EXPECT_HAS(Run({"auth", "whoami"}).out, "system:masters");
}

TEST_F(Kubectl, AWrongTokenAndAWrongCaAreRefused) {
  EXPECT_HAS(Run({"get", "upg", "--token=wrong"}).err, "provide credentials");
  std::string config = *ReadFile(server_->kubeconfig_path());
  const size_t at = config.find("certificate-authority-data: ");
  config.erase(at, config.find('\n', at) - at);
  const Ran ran = Run({"get", "upg", "--kubeconfig", Write("noca.kubeconfig", config)});
  EXPECT_NE(ran.exit, 0);
  EXPECT_HAS(ran.err, "certificate");
}

}  // namespace
}  // namespace lockkeeper::apiserver
