#include "tests/support/lab.h"

#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "api/base/file.h"
#include "api/base/time.h"
#include "api/types/front.h"
#include "api/types/server.h"
#include "controller/kubeconfig.h"
#include "controller/typed.h"

namespace lockkeeper {
namespace {

constexpr auto kStartPatience = std::chrono::seconds(20);

void Pause(int milliseconds) { ::poll(nullptr, 0, milliseconds); }

std::string CommandLine(const std::string& pid) {
  const Result<std::string> text = ReadFile("/proc/" + pid + "/cmdline");
  if (!text.ok()) return "";
  std::string line = *text;
  std::replace(line.begin(), line.end(), '\0', ' ');
  return line;
}

}  // namespace

Lab::Lab(LabOptions options) : options_(std::move(options)), data_(options_.folder) {
  if (!data_.empty()) return;
  const char* tmp = ::getenv("TMPDIR");
  std::string pattern = std::string(tmp != nullptr ? tmp : "/tmp") + "/lockkeeper-XXXXXX";
  LK_CHECK(::mkdtemp(pattern.data()) != nullptr);
  data_ = pattern;
  own_folder_ = true;
}

Lab::~Lab() {
  api_.reset();
  parts_.clear();
  up_.reset();
  KillAll();
  if (own_folder_) (void)RemoveTree(data_).ok();
}

UniqueFd Lab::TakePort(int* port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  LK_CHECK(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size) == 0 && ::listen(fd.get(), 1) == 0);
  LK_CHECK(::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
  *port = ntohs(address.sin_port);
  return fd;
}

int Lab::FreePort() {
  int port = 0;
  (void)TakePort(&port);
  return port;
}

Status Lab::Build(const std::string& version, const std::string& faults) {
  SubprocessOptions build;
  build.argv = {options_.lockkeeper, "kcp-like", "write-build", data_ + "/builds/" + version + "/bin/kcp", version};
  if (!faults.empty()) build.argv.push_back(faults);
  return RunProcess(build).status();
}

Result<Subprocess> Lab::StartUntil(SubprocessOptions program, const std::string& word) {
  const std::string name = "lockkeeper " + program.argv.at(1);
  const auto log = [&program] { return ReadFile(program.output_file).value_or(""); };
  const size_t before = log().size();
  const Duration started = SystemClock().Read().boot;
  LK_ASSIGN_OR_RETURN(Subprocess child, Subprocess::Start(program));
  while (log().find(word, before) == std::string::npos) {
    const Result<int> ended = child.Wait(std::chrono::milliseconds(2));
    if (ended.ok()) {
      return Status(Code::kInternal, name + " ended with " + std::to_string(*ended) + ": " + log().substr(before));
    }
    if (SystemClock().Read().boot - started > Duration(std::chrono::microseconds(kStartPatience))) {
      return Status(Code::kTimeout, name + " is not ready: " + log().substr(before));
    }
  }
  return child;
}

Status Lab::ConnectApi() {
  KubeconfigOptions load;
  load.explicit_path = kubeconfig();
  LK_ASSIGN_OR_RETURN(RestConfig config, LoadRestConfig(load));
  HttpApiOptions options;
  options.user_agent = "lab";
  options.timeout = std::chrono::seconds(5);
  options.retry_budget = std::chrono::seconds(1);
  api_ = std::make_unique<HttpApi>(std::move(config), options);
  return Status::Ok();
}

void Lab::UseApi(LabApi api) {
  outside_ = std::move(api);
  options_.split = true;
}

Result<double> Lab::Up() {
  const Duration started = SystemClock().Read().boot;
  if (options_.split) {
    if (outside_) LK_RETURN_IF_ERROR(ConnectApi());
    for (const char* role : {"apiserver", "manager", "agent"}) {
      if (outside_ && std::string_view(role) == "apiserver") continue;
      if (!parts_.contains(role)) LK_RETURN_IF_ERROR(StartPart(role));
    }
    return ToSeconds(SystemClock().Read().boot - started);
  }
  SubprocessOptions up;
  up.argv = {options_.lockkeeper, "up", "--data", data_};
  if (options_.up_args.empty()) up.argv.insert(up.argv.end(), {"--listen", "127.0.0.1:0"});
  up.argv.insert(up.argv.end(), options_.up_args.begin(), options_.up_args.end());
  up.env = options_.env;
  up.output_file = data_ + "/up.log";
  LK_ASSIGN_OR_RETURN(Subprocess child, StartUntil(std::move(up), "lockkeeper is up"));
  up_ = std::move(child);
  const double seconds = ToSeconds(SystemClock().Read().boot - started);
  LK_RETURN_IF_ERROR(ConnectApi());
  return seconds;
}

Status Lab::StartPart(const std::string& role) {
  SubprocessOptions part;
  part.argv = {options_.lockkeeper, role};
  part.env = options_.env;
  part.output_file = data_ + "/" + role + ".log";
  if (role == "apiserver") {
    if (api_port_ == 0) api_port_ = FreePort();
    part.argv.insert(part.argv.end(), {"--data", data_ + "/api", "--listen", "127.0.0.1:" + std::to_string(api_port_)});
  } else {
    const std::string config = !outside_ ? kubeconfig() : role == "manager" ? outside_->manager : outside_->agent;
    part.argv.insert(part.argv.end(), {"--data", data_, "--kubeconfig", config});
  }
  if (role == "agent") part.argv.insert(part.argv.end(), {"--host", "local"});
  LK_ASSIGN_OR_RETURN(Subprocess child,
                      StartUntil(std::move(part), role == "apiserver" ? "export KUBECONFIG" : role + " is up"));
  parts_.insert_or_assign(role, std::move(child));
  return role == "apiserver" ? ConnectApi() : Status::Ok();
}

Result<int> Lab::EndPart(const std::string& role, int signal) {
  const auto part = parts_.find(role);
  if (part == parts_.end()) return Status(Code::kPrecondition, "no " + role + " runs");
  part->second.Signal(signal);
  const Result<int> code = part->second.Wait(std::chrono::seconds(40));
  if (code.ok()) parts_.erase(part);
  return code;
}

pid_t Lab::part_pid(const std::string& role) const {
  const auto part = parts_.find(role);
  return part == parts_.end() ? -1 : part->second.pid();
}

Result<int> Lab::Down(int signal) {
  for (const char* role : {"agent", "manager", "apiserver"}) {
    if (!options_.split) break;
    if (outside_ && std::string_view(role) == "apiserver") continue;
    LK_RETURN_IF_ERROR(EndPart(role, signal).status());
  }
  if (options_.split) return 0;
  if (!up_) return Status(Code::kPrecondition, "it is not up");
  up_->Signal(signal);
  const Result<int> code = up_->Wait(std::chrono::seconds(40));
  if (code.ok()) up_.reset();
  return code;
}

std::string Lab::PartLog(const std::string& role) const { return ReadFile(data_ + "/" + role + ".log").value_or(""); }

std::string Lab::UpLog() const { return ReadFile(data_ + (options_.split ? "/agent.log" : "/up.log")).value_or(""); }

Result<std::string> Lab::Kubectl(std::vector<std::string> args, const std::string& stdin_text) {
  SubprocessOptions run;
  run.argv = {options_.kubectl};
  run.argv.insert(run.argv.end(), args.begin(), args.end());
  run.env = {{"KUBECONFIG", kubeconfig()}, {"KUBECACHEDIR", data_ + "/kubectl-cache"}, {"HOME", data_}};
  run.stdin_text = stdin_text;
  return RunProcess(run, std::chrono::seconds(180));
}

SubprocessOptions Lab::VerbOptions(std::vector<std::string> args) const {
  SubprocessOptions run;
  run.argv = {options_.lockkeeper};
  run.argv.insert(run.argv.end(), args.begin(), args.end());
  run.argv.insert(run.argv.end(), {"--data", data_});
  run.env = {{"KUBECONFIG", kubeconfig()}};
  return run;
}

Result<std::string> Lab::Verb(std::vector<std::string> args) {
  return RunProcess(VerbOptions(std::move(args)), std::chrono::seconds(180));
}

Api& Lab::api() { return *api_; }

Result<load::LoadConfig> Lab::LoadThrough(const std::string& server, const std::string& cluster) {
  KubeconfigOptions from;
  from.explicit_path = data_ + "/servers/default/" + server + "/shared/admin.kubeconfig";
  from.context = "shard-base";
  LK_ASSIGN_OR_RETURN(const RestConfig rest, LoadRestConfig(from));
  LK_ASSIGN_OR_RETURN(const Credentials credentials, rest.credentials->Get());
  load::LoadConfig config;
  config.base_url = rest.server + "/clusters/" + cluster;
  config.tls.ca_pem = rest.ca_pem;
  config.tls.server_name = rest.tls_server_name;
  config.tls.insecure_skip_verify = rest.insecure_skip_verify;
  config.token = credentials.token;
  return config;
}

Status Lab::TearDown() {
  LK_ASSIGN_OR_RETURN(const std::vector<Server> servers, List<Server>(api(), ""));
  for (const Server& s : servers) {
    const ObjectKey key{s.metadata.namespace_, s.metadata.name};
    const Json stop = Json::MakeObject({{"spec", Json::MakeObject({{"deletionPolicy", "Stop"}})}});
    LK_RETURN_IF_ERROR(api().Patch(ResourceOf<Server>(), key, PatchType::kMerge, stop, "").status());
    LK_RETURN_IF_ERROR(Delete<Server>(api(), key));
  }
  for (int i = 0; i < 1500; ++i) {
    LK_ASSIGN_OR_RETURN(const std::vector<Server> left, List<Server>(api(), ""));
    if (left.empty()) break;
    Pause(20);
  }
  LK_ASSIGN_OR_RETURN(const std::vector<Front> fronts, List<Front>(api(), ""));
  for (const Front& f : fronts) LK_RETURN_IF_ERROR(Delete<Front>(api(), {f.metadata.namespace_, f.metadata.name}));
  const std::string own = std::to_string(up_pid()) + " ";
  for (int i = 0; i < 1500; ++i) {
    std::vector<std::string> left = LeftOver();
    std::erase_if(left, [&](const std::string& line) { return line.starts_with(own); });
    if (left.empty()) return Status::Ok();
    Pause(20);
  }
  std::string text;
  for (const std::string& line : LeftOver()) text += "\n  " + line;
  return {Code::kTimeout, "these still run:" + text};
}

std::vector<std::string> Lab::LeftOver() const {
  std::vector<std::string> out;
  const Result<std::vector<std::string>> entries = ListDir("/proc");
  if (!entries.ok()) return out;
  const std::string self = std::to_string(::getpid());
  for (const std::string& pid : *entries) {
    if (pid.find_first_not_of("0123456789") != std::string::npos || pid == self) continue;
    const std::string line = CommandLine(pid);
    if (line.find(data_) != std::string::npos) out.push_back(pid + " " + line);
  }
  return out;
}

void Lab::KillAll() {
  // Shims first: a front's shim would start it again.
  for (int round = 0; round < 50; ++round) {
    const std::vector<std::string> left = LeftOver();
    if (left.empty()) return;
    for (const std::string& line : left) ::kill(static_cast<pid_t>(std::stol(line)), SIGKILL);
    Pause(20);
  }
}

Result<std::string> Sample(const std::string& path, const std::vector<std::pair<std::string, std::string>>& replace) {
  LK_ASSIGN_OR_RETURN(std::string text, ReadFile(path));
  for (const auto& [from, to] : replace) {
    for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
      text.replace(at, from.size(), to);
    }
  }
  return text;
}

}  // namespace lockkeeper
