#include "api/server/kcp/options.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <string_view>

#include "api/base/file.h"
#include "api/server/kcp/durations.h"

namespace lockkeeper::kcp {
namespace {

struct Flag {
  std::string_view name;
  bool boolean = false;
  std::string_view help;
  std::function<Status(Options&, const std::string&)> set;
};

using StringField = std::string Options::*;
using BoolField = bool Options::*;
using DurationField = Duration Options::*;

Flag Text(std::string_view name, StringField field, std::string_view help) {
  return {name, false, help, [field](Options& o, const std::string& v) {
            o.*field = v;
            return Status::Ok();
          }};
}

Flag Bool(std::string_view name, BoolField field, std::string_view help) {
  return {name, true, help, [field](Options& o, const std::string& v) {
            if (v != "true" && v != "false") return Status(Code::kInvalid, "must be true or false");
            o.*field = v == "true";
            return Status::Ok();
          }};
}

Flag Period(std::string_view name, DurationField field, std::string_view help) {
  return {name, false, help, [field](Options& o, const std::string& v) {
            LK_ASSIGN_OR_RETURN(o.*field, ParseGoDuration(v));
            return Status::Ok();
          }};
}

// Flags of kcp that change nothing here, so that a real command line works.
Flag Ignored(std::string_view name, bool boolean = false) {
  return {name, boolean, "accepted; no effect here", [](Options&, const std::string&) { return Status::Ok(); }};
}

Status SetPort(Options& o, const std::string& v) {
  const auto [end, error] = std::from_chars(v.data(), v.data() + v.size(), o.secure_port);
  if (error != std::errc() || end != v.data() + v.size() || o.secure_port < 0 || o.secure_port > 65535) {
    return Status(Code::kInvalid, "must be a port from 0 to 65535");
  }
  return Status::Ok();
}

Status SetChance(Options& o, const std::string& v) {
  const auto [end, error] = std::from_chars(v.data(), v.data() + v.size(), o.goaway_chance);
  if (error != std::errc() || end != v.data() + v.size() || !(o.goaway_chance >= 0) || o.goaway_chance > 1) {
    return Status(Code::kInvalid, "must be from 0 to 1");
  }
  return Status::Ok();
}

const std::vector<Flag>& Flags() {
  static const std::vector<Flag> flags = {
      Text("root-directory", &Options::root_directory,
           "folder of keys, tokens and the embedded store; empty: no files"),
      Text("etcd-servers", &Options::etcd_servers, "embedded, or sqlite:///path of a store that slots share"),
      Text("bind-address", &Options::bind_address, "address to listen on"),
      {"secure-port", false, "port to listen on; 0 needs --experimental-bind-free-port", SetPort},
      Bool("experimental-bind-free-port", &Options::bind_free_port, "take any free port"),
      Text("external-hostname", &Options::external_hostname, "host in admin.kubeconfig without --shard-base-url"),
      Text("cert-dir", &Options::cert_dir, "folder of apiserver.crt and apiserver.key"),
      Text("tls-cert-file", &Options::tls_cert_file, "serving certificate"),
      Text("tls-private-key-file", &Options::tls_private_key_file, "its key"),
      Text("token-auth-file", &Options::token_auth_file, "CSV of token,user,uid,\"groups\"; read at start"),
      Text("shard-name", &Options::shard_name, "name of the Shard object"),
      Text("shard-base-url", &Options::shard_base_url, "URL of this shard; the same for all slots"),
      Text("shard-external-url", &Options::shard_external_url, "URL that clients use"),
      Text("shard-virtual-workspace-url", &Options::shard_virtual_workspace_url, "URL of virtual workspaces"),
      Bool("enable-leader-election", &Options::leader_election, "run controllers only while holding the Lease"),
      Text("leader-election-namespace", &Options::lease_namespace, "namespace of the Lease in system:admin"),
      Text("leader-election-name", &Options::lease_name, "name of the Lease"),
      Period("shutdown-delay-duration", &Options::shutdown_delay, "serve on this long after SIGTERM"),
      Bool("shutdown-send-retry-after", &Options::shutdown_send_retry_after, "answer 429 while requests drain"),
      Period("shutdown-watch-termination-grace-period", &Options::shutdown_watch_grace, "end watches within this"),
      {"goaway-chance", false, "part of the answers that say Connection: close", SetChance},
      Text("request-log", &Options::request_log, "JSON lines, one per request"),
      Text("reconcile-log", &Options::reconcile_log, "JSON lines, one per begin and end of a reconcile"),
      Ignored("etcd-prefix"),
      Ignored("feature-gates"),
      Ignored("batteries-included"),
      Ignored("service-account-key-file"),
      Ignored("service-account-private-key-file"),
      Ignored("audit-log-path"),
      Ignored("authorization-always-allow-paths"),
      Ignored("profiler-address"),
      Ignored("logging-format"),
      Ignored("v"),
  };
  return flags;
}

// As pflag takes it apart: "--name=value", "--name value", "-v=4".
struct Argument {
  std::string name;
  std::string value;
  bool has_value = false;
};

Result<Argument> Split(const std::string& arg) {
  if (arg.size() < 2 || arg[0] != '-') return Status(Code::kInvalid, "unknown argument \"" + arg + "\"");
  Argument result;
  result.name = arg.substr(arg[1] == '-' ? 2 : 1);
  const size_t equals = result.name.find('=');
  if (equals != std::string::npos) {
    result.value = result.name.substr(equals + 1);
    result.name.resize(equals);
    result.has_value = true;
  }
  return result;
}

Status Validate(const Options& o) {
  if (o.secure_port == 0 && !o.bind_free_port) {
    return Status(
        Code::kInvalid,
        "--secure-port 0 is refused: it must be from 1 to 65535, or give --experimental-bind-free-port with it");
  }
  if (!o.embedded_store() && o.etcd_servers.rfind("sqlite:///", 0) != 0) {
    return Status(Code::kInvalid, "--etcd-servers \"" + o.etcd_servers +
                                      "\" is refused: this build stores in embedded or sqlite:///path");
  }
  if (o.embedded_store() && o.root_directory.empty()) {
    return Status(Code::kInvalid,
                  "--root-directory \"\" needs --etcd-servers: the embedded store is below the root directory");
  }
  if (o.tls_cert_file.empty() != o.tls_private_key_file.empty()) {
    return Status(Code::kInvalid, "--tls-cert-file and --tls-private-key-file go together");
  }
  if (o.root_directory.empty() && o.cert_dir.empty() && o.tls_cert_file.empty()) {
    return Status(Code::kInvalid, "--root-directory \"\" needs --tls-cert-file and --tls-private-key-file");
  }
  if (o.shard_name.empty() || o.lease_name.empty() || o.lease_namespace.empty()) {
    return Status(Code::kInvalid,
                  "--shard-name, --leader-election-name and --leader-election-namespace must not be empty");
  }
  return Status::Ok();
}

}  // namespace

std::string Options::StorePath() const {
  if (embedded_store()) return JoinPath(JoinPath(root_directory, "etcd-server"), "member.db");
  return etcd_servers.substr(std::string_view("sqlite://").size());
}

Result<Options> ParseStartFlags(const std::vector<std::string>& args) {
  Options options;
  for (size_t i = 0; i < args.size(); ++i) {
    LK_ASSIGN_OR_RETURN(Argument arg, Split(args[i]));
    const auto& flags = Flags();
    const auto flag = std::find_if(flags.begin(), flags.end(), [&](const Flag& f) { return f.name == arg.name; });
    if (flag == flags.end()) return Status(Code::kInvalid, "unknown flag: --" + arg.name);
    if (!arg.has_value && flag->boolean) {
      arg.value = "true";
    } else if (!arg.has_value) {
      if (i + 1 == args.size()) return Status(Code::kInvalid, "flag needs an argument: --" + arg.name);
      arg.value = args[++i];
    }
    const Status set = flag->set(options, arg.value);
    if (!set.ok()) {
      return Status(Code::kInvalid, "invalid argument \"" + arg.value + "\" for --" + arg.name + ": " + set.message());
    }
  }
  LK_RETURN_IF_ERROR(Validate(options));
  if (options.cert_dir.empty()) options.cert_dir = options.root_directory;
  return options;
}

std::string StartUsage() {
  std::string text = "Usage: kcp start [flags]\n\n";
  for (const Flag& flag : Flags()) {
    std::string name = "  --" + std::string(flag.name);
    name.resize(std::max<size_t>(name.size() + 2, 46), ' ');
    text += name + std::string(flag.help) + "\n";
  }
  return text;
}

}  // namespace lockkeeper::kcp
