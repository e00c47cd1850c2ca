#include "controller/http_api.h"

#include <poll.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <set>

#include "api/base/file.h"
#include "api/base/log.h"
#include "api/base/sync.h"
#include "controller/base64.h"
#include "controller/list_cutter.h"
#include "controller/metrics.h"

namespace lockkeeper {

namespace {

constexpr int kMaxRetries = 10;
constexpr size_t kMaxWarnings = 1000;
constexpr std::chrono::seconds kReloadPause{2};

using std::chrono::milliseconds;
using SteadyTime = std::chrono::steady_clock::time_point;

struct Call {
  std::string verb;     // for metrics and messages: get, list, create …
  std::string attempt;  // "get servers.lockkeeper.dev ns/kcp"
  std::string method;
  std::string target;
  std::string content_type;
  std::string body;
  bool write = false;
  bool repeatable = true;  // a second sending cannot do harm
};

std::string PathOf(const Resource& resource, const std::string& namespace_, const std::string& name,
                   const std::string& subresource = "") {
  std::string path = resource.group.empty() ? "/api/" : "/apis/" + resource.group + "/";
  path += resource.version;
  if (resource.namespaced && !namespace_.empty()) path += "/namespaces/" + PercentEncode(namespace_);
  path += "/" + resource.plural;
  if (!name.empty()) path += "/" + PercentEncode(name);
  if (!subresource.empty()) path += "/" + subresource;
  return path;
}

class QueryText {
 public:
  void Add(std::string_view name, const std::string& value) {
    if (value.empty()) return;
    text_ += text_.empty() ? '?' : '&';
    text_.append(name).append("=").append(PercentEncode(value));
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// A value that a server may send by itself: a name in a path that our own caller left out would address the list.
Status NeedName(const ObjectKey& key, const std::string& attempt) {
  if (!key.name.empty()) return {};
  return {Code::kInvalid, attempt + ": the object has no name"};
}

std::string Describe(const std::string& verb, const Resource& resource, const ObjectKey& key) {
  const std::string name = key.ToString();
  return verb + " " + resource.GroupResource() + (name.empty() ? "" : " " + name);
}

int SecondsOf(const std::string& text) {
  int out = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() ? out : -1;
}

}  // namespace

class HttpApi::Impl {
 public:
  Impl(RestConfig config, HttpApiOptions options)
      : options_(std::move(options)), config_(std::make_shared<const RestConfig>(std::move(config))) {
    LK_CHECK(config_->credentials != nullptr);
  }

  Result<ClientResponse> Do(const Call& call, milliseconds timeout) {
    const SteadyTime start = std::chrono::steady_clock::now();
    bool refreshed = false, repeated = false;
    for (int retries = 0;; ++retries) {
      Credentials used;
      auto client = Client(&used);
      if (!client.ok()) return client.status().Annotate(call.attempt);
      ClientRequest request = Request(call, used);
      request.timeout = timeout;
      if (const WriteFence* fence = fence_.load(); call.write && fence != nullptr) {
        const auto left = std::chrono::duration_cast<milliseconds>(fence->Left());
        if (left.count() <= 0)
          return Status(Code::kCancelled, call.attempt + ": not sent, this process does not lead any more");
        request.timeout = std::min(request.timeout, left);
      }
      auto answer = (*client)->Do(request, &cancel_);
      Count(call, answer.ok() ? std::to_string(answer->status) : "<error>", start);
      if (!answer.ok()) {
        Reload();
        // Once more, after a second: the server may be restarting.
        if (!call.write && !repeated && answer.code() == Code::kUnavailable && WithinBudget(start, 1000)) {
          repeated = true;
          if (Pause(1000)) continue;
        }
        return answer.status().Annotate(call.attempt);
      }
      LogWarnings(*answer);
      if (answer->status == 401 && !refreshed) {
        refreshed = true;
        Config()->credentials->Refused(used);
        Reload();
        Credentials fresh;
        if (Client(&fresh).ok() && !(fresh == used)) continue;
      }
      const int wait = RetryAfter(*answer);
      if (wait < 0 || retries >= kMaxRetries || !(call.repeatable || answer->status == 429) ||
          !WithinBudget(start, wait * 1000)) {
        return answer;
      }
      if (options_.metrics != nullptr)
        options_.metrics->Add("rest_client_request_retries_total", {{"verb", call.verb}});
      LogDebug("server asks to retry later", {{"call", call.attempt}, {"status", answer->status}, {"seconds", wait}});
      if (!Pause(wait * 1000)) return Status(Code::kCancelled, call.attempt + ": cancelled");
    }
  }

