#include "api/types/slot.h"

#include "api/types/field_limits.h"

namespace lockkeeper {

using namespace types_internal;  // NOLINT(google-build-using-namespace)

const EnumInfo& EnumInfoOf(SlotState) {
  static const EnumInfo info{"SlotState", {"Stopped", "Starting", "Listening", "Ready", "Stopping", "Failed"}};
  return info;
}
const EnumInfo& EnumInfoOf(StopReason) {
  static const EnumInfo info{"StopReason", {"Requested", "Exit", "Signal", "OOM", "Watchdog", "Timeout", "HostReboot"}};
  return info;
}

const TypeInfo& RenderedCompanion::Type() {
  static const TypeInfo* type = [] {
    using S = RenderedCompanion;
    TypeBuilder<S> b("RenderedCompanion", "A companion as it is run.");
    b.Field(&S::name, "name", "Its name in the template.").Required().Length(1, 63);
    b.Field(&S::unit, "unit", "Its unit.").Length(0, 256);
    b.Field(&S::command, "command", "Its argv; a port read from a process is filled in when that process listens.")
        .Items(0, 256)
        .Length(0, kPathLength);
    return b.Build();
  }();
  return *type;
}

const TypeInfo& RenderedUnit::Type() {
  static const TypeInfo* type = [] {
    using S = RenderedUnit;
    TypeBuilder<S> b("RenderedUnit", "What is run, frozen for one incarnation.");
    b.Field(&S::name, "name", "Name of the unit; carries the incarnation.").Length(0, 256);
    b.Field(&S::command, "command", "The argv.").Items(0, 256).Length(0, kPathLength);
    b.Field(&S::env, "env", "The environment.").ListMap({"name"}).Items(0, 256);
    b.Field(&S::working_directory, "workingDirectory", "The working directory.").Length(0, kPathLength);
    b.Field(&S::root, "root", "The slot's root directory.").Length(0, kPathLength);
    b.Field(&S::user, "user", "The user it runs as.").Length(0, 64);
    b.Field(&S::group, "group", "The group it runs as.").Length(0, 64);
    b.Field(&S::port, "port", "The port it was told; absent: it chooses one itself.").Range(0, 65535);
    b.Field(&S::limits, "limits", "Its resource limits.");
    b.Field(&S::companions, "companions", "Its companions.").ListMap({"name"}).Items(0, 8);
    return b.Build();
  }();
  return *type;
}

const TypeInfo& SlotSpec::Type() {
  static const TypeInfo* type = [] {
    using S = SlotSpec;
    TypeBuilder<S> b("SlotSpec",
                     "What the ledger desires of the slot; a mirror, written by the agent. Editing or "
                     "deleting it has no effect on a process.");
    b.Field(&S::server_ref, "serverRef", "The Server whose slot it is.").Required().Immutable();
    Name(b.Field(&S::host, "host", "The host it is on.")).Required().Immutable();
    b.Field(&S::running, "running", "Whether the slot's process is to run.").Default(false);
    b.Field(&S::release_ref, "releaseRef", "The Release it runs.");
    Count(b.Field(&S::incarnation, "incarnation", "Which rendering it runs, counted by the ledger.")).Default(0);
    b.Field(&S::unit, "unit", "The rendering.");
    b.ImmutableHint("the agent makes another Slot");
    return b.Build();
  }();
  return *type;
}

const TypeInfo& SlotStatus::Type() {
  static const TypeInfo* type = [] {
    using S = SlotStatus;
    TypeBuilder<S> b("SlotStatus", "What the host says of the slot; written by the agent.");
    ObservedGeneration(b);
    b.Field(&S::state, "state", "Where its process stands.");
    b.Field(&S::unit, "unit", "Its unit.").Length(0, 256);
    b.Field(&S::pid, "pid", "Its process.").Range(0, kMaxPid);
    b.Field(&S::invocation_id, "invocationID", "Identity of this start of it.").Length(0, 128);
    b.Field(&S::port, "port", "The port it serves on.").Range(0, 65535);
    Count(b.Field(&S::incarnation, "incarnation", "The rendering that runs."));
    b.Field(&S::exec, "exec", "The executable that runs.").Length(0, kPathLength);
    b.Field(&S::sha256, "sha256", "SHA-256 of the executable that runs.").Length(0, 64);
    b.Field(&S::version, "version", "The version that runs.").Length(0, kVersionLength);
    b.Field(&S::started_at, "startedAt", "When it was started.").Micro();
    b.Field(&S::listening_at, "listeningAt", "When it listened.").Micro();
    b.Field(&S::ready_at, "readyAt", "When it was ready.").Micro();
    b.Field(&S::exited_at, "exitedAt", "When it last exited.").Micro();
    b.Field(&S::exit_code, "exitCode", "Its last exit code.").Range(0, 255);
    b.Field(&S::exit_signal, "exitSignal", "The signal it last died of.").Range(0, 64);
    b.Field(&S::stop_reason, "stopReason", "Why it last ended.");
    Count(b.Field(&S::boots, "boots", "Starts of this build since it was installed."));
    Count(b.Field(&S::restarts, "restarts", "Starts that nobody asked for."));
    b.Field(&S::last_output, "lastOutput", "The last 20 lines it wrote, secrets masked.")
        .Items(0, 20)
        .Length(0, kTextLength);
    Conditions(b);
    return b.Build();
  }();
  return *type;
}

const TypeInfo& Slot::Type() {
  static const TypeInfo* type = [] {
    TypeBuilder<Slot> b("Slot", "One place a server process runs: desired and actual, a mirror of the agent's ledger.");
    KindFields(b, "What the ledger desires; a mirror.", "What the host says.");
    return b.Build();
  }();
  return *type;
}

}  // namespace lockkeeper
