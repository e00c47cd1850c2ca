#include "api/server/handler.h"

#include <sys/utsname.h>

#include <algorithm>
#include <utility>

#include "api/base/file.h"
#include "api/base/log.h"
#include "api/server/handler_call.h"
#include "api/server/metrics.h"
#include "api/server/watch_hub.h"

namespace lockkeeper::apiserver {
namespace {

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

ApiHandler::ApiHandler(Store& store, const Catalog& catalog, const Authenticator& authenticator, const Clock& clock,
                       HandlerOptions options, Hooks hooks)
    : store_(store),
      catalog_(catalog),
      authenticator_(authenticator),
      clock_(clock),
      options_(std::move(options)),
      hooks_(std::move(hooks)),
      objects_(store, catalog, clock, hooks_.admit, options_.need_namespaces),
      metrics_(std::make_unique<Metrics>()) {}

ApiHandler::~ApiHandler() = default;

void ApiHandler::WakeWatches() { store_.hub().WakeAll(); }

void ApiHandler::Handle(const HttpRequest& request, HttpResponse& response) {
  Call call{request, response, ParseRequest(request, options_.clusters), {}, false, nullptr, Shape::kPlain, false};
  Dispatch(call, nullptr);
}

void ApiHandler::HandleAs(const User& user, const HttpRequest& request, HttpResponse& response) {
  Call call{request, response, ParseRequest(request, options_.clusters), {}, false, nullptr, Shape::kPlain, false};
  Dispatch(call, &user);
}

void ApiHandler::Dispatch(Call& call, const User* known) {
  const auto start = std::chrono::steady_clock::now();
  const RequestInfo& info = call.info;
  const bool anonymous_health =
      info.target == Target::kHealth && (info.path == "/healthz" || info.path == "/readyz" || info.path == "/livez");
  if (hooks_.before && hooks_.before(call.request, info, call.response)) {
    // Written by the hook.
  } else if (anonymous_health) {
    Health(call);
  } else {
    std::optional<User> user =
        known != nullptr ? std::optional<User>(*known) : authenticator_.Authenticate(call.request);
    call.authenticated = user.has_value();
    if (user) call.user = std::move(*user);
    std::optional<std::string> cluster;
    if (info.has_cluster && hooks_.resolve_cluster && call.authenticated)
      cluster = hooks_.resolve_cluster(info.cluster_path);
    std::optional<ApiError> refused;
    if (!call.authenticated) {
      refused = Unauthorized();
    } else if (hooks_.authorize) {
      refused = hooks_.authorize(call.user, info);
    }
    if (refused) {
      Respond(call, *refused);
    } else if (info.has_cluster && !cluster) {
      call.response.status = 404;
      call.response.content_type = "text/plain; charset=utf-8";
      call.response.body = "404 page not found: no cluster " + info.cluster_path + "\n";
    } else {
      call.info.cluster = cluster.value_or("");
      switch (info.target) {
        case Target::kHealth: Health(call); break;
        case Target::kVersion: Version(call); break;
        case Target::kDiscovery: Discovery(call); break;
        case Target::kOpenApi: OpenApi(call); break;
        case Target::kResource: Resource(call); break;
        case Target::kMetrics: {
          const Result<int64_t> bytes = store_.SizeBytes();
          metrics_->Store(static_cast<double>(store_.hub().revision()), static_cast<double>(bytes.value_or(0)));
          call.response.content_type = "text/plain; version=0.0.4; charset=utf-8";
          call.response.body = metrics_->Text();
          break;
        }
        case Target::kUnknown:
          call.response.status = 404;
          call.response.content_type = "text/plain; charset=utf-8";
          call.response.body = "404 page not found\n";
          break;
      }
    }
  }
  if (hooks_.after) hooks_.after(call.request, info, call.authenticated ? &call.user : nullptr, call.response);
  // Only what is served becomes a label, so that a scan of made-up paths makes no series.
  const std::string resource = call.resource != nullptr ? call.kind().plural : "";
  metrics_->Request(info.verb.empty() ? "get" : info.verb, resource, call.response.status, SecondsSince(start));
}

void ApiHandler::Respond(Call& call, const ApiError& error) {
  if (error.code >= 500 && error.code != 504) {
    LogError(
        "request failed",
        {{"method", call.request.method}, {"path", call.request.path}, {"code", error.code}, {"error", error.message}});
  }
  if (error.retry_after_seconds > 0) {
    call.response.headers.emplace_back("Retry-After", std::to_string(error.retry_after_seconds));
  }
  if (error.code == 401) call.response.headers.emplace_back("WWW-Authenticate", "Bearer realm=\"lockkeeper\"");
  RespondJson(call, error.code, error.Body());
}

void ApiHandler::RespondJson(Call& call, int code, const Json& body) {
  const std::string pretty = call.request.Query("pretty");
  RespondWith(call, code, pretty == "true" || pretty == "1" ? body.DumpPretty() + "\n" : body.Dump());
}

void ApiHandler::RespondWith(Call& call, int code, std::string body) {
  call.response.status = code;
  call.response.content_type = "application/json";
  call.response.body = std::move(body);
}

void ApiHandler::Health(Call& call) {
  // "/readyz" or "/readyz/NAME".
  const std::string& path = call.info.path;
  const size_t slash = path.find('/', 1);
  const std::string endpoint = path.substr(1, slash == std::string::npos ? slash : slash - 1);
  const std::string only = slash == std::string::npos ? "" : path.substr(slash + 1);
  std::vector<HealthCheck> checks;
  checks.push_back({"ping", [] { return Status::Ok(); }, true});
  checks.push_back({"store", [this] { return store_.Revision().status(); }, false});
  checks.insert(checks.end(), options_.health.begin(), options_.health.end());

  std::vector<std::string> excluded;
  const auto range = call.request.query.equal_range("exclude");
  for (auto it = range.first; it != range.second; ++it) excluded.push_back(it->second);
  std::string lines;
  std::string failed;
  bool found = only.empty();
  for (const HealthCheck& check : checks) {
    if (endpoint != "readyz" && !check.livez) continue;
    if (!only.empty() && check.name != only) continue;
    found = true;
    if (std::find(excluded.begin(), excluded.end(), check.name) != excluded.end()) {
      lines += "[+]" + check.name + " excluded: ok\n";
      continue;
    }
    const Status status = check.check();
    if (status.ok()) {
      lines += "[+]" + check.name + " ok\n";
    } else {
      // Anyone may ask, so the reason goes to the log only.
      lines += "[-]" + check.name + " failed: reason withheld\n";
      failed += (failed.empty() ? "" : ",") + check.name;
      LogWarn("health check failed", {{"endpoint", endpoint}, {"check", check.name}, {"error", status.ToString()}});
    }
  }
  call.response.content_type = "text/plain; charset=utf-8";
  call.response.headers.emplace_back("X-Content-Type-Options", "nosniff");
  if (!found) {
    call.response.status = 404;
    call.response.body = "404 page not found\n";
  } else if (!failed.empty()) {
    call.response.status = 500;
    call.response.body = lines + endpoint + " check failed\n";
  } else {
    call.response.status = 200;
    call.response.body = call.request.HasQuery("verbose") ? lines + endpoint + " check passed\n" : "ok";
  }
}

void ApiHandler::Version(Call& call) {
  utsname machine{};
  ::uname(&machine);
  std::string arch = machine.machine;
  if (arch == "x86_64") arch = "amd64";
  if (arch == "aarch64") arch = "arm64";
  // kubectl parses gitVersion; what stands behind the dash is ours (crd-idioms 10.8).
  const std::string version = options_.git_version.empty() ? "v1.32.0-lockkeeper" : options_.git_version;
  const size_t first = version.find('.');
  const size_t second = version.find('.', first + 1);
  RespondJson(call, 200,
              Json::MakeObject({{"major", version.substr(1, first - 1)},
                                {"minor", version.substr(first + 1, second - first - 1)},
                                {"gitVersion", version},
                                {"gitCommit", options_.git_commit},
                                {"gitTreeState", "clean"},
                                {"buildDate", "1970-01-01T00:00:00Z"},
                                {"goVersion", "none (C++20)"},
                                {"compiler", "g++"},
                                {"platform", "linux/" + arch}}));
}

void ApiHandler::Discovery(Call& call) {
  const std::string& path = call.info.path;
  const bool core = path.rfind("/apis", 0) != 0;
  const bool root = call.info.group.empty() && call.info.version.empty();
  std::vector<Shape> offered;
  if (root) offered = {Shape::kDiscoveryV2, Shape::kDiscoveryV2Beta1};
  const std::optional<Shape> shape = NegotiateShape(call.request.Header("accept"), offered);
  if (!shape) return Respond(call, NotAcceptable());
  Json body;
  std::string type = "application/json";
  if (*shape == Shape::kPlain) {
    if (root) {
      body = core ? catalog_.CoreVersions() : catalog_.Groups();
    } else if (core || !call.info.version.empty()) {
      body = catalog_.Resources(call.info.group, call.info.version);
    } else {
      body = catalog_.Group(call.info.group);
    }
  } else {
    const bool beta = *shape == Shape::kDiscoveryV2Beta1;
    body = catalog_.AggregatedDiscovery(core, beta);
    // kubectl takes the body for what it is only with exactly this type (crd-idioms 10.3).
    type = std::string("application/json;g=apidiscovery.k8s.io;v=") + (beta ? "v2beta1" : "v2") +
           ";as=APIGroupDiscoveryList";
  }
  if (body.IsNull()) {
    call.response.status = 404;
    call.response.content_type = "text/plain; charset=utf-8";
    call.response.body = "404 page not found\n";
    return;
  }
  std::string text = body.Dump();
  const std::string etag = "\"" + Sha256Hex(text).substr(0, 32) + "\"";
  call.response.headers.emplace_back("ETag", etag);
  call.response.headers.emplace_back("Vary", "Accept");
  call.response.headers.emplace_back("Cache-Control", "public");
  if (call.request.Header("if-none-match") == etag) {
    // No body, hence no Content-Type: kubectl's cache would copy it over the stored one and lose every resource.
    call.response.status = 304;
    call.response.content_type.clear();
    return;
  }
  RespondWith(call, 200, std::move(text));
  call.response.content_type = type;
}

// Without it kubectl answers a kind it does not know with "failed to download openapi" instead of "no matches for
// kind".
void ApiHandler::EmptyOpenApiV2(Call& call) {
  // Asked for as v2@v1.0, which is no media type that the client's own parser takes.
  constexpr std::string_view kProtobuf = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
  constexpr std::string_view kTitle = "lockkeeper";
  constexpr std::string_view kVersion = "v1";
  if (call.request.Header("accept").find("proto-openapi") == std::string::npos) {
    return RespondJson(call, 200,
                       Json::MakeObject({{"swagger", "2.0"},
                                         {"info", Json::MakeObject({{"title", kTitle}, {"version", kVersion}})},
                                         {"paths", Json::MakeObject()}}));
  }
  // gnostic's openapi.v2.Document: swagger = 1, info = 2 {title = 1, version = 2}, paths = 8.
  const auto field = [](char tag, std::string_view bytes) {
    return std::string{tag, static_cast<char>(bytes.size())}.append(bytes);
  };
  RespondWith(
      call, 200,
      field('\x0a', "2.0") + field('\x12', field('\x0a', kTitle) + field('\x12', kVersion)) + field('\x42', ""));
  call.response.content_type = kProtobuf;
}

void ApiHandler::OpenApi(Call& call) {
  const std::string prefix = call.info.has_cluster ? "/clusters/" + call.info.cluster_path : "";
  constexpr std::string_view kRoot = "/openapi/v3";
  const std::string& path = call.info.path;
  if (path == kRoot || path == "/openapi/v3/") return RespondJson(call, 200, catalog_.OpenApiIndex(prefix));
  if (path == "/openapi/v2") return EmptyOpenApiV2(call);
  const std::string document =
      path.size() > kRoot.size() && path.rfind("/openapi/v3/", 0) == 0 ? path.substr(kRoot.size() + 1) : "";
  const std::string hash = document.empty() ? "" : catalog_.OpenApiHash(document);
  if (hash.empty()) {
    call.response.status = 404;
    call.response.content_type = "text/plain; charset=utf-8";
    call.response.body = "404 page not found\n";
    return;
  }
  const std::string asked = call.request.Query("hash");
  if (!asked.empty() && asked != hash) {
    call.response.status = 301;
    call.response.headers.emplace_back("Location", prefix + path + "?hash=" + hash);
    return;
  }
  call.response.headers.emplace_back("ETag", "\"" + hash + "\"");
  call.response.headers.emplace_back("Vary", "Accept");
  call.response.headers.emplace_back("Cache-Control", asked.empty() ? "no-cache, private" : "public, immutable");
  if (call.request.Header("if-none-match") == "\"" + hash + "\"") {
    call.response.status = 304;
    call.response.content_type.clear();
    return;
  }
  RespondJson(call, 200, catalog_.OpenApiDocument(document));
}

void ApiHandler::Resource(Call& call) {
  const RequestInfo& info = call.info;
  if (info.group == "authorization.k8s.io" || info.group == "authentication.k8s.io") return Review(call);
  call.resource = catalog_.Find(info.group, info.version, info.resource);
  const bool status = info.subresource == "status";
  if (call.resource == nullptr || (!info.subresource.empty() && !(status && call.kind().has_status))) {
    if (call.resource == nullptr && !catalog_.HasGroupVersion(info.group, info.version)) {
      call.response.status = 404;
      call.response.content_type = "text/plain; charset=utf-8";
      call.response.body = "404 page not found\n";
      return;
    }
    ApiError error;
    error.code = 404;
    error.reason = "NotFound";
    error.message = "the server could not find the requested resource";
    error.details = Json::MakeObject({{"group", info.group}, {"kind", info.resource}});
    return Respond(call, error);
  }
  const bool needs_ns = call.kind().namespaced && (info.verb == "create" || !info.name.empty());
  if ((needs_ns && info.ns.empty()) || (!call.kind().namespaced && !info.ns.empty())) {
    return Respond(call, BadRequest(call.kind().namespaced ? "a namespace is needed: " + info.path
                                                           : call.kind().plural + " have no namespace: " + info.path));
  }
  const std::optional<Shape> shape =
      NegotiateShape(call.request.Header("accept"), {Shape::kTable, Shape::kPartialMetadata});
  if (!shape) return Respond(call, NotAcceptable());
  call.shape = *shape;
  if (info.verb == "get") return Get(call);
  if (info.verb == "list" && !status) return List(call);
  if (info.verb == "watch" && !status) return Watch(call);
  if (info.verb == "create" && info.name.empty()) return Create(call);
  if (info.verb == "update" && !info.name.empty()) return Replace(call);
  if (info.verb == "patch" && !info.name.empty()) return Patch(call);
  if (info.verb == "delete" && !status) return Delete(call);
  if (info.verb == "deletecollection") return DeleteCollection(call);
  Respond(call, MethodNotAllowed("the server does not allow " + call.request.method + " on " + info.path));
}

}  // namespace lockkeeper::apiserver
