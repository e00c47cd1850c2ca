// Kubeconfig: from files and environment to how to reach one API server.
//
// Purpose:   kubectl's loading rules. Order: an explicit path alone; else the list of $KUBECONFIG; else the pod's
//            service account; else ~/.kube/config. Clusters, users and contexts merge by name (the first file that has
//            a name wins with its whole entry), current-context is the first that is set, relative paths count from
//            their own file, unknown keys are ignored.
// Ownership: values; the credential source is shared with the clients made from it.
// Threads:   thread-safe.
// Failure:   kNotFound and kInvalid name the file, the entry and the way out. insecure-skip-tls-verify beside a CA is
//            an error, as in client-go.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/base/json.h"
#include "api/base/time.h"
#include "controller/credentials.h"

namespace lockkeeper {

// How to reach one API server.
struct RestConfig {
  std::string server{};   // "https://host:port/prefix"
  std::string ca_pem{};   // when there is no file
  std::string ca_file{};  // read again for each new TLS context
  std::string tls_server_name{};
  bool insecure_skip_verify = false;
  std::string namespace_ = "default";
  std::shared_ptr<CredentialSource> credentials{};  // never null
  std::string source{};  // "context \"kcp\" of /etc/x/kubeconfig", "service account", for messages
};

struct KubeconfigOptions {
  std::string explicit_path{};  // --kubeconfig
  std::string context{};        // --context; empty: current-context
  std::string namespace_{};     // --namespace; empty: the context's
  bool allow_in_cluster = true;
  // For tests: the environment, and the service account's folder.
  std::function<std::optional<std::string>(const std::string&)> environment{};
  std::string service_account_dir = "/var/run/secrets/kubernetes.io/serviceaccount";
  const Clock* clock = nullptr;  // SystemClock()
};

Result<RestConfig> LoadRestConfig(const KubeconfigOptions& options);

// The files of `paths` merged into one kubeconfig (members clusters, users, contexts as maps by name, and
// current-context), paths made absolute. Missing files are skipped unless `must_exist`.
Result<Json> MergeKubeconfigs(const std::vector<std::string>& paths, bool must_exist);
// One context of a merged kubeconfig.
Result<RestConfig> ResolveContext(const Json& merged, const KubeconfigOptions& options);

}  // namespace lockkeeper