  // The answer of a call as an object, or its error.
  Result<Json> DoJson(const Call& call) {
    auto answer = Do(call, options_.timeout);
    if (!answer.ok()) return answer.status();
    return ToJson(*answer, call.attempt);
  }

  static Result<Json> ToJson(const ClientResponse& answer, const std::string& attempt) {
    auto body = Json::Parse(answer.body);
    if (answer.status / 100 != 2) return StatusOfAnswer(answer.status, body.ok() ? *body : Json(), attempt);
    if (!body.ok()) return Status(Code::kInternal, attempt + ": the answer is no JSON: " + body.status().message());
    return body;
  }

  Status Watch(const Call& call, milliseconds idle_timeout, const std::function<bool(WatchEvent)>& on_event,
               const CancelToken* cancel) {
    Credentials used;
    auto client = Client(&used);
    if (!client.ok()) return client.status().Annotate(call.attempt);
    ClientRequest request = Request(call, used);
    request.timeout = options_.timeout;
    const SteadyTime start = std::chrono::steady_clock::now();
    std::string line;
    Status failure;
    const auto on_data = [&](std::string_view data) {
      while (!data.empty()) {
        const size_t eol = data.find('\n');
        line.append(data.substr(0, eol));
        if (eol == std::string_view::npos) return true;
        data.remove_prefix(eol + 1);
        if (line.find_first_not_of(" \r\t") != std::string::npos) {
          bool go_on = false;
          failure = Deliver(line, call.attempt, on_event, &go_on);
          if (!failure.ok() || !go_on) return false;
        }
        line.clear();
      }
      return true;
    };
    const CancelToken* token = cancel != nullptr ? cancel : &cancel_;
    const HttpClient::StreamEnd end = (*client)->Stream(request, idle_timeout, on_data, token);
    Count(call, end.response.status > 0 ? std::to_string(end.response.status) : "<error>", start);
    if (!failure.ok()) return failure;
    if (!end.status.ok()) {
      Reload();
      return end.status.Annotate(call.attempt);
    }
    LogWarnings(end.response);
    if (end.response.status / 100 == 2) return {};
    if (end.response.status == 401) {
      Config()->credentials->Refused(used);
      Reload();
    }
    return ToJson(end.response, call.attempt).status();
  }

  void SetFence(const WriteFence* fence) { fence_.store(fence); }
  void CancelAll() { cancel_.Cancel(); }
  std::shared_ptr<const RestConfig> Config() const {
    MutexLock lock(mutex_);
    return config_;
  }
  const HttpApiOptions& options() const { return options_; }

 private:
  static Status Deliver(const std::string& line, const std::string& attempt,
                        const std::function<bool(WatchEvent)>& on_event, bool* go_on) {
    auto parsed = Json::Parse(line);
    if (!parsed.ok()) {
      return {Code::kInternal, attempt + ": an event is no JSON: " + parsed.status().message()};
    }
    WatchEvent event;
    const std::string type = parsed->Get("type").AsString();
    if (type == "ERROR") {
      const Json& body = parsed->Get("object");
      return StatusOfAnswer(static_cast<int>(body.Get("code").AsInt(500)), body, attempt);
    }
    if (type == "ADDED") {
      event.type = WatchEventType::kAdded;
    } else if (type == "MODIFIED") {
      event.type = WatchEventType::kModified;
    } else if (type == "DELETED") {
      event.type = WatchEventType::kDeleted;
    } else if (type == "BOOKMARK") {
      event.type = WatchEventType::kBookmark;
    } else {
      return {Code::kInternal, attempt + ": an event of unknown type \"" + type + "\""};
    }
    if (Json* object = parsed->Find("object")) event.object = std::move(*object);
    *go_on = on_event(std::move(event));
    return {};
  }

