// Cluster: one etcd and one kube-apiserver on loopback, made for a test and gone with it.
//
// Purpose:   the server that users have, to check on it what was built against the embedded one; and the faults of it:
//            killed, stopped (SIGSTOP), started again, restored to an older state, compacted.
// Ownership: owns both processes and a temporary folder; the destructor ends them by their pids and removes it. When
//            the test itself is killed the kernel ends the processes, and the next Cluster removes the folder.
// Threads:   one thread at a time; the Api is thread-safe.
// Failure:   a Status with the end of the part's log; kNotFound before anything is started: the programs are missing.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "controller/http_api.h"
#include "tests/integration/transport/test_pki.h"
#include "tests/support/peers/programs.h"
#include "tests/support/subprocess.h"

namespace lockkeeper::peers {

enum class Part { kEtcd, kApiServer };

class Cluster {
 public:
  // Ready within 3 s on an idle machine, given 90.
  static Result<std::unique_ptr<Cluster>> Start();
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  const std::string& url() const { return url_; }  // "https://127.0.0.1:PORT"; the same after a Restart
  const std::string& ca_pem() const { return pki_.ca_pem(); }
  const testing::KeyPair& admin() const { return admin_; }  // of the group system:masters
  const std::string& folder() const { return folder_; }
  std::string kubeconfig() const;  // the admin's, a file with all inside
  RestConfig Rest() const;
  HttpClientConfig Http() const;  // for requests as they stand on the wire
  // Ours, as the admin; its tries are short and it does not go on for long, so that a test sees an outage.
  HttpApi& api() { return *api_; }
  Ran Kubectl(std::vector<std::string> args, const std::string& stdin_text = "") const;

  // What crd/ holds, and the wait until each kind can be written (2 s: a new kind's first write is held back).
  Status InstallCrds();

  pid_t pid(Part part) const;
  bool running(Part part) const { return pid(part) > 0; }
  Status Kill(Part part);       // SIGKILL; gone when it returns
  Status Terminate(Part part);  // SIGTERM, and at most 30 s
  void Stop(Part part);         // SIGSTOP
  void Continue(Part part);
  // Kills it where it runs, starts it on its old address and data, waits until it is ready (the API server with etcd
  // only). `more_args` replace those of the last start.
  Status Restart(Part part, std::vector<std::string> more_args = {});
  // Whether the API server says /readyz and has its namespaces, waited for.
  Status AwaitReady(std::chrono::milliseconds patience = std::chrono::seconds(90));

  Status Snapshot(const std::string& file);
  // Both parts are killed, etcd begins from the snapshot, both are ready again when it returns.
  Status Restore(const std::string& file);
  // Everything before now; answers the revision. The API server still answers from its watch cache until restarted.
  Result<int64_t> Compact();

  std::string LogTail(Part part, size_t lines = 15) const;

 private:
  struct Process {
    std::optional<Subprocess> child;
    std::vector<std::string> more_args;
  };

  Cluster() = default;
  Status Prepare();
  Status WriteFiles();
  Status Launch(Part part);
  Status AwaitEtcd();
  // Until GET `target` answers 200 or the part has ended.
  Status Await(Part part, HttpClient& client, const std::string& target, std::chrono::milliseconds patience);
  std::vector<std::string> Arguments(Part part) const;
  Result<std::string> EtcdCtl(std::vector<std::string> args) const;
  std::string Path(const std::string& name) const;
  std::string LogPath(Part part) const;
  std::string EtcdUrl() const;
  Process& Of(Part part) { return part == Part::kEtcd ? etcd_ : api_server_; }
  const Process& Of(Part part) const { return part == Part::kEtcd ? etcd_ : api_server_; }

  testing::TestPki pki_;
  testing::KeyPair admin_;
  std::string folder_, url_;
  std::string etcd_data_ = "etcd";  // a new one after each Restore
  int etcd_port_ = 0, etcd_peer_port_ = 0, port_ = 0;
  Process etcd_, api_server_;
  std::unique_ptr<HttpApi> api_;
};

}  // namespace lockkeeper::peers
