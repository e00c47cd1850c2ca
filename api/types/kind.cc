#include "api/types/kind.h"

#include "api/types/backup.h"
#include "api/types/builtin_kinds.h"
#include "api/types/front.h"
#include "api/types/release.h"
#include "api/types/server.h"
#include "api/types/slot.h"
#include "api/types/type_info.h"
#include "api/types/upgrade.h"

namespace lockkeeper {

PrinterColumn Column(std::string name, std::string type, std::string path, std::string description, int priority) {
  PrinterColumn column;
  column.name = std::move(name);
  column.type = std::move(type);
  column.json_path = std::move(path);
  column.description = std::move(description);
  column.priority = priority;
  return column;
}

namespace {

PrinterColumn ConditionColumn(const std::string& condition, const std::string& description, int priority = 0) {
  return Column(condition, "string", ".status.conditions[?(@.type==\"" + condition + "\")].status", description,
                priority);
}

PrinterColumn ReasonColumn() {
  return Column("Reason", "string", ".status.conditions[?(@.type==\"Ready\")].reason", "Why Ready is as it is", 1);
}

PrinterColumn Age() { return Column("Age", "date", ".metadata.creationTimestamp", "When it was created"); }

template <typename T>
KindInfo Ours(std::string singular, std::vector<std::string> short_names, std::vector<PrinterColumn> columns) {
  KindInfo info;
  info.group = kGroup;
  info.version = kVersion;
  info.kind = T::kKind;
  info.plural = T::kPlural;
  info.singular = std::move(singular);
  info.short_names = std::move(short_names);
  info.categories = {"lockkeeper"};
  info.has_status = true;
  info.ours = true;
  info.columns = std::move(columns);
  info.type = &T::Type();
  info.doc = info.type->doc;
  return info;
}

std::vector<KindInfo> MakeKinds() {
  const std::string server = ".spec.serverRef.name";
  std::vector<KindInfo> kinds = {
      Ours<Server>(
          "server", {"srv"},
          {Column("Version", "string", ".status.version", "The version that serves"),
           Column("Slot", "string", ".status.activeSlot", "The slot that serves"),
           ConditionColumn("Ready", "Whether it is as its spec wants it"),
           ConditionColumn("Available", "Whether the front answers through a ready slot"),
           Column("Operation", "string", ".status.operation.name", "The operation in flight"),
           Column("Phase", "string", ".status.operation.phase", "Where that operation stands"), Age(),
           Column("Host", "string", ".spec.host", "Which agent runs it", 1),
           Column("Role", "string", ".spec.role", "Server or Runner", 1),
           Column("Shape", "string", ".spec.shape", "BlueGreen or Single", 1),
           Column("Leader", "string", ".status.lease.holder", "Who holds the controllers' Lease", 1), ReasonColumn()}),
      Ours<Upgrade>("upgrade", {"upg"},
                    {Column("Server", "string", server, "The Server it works on"),
                     Column("Action", "string", ".spec.action", "Upgrade or Restart"),
                     Column("Version", "string", ".spec.version", "What was asked for"),
                     Column("Phase", "string", ".status.phase", "Where it stands"),
                     Column("Outcome", "string", ".status.outcome", "How it ended"),
                     Column("Progress", "string", ".status.progress.message", "What it is doing"), Age(),
                     Column("From", "string", ".status.previousVersion", "Version before", 1),
                     Column("To", "string", ".status.resolved.version", "The version it stands for", 1),
                     Column("Roll", "string", ".status.rollRef.name", "The Roll that carries it out", 1),
                     ReasonColumn(), Column("Error", "string", ".status.error", "The first error", 1)}),
      Ours<Roll>("roll", {},
                 {Column("Server", "string", server, "The Server it rolls"),
                  Column("From", "string", ".status.from", "The slot it rolls from"),
                  Column("To", "string", ".status.to", "The slot it rolls to"),
                  Column("Phase", "string", ".status.phase", "Where it stands"),
                  Column("Outcome", "string", ".status.outcome", "How it ended"),
                  Column("Seconds", "number", ".status.totalSeconds", "Seconds from start to done"), Age(),
                  Column("Version", "string", ".status.version", "The version it brings up", 1),
                  Column("Outage", "number", ".status.outageSeconds", "Seconds connections were held", 1),
                  Column("Overhead", "number", ".status.overheadSeconds", "Seconds that are nobody's but ours", 1),
                  Column("Cut", "integer", ".status.cutConnections", "Connections that were cut", 1), ReasonColumn(),
                  Column("Error", "string", ".status.error", "The first error", 1)}),
      Ours<Slot>("slot", {},
                 {Column("Server", "string", server, "The Server whose slot it is"),
                  Column("State", "string", ".status.state", "Where its process stands"),
                  Column("Version", "string", ".status.version", "The version that runs"),
                  Column("PID", "integer", ".status.pid", "Its process"),
                  Column("Port", "integer", ".status.port", "The port it serves on"),
                  Column("Restarts", "integer", ".status.restarts", "Starts that nobody asked for"), Age(),
                  Column("Host", "string", ".spec.host", "The host it is on", 1),
                  Column("Incarnation", "integer", ".status.incarnation", "The rendering that runs", 1),
                  Column("Started", "date", ".status.startedAt", "When its process started", 1),
                  Column("Stopped", "string", ".status.stopReason", "Why it last ended", 1), ReasonColumn()}),
      Ours<Front>("front", {},
                  {Column("Listen", "string", ".spec.listen", "Where it listens"),
                   Column("Server", "string", ".status.claimedBy.name", "The Server that claims it"),
                   Column("Backend", "string", ".status.backend.slot", "The slot new connections go to"),
                   Column("Held", "integer", ".status.held", "Connections held now"),
                   ConditionColumn("Ready", "Whether it carries connections as its spec wants it"), Age(),
                   Column("Host", "string", ".spec.host", "The host it is on", 1),
                   Column("Address", "string", ".status.backend.address", "The backend's address", 1),
                   Column("Open", "integer", ".status.open[0].connections", "Open connections on the first backend", 1),
                   ReasonColumn()}),
      Ours<Release>(
          "release", {"rel"},
          {Column("Version", "string", ".spec.version", "What was asked for"),
           Column("Resolved", "string", ".status.resolved.version", "The version it stands for"),
           Column("Host", "string", ".spec.host", "The host it is on"),
           ConditionColumn("Ready", "Whether it is on the host, verified"),
           Column("Progress", "string", ".status.progress.message", "What it is doing"), Age(),
           Column("Size", "integer", ".status.size", "Bytes on the host", 1),
           Column("Verified", "string", ".status.verifiedBy", "What vouched for it", 1),
           Column("SHA256", "string", ".status.sha256", "SHA-256 of the main executable", 1), ReasonColumn()}),
      Ours<StoreBackup>("storebackup", {"lkb"},
                        {Column("Server", "string", server, "The Server whose store it is"),
                         ConditionColumn("Ready", "Whether it is whole and verified"),
                         Column("Size", "integer", ".status.size", "Bytes"),
                         Column("Taken", "date", ".status.finishedAt", "When it was whole"),
                         Column("Writes-Since", "integer", ".status.writesSince", "Writes to the store since"), Age(),
                         Column("Revision", "integer", ".status.revision", "The store's revision in it", 1),
                         Column("Reference", "string", ".status.reference", "Where it lies", 1), ReasonColumn()}),
      Ours<StoreRestore>("storerestore", {"lkr"},
                         {Column("Server", "string", server, "The Server whose store is put back"),
                          Column("Backup", "string", ".spec.backupRef.name", "The StoreBackup to put back"),
                          ConditionColumn("Ready", "Whether it is settled"),
                          Column("Restored", "date", ".status.restoredAt", "When the data was back"),
                          Column("Abandoned", "boolean", ".status.abandoned", "Settled without a restore"), Age(),
                          Column("Build", "string", ".spec.build.version", "The build it is meant for", 1),
                          ReasonColumn(), Column("Error", "string", ".status.error", "Why the last try failed", 1)}),
  };
  for (KindInfo& builtin : types_internal::BuiltinKinds()) kinds.push_back(std::move(builtin));
  return kinds;
}

}  // namespace

const std::vector<KindInfo>& Kinds() {
  static const auto* kinds = new std::vector<KindInfo>(MakeKinds());
  return *kinds;
}

const KindInfo* FindKind(std::string_view group, std::string_view version, std::string_view kind) {
  for (const KindInfo& info : Kinds()) {
    if (info.group == group && info.version == version && info.kind == kind) return &info;
  }
  return nullptr;
}

const KindInfo* FindResource(std::string_view group, std::string_view version, std::string_view plural) {
  for (const KindInfo& info : Kinds()) {
    if (info.group == group && info.version == version && info.plural == plural) return &info;
  }
  return nullptr;
}

}  // namespace lockkeeper
