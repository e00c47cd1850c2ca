#include "api/server/pki.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <memory>
#include <utility>

#include "api/base/file.h"
#include "api/base/log.h"

namespace lockkeeper::apiserver {
namespace {

constexpr Duration kDay = Seconds(86400);
constexpr Duration kCaValidity = 3650 * kDay;
constexpr Duration kServingValidity = 365 * kDay;
// From then on a start makes a new serving certificate: the last third of its life.
constexpr Duration kServingRenewBefore = 120 * kDay;
// Clocks of clients may be a little behind.
constexpr Duration kBackdate = Seconds(3600);

struct Free {
  void operator()(EVP_PKEY* p) const { EVP_PKEY_free(p); }
  void operator()(X509* p) const { X509_free(p); }
  void operator()(BIO* p) const { BIO_free(p); }
  void operator()(X509_EXTENSION* p) const { X509_EXTENSION_free(p); }
  void operator()(GENERAL_NAMES* p) const { GENERAL_NAMES_free(p); }
};
template <typename T>
using Owned = std::unique_ptr<T, Free>;

Status SslError(const std::string& attempt) {
  std::string text = attempt;
  while (const unsigned long code = ERR_get_error()) {
    char buffer[200];
    ERR_error_string_n(code, buffer, sizeof(buffer));
    text += std::string(": ") + buffer;
  }
  return {Code::kInternal, std::move(text)};
}

std::string Drain(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return {data, static_cast<size_t>(size)};
}

Result<Owned<X509>> ReadCertificate(const std::string& pem) {
  Owned<BIO> bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  Owned<X509> cert(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  if (!cert) return SslError("read a PEM certificate");
  return cert;
}

Result<Owned<EVP_PKEY>> ReadKey(const std::string& pem) {
  Owned<BIO> bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  Owned<EVP_PKEY> key(PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr));
  if (!key) return SslError("read a PEM private key");
  return key;
}

Result<Owned<EVP_PKEY>> MakeKey() {
  Owned<EVP_PKEY> key(EVP_EC_gen("P-256"));
  if (!key) return SslError("make an EC P-256 key");
  return key;
}

Result<std::string> KeyPem(EVP_PKEY* key) {
  Owned<BIO> bio(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1)
    return SslError("write a key");
  return Drain(bio.get());
}

Result<std::string> CertificatePem(X509* cert) {
  Owned<BIO> bio(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509(bio.get(), cert) != 1) return SslError("write a certificate");
  return Drain(bio.get());
}

bool AddExtension(X509* cert, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, cert, nullptr, nullptr, 0);
  Owned<X509_EXTENSION> extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
  return extension && X509_add_ext(cert, extension.get(), -1) == 1;
}

bool IsIp(const std::string& name) {
  unsigned char buffer[16];
  return ::inet_pton(AF_INET, name.c_str(), buffer) == 1 || ::inet_pton(AF_INET6, name.c_str(), buffer) == 1;
}

time_t ToSeconds64(Time t) { return std::chrono::duration_cast<std::chrono::seconds>(t.time_since_epoch()).count(); }

// Subject, serial and validity: what a CA and a serving certificate have in common.
Result<Owned<X509>> Draft(const std::string& common_name, EVP_PKEY* key, Time from, Time to) {
  Owned<X509> cert(X509_new());
  X509_set_version(cert.get(), X509_VERSION_3);
  unsigned char serial[16];
  if (RAND_bytes(serial, sizeof(serial)) != 1) return SslError("draw a serial number");
  serial[0] &= 0x7f;
  serial[0] |= 0x40;
  BIGNUM* number = BN_bin2bn(serial, sizeof(serial), nullptr);
  BN_to_ASN1_INTEGER(number, X509_get_serialNumber(cert.get()));
  BN_free(number);
  ASN1_TIME_set(X509_getm_notBefore(cert.get()), ToSeconds64(from));
  ASN1_TIME_set(X509_getm_notAfter(cert.get()), ToSeconds64(to));
  X509_NAME* subject = X509_get_subject_name(cert.get());
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, reinterpret_cast<const unsigned char*>(common_name.c_str()),
                             -1, -1, 0);
  if (X509_set_pubkey(cert.get(), key) != 1) return SslError("set the key of a certificate");
  return cert;
}

Result<CertificatePair> Finish(X509* cert, EVP_PKEY* key, EVP_PKEY* signer) {
  if (X509_sign(cert, signer, EVP_sha256()) == 0) return SslError("sign a certificate");
  CertificatePair pair;
  LK_ASSIGN_OR_RETURN(pair.certificate_pem, CertificatePem(cert));
  LK_ASSIGN_OR_RETURN(pair.private_key_pem, KeyPem(key));
  return pair;
}

Result<Time> ToTime(const ASN1_TIME* asn1) {
  std::tm tm{};
  if (ASN1_TIME_to_tm(asn1, &tm) != 1) return SslError("read a certificate's time");
  return Time(std::chrono::seconds(::timegm(&tm)));
}

}  // namespace

