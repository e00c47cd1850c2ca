#include "controller/kubeconfig.h"

#include <gtest/gtest.h>

#include "api/base/file.h"
#include "controller/base64.h"
#include "tests/unit/controller/manual_clock.h"

namespace lockkeeper {
namespace {

class KubeconfigTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/lk-kubeconfig-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    dir_ = name;
    options_.environment = [this](const std::string& key) -> std::optional<std::string> {
      const auto it = environment_.find(key);
      if (it == environment_.end()) return std::nullopt;
      return it->second;
    };
    options_.clock = &clock_;
    environment_["HOME"] = dir_ + "/home";
  }
  void TearDown() override { EXPECT_TRUE(RemoveTree(dir_).ok()); }

  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = JoinPath(dir_, name);
    EXPECT_TRUE(MakeDirs(DirName(path)).ok());
    EXPECT_TRUE(WriteFileAtomic(path, text).ok());
    return path;
  }

  std::string dir_;
  ManualClock clock_;
  std::map<std::string, std::string> environment_;
  KubeconfigOptions options_;
};

constexpr char kOne[] = R"(
current-context: one
clusters: [{name: c, cluster: {server: "https://one:6443", certificate-authority: pki/ca.crt}}]
users: [{name: u, user: {token: first}}]
contexts:
- {name: one, context: {cluster: c, user: u, namespace: team}}
- {name: broken, context: {cluster: missing, user: u}}
unknown-key: ignored
)";
constexpr char kTwo[] = R"(
current-context: two
clusters:
- {name: c, cluster: {server: "https://shadowed:1"}}
- {name: d, cluster: {server: "https://two:6443/clusters/root", tls-server-name: kcp.test}}
users: [{name: u, user: {token: shadowed, username: merged-in}}, {name: v, user: {tokenFile: tok}}]
contexts: [{name: two, context: {cluster: d, user: v}}]
)";

TEST_F(KubeconfigTest, TheFirstFileThatHasANameWinsWithItsWholeEntry) {
  environment_["KUBECONFIG"] = Write("a/one", kOne) + ":" + dir_ + "/missing::" + Write("b/two", kTwo);
  const auto config = LoadRestConfig(options_);
  ASSERT_TRUE(config.ok()) << config.status().ToString();
  EXPECT_EQ(config->server, "https://one:6443");
  EXPECT_EQ(config->namespace_, "team");
  EXPECT_EQ(config->ca_file, dir_ + "/a/pki/ca.crt");  // counted from its own file
  const auto credentials = config->credentials->Get();
  ASSERT_TRUE(credentials.ok());
  EXPECT_EQ(credentials->token, "first");
  EXPECT_EQ(credentials->username, "");  // entries are not merged member by member
}

TEST_F(KubeconfigTest, AContextOfALaterFileMayBeNamed) {
  environment_["KUBECONFIG"] = Write("a/one", kOne) + ":" + Write("b/two", kTwo);
  Write("b/tok", "from-file\n");
  options_.context = "two";
  options_.namespace_ = "mine";
  const auto config = LoadRestConfig(options_);
  ASSERT_TRUE(config.ok()) << config.status().ToString();
  EXPECT_EQ(config->server, "https://two:6443/clusters/root");
  EXPECT_EQ(config->tls_server_name, "kcp.test");
  EXPECT_EQ(config->namespace_, "mine");
  EXPECT_EQ(config->credentials->Get()->token, "from-file");
}

TEST_F(KubeconfigTest, AnExplicitPathStandsAloneAndMustExist) {
  environment_["KUBECONFIG"] = Write("one", kOne);
  options_.explicit_path = dir_ + "/nowhere";
  EXPECT_EQ(LoadRestConfig(options_).code(), Code::kNotFound);
  options_.explicit_path = Write("two", kTwo);
  Write("tok", "t");
  EXPECT_EQ(LoadRestConfig(options_)->server, "https://two:6443/clusters/root");
}

TEST_F(KubeconfigTest, AnErrorNamesTheFilesItSpeaksOf) {
  const auto said = [&] { return LoadRestConfig(options_).status().message(); };
  environment_["KUBECONFIG"] = dir_ + "/none:" + dir_ + "/nor-this";
  EXPECT_EQ(LoadRestConfig(options_).code(), Code::kNotFound);
  EXPECT_NE(said().find("no file that exists: " + dir_ + "/none:" + dir_ + "/nor-this"), std::string::npos) << said();
  const std::string empty = Write("empty", "clusters: []\n");
  environment_["KUBECONFIG"] = dir_ + "/none:" + empty;
  EXPECT_NE(said().find("kubeconfig " + empty + " has no current-context"), std::string::npos) << said();
  options_.context = "blue";
  EXPECT_NE(said().find("kubeconfig " + empty + " has no context \"blue\""), std::string::npos) << said();
}

