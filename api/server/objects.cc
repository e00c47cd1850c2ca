#include "api/server/objects.h"

#include <utility>

#include "api/base/id.h"
#include "api/server/patch.h"

namespace lockkeeper::apiserver {
namespace {

// etcd's default limit for one request, which real servers have (crd-idioms 3.5).
constexpr size_t kMaxObjectBytes = 3u << 19;
// A lost compare-and-swap is tried again: of many writers at once one wins each turn, so everybody gets there
// (crd-idioms 6: 20 blind patches are 20 successes). The bound is for a defect only.
constexpr int kMaxTries = 1000;

}  // namespace

Objects::Objects(Store& store, const Catalog& catalog, const Clock& clock, AdmitFn admit, bool need_namespaces)
    : store_(store), catalog_(catalog), clock_(clock), admit_(std::move(admit)), need_namespaces_(need_namespaces) {}

Outcome<Json> Objects::Get(const std::string& cluster, const ApiResource& resource, const std::string& ns,
                           const std::string& name) {
  Result<Record> record = store_.Get({cluster, resource.storage, ns, name});
  if (!record.ok()) {
    if (record.code() == Code::kNotFound) return NotFound(*resource.kind, name);
    return FromStore(record.status());
  }
  return FromRecord(resource, *record);
}

std::optional<ApiError> Objects::CheckNamespace(Session& session, const Key& key) {
  const ApiResource* namespaces = catalog_.namespaces();
  if (!need_namespaces_ || namespaces == nullptr || key.ns.empty()) return std::nullopt;
  Result<Record> record = session.Get({key.cluster, namespaces->storage, "", key.ns});
  if (!record.ok()) {
    if (record.code() == Code::kNotFound) return NotFound(*namespaces->kind, key.ns);
    return FromStore(record.status());
  }
  if (FromRecord(*namespaces, *record).At({"metadata", "deletionTimestamp"}).IsNull()) return std::nullopt;
  ApiError error = Forbidden(*namespaces->kind, key.ns,
                             "unable to create new content in namespace " + key.ns + " because it is being terminated");
  error.details["causes"] =
      Json::MakeArray({Json::MakeObject({{"reason", "NamespaceTerminating"},
                                         {"message", "namespace " + key.ns + " is being terminated"},
                                         {"field", "metadata.namespace"}})});
  return error;
}

std::optional<ApiError> Objects::CheckSize(const std::string& value) const {
  if (value.size() <= kMaxObjectBytes) return std::nullopt;
  return TooLarge("Request entity too large: the object has " + std::to_string(value.size()) + " bytes, the limit is " +
                  std::to_string(kMaxObjectBytes));
}

Outcome<Json> Objects::Create(WriteContext& context, const ApiResource& resource, const std::string& ns,
                              const Json& body) {
  const KindInfo& kind = *resource.kind;
  const bool generated = body.At({"metadata", "name"}).AsString().empty();
  for (int tries = 0;; ++tries) {
    CreateFacts facts{ns, context.user, clock_.Read().wall, NewUuid(), RandomName(5)};
    context.warnings.clear();
    Outcome<Json> prepared = PrepareCreate(resource, body, facts, context.body, &context.warnings);
    if (!prepared.ok()) return prepared;
    Json object = std::move(*prepared);
    const Key key{context.cluster, resource.storage, ns, object.At({"metadata", "name"}).AsString()};
    if (admit_) {
      Admission admission{Admission::Operation::kCreate, &resource, key, context.user, false, &object, nullptr};
      if (auto refused = admit_(admission)) return *refused;
    }
    PutOptions put;
    const std::string value = ToStored(resource, object, &put);
    if (auto error = CheckSize(value)) return *error;
    std::optional<ApiError> error;
    int64_t revision = 0;
    auto body_of_write = [&](Session& session, Txn* txn) -> Status {
      error = CheckNamespace(session, key);
      if (error) return {Code::kPrecondition, "namespace"};
      Result<Record> there = session.Get(key);
      if (there.ok()) {
        error = AlreadyExists(kind, key.name);
        if (!FromRecord(resource, *there).At({"metadata", "deletionTimestamp"}).IsNull()) {
          error->message = "object is being deleted: " + error->message;
        }
        return {Code::kAlreadyExists, key.name};
      }
      if (there.code() != Code::kNotFound) return there.status();
      if (txn == nullptr) return Status::Ok();
      LK_ASSIGN_OR_RETURN(revision, txn->Put(key, 0, value, put));
      return Status::Ok();
    };
    const Status status = context.dry_run
                              ? store_.Read([&](Session& session) { return body_of_write(session, nullptr); })
                              : store_.Write([&](Txn& txn) { return body_of_write(txn, &txn); });
    if (status.ok()) {
      // What was not stored has no version.
      if (!context.dry_run) object["metadata"]["resourceVersion"] = std::to_string(revision);
      return object;
    }
    if (error && status.code() == Code::kAlreadyExists && generated && tries < 8) continue;
    return error ? *error : FromStore(status);
  }
}

Outcome<Json> Objects::Update(WriteContext& context, const ApiResource& resource, const Key& key,
                              const UpdateFacts& facts, const Change& change) {
  const KindInfo& kind = *resource.kind;
  for (int tries = 0; tries < kMaxTries; ++tries) {
    Outcome<Json> old = Get(context.cluster, resource, key.ns, key.name);
    if (!old.ok()) return old;
    Outcome<Json> changed = change(*old);
    if (!changed.ok()) return changed;
    context.warnings.clear();
    Outcome<Updated> updated =
        PrepareUpdate(resource, *old, std::move(*changed), facts, context.body, &context.warnings);
    if (!updated.ok()) return updated.error();
    if (admit_ && !updated->unchanged) {
      Admission admission{
          Admission::Operation::kUpdate, &resource, key, context.user, facts.status, &updated->object, &*old};
      if (auto refused = admit_(admission)) return *refused;
    }
    if (updated->unchanged || context.dry_run) return std::move(updated->object);
    const int64_t expected = std::strtoll(old->At({"metadata", "resourceVersion"}).AsString().c_str(), nullptr, 10);
    PutOptions put;
    const std::string value = ToStored(resource, updated->object, &put);
    if (auto error = CheckSize(value)) return *error;
    int64_t revision = 0;
    const Status status = store_.Write([&](Txn& txn) -> Status {
      if (updated->gone) {
        LK_ASSIGN_OR_RETURN(revision, txn.Delete(key, expected));
      } else {
        LK_ASSIGN_OR_RETURN(revision, txn.Put(key, expected, value, put));
      }
      return Status::Ok();
    });
    if (status.ok()) {
      updated->object["metadata"]["resourceVersion"] = std::to_string(revision);
      return std::move(updated->object);
    }
    // Somebody was faster. The next turn finds the new state, or that it is gone; a resourceVersion that the client
    // named no longer matches then, which is its 409.
    if (status.code() != Code::kConflict && status.code() != Code::kNotFound) return FromStore(status);
  }
  return Conflict(kind, key.name);
}

Outcome<Json> Objects::Replace(WriteContext& context, const ApiResource& resource, const std::string& ns,
                               const std::string& name, bool status, const Json& body, bool* created) {
  *created = false;
  const Key key{context.cluster, resource.storage, ns, name};
  const UpdateFacts facts{WriteKind::kPut, status, name, ns};
  Outcome<Json> updated = Update(context, resource, key, facts, [&](const Json&) -> Outcome<Json> { return body; });
  if (updated.ok() || updated.error().code != 404 || !resource.create_on_update || status) return updated;
  const Json& metadata = body.Get("metadata");
  if (!metadata.Get("uid").AsString().empty() || !metadata.Get("resourceVersion").AsString().empty()) {
    // It speaks of an object that is gone: a leader whose Lease was deleted must not win it back by a late PUT.
    return Conflict(
        *resource.kind, name,
        "Precondition failed: UID in precondition: " + metadata.Get("uid").AsString() + ", UID in object meta: ");
  }
  *created = true;
  Json object = body;
  if (object.IsObject()) object["metadata"]["name"] = name;
  return Create(context, resource, ns, object);
}

Outcome<Json> Objects::Patch(WriteContext& context, const ApiResource& resource, const std::string& ns,
                             const std::string& name, bool status, PatchType type, const Json& patch) {
  const KindInfo& kind = *resource.kind;
  const Key key{context.cluster, resource.storage, ns, name};
  const UpdateFacts facts{WriteKind::kPatch, status, name, ns};
  return Update(context, resource, key, facts, [&](const Json& old) -> Outcome<Json> {
    Json object = old;
    Status applied;
    switch (type) {
      case PatchType::kMerge: ApplyMergePatch(object, patch); break;
      case PatchType::kJson: applied = ApplyJsonPatch(object, patch); break;
      case PatchType::kStrategic: applied = ApplyStrategicMergePatch(object, patch); break;
    }
    if (applied.ok()) {
      if (!object.IsObject()) return BadRequest("the patch leaves no object");
      return object;
    }
    if (applied.code() == Code::kExhausted) return TooLarge(applied.message());
    // A failed test, a missing path, a bad operation: 422 as kube-apiserver, and, other than there, with the reason.
    return Invalid(kind, name, FieldReason::kInvalid, "patch", "Invalid value: " + applied.message());
  });
}

Outcome<Deleted> Objects::Delete(WriteContext& context, const ApiResource& resource, const std::string& ns,
                                 const std::string& name, const DeleteOptions& options) {
  const KindInfo& kind = *resource.kind;
  const Key key{context.cluster, resource.storage, ns, name};
  for (int tries = 0; tries < kMaxTries; ++tries) {
    Outcome<Json> old = Get(context.cluster, resource, ns, name);
    if (!old.ok()) return old.error();
    Outcome<Deleting> deleting = PrepareDelete(resource, *old, options, clock_.Read().wall);
    if (!deleting.ok()) return deleting.error();
    if (admit_) {
      Admission admission{Admission::Operation::kDelete, &resource, key, context.user, false, &*old, nullptr};
      if (auto refused = admit_(admission)) return *refused;
    }
    if (deleting->unchanged || context.dry_run) return Deleted{std::move(deleting->object), deleting->gone};
    const int64_t expected = std::strtoll(old->At({"metadata", "resourceVersion"}).AsString().c_str(), nullptr, 10);
    PutOptions put;
    const std::string value = ToStored(resource, deleting->object, &put);
    int64_t revision = 0;
    const Status status = store_.Write([&](Txn& txn) -> Status {
      if (deleting->gone) {
        LK_ASSIGN_OR_RETURN(revision, txn.Delete(key, expected));
      } else {
        LK_ASSIGN_OR_RETURN(revision, txn.Put(key, expected, value, put));
      }
      return Status::Ok();
    });
    if (status.ok()) {
      deleting->object["metadata"]["resourceVersion"] = std::to_string(revision);
      return Deleted{std::move(deleting->object), deleting->gone};
    }
    if (status.code() != Code::kConflict && status.code() != Code::kNotFound) return FromStore(status);
  }
  return Conflict(kind, name);
}

Status Objects::Adjust(const Key& key, const std::function<bool(Json& object)>& change) {
  const ApiResource* resource = catalog_.FindStorage(key.resource);
  if (resource == nullptr) return {Code::kNotFound, "no served kind is stored as " + key.resource};
  return store_.Write([&](Txn& txn) -> Status {
    Result<Record> record = txn.Get(key);
    if (record.code() == Code::kNotFound) return Status::Ok();
    if (!record.ok()) return record.status();
    Json object = FromRecord(*resource, *record);
    if (!change(object)) return Status::Ok();
    const bool held = !object.At({"metadata", "finalizers"}).empty() ||
                      (resource->kind->kind == "Namespace" && !object.At({"spec", "finalizers"}).empty());
    if (object.At({"metadata", "deletionTimestamp"}).IsString() && !held) {
      LK_ASSIGN_OR_RETURN([[maybe_unused]] const int64_t gone, txn.Delete(key, record->revision));
      return Status::Ok();
    }
    PutOptions put;
    const std::string value = ToStored(*resource, std::move(object), &put);
    LK_ASSIGN_OR_RETURN([[maybe_unused]] const int64_t revision, txn.Put(key, record->revision, value, put));
    return Status::Ok();
  });
}

}  // namespace lockkeeper::apiserver
