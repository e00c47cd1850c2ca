// Pki: the server's own certificate authority and serving certificate.
//
// Purpose:   TLS without any set-up: EC P-256 keys, a CA for ten years made at the first start, a serving
//            certificate for a year that is made anew in its last third. EC and not RSA, since a first start has
//            0.5 s in all and an RSA key may cost more than that.
// Ownership: values; files ca.crt, ca.key, server.crt, server.key in a folder of the caller, keys 0600.
// Threads:   pure functions but for EnsureServingPki, which one process at a time should call per folder.
// Failure:   a damaged or foreign file is named in the Status and never overwritten; a serving certificate that has
//            expired, lacks a name, or comes from another CA is replaced.
#pragma once

#include <string>
#include <vector>

#include "api/base/status.h"
#include "api/base/time.h"

namespace lockkeeper::apiserver {

struct CertificatePair {
  std::string certificate_pem;
  std::string private_key_pem;
};

struct CertificateInfo {
  std::string subject_common_name;
  std::vector<std::string> names;  // subject alternative names: DNS names and IP addresses as text
  Time not_before{};
  Time not_after{};
  bool is_ca = false;
};

// A self-signed CA valid from an hour before `now` for `validity`.
Result<CertificatePair> MakeCa(const std::string& common_name, Time now, Duration validity);
// A serving certificate for `names` (an IP address becomes an IP name), signed by `ca`, never outliving it. With a
// null `ca` it is self-signed and its own trust root.
Result<CertificatePair> MakeServingCertificate(const CertificatePair* ca, const std::string& common_name,
                                               const std::vector<std::string>& names, Time now, Duration validity);
Result<CertificateInfo> InspectCertificate(const std::string& certificate_pem);
// Whether `certificate_pem` is signed by `ca_pem` and its key is `private_key_pem`.
Status CheckPair(const CertificatePair& pair, const std::string& ca_pem);

struct ServingPki {
  std::string ca_pem;
  CertificatePair serving;
  Time renew_at{};  // the serving certificate should be made anew from then on
  bool made_ca = false;
};

// Reads or makes all four files in `dir` (made when absent, 0700).
Result<ServingPki> EnsureServingPki(const std::string& dir, const std::vector<std::string>& names, Time now);

// localhost, 127.0.0.1, ::1 and the listen address, without repeats; 0.0.0.0 and :: add the host's name.
std::vector<std::string> ServingNames(const std::string& listen_address);

}  // namespace lockkeeper::apiserver