  ClientRequest Request(const Call& call, const Credentials& credentials) const {
    ClientRequest request;
    request.method = call.method;
    request.target = call.target;
    request.body = call.body;
    request.retry_on_stale = call.repeatable;
    request.headers.emplace_back("Accept", "application/json");
    if (!call.content_type.empty()) request.headers.emplace_back("Content-Type", call.content_type);
    // Never over plain HTTP to another machine: the server's URL decides, see Client().
    if (!credentials.token.empty()) {
      request.headers.emplace_back("Authorization", "Bearer " + credentials.token);
    } else if (!credentials.username.empty()) {
      request.headers.emplace_back("Authorization",
                                   "Basic " + Base64Encode(credentials.username + ":" + credentials.password));
    }
    return request;
  }

  // A call failed: the configuration may be another one by now. One that cannot be read changes nothing.
  void Reload() LK_EXCLUDES(mutex_) {
    if (!options_.reload) return;
    {
      MutexLock lock(mutex_);
      const auto now = std::chrono::steady_clock::now();
      if (now - reloaded_at_ < kReloadPause) return;
      reloaded_at_ = now;
    }
    Result<RestConfig> read = options_.reload();
    if (!read.ok()) return;
    auto fresh = std::make_shared<const RestConfig>(*std::move(read));
    MutexLock lock(mutex_);
    const bool same_way = fresh->server == config_->server && fresh->tls_server_name == config_->tls_server_name &&
                          fresh->insecure_skip_verify == config_->insecure_skip_verify;
    if (!same_way || fresh->ca_file != config_->ca_file) client_ = nullptr;  // certificates are compared with each call
    config_ = std::move(fresh);
  }

  // The client for the credentials of now. A changed certificate replaces it and closes its idle connections.
  Result<std::shared_ptr<HttpClient>> Client(Credentials* used) {
    const std::shared_ptr<const RestConfig> config = Config();
    LK_ASSIGN_OR_RETURN(*used, config->credentials->Get());
    if (config->server.substr(0, 7) == "http://") *used = Credentials();  // credentials never go in the clear
    MutexLock lock(mutex_);
    const auto now = std::chrono::steady_clock::now();
    std::string ca = ca_;
    // A rotated CA file is noticed within a minute.
    if (config->ca_file.empty()) {
      ca = config->ca_pem;
    } else if (client_ == nullptr || now - ca_read_at_ > std::chrono::seconds(60)) {
      auto text = ReadFile(config->ca_file);
      if (!text.ok() && client_ == nullptr) return text.status().Annotate("certificate authority of " + config->source);
      if (text.ok()) ca = *text;
      ca_read_at_ = now;
    }
    if (client_ == nullptr || ca != ca_ || used->certificate_pem != certificate_ || used->private_key_pem != key_) {
      HttpClientConfig http;
      http.base_url = config->server;
      http.user_agent = options_.user_agent;
      http.tls.ca_pem = ca;
      http.tls.server_name = config->tls_server_name;
      http.tls.insecure_skip_verify = config->insecure_skip_verify;
      http.tls.certificate_pem = used->certificate_pem;
      http.tls.private_key_pem = used->private_key_pem;
      client_ = std::make_shared<HttpClient>(std::move(http));
      ca_ = ca;
      certificate_ = used->certificate_pem;
      key_ = used->private_key_pem;
    }
    return client_;
  }

  static int RetryAfter(const ClientResponse& answer) {
    if (answer.status != 429 && answer.status < 500) return -1;
    // Waiting for a version that the server may never reach: the caller reads at another one instead.
    if (answer.status == 504 && answer.body.find("ResourceVersionTooLarge") != std::string::npos) return -1;
    return SecondsOf(answer.Header("retry-after"));
  }

  bool WithinBudget(SteadyTime start, int more_ms) const {
    return std::chrono::steady_clock::now() - start + milliseconds(more_ms) <= options_.retry_budget;
  }

  // False when cancelled meanwhile.
  bool Pause(int ms) const {
    pollfd p{cancel_.fd(), POLLIN, 0};
    return poll(&p, 1, ms) == 0;
  }

  void Count(const Call& call, const std::string& code, SteadyTime start) {
    if (options_.metrics == nullptr) return;
    const std::string host = Config()->server;
    options_.metrics->Add("rest_client_requests_total", {{"code", code}, {"method", call.method}, {"host", host}});
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    options_.metrics->Observe("rest_client_request_duration_seconds", {{"verb", call.verb}, {"host", host}},
                              took.count());
  }

