#include "api/server/kcp/objects.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "api/base/id.h"
#include "api/server/kcp/build_version.h"

namespace lockkeeper::kcp {

Object NewObject(apiserver::Key key, std::string_view api_version, std::string_view kind, const Now& now) {
  Json metadata = Json::MakeObject({{"name", key.name}});
  if (!key.ns.empty()) metadata.Set("namespace", key.ns);
  metadata.Set("uid", NewUuid());
  metadata.Set("creationTimestamp", FormatTime(now.wall));
  Json json = Json::MakeObject({{"apiVersion", api_version}, {"kind", kind}, {"metadata", std::move(metadata)}});
  return {std::move(key), std::move(json), 0};
}

Result<Object> ReadObject(apiserver::Session& session, const apiserver::Key& key) {
  LK_ASSIGN_OR_RETURN(apiserver::Record record, session.Get(key));
  LK_ASSIGN_OR_RETURN(Json json, Json::Parse(record.value));
  return Object{key, std::move(json), record.revision};
}

Status WriteObject(apiserver::Txn& txn, Object* object) {
  Json& metadata = object->json["metadata"];
  metadata.Remove("resourceVersion");
  // A Lease is rewritten by whoever leads; it says nothing of what the store holds.
  if (object->key.resource != kLeases) metadata["annotations"].Set(kVersionAnnotation, BuildVersion());
  apiserver::PutOptions options;
  options.uid = metadata.Get("uid").AsString();
  if (const Json& labels = metadata.Get("labels"); !labels.empty()) options.labels = labels.Dump();
  for (const Json& owner : metadata.Get("ownerReferences").AsArray()) {
    options.owners.push_back(owner.Get("uid").AsString());
  }
  LK_ASSIGN_OR_RETURN(object->revision, txn.Put(object->key, object->revision, object->json.Dump(), options));
  return Status::Ok();
}

bool IsDeleting(const Json& object) { return !object.At({"metadata", "deletionTimestamp"}).IsNull(); }

bool HasFinalizer(const Json& object, std::string_view name) {
  const auto& list = object.At({"metadata", "finalizers"}).AsArray();
  return std::any_of(list.begin(), list.end(), [&](const Json& f) { return f.AsString() == name; });
}

void AddFinalizer(Json& object, std::string_view name) {
  if (!HasFinalizer(object, name)) object["metadata"]["finalizers"].Push(name);
}

void RemoveFinalizer(Json& object, std::string_view name) {
  Json kept = Json::MakeArray();
  for (const Json& f : object.At({"metadata", "finalizers"}).AsArray()) {
    if (f.AsString() != name) kept.Push(f);
  }
  if (kept.empty()) {
    object["metadata"].Remove("finalizers");
  } else {
    object["metadata"].Set("finalizers", std::move(kept));
  }
}

void SetCondition(Json& object, std::string_view type, bool status, const Now& now, std::string_view reason,
                  std::string_view message) {
  Json condition = Json::MakeObject({{"type", type}, {"status", status ? "True" : "False"}});
  if (!status) condition.Set("severity", "Info");
  if (!reason.empty()) condition.Set("reason", reason);
  if (!message.empty()) condition.Set("message", message);
  condition.Set("lastTransitionTime", FormatTime(now.wall));
  Json& list = object["status"]["conditions"];
  for (Json& old : list.MutableArray()) {
    if (old.Get("type").AsString() != type) continue;
    if (old.Get("status") == condition.Get("status"))
      condition.Set("lastTransitionTime", old.Get("lastTransitionTime"));
    old = std::move(condition);
    return;
  }
  list.Push(std::move(condition));
}

}  // namespace lockkeeper::kcp
