// What kube-apiserver does with Namespaces, Secrets, ConfigMaps and Leases beyond their schema.
#include <algorithm>
#include <cctype>
#include <utility>

#include "api/server/auth.h"
#include "api/server/object_rules.h"

namespace lockkeeper::apiserver {
namespace {

FieldError Error(FieldReason reason, std::string field, std::string message) {
  return {reason, std::move(field), std::move(message)};
}

// Keys of a ConfigMap's or Secret's data: letters, digits, - _ and dots, at most 253, neither "." nor "..".
bool IsDataKey(const std::string& key) {
  if (key.empty() || key.size() > 253 || key == "." || key.rfind("..", 0) == 0) return false;
  return std::all_of(key.begin(), key.end(),
                     [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.'; });
}

void CheckData(const Json& object, const char* member, bool base64, std::vector<FieldError>& errors) {
  const Json& data = object.Get(member);
  if (!data.IsNull() && !data.IsObject()) {
    errors.push_back(Error(FieldReason::kTypeInvalid, member, "Invalid value: must be an object of strings"));
    return;
  }
  for (const auto& [key, value] : data.AsObject()) {
    const std::string field = std::string(member) + "[" + key + "]";
    if (!IsDataKey(key)) {
      errors.push_back(Error(FieldReason::kInvalid, field,
                             "Invalid value: \"" + key + "\": a key has 1 to 253 letters, digits, '-', '_' or '.'"));
    }
    // The value itself is not repeated: it may be a secret.
    if (!value.IsString()) errors.push_back(Error(FieldReason::kTypeInvalid, field, "Invalid value: must be a string"));
    if (base64 && value.IsString() && !FromBase64(value.AsString()).ok()) {
      errors.push_back(Error(FieldReason::kInvalid, field, "Invalid value: must be base64"));
    }
  }
}

void CheckImmutable(const Json& object, const Json* old, std::initializer_list<const char*> members,
                    std::vector<FieldError>& errors) {
  if (old == nullptr || !old->Get("immutable").AsBool()) return;
  if (!object.Get("immutable").AsBool()) {
    errors.push_back(
        Error(FieldReason::kForbidden, "immutable", "Forbidden: field is immutable when `immutable` is set"));
  }
  for (const char* member : members) {
    if (!(object.Get(member) == old->Get(member))) {
      errors.push_back(Error(FieldReason::kForbidden, member, "Forbidden: field is immutable when `immutable` is set"));
    }
  }
}

}  // namespace

void DefaultBuiltin(const KindInfo& kind, Json& object, bool creating) {
  if (!kind.group.empty()) return;
  if (kind.kind == "Namespace" && creating) {
    object["spec"] = Json::MakeObject({{"finalizers", Json::MakeArray({"kubernetes"})}});
    object["status"] = Json::MakeObject({{"phase", "Active"}});
    // A copy first: making the labels may move the name.
    const std::string name = object.At({"metadata", "name"}).AsString();
    object["metadata"]["labels"]["kubernetes.io/metadata.name"] = name;
  }
  if (kind.kind == "Secret") {
    if (object.Get("type").AsString().empty()) object["type"] = "Opaque";
    const Json plain = object.Get("stringData");
    for (const auto& [key, value] : plain.AsObject()) object["data"][key] = Base64(value.AsString());
    object.Remove("stringData");
  }
}

std::vector<FieldError> ValidateBuiltin(const KindInfo& kind, const Json& object, const Json* old) {
  std::vector<FieldError> errors;
  if (kind.group == "coordination.k8s.io" && kind.kind == "Lease") {
    const Json* seconds = object.Get("spec").Find("leaseDurationSeconds");
    if (seconds != nullptr && !seconds->IsNull() && seconds->AsInt() <= 0) {
      errors.push_back(Error(FieldReason::kInvalid, "spec.leaseDurationSeconds",
                             "Invalid value: " + seconds->Dump() + ": must be greater than 0"));
    }
    const Json* transitions = object.Get("spec").Find("leaseTransitions");
    if (transitions != nullptr && !transitions->IsNull() && transitions->AsInt() < 0) {
      errors.push_back(Error(FieldReason::kInvalid, "spec.leaseTransitions",
                             "Invalid value: " + transitions->Dump() + ": must be greater than or equal to 0"));
    }
    return errors;
  }
  if (!kind.group.empty()) return errors;
  if (kind.kind == "ConfigMap") {
    CheckData(object, "data", false, errors);
    CheckData(object, "binaryData", true, errors);
    CheckImmutable(object, old, {"data", "binaryData"}, errors);
  } else if (kind.kind == "Secret") {
    CheckData(object, "data", true, errors);
    CheckImmutable(object, old, {"data"}, errors);
    if (old != nullptr && !(object.Get("type") == old->Get("type"))) {
      errors.push_back(
          Error(FieldReason::kInvalid, "type", "Invalid value: " + object.Get("type").Dump() + ": field is immutable"));
    }
  } else if (kind.kind == "Namespace" && old == nullptr) {
    const std::string& name = object.At({"metadata", "name"}).AsString();
    if (name.find('.') != std::string::npos || name.size() > 63) {
      errors.push_back(
          Error(FieldReason::kInvalid, "metadata.name",
                "Invalid value: \"" + name + "\": a namespace's name has at most 63 characters and no dot"));
    }
  }
  return errors;
}

}  // namespace lockkeeper::apiserver
