#include "api/types/server_parts.h"

#include "api/types/field_limits.h"

namespace lockkeeper {

using namespace types_internal;  // NOLINT(google-build-using-namespace)

const EnumInfo& EnumInfoOf(ChecksumType) {
  static const EnumInfo info{"ChecksumType", {"File", "Value", "None"}};
  return info;
}
const EnumInfo& EnumInfoOf(AdoptType) {
  static const EnumInfo info{"AdoptType", {"Unit", "Pid"}};
  return info;
}
const EnumInfo& EnumInfoOf(ProbeType) {
  static const EnumInfo info{"ProbeType", {"None", "Workspace", "ConfigMap"}};
  return info;
}
const EnumInfo& EnumInfoOf(BackupDriver) {
  static const EnumInfo info{"BackupDriver", {"None", "Etcd", "SQLite", "Command"}};
  return info;
}
const EnumInfo& EnumInfoOf(AfterFlip) {
  static const EnumInfo info{"AfterFlip", {"Manual", "Automatic"}};
  return info;
}

bool LabelSelector::Matches(const std::map<std::string, std::string>& labels) const {
  for (const auto& [key, value] : match_labels) {
    const auto it = labels.find(key);
    if (it == labels.end() || it->second != value) return false;
  }
  return !match_labels.empty();
}

const TypeInfo& BuildChecksum::Type() {
  static const TypeInfo* type = [] {
    using S = BuildChecksum;
    TypeBuilder<S> b("BuildChecksum", "What the artifact must hash to.");
    b.Field(&S::type, "type",
            "File: a file beside the artifact holds its SHA-256. Value: it stands here. None: it is not checked, which "
            "allowUnverified must allow.")
        .Default("File");
    b.Field(&S::url, "url", "File: where the file is. Unset: the artifact's URL with .sha256 behind it.")
        .Length(1, kUrlLength)
        .Pattern(kUrlPattern, kUrlHint);
    b.Field(&S::value, "value", "Value: the SHA-256.").Length(64, 64).Pattern(kSha256Pattern, kSha256Hint);
    b.Field(&S::allow_unverified, "allowUnverified", "Allows type None.").Default(false);
    b.Member("type", "Value", "value");
    b.MemberOnlyWith("type", "File", "url");
    b.Check("self.type != 'None' || self.allowUnverified", "checksum type None needs allowUnverified: true",
            [](const Json& self, const Json*) {
              return self.Get("type").AsString() != "None" || self.Get("allowUnverified").AsBool();
            });
    return b.Build();
  }();
  return *type;
}

const TypeInfo& BuildSignature::Type() {
  static const TypeInfo* type = [] {
    TypeBuilder<BuildSignature> b("BuildSignature", "A detached signature of the artifact.");
    b.Field(&BuildSignature::url, "url", "Where it is; {version} {os} {arch} {artifact} are filled in.")
        .Required()
        .Length(1, kUrlLength)
        .Pattern(kUrlPattern, kUrlHint);
    b.Field(&BuildSignature::public_key, "publicKey", "The key that made it, in PEM.").Required().Length(1, 16384);
    return b.Build();
  }();
  return *type;
}

const TypeInfo& BuildSource::Type() {
  static const TypeInfo* type = [] {
    using S = BuildSource;
    TypeBuilder<S> b("BuildSource", "Where builds come from.");
    b.Field(&S::url, "url",
            "The artifact: a .tar.gz, .tar or an executable, or a folder on the host. {version} {os} {arch} {artifact} "
            "are filled in.")
        .Required()
        .Length(1, kUrlLength)
        .Pattern(kUrlPattern, kUrlHint);
    b.Field(&S::index, "index", "The JSON index that resolves latest and main.")
        .Length(1, kUrlLength)
        .Pattern(kUrlPattern, kUrlHint);
    b.Field(&S::checksum, "checksum", "What the artifact must hash to.").Default(Json::MakeObject());
    b.Field(&S::signature, "signature", "A detached signature of the artifact.");
    return b.Build();
  }();
  return *type;
}

const TypeInfo& LayoutSpec::Type() {
  static const TypeInfo* type = [] {
    TypeBuilder<LayoutSpec> b("LayoutSpec", "Where things lie on the host.");
    HostPath(b.Field(&LayoutSpec::data_dir, "dataDir",
                     "Folder of the Server's slots, releases, backups and logs. Unset: the agent's data folder, by "
                     "namespace and name."));
    HostPath(b.Field(&LayoutSpec::path_link, "pathLink",
                     "A link that points to the active release's executable. A link owned by another tool is left "
                     "alone."));
    return b.Build();
  }();
  return *type;
}

const TypeInfo& StoreUnit::Type() {
  static const TypeInfo* type = [] {
    TypeBuilder<StoreUnit> b("StoreUnit",
                             "A long-lived process of the store; never rolled, but a restore may stop it.");
    b.Field(&StoreUnit::name, "name", "Its name.").Required().Length(1, 63).Pattern(kShortNamePattern, kShortNameHint);
    b.Field(&StoreUnit::command, "command", "Its argv.").Required().Items(1, 256).Length(0, kPathLength);
    HostPath(b.Field(&StoreUnit::data_dir, "dataDir", "The folder of its data, which a restore replaces."));
    return b.Build();
  }();
  return *type;
}

const TypeInfo& StoreSpec::Type() {
  static const TypeInfo* type = [] {
    TypeBuilder<StoreSpec> b("StoreSpec", "The store that the slots share.");
    b.Field(&StoreSpec::units, "units", "Processes of the store.").ListMap({"name"}).Items(0, 8);
    b.Field(&StoreSpec::url, "url", "Where the slots find it; recorded with the active slot.").Length(1, kUrlLength);
    return b.Build();
  }();
  return *type;
}

const TypeInfo& SeedSpec::Type() {
  static const TypeInfo* type = [] {
    using S = SeedSpec;
    TypeBuilder<S> b("SeedSpec", "Files that every slot's root must hold alike: certificates, keys, tokens.");
    HostPath(b.Field(&S::shared, "shared", "Folder of the shared files; {shared} in the command."));
    b.Field(&S::files, "files", "Their names.")
        .Set()
        .Items(1, 64)
        .Length(1, 255)
        .Pattern("^[A-Za-z0-9_.-]*[A-Za-z0-9_-][A-Za-z0-9_.-]*$", "a file name")
        .Default(
            Json::MakeArray({"apiserver.crt", "apiserver.key", "sa.key", ".admin-token-store", "admin.kubeconfig"}));
    b.Field(&S::harvest, "harvest", "Copy them from the first slot once it is ready, never over a file that is there.")
        .Default(true);
    return b.Build();
  }();
  return *type;
}

const TypeInfo& MemberToken::Type() {
  static const TypeInfo* type = [] {
    TypeBuilder<MemberToken> b("MemberToken", "The members' kubeconfig, whose token follows the active slot.");
    HostPath(b.Field(&MemberToken::file, "file", "The kubeconfig.")).Required();
    b.Field(&MemberToken::context, "context", "Whose user is refreshed. Unset: the current context.").Length(1, 256);
    return b.Build();
  }();
  return *type;
}

const TypeInfo& AdoptSpec::Type() {
  static const TypeInfo* type = [] {
    using S = AdoptSpec;
    TypeBuilder<S> b("AdoptSpec", "A server that already runs, taken over as slot blue. Read once.");
    b.Field(&S::type, "type", "Unit: a systemd unit. Pid: a process.").Required();
    b.Field(&S::unit, "unit", "Unit: its name.")
        .Length(1, 256)
        .Pattern("^[A-Za-z0-9:_.@-]+\\.service$", "the name of a systemd service");
    b.Field(&S::pid, "pid", "Pid: its number.").Range(2, kMaxPid);
    b.Field(&S::port, "port", "The port it serves on.").Required().Range(1, 65535);
    b.Member("type", "Unit", "unit");
    b.Member("type", "Pid", "pid");
    return b.Build();
  }();
  return *type;
}

const TypeInfo& AccessSpec::Type() {
  static const TypeInfo* type = [] {
    TypeBuilder<AccessSpec> b("AccessSpec", "How the agent speaks to the rolled server.");
    b.Field(&AccessSpec::kubeconfig_file, "kubeconfigFile",
            "A kubeconfig on the host; {root} and {shared} are filled in. Its server address is replaced by the "
            "front's or the slot's.")
        .Required()
        .Length(1, kPathLength);
    b.Field(&AccessSpec::context, "context", "The context. Unset: the current one.").Length(1, 256);
    return b.Build();
  }();
  return *type;
}

const TypeInfo& LeaseRef::Type() {
  static const TypeInfo* type = [] {
    using S = LeaseRef;
    TypeBuilder<S> b("LeaseRef", "The controllers' Lease inside the rolled server.");
    b.Field(&S::path, "path", "Prefix of the API's paths, such as /clusters/system:admin.")
        .Length(1, 1024)
        .Pattern(kAbsolutePattern, kAbsoluteHint);
    Name(b.Field(&S::namespace_, "namespace", "Its namespace.")).Default("kube-system");
    Name(b.Field(&S::name, "name", "Its name.")).Required();
    b.Field(&S::expect_handover, "expectHandover", "Whether a roll waits for another holder's renewal.").Default(true);
    return b.Build();
  }();
  return *type;
}

const TypeInfo& WorkspaceType::Type() {
  static const TypeInfo* type = [] {
    TypeBuilder<WorkspaceType> b("WorkspaceType", "A kcp workspace type.");
    Name(b.Field(&WorkspaceType::name, "name", "Its name.")).Default("universal");
    b.Field(&WorkspaceType::path, "path", "The workspace that defines it.").Length(1, 512).Default("root");
    return b.Build();
  }();
  return *type;
}

const TypeInfo& WorkspaceProbe::Type() {
  static const TypeInfo* type = [] {
    TypeBuilder<WorkspaceProbe> b("WorkspaceProbe", "A kcp Workspace that must become Ready.");
    b.Field(&WorkspaceProbe::parent, "parent", "The workspace it is made in.").Length(1, 512).Default("root");
    b.Field(&WorkspaceProbe::type, "type", "Its type.").Default(Json::MakeObject());
    return b.Build();
  }();
  return *type;
}

const TypeInfo& ConfigMapProbe::Type() {
  static const TypeInfo* type = [] {
    TypeBuilder<ConfigMapProbe> b("ConfigMapProbe", "A ConfigMap that must be written and read back.");
    Name(b.Field(&ConfigMapProbe::namespace_, "namespace", "The namespace it is made in.")).Default("default");
    return b.Build();
  }();
  return *type;
}

const TypeInfo& ProbeSpec::Type() {
  static const TypeInfo* type = [] {
    TypeBuilder<ProbeSpec> b("ProbeSpec",
                             "What is made through the front after a roll, to prove that the server works.");
    b.Field(&ProbeSpec::type, "type", "What is made.").Default("None");
    b.Field(&ProbeSpec::workspace, "workspace", "Workspace: where and of which type. Unset: its defaults.");
    b.Field(&ProbeSpec::config_map, "configMap", "ConfigMap: where. Unset: its defaults.");
    b.MemberOnlyWith("type", "Workspace", "workspace");
    b.MemberOnlyWith("type", "ConfigMap", "configMap");
    return b.Build();
  }();
  return *type;
}

}  // namespace lockkeeper