TEST_F(KubeconfigTest, InAPodTheServiceAccountComesBeforeTheHomeFile) {
  Write("home/.kube/config", kOne);
  EXPECT_EQ(LoadRestConfig(options_)->server, "https://one:6443");
  environment_["KUBERNETES_SERVICE_HOST"] = "fd00::1";
  environment_["KUBERNETES_SERVICE_PORT"] = "443";
  options_.service_account_dir = dir_ + "/sa";
  Write("sa/token", "pod-token");
  Write("sa/namespace", "pod-ns");
  const auto config = LoadRestConfig(options_);
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->server, "https://[fd00::1]:443");
  EXPECT_EQ(config->ca_file, dir_ + "/sa/ca.crt");
  EXPECT_EQ(config->namespace_, "pod-ns");
  EXPECT_EQ(config->credentials->Get()->token, "pod-token");
}

TEST_F(KubeconfigTest, WithNothingItSaysWhatToDo) {
  const auto config = LoadRestConfig(options_);
  EXPECT_EQ(config.code(), Code::kNotFound);
  EXPECT_NE(config.status().message().find("--kubeconfig"), std::string::npos);
}

TEST_F(KubeconfigTest, DataBeatsTheFile) {
  options_.explicit_path = Write("k",
                                 "current-context: x\n"
                                 "clusters: [{name: c, cluster: {server: 'https://h', certificate-authority: no, "
                                 "certificate-authority-data: " +
                                     Base64Encode("CA PEM") +
                                     "}}]\n"
                                     "users: [{name: u, user: {client-certificate-data: " +
                                     Base64Encode("CERT") + ", client-key-data: " + Base64Encode("KEY") +
                                     "}}]\n"
                                     "contexts: [{name: x, context: {cluster: c, user: u}}]\n");
  const auto config = LoadRestConfig(options_);
  ASSERT_TRUE(config.ok()) << config.status().ToString();
  EXPECT_EQ(config->ca_pem, "CA PEM");
  EXPECT_EQ(config->ca_file, "");
  EXPECT_EQ(config->credentials->Get()->certificate_pem, "CERT");
  EXPECT_EQ(config->credentials->Get()->private_key_pem, "KEY");
}

struct BadRow {
  const char* name;
  std::string cluster, user, context;
  Code code;
  std::string text;
};

TEST_F(KubeconfigTest, WrongEntriesAreRefusedByName) {
  const std::string c = "server: 'https://h'", u = "token: t", x = "cluster: c, user: u";
  const BadRow rows[] = {
      {"insecure beside a CA", c + ", insecure-skip-tls-verify: true, certificate-authority-data: AAAA", u, x,
       Code::kInvalid, "insecure-skip-tls-verify together with a CA"},
      {"no server", "{}", u, x, Code::kInvalid, "has no server"},
      {"no such cluster", c, u, "cluster: other, user: u", Code::kInvalid, "names cluster \"other\""},
      {"no such user", c, u, "cluster: c, user: other", Code::kInvalid, "names user \"other\""},
      {"certificate without key", c, "client-certificate-data: AAAA", x, Code::kInvalid, "must come together"},
      {"broken data", c + ", certificate-authority-data: '*'", u, x, Code::kInvalid, "not base64"},
      {"a proxy", c + ", proxy-url: 'http://p'", u, x, Code::kUnsupported, "proxy-url"},
      {"impersonation", c, "token: t, as: root", x, Code::kUnsupported, "\"as\""},
      {"exec of another age", c, "exec: {command: x, apiVersion: client.authentication.k8s.io/v1alpha1}", x,
       Code::kInvalid, "exec.apiVersion"},
      {"exec that wants a terminal", c,
       "exec: {command: x, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Always}", x,
       Code::kUnsupported, "terminal"},
  };
  for (const BadRow& row : rows) {
    options_.explicit_path =
        Write("k", "current-context: x\nclusters: [{name: c, cluster: {" +
                       (row.cluster == "{}" ? std::string() : row.cluster) + "}}]\nusers: [{name: u, user: {" +
                       row.user + "}}]\ncontexts: [{name: x, context: {" + row.context + "}}]\n");
    const auto config = LoadRestConfig(options_);
    EXPECT_EQ(config.code(), row.code) << row.name << ": " << config.status().ToString();
    EXPECT_NE(config.status().message().find(row.text), std::string::npos)
        << row.name << ": " << config.status().ToString();
  }
}

TEST_F(KubeconfigTest, ATokenFileIsReadAgainAfterFiftySecondsAndAfterARefusal) {
  const std::string path = Write("tok", "one");
  auto source = NewFileCredentials(
      {.inline_values = {}, .token_file = path, .certificate_file = "", .private_key_file = ""}, clock_);
  const Credentials first = *source->Get();
  EXPECT_EQ(first.token, "one");
  Write("tok", "two");
  clock_.Advance(Seconds(49));
  EXPECT_EQ(source->Get()->token, "one");
  clock_.Advance(Seconds(1));
  EXPECT_EQ(source->Get()->token, "two");
  Write("tok", "three");
  source->Refused(first);  // an old token was refused: that is known already
  EXPECT_EQ(source->Get()->token, "two");
  source->Refused(*source->Get());
  EXPECT_EQ(source->Get()->token, "three");
  // A file that is gone for a moment does not take the token away.
  ASSERT_TRUE(RemoveFile(path).ok());
  clock_.Advance(Seconds(60));
  EXPECT_EQ(source->Get()->token, "three");
}

}  // namespace
}  // namespace lockkeeper
