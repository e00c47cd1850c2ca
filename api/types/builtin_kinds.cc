#include "api/types/builtin_kinds.h"

#include <algorithm>

namespace lockkeeper::types_internal {

namespace {

PrinterColumn Cell(std::string name, std::string type, Json (*cell)(const Json&), std::string description,
                   int priority = 0) {
  PrinterColumn column = Column(std::move(name), std::move(type), "", std::move(description), priority);
  column.cell = cell;
  return column;
}

PrinterColumn Age() { return Column("Age", "date", ".metadata.creationTimestamp", "When it was created"); }

KindInfo Builtin(std::string group, std::string version, std::string kind, std::string plural,
                 std::vector<PrinterColumn> columns, std::string doc) {
  KindInfo info;
  info.group = std::move(group);
  info.version = std::move(version);
  info.plural = std::move(plural);
  info.singular = kind;
  std::transform(info.singular.begin(), info.singular.end(), info.singular.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  info.kind = std::move(kind);
  info.columns = std::move(columns);
  info.doc = std::move(doc);
  return info;
}

Json DataCount(const Json& object) { return Json(object.Get("data").size() + object.Get("binaryData").size()); }
Json SecretDataCount(const Json& object) { return Json(object.Get("data").size()); }

std::string FirstText(std::initializer_list<const Json*> candidates) {
  for (const Json* candidate : candidates) {
    if (!candidate->AsString().empty()) return candidate->AsString();
  }
  return "";
}

// Both Event versions: events.k8s.io/v1 has other names for the same things.
Json LastSeen(const Json& event) {
  return Json(FirstText({&event.At({"series", "lastObservedTime"}), &event.Get("lastTimestamp"),
                         &event.Get("deprecatedLastTimestamp"), &event.Get("eventTime"), &event.Get("firstTimestamp"),
                         &event.At({"metadata", "creationTimestamp"})}));
}
Json FirstSeen(const Json& event) {
  return Json(FirstText({&event.Get("firstTimestamp"), &event.Get("deprecatedFirstTimestamp"), &event.Get("eventTime"),
                         &event.At({"metadata", "creationTimestamp"})}));
}
const Json& EventTarget(const Json& event) {
  return event.Has("involvedObject") ? event.Get("involvedObject") : event.Get("regarding");
}
Json EventObject(const Json& event) {
  std::string kind = EventTarget(event).Get("kind").AsString();
  std::transform(kind.begin(), kind.end(), kind.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  const std::string& name = EventTarget(event).Get("name").AsString();
  return Json(kind + (name.empty() ? "" : "/" + name));
}
Json EventSubobject(const Json& event) { return Json(EventTarget(event).Get("fieldPath").AsString()); }
Json EventSource(const Json& event) {
  const std::string component =
      FirstText({&event.At({"source", "component"}), &event.At({"deprecatedSource", "component"}),
                 &event.Get("reportingComponent"), &event.Get("reportingController")});
  const std::string host = FirstText(
      {&event.At({"source", "host"}), &event.At({"deprecatedSource", "host"}), &event.Get("reportingInstance")});
  return Json(host.empty() ? component : component + ", " + host);
}
Json EventMessage(const Json& event) { return Json(FirstText({&event.Get("message"), &event.Get("note")})); }
Json EventCount(const Json& event) {
  for (const Json* count : {&event.At({"series", "count"}), &event.Get("count"), &event.Get("deprecatedCount")}) {
    if (count->IsNumber()) return *count;
  }
  return Json(1);
}

KindInfo EventKind(std::string group, std::string doc) {
  KindInfo info = Builtin(
      std::move(group), "v1", "Event", "events",
      {Cell("Last Seen", "date", LastSeen, "When it was last seen"),
       Column("Type", "string", ".type", "Normal or Warning"), Column("Reason", "string", ".reason", "What happened"),
       Cell("Object", "string", EventObject, "What it happened to"),
       Cell("Subobject", "string", EventSubobject, "The part it happened to", 1),
       Cell("Source", "string", EventSource, "Who says so", 1),
       Cell("Message", "string", EventMessage, "What happened, for a person"),
       Cell("First Seen", "date", FirstSeen, "When it was first seen", 1),
       Cell("Count", "integer", EventCount, "How often", 1),
       Column("Name", "string", ".metadata.name", "Name of the event", 1)},
      std::move(doc));
  info.columns.back().format = "name";
  info.name_column = false;
  info.short_names = {"ev"};
  return info;
}

}  // namespace

std::vector<KindInfo> BuiltinKinds() {
  std::vector<KindInfo> kinds;

  KindInfo ns =
      Builtin("", "v1", "Namespace", "namespaces",
              {Column("Status", "string", ".status.phase", "Active or Terminating"), Age()}, "A scope for names.");
  ns.namespaced = false;
  ns.has_status = true;
  ns.short_names = {"ns"};
  kinds.push_back(std::move(ns));

  kinds.push_back(Builtin("", "v1", "Secret", "secrets",
                          {Column("Type", "string", ".type", "What kind of data it holds"),
                           Cell("Data", "integer", SecretDataCount, "Keys in it"), Age()},
                          "Confidential data."));

  KindInfo config_map = Builtin("", "v1", "ConfigMap", "configmaps",
                                {Cell("Data", "integer", DataCount, "Keys in it"), Age()}, "Configuration data.");
  config_map.short_names = {"cm"};
  kinds.push_back(std::move(config_map));

  kinds.push_back(EventKind("", "Something that happened to an object."));
  kinds.push_back(EventKind("events.k8s.io", "Something that happened to an object."));

  kinds.push_back(Builtin("coordination.k8s.io", "v1", "Lease", "leases",
                          {Column("Holder", "string", ".spec.holderIdentity", "Who holds it"), Age()},
                          "A lease: election, leadership, heartbeat."));

  KindInfo workspace = Builtin("tenancy.kcp.io", "v1alpha1", "Workspace", "workspaces",
                               {Column("Type", "string", ".spec.type.name", "Type of the workspace"),
                                Column("Phase", "string", ".status.phase", "Scheduling, Initializing or Ready"),
                                Column("URL", "string", ".spec.URL", "Where it is served"), Age()},
                               "A workspace of kcp.");
  workspace.namespaced = false;
  workspace.has_status = true;
  workspace.short_names = {"ws"};
  workspace.categories = {"kcp"};
  kinds.push_back(std::move(workspace));

  KindInfo cluster = Builtin("core.kcp.io", "v1alpha1", "LogicalCluster", "logicalclusters",
                             {Column("Phase", "string", ".status.phase", "Initializing or Ready"),
                              Column("URL", "string", ".status.URL", "Where it is served"), Age()},
                             "A logical cluster of kcp.");
  cluster.namespaced = false;
  cluster.has_status = true;
  cluster.categories = {"kcp"};
  kinds.push_back(std::move(cluster));

  KindInfo shard = Builtin("core.kcp.io", "v1alpha1", "Shard", "shards",
                           {Column("Region", "string", ".metadata.labels.region", "Region of the shard"),
                            Column("URL", "string", ".spec.baseURL", "Where it is reached"),
                            Column("External URL", "string", ".spec.externalURL", "Where clients reach it"), Age()},
                           "A shard of kcp.");
  shard.namespaced = false;
  shard.has_status = true;
  shard.categories = {"kcp"};
  kinds.push_back(std::move(shard));
  return kinds;
}

}  // namespace lockkeeper::types_internal
