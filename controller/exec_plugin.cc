#include "controller/exec_plugin.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstring>

#include "api/base/unique_fd.h"
#include "controller/yaml.h"

extern char** environ;

namespace lockkeeper {

namespace {

constexpr size_t kMaxOutput = 1u << 20;

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (const std::string& text : texts) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

std::vector<std::string> EnvironmentOf(const ExecPlugin& plugin) {
  Json spec = Json::MakeObject({{"interactive", false}});
  if (plugin.provide_cluster_info) spec.Set("cluster", plugin.cluster_info);
  const Json info = Json::MakeObject({{"kind", "ExecCredential"}, {"apiVersion", plugin.api_version}, {"spec", spec}});
  auto overrides = plugin.environment;
  overrides.emplace_back("KUBERNETES_EXEC_INFO", info.Dump());
  std::vector<std::string> out;
  for (char** e = environ; *e != nullptr; ++e) {
    const std::string_view entry = *e;
    const std::string_view name = entry.substr(0, entry.find('='));
    if (std::none_of(overrides.begin(), overrides.end(), [&](const auto& o) { return o.first == name; })) {
      out.emplace_back(entry);
    }
  }
  for (const auto& [name, value] : overrides) out.push_back(name + "=" + value);
  return out;
}

// Kills and reaps the child unless told that it is reaped.
class Child {
 public:
  explicit Child(pid_t pid) : pid_(pid) {}
  ~Child() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) continue;
  }
  int Reap() {
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) continue;
    pid_ = -1;
    return status;
  }

 private:
  pid_t pid_;
};

}  // namespace

Result<ExecResult> RunExecPlugin(const ExecPlugin& plugin) {
  const std::string attempt = "running credential plugin " + plugin.command;
  const auto fail = [&](Code code, const std::string& what) {
    std::string message = attempt + ": " + what;
    if (!plugin.install_hint.empty()) message += ". " + plugin.install_hint;
    return Status(code, message);
  };
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return fail(Code::kExhausted, strerror(errno));
  UniqueFd out(ends[0]), in(ends[1]);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, in.get(), STDOUT_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, defaults;
  sigemptyset(&none);
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGPIPE);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);

  std::vector<std::string> arguments{plugin.command};
  arguments.insert(arguments.end(), plugin.arguments.begin(), plugin.arguments.end());
  const std::vector<std::string> environment = EnvironmentOf(plugin);
  pid_t pid = -1;
  const int rc = posix_spawnp(&pid, plugin.command.c_str(), &actions, &attributes, Pointers(arguments).data(),
                              Pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (rc != 0) return fail(rc == ENOENT ? Code::kNotFound : Code::kForbidden, strerror(rc));
  Child child(pid);
  in.Reset();

  std::string output;
  const auto until = std::chrono::steady_clock::now() + plugin.timeout;
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now()).count();
    pollfd p{out.get(), POLLIN, 0};
    const int n = left > 0 ? poll(&p, 1, static_cast<int>(left)) : 0;
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      return fail(Code::kTimeout, "no credentials within " + FormatAge(plugin.timeout) + "; it was killed");
    }
    char buffer[4096];
    const ssize_t got = read(out.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    output.append(buffer, static_cast<size_t>(got));
    if (output.size() > kMaxOutput) return fail(Code::kInvalid, "more than 1 MiB of output");
  }
  // Standard output is closed; a child that lingers beyond the deadline is killed.
  const UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (pidfd) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now()).count();
    pollfd p{pidfd.get(), POLLIN, 0};
    if (poll(&p, 1, static_cast<int>(std::max<int64_t>(left, 0))) == 0) {
      return fail(Code::kTimeout, "did not exit within " + FormatAge(plugin.timeout) + "; it was killed");
    }
  }
  const int status = child.Reap();
  if (WIFSIGNALED(status)) return fail(Code::kInternal, "killed by signal " + std::to_string(WTERMSIG(status)));
  if (WEXITSTATUS(status) != 0) {
    return fail(Code::kUnauthorized,
                "exit status " + std::to_string(WEXITSTATUS(status)) + "; its standard error says why");
  }
  auto result = ParseExecCredential(output, plugin.api_version);
  if (!result.ok()) return fail(result.code(), result.status().message());
  return result;
}

Result<ExecResult> ParseExecCredential(const std::string& output, const std::string& api_version) {
  // A parser's error may quote its input, which may hold a token.
  auto parsed = ParseYaml(output, "output");
  if (!parsed.ok() || !parsed->IsObject()) return Status(Code::kInvalid, "its output is no ExecCredential");
  const Json& credential = *parsed;
  if (credential.Get("kind").AsString() != "ExecCredential") {
    return Status(Code::kInvalid, "its output is no ExecCredential");
  }
  if (credential.Get("apiVersion").AsString() != api_version) {
    return Status(Code::kInvalid, "it answered in " + credential.Get("apiVersion").AsString() +
                                      ", the kubeconfig asks for " + api_version);
  }
  const Json& status = credential.Get("status");
  ExecResult out;
  out.credentials.token = status.Get("token").AsString();
  out.credentials.certificate_pem = status.Get("clientCertificateData").AsString();
  out.credentials.private_key_pem = status.Get("clientKeyData").AsString();
  if (out.credentials.certificate_pem.empty() != out.credentials.private_key_pem.empty()) {
    return Status(Code::kInvalid, "a client certificate and its key must come together");
  }
  if (out.credentials.token.empty() && out.credentials.certificate_pem.empty()) {
    return Status(Code::kInvalid, "it answered neither a token nor a client certificate");
  }
  const std::string& expires = status.Get("expirationTimestamp").AsString();
  if (!expires.empty()) {
    LK_ASSIGN_OR_RETURN(out.expires, ParseTime(expires));
  }
  return out;
}

}  // namespace lockkeeper
