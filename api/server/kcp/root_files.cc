#include "api/server/kcp/root_files.h"

#include <openssl/evp.h>
#include <unistd.h>
#include <yaml-cpp/yaml.h>

#include <optional>
#include <vector>

#include "api/base/file.h"
#include "api/base/id.h"
#include "api/server/kcp/certificate.h"

namespace lockkeeper::kcp {
namespace {

constexpr char kTokenStore[] = ".admin-token-store";
constexpr char kKubeconfig[] = "admin.kubeconfig";
constexpr char kShardAdmin[] = "shard-admin";
constexpr char kKcpAdmin[] = "kcp-admin";

std::string HexToBytes(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

std::string BytesToHex(const std::string& bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (const char c : bytes) {
    hex.push_back(kDigits[static_cast<unsigned char>(c) >> 4]);
    hex.push_back(kDigits[static_cast<unsigned char>(c) & 15]);
  }
  return hex;
}

std::string Base64(const std::string& text) {
  std::string out(4 * ((text.size() + 2) / 3) + 1, '\0');
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                   reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
  out.resize(static_cast<size_t>(size));
  return out;
}

std::string HostName() {
  char name[256] = "localhost";
  gethostname(name, sizeof(name) - 1);
  return name;
}

std::string HostOf(const std::string& url) {
  const size_t scheme = url.find("://");
  const std::string rest = scheme == std::string::npos ? url : url.substr(scheme + 3);
  return rest.substr(0, rest.find_first_of(":/"));
}

std::vector<std::string> CertificateHosts(const Options& options) {
  std::vector<std::string> hosts = {"localhost", HostName(), "127.0.0.1"};
  const auto add = [&](const std::string& host) {
    if (host.empty() || host == "0.0.0.0") return;
    for (const std::string& known : hosts) {
      if (known == host) return;
    }
    hosts.push_back(host);
  };
  add(options.bind_address);
  add(options.external_hostname);
  add(HostOf(options.shard_base_url));
  add(HostOf(options.shard_external_url));
  return hosts;
}

Status LoadCertificate(const Options& options, RootFiles* files) {
  std::string certificate = options.tls_cert_file;
  std::string key = options.tls_private_key_file;
  if (certificate.empty()) {
    certificate = JoinPath(options.cert_dir, "apiserver.crt");
    key = JoinPath(options.cert_dir, "apiserver.key");
    if (!PathExists(certificate) || !PathExists(key)) {
      LK_ASSIGN_OR_RETURN(const ServingPair pair, NewServingPair(CertificateHosts(options)));
      LK_RETURN_IF_ERROR(MakeDirs(options.cert_dir, 0700));
      LK_RETURN_IF_ERROR(WriteFileAtomic(key, pair.private_key_pem, 0600));
      LK_RETURN_IF_ERROR(WriteFileAtomic(certificate, pair.certificate_pem, 0644));
    }
  }
  LK_ASSIGN_OR_RETURN(files->certificate_pem, ReadFile(certificate));
  LK_ASSIGN_OR_RETURN(files->private_key_pem, ReadFile(key));
  return Status::Ok();
}

// The token of `user` in a kubeconfig; nothing when the file or the user is absent.
Result<std::optional<std::string>> TokenIn(const std::string& path, const std::string& user) {
  auto text = ReadFile(path);
  if (text.code() == Code::kNotFound) return std::optional<std::string>();
  LK_RETURN_IF_ERROR(text.status());
  try {
    const YAML::Node document = YAML::Load(*text);
    for (const YAML::Node& entry : document["users"]) {
      if (entry["name"].as<std::string>("") == user) {
        return std::optional<std::string>(entry["user"]["token"].as<std::string>(""));
      }
    }
  } catch (const YAML::Exception& e) {
    return Status(Code::kInvalid, "reading " + path + ": " + e.what());
  }
  return std::optional<std::string>();
}

struct Endpoint {
  const char* name;
  const char* path;
  const char* user;
};
constexpr Endpoint kEndpoints[] = {{"root", "/clusters/root", kKcpAdmin},
                                   {"base", "", kKcpAdmin},
                                   {"system:admin", "/clusters/system:admin", kShardAdmin},
                                   {"shard-base", "", kShardAdmin}};

std::string KubeconfigText(const std::string& base_url, const RootFiles& files) {
  std::string text = "apiVersion: v1\nkind: Config\npreferences: {}\ncurrent-context: root\nclusters:\n";
  const std::string authority = Base64(files.certificate_pem);
  for (const Endpoint& e : kEndpoints) {
    text += "- name: \"" + std::string(e.name) + "\"\n  cluster:\n    certificate-authority-data: " + authority +
            "\n    server: " + base_url + e.path + "\n";
  }
  text += "contexts:\n";
  for (const Endpoint& e : kEndpoints) {
    text += "- name: \"" + std::string(e.name) + "\"\n  context:\n    cluster: \"" + e.name +
            "\"\n    user: " + e.user + "\n";
  }
  text += "users:\n";
  const std::pair<const char*, const std::string&> users[] = {
      {kKcpAdmin, files.kcp_admin_token}, {kShardAdmin, files.shard_admin_token}, {"user", files.user_token}};
  for (const auto& [name, token] : users) {
    text += "- name: " + std::string(name) + "\n  user:\n    token: " + token + "\n";
  }
  return text;
}

}  // namespace

std::string ExternalBaseUrl(const Options& options, int port) {
  if (!options.shard_base_url.empty()) {
    std::string url = options.shard_base_url;
    while (!url.empty() && url.back() == '/') url.pop_back();
    return url;
  }
  std::string host = options.external_hostname.empty() ? options.bind_address : options.external_hostname;
  if (host == "0.0.0.0") host = "127.0.0.1";
  if (host.find(':') != std::string::npos) host = "[" + host + "]";
  return "https://" + host + ":" + std::to_string(port);
}

Result<RootFiles> PrepareRootFiles(const Options& options) {
  RootFiles files;
  files.kcp_admin_token = NewUuid();
  files.user_token = NewUuid();
  if (!options.root_directory.empty()) LK_RETURN_IF_ERROR(MakeDirs(options.root_directory, 0700));
  LK_RETURN_IF_ERROR(LoadCertificate(options, &files));
  if (options.root_directory.empty()) return files;

  const std::string sa_key = JoinPath(options.root_directory, "sa.key");
  if (!PathExists(sa_key)) {
    LK_ASSIGN_OR_RETURN(const std::string key, NewPrivateKeyPem());
    LK_RETURN_IF_ERROR(WriteFileAtomic(sa_key, key, 0600));
  }
  const std::string store = JoinPath(options.root_directory, kTokenStore);
  auto hash = ReadFile(store);
  if (hash.ok() && !hash->empty()) {
    files.shard_admin_hash = BytesToHex(*hash);
    return files;
  }
  if (!hash.ok() && hash.code() != Code::kNotFound) return hash.status();
  files.shard_admin_token = NewUuid();
  files.shard_admin_hash = Sha256Hex(files.shard_admin_token);
  LK_RETURN_IF_ERROR(WriteFileAtomic(store, HexToBytes(files.shard_admin_hash), 0600));
  return files;
}

Status WriteAdminKubeconfig(const Options& options, int port, RootFiles* files) {
  if (options.root_directory.empty()) return Status::Ok();
  const std::string path = JoinPath(options.root_directory, kKubeconfig);
  if (files->shard_admin_token.empty()) {
    LK_ASSIGN_OR_RETURN(const std::optional<std::string> token, TokenIn(path, kShardAdmin));
    if (!token || token->empty()) {
      return Status(Code::kPrecondition,
                    "cannot create the 'admin.kubeconfig' file " + path + " without a token for " + kShardAdmin + ": " +
                        kTokenStore + " holds only its hash; bring the kubeconfig back, or remove " + kTokenStore);
    }
    if (Sha256Hex(*token) != files->shard_admin_hash) {
      return Status(Code::kPrecondition, std::string("admin token of ") + kShardAdmin + " in " + path +
                                             " is not valid anymore: its hash is another than that in " + kTokenStore +
                                             "; bring back both files of one start, or remove both");
    }
    files->shard_admin_token = *token;
  }
  return WriteFileAtomic(path, KubeconfigText(ExternalBaseUrl(options, port), *files), 0600);
}

}  // namespace lockkeeper::kcp
