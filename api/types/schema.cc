// SchemaOf and CrdOf: the OpenAPI v3 structural schema and the CustomResourceDefinition.
#include "api/types/kind.h"
#include "api/types/type_info.h"

namespace lockkeeper {

namespace {

Json Rules(const std::vector<Rule>& rules) {
  Json out = Json::MakeArray();
  for (const Rule& rule : rules) out.Push(Json::MakeObject({{"rule", rule.cel}, {"message", rule.message}}));
  return out;
}

void AddStruct(const TypeInfo& type, Json* schema);

template <typename T>
void SetIf(Json* schema, const char* key, const std::optional<T>& value) {
  if (value) schema->Set(key, Json(*value));
}

void AddValue(const ValueInfo& info, Json* schema) {
  switch (info.kind) {
    case ValueKind::kString: schema->Set("type", "string"); break;
    case ValueKind::kTime:
      schema->Set("type", "string");
      schema->Set("format", "date-time");
      break;
    case ValueKind::kInteger:
      schema->Set("type", "integer");  // a format would only change the text about fractions
      break;
    case ValueKind::kNumber: schema->Set("type", "number"); break;
    case ValueKind::kBoolean: schema->Set("type", "boolean"); break;
    case ValueKind::kObject:
      schema->Set("type", "object");
      AddStruct(*info.type, schema);
      break;
    case ValueKind::kMap: {
      schema->Set("type", "object");
      Json values = Json::MakeObject();
      AddValue(*info.items, &values);
      schema->Set("additionalProperties", std::move(values));
      break;
    }
    case ValueKind::kList: {
      schema->Set("type", "array");
      Json items = Json::MakeObject();
      if (info.items->kind == ValueKind::kObject) items.Set("description", info.items->type->doc);
      AddValue(*info.items, &items);
      schema->Set("items", std::move(items));
      static constexpr const char* kListTypes[] = {"atomic", "set", "map"};
      schema->Set("x-kubernetes-list-type", kListTypes[static_cast<size_t>(info.list_type)]);
      if (info.list_type == ListType::kMap) {
        Json keys = Json::MakeArray();
        for (const std::string& key : info.list_map_keys) keys.Push(key);
        schema->Set("x-kubernetes-list-map-keys", std::move(keys));
      }
      break;
    }
    case ValueKind::kAny: schema->Set("x-kubernetes-preserve-unknown-fields", true); break;
  }
  if (info.enum_info != nullptr) {
    Json values = Json::MakeArray();
    for (const std::string& value : info.enum_info->values) values.Push(value);
    schema->Set("enum", std::move(values));
  }
  SetIf(schema, "minimum", info.minimum);
  SetIf(schema, "maximum", info.maximum);
  SetIf(schema, "minLength", info.min_length);
  SetIf(schema, "maxLength", info.max_length);
  SetIf(schema, "minItems", info.min_items);
  SetIf(schema, "maxItems", info.max_items);
  SetIf(schema, "maxProperties", info.max_properties);
  if (!info.pattern.empty()) schema->Set("pattern", info.pattern);
  if (!info.rules.empty()) {
    Json rules = Rules(info.rules);
    if (const Json* own = schema->Find("x-kubernetes-validations")) {
      for (const Json& rule : own->AsArray()) rules.Push(rule);
    }
    schema->Set("x-kubernetes-validations", std::move(rules));
  }
}

// kubectl explain shows neither defaults nor limits, so the description says them.
std::string Description(const FieldInfo& field) {
  std::string out = field.doc;
  const ValueInfo& leaf = field.value.items ? *field.value.items : field.value;
  const auto add = [&out](const std::string& text) { out += " " + text; };
  if (!field.default_value.IsNull() && !field.default_value.IsObject()) {
    const std::string text =
        field.default_value.IsString() ? field.default_value.AsString() : field.default_value.Dump();
    if (text != "[]") add("Default: " + text + ".");
  }
  if (leaf.minimum && leaf.maximum && *leaf.maximum < kMaxSafeInteger) {
    add("From " + std::to_string(*leaf.minimum) + " to " + std::to_string(*leaf.maximum) + ".");
  }
  if (!leaf.pattern_hint.empty()) add("Must be " + leaf.pattern_hint + ".");
  if (field.immutable) add("Immutable.");
  return out;
}

void AddStruct(const TypeInfo& type, Json* schema) {
  Json required = Json::MakeArray();
  Json properties = Json::MakeObject();
  for (const FieldInfo& field : type.fields) {
    Json property = Json::MakeObject({{"description", Description(field)}});
    AddValue(field.value, &property);
    if (!field.default_value.IsNull()) property.Set("default", FilledDefault(field));
    properties.Set(field.name, std::move(property));
    if (field.required) required.Push(field.name);
  }
  if (!required.empty()) schema->Set("required", std::move(required));
  schema->Set("properties", std::move(properties));
  if (!type.rules.empty()) schema->Set("x-kubernetes-validations", Rules(type.rules));
}

}  // namespace

Json SchemaOf(const KindInfo& kind) {
  Json schema = Json::MakeObject({{"description", kind.doc}, {"type", "object"}});
  Json properties = Json::MakeObject(
      {{"apiVersion", Json::MakeObject({{"description", "Group and version of this representation of the object."},
                                        {"type", "string"}})},
       {"kind", Json::MakeObject({{"description", "Kind of the object."}, {"type", "string"}})},
       {"metadata", Json::MakeObject({{"type", "object"}})}});
  if (kind.type == nullptr) {
    schema.Set("properties", std::move(properties));
    schema.Set("x-kubernetes-preserve-unknown-fields", true);
    return schema;
  }
  AddStruct(*kind.type, &schema);
  for (const auto& [name, property] : schema.Get("properties").AsObject()) {
    if (name != "metadata") properties.Set(name, property);
  }
  schema.Set("properties", std::move(properties));
  return schema;
}

Json CrdOf(const KindInfo& kind) {
  Json names = Json::MakeObject(
      {{"kind", kind.kind}, {"listKind", kind.ListKind()}, {"plural", kind.plural}, {"singular", kind.singular}});
  const auto texts = [](const std::vector<std::string>& values) {
    Json out = Json::MakeArray();
    for (const std::string& value : values) out.Push(value);
    return out;
  };
  if (!kind.short_names.empty()) names.Set("shortNames", texts(kind.short_names));
  names.Set("categories", texts(kind.categories));

  Json columns = Json::MakeArray();
  for (const PrinterColumn& column : kind.columns) {
    Json out = Json::MakeObject({{"name", column.name},
                                 {"type", column.type},
                                 {"description", column.description},
                                 {"jsonPath", column.json_path}});
    if (column.priority != 0) out.Set("priority", column.priority);
    columns.Push(std::move(out));
  }
  Json version = Json::MakeObject({{"name", kind.version},
                                   {"served", true},
                                   {"storage", true},
                                   {"additionalPrinterColumns", std::move(columns)},
                                   {"subresources", Json::MakeObject({{"status", Json::MakeObject()}})},
                                   {"schema", Json::MakeObject({{"openAPIV3Schema", SchemaOf(kind)}})}});
  return Json::MakeObject(
      {{"apiVersion", "apiextensions.k8s.io/v1"},
       {"kind", "CustomResourceDefinition"},
       {"metadata", Json::MakeObject({{"name", kind.plural + "." + kind.group},
                                      {"labels", Json::MakeObject({{"app.kubernetes.io/name", "lockkeeper"}})}})},
       {"spec", Json::MakeObject({{"group", kind.group},
                                  {"names", std::move(names)},
                                  {"scope", kind.namespaced ? "Namespaced" : "Cluster"},
                                  {"versions", Json::MakeArray({std::move(version)})}})}});
}

}  // namespace lockkeeper
