// Certificates of a kcp-like server: an EC key and a self-signed serving certificate for a list of hosts.
//
// Ownership: values, PEM text.
// Threads:   thread-safe.
// Failure:   kInternal with OpenSSL's reason. Keys are never quoted.
#pragma once

#include <string>
#include <vector>

#include "api/base/status.h"

namespace lockkeeper::kcp {

struct ServingPair {
  std::string certificate_pem;
  std::string private_key_pem;
};

// P-256, valid for a year from an hour ago; `hosts` are DNS names and IP literals. It is its own authority, as
// kcp's admin.kubeconfig expects: certificate-authority-data is the serving certificate.
Result<ServingPair> NewServingPair(const std::vector<std::string>& hosts);

// A P-256 private key in PEM. (kcp's sa.key is RSA 4096, which takes seconds to make.)
Result<std::string> NewPrivateKeyPem();

}  // namespace lockkeeper::kcp
