#include "reconcilers/front/front_config.h"

#include <charconv>
#include <functional>

#include "api/base/file.h"
#include "api/base/hash.h"

namespace lockkeeper::front {
namespace {

struct Option {
  const char* flag;
  const char* json;
  const char* help;
  // Exactly one is set.
  std::string* (*text)(FrontConfig&) = nullptr;
  int64_t (*get)(const FrontConfig&) = nullptr;
  void (*set)(FrontConfig&, int64_t) = nullptr;
  int64_t least = 0;
  int64_t most = 0;
};

#define LK_INT(field)                                             \
  [](const FrontConfig& c) -> int64_t { return c.limits.field; }, \
      [](FrontConfig& c, int64_t v) { c.limits.field = static_cast<int>(v); }
#define LK_DURATION(field, unit)                                           \
  [](const FrontConfig& c) -> int64_t { return c.limits.field / (unit); }, \
      [](FrontConfig& c, int64_t v) { c.limits.field = v * (unit); }

constexpr int64_t kDay = 86400;

const std::vector<Option>& Options() {
  static const auto* options = new std::vector<Option>{
      {"name", "name", "NAMESPACE/NAME, for the log", [](FrontConfig& c) { return &c.name; }},
      {"listen", "listen", "numeric address:port to accept on", [](FrontConfig& c) { return &c.listen; }},
      {"state", "state", "folder of the state file", [](FrontConfig& c) { return &c.state_dir; }},
      {"admin", "admin", "path of the admin socket", [](FrontConfig& c) { return &c.admin_path; }},
      {"max-connections", "maxConnections", "connections at once; more wait in the kernel's queue", nullptr,
       LK_INT(max_connections), 1, 1'000'000},
      {"hold-connections", "holdConnections", "connections that may wait for a backend", nullptr,
       LK_INT(hold_connections), 1, 1'000'000},
      {"hold-seconds", "holdSeconds", "how long one may wait", nullptr, LK_DURATION(hold_time, Seconds(1)), 1, kDay},
      {"connect-timeout-milliseconds", "connectTimeoutMilliseconds", "one try to reach the backend", nullptr,
       LK_DURATION(connect_timeout, Milliseconds(1)), 1, 60'000},
      {"connect-tries", "connectTries", "tries before a connection is held", nullptr, LK_INT(connect_tries), 1, 20},
      {"idle-timeout-seconds", "idleTimeoutSeconds", "silence that ends a connection; 0: never", nullptr,
       LK_DURATION(idle_timeout, Seconds(1)), 0, 30 * kDay},
      {"fin-timeout-seconds", "finTimeoutSeconds", "silence that ends a half-closed connection", nullptr,
       LK_DURATION(fin_timeout, Seconds(1)), 1, kDay},
      {"keepalive-idle-seconds", "keepaliveIdleSeconds", "silence before TCP asks; 0: never asks", nullptr,
       LK_INT(keepalive.idle_seconds), 0, 32767},
      {"keepalive-interval-seconds", "keepaliveIntervalSeconds", "between two of its questions", nullptr,
       LK_INT(keepalive.interval_seconds), 1, 32767},
      {"keepalive-count", "keepaliveCount", "unanswered ones that end it", nullptr, LK_INT(keepalive.count), 1, 127},
      {"user-timeout-seconds", "userTimeoutSeconds", "unacknowledged bytes that end a connection", nullptr,
       LK_INT(keepalive.user_timeout_seconds), 0, kDay},
  };
  return *options;
}
#undef LK_INT
#undef LK_DURATION

Status Assign(const Option& o, const Json& value, const std::string& as, FrontConfig* config) {
  if (o.text != nullptr) {
    if (!value.IsString()) return {Code::kInvalid, as + ": must be text (" + o.help + ")"};
    *o.text(*config) = value.AsString();
    return Status::Ok();
  }
  if (!value.IsInt() || value.AsInt() < o.least || value.AsInt() > o.most) {
    return {Code::kInvalid, as + ": must be a whole number from " + std::to_string(o.least) + " to " +
                                std::to_string(o.most) + " (" + o.help + "), not " + value.Dump()};
  }
  o.set(*config, value.AsInt());
  return Status::Ok();
}

Status ApplyJson(const Json& json, FrontConfig* config) {
  if (!json.IsObject()) return {Code::kInvalid, "the front's configuration must be a JSON object"};
  for (const auto& [name, value] : json.AsObject()) {
    const Option* found = nullptr;
    for (const Option& o : Options()) found = name == o.json ? &o : found;
    if (found == nullptr) return {Code::kInvalid, "\"" + name + "\" is no setting of a front"};
    LK_RETURN_IF_ERROR(Assign(*found, value, name, config));
  }
  return Status::Ok();
}

Status Complete(const FrontConfig& config) {
  if (config.state_dir.empty()) return {Code::kInvalid, "--state DIR is missing"};
  if (config.admin_path.empty()) return {Code::kInvalid, "--admin PATH is missing"};
  return Status::Ok();
}

}  // namespace

Result<FrontConfig> FrontConfigFromJson(const Json& json) {
  FrontConfig config;
  LK_RETURN_IF_ERROR(ApplyJson(json, &config));
  LK_RETURN_IF_ERROR(Complete(config));
  return config;
}

Result<FrontConfig> FrontConfigFromArgs(const std::vector<std::string>& args) {
  FrontConfig config;
  std::vector<std::pair<std::string, std::string>> flags;
  for (size_t i = 0; i < args.size(); ++i) {
    std::string flag = args[i];
    if (flag.rfind("--", 0) != 0) return Status(Code::kInvalid, "\"" + flag + "\" is no flag of a front");
    const size_t equals = flag.find('=');
    std::string value;
    if (equals != std::string::npos) {
      value = flag.substr(equals + 1);
      flag = flag.substr(0, equals);
    } else if (++i < args.size()) {
      value = args[i];
    } else {
      return Status(Code::kInvalid, flag + ": needs a value");
    }
    flags.emplace_back(flag.substr(2), value);
  }
  for (const auto& [flag, value] : flags) {
    if (flag != "config") continue;
    LK_ASSIGN_OR_RETURN(const std::string text, ReadFile(value));
    auto json = Json::Parse(text);
    if (!json.ok()) return json.status().Annotate("--config " + value);
    LK_RETURN_IF_ERROR(ApplyJson(*json, &config).Annotate("--config " + value));
  }
  for (const auto& [flag, value] : flags) {
    if (flag == "config") continue;
    const Option* found = nullptr;
    for (const Option& o : Options()) found = flag == o.flag ? &o : found;
    if (found == nullptr) return Status(Code::kInvalid, "--" + flag + " is no flag of a front");
    Json typed(value);
    int64_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (found->text == nullptr && error == std::errc() && end == value.data() + value.size()) typed = Json(number);
    LK_RETURN_IF_ERROR(Assign(*found, typed, "--" + flag, &config));
  }
  LK_RETURN_IF_ERROR(Complete(config));
  return config;
}

Json FrontConfigToJson(const FrontConfig& config) {
  FrontConfig mine = config;
  Json json = Json::MakeObject();
  for (const Option& o : Options()) json.Set(o.json, o.text != nullptr ? Json(*o.text(mine)) : Json(o.get(mine)));
  return json;
}

std::string SettingsHash(const FrontConfig& config) {
  FrontConfig limits;
  limits.limits = config.limits;
  return Sha256Hex(FrontConfigToJson(limits).DumpCanonical()).substr(0, 16);
}

std::vector<std::string> FrontArgs(const FrontConfig& config) {
  FrontConfig mine = config;
  FrontConfig defaults;
  std::vector<std::string> args;
  for (const Option& o : Options()) {
    const std::string value = o.text != nullptr ? *o.text(mine) : std::to_string(o.get(mine));
    const std::string usual = o.text != nullptr ? *o.text(defaults) : std::to_string(o.get(defaults));
    if (value == usual) continue;
    args.push_back(std::string("--") + o.flag);
    args.push_back(value);
  }
  return args;
}

std::string FrontUsage() {
  std::string text;
  for (const Option& o : Options()) {
    std::string line = std::string("  --") + o.flag;
    line.resize(std::max<size_t>(line.size() + 1, 34), ' ');
    text += line + o.help + "\n";
  }
  text += "  --config FILE                   the same names in camelCase, as one JSON object\n";
  return text;
}

std::string FrontAdminPath(const std::string& base_dir, const std::string& ns, const std::string& name) {
  constexpr size_t kMaxSocketPath = 107;  // sun_path less its NUL
  std::string path = JoinPath(base_dir, ns + "." + name + ".sock");
  if (path.size() > kMaxSocketPath) path = JoinPath(base_dir, Sha256Hex(ns + "/" + name).substr(0, 16) + ".sock");
  return path;
}

}  // namespace lockkeeper::front
