#include "reconcilers/server/render.h"

#include <algorithm>
#include <cctype>
#include <csignal>

#include "api/types/quantity.h"

namespace lockkeeper::roll {
namespace {

// Fills {name} in. A brace that opens no name of letters, digits, dots, dashes is text (JSON in an argument is).
class Filler {
 public:
  explicit Filler(std::map<std::string, std::string> values) : values_(std::move(values)) {}

  void Add(std::string name, std::string value) { values_[std::move(name)] = std::move(value); }
  // Names that stay as they stand: they are filled in before the go.
  void Keep(std::string name) { kept_.push_back(std::move(name)); }

  Result<std::string> Fill(const std::string& text, const std::string& field) const {
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
      const size_t end = text[i] == '{' ? NameEnd(text, i + 1) : std::string::npos;
      if (end == std::string::npos) {
        out += text[i];
        continue;
      }
      const std::string name = text.substr(i + 1, end - i - 1);
      const auto value = values_.find(name);
      const bool kept = std::find(kept_.begin(), kept_.end(), name) != kept_.end();
      if (value == values_.end() && !kept)
        return Status(Code::kInvalid, field + ": unknown placeholder {" + name + "}");
      out += kept ? "{" + name + "}" : value->second;
      i = end;
    }
    return out;
  }

 private:
  static size_t NameEnd(const std::string& text, size_t begin) {
    size_t i = begin;
    while (i < text.size() && (std::isalnum(static_cast<unsigned char>(text[i])) != 0 || text[i] == '.' ||
                               text[i] == '-' || text[i] == '_')) {
      ++i;
    }
    return i > begin && i < text.size() && text[i] == '}' ? i : std::string::npos;
  }

  std::map<std::string, std::string> values_;
  std::vector<std::string> kept_;
};

int FixedPort(const PortSpec& port, const std::string& slot) {
  if (port.type != PortType::kFixed || !port.fixed) return 0;
  return static_cast<int>(slot == kGreen && port.fixed->green ? *port.fixed->green : port.fixed->blue);
}

Result<std::vector<std::string>> Command(const Filler& filler, const std::vector<std::string>& command,
                                         const std::string& release, const std::string& field) {
  if (command.empty()) return Status(Code::kInvalid, field + ": a command is required");
  std::vector<std::string> argv;
  for (size_t i = 0; i < command.size(); ++i) {
    LK_ASSIGN_OR_RETURN(std::string arg, filler.Fill(command[i], field + "[" + std::to_string(i) + "]"));
    argv.push_back(std::move(arg));
  }
  if (argv[0].empty()) return Status(Code::kInvalid, field + "[0]: is empty");
  if (argv[0][0] != '/') {
    if (release.empty())
      return Status(Code::kInvalid, field + "[0]: is relative, and there is no release to find it in");
    argv[0] = release + "/" + argv[0];
  }
  return argv;
}

Status AddEnv(const Filler& filler, const std::vector<EnvVar>& env, const std::string& field,
              std::map<std::string, std::string>& out) {
  for (const EnvVar& var : env) {
    LK_ASSIGN_OR_RETURN(std::string value, filler.Fill(var.value, field + "." + var.name));
    out[var.name] = std::move(value);
  }
  return Status::Ok();
}

Result<UnitLimits> Limits(const std::optional<ResourceLimits>& limits) {
  UnitLimits out;
  if (!limits) return out;
  out.files = limits->files.value_or(0);
  if (!limits->memory.empty()) {
    Result<int64_t> bytes = ParseByteQuantity(limits->memory);
    if (!bytes.ok()) return bytes.status().Annotate("spec.template.limits.memory");
    out.memory_bytes = *bytes;
  }
  if (!limits->cpu.empty()) {
    Result<int64_t> millis = ParseCpuMillis(limits->cpu);
    if (!millis.ok()) return millis.status().Annotate("spec.template.limits.cpu");
    out.cpu = static_cast<double>(*millis) / 1000;
  }
  return out;
}

std::map<std::string, std::string> WithoutRevision(std::map<std::string, std::string> env) {
  env.erase(kEnvRevision);
  env.erase(kEnvLedger);
  return env;
}

bool SameUnit(const UnitSpec& a, const UnitSpec& b) {
  UnitSpec x = a;
  UnitSpec y = b;
  x.env = WithoutRevision(x.env);
  y.env = WithoutRevision(y.env);
  return x == y;
}

}  // namespace

