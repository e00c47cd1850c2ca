#include "api/transport/tls.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>

namespace lockkeeper {

namespace {

struct BioFree {
  void operator()(BIO* bio) const { BIO_free(bio); }
};
struct X509Free {
  void operator()(X509* x) const { X509_free(x); }
};
struct KeyFree {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
using Bio = std::unique_ptr<BIO, BioFree>;
using Certificate = std::unique_ptr<X509, X509Free>;

Bio Reader(const std::string& pem) { return Bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()))); }

// A key behind a passphrase must not make OpenSSL ask on the terminal.
int NoPassphrase(char*, int, int, void*) { return 0; }

Status Refuse(std::string_view what) { return {Code::kInvalid, std::string(what) + ": " + TlsErrors()}; }

Status UseCertificate(SSL_CTX* context, const std::string& chain, const std::string& private_key) {
  Bio bio = Reader(chain);
  Certificate leaf(PEM_read_bio_X509(bio.get(), nullptr, NoPassphrase, nullptr));
  if (!leaf || SSL_CTX_use_certificate(context, leaf.get()) != 1) return Refuse("reading the certificate");
  while (true) {
    X509* next = PEM_read_bio_X509(bio.get(), nullptr, NoPassphrase, nullptr);
    if (next == nullptr) break;
    if (SSL_CTX_add0_chain_cert(context, next) != 1) {
      X509_free(next);
      return Refuse("adding to the certificate chain");
    }
  }
  ERR_clear_error();  // the end of the text is an error to PEM_read_bio_X509
  Bio key_bio = Reader(private_key);
  std::unique_ptr<EVP_PKEY, KeyFree> key(PEM_read_bio_PrivateKey(key_bio.get(), nullptr, NoPassphrase, nullptr));
  if (!key || SSL_CTX_use_PrivateKey(context, key.get()) != 1) return Refuse("reading the private key");
  if (SSL_CTX_check_private_key(context) != 1) return Refuse("the private key does not belong to the certificate");
  return {};
}

Status Trust(SSL_CTX* context, const std::string& pem, bool name_to_clients) {
  X509_STORE* store = SSL_CTX_get_cert_store(context);
  Bio bio = Reader(pem);
  int count = 0;
  while (true) {
    Certificate root(PEM_read_bio_X509(bio.get(), nullptr, NoPassphrase, nullptr));
    if (!root) break;
    if (X509_STORE_add_cert(store, root.get()) != 1) return Refuse("adding a trusted certificate");
    if (name_to_clients) SSL_CTX_add_client_CA(context, root.get());
    ++count;
  }
  ERR_clear_error();
  if (count == 0) return {Code::kInvalid, "the trusted certificates (CA) hold no PEM certificate"};
  return {};
}

void Common(SSL_CTX* context) {
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_mode(context,
                   SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
  // Partial chains: a kubeconfig may trust an intermediate or the serving certificate itself, as in Go.
  X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(context), X509_V_FLAG_PARTIAL_CHAIN);
}

int BioWrite(BIO* bio, const char* data, int size) {
  BIO_clear_retry_flags(bio);
  const auto n = send(static_cast<int>(reinterpret_cast<intptr_t>(BIO_get_data(bio))), data, static_cast<size_t>(size),
                      MSG_NOSIGNAL);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_write(bio);
  return static_cast<int>(n);
}

int BioRead(BIO* bio, char* data, int size) {
  BIO_clear_retry_flags(bio);
  const auto n =
      recv(static_cast<int>(reinterpret_cast<intptr_t>(BIO_get_data(bio))), data, static_cast<size_t>(size), 0);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_read(bio);
  if (n == 0) BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
  return static_cast<int>(n);
}

long BioControl(BIO* bio, int command, long, void*) {
  if (command == BIO_CTRL_EOF) return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0 ? 1 : 0;
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

int BioCreate(BIO* bio) {
  BIO_set_init(bio, 1);
  return 1;
}

}  // namespace

void TlsContextFree::operator()(ssl_ctx_st* context) const { SSL_CTX_free(context); }

std::string TlsErrors() {
  std::string out;
  while (const unsigned long error = ERR_get_error()) {
    const char* reason = ERR_reason_error_string(error);
    if (!out.empty()) out += "; ";
    out += reason != nullptr ? reason : "error " + std::to_string(error);
  }
  return out.empty() ? "no reason given" : out;
}

const bio_method_st* QuietSocketBio() {
  static const BIO_METHOD* const method = [] {
    BIO_METHOD* m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "quiet socket");
    LK_CHECK(m != nullptr);
    BIO_meth_set_write(m, BioWrite);
    BIO_meth_set_read(m, BioRead);
    BIO_meth_set_ctrl(m, BioControl);
    BIO_meth_set_create(m, BioCreate);
    return m;
  }();
  return method;
}

Result<TlsContext> NewServerContext(const TlsServerConfig& config) {
  ERR_clear_error();
  TlsContext context(SSL_CTX_new(TLS_server_method()));
  LK_CHECK(context != nullptr);
  Common(context.get());
  SSL_CTX_set_num_tickets(context.get(), 0);
  LK_RETURN_IF_ERROR(UseCertificate(context.get(), config.certificate_pem, config.private_key_pem));
  if (!config.client_ca_pem.empty()) {
    LK_RETURN_IF_ERROR(Trust(context.get(), config.client_ca_pem, true));
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  }
  return context;
}

Result<TlsContext> NewClientContext(const TlsClientConfig& config) {
  ERR_clear_error();
  TlsContext context(SSL_CTX_new(TLS_client_method()));
  LK_CHECK(context != nullptr);
  Common(context.get());
  if (config.insecure_skip_verify) {
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_NONE, nullptr);
  } else {
    if (config.ca_pem.empty()) {
      return Status(Code::kInvalid,
                    "no trusted certificates (CA) are configured, so no server can be verified; give a CA");
    }
    LK_RETURN_IF_ERROR(Trust(context.get(), config.ca_pem, false));
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  }
  if (!config.certificate_pem.empty() || !config.private_key_pem.empty()) {
    LK_RETURN_IF_ERROR(UseCertificate(context.get(), config.certificate_pem, config.private_key_pem));
  }
  return context;
}

}  // namespace lockkeeper
