#include "api/types/backup.h"

#include "api/types/field_limits.h"

namespace lockkeeper {

using namespace types_internal;  // NOLINT(google-build-using-namespace)

const TypeInfo& StoreBackupSpec::Type() {
  static const TypeInfo* type = [] {
    TypeBuilder<StoreBackupSpec> b("StoreBackupSpec", "The snapshot to take. Immutable.");
    b.Field(&StoreBackupSpec::server_ref, "serverRef", "The Server whose store is backed up, by its backup driver.")
        .Required();
    b.Field(&StoreBackupSpec::reason, "reason", "Why it is taken.").Length(1, 256);
    b.ImmutableBut({}, "a StoreBackup is one snapshot; make another one under a new name");
    return b.Build();
  }();
  return *type;
}

const TypeInfo& StoreBackupStatus::Type() {
  static const TypeInfo* type = [] {
    using S = StoreBackupStatus;
    TypeBuilder<S> b("StoreBackupStatus", "The snapshot; written by the agent.");
    ObservedGeneration(b);
    b.Field(&S::reference, "reference", "Where it lies on the host.").Length(0, kPathLength);
    Count(b.Field(&S::size, "size", "Bytes."));
    b.Field(&S::started_at, "startedAt", "When it was begun.").Micro();
    b.Field(&S::finished_at, "finishedAt", "When it was whole and verified.").Micro();
    Count(b.Field(&S::revision, "revision", "The store's revision in it."));
    b.Field(&S::verified, "verified", "Whether it was read back and found sound.");
    Count(b.Field(&S::writes_since, "writesSince", "Writes to the store since it was taken."));
    b.Field(&S::error, "error", "Why it could not be taken.").Length(0, kTextLength);
    b.Field(&S::progress, "progress", "The numbers of what it is doing.");
    Conditions(b);
    NextActions(b);
    return b.Build();
  }();
  return *type;
}

const TypeInfo& StoreBackup::Type() {
  static const TypeInfo* type = [] {
    TypeBuilder<StoreBackup> b("StoreBackup", "One snapshot of a Server's store.");
    KindFields(b, "The snapshot to take. Immutable.", "The snapshot.");
    return b.Build();
  }();
  return *type;
}

const TypeInfo& StoreRestoreSpec::Type() {
  static const TypeInfo* type = [] {
    using S = StoreRestoreSpec;
    TypeBuilder<S> b("StoreRestoreSpec", "The request. Immutable but for abandon.");
    b.Field(&S::server_ref, "serverRef", "The Server whose store is put back.").Required();
    b.Field(&S::backup_ref, "backupRef", "The StoreBackup to put back.").Required();
    b.Field(&S::build, "build", "The build that the request is meant for. Unset: whichever starts next.");
    b.ImmutableBut({}, "a StoreRestore is one request; make another one under a new name");
    b.Field(&S::abandon, "abandon",
            "Settle the request without a restore, so that the build it names may start on the data as it is. Once "
            "true it stays true.")
        .Default(false)
        .Check("!oldSelf || self", "an abandon cannot be taken back",
               [](const Json& self, const Json* old) { return !old->AsBool() || self.AsBool(); });
    return b.Build();
  }();
  return *type;
}

const TypeInfo& RestoreAttempt::Type() {
  static const TypeInfo* type = [] {
    TypeBuilder<RestoreAttempt> b("RestoreAttempt", "One try.");
    b.Field(&RestoreAttempt::started_at, "startedAt", "When it began.").Micro();
    b.Field(&RestoreAttempt::finished_at, "finishedAt", "When it ended.").Micro();
    b.Field(&RestoreAttempt::error, "error", "Why it failed.").Length(0, kTextLength);
    return b.Build();
  }();
  return *type;
}

const TypeInfo& StoreRestoreStatus::Type() {
  static const TypeInfo* type = [] {
    using S = StoreRestoreStatus;
    TypeBuilder<S> b("StoreRestoreStatus", "The answer; written by the agent alone.");
    ObservedGeneration(b);
    b.Field(&S::attempts, "attempts", "The tries, newest last.").Items(0, 64);
    b.Field(&S::restored_at, "restoredAt", "When the data was back.").Micro();
    b.Field(&S::error, "error", "Why the last try failed.").Length(0, kTextLength);
    b.Field(&S::abandoned, "abandoned", "Whether it was settled without a restore.");
    Count(b.Field(&S::revision_pushed_to, "revisionPushedTo",
                  "The revision the store was pushed past, so that watchers miss nothing."));
    Conditions(b);
    NextActions(b);
    return b.Build();
  }();
  return *type;
}

const TypeInfo& StoreRestore::Type() {
  static const TypeInfo* type = [] {
    TypeBuilder<StoreRestore> b("StoreRestore", "One request to put a snapshot back, and its answer.");
    KindFields(b, "The request. Immutable but for abandon.", "The answer.");
    return b.Build();
  }();
  return *type;
}

}  // namespace lockkeeper
