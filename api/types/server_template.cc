#include "api/types/server_template.h"

#include "api/types/field_limits.h"

namespace lockkeeper {

using namespace types_internal;  // NOLINT(google-build-using-namespace)

const EnumInfo& EnumInfoOf(PortType) {
  static const EnumInfo info{"PortType", {"FromProcess", "Fixed"}};
  return info;
}
const EnumInfo& EnumInfoOf(ReadinessScheme) {
  static const EnumInfo info{"ReadinessScheme", {"HTTPS", "HTTP"}};
  return info;
}
const EnumInfo& EnumInfoOf(IdentityType) {
  static const EnumInfo info{"IdentityType", {"Executable", "KubeVersion", "HealthPage"}};
  return info;
}
const EnumInfo& EnumInfoOf(StopSignal) {
  static const EnumInfo info{"StopSignal", {"TERM", "INT", "QUIT"}};
  return info;
}
const EnumInfo& EnumInfoOf(StopOrder) {
  static const EnumInfo info{"StopOrder", {"DrainThenStop", "StopThenDrain"}};
  return info;
}

const TypeInfo& EnvVar::Type() {
  static const TypeInfo* type = [] {
    TypeBuilder<EnvVar> b("EnvVar", "One environment variable.");
    b.Field(&EnvVar::name, "name", "Name of the variable.")
        .Required()
        .Length(1, 256)
        .Pattern("^[A-Za-z_][A-Za-z0-9_.-]*$", "a name of an environment variable");
    b.Field(&EnvVar::value, "value", "Its value; the placeholders of command are filled in.").Length(0, 32768);
    return b.Build();
  }();
  return *type;
}

const TypeInfo& ResourceLimits::Type() {
  static const TypeInfo* type = [] {
    using S = ResourceLimits;
    TypeBuilder<S> b("ResourceLimits",
                     "What one slot's process may use at most. Needs a driver with cgroups for cpu "
                     "and memory.");
    b.Field(&S::cpu, "cpu", "CPUs: 500m is half of one.")
        .Length(1, 16)
        .Pattern("^[0-9]+(\\.[0-9]{1,3}|m)?$", "a quantity such as 500m or 2");
    b.Field(&S::memory, "memory", "Memory: 512Mi, 2Gi.")
        .Length(1, 16)
        .Pattern("^[0-9]+(Ki|Mi|Gi|Ti|k|M|G|T)?$", "a quantity such as 512Mi or 2Gi");
    b.Field(&S::files, "files", "Open files.").Range(64, 1 << 30);
    return b.Build();
  }();
  return *type;
}

const TypeInfo& LogPolicy::Type() {
  static const TypeInfo* type = [] {
    TypeBuilder<LogPolicy> b("LogPolicy", "How a slot's output is kept.");
    b.Field(&LogPolicy::max_bytes, "maxBytes", "Bytes of one file; a fuller one is rotated.")
        .Range(65536, int64_t{1} << 40)
        .Default(64 << 20);
    b.Field(&LogPolicy::keep, "keep", "Rotated files kept beside the current one.").Range(0, 100).Default(3);
    return b.Build();
  }();
  return *type;
}

const TypeInfo& FixedPorts::Type() {
  static const TypeInfo* type = [] {
    TypeBuilder<FixedPorts> b("FixedPorts", "One port a slot.");
    b.Field(&FixedPorts::blue, "blue", "Port of slot blue, the only slot of a Single Server.")
        .Required()
        .Range(1, 65535);
    b.Field(&FixedPorts::green, "green", "Port of slot green. Required for shape BlueGreen.").Range(1, 65535);
    b.Check("!has(self.green) || self.green != self.blue", "blue and green need different ports",
            [](const Json& self, const Json*) { return !self.Has("green") || self.Get("green") != self.Get("blue"); });
    return b.Build();
  }();
  return *type;
}

const TypeInfo& PortSpec::Type() {
  static const TypeInfo* type = [] {
    TypeBuilder<PortSpec> b("PortSpec", "Where the process listens.");
    b.Field(&PortSpec::type, "type",
            "FromProcess: {port} is 0, and the port is read from the process's listening sockets. Fixed: {port} is the "
            "slot's port in `fixed`.")
        .Default("FromProcess");
    b.Field(&PortSpec::fixed, "fixed", "The ports; required for type Fixed, and only then.");
    b.Member("type", "Fixed", "fixed");
    return b.Build();
  }();
  return *type;
}

const TypeInfo& CompanionSpec::Type() {
  static const TypeInfo* type = [] {
    using S = CompanionSpec;
    TypeBuilder<S> b("CompanionSpec", "A process beside each slot: started before the slot's, retired with it.");
    b.Field(&S::name, "name", "Its name; {companion.NAME.port} is its port.")
        .Required()
        .Length(1, 63)
        .Pattern(kShortNamePattern, kShortNameHint);
    b.Field(&S::command, "command", "Its argv, with the placeholders of the template's command.")
        .Required()
        .Items(1, 256)
        .Length(0, kPathLength);
    b.Field(&S::env, "env", "Its environment.").ListMap({"name"}).Items(0, 256);
    b.Field(&S::port, "port", "Where it listens.").Default(Json::MakeObject());
    return b.Build();
  }();
  return *type;
}

const TypeInfo& ReadinessSpec::Type() {
  static const TypeInfo* type = [] {
    using S = ReadinessSpec;
    TypeBuilder<S> b("ReadinessSpec", "How a slot's process is asked whether it is ready, on its own port.");
    b.Field(&S::path, "path", "Path that answers 200 when ready.")
        .Length(1, 1024)
        .Pattern(kAbsolutePattern, kAbsoluteHint)
        .Default("/readyz");
    b.Field(&S::scheme, "scheme", "HTTPS or HTTP.").Default("HTTPS");
    b.Field(&S::ca_file, "caFile",
            "PEM file with the authority of the process's certificate; {root} and {shared} are filled in. Unset: "
            "{root}/apiserver.crt.")
        .Length(1, kPathLength);
    b.Field(&S::insecure, "insecure", "Do not check the certificate. Not together with caFile.").Default(false);
    b.Field(&S::attempt_timeout_milliseconds, "attemptTimeoutMilliseconds", "Milliseconds one question may take.")
        .Range(10, 60000)
        .Default(1000);
    b.Field(&S::min_ready_seconds, "minReadySeconds", "Seconds it must answer 200 without a break.")
        .Range(0, 3600)
        .Default(0);
    b.Check("!(has(self.caFile) && self.insecure)", "set caFile or insecure, not both",
            [](const Json& self, const Json*) { return !(self.Has("caFile") && self.Get("insecure").AsBool()); });
    return b.Build();
  }();
  return *type;
}

const TypeInfo& IdentitySpec::Type() {
  static const TypeInfo* type = [] {
    using S = IdentitySpec;
    TypeBuilder<S> b("IdentitySpec", "How the running build is told.");
    b.Field(&S::type, "type",
            "Executable: SHA-256 of the file that the process runs. KubeVersion: gitVersion of /version, through "
            "pattern. HealthPage: a page that names version, commit and instance.")
        .Default("Executable");
    b.Field(&S::pattern, "pattern",
            "KubeVersion: regular expression whose first group is the version, such as ^v[^+]*\\+kcp-(.*)$.")
        .Length(1, 256);
    b.Field(&S::url, "url", "HealthPage: its URL; {port} is filled in.")
        .Length(1, kUrlLength)
        .Pattern(kHttpPattern, kHttpHint);
    b.Field(&S::server_name, "serverName", "HealthPage: the name its certificate must carry.").Length(1, kNameLength);
    b.Member("type", "KubeVersion", "pattern");
    b.Member("type", "HealthPage", "url");
    b.MemberOnlyWith("type", "HealthPage", "serverName");
    return b.Build();
  }();
  return *type;
}

const TypeInfo& StopPolicy::Type() {
  static const TypeInfo* type = [] {
    TypeBuilder<StopPolicy> b("StopPolicy", "How the old process is ended.");
    b.Field(&StopPolicy::signal, "signal", "The signal, sent once.").Default("TERM");
    b.Field(&StopPolicy::order, "order",
            "DrainThenStop: its connections are drained first, for servers that cut requests when told to stop. "
            "StopThenDrain: it is told to stop first, for servers that end requests gracefully by themselves.")
        .Default("DrainThenStop");
    return b.Build();
  }();
  return *type;
}

const TypeInfo& ServerTemplate::Type() {
  static const TypeInfo* type = [] {
    using S = ServerTemplate;
    TypeBuilder<S> b("ServerTemplate", "How one slot's process is rendered, watched and stopped.");
    b.Field(&S::command, "command",
            "The argv. Filled in: {root} {slot} {port} {version} {release} {shared} {companion.NAME.port} {data} "
            "{dataDir} "
            "{store}. A relative program is looked up in the release.")
        .Required()
        .Items(1, 256)
        .Length(0, kPathLength);
    b.Field(&S::env, "env", "The environment. No secrets: it is shown in the Slot.").ListMap({"name"}).Items(0, 256);
    b.Field(&S::working_directory, "workingDirectory", "The working directory. Unset: {root}.").Length(1, kPathLength);
    b.Field(&S::user, "user", "The user it runs as. Unset: the agent's.")
        .Length(1, 64)
        .Pattern("^[A-Za-z0-9_][A-Za-z0-9_.-]*[$]?$", "a user name or number");
    b.Field(&S::group, "group", "The group it runs as. Unset: the user's.")
        .Length(1, 64)
        .Pattern("^[A-Za-z0-9_][A-Za-z0-9_.-]*[$]?$", "a group name or number");
    b.Field(&S::limits, "limits", "What it may use at most.");
    b.Field(&S::logs, "logs", "How its output is kept.").Default(Json::MakeObject());
    b.Field(&S::companions, "companions", "Processes beside each slot.").ListMap({"name"}).Items(0, 8);
    b.Field(&S::port, "port", "Where it listens.").Default(Json::MakeObject());
    b.Field(&S::readiness, "readiness", "How it is asked whether it is ready.").Default(Json::MakeObject());
    b.Field(&S::identity, "identity", "How the running build is told.").Default(Json::MakeObject());
    b.Field(&S::stop, "stop", "How the old process is ended.").Default(Json::MakeObject());
    return b.Build();
  }();
  return *type;
}

}  // namespace lockkeeper
