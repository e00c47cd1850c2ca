// Tls: OpenSSL contexts from PEM text, for server and client.
//
// Purpose:   one place that decides versions, verification and memory modes.
// Ownership: TlsContext owns the SSL_CTX.
// Threads:   a made context may be used by any number of threads.
// Failure:   kInvalid names which PEM is wrong and OpenSSL's reason; private keys are never quoted.
#pragma once

#include <memory>
#include <string>

#include "api/base/status.h"
#include "api/transport/http_client.h"
#include "api/transport/http_server.h"

struct ssl_ctx_st;
struct bio_method_st;

namespace lockkeeper {

struct TlsContextFree {
  void operator()(ssl_ctx_st* context) const;
};
using TlsContext = std::unique_ptr<ssl_ctx_st, TlsContextFree>;

Result<TlsContext> NewServerContext(const TlsServerConfig& config);
// Verifies the chain against ca_pem alone; the name is set per connection by Channel::Connect.
Result<TlsContext> NewClientContext(const TlsClientConfig& config);

// OpenSSL's queue of errors of this thread as text, emptied.
std::string TlsErrors();

// A BIO over a socket that sends with MSG_NOSIGNAL.
const bio_method_st* QuietSocketBio();

}  // namespace lockkeeper
