// CredentialSource: where a client's token or certificate comes from, kept fresh.
//
// Purpose:   static values, files that are rotated under us, and exec plugins, behind one interface.
// Ownership: shared by the clients that use it.
// Threads:   thread-safe; a refresh runs once however many ask (the others wait for it).
// Failure:   a Status that names the file or the command; never a secret in it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/base/json.h"
#include "api/base/time.h"

namespace lockkeeper {

struct Credentials {
  std::string token{};  // bearer
  std::string username{};
  std::string password{};
  std::string certificate_pem{};
  std::string private_key_pem{};

  bool operator==(const Credentials&) const = default;
};

class CredentialSource {
 public:
  virtual ~CredentialSource() = default;
  virtual Result<Credentials> Get() = 0;
  // A server answered 401 to these: read again at the next Get, unless that has happened since.
  virtual void Refused(const Credentials& used) = 0;
};

// Each member is given inline or as a file; files win where both stand (client-go re-reads them).
struct CredentialFiles {
  Credentials inline_values{};
  std::string token_file{};
  std::string certificate_file{};
  std::string private_key_file{};
};

// Files are read again every 50 s (client-go's 60 s less 10 s of leeway) and after a 401. A file that cannot be read
// any more leaves the last value in place, with a warning.
std::shared_ptr<CredentialSource> NewFileCredentials(CredentialFiles files, const Clock& clock);

// client.authentication.k8s.io: a command that prints credentials.
struct ExecPlugin {
  std::string command{};  // absolute, or looked up in PATH
  std::vector<std::string> arguments{};
  std::vector<std::pair<std::string, std::string>> environment{};
  std::string api_version{};
  std::string install_hint{};
  bool provide_cluster_info = false;
  Json cluster_info{};  // spec.cluster, when asked for
  Duration timeout = Seconds(60);
};
// Runs the plugin when nothing is cached, 10 s before the expiry it named, and after a 401. No expiry: kept.
std::shared_ptr<CredentialSource> NewExecCredentials(ExecPlugin plugin, const Clock& clock);

}  // namespace lockkeeper
