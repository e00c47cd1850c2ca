// KindInfo: what a server must know of a kind, and the functions that work on its JSON objects.
//
// Purpose:   one registry for the embedded API server, the CRDs, the reference page and the tests: defaulting,
//            validation as kube-apiserver does it, pruning, schema, CRD.
// Ownership: the registry is static and never destroyed.
// Threads:   thread-safe; the objects given are the caller's.
// Failure:   a bad object is a list of FieldErrors, in the texts of kube-apiserver.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/base/json.h"

namespace lockkeeper {

struct TypeInfo;

struct PrinterColumn {
  std::string name;
  std::string type;       // string, integer, number, boolean, date
  std::string json_path;  // ".status.phase"; empty when `cell` computes it
  int priority = 0;       // above 0: with -o wide only
  std::string description;
  std::string format;  // "name" on the first column of a Table
  // Computed cells of built-in kinds (a count of keys). A date column's cell is the time as text; the server makes
  // the age of it.
  Json (*cell)(const Json& object) = nullptr;
};

// A column that shows the value at `path`.
PrinterColumn Column(std::string name, std::string type, std::string path, std::string description, int priority = 0);

struct KindInfo {
  std::string group;  // "" for core
  std::string version;
  std::string kind;
  std::string plural;
  std::string singular;
  std::vector<std::string> short_names;
  std::vector<std::string> categories;
  bool namespaced = true;
  bool has_status = false;
  bool name_column = true;             // false: the Table does not begin with Name (Event)
  bool ours = false;                   // lockkeeper.dev: has a full schema and a CRD
  std::vector<PrinterColumn> columns;  // without Name
  const TypeInfo* type = nullptr;      // nullptr: any members are kept (built-in kinds)
  std::string doc;

  std::string ApiVersion() const { return group.empty() ? version : group + "/" + version; }
  std::string ListKind() const { return kind + "List"; }
};

// Ours first, then the built-in ones: Namespace, Secret, ConfigMap, Event (core/v1 and events.k8s.io/v1), Lease, and
// kcp's Workspace (tenancy.kcp.io/v1alpha1), LogicalCluster and Shard (core.kcp.io/v1alpha1).
const std::vector<KindInfo>& Kinds();
// nullptr when there is none.
const KindInfo* FindKind(std::string_view group, std::string_view version, std::string_view kind);
const KindInfo* FindResource(std::string_view group, std::string_view version, std::string_view plural);

// Fills defaults in, drops nulls of members without default (crd-idioms 2.12). Applied to request bodies and to what
// is read from the store: a fresh object then shows status.observedGeneration -1 (3.1).
void ApplyDefaults(const KindInfo& kind, Json& object);

enum class FieldReason {
  kInvalid,       // FieldValueInvalid
  kTypeInvalid,   // FieldValueTypeInvalid
  kRequired,      // FieldValueRequired
  kNotSupported,  // FieldValueNotSupported
  kDuplicate,     // FieldValueDuplicate
  kTooLong,       // FieldValueTooLong
  kTooMany,       // FieldValueTooMany
  kForbidden,     // FieldValueForbidden
};
// "FieldValueInvalid" …: the reason of a cause in a Status.
std::string_view FieldReasonName(FieldReason reason);

struct FieldError {
  FieldReason reason = FieldReason::kInvalid;
  std::string field;    // "spec.approve[1]"; "<nil>" for the whole object
  std::string message;  // the cause's message: `Invalid value: -1: spec.x in body should be …`

  std::string ToString() const { return field + ": " + message; }
  bool operator==(const FieldError&) const = default;
};

// Schema first; then rules across fields. After a required, type, enum, length or count error no rule across fields is
// checked, and one more error says so, as kube-apiserver does. `old` is the stored object on an update, else nullptr;
// what an update leaves as it was is not held against it. `status_subresource`: the write is to /status, so the schema
// is checked on the status alone.
// REQUIRES: ApplyDefaults was called on `object` and `*old`.
std::vector<FieldError> Validate(const KindInfo& kind, const Json& object, const Json* old, bool status_subresource);

// metadata as kube-apiserver checks it on every kind: name and generateName (DNS-1123 subdomain), labels,
// annotations (256 KiB in all), finalizers, ownerReferences.
std::vector<FieldError> ValidateObjectMeta(const KindInfo& kind, const Json& object);

// Removes members that the schema does not know; their paths ("spec.foo", "spec.list[0].foo") go to `unknown_paths`
// when given, in the order they stand.
void Prune(const KindInfo& kind, Json& object, std::vector<std::string>* unknown_paths);

// The OpenAPI v3 structural schema of the whole object, descriptions and x-kubernetes-* extensions included.
Json SchemaOf(const KindInfo& kind);
// The CustomResourceDefinition (apiextensions.k8s.io/v1). REQUIRES: kind.ours.
Json CrdOf(const KindInfo& kind);

}  // namespace lockkeeper
