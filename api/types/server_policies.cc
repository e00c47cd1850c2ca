// The field tables of the Server's policies: backup, restore, time limits, maintenance.
#include "api/types/field_limits.h"
#include "api/types/server.h"

namespace lockkeeper {

using namespace types_internal;  // NOLINT(google-build-using-namespace)

const TypeInfo& EtcdBackup::Type() {
  static const TypeInfo* type = [] {
    using S = EtcdBackup;
    TypeBuilder<S> b("EtcdBackup", "Snapshots of etcd.");
    b.Field(&S::endpoints, "endpoints", "Its client URLs.")
        .Required()
        .Items(1, 16)
        .Length(1, kUrlLength)
        .Pattern(kHttpPattern, kHttpHint);
    HostPath(b.Field(&S::ca_file, "caFile", "PEM file with its authority."));
    HostPath(b.Field(&S::cert_file, "certFile", "PEM file with the client certificate."));
    HostPath(b.Field(&S::key_file, "keyFile", "PEM file with the client key."));
    b.Check("has(self.certFile) == has(self.keyFile)", "set certFile and keyFile together",
            [](const Json& self, const Json*) { return self.Has("certFile") == self.Has("keyFile"); });
    return b.Build();
  }();
  return *type;
}

const TypeInfo& SqliteBackup::Type() {
  static const TypeInfo* type = [] {
    TypeBuilder<SqliteBackup> b("SqliteBackup", "Online backups of a SQLite file.");
    HostPath(b.Field(&SqliteBackup::file, "file", "The database file.")).Required();
    return b.Build();
  }();
  return *type;
}

const TypeInfo& CommandBackup::Type() {
  static const TypeInfo* type = [] {
    TypeBuilder<CommandBackup> b("CommandBackup", "Backups by commands of your own; {file} is where to write or read.");
    b.Field(&CommandBackup::backup, "backup", "The argv that writes {file}.")
        .Required()
        .Items(1, 256)
        .Length(0, kPathLength);
    b.Field(&CommandBackup::restore, "restore", "The argv that puts {file} back. Unset: no restore.")
        .Items(1, 256)
        .Length(0, kPathLength);
    return b.Build();
  }();
  return *type;
}

const TypeInfo& BackupPolicy::Type() {
  static const TypeInfo* type = [] {
    using S = BackupPolicy;
    TypeBuilder<S> b("BackupPolicy", "How the store is backed up before an upgrade.");
    b.Field(&S::driver, "driver", "What takes the snapshot; the member of that name says of what.").Default("None");
    b.Field(&S::etcd, "etcd", "Etcd: which one.");
    b.Field(&S::sqlite, "sqlite", "SQLite: which file.");
    b.Field(&S::command, "command", "Command: which commands.");
    b.Field(&S::retain, "retain", "Snapshots kept; one that a rollback may need is kept beyond that.")
        .Range(1, 100)
        .Default(3);
    b.Field(&S::max_age_seconds, "maxAgeSeconds",
            "An older snapshot is not good enough for a roll; a new one is taken.")
        .Range(0, 30 * kDaySeconds)
        .Default(600);
    b.Field(&S::timeout_seconds, "timeoutSeconds", "Seconds a snapshot may take.").Range(0, kDaySeconds).Default(300);
    b.Member("driver", "Etcd", "etcd");
    b.Member("driver", "SQLite", "sqlite");
    b.Member("driver", "Command", "command");
    return b.Build();
  }();
  return *type;
}

const TypeInfo& RestorePolicy::Type() {
  static const TypeInfo* type = [] {
    TypeBuilder<RestorePolicy> b("RestorePolicy", "When a backup is put back.");
    b.Field(&RestorePolicy::on_rollback, "onRollback",
            "WhenStopped: an undo with every slot stopped puts the data back. Never: it does not.")
        .Default("WhenStopped");
    b.Field(&RestorePolicy::timeout_seconds, "timeoutSeconds", "Seconds a restore may take, apart from readiness.")
        .Range(0, kDaySeconds)
        .Default(600);
    return b.Build();
  }();
  return *type;
}

const TypeInfo& Timeouts::Type() {
  static const TypeInfo* type = [] {
    using S = Timeouts;
    TypeBuilder<S> b("Timeouts", "How long each part of a roll may take. 0: the default.");
    b.Field(&S::ready_seconds, "readySeconds", "Start to ready.").Range(0, kDaySeconds).Default(60);
    b.Field(&S::lease_seconds, "leaseSeconds", "Exit of the old holder to a renewal by the new one.")
        .Range(0, kDaySeconds)
        .Default(30);
    b.Field(&S::probe_seconds, "probeSeconds", "Creation of the probe object to its Ready.")
        .Range(0, kDaySeconds)
        .Default(10);
    b.Field(&S::drain_seconds, "drainSeconds", "Flip to the cut of the last old connection.")
        .Range(0, kDaySeconds)
        .Default(5);
    b.Field(&S::stop_seconds, "stopSeconds", "Stop signal to the kill.").Range(0, kDaySeconds).Default(75);
    b.Field(&S::flip_seconds, "flipSeconds", "Record to the front's answer.").Range(0, kDaySeconds).Default(5);
    return b.Build();
  }();
  return *type;
}

const TypeInfo& RollbackPolicy::Type() {
  static const TypeInfo* type = [] {
    TypeBuilder<RollbackPolicy> b("RollbackPolicy", "Who decides to go back once the old slot is stopped.");
    b.Field(&RollbackPolicy::after_flip, "afterFlip",
            "Manual: a person, by lockkeeper rollback. Automatic: a reverse roll, when the cause is the build's and "
            "condition RollbackReady is True.")
        .Default("Manual");
    return b.Build();
  }();
  return *type;
}

const TypeInfo& MaintenanceWindow::Type() {
  static const TypeInfo* type = [] {
    using S = MaintenanceWindow;
    TypeBuilder<S> b("MaintenanceWindow", "A time in which operations may begin to change what serves.");
    b.Field(&S::start, "start", "When it opens: five cron fields.")
        .Required()
        .Length(9, 128)
        .Pattern("^[0-9*,/A-Za-z-]+( [0-9*,/A-Za-z-]+){4}$", "five cron fields");
    b.Field(&S::duration_minutes, "durationMinutes", "How long it is open.").Required().Range(1, 10080);
    b.Field(&S::time_zone, "timeZone", "IANA time zone of start.")
        .Length(1, 64)
        .Pattern("^[A-Za-z0-9_+/-]+$", "an IANA time zone")
        .Default("UTC");
    return b.Build();
  }();
  return *type;
}

const TypeInfo& Maintenance::Type() {
  static const TypeInfo* type = [] {
    TypeBuilder<Maintenance> b("Maintenance", "When operations may change what serves.");
    b.Field(&Maintenance::windows, "windows", "The windows; none: at any time.").Items(0, 32);
    b.Field(&Maintenance::freeze, "freeze", "Admit no operation until it is false again.").Default(false);
    return b.Build();
  }();
  return *type;
}

const TypeInfo& LabelSelector::Type() {
  static const TypeInfo* type = [] {
    TypeBuilder<LabelSelector> b("LabelSelector", "Selects objects by label.");
    b.Field(&LabelSelector::match_labels, "matchLabels", "Labels that the object must carry, all of them.")
        .Required()
        .Keys(16)
        .Length(0, 63);
    return b.Build();
  }();
  return *type;
}

Timeouts ResolveTimeouts(const TimeoutOverrides& overrides, const Timeouts& server) {
  const Timeouts defaults;
  const auto pick = [](const std::optional<int64_t>& own, int64_t of_server, int64_t otherwise) {
    if (own.value_or(0) > 0) return *own;
    return of_server > 0 ? of_server : otherwise;
  };
  Timeouts out;
  out.ready_seconds = pick(overrides.ready_seconds, server.ready_seconds, defaults.ready_seconds);
  out.lease_seconds = pick(overrides.lease_seconds, server.lease_seconds, defaults.lease_seconds);
  out.probe_seconds = pick(overrides.probe_seconds, server.probe_seconds, defaults.probe_seconds);
  out.drain_seconds = pick(overrides.drain_seconds, server.drain_seconds, defaults.drain_seconds);
  out.stop_seconds = pick(overrides.stop_seconds, server.stop_seconds, defaults.stop_seconds);
  out.flip_seconds = pick(overrides.flip_seconds, server.flip_seconds, defaults.flip_seconds);
  return out;
}

}  // namespace lockkeeper
