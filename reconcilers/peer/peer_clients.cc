#include "reconcilers/peer/peer_clients.h"

#include <algorithm>
#include <utility>

#include "api/base/file.h"
#include "api/base/hash.h"
#include "reconcilers/peer/peer_answers.h"

namespace lockkeeper::peer {
namespace {

// More than the Servers of one host have kubeconfigs, contexts and ports at a time.
constexpr size_t kMaxCached = 64;
constexpr Duration kUnused = Seconds(30);  // beyond any poll of a slot or a lease

// A file that is not there must not read as an object that is absent.
Status AsAccessError(const Status& status) {
  if (status.code() != Code::kNotFound) return status;
  return Status(Code::kUnavailable, status.message());
}

std::string KeyOf(const HttpClientConfig& config) {
  Sha256 hash;
  for (const std::string* part : {&config.base_url, &config.tls.ca_pem, &config.tls.server_name,
                                  &config.tls.certificate_pem, &config.tls.private_key_pem}) {
    hash.Add(std::to_string(part->size()) + ":" + *part);
  }
  hash.Add(config.tls.insecure_skip_verify ? "insecure" : "verify");
  return hash.Hex();
}

bool IsNotNow(const Result<ClientResponse>& answer) {
  return answer.ok() && answer->reused_connection && (answer->status == 429 || answer->status >= 500);
}

// Moves the entry with `key` to the front; nullptr when there is none.
template <typename T>
T* Touch(std::list<T>& list, const std::string& key) {
  const auto it = std::find_if(list.begin(), list.end(), [&](const T& entry) { return entry.key == key; });
  if (it == list.end()) return nullptr;
  list.splice(list.begin(), list, it);
  return &list.front();
}

template <typename T>
void Insert(std::list<T>& list, T entry) {
  list.push_front(std::move(entry));
  if (list.size() > kMaxCached) list.pop_back();
}

}  // namespace

PeerClients::PeerClients(const Clock& clock) : clock_(clock) {}

Result<RestConfig> PeerClients::LoadAccess(const AccessSpec& access) {
  auto text = ReadFile(access.kubeconfig_file);
  if (!text.ok()) return AsAccessError(text.status());
  const std::string key = access.kubeconfig_file + "\n" + access.context + "\n" + Sha256Hex(*text);
  {
    MutexLock lock(mutex_);
    if (const Access* known = Touch(accesses_, key)) return known->config;
  }
  KubeconfigOptions options;
  options.explicit_path = access.kubeconfig_file;
  options.context = access.context;
  options.allow_in_cluster = false;
  options.clock = &clock_;
  auto config = LoadRestConfig(options);
  if (!config.ok()) return AsAccessError(config.status());
  MutexLock lock(mutex_);
  Insert(accesses_, Access{key, *config});
  return config;
}

std::shared_ptr<HttpClient> PeerClients::ClientFor(HttpClientConfig config) {
  const std::string key = KeyOf(config);
  const Duration now = clock_.Read().boot;
  MutexLock lock(mutex_);
  while (!clients_.empty() && now - clients_.back().used > kUnused) clients_.pop_back();
  if (Client* known = Touch(clients_, key)) {
    known->used = now;
    return known->client;
  }
  auto client = std::make_shared<HttpClient>(std::move(config));
  Insert(clients_, Client{key, client, now});
  return client;
}

Result<ClientResponse> PeerClients::CallOnce(const RestConfig& rest, const Credentials& credentials, bool strip_cluster,
                                             const ClientRequest& request, const CancelToken* cancel) {
  HttpClientConfig config;
  config.base_url = strip_cluster ? WithoutCluster(rest.server) : rest.server;
  config.connect_timeout = request.timeout;
  config.max_idle = 2;
  config.tls.ca_pem = rest.ca_pem;
  config.tls.server_name = rest.tls_server_name;
  config.tls.insecure_skip_verify = rest.insecure_skip_verify;
  config.tls.certificate_pem = credentials.certificate_pem;
  config.tls.private_key_pem = credentials.private_key_pem;
  if (!rest.ca_file.empty()) {
    auto ca = ReadFile(rest.ca_file);
    if (!ca.ok()) return AsAccessError(ca.status());
    config.tls.ca_pem = *ca;
  }
  const std::shared_ptr<HttpClient> client = ClientFor(std::move(config));
  ClientRequest sent = request;
  if (!credentials.token.empty()) sent.headers.emplace_back("Authorization", "Bearer " + credentials.token);
  auto answer = client->Do(sent, cancel);
  if (!IsNotNow(answer)) return answer;
  client->CloseIdle();
  return client->Do(sent, cancel);
}

Result<ClientResponse> PeerClients::CallAccess(const AccessSpec& access, bool strip_cluster, ClientRequest request,
                                               const CancelToken* cancel) {
  LK_ASSIGN_OR_RETURN(const RestConfig rest, LoadAccess(access));
  request.headers.emplace_back("Accept", "application/json");
  if (!request.body.empty()) request.headers.emplace_back("Content-Type", "application/json");
  LK_ASSIGN_OR_RETURN(const Credentials credentials, rest.credentials->Get());
  auto answer = CallOnce(rest, credentials, strip_cluster, request, cancel);
  if (!answer.ok() || answer->status != 401) return answer;
  // A token file or a plugin may have a newer one.
  rest.credentials->Refused(credentials);
  LK_ASSIGN_OR_RETURN(const Credentials fresh, rest.credentials->Get());
  if (fresh == credentials) return answer;
  return CallOnce(rest, fresh, strip_cluster, request, cancel);
}

Result<ClientResponse> PeerClients::CallPort(const ReadinessSpec& readiness, int port, const ClientRequest& request,
                                             const CancelToken* cancel) {
  HttpClientConfig config;
  const bool tls = readiness.scheme == ReadinessScheme::kHttps;
  config.base_url = (tls ? "https://127.0.0.1:" : "http://127.0.0.1:") + std::to_string(port);
  config.connect_timeout = request.timeout;
  config.max_idle = 1;
  config.tls.insecure_skip_verify = readiness.insecure;
  if (tls && !readiness.insecure) {
    if (readiness.ca_file.empty()) {
      return Status(Code::kInvalid, "spec.template.readiness needs caFile, or insecure: true, for scheme HTTPS");
    }
    auto ca = ReadFile(readiness.ca_file);
    if (!ca.ok()) return AsAccessError(ca.status());
    config.tls.ca_pem = *ca;
  }
  return ClientFor(std::move(config))->Do(request, cancel);
}

void PeerClients::CloseIdle() {
  MutexLock lock(mutex_);
  for (const Client& client : clients_) client.client->CloseIdle();
}

}  // namespace lockkeeper::peer
