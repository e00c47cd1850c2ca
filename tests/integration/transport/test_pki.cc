#include "tests/integration/transport/test_pki.h"

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "api/base/status.h"

namespace lockkeeper::testing {

namespace {

template <typename Write>
std::string ToPem(Write write) {
  BIO* bio = BIO_new(BIO_s_mem());
  LK_CHECK(write(bio) == 1);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  std::string out(data, static_cast<size_t>(size));
  BIO_free(bio);
  return out;
}

KeyPair Export(X509* certificate, EVP_PKEY* key) {
  return {ToPem([=](BIO* bio) { return PEM_write_bio_X509(bio, certificate); }),
          ToPem([=](BIO* bio) { return PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr); })};
}

void Extend(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str());
  LK_CHECK(extension != nullptr);
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

}  // namespace

struct TestPki::Impl {
  EVP_PKEY* key = nullptr;
  X509* certificate = nullptr;
  long serial = 1;

  static void Name(X509* x, const char* what, const std::string& value) {
    X509_NAME_add_entry_by_txt(X509_get_subject_name(x), what, MBSTRING_UTF8,
                               reinterpret_cast<const unsigned char*>(value.c_str()), -1, -1, 0);
  }

  X509* New(const std::string& name, EVP_PKEY* subject_key, long from, long to) {
    X509* x = X509_new();
    X509_set_version(x, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(x), serial++);
    X509_gmtime_adj(X509_getm_notBefore(x), from);
    X509_gmtime_adj(X509_getm_notAfter(x), to);
    Name(x, "CN", name);
    X509_set_pubkey(x, subject_key);
    return x;
  }
};

TestPki::TestPki() : impl_(std::make_unique<Impl>()) {
  impl_->key = EVP_EC_gen("P-256");
  X509* x = impl_->certificate = impl_->New("test CA", impl_->key, -3600, 86400);
  X509_set_issuer_name(x, X509_get_subject_name(x));
  Extend(x, x, NID_basic_constraints, "critical,CA:TRUE");
  Extend(x, x, NID_key_usage, "critical,keyCertSign,cRLSign");
  LK_CHECK(X509_sign(x, impl_->key, EVP_sha256()) > 0);
  ca_ = Export(x, impl_->key);
}

TestPki::~TestPki() {
  X509_free(impl_->certificate);
  EVP_PKEY_free(impl_->key);
}

KeyPair TestPki::Issue(const Subject& subject) {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* x = impl_->New(subject.common_name, key, -7200, subject.expired ? -3600 : 86400);
  if (!subject.organization.empty()) Impl::Name(x, "O", subject.organization);
  X509_set_issuer_name(x, X509_get_subject_name(impl_->certificate));
  Extend(x, impl_->certificate, NID_basic_constraints, "critical,CA:FALSE");
  Extend(x, impl_->certificate, NID_ext_key_usage,
         subject.both     ? "serverAuth,clientAuth"
         : subject.client ? "clientAuth"
                          : "serverAuth");
  std::string names;
  for (const auto& name : subject.dns_names) names += (names.empty() ? "DNS:" : ",DNS:") + name;
  for (const auto& ip : subject.ip_addresses) names += (names.empty() ? "IP:" : ",IP:") + ip;
  if (!names.empty()) Extend(x, impl_->certificate, NID_subject_alt_name, names);
  LK_CHECK(X509_sign(x, impl_->key, EVP_sha256()) > 0);
  KeyPair out = Export(x, key);
  X509_free(x);
  EVP_PKEY_free(key);
  return out;
}

}  // namespace lockkeeper::testing