int SignalOf(StopSignal signal) {
  switch (signal) {
    case StopSignal::kTerm: return SIGTERM;
    case StopSignal::kInt: return SIGINT;
    case StopSignal::kQuit: return SIGQUIT;
  }
  return SIGTERM;
}

Result<SlotIntent> Render(const RenderInput& in) {
  const ServerTemplate& t = in.spec.template_;
  SlotIntent intent;
  intent.incarnation = in.incarnation;
  intent.build = in.build;
  intent.root = in.layout.Root(in.slot);
  intent.stop_signal = SignalOf(t.stop.signal);
  intent.stop_seconds = in.timeouts.stop_seconds;

  Filler filler({{"root", intent.root},
                 {"slot", in.slot},
                 {"port", std::to_string(FixedPort(t.port, in.slot))},
                 {"version", in.build.version},
                 {"release", in.build.path},
                 {"shared", in.layout.shared}});
  for (const CompanionSpec& companion : t.companions) {
    const std::string name = "companion." + companion.name + ".port";
    const int port = FixedPort(companion.port, in.slot);
    port != 0 ? filler.Add(name, std::to_string(port)) : filler.Keep(name);
  }

  UnitSpec& unit = intent.unit;
  unit.name = UnitName(in.key, in.slot, in.incarnation);
  LK_ASSIGN_OR_RETURN(unit.argv, Command(filler, t.command, in.build.path, "spec.template.command"));
  const std::map<std::string, std::string> base = {
      {"PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
      {"HOME", intent.root},
      {kEnvServer, in.key.ToString()},
      {kEnvSlot, in.slot},
      {kEnvIncarnation, std::to_string(in.incarnation)},
      {kEnvLedger, in.ledger_id},
      {kEnvRevision, std::to_string(in.ledger_revision)}};
  unit.env = base;
  LK_RETURN_IF_ERROR(AddEnv(filler, t.env, "spec.template.env", unit.env));
  LK_ASSIGN_OR_RETURN(unit.working_directory, filler.Fill(t.working_directory, "spec.template.workingDirectory"));
  if (unit.working_directory.empty()) unit.working_directory = intent.root;
  unit.user = t.user;
  unit.group = t.group;
  LK_ASSIGN_OR_RETURN(unit.limits, Limits(t.limits));
  unit.log_dir = in.layout.Logs(in.slot);
  unit.log_max_bytes = t.logs.max_bytes;
  unit.log_keep = static_cast<int>(t.logs.keep);

  for (const CompanionSpec& companion : t.companions) {
    const std::string field = "spec.template.companions[" + companion.name + "]";
    CompanionIntent c;
    c.name = companion.name;
    c.port = FixedPort(companion.port, in.slot);
    c.unit = unit;
    c.unit.name = unit.name + "-" + companion.name;
    c.unit.env = base;
    LK_ASSIGN_OR_RETURN(c.unit.argv, Command(filler, companion.command, in.build.path, field + ".command"));
    LK_RETURN_IF_ERROR(AddEnv(filler, companion.env, field + ".env", c.unit.env));
    c.unit.log_dir = in.layout.Logs(in.slot) + "/" + companion.name;
    c.unit.limits = UnitLimits{};
    intent.companions.push_back(std::move(c));
  }
  if (in.spec.store) {
    LK_ASSIGN_OR_RETURN(intent.store_url, filler.Fill(in.spec.store->url, "spec.store.url"));
  }
  return intent;
}

bool SameTemplate(const SlotIntent& a, const SlotIntent& b) {
  if (!SameUnit(a.unit, b.unit) || a.root != b.root || a.store_url != b.store_url || a.stop_signal != b.stop_signal ||
      a.companions.size() != b.companions.size()) {
    return false;
  }
  for (size_t i = 0; i < a.companions.size(); ++i) {
    const CompanionIntent& x = a.companions[i];
    const CompanionIntent& y = b.companions[i];
    if (x.name != y.name || x.port != y.port || !SameUnit(x.unit, y.unit)) return false;
  }
  return true;
}

}  // namespace lockkeeper::roll
