// Lab: a whole lockkeeper in a temporary folder, as a user has it: `lockkeeper up`, kubectl, builds, load.
//
// Purpose:   what the demo, the end-to-end tests and the benchmarks share. Fronts and API listen on free ports.
// Ownership: the destructor ends every process whose command line names the folder, and removes it.
// Threads:   one thread, but for Api(), which is thread-safe.
// Failure:   Status; nothing throws.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/base/unique_fd.h"
#include "controller/http_api.h"
#include "tests/load/load.h"
#include "tests/support/subprocess.h"

namespace lockkeeper {

struct LabOptions {
  std::string lockkeeper;                  // path of the program
  std::string kubectl;                     // path, or "" where a test needs none
  std::string folder;                      // "": a fresh one in $TMPDIR or /tmp
  std::map<std::string, std::string> env;  // for up, and so for the slots' environment where a template passes it on
  std::vector<std::string> up_args;
  bool split = false;  // Up and Down: apiserver, manager and agent, as processes of their own
};

// Paths of kubeconfigs of an API server that is not ours.
struct LabApi {
  std::string admin, manager, agent;
};

class Lab {
 public:
  explicit Lab(LabOptions options);
  ~Lab();

  const std::string& data() const { return data_; }
  const std::string& program() const { return options_.lockkeeper; }
  std::string kubeconfig() const {
    return outside_ ? outside_->admin : data_ + (options_.split ? "/api" : "") + "/admin.kubeconfig";
  }
  // A port that was free a moment ago.
  static int FreePort();
  // A listener on a loopback port that nobody else can have until it is closed.
  static UniqueFd TakePort(int* port);

  // data()/builds/VERSION/bin/kcp.
  Status Build(const std::string& version, const std::string& faults = "");
  // From now on a split lab whose apiserver is that one, and nothing that Up or Down touch. REQUIRES: before Up().
  void UseApi(LabApi api);
  // Starts `up` and waits until it serves. Answers how long it took.
  Result<double> Up();
  bool IsUp() const { return up_.has_value(); }
  pid_t up_pid() const { return up_ ? up_->pid() : -1; }
  // SIGKILL or SIGTERM, and waits for the end; answers the exit code.
  Result<int> Down(int signal);
  std::string UpLog() const;
  // One role of a split lab, "apiserver", "manager" or "agent"; as Up, Down and up_pid.
  Status StartPart(const std::string& role);
  Result<int> EndPart(const std::string& role, int signal);
  pid_t part_pid(const std::string& role) const;
  std::string PartLog(const std::string& role) const;

  // kubectl with our kubeconfig; answers its output.
  Result<std::string> Kubectl(std::vector<std::string> args, const std::string& stdin_text = "");
  // lockkeeper VERB with --data.
  Result<std::string> Verb(std::vector<std::string> args);
  SubprocessOptions VerbOptions(std::vector<std::string> args) const;
  // A client of our own. REQUIRES: Up() was ok.
  Api& api();

  // Through the front of a Server, as the admin of its shared kubeconfig.
  Result<load::LoadConfig> LoadThrough(const std::string& server, const std::string& cluster = "root");

  // Deletes Servers (with deletionPolicy Stop) and Fronts and waits until nothing of them runs.
  Status TearDown();
  // Processes whose command line names our folder, "PID COMMAND" each.
  std::vector<std::string> LeftOver() const;
  void KillAll();

 private:
  // Starts `program` and waits until its log has `word`; a log of an earlier start is not looked at.
  Result<Subprocess> StartUntil(SubprocessOptions program, const std::string& word);
  Status ConnectApi();

  LabOptions options_;
  std::string data_;
  std::optional<LabApi> outside_;
  bool own_folder_ = false;
  std::optional<Subprocess> up_;
  std::map<std::string, Subprocess> parts_;
  int api_port_ = 0;  // of a split lab; the same for each start
  std::unique_ptr<HttpApi> api_;
};

// A sample of manifests/samples with its addresses moved to free ports; `replace` are pairs of texts.
Result<std::string> Sample(const std::string& path, const std::vector<std::pair<std::string, std::string>>& replace);

}  // namespace lockkeeper
