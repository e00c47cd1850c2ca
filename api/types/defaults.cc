// ApplyDefaults and Prune.
#include "api/types/kind.h"
#include "api/types/meta.h"
#include "api/types/type_info.h"

namespace lockkeeper {

namespace {

void DefaultStruct(const TypeInfo& type, Json& object);

void DefaultValue(const ValueInfo& info, Json& value) {
  if (info.kind == ValueKind::kObject && value.IsObject()) {
    DefaultStruct(*info.type, value);
  } else if (info.kind == ValueKind::kList && value.IsArray()) {
    for (Json& item : value.MutableArray()) DefaultValue(*info.items, item);
  } else if (info.kind == ValueKind::kMap && value.IsObject()) {
    for (auto& member : value.MutableObject()) DefaultValue(*info.items, member.second);
  }
}

void DefaultStruct(const TypeInfo& type, Json& object) {
  for (const FieldInfo& field : type.fields) {
    Json* value = object.Find(field.name);
    if (value == nullptr || value->IsNull()) {
      if (!field.default_value.IsNull()) {
        object.Set(field.name, field.default_value);
        value = object.Find(field.name);
      } else {
        if (value != nullptr) object.Remove(field.name);
        continue;
      }
    }
    DefaultValue(field.value, *value);
  }
}

void PruneStruct(const TypeInfo& type, Json& object, const std::string& path, std::vector<std::string>* unknown);

void PruneValue(const ValueInfo& info, Json& value, const std::string& path, std::vector<std::string>* unknown) {
  if (info.kind == ValueKind::kObject && value.IsObject()) {
    PruneStruct(*info.type, value, path, unknown);
  } else if (info.kind == ValueKind::kList && value.IsArray()) {
    Json::Array& items = value.MutableArray();
    for (size_t i = 0; i < items.size(); ++i) {
      PruneValue(*info.items, items[i], path + "[" + std::to_string(i) + "]", unknown);
    }
  } else if (info.kind == ValueKind::kMap && value.IsObject()) {
    for (auto& [key, item] : value.MutableObject()) PruneValue(*info.items, item, path + "." + key, unknown);
  }
}

// Members of ObjectMeta that its table leaves to `extra`.
bool IsOtherMetaMember(std::string_view name) { return name == "managedFields" || name == "selfLink"; }

void PruneStruct(const TypeInfo& type, Json& object, const std::string& path, std::vector<std::string>* unknown) {
  const bool root = !type.kind.empty();
  const bool meta = &type == &ObjectMeta::Type();
  Json::Object& members = object.MutableObject();
  for (size_t i = 0; i < members.size();) {
    const std::string& name = members[i].first;
    const std::string below = path.empty() ? name : path + "." + name;
    if (const FieldInfo* field = type.Find(name)) {
      PruneValue(field->value, members[i].second, below, unknown);
      ++i;
    } else if ((root && (name == "apiVersion" || name == "kind")) || (meta && IsOtherMetaMember(name))) {
      ++i;
    } else {
      if (unknown != nullptr) unknown->push_back(below);
      members.erase(members.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
}

}  // namespace

Json FilledDefault(const FieldInfo& field) {
  Json value = field.default_value;
  DefaultValue(field.value, value);
  return value;
}

void ApplyDefaults(const KindInfo& kind, Json& object) {
  if (kind.type == nullptr || !object.IsObject()) return;
  for (const FieldInfo& field : kind.type->fields) {
    if (field.name == "metadata") continue;
    Json* value = object.Find(field.name);
    if (value != nullptr && value->IsNull()) {
      object.Remove(field.name);
      value = nullptr;
    }
    if (value == nullptr) {
      if (field.default_value.IsNull()) continue;
      object.Set(field.name, field.default_value);
      value = object.Find(field.name);
    }
    DefaultValue(field.value, *value);
  }
}

void Prune(const KindInfo& kind, Json& object, std::vector<std::string>* unknown_paths) {
  if (kind.type == nullptr || !object.IsObject()) {
    // Without a schema of its own a kind still has metadata.
    if (Json* metadata = object.Find("metadata"); metadata != nullptr && metadata->IsObject()) {
      PruneStruct(ObjectMeta::Type(), *metadata, "metadata", unknown_paths);
    }
    return;
  }
  PruneStruct(*kind.type, object, "", unknown_paths);
}

}  // namespace lockkeeper
