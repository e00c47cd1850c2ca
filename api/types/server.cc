#include "api/types/server.h"

#include "api/types/field_limits.h"

namespace lockkeeper {

using namespace types_internal;  // NOLINT(google-build-using-namespace)

const EnumInfo& EnumInfoOf(ServerRole) {
  static const EnumInfo info{"ServerRole", {"Server", "Runner"}};
  return info;
}
const EnumInfo& EnumInfoOf(ServerShape) {
  static const EnumInfo info{"ServerShape", {"BlueGreen", "Single"}};
  return info;
}
const EnumInfo& EnumInfoOf(ServerDriver) {
  static const EnumInfo info{"ServerDriver", {"Process", "Systemd", "Container"}};
  return info;
}
const EnumInfo& EnumInfoOf(UpdatePolicy) {
  static const EnumInfo info{"UpdatePolicy", {"OnNextOperation", "Immediately"}};
  return info;
}
const EnumInfo& EnumInfoOf(DeletionPolicy) {
  static const EnumInfo info{"DeletionPolicy", {"Orphan", "Stop"}};
  return info;
}
const EnumInfo& EnumInfoOf(InstallKind) {
  static const EnumInfo info{"InstallKind", {"Unknown", "Process", "Systemd", "Container"}};
  return info;
}

namespace {

bool IsRunner(const Json& spec) { return spec.Get("role").AsString() == "Runner"; }

// `field` may not stand on a Runner.
void NotOnRunner(TypeBuilderBase& b, const std::string& field, const std::string& why) {
  b.Check("self.role != 'Runner' || !has(self." + field + ")", field + " is not allowed on a Runner: " + why,
          [field](const Json& self, const Json*) { return !IsRunner(self) || !self.Has(field); });
}

// With two slots, a fixed port needs both. `at` is the path of a PortSpec below spec.
bool BothPorts(const Json& spec, const Json& port) {
  return spec.Get("shape").AsString() != "BlueGreen" || !port.Has("fixed") || port.Get("fixed").Has("green");
}

void ServerRules(TypeBuilderBase& b) {
  b.Check("self.role != 'Runner' || self.shape == 'Single'", "a Runner is Single: set shape: Single",
          [](const Json& self, const Json*) { return !IsRunner(self) || self.Get("shape").AsString() == "Single"; });
  NotOnRunner(b, "frontRef", "its clients reach it directly");
  NotOnRunner(b, "lease", "it leads nothing");
  NotOnRunner(b, "store", "it stores nothing");
  NotOnRunner(b, "runnerSelector", "only a Server has Runners");
  b.Check("self.role == 'Runner' || !has(self.nodeRef)", "nodeRef is only allowed on a Runner",
          [](const Json& self, const Json*) { return IsRunner(self) || !self.Has("nodeRef"); });
  b.Check("self.role == 'Runner' || !self.unschedulable", "unschedulable is only allowed on a Runner",
          [](const Json& self, const Json*) { return IsRunner(self) || !self.Get("unschedulable").AsBool(); });
  b.Check("self.shape != 'BlueGreen' || !has(self.template.port.fixed) || has(self.template.port.fixed.green)",
          "template.port.fixed.green is required when shape is BlueGreen",
          [](const Json& self, const Json*) { return BothPorts(self, self.Get("template").Get("port")); });
  b.Check(
      "self.shape != 'BlueGreen' || !has(self.template.companions) || "
      "self.template.companions.all(c, !has(c.port.fixed) || has(c.port.fixed.green))",
      "a companion's port.fixed.green is required when shape is BlueGreen", [](const Json& self, const Json*) {
        for (const Json& companion : self.Get("template").Get("companions").AsArray()) {
          if (!BothPorts(self, companion.Get("port"))) return false;
        }
        return true;
      });
}

}  // namespace

const TypeInfo& ServerSpec::Type() {
  static const TypeInfo* type = [] {
    using S = ServerSpec;
    TypeBuilder<S> b("ServerSpec", "What the installation is to be.");
    b.Field(&S::role, "role",
            "Server: an API server. Runner: a host that follows a Server's upgrades; it has no "
            "front, lease or store.")
        .Default("Server")
        .Immutable();
    Name(b.Field(&S::host, "host", "Which agent runs it; the agent binds the name to the machine."))
        .Required()
        .Immutable();
    b.Field(&S::shape, "shape",
            "BlueGreen: two slots, so that a roll has no outage. Single: one slot, and a roll is a planned outage.")
        .Default("BlueGreen")
        .Immutable();
    b.Field(&S::driver, "driver", "What runs the processes.").Default("Process").Immutable();
    b.Field(&S::allow_downgrade, "allowDowngrade", "Whether an older version than the running one may be installed.")
        .Default(false);
    Version(b.Field(&S::install_version, "installVersion",
                    "What a first install installs when version is unset; ignored afterwards."));
    Version(b.Field(&S::version, "version",
                    "Set: declarative mode. A change makes an Upgrade, and an Upgrade to another version is refused "
                    "(DeclaredVersionDiffers). Unset: Upgrades decide."));
    b.Field(&S::update_policy, "updatePolicy",
            "What an edited template does. OnNextOperation: nothing until the next operation. Immediately: a Restart.")
        .Default("OnNextOperation");
    b.Field(&S::runner_selector, "runnerSelector", "The Runners walked after this Server's upgrade.");
    b.Field(&S::unschedulable, "unschedulable", "The operator's own cordon of a Runner; a walk never writes it.")
        .Default(false);
    b.Field(&S::node_ref, "nodeRef", "A Runner's core/v1 Node, cordoned with a mark during its step.");
    b.Field(&S::source, "source", "Where builds come from.");
    b.Field(&S::layout, "layout", "Where things lie on the host.");
    b.Field(&S::template_, "template", "How one slot's process is rendered, watched and stopped.").Required();
    b.Field(&S::store, "store", "The store that the slots share. Never rolled.");
    b.Field(&S::seed, "seed", "Files that every slot's root must hold alike.");
    b.Field(&S::member_token, "memberToken", "The members' kubeconfig, whose token follows the active slot.");
    b.Field(&S::adopt, "adopt", "A server that already runs, taken over as slot blue. Read once.");
    b.Field(&S::front_ref, "frontRef", "The Front that its clients use.");
    b.Field(&S::access, "access", "How the agent speaks to the rolled server.");
    b.Field(&S::lease, "lease", "The controllers' Lease inside the rolled server.");
    b.Field(&S::probe, "probe", "What is made through the front after a roll, to prove that the server works.")
        .Default(Json::MakeObject());
    b.Field(&S::backup, "backup", "How the store is backed up before an upgrade.").Default(Json::MakeObject());
    b.Field(&S::restore, "restore", "When a backup is put back.").Default(Json::MakeObject());
    b.Field(&S::timeouts, "timeouts", "How long each part of a roll may take. 0: the default.")
        .Default(Json::MakeObject());
    b.Field(&S::rollback, "rollback", "Who decides to go back once the old slot is stopped.")
        .Default(Json::MakeObject());
    b.Field(&S::soak_seconds, "soakSeconds", "Seconds both slots run after the flip, while the new one is watched.")
        .Range(0, kDaySeconds)
        .Default(0);
    b.Field(&S::restarted_at, "restartedAt",
            "A later time than status.lastRestartedAt makes a Restart; the first sight of it only records it.");
    b.Field(&S::maintenance, "maintenance", "When operations may change what serves.").Default(Json::MakeObject());
    b.Field(&S::paused, "paused",
            "Start and advance no operation. It is still observed, and the active slot is still repaired.")
        .Default(false);
    b.Field(&S::deletion_policy, "deletionPolicy",
            "What deleting this object does to what runs. Orphan: nothing. Stop: the slots end; the Front stays and "
            "holds new connections until it is deleted too.")
        .Default("Orphan");
    b.ImmutableHint("make another Server and move over");
    ServerRules(b);
    return b.Build();
  }();
  return *type;
}

const TypeInfo& LedgerRef::Type() {
  static const TypeInfo* type = [] {
    TypeBuilder<LedgerRef> b("LedgerRef", "Which ledger this status was mirrored from, and how far.");
    b.Field(&LedgerRef::id, "id", "The ledger.").Length(0, 64);
    Count(b.Field(&LedgerRef::revision, "revision", "Its revision."));
    return b.Build();
  }();
  return *type;
}

const TypeInfo& CompanionRecord::Type() {
  static const TypeInfo* type = [] {
    using S = CompanionRecord;
    TypeBuilder<S> b("CompanionRecord", "A companion that runs.");
    b.Field(&S::name, "name", "Its name.").Required().Length(1, 63);
    b.Field(&S::unit, "unit", "Its unit.").Length(0, 256);
    b.Field(&S::pid, "pid", "Its process.").Range(0, kMaxPid);
    b.Field(&S::port, "port", "The port it serves on.").Range(0, 65535);
    return b.Build();
  }();
  return *type;
}

const TypeInfo& SlotRecord::Type() {
  static const TypeInfo* type = [] {
    using S = SlotRecord;
    TypeBuilder<S> b("SlotRecord", "What runs in one slot.");
    b.Field(&S::name, "name", "blue or green.").Required().Length(1, 64);
    b.Field(&S::unit, "unit", "Its unit.").Length(0, 256);
    Count(b.Field(&S::incarnation, "incarnation", "Which rendering it runs."));
    b.Field(&S::root, "root", "Its root directory.").Length(0, kPathLength);
    b.Field(&S::port, "port", "The port it serves on.").Range(0, 65535);
    b.Field(&S::pid, "pid", "Its process.").Range(0, kMaxPid);
    b.Field(&S::invocation_id, "invocationID", "Identity of this start of it.").Length(0, 128);
    b.Field(&S::exec, "exec", "The executable that runs.").Length(0, kPathLength);
    b.Field(&S::sha256, "sha256", "SHA-256 of the executable that runs.").Length(0, 64);
    b.Field(&S::version, "version", "The version that runs.").Length(0, kVersionLength);
    b.Field(&S::started_at, "startedAt", "When it was started.").Micro();
    b.Field(&S::ready_at, "readyAt", "When it was ready.").Micro();
    b.Field(&S::companions, "companions", "Its companions.").ListMap({"name"}).Items(0, 8);
    return b.Build();
  }();
  return *type;
}

const TypeInfo& LeaseView::Type() {
  static const TypeInfo* type = [] {
    TypeBuilder<LeaseView> b("LeaseView", "The controllers' Lease as last seen.");
    b.Field(&LeaseView::holder, "holder", "Who holds it.").Length(0, 512);
    b.Field(&LeaseView::acquire_time, "acquireTime", "Since when.").Micro();
    b.Field(&LeaseView::renew_time, "renewTime", "When it was last renewed.").Micro();
    return b.Build();
  }();
  return *type;
}

const TypeInfo& OperationRef::Type() {
  static const TypeInfo* type = [] {
    using S = OperationRef;
    TypeBuilder<S> b("OperationRef", "The operation in flight.");
    b.Field(&S::kind, "kind", "Upgrade or Roll.").Required().Length(1, 64);
    b.Field(&S::name, "name", "Its name.").Required().Length(1, kNameLength);
    b.Field(&S::uid, "uid", "Its uid.").Length(0, 64);
    b.Field(&S::phase, "phase", "Where it stands.");
    b.Field(&S::started_at, "startedAt", "When it was admitted.").Micro();
    return b.Build();
  }();
  return *type;
}

const TypeInfo& HistoryEntry::Type() {
  static const TypeInfo* type = [] {
    using S = HistoryEntry;
    TypeBuilder<S> b("HistoryEntry", "An operation that ended.");
    b.Field(&S::kind, "kind", "Upgrade or Roll.").Required().Length(1, 64);
    b.Field(&S::name, "name", "Its name.").Required().Length(1, kNameLength);
    b.Field(&S::uid, "uid", "Its uid.").Length(0, 64);
    b.Field(&S::spec_hash, "specHash", "Hash of its spec, by which a re-created object is told.").Length(0, 64);
    b.Field(&S::version, "version", "The version it brought up.").Length(0, kVersionLength);
    b.Field(&S::mode, "mode", "Preflight where it only looked, and brought up nothing.");
    b.Field(&S::outcome, "outcome", "How it ended.");
    b.Field(&S::started_at, "startedAt", "When it was admitted.").Micro();
    b.Field(&S::finished_at, "finishedAt", "When it ended.").Micro();
    b.Field(&S::requested_by, "requestedBy", "Who asked.").Length(0, 256);
    return b.Build();
  }();
  return *type;
}

const TypeInfo& RejectedBuild::Type() {
  static const TypeInfo* type = [] {
    using S = RejectedBuild;
    TypeBuilder<S> b("RejectedBuild", "A build that was rolled back; it is not tried again by itself.");
    b.Field(&S::version, "version", "Its version.").Length(0, kVersionLength);
    b.Field(&S::sha256, "sha256", "SHA-256 of its executable.").Length(0, 64);
    b.Field(&S::reason, "reason", "Why, in CamelCase.").Length(0, 64);
    b.Field(&S::at, "at", "When.");
    return b.Build();
  }();
  return *type;
}

const TypeInfo& ServerStatus::Type() {
  static const TypeInfo* type = [] {
    using S = ServerStatus;
    TypeBuilder<S> b("ServerStatus", "What runs; mirrored by the agent from its ledger.");
    ObservedGeneration(b);
    b.Field(&S::ledger, "ledger", "Which ledger this was mirrored from.");
    Count(b.Field(&S::declared_attempts, "declaredAttempts", "Upgrades that a declared version made so far."));
    Conditions(b);
    b.Field(&S::version, "version", "The version that serves.").Length(0, kVersionLength);
    b.Field(&S::commit, "commit", "The commit that serves.").Length(0, 64);
    b.Field(&S::install_kind, "installKind", "How it is installed on the host.");
    b.Field(&S::active_slot, "activeSlot", "The slot that serves.").Length(0, 64);
    b.Field(&S::store_url, "storeURL", "Where its store is.").Length(0, kUrlLength);
    b.Field(&S::instance_id, "instanceID", "Identity of the process that serves.").Length(0, 128);
    b.Field(&S::host_id, "hostID", "Machine id of the host.").Length(0, 128);
    b.Field(&S::last_restarted_at, "lastRestartedAt", "The last spec.restartedAt that was taken up.");
    b.Field(&S::slots, "slots", "What runs in each slot.").ListMap({"name"}).Items(0, 8);
    b.Field(&S::lease, "lease", "The controllers' Lease as last seen.");
    b.Field(&S::operation, "operation", "The operation in flight.");
    b.Field(&S::progress, "progress", "The numbers of what it is doing.");
    b.Field(&S::history, "history", "Operations that ended, newest first.").Items(0, 64);
    b.Field(&S::rejected, "rejected", "Builds that were rolled back.").Items(0, 32);
    NextActions(b);
    return b.Build();
  }();
  return *type;
}

const TypeInfo& Server::Type() {
  static const TypeInfo* type = [] {
    TypeBuilder<Server> b("Server", "One API server installation on one host, or one runner.");
    KindFields(b, "What the installation is to be.", "What runs.");
    ShortName(b);
    return b.Build();
  }();
  return *type;
}

}  // namespace lockkeeper