  // Warning: 299 - "text"
  void LogWarnings(const ClientResponse& answer) LK_EXCLUDES(mutex_) {
    const auto [begin, end] = answer.headers.equal_range("warning");
    for (auto it = begin; it != end; ++it) {
      MutexLock lock(mutex_);
      if (warned_.size() >= kMaxWarnings || !warned_.insert(it->second).second) continue;
      LogWarn("warning of the API server", {{"server", config_->server}, {"warning", it->second}});
    }
  }

  const HttpApiOptions options_;
  std::atomic<const WriteFence*> fence_{nullptr};
  CancelToken cancel_;
  mutable Mutex mutex_;
  std::shared_ptr<const RestConfig> config_ LK_GUARDED_BY(mutex_);
  SteadyTime reloaded_at_ LK_GUARDED_BY(mutex_){};
  std::shared_ptr<HttpClient> client_ LK_GUARDED_BY(mutex_);  // shared with the calls under way on it
  std::string ca_ LK_GUARDED_BY(mutex_);
  std::string certificate_ LK_GUARDED_BY(mutex_);
  std::string key_ LK_GUARDED_BY(mutex_);
  SteadyTime ca_read_at_ LK_GUARDED_BY(mutex_){};
  std::set<std::string> warned_ LK_GUARDED_BY(mutex_);
};

HttpApi::HttpApi(RestConfig config, HttpApiOptions options)
    : impl_(std::make_unique<Impl>(std::move(config), std::move(options))) {}

HttpApi::~HttpApi() = default;

Result<Json> HttpApi::Get(const Resource& resource, const ObjectKey& key) {
  Call call{"get", Describe("get", resource, key), "GET", PathOf(resource, key.namespace_, key.name), "", ""};
  LK_RETURN_IF_ERROR(NeedName(key, call.attempt));
  return impl_->DoJson(call);
}

Result<ListMeta> HttpApi::ListEach(const Resource& resource, const std::string& namespace_, const ListOptions& options,
                                   const std::function<void(Json)>& on_item) {
  QueryText query;
  query.Add("labelSelector", options.label_selector);
  query.Add("fieldSelector", options.field_selector);
  query.Add("resourceVersion", options.resource_version);
  query.Add("resourceVersionMatch", options.resource_version_match);
  if (options.limit > 0) query.Add("limit", std::to_string(options.limit));
  query.Add("continue", options.continue_token);
  const Call call{"list", Describe("list", resource, {namespace_, ""}),
                  "GET",  PathOf(resource, namespace_, "") + query.text(),
                  "",     ""};
  auto answer = impl_->Do(call, impl_->options().timeout);
  if (!answer.ok()) return answer.status();
  if (answer->status / 100 != 2) return Impl::ToJson(*answer, call.attempt).status();
  auto rest = CutList(answer->body, [&](std::string_view text) -> Status {
    LK_ASSIGN_OR_RETURN(Json item, Json::Parse(text));
    // Items of a list carry neither; an object by itself does.
    if (!item.Has("kind")) item.Set("kind", resource.kind);
    if (!item.Has("apiVersion")) item.Set("apiVersion", resource.ApiVersion());
    on_item(std::move(item));
    return {};
  });
  if (!rest.ok()) return Status(Code::kInternal, call.attempt + ": " + rest.status().message());
  const Json& metadata = rest->Get("metadata");
  return ListMeta{metadata.Get("resourceVersion").AsString(), metadata.Get("continue").AsString()};
}

namespace {

// A body with a fixed name or a resourceVersion may be sent twice: the second ends in 409.
Call WriteCall(const HttpApiOptions& options, const char* verb, const char* method, const Resource& resource,
               const ObjectKey& key, const std::string& path, const Json& body, const char* content_type,
               bool status = false) {
  QueryText query;
  query.Add("fieldManager", options.field_manager);
  const std::string what = status ? std::string(verb) + " status of" : verb;
  Call call{verb, Describe(what, resource, key), method, path + query.text(), content_type, body.Dump()};
  call.write = true;
  call.repeatable = !key.name.empty();
  return call;
}

}  // namespace

Result<Json> HttpApi::Create(const Resource& resource, const Json& object) {
  const ObjectKey key = ObjectKey::Of(object);
  return impl_->DoJson(WriteCall(impl_->options(), "create", "POST", resource, key,
                                 PathOf(resource, key.namespace_, ""), object, "application/json"));
}

Result<Json> HttpApi::Update(const Resource& resource, const Json& object) {
  const ObjectKey key = ObjectKey::Of(object);
  const Call call = WriteCall(impl_->options(), "update", "PUT", resource, key,
                              PathOf(resource, key.namespace_, key.name), object, "application/json");
  LK_RETURN_IF_ERROR(NeedName(key, call.attempt));
  return impl_->DoJson(call);
}

Result<Json> HttpApi::UpdateStatus(const Resource& resource, const Json& object) {
  const ObjectKey key = ObjectKey::Of(object);
  const Call call = WriteCall(impl_->options(), "update", "PUT", resource, key,
                              PathOf(resource, key.namespace_, key.name, "status"), object, "application/json", true);
  LK_RETURN_IF_ERROR(NeedName(key, call.attempt));
  return impl_->DoJson(call);
}

Result<Json> HttpApi::Patch(const Resource& resource, const ObjectKey& key, PatchType type, const Json& patch,
                            const std::string& subresource) {
  Call call = WriteCall(
      impl_->options(), "patch", "PATCH", resource, key, PathOf(resource, key.namespace_, key.name, subresource), patch,
      type == PatchType::kMerge ? "application/merge-patch+json" : "application/json-patch+json", !subresource.empty());
  LK_RETURN_IF_ERROR(NeedName(key, call.attempt));
  // A merge patch says what is to stand there in the end; a JSON patch may append.
  call.repeatable = type == PatchType::kMerge;
  return impl_->DoJson(call);
}

Result<Json> HttpApi::Delete(const Resource& resource, const ObjectKey& key, const DeleteOptions& options) {
  Json body = Json::MakeObject({{"kind", "DeleteOptions"}, {"apiVersion", "v1"}});
  Json preconditions = Json::MakeObject();
  if (!options.uid.empty()) preconditions.Set("uid", options.uid);
  if (!options.resource_version.empty()) preconditions.Set("resourceVersion", options.resource_version);
  if (!preconditions.empty()) body.Set("preconditions", preconditions);
  if (!options.propagation.empty()) body.Set("propagationPolicy", options.propagation);
  Call call{"delete",           Describe("delete", resource, key),
            "DELETE",           PathOf(resource, key.namespace_, key.name),
            "application/json", body.Dump()};
  call.write = true;
  LK_RETURN_IF_ERROR(NeedName(key, call.attempt));
  LK_ASSIGN_OR_RETURN(Json answer, impl_->DoJson(call));
  if (answer.Get("kind").AsString() == "Status") return Json();
  // Without finalizers the object in the answer is the one that went.
  const Json& metadata = answer.Get("metadata");
  return metadata.Get("finalizers").empty() ? Json() : answer;
}

Status HttpApi::Watch(const Resource& resource, const std::string& namespace_, const WatchOptions& options,
                      const std::function<bool(WatchEvent)>& on_event, const CancelToken* cancel) {
  QueryText query;
  query.Add("watch", "true");
  query.Add("labelSelector", options.label_selector);
  query.Add("fieldSelector", options.field_selector);
  query.Add("resourceVersion", options.resource_version);
  query.Add("resourceVersionMatch", options.resource_version_match);
  if (options.allow_bookmarks) query.Add("allowWatchBookmarks", "true");
  if (options.send_initial_events) query.Add("sendInitialEvents", "true");
  if (options.timeout_seconds > 0) query.Add("timeoutSeconds", std::to_string(options.timeout_seconds));
  const Call call{"watch", Describe("watch", resource, {namespace_, ""}),
                  "GET",   PathOf(resource, namespace_, "") + query.text(),
                  "",      ""};
  return impl_->Watch(call, options.idle_timeout, on_event, cancel);
}

Result<ClientResponse> HttpApi::GetRaw(const std::string& target, milliseconds timeout) {
  return impl_->Do({"get", "get " + target, "GET", target, "", ""}, timeout);
}

void HttpApi::SetFence(const WriteFence* fence) { impl_->SetFence(fence); }

void HttpApi::CancelAll() { impl_->CancelAll(); }

RestConfig HttpApi::config() const { return *impl_->Config(); }

}  // namespace lockkeeper
