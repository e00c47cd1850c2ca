#include "controller/kubeconfig.h"

#include <algorithm>
#include <cstdlib>

#include "api/base/file.h"
#include "controller/base64.h"
#include "controller/yaml.h"

namespace lockkeeper {

namespace {

constexpr const char* kSystemRoots = "/etc/ssl/certs/ca-certificates.crt";

std::optional<std::string> ProcessEnvironment(const std::string& name) {
  const char* value = getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return value;
}

std::string Absolute(const std::string& path, const std::string& dir) {
  return path.empty() || path[0] == '/' ? path : JoinPath(dir, path);
}

// Paths in one entry, which count from the file that holds it.
void AnchorPaths(Json& entry, const std::string& dir) {
  for (const char* key : {"certificate-authority", "client-certificate", "client-key", "tokenFile"}) {
    if (Json* path = entry.Find(key); path != nullptr && path->IsString()) *path = Absolute(path->AsString(), dir);
  }
  Json* exec = entry.Find("exec");
  Json* command = exec != nullptr ? exec->Find("command") : nullptr;
  // A command with a slash counts from the file; a bare name is looked up in PATH.
  if (command != nullptr && command->AsString().find('/') != std::string::npos) {
    *command = Absolute(command->AsString(), dir);
  }
}

Status MergeFile(const std::string& path, const std::string& text, Json& merged) {
  LK_ASSIGN_OR_RETURN(Json file, ParseYaml(text, path));
  if (file.IsNull()) return {};
  if (!file.IsObject()) return {Code::kInvalid, path + ": a kubeconfig must be a map"};
  const std::string dir = DirName(path);
  const std::pair<const char*, const char*> kinds[] = {
      {"clusters", "cluster"}, {"users", "user"}, {"contexts", "context"}};
  for (const auto& [list, member] : kinds) {
    Json& into = merged[list];
    for (const Json& item : file.Get(list).AsArray()) {
      const std::string& name = item.Get("name").AsString();
      if (name.empty()) return {Code::kInvalid, path + ": an entry of " + list + " has no name"};
      if (into.Has(name)) continue;
      Json entry = item.Get(member);
      if (entry.IsNull()) entry = Json::MakeObject();
      if (!entry.IsObject()) return {Code::kInvalid, path + ": " + list + " \"" + name + "\" must be a map"};
      AnchorPaths(entry, dir);
      entry.Set("locationOfOrigin", path);
      into.Set(name, std::move(entry));
    }
  }
  const std::string& current = file.Get("current-context").AsString();
  if (!current.empty() && merged.Get("current-context").AsString().empty()) merged.Set("current-context", current);
  return {};
}

// Inline data (base64) beats the file.
Status InlineOrFile(const Json& entry, const std::string& key, std::string* data, std::string* file) {
  const std::string& encoded = entry.Get(key + "-data").AsString();
  if (encoded.empty()) {
    *file = entry.Get(key).AsString();
    return {};
  }
  auto decoded = Base64Decode(encoded);
  if (!decoded.ok()) {
    return {Code::kInvalid,
            entry.Get("locationOfOrigin").AsString() + ": " + key + "-data is " + decoded.status().message()};
  }
  *data = *decoded;
  return {};
}

Result<ExecPlugin> ExecOf(const Json& exec, const std::string& where) {
  ExecPlugin plugin;
  plugin.command = exec.Get("command").AsString();
  plugin.api_version = exec.Get("apiVersion").AsString();
  plugin.install_hint = exec.Get("installHint").AsString();
  plugin.provide_cluster_info = exec.Get("provideClusterInfo").AsBool();
  if (plugin.command.empty()) return Status(Code::kInvalid, where + ": exec has no command");
  if (plugin.api_version != "client.authentication.k8s.io/v1" &&
      plugin.api_version != "client.authentication.k8s.io/v1beta1") {
    return Status(Code::kInvalid, where + ": exec.apiVersion \"" + plugin.api_version +
                                      "\" must be client.authentication.k8s.io/v1 or /v1beta1");
  }
  if (exec.Get("interactiveMode").AsString() == "Always") {
    return Status(Code::kUnsupported, where + ": exec plugin " + plugin.command +
                                          " asks for a terminal (interactiveMode: Always), which this program has not");
  }
  for (const Json& argument : exec.Get("args").AsArray()) plugin.arguments.push_back(argument.AsString());
  for (const Json& variable : exec.Get("env").AsArray()) {
    plugin.environment.emplace_back(variable.Get("name").AsString(), variable.Get("value").AsString());
  }
  return plugin;
}

Json ClusterInfo(const Json& cluster, const RestConfig& config) {
  Json info = Json::MakeObject({{"server", config.server}});
  if (!config.tls_server_name.empty()) info.Set("tls-server-name", config.tls_server_name);
  if (config.insecure_skip_verify) info.Set("insecure-skip-tls-verify", true);
  if (!config.ca_pem.empty()) info.Set("certificate-authority-data", Base64Encode(config.ca_pem));
  if (config.ca_pem.empty() && !config.ca_file.empty()) {
    auto pem = ReadFile(config.ca_file);
    if (pem.ok()) info.Set("certificate-authority-data", Base64Encode(*pem));
  }
  for (const Json& extension : cluster.Get("extensions").AsArray()) {
    if (extension.Get("name").AsString() == "client.authentication.k8s.io/exec") {
      info.Set("config", extension.Get("extension"));
    }
  }
  return info;
}

Result<std::shared_ptr<CredentialSource>> CredentialsOf(const Json& user, const std::string& where, const Json& cluster,
                                                        const RestConfig& config, const Clock& clock) {
  for (const char* key : {"as", "as-uid", "as-groups", "as-user-extra", "auth-provider"}) {
    if (user.Has(key)) {
      return Status(Code::kUnsupported,
                    where + ": \"" + key + "\" is not supported; use a token, a client certificate or exec");
    }
  }
  CredentialFiles files;
  files.inline_values.token = user.Get("token").AsString();
  files.token_file = user.Get("tokenFile").AsString();
  files.inline_values.username = user.Get("username").AsString();
  files.inline_values.password = user.Get("password").AsString();
  LK_RETURN_IF_ERROR(
      InlineOrFile(user, "client-certificate", &files.inline_values.certificate_pem, &files.certificate_file));
  LK_RETURN_IF_ERROR(InlineOrFile(user, "client-key", &files.inline_values.private_key_pem, &files.private_key_file));
  const bool has_certificate = !files.inline_values.certificate_pem.empty() || !files.certificate_file.empty();
  const bool has_key = !files.inline_values.private_key_pem.empty() || !files.private_key_file.empty();
  if (has_certificate != has_key) {
    return Status(Code::kInvalid, where + ": a client certificate and its key must come together");
  }
  if (user.Has("exec")) {
    if (!files.inline_values.token.empty() || !files.token_file.empty() || has_certificate) {
      return Status(Code::kInvalid, where + ": exec together with a token or a client certificate");
    }
    LK_ASSIGN_OR_RETURN(ExecPlugin plugin, ExecOf(user.Get("exec"), where));
    if (plugin.provide_cluster_info) plugin.cluster_info = ClusterInfo(cluster, config);
    return NewExecCredentials(std::move(plugin), clock);
  }
  return NewFileCredentials(std::move(files), clock);
}

const Clock& ClockOf(const KubeconfigOptions& options) {
  return options.clock != nullptr ? *options.clock : SystemClock();
}

Result<RestConfig> InCluster(const KubeconfigOptions& options, const std::string& host, const std::string& port) {
  const std::string& dir = options.service_account_dir;
  RestConfig config;
  config.server = "https://" + (host.find(':') != std::string::npos ? "[" + host + "]" : host) + ":" + port;
  config.ca_file = JoinPath(dir, "ca.crt");
  config.source = "the pod's service account";
  CredentialFiles files;
  files.token_file = JoinPath(dir, "token");
  config.credentials = NewFileCredentials(std::move(files), ClockOf(options));
  if (!options.namespace_.empty()) {
    config.namespace_ = options.namespace_;
  } else if (auto text = ReadFile(JoinPath(dir, "namespace")); text.ok() && !text->empty()) {
    config.namespace_ = *text;
  }
  return config;
}

}  // namespace

Result<Json> MergeKubeconfigs(const std::vector<std::string>& paths, bool must_exist) {
  Json merged = Json::MakeObject({{"clusters", Json::MakeObject()},
                                  {"users", Json::MakeObject()},
                                  {"contexts", Json::MakeObject()},
                                  {"current-context", ""}});
  std::vector<std::string> seen;
  std::string files;
  for (const std::string& path : paths) {
    if (path.empty() || std::find(seen.begin(), seen.end(), path) != seen.end()) continue;
    seen.push_back(path);
    auto text = ReadFile(path);
    if (!text.ok() && text.code() == Code::kNotFound && !must_exist) continue;
    if (!text.ok()) return text.status().Annotate("kubeconfig");
    LK_RETURN_IF_ERROR(MergeFile(path, *text, merged));
    files += (files.empty() ? "" : ":") + path;
  }
  merged.Set("files", files);
  return merged;
}

Result<RestConfig> ResolveContext(const Json& merged, const KubeconfigOptions& options) {
  const std::string name = options.context.empty() ? merged.Get("current-context").AsString() : options.context;
  if (name.empty()) {
    return Status(Code::kInvalid, "kubeconfig " + merged.Get("files").AsString() +
                                      " has no current-context; set one with kubectl config use-context, or name one "
                                      "with --context");
  }
  const Json* context = merged.Get("contexts").Find(name);
  if (context == nullptr)
    return Status(Code::kNotFound, "kubeconfig " + merged.Get("files").AsString() + " has no context \"" + name + "\"");
  const std::string origin = context->Get("locationOfOrigin").AsString();
  const std::string& cluster_name = context->Get("cluster").AsString();
  const std::string& user_name = context->Get("user").AsString();
  const Json* cluster = merged.Get("clusters").Find(cluster_name);
  if (cluster == nullptr) {
    return Status(Code::kInvalid,
                  origin + ": context \"" + name + "\" names cluster \"" + cluster_name + "\", which does not exist");
  }
  const std::string where = cluster->Get("locationOfOrigin").AsString() + ": cluster \"" + cluster_name + "\"";

  RestConfig config;
  config.source = "context \"" + name + "\" of " + origin;
  config.server = cluster->Get("server").AsString();
  if (config.server.empty()) return Status(Code::kInvalid, where + " has no server");
  if (config.server.find("://") == std::string::npos && config.server.substr(0, 5) != "unix:") {
    config.server = "https://" + config.server;  // as client-go takes a bare host
  }
  config.tls_server_name = cluster->Get("tls-server-name").AsString();
  config.insecure_skip_verify = cluster->Get("insecure-skip-tls-verify").AsBool();
  LK_RETURN_IF_ERROR(InlineOrFile(*cluster, "certificate-authority", &config.ca_pem, &config.ca_file));
  if (config.insecure_skip_verify && (!config.ca_pem.empty() || !config.ca_file.empty())) {
    return Status(Code::kInvalid, where + ": insecure-skip-tls-verify together with a CA; drop one of them");
  }
  if (!cluster->Get("proxy-url").AsString().empty()) {
    return Status(Code::kUnsupported, where + ": proxy-url is not supported");
  }
  if (config.ca_pem.empty() && config.ca_file.empty() && !config.insecure_skip_verify) config.ca_file = kSystemRoots;
  if (!options.namespace_.empty()) {
    config.namespace_ = options.namespace_;
  } else if (const std::string& ns = context->Get("namespace").AsString(); !ns.empty()) {
    config.namespace_ = ns;
  }

  const Json* user = merged.Get("users").Find(user_name);
  if (user == nullptr && !user_name.empty()) {
    return Status(Code::kInvalid,
                  origin + ": context \"" + name + "\" names user \"" + user_name + "\", which does not exist");
  }
  static const Json kNobody = Json::MakeObject();
  const Json& who = user != nullptr ? *user : kNobody;
  LK_ASSIGN_OR_RETURN(config.credentials,
                      CredentialsOf(who, who.Get("locationOfOrigin").AsString() + ": user \"" + user_name + "\"",
                                    *cluster, config, ClockOf(options)));
  return config;
}

Result<RestConfig> LoadRestConfig(const KubeconfigOptions& options) {
  const auto environment = options.environment ? options.environment : ProcessEnvironment;
  if (!options.explicit_path.empty()) {
    LK_ASSIGN_OR_RETURN(const Json merged, MergeKubeconfigs({options.explicit_path}, true));
    return ResolveContext(merged, options);
  }
  if (const auto list = environment("KUBECONFIG"); list && !list->empty()) {
    std::vector<std::string> paths;
    for (size_t from = 0; from <= list->size();) {
      const size_t colon = std::min(list->find(':', from), list->size());
      paths.push_back(list->substr(from, colon - from));
      from = colon + 1;
    }
    // Any of them may be missing, but not all: nothing says then where the API is.
    if (std::none_of(paths.begin(), paths.end(), [](const std::string& p) { return !p.empty() && PathExists(p); })) {
      return Status(Code::kNotFound, "KUBECONFIG names no file that exists: " + *list);
    }
    LK_ASSIGN_OR_RETURN(const Json merged, MergeKubeconfigs(paths, false));
    return ResolveContext(merged, options);
  }
  const auto host = environment("KUBERNETES_SERVICE_HOST");
  const auto port = environment("KUBERNETES_SERVICE_PORT");
  if (options.allow_in_cluster && options.context.empty() && host && port && !host->empty() && !port->empty()) {
    return InCluster(options, *host, *port);
  }
  const auto home = environment("HOME");
  const std::string path = JoinPath(home.value_or("/"), ".kube/config");
  if (!PathExists(path)) {
    return Status(Code::kNotFound, "no kubeconfig: give --kubeconfig, set KUBECONFIG, or write " + path);
  }
  LK_ASSIGN_OR_RETURN(const Json merged, MergeKubeconfigs({path}, true));
  return ResolveContext(merged, options);
}

}  // namespace lockkeeper