Result<CertificatePair> MakeCa(const std::string& common_name, Time now, Duration validity) {
  LK_ASSIGN_OR_RETURN(Owned<EVP_PKEY> key, MakeKey());
  LK_ASSIGN_OR_RETURN(Owned<X509> cert, Draft(common_name, key.get(), now - kBackdate, now + validity));
  X509_set_issuer_name(cert.get(), X509_get_subject_name(cert.get()));
  if (!AddExtension(cert.get(), cert.get(), NID_basic_constraints, "critical,CA:TRUE,pathlen:0") ||
      !AddExtension(cert.get(), cert.get(), NID_key_usage, "critical,keyCertSign,cRLSign,digitalSignature") ||
      !AddExtension(cert.get(), cert.get(), NID_subject_key_identifier, "hash")) {
    return SslError("describe a CA certificate");
  }
  return Finish(cert.get(), key.get(), key.get());
}

Result<CertificatePair> MakeServingCertificate(const CertificatePair* ca, const std::string& common_name,
                                               const std::vector<std::string>& names, Time now, Duration validity) {
  Time until = now + validity;
  Owned<X509> ca_cert;
  Owned<EVP_PKEY> ca_key;
  if (ca != nullptr) {
    LK_ASSIGN_OR_RETURN(ca_cert, ReadCertificate(ca->certificate_pem));
    LK_ASSIGN_OR_RETURN(ca_key, ReadKey(ca->private_key_pem));
    LK_ASSIGN_OR_RETURN(const Time ca_until, ToTime(X509_get0_notAfter(ca_cert.get())));
    until = std::min(until, ca_until);
  }
  LK_ASSIGN_OR_RETURN(Owned<EVP_PKEY> key, MakeKey());
  LK_ASSIGN_OR_RETURN(Owned<X509> cert, Draft(common_name, key.get(), now - kBackdate, until));
  X509* issuer = ca_cert ? ca_cert.get() : cert.get();
  X509_set_issuer_name(cert.get(), X509_get_subject_name(issuer));
  std::string alternatives;
  for (const std::string& name : names) {
    if (!alternatives.empty()) alternatives += ",";
    alternatives += (IsIp(name) ? "IP:" : "DNS:") + name;
  }
  // A self-signed one is given to clients as their root, which Go accepts only from a certificate that may sign.
  const char* constraints = ca == nullptr ? "critical,CA:TRUE" : "critical,CA:FALSE";
  const char* usage = ca == nullptr ? "critical,digitalSignature,keyCertSign" : "critical,digitalSignature";
  if (!AddExtension(cert.get(), issuer, NID_basic_constraints, constraints) ||
      !AddExtension(cert.get(), issuer, NID_key_usage, usage) ||
      !AddExtension(cert.get(), issuer, NID_ext_key_usage, "serverAuth") ||
      !AddExtension(cert.get(), issuer, NID_subject_key_identifier, "hash") ||
      (ca != nullptr && !AddExtension(cert.get(), issuer, NID_authority_key_identifier, "keyid")) ||
      (!names.empty() && !AddExtension(cert.get(), issuer, NID_subject_alt_name, alternatives))) {
    return SslError("describe a serving certificate for " + alternatives);
  }
  return Finish(cert.get(), key.get(), ca_key ? ca_key.get() : key.get());
}

Result<CertificateInfo> InspectCertificate(const std::string& certificate_pem) {
  LK_ASSIGN_OR_RETURN(Owned<X509> cert, ReadCertificate(certificate_pem));
  CertificateInfo info;
  char common_name[256] = "";
  X509_NAME_get_text_by_NID(X509_get_subject_name(cert.get()), NID_commonName, common_name, sizeof(common_name));
  info.subject_common_name = common_name;
  LK_ASSIGN_OR_RETURN(info.not_before, ToTime(X509_get0_notBefore(cert.get())));
  LK_ASSIGN_OR_RETURN(info.not_after, ToTime(X509_get0_notAfter(cert.get())));
  info.is_ca = X509_check_ca(cert.get()) != 0;
  Owned<GENERAL_NAMES> names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(cert.get(), NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; names && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type == GEN_DNS) {
      info.names.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(name->d.dNSName)),
                              static_cast<size_t>(ASN1_STRING_length(name->d.dNSName)));
    } else if (name->type == GEN_IPADD) {
      char text[INET6_ADDRSTRLEN] = "";
      const int family = ASN1_STRING_length(name->d.iPAddress) == 4 ? AF_INET : AF_INET6;
      ::inet_ntop(family, ASN1_STRING_get0_data(name->d.iPAddress), text, sizeof(text));
      info.names.emplace_back(text);
    }
  }
  return info;
}

