#include "api/server/object_rules.h"

#include <algorithm>
#include <utility>

namespace lockkeeper::apiserver {
namespace {

const std::string& NameOf(const Json& object) { return object.At({"metadata", "name"}).AsString(); }

bool IsEmptyOrNull(const Json* value) {
  return value == nullptr || value->IsNull() || (value->IsString() && value->AsString().empty());
}

// Prunes, and says what was pruned in the way the client asked for.
std::optional<ApiError> CheckFields(const ApiResource& resource, Json& object, bool patch, const BodyOptions& options,
                                    std::vector<std::string>* warnings) {
  const KindInfo& kind = *resource.kind;
  std::vector<std::string> unknown;
  Prune(kind, object, &unknown);
  if (options.validation == FieldValidation::kIgnore) return std::nullopt;
  std::vector<std::string> lines;
  for (const std::string& path : unknown) lines.push_back("unknown field \"" + path + "\"");
  for (const std::string& path : options.duplicates) lines.push_back("duplicate field \"" + path + "\"");
  if (lines.empty()) return std::nullopt;
  if (options.validation == FieldValidation::kWarn) {
    if (warnings != nullptr) warnings->insert(warnings->end(), lines.begin(), lines.end());
    return std::nullopt;
  }
  std::string text = "strict decoding error: ";
  for (size_t i = 0; i < lines.size(); ++i) text += (i > 0 ? ", " : "") + lines[i];
  if (patch) return Invalid(kind, NameOf(object), FieldReason::kInvalid, "patch", "Invalid value: " + text);
  return BadRequest(kind.kind + " in version \"" + kind.version + "\" cannot be handled as a " + kind.kind + ": " +
                    text);
}

// The members that only the server writes, as they are in `old` (nullptr: a new object).
void KeepServerMembers(Json& metadata, const Json* old) {
  for (const char* name :
       {"uid", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds"}) {
    const Json* kept = old == nullptr ? nullptr : old->Get("metadata").Find(name);
    if (kept != nullptr) {
      metadata[name] = *kept;
    } else {
      metadata.Remove(name);
    }
  }
  // Accepted and dropped: nothing here applies server-side.
  metadata.Remove("managedFields");
  metadata.Remove("selfLink");
  for (const char* name : {"labels", "annotations", "finalizers", "ownerReferences"}) {
    const Json* member = metadata.Find(name);
    if (member != nullptr && (member->IsNull() || ((member->IsObject() || member->IsArray()) && member->empty()))) {
      metadata.Remove(name);
    }
  }
}

std::optional<ApiError> Check(const ApiResource& resource, const Json& object, const Json* old, bool status) {
  const KindInfo& kind = *resource.kind;
  std::vector<FieldError> errors = ValidateObjectMeta(kind, object);
  std::vector<FieldError> more = Validate(kind, object, old, status);
  errors.insert(errors.end(), more.begin(), more.end());
  more = ValidateBuiltin(kind, object, old);
  errors.insert(errors.end(), more.begin(), more.end());
  if (errors.empty()) return std::nullopt;
  return Invalid(kind, NameOf(object), errors);
}

// The parts whose change raises the generation: all but metadata and, with a status subresource, status.
Json Desired(const ApiResource& resource, const Json& object) {
  Json copy = object;
  copy.Remove("metadata");
  if (resource.kind->has_status) copy.Remove("status");
  return copy;
}

// A Namespace has finalizers of its own in its spec.
bool HasFinalizers(const KindInfo& kind, const Json& object) {
  return !object.At({"metadata", "finalizers"}).empty() ||
         (kind.kind == "Namespace" && !object.At({"spec", "finalizers"}).empty());
}

}  // namespace

Outcome<Json> CheckTypeMeta(const ApiResource& resource, Json body) {
  const KindInfo& kind = *resource.kind;
  if (!body.IsObject()) return BadRequest("the body is no JSON object");
  const std::string api_version = body.Get("apiVersion").AsString();
  const std::string name = body.Get("kind").AsString();
  if (!api_version.empty() && api_version != kind.ApiVersion()) {
    return BadRequest("the API version in the data (" + api_version + ") does not match the expected API version (" +
                      kind.ApiVersion() + ")");
  }
  if (!name.empty() && name != kind.kind) {
    return BadRequest(kind.kind + " in version \"" + kind.version + "\" cannot be handled as a " + name +
                      ": the URL is that of " + kind.plural);
  }
  if (!body.Get("metadata").IsNull() && !body.Get("metadata").IsObject())
    return BadRequest("metadata is no JSON object");
  body["apiVersion"] = kind.ApiVersion();
  body["kind"] = kind.kind;
  if (body.Get("metadata").IsNull()) body["metadata"] = Json::MakeObject();
  return body;
}

Outcome<Json> PrepareCreate(const ApiResource& resource, Json body, const CreateFacts& facts,
                            const BodyOptions& options, std::vector<std::string>* warnings) {
  const KindInfo& kind = *resource.kind;
  Outcome<Json> checked = CheckTypeMeta(resource, std::move(body));
  if (!checked.ok()) return checked.error();
  Json object = std::move(*checked);
  Json& metadata = object["metadata"];
  if (!IsEmptyOrNull(metadata.Find("resourceVersion"))) {
    ApiError error = BadRequest("resourceVersion should not be set on objects to be created");
    error.code = 500;
    error.reason = "InternalError";
    return error;
  }
  metadata.Remove("resourceVersion");
  const std::string body_ns = metadata.Get("namespace").AsString();
  if (!body_ns.empty() && body_ns != facts.ns) {
    return BadRequest("the namespace of the provided object does not match the namespace sent on the request");
  }
  metadata.Remove("namespace");
  if (kind.namespaced) metadata["namespace"] = facts.ns;
  if (IsEmptyOrNull(metadata.Find("name"))) {
    const std::string prefix = metadata.Get("generateName").AsString();
    if (prefix.empty()) {
      return Invalid(kind, "", FieldReason::kRequired, "metadata.name",
                     "Required value: name or generateName is required");
    }
    metadata["name"] = prefix.substr(0, 58) + facts.name_suffix;
  }
  if (auto error = CheckFields(resource, object, false, options, warnings)) return *error;
  KeepServerMembers(object["metadata"], nullptr);
  if (kind.has_status) object.Remove("status");
  ApplyDefaults(kind, object);
  DefaultBuiltin(kind, object, true);
  Json& meta = object["metadata"];
  meta["uid"] = facts.uid;
  meta["creationTimestamp"] = FormatTime(facts.now);
  if (resource.HasGeneration()) meta["generation"] = 1;
  if (resource.record_requester) meta["annotations"][kRequestedByAnnotation] = facts.user;
  if (auto error = Check(resource, object, nullptr, false)) return *error;
  return object;
}

Outcome<Updated> PrepareUpdate(const ApiResource& resource, const Json& old, Json body, const UpdateFacts& facts,
                               const BodyOptions& options, std::vector<std::string>* warnings) {
  const KindInfo& kind = *resource.kind;
  const bool patch = facts.kind == WriteKind::kPatch;
  Outcome<Json> checked = CheckTypeMeta(resource, std::move(body));
  if (!checked.ok()) return checked.error();
  Json object = std::move(*checked);
  const Json& old_meta = old.Get("metadata");
  {
    Json& meta = object["metadata"];
    const std::string name = meta.Get("name").AsString();
    if (name != facts.name && !(name.empty() && !patch)) {
      return BadRequest("the name of the object (" + name + ") does not match the name on the URL (" + facts.name +
                        ")");
    }
    meta["name"] = facts.name;
    const std::string ns = meta.Get("namespace").AsString();
    if (ns != facts.ns && !ns.empty()) {
      return BadRequest("the namespace of the object (" + ns + ") does not match the namespace on the URL (" +
                        facts.ns + ")");
    }
    if (kind.namespaced) meta["namespace"] = facts.ns;

    const Json* version = meta.Find("resourceVersion");
    const bool unset = IsEmptyOrNull(version) || version->AsString() == "0";
    // Built-in kinds may be replaced blindly, a Lease and CustomResources may not.
    const bool blind_ok = !patch && !resource.custom && kind.kind != "Lease" && IsEmptyOrNull(version);
    if (unset && !blind_ok) {
      return Invalid(kind, facts.name, FieldReason::kInvalid, "metadata.resourceVersion",
                     "Invalid value: 0x0: must be specified for an update");
    }
    if (!unset && version->AsString() != old_meta.Get("resourceVersion").AsString()) return Conflict(kind, facts.name);
    meta["resourceVersion"] = old_meta.Get("resourceVersion");

    const std::string uid = meta.Get("uid").AsString();
    const std::string& old_uid = old_meta.Get("uid").AsString();
    if (!facts.status && !uid.empty() && uid != old_uid) {
      if (patch) {
        return Invalid(kind, facts.name, FieldReason::kInvalid, "metadata.uid",
                       "Invalid value: \"" + uid + "\": field is immutable");
      }
      return Conflict(kind, facts.name,
                      "Precondition failed: UID in precondition: " + uid + ", UID in object meta: " + old_uid);
    }
  }
  if (auto error = CheckFields(resource, object, patch, options, warnings)) return *error;
  if (facts.status) {
    Json next = old;
    if (const Json* status = object.Find("status")) {
      next["status"] = *status;
    } else {
      next.Remove("status");
    }
    object = std::move(next);
  } else {
    KeepServerMembers(object["metadata"], &old);
    if (kind.has_status) {
      if (const Json* status = old.Find("status")) {
        object["status"] = *status;
      } else {
        object.Remove("status");
      }
    }
    if (resource.record_requester) {
      // The server's word, not the client's.
      const Json* who = old_meta.Get("annotations").Find(kRequestedByAnnotation);
      if (who != nullptr) {
        object["metadata"]["annotations"][kRequestedByAnnotation] = *who;
      } else if (object.At({"metadata", "annotations"}).Has(kRequestedByAnnotation)) {
        object["metadata"]["annotations"].Remove(kRequestedByAnnotation);
      }
    }
  }
  ApplyDefaults(kind, object);
  DefaultBuiltin(kind, object, false);
  if (kind.kind == "Namespace") {
    // Only the collector drops a namespace's own finalizer.
    if (const Json* spec = old.Find("spec")) object["spec"] = *spec;
  }
  const bool deleting = old_meta.Has("deletionTimestamp");
  if (deleting && !facts.status) {
    std::string added;
    const Json::Array& before = old_meta.Get("finalizers").AsArray();
    for (const Json& finalizer : object.At({"metadata", "finalizers"}).AsArray()) {
      if (std::find(before.begin(), before.end(), finalizer) == before.end()) {
        added += (added.empty() ? "" : ", ") + finalizer.Dump();
      }
    }
    if (!added.empty()) {
      return Invalid(kind, facts.name, FieldReason::kForbidden, "metadata.finalizers",
                     "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers "
                     "[]string{" +
                         added + "}");
    }
  }
  if (resource.HasGeneration() && !facts.status && !(Desired(resource, object) == Desired(resource, old))) {
    object["metadata"]["generation"] = old_meta.Get("generation").AsInt() + 1;
  }
  if (object == old) return Updated{old, true, false};
  if (auto error = Check(resource, object, &old, facts.status)) return *error;
  const bool gone = deleting && !HasFinalizers(kind, object);
  return Updated{std::move(object), false, gone};
}

Outcome<Deleting> PrepareDelete(const ApiResource& resource, const Json& old, const DeleteOptions& options, Time now) {
  const KindInfo& kind = *resource.kind;
  const std::string name = NameOf(old);
  const Json& old_meta = old.Get("metadata");
  const std::string& uid = old_meta.Get("uid").AsString();
  if (!options.uid.empty() && options.uid != uid) {
    return Conflict(kind, name,
                    "the UID in the precondition (" + options.uid + ") does not match the UID in record (" + uid +
                        "). The object might have been deleted and then recreated");
  }
  const std::string& version = old_meta.Get("resourceVersion").AsString();
  if (!options.resource_version.empty() && options.resource_version != version) {
    return Conflict(kind, name,
                    "the ResourceVersion in the precondition (" + options.resource_version +
                        ") does not match the ResourceVersion in record (" + version +
                        "). The object might have been modified");
  }
  if (kind.kind == "Namespace" && (name == "default" || name == "kube-system")) {
    return Forbidden(kind, name, "this namespace may not be deleted");
  }
  Json object = old;
  Json& meta = object["metadata"];
  auto set_finalizer = [&](const char* finalizer, bool wanted) {
    Json::Array items = meta.Get("finalizers").AsArray();
    const auto it = std::find(items.begin(), items.end(), Json(finalizer));
    if (wanted == (it != items.end())) return;
    if (wanted) {
      items.push_back(finalizer);
    } else {
      items.erase(it);
    }
    meta["finalizers"] = Json(std::move(items));
  };
  if (!options.propagation.empty()) {
    set_finalizer("foregroundDeletion", options.propagation == "Foreground");
    set_finalizer("orphan", options.propagation == "Orphan");
  }
  if (meta.Get("finalizers").empty()) meta.Remove("finalizers");
  if (!HasFinalizers(kind, object)) return Deleting{std::move(object), false, true};
  if (!old_meta.Has("deletionTimestamp")) {
    meta["deletionTimestamp"] = FormatTime(now);
    meta["deletionGracePeriodSeconds"] = 0;
    if (resource.HasGeneration()) meta["generation"] = old_meta.Get("generation").AsInt() + 1;
    if (kind.kind == "Namespace") object["status"]["phase"] = "Terminating";
  }
  const bool unchanged = object == old;
  return Deleting{std::move(object), unchanged, false};
}

Json FromStored(const ApiResource& resource, const std::string& value, int64_t revision) {
  Result<Json> parsed = Json::Parse(value);
  // What the store holds was written by ToStored; a value that does not parse is shown as an empty object rather
  // than taking a whole list down.
  Json object = parsed.ok() ? std::move(*parsed) : Json::MakeObject();
  if (resource.from_storage != nullptr) resource.from_storage(object);
  ApplyDefaults(*resource.kind, object);
  object["metadata"]["resourceVersion"] = std::to_string(revision);
  return object;
}

Json FromRecord(const ApiResource& resource, const Record& record) {
  return FromStored(resource, record.value, record.revision);
}

std::string ToStored(const ApiResource& resource, Json object, PutOptions* options) {
  if (resource.to_storage != nullptr) resource.to_storage(object);
  Json& metadata = object["metadata"];
  metadata.Remove("resourceVersion");
  options->uid = metadata.Get("uid").AsString();
  const Json& labels = metadata.Get("labels");
  options->labels = labels.empty() ? "" : labels.Dump();
  for (const Json& owner : metadata.Get("ownerReferences").AsArray()) {
    const std::string& uid = owner.Get("uid").AsString();
    if (!uid.empty()) options->owners.push_back(uid);
  }
  return object.Dump();
}

}  // namespace lockkeeper::apiserver
