#include "api/server/kcp/certificate.h"

#include <arpa/inet.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <memory>

namespace lockkeeper::kcp {
namespace {

template <auto Free>
struct Deleter {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Deleter<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Deleter<X509_free>>;
using Memory = std::unique_ptr<BIO, Deleter<BIO_vfree>>;
using Extension = std::unique_ptr<X509_EXTENSION, Deleter<X509_EXTENSION_free>>;

Status Failed(const std::string& attempt) {
  char reason[160] = "no reason given";
  if (const unsigned long error = ERR_get_error(); error != 0) ERR_error_string_n(error, reason, sizeof(reason));
  ERR_clear_error();
  return Status(Code::kInternal, attempt + ": " + reason);
}

std::string TextOf(BIO* memory) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(memory, &data);
  return std::string(data, static_cast<size_t>(size));
}

Result<std::string> KeyPem(EVP_PKEY* key) {
  const Memory out(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_PrivateKey(out.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return Failed("writing a private key");
  }
  return TextOf(out.get());
}

bool IsIp(const std::string& host) {
  unsigned char address[sizeof(in6_addr)];
  return inet_pton(AF_INET, host.c_str(), address) == 1 || inet_pton(AF_INET6, host.c_str(), address) == 1;
}

bool AddExtension(X509* certificate, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
  return extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1;
}

bool SetSerial(X509* certificate) {
  unsigned char bytes[8];
  if (RAND_bytes(bytes, sizeof(bytes)) != 1) return false;
  uint64_t serial = 0;
  for (const unsigned char b : bytes) serial = serial << 8 | b;
  return ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial >> 1 | 1) == 1;
}

bool Fill(X509* certificate, EVP_PKEY* key, const std::vector<std::string>& hosts) {
  std::string names;
  for (const std::string& host : hosts) {
    names += (names.empty() ? "" : ",") + std::string(IsIp(host) ? "IP:" : "DNS:") + host;
  }
  X509_NAME* subject = X509_get_subject_name(certificate);
  const auto* common = reinterpret_cast<const unsigned char*>(hosts.front().c_str());
  return X509_set_version(certificate, 2) == 1 && SetSerial(certificate) &&
         X509_gmtime_adj(X509_getm_notBefore(certificate), -3600) != nullptr &&
         X509_gmtime_adj(X509_getm_notAfter(certificate), 365L * 24 * 3600) != nullptr &&
         X509_set_pubkey(certificate, key) == 1 &&
         X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, common, -1, -1, 0) == 1 &&
         X509_set_issuer_name(certificate, subject) == 1 &&
         AddExtension(certificate, NID_basic_constraints, "critical,CA:TRUE") &&
         AddExtension(certificate, NID_key_usage, "critical,digitalSignature,keyCertSign") &&
         AddExtension(certificate, NID_ext_key_usage, "serverAuth") &&
         AddExtension(certificate, NID_subject_key_identifier, "hash") &&
         AddExtension(certificate, NID_subject_alt_name, names);
}

}  // namespace

Result<ServingPair> NewServingPair(const std::vector<std::string>& hosts) {
  if (hosts.empty()) return Status(Code::kInvalid, "making a serving certificate: no host is given");
  const Key key(EVP_EC_gen("P-256"));
  const Certificate certificate(X509_new());
  if (!key || !certificate || !Fill(certificate.get(), key.get(), hosts) ||
      X509_sign(certificate.get(), key.get(), EVP_sha256()) == 0) {
    return Failed("making a serving certificate");
  }
  const Memory out(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509(out.get(), certificate.get()) != 1) return Failed("writing a serving certificate");
  LK_ASSIGN_OR_RETURN(std::string key_pem, KeyPem(key.get()));
  return ServingPair{TextOf(out.get()), std::move(key_pem)};
}

Result<std::string> NewPrivateKeyPem() {
  const Key key(EVP_EC_gen("P-256"));
  if (!key) return Failed("making a private key");
  return KeyPem(key.get());
}

}  // namespace lockkeeper::kcp