Status CheckPair(const CertificatePair& pair, const std::string& ca_pem) {
  LK_ASSIGN_OR_RETURN(Owned<X509> cert, ReadCertificate(pair.certificate_pem));
  LK_ASSIGN_OR_RETURN(Owned<EVP_PKEY> key, ReadKey(pair.private_key_pem));
  LK_ASSIGN_OR_RETURN(Owned<X509> ca, ReadCertificate(ca_pem));
  if (X509_check_private_key(cert.get(), key.get()) != 1) {
    ERR_clear_error();
    return {Code::kInvalid, "the private key does not belong to the certificate"};
  }
  if (X509_verify(cert.get(), X509_get0_pubkey(ca.get())) != 1) {
    ERR_clear_error();
    return {Code::kInvalid, "the certificate is not signed by this CA"};
  }
  return Status::Ok();
}

std::vector<std::string> ServingNames(const std::string& listen_address) {
  std::vector<std::string> names = {"localhost", "127.0.0.1", "::1"};
  std::string more = listen_address;
  if (more == "0.0.0.0" || more == "::" || more.empty()) {
    char host[256] = "";
    more = ::gethostname(host, sizeof(host) - 1) == 0 ? host : "";
  }
  if (!more.empty() && std::find(names.begin(), names.end(), more) == names.end()) names.push_back(more);
  return names;
}

Result<ServingPki> EnsureServingPki(const std::string& dir, const std::vector<std::string>& names, Time now) {
  LK_RETURN_IF_ERROR(MakeDirs(dir, 0700));
  const std::string ca_crt = JoinPath(dir, "ca.crt");
  const std::string ca_key = JoinPath(dir, "ca.key");
  const std::string crt = JoinPath(dir, "server.crt");
  const std::string key = JoinPath(dir, "server.key");
  ServingPki pki;
  CertificatePair ca;
  if (!PathExists(ca_crt) && !PathExists(ca_key)) {
    LK_ASSIGN_OR_RETURN(ca, MakeCa("lockkeeper-ca", now, kCaValidity));
    // The key first: a certificate without its key would be refused at the next start.
    LK_RETURN_IF_ERROR(WriteFileAtomic(ca_key, ca.private_key_pem, 0600));
    LK_RETURN_IF_ERROR(WriteFileAtomic(ca_crt, ca.certificate_pem, 0644));
    pki.made_ca = true;
  } else if (PathExists(ca_key) && !PathExists(ca_crt)) {
    // A crash between the two writes above; nobody has seen this CA yet.
    LK_RETURN_IF_ERROR(RemoveFile(ca_key));
    return EnsureServingPki(dir, names, now);
  } else {
    LK_ASSIGN_OR_RETURN(ca.certificate_pem, ReadFile(ca_crt));
    LK_ASSIGN_OR_RETURN(ca.private_key_pem, ReadFile(ca_key));
    if (const Status good = CheckPair(ca, ca.certificate_pem); !good.ok()) {
      return Status(Code::kInvalid,
                    "the CA in " + dir + " cannot be used (" + good.message() +
                        "): put ca.crt and ca.key back, or remove both to have a new CA made (clients then "
                        "need the new kubeconfig)");
    }
  }
  pki.ca_pem = ca.certificate_pem;

  std::string why;
  CertificateInfo info;
  if (!PathExists(crt) || !PathExists(key)) {
    why = "absent";
  } else {
    LK_ASSIGN_OR_RETURN(pki.serving.certificate_pem, ReadFile(crt));
    LK_ASSIGN_OR_RETURN(pki.serving.private_key_pem, ReadFile(key));
    Result<CertificateInfo> read = InspectCertificate(pki.serving.certificate_pem);
    const Status good = CheckPair(pki.serving, ca.certificate_pem);
    if (!read.ok()) {
      why = "unreadable";
    } else if (!good.ok()) {
      why = good.message();
    } else {
      info = std::move(*read);
      const bool covered = std::all_of(names.begin(), names.end(), [&](const std::string& name) {
        return std::find(info.names.begin(), info.names.end(), name) != info.names.end();
      });
      if (!covered) why = "lacks a name";
      if (now > info.not_after - kServingRenewBefore) why = "near its end";
    }
  }
  if (!why.empty()) {
    LK_ASSIGN_OR_RETURN(pki.serving, MakeServingCertificate(&ca, "lockkeeper-apiserver", names, now, kServingValidity));
    LK_RETURN_IF_ERROR(WriteFileAtomic(key, pki.serving.private_key_pem, 0600));
    LK_RETURN_IF_ERROR(WriteFileAtomic(crt, pki.serving.certificate_pem, 0644));
    LK_ASSIGN_OR_RETURN(info, InspectCertificate(pki.serving.certificate_pem));
    LogInfo("made a serving certificate", {{"file", crt}, {"because", why}, {"until", FormatTime(info.not_after)}});
  }
  pki.renew_at = info.not_after - kServingRenewBefore;
  return pki;
}

}  // namespace lockkeeper::apiserver
