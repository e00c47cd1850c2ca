#include "tests/support/peers/cluster.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>

#include "api/base/file.h"
#include "api/base/json.h"
#include "api/base/time.h"
#include "controller/yaml.h"
#include "tests/support/peers/places.h"
#include "tests/support/wait.h"

namespace lockkeeper::peers {
namespace {

constexpr auto kPatience = std::chrono::seconds(90);
const Resource kCrds{"apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", false};

std::string Name(Part part) { return part == Part::kEtcd ? "etcd" : "kube-apiserver"; }

bool Established(const Json& crd) {
  for (const Json& condition : crd.At({"status", "conditions"}).AsArray()) {
    if (condition.Get("type").AsString() == "Established") return condition.Get("status").AsString() == "True";
  }
  return false;
}

}  // namespace

Result<std::unique_ptr<Cluster>> Cluster::Start() {
  for (const char* program : {"etcd", "kube-apiserver"}) LK_RETURN_IF_ERROR(FindProgram(program).status());
  std::unique_ptr<Cluster> cluster(new Cluster);
  Status started = cluster->Prepare();
  if (started.ok()) started = cluster->Launch(Part::kEtcd);
  if (started.ok()) started = cluster->AwaitEtcd();
  if (started.ok()) started = cluster->Launch(Part::kApiServer);
  if (started.ok()) started = cluster->AwaitReady();
  if (!started.ok()) return Status(Code::kInternal, "starting etcd and kube-apiserver: " + started.ToString());
  return cluster;
}

Cluster::~Cluster() {
  api_.reset();
  api_server_.child.reset();
  etcd_.child.reset();
  if (!folder_.empty()) (void)RemoveTree(folder_).ok();
}

Status Cluster::Prepare() {
  LK_ASSIGN_OR_RETURN(folder_, MakeFolder());
  etcd_port_ = PortToKeep();
  etcd_peer_port_ = PortToKeep();
  port_ = PortToKeep();
  url_ = "https://127.0.0.1:" + std::to_string(port_);
  admin_ = pki_.Issue({.common_name = "admin", .client = true, .organization = "system:masters"});
  LK_RETURN_IF_ERROR(WriteFiles());
  HttpApiOptions options;
  options.user_agent = "peers";
  options.timeout = std::chrono::seconds(15);
  options.retry_budget = std::chrono::seconds(5);
  api_ = std::make_unique<HttpApi>(Rest(), options);
  return Status::Ok();
}

Status Cluster::WriteFiles() {
  const std::vector<std::string> local{"127.0.0.1"};
  const testing::KeyPair serving = pki_.Issue({.common_name = "kube-apiserver", .ip_addresses = local});
  // etcd's own gateway shows the serving certificate to itself as a client.
  const testing::KeyPair etcd = pki_.Issue({.common_name = "etcd", .ip_addresses = local, .both = true});
  const testing::KeyPair client = pki_.Issue({.common_name = "kube-apiserver", .client = true});
  const testing::KeyPair accounts = pki_.Issue({.common_name = "accounts"});
  const std::pair<const char*, const std::string*> files[] = {
      {"ca.crt", &pki_.ca_pem()},
      {"serving.crt", &serving.certificate_pem},
      {"serving.key", &serving.private_key_pem},
      {"etcd.crt", &etcd.certificate_pem},
      {"etcd.key", &etcd.private_key_pem},
      {"etcd-client.crt", &client.certificate_pem},
      {"etcd-client.key", &client.private_key_pem},
      {"accounts.crt", &accounts.certificate_pem},
      {"accounts.key", &accounts.private_key_pem},
  };
  for (const auto& [name, text] : files) LK_RETURN_IF_ERROR(WriteFileAtomic(Path(name), *text, 0600));
  KubeconfigText config;
  config.server = url_;
  config.ca_pem = ca_pem();
  config.certificate_pem = admin_.certificate_pem;
  config.private_key_pem = admin_.private_key_pem;
  return WriteFileAtomic(kubeconfig(), MakeKubeconfig(config), 0600);
}

std::string Cluster::kubeconfig() const { return Path("admin.kubeconfig"); }
std::string Cluster::Path(const std::string& name) const { return JoinPath(folder_, name); }
std::string Cluster::LogPath(Part part) const { return Path(Name(part) + ".log"); }
std::string Cluster::EtcdUrl() const { return "https://127.0.0.1:" + std::to_string(etcd_port_); }

HttpClientConfig Cluster::Http() const {
  HttpClientConfig http;
  http.base_url = url_;
  http.tls.ca_pem = ca_pem();
  http.tls.certificate_pem = admin_.certificate_pem;
  http.tls.private_key_pem = admin_.private_key_pem;
  return http;
}

RestConfig Cluster::Rest() const {
  CredentialFiles credentials;
  credentials.inline_values.certificate_pem = admin_.certificate_pem;
  credentials.inline_values.private_key_pem = admin_.private_key_pem;
  RestConfig config;
  config.server = url_;
  config.ca_pem = ca_pem();
  config.credentials = NewFileCredentials(std::move(credentials), SystemClock());
  config.source = "the peers' admin";
  return config;
}

Ran Cluster::Kubectl(std::vector<std::string> args, const std::string& stdin_text) const {
  return RunKubectl(kubeconfig(), folder_, std::move(args), stdin_text);
}

std::vector<std::string> Cluster::Arguments(Part part) const {
  const std::string peer = "http://127.0.0.1:" + std::to_string(etcd_peer_port_);
  if (part == Part::kEtcd) {
    return {"--data-dir=" + Path(etcd_data_),
            "--listen-client-urls=" + EtcdUrl(),
            "--advertise-client-urls=" + EtcdUrl(),
            "--listen-peer-urls=" + peer,
            "--initial-advertise-peer-urls=" + peer,
            "--initial-cluster=default=" + peer,
            "--cert-file=" + Path("etcd.crt"),
            "--key-file=" + Path("etcd.key"),
            "--trusted-ca-file=" + Path("ca.crt"),
            "--client-cert-auth",
            "--unsafe-no-fsync"};
  }
  // No pods and no Service kubernetes: nothing here needs them.
  return {"--etcd-servers=" + EtcdUrl(),
          "--etcd-cafile=" + Path("ca.crt"),
          "--etcd-certfile=" + Path("etcd-client.crt"),
          "--etcd-keyfile=" + Path("etcd-client.key"),
          "--bind-address=127.0.0.1",
          "--advertise-address=127.0.0.1",
          "--secure-port=" + std::to_string(port_),
          "--tls-cert-file=" + Path("serving.crt"),
          "--tls-private-key-file=" + Path("serving.key"),
          "--client-ca-file=" + Path("ca.crt"),
          "--service-account-issuer=https://peers.lockkeeper.dev",
          "--service-account-key-file=" + Path("accounts.crt"),
          "--service-account-signing-key-file=" + Path("accounts.key"),
          "--service-cluster-ip-range=10.0.0.0/24",
          "--cert-dir=" + Path("scratch"),
          "--authorization-mode=RBAC",
          "--disable-admission-plugins=ServiceAccount",
          "--endpoint-reconciler-type=none"};
}

Status Cluster::Launch(Part part) {
  Process& process = Of(part);
  process.child.reset();
  SubprocessOptions options;
  LK_ASSIGN_OR_RETURN(const std::string program, FindProgram(Name(part)));
  options.argv = {program};
  const std::vector<std::string> args = Arguments(part);
  options.argv.insert(options.argv.end(), args.begin(), args.end());
  options.argv.insert(options.argv.end(), process.more_args.begin(), process.more_args.end());
  options.output_file = LogPath(part);
  options.dies_with_us = true;
  LK_ASSIGN_OR_RETURN(Subprocess child, Subprocess::Start(options));
  process.child = std::move(child);
  return Status::Ok();
}

Status Cluster::Await(Part part, HttpClient& client, const std::string& target, std::chrono::milliseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  ClientRequest request;
  request.target = target;
  request.timeout = std::chrono::seconds(2);
  for (;;) {
    const Result<ClientResponse> answer = client.Do(request);
    if (answer.ok() && answer->status == 200) return Status::Ok();
    Process& process = Of(part);
    if (!process.child) return {Code::kUnavailable, Name(part) + " does not run"};
    if (const Result<int> code = process.child->Wait(std::chrono::milliseconds(10)); code.ok()) {
      process.child.reset();
      return {Code::kInternal, Name(part) + " ended with " + std::to_string(*code) + ":\n" + LogTail(part)};
    }
    if (std::chrono::steady_clock::now() >= end) {
      const std::string said =
          answer.ok() ? std::to_string(answer->status) + " " + answer->body : answer.status().ToString();
      return {Code::kTimeout, Name(part) + " does not answer " + target + ": " + said + "\n" + LogTail(part)};
    }
  }
}

Status Cluster::AwaitEtcd() {
  HttpClientConfig http = Http();
  http.base_url = EtcdUrl();
  HttpClient client(std::move(http));
  return Await(Part::kEtcd, client, "/readyz", kPatience);
}

Status Cluster::AwaitReady(std::chrono::milliseconds patience) {
  HttpClient client(Http());
  // The namespaces are made a little after it says ready.
  for (const char* target : {"/readyz", "/api/v1/namespaces/default", "/api/v1/namespaces/kube-system"}) {
    LK_RETURN_IF_ERROR(Await(Part::kApiServer, client, target, patience));
  }
  return Status::Ok();
}

Status Cluster::InstallCrds() {
  const std::string folder = JoinPath(LK_SOURCE_DIR, "crd");
  LK_ASSIGN_OR_RETURN(const std::vector<std::string> files, ListDir(folder));
  std::vector<Json> crds;
  for (const std::string& file : files) {
    LK_ASSIGN_OR_RETURN(const std::string text, ReadFile(JoinPath(folder, file)));
    LK_ASSIGN_OR_RETURN(Json crd, ParseYaml(text, file));
    const Status made = api_->Create(kCrds, crd).status();
    if (!made.ok() && made.code() != Code::kAlreadyExists) return made.Annotate("installing " + file);
    crds.push_back(std::move(crd));
  }
  for (const Json& crd : crds) {
    const ObjectKey key = ObjectKey::Of(crd);
    Result<Json> now(Code::kNotFound, "never looked at");
    const bool met = WaitUntil([&] {
      now = api_->Get(kCrds, key);
      return now.ok() && Established(*now);
    });
    if (!met)
      return {Code::kTimeout,
              key.name + " is not Established: " + (now.ok() ? now->Get("status").Dump() : now.status().ToString())};
    const Json& names = crd.At({"spec", "names"});
    const Resource resource{"lockkeeper.dev", "v1alpha1", names.Get("plural").AsString(), names.Get("kind").AsString()};
    // A write without a name is refused, and has been held back for as long as the first one of a new kind is.
    const Json nameless = Json::MakeObject({{"apiVersion", resource.ApiVersion()},
                                            {"kind", resource.kind},
                                            {"metadata", Json::MakeObject({{"namespace", "default"}})}});
    Status refused;
    const bool served = WaitUntil([&] {
      refused = api_->Create(resource, nameless).status();
      return refused.code() == Code::kInvalid;
    });
    if (!served) return {Code::kTimeout, key.name + " is Established and not served: " + refused.ToString()};
  }
  return Status::Ok();
}

pid_t Cluster::pid(Part part) const { return Of(part).child ? Of(part).child->pid() : -1; }

Status Cluster::Kill(Part part) {
  Of(part).child.reset();  // its destructor is that
  return Status::Ok();
}

Status Cluster::Terminate(Part part) {
  if (!running(part)) return Status::Ok();
  Of(part).child->Signal(SIGTERM);
  const Status ended = Of(part).child->Wait(std::chrono::seconds(30)).status();
  Of(part).child.reset();
  return ended;
}

void Cluster::Stop(Part part) {
  if (!running(part)) return;
  Of(part).child->Signal(SIGSTOP);
  // Its threads stop one after the other; only then does it answer nothing.
  siginfo_t info{};
  while (::waitid(P_PID, static_cast<id_t>(pid(part)), &info, WSTOPPED | WEXITED | WNOWAIT) != 0 && errno == EINTR) {
  }
}

void Cluster::Continue(Part part) {
  if (running(part)) Of(part).child->Signal(SIGCONT);
}

Status Cluster::Restart(Part part, std::vector<std::string> more_args) {
  Of(part).more_args = std::move(more_args);
  LK_RETURN_IF_ERROR(Launch(part));
  if (part == Part::kApiServer) return AwaitReady();
  LK_RETURN_IF_ERROR(AwaitEtcd());
  return running(Part::kApiServer) ? AwaitReady() : Status::Ok();
}

Result<std::string> Cluster::EtcdCtl(std::vector<std::string> args) const {
  SubprocessOptions options;
  LK_ASSIGN_OR_RETURN(const std::string program, FindProgram("etcdctl"));
  options.argv = {program, "--endpoints=" + EtcdUrl(), "--cacert=" + Path("ca.crt"),
                  "--cert=" + Path("etcd-client.crt"), "--key=" + Path("etcd-client.key")};
  options.argv.insert(options.argv.end(), args.begin(), args.end());
  options.dies_with_us = true;
  return RunProcess(options);
}

Status Cluster::Snapshot(const std::string& file) { return EtcdCtl({"snapshot", "save", file}).status(); }

Status Cluster::Restore(const std::string& file) {
  SubprocessOptions options;
  LK_ASSIGN_OR_RETURN(const std::string program, FindProgram("etcdutl"));
  LK_RETURN_IF_ERROR(Kill(Part::kApiServer));
  LK_RETURN_IF_ERROR(Kill(Part::kEtcd));
  const std::string old = Path(etcd_data_);
  etcd_data_ += "+";
  const std::string peer = "http://127.0.0.1:" + std::to_string(etcd_peer_port_);
  options.argv = {program,
                  "snapshot",
                  "restore",
                  file,
                  "--data-dir=" + Path(etcd_data_),
                  "--initial-cluster=default=" + peer,
                  "--initial-advertise-peer-urls=" + peer};
  options.dies_with_us = true;
  LK_RETURN_IF_ERROR(RunProcess(options).status());
  LK_RETURN_IF_ERROR(RemoveTree(old));
  LK_RETURN_IF_ERROR(Restart(Part::kEtcd));
  return Restart(Part::kApiServer);
}

Result<int64_t> Cluster::Compact() {
  LK_ASSIGN_OR_RETURN(const std::string text, EtcdCtl({"endpoint", "status", "--write-out=json"}));
  LK_ASSIGN_OR_RETURN(const Json status, Json::Parse(text));
  if (status.empty()) return Status(Code::kInternal, "etcdctl endpoint status said " + text);
  const int64_t revision = status.AsArray().front().At({"Status", "header", "revision"}).AsInt();
  LK_RETURN_IF_ERROR(EtcdCtl({"compact", std::to_string(revision), "--physical"}).status());
  return revision;
}

std::string Cluster::LogTail(Part part, size_t lines) const {
  const std::string text = ReadFile(LogPath(part)).value_or("");
  size_t at = text.size();
  for (size_t i = 0; i <= lines && at != std::string::npos && at > 0; ++i) at = text.rfind('\n', at - 1);
  return at == std::string::npos ? text : text.substr(at);
}

}  // namespace lockkeeper::peers
