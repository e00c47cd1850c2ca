#include "tests/integration/kcp/kcp_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <utility>

#include "api/base/file.h"
#include "tests/support/wait.h"

extern char** environ;

namespace lockkeeper::kcp {

bool Eventually(const std::function<bool()>& done, std::chrono::milliseconds patience) {
  return WaitUntil(done, patience);
}

TempDir::TempDir() {
  path_ = ::testing::TempDir() + "kcp_XXXXXX";
  if (mkdtemp(path_.data()) == nullptr) ADD_FAILURE() << "no temporary folder";
}

TempDir::~TempDir() { (void)RemoveTree(path_).ok(); }

KcpProcess::KcpProcess(const TempDir& dir, Setup setup)
    : dir_(dir), setup_(std::move(setup)), root_(dir / setup_.slot), error_file_(dir / (setup_.slot + ".err")) {}

KcpProcess::~KcpProcess() {
  if (!Running()) return;
  Signal(SIGKILL);
  AwaitExit();
}

void KcpProcess::Start() {
  const std::string executable = setup_.executable.empty() ? KCP_LIKE : setup_.executable;
  std::vector<std::string> args = {executable,
                                   "start",
                                   "--root-directory=" + root_,
                                   "--bind-address=127.0.0.1",
                                   "--secure-port=0",
                                   "--experimental-bind-free-port",
                                   "--request-log=" + (dir_ / "requests.log"),
                                   "--reconcile-log=" + (dir_ / "reconciles.log")};
  if (!setup_.own_store) args.push_back("--etcd-servers=sqlite://" + (dir_ / "store.db"));
  if (setup_.election) args.push_back("--enable-leader-election");
  args.insert(args.end(), setup_.flags.begin(), setup_.flags.end());
  std::vector<std::string> env = {"LOCKKEEPER_TIME_SCALE=" + std::to_string(kScale)};
  for (const auto& [name, value] : setup_.env) env.push_back(name + "=" + value);
  for (char** e = environ; *e != nullptr; ++e) {
    if (std::string(*e).rfind("LOCKKEEPER_", 0) != 0) env.emplace_back(*e);
  }
  const auto pointers = [](std::vector<std::string>& list) {
    std::vector<char*> result;
    for (std::string& text : list) result.push_back(text.data());
    result.push_back(nullptr);
    return result;
  };
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 2, error_file_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  exit_.reset();
  client_.reset();
  port_ = 0;
  const int error =
      posix_spawn(&pid_, executable.c_str(), &actions, nullptr, pointers(args).data(), pointers(env).data());
  posix_spawn_file_actions_destroy(&actions);
  ASSERT_EQ(error, 0) << executable;
}

std::string KcpProcess::Errors() const { return ReadFile(error_file_).value_or(""); }

bool KcpProcess::Says(const std::string& text) const { return Errors().find(text) != std::string::npos; }

bool KcpProcess::AwaitListening() {
  const std::string mark = "listening port=";
  const bool listens = Eventually([&] {
    const std::string text = Errors();
    const size_t at = text.find(mark);
    if (at == std::string::npos) return !Running();
    port_ = std::atoi(text.c_str() + at + mark.size());
    return true;
  });
  return listens && port_ > 0;
}

bool KcpProcess::AwaitReady() {
  if (!AwaitListening()) return false;
  return Eventually([&] { return StatusOf("GET", "/readyz", "") == 200; });
}

bool KcpProcess::Running() {
  if (pid_ <= 0 || exit_) return false;
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) != pid_) return true;
  exit_ = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  return false;
}

void KcpProcess::Signal(int signal) {
  if (Running()) kill(pid_, signal);
}

std::optional<int> KcpProcess::AwaitExit(std::chrono::milliseconds patience) {
  Eventually([&] { return !Running(); }, patience);
  return exit_;
}

HttpClient& KcpProcess::client() {
  if (!client_) {
    HttpClientConfig config;
    config.base_url = "https://127.0.0.1:" + std::to_string(port_);
    config.tls.ca_pem = ReadFile(JoinPath(root_, "apiserver.crt")).value_or("");
    client_ = std::make_unique<HttpClient>(std::move(config));
  }
  return *client_;
}

std::string KcpProcess::Token(const std::string& user) const {
  const std::string text = ReadFile(JoinPath(root_, "admin.kubeconfig")).value_or("");
  const std::string mark = "- name: \"" + user + "\"\n  user:\n    token: \"";
  const size_t at = text.find(mark);
  if (at == std::string::npos) return "";
  const size_t begin = at + mark.size();
  return text.substr(begin, text.find('"', begin) - begin);
}

Result<ClientResponse> KcpProcess::Call(const std::string& method, const std::string& path, const std::string& token,
                                        const std::string& body) {
  ClientRequest request;
  request.method = method;
  request.target = path;
  request.body = body;
  if (!body.empty()) request.headers.emplace_back("Content-Type", "application/json");
  if (!token.empty()) {
    const bool known = token == "shard-admin" || token == "kcp-admin";
    request.headers.emplace_back("Authorization", "Bearer " + (known ? Token(token) : token));
  }
  request.timeout = std::chrono::seconds(15);
  return client().Do(request);
}

int KcpProcess::StatusOf(const std::string& method, const std::string& path, const std::string& token,
                         const std::string& body) {
  const auto answer = Call(method, path, token, body);
  return answer.ok() ? answer->status : -1;
}

Json KcpProcess::Get(const std::string& path) {
  const auto answer = Call("GET", path, "shard-admin");
  if (!answer.ok() || answer->status != 200) return Json();
  return Json::Parse(answer->body).value_or(Json());
}

std::string KcpProcess::LeaseHolder() { return Get(kLeasePath).At({"spec", "holderIdentity"}).AsString(); }

namespace {

std::string Workspaces(const std::string& parent) {
  return "/clusters/" + parent + "/apis/tenancy.kcp.io/v1alpha1/workspaces";
}

}  // namespace

int KcpProcess::CreateWorkspace(const std::string& name, const std::string& parent) {
  return StatusOf("POST", Workspaces(parent), "shard-admin",
                  R"({"apiVersion":"tenancy.kcp.io/v1alpha1","kind":"Workspace","metadata":{"name":")" + name +
                      R"("},"spec":{"type":{"name":"universal","path":"root"}}})");
}

std::string KcpProcess::WorkspacePhase(const std::string& name, const std::string& parent) {
  return Get(Workspaces(parent) + "/" + name).At({"status", "phase"}).AsString();
}

}  // namespace lockkeeper::kcp
