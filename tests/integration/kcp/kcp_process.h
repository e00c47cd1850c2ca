// KcpProcess: one kcp-like process of a test, in a folder of its own, spoken to over its own port.
//
// Ownership: the process ends (SIGKILL) with the object; the folder is the test's.
// Threads:   one thread at a time.
// Failure:   gtest failures with the process's standard error.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/base/json.h"
#include "api/transport/http_client.h"

namespace lockkeeper::kcp {

// All times of the processes are scaled by this: a Lease of 60 s lasts 3 s.
inline constexpr double kScale = 0.05;

// Polls until `done` holds; false after `patience`.
bool Eventually(const std::function<bool()>& done,
                std::chrono::milliseconds patience = std::chrono::milliseconds(20000));

// A folder below the temporary one, removed at the end.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

class KcpProcess {
 public:
  struct Setup {
    std::string slot;                  // names the folder below `dir` and stands in the logs
    std::vector<std::string> flags{};  // beside those of Start
    std::map<std::string, std::string> env{};
    std::string executable{};  // "": the test program kcp_like
    bool election = true;
    bool own_store = false;  // no --etcd-servers
  };

  KcpProcess(const TempDir& dir, Setup setup);
  ~KcpProcess();

  // Starts it on a free port of 127.0.0.1 with the store and the logs of `dir`.
  void Start();
  // Waits until it listens; then port() is known.
  bool AwaitListening();
  bool AwaitReady();
  void Signal(int signal);
  // The exit code, -N for signal N; nothing when it still runs after `patience`.
  std::optional<int> AwaitExit(std::chrono::milliseconds patience = std::chrono::milliseconds(20000));
  bool Running();

  pid_t pid() const { return pid_; }
  int port() const { return port_; }
  std::string root() const { return root_; }
  std::string Errors() const;
  // Standard error holds this text.
  bool Says(const std::string& text) const;

  // The token of a user of this root's admin.kubeconfig; "" when there is none.
  std::string Token(const std::string& user) const;
  // `token`: "shard-admin", "kcp-admin", "" for none, else the token itself.
  Result<ClientResponse> Call(const std::string& method, const std::string& path, const std::string& token,
                              const std::string& body = "");
  int StatusOf(const std::string& method, const std::string& path, const std::string& token,
               const std::string& body = "");
  // The object at `path` as shard-admin; null when the answer is no 200.
  Json Get(const std::string& path);
  std::string LeaseHolder();
  // Creates a Workspace below `parent`; the status of the answer.
  int CreateWorkspace(const std::string& name, const std::string& parent = "root");
  std::string WorkspacePhase(const std::string& name, const std::string& parent = "root");
  HttpClient& client();

 private:
  const TempDir& dir_;
  const Setup setup_;
  const std::string root_;
  const std::string error_file_;
  pid_t pid_ = -1;
  int port_ = 0;
  std::optional<int> exit_;
  std::unique_ptr<HttpClient> client_;
};

inline constexpr char kLeasePath[] =
    "/clusters/system:admin/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kcp-controllers";

}  // namespace lockkeeper::kcp
