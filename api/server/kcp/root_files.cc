#include "api/server/kcp/root_files.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "api/base/file.h"
#include "api/base/hash.h"
#include "api/base/id.h"
#include "api/server/auth.h"
#include "api/server/pki.h"

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

std::string HostOf(const std::string& url) {
  const size_t scheme = url.find("://");
  const std::string rest = scheme == std::string::npos ? url : url.substr(scheme + 3);
  return rest.substr(0, rest.find_first_of(":/"));
}

std::vector<std::string> CertificateNames(const Options& options) {
  std::vector<std::string> names = apiserver::ServingNames(options.bind_address);
  for (const std::string& host :
       {options.external_hostname, HostOf(options.shard_base_url), HostOf(options.shard_external_url)}) {
    if (!host.empty() && std::find(names.begin(), names.end(), host) == names.end()) names.push_back(host);
  }
  return names;
}

// It is its own authority: admin.kubeconfig hands out the serving certificate itself (2.17).
Result<apiserver::CertificatePair> NewPair(const Options& options) {
  return apiserver::MakeServingCertificate(nullptr, "kcp", CertificateNames(options), SystemClock().Read().wall,
                                           Seconds(365 * 86400.0));
}

Status LoadCertificate(const Options& options, RootFiles* files) {
  std::string certificate = options.tls_cert_file;
  std::string key = options.tls_private_key_file;
  if (certificate.empty()) {
    certificate = JoinPath(options.cert_dir, "apiserver.crt");
    key = JoinPath(options.cert_dir, "apiserver.key");
    if (!PathExists(certificate) || !PathExists(key)) {
      LK_ASSIGN_OR_RETURN(const apiserver::CertificatePair pair, NewPair(options));
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

std::string AdminKubeconfig(const std::string& base_url, const RootFiles& files) {
  const auto context = [&](const char* name, const char* path, const char* user, const std::string& token) {
    return apiserver::KubeconfigContext{name, base_url + path, files.certificate_pem, user, token};
  };
  return apiserver::KubeconfigText(
      {context("root", "/clusters/root", kKcpAdmin, files.kcp_admin_token),
       context("base", "", kKcpAdmin, files.kcp_admin_token),
       context("system:admin", "/clusters/system:admin", kShardAdmin, files.shard_admin_token),
       context("shard-base", "", kShardAdmin, files.shard_admin_token)});
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
  if (!options.root_directory.empty()) LK_RETURN_IF_ERROR(MakeDirs(options.root_directory, 0700));
  LK_RETURN_IF_ERROR(LoadCertificate(options, &files));
  if (options.root_directory.empty()) return files;

  const std::string sa_key = JoinPath(options.root_directory, "sa.key");
  if (!PathExists(sa_key)) {
    // An EC key: kcp's own is RSA 4096, which takes seconds to make.
    LK_ASSIGN_OR_RETURN(const apiserver::CertificatePair pair, NewPair(options));
    LK_RETURN_IF_ERROR(WriteFileAtomic(sa_key, pair.private_key_pem, 0600));
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
  return WriteFileAtomic(path, AdminKubeconfig(ExternalBaseUrl(options, port), *files), 0600);
}

}  // namespace lockkeeper::kcp
