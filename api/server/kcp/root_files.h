// RootFiles: what a kcp keeps in its root directory: certificate, keys, admin token, admin.kubeconfig.
//
// Purpose:   the rules that a roll must respect. The shard-admin token lives on: .admin-token-store holds its
//            SHA-256 (32 raw bytes), the token itself stands only in admin.kubeconfig; with one of both alone the
//            start fails, with neither a new token is made. kcp-admin gets a new token at every start.
// Ownership: values. Files are 0600 in a folder of mode 0700.
// Threads:   one caller at a time per root directory.
// Failure:   kPrecondition with kcp's two sentences about the token; else the file's Status. Tokens are never part
//            of a message.
#pragma once

#include <string>

#include "api/base/status.h"
#include "api/server/kcp/options.h"

namespace lockkeeper::kcp {

struct RootFiles {
  std::string certificate_pem;
  std::string private_key_pem;
  std::string shard_admin_hash;   // 64 hexadecimal digits
  std::string shard_admin_token;  // empty until admin.kubeconfig was read or written
  std::string kcp_admin_token;
};

// Before the port is known: makes what is missing (apiserver.crt and .key, sa.key, the token store) and reads it.
Result<RootFiles> PrepareRootFiles(const Options& options);

// Rewrites admin.kubeconfig for `port`. `files` has been prepared with the same options.
Status WriteAdminKubeconfig(const Options& options, int port, RootFiles* files);

// "https://host:port" that clients use: of --shard-base-url, else --external-hostname or the bind address.
std::string ExternalBaseUrl(const Options& options, int port);

}  // namespace lockkeeper::kcp
