#include "api/types/generate.h"

#include <algorithm>
#include <map>
#include <set>

#include "api/base/file.h"
#include "api/types/conditions.h"
#include "api/types/kind.h"
#include "api/types/reasons.h"
#include "api/types/type_info.h"
#include "api/types/yaml.h"

namespace lockkeeper {

namespace {

std::string Lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return text;
}

// Text for a cell of a Markdown table.
std::string Cell(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    if (c == '<') {
      out += "&lt;";
    } else {
      out += c;
    }
  }
  return out;
}

std::string Code(const std::string& text) {
  std::string out = "`";
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c;
  }
  return out + "`";
}

std::string TypeName(const ValueInfo& info) {
  switch (info.kind) {
    case ValueKind::kString: return info.enum_info != nullptr ? "enum" : "string";
    case ValueKind::kInteger: return "integer";
    case ValueKind::kNumber: return "number";
    case ValueKind::kBoolean: return "boolean";
    case ValueKind::kTime: return info.micro ? "time, microseconds" : "time";
    case ValueKind::kObject: return "object";
    case ValueKind::kList: return (info.list_type == ListType::kSet ? "set of " : "list of ") + TypeName(*info.items);
    case ValueKind::kMap: return "map of " + TypeName(*info.items);
    case ValueKind::kAny: break;
  }
  return "any";
}

std::string Limits(const ValueInfo& info) {
  std::vector<std::string> parts;
  const ValueInfo& leaf = info.items ? *info.items : info;
  if (leaf.enum_info != nullptr) {
    std::string values;
    for (const std::string& value : leaf.enum_info->values) values += (values.empty() ? "" : ", ") + Code(value);
    parts.push_back(values);
  }
  const auto range = [&](const std::optional<int64_t>& low, const std::optional<int64_t>& high,
                         const std::string& unit) {
    if (high && *high >= kMaxSafeInteger) {
      if (low && *low != 0) parts.push_back("at least " + std::to_string(*low) + unit);
    } else if (low && high && *low == *high) {
      parts.push_back(std::to_string(*low) + unit);
    } else if (low && high) {
      parts.push_back(std::to_string(*low) + " to " + std::to_string(*high) + unit);
    } else if (high) {
      parts.push_back("up to " + std::to_string(*high) + unit);
    }
  };
  range(leaf.minimum, leaf.maximum, "");
  range(leaf.min_length, leaf.max_length, " characters");
  range(info.min_items, info.max_items, " items");
  range({}, info.max_properties, " keys");
  if (!leaf.pattern_hint.empty()) parts.push_back(leaf.pattern_hint);
  if (info.list_type == ListType::kMap) parts.push_back("unique by " + info.list_map_keys.front());
  std::string out;
  for (const std::string& part : parts) out += (out.empty() ? "" : "; ") + part;
  return out;
}

std::string DefaultText(const FieldInfo& field) {
  if (field.required) return "required";
  if (field.default_value.IsNull()) return "";
  if (field.default_value.IsString()) return Code(field.default_value.AsString());
  return Code(field.default_value.Dump());
}

class KindPage {
 public:
  explicit KindPage(const KindInfo& kind) : kind_(kind) {}

  std::string Text() {
    out_ = "# " + kind_.kind + "\n\n" + kind_.doc + "\n\n";
    out_ += "`" + kind_.ApiVersion() + "`, " + (kind_.namespaced ? "namespaced" : "cluster-scoped") + ", resource `" +
            kind_.plural + "`";
    if (!kind_.short_names.empty()) out_ += ", short `" + kind_.short_names.front() + "`";
    out_ += ". Written by the generator from the field tables; see [the index](api.md) for conditions and reasons.\n";
    for (const FieldInfo& field : kind_.type->fields) {
      if (field.name != "metadata") Struct(*field.value.type, field.name);
    }
    Columns();
    return out_;
  }

 private:
  void Struct(const TypeInfo& type, const std::string& path) {
    out_ += "\n## " + path + "\n\n" + type.doc + "\n\n";
    out_ += "| field | type | default | limits | what it says |\n|---|---|---|---|---|\n";
    for (const FieldInfo& field : type.fields) {
      out_ += "| " + Code(field.name) + " | " + TypeName(field.value) + " | " + DefaultText(field) + " | " +
              Cell(Limits(field.value)) + " | " + Cell(field.doc) + (field.immutable ? " Immutable." : "") + " |\n";
    }
    Rules(type);
    for (const FieldInfo& field : type.fields) Nested(field.value, path + "." + field.name);
  }

  void Nested(const ValueInfo& info, const std::string& path) {
    if (info.kind == ValueKind::kList) return Nested(*info.items, path + "[]");
    if (info.kind == ValueKind::kMap) return Nested(*info.items, path + "{}");
    if (info.kind != ValueKind::kObject) return;
    // Described once a page; the same struct at another place points there.
    const auto [seen, fresh] = seen_.emplace(info.type, path);
    if (fresh) {
      Struct(*info.type, path);
    } else {
      out_ += "\n## " + path + "\n\nAs " + Code(seen->second) + ".\n";
    }
  }

  void Rules(const TypeInfo& type) {
    std::string rules;
    for (const Rule& rule : type.rules) rules += "- " + rule.message + ": " + Code(rule.cel) + "\n";
    for (const FieldInfo& field : type.fields) {
      for (const Rule& rule : field.value.rules) {
        rules += "- " + Code(field.name) + ": " + rule.message + ": " + Code(rule.cel) + "\n";
      }
    }
    if (!rules.empty()) out_ += "\nRules:\n" + rules;
  }

  void Columns() {
    out_ += "\n## Columns of kubectl get\n\n| column | path | shown | what it says |\n|---|---|---|---|\n";
    for (const PrinterColumn& column : kind_.columns) {
      out_ += "| " + column.name + " | " + Code(column.json_path) + " | " +
              (column.priority == 0 ? "always" : "-o wide") + " | " + Cell(column.description) + " |\n";
    }
  }

  const KindInfo& kind_;
  std::string out_;
  std::map<const TypeInfo*, std::string> seen_;
};

std::string IndexPage() {
  std::string out =
      "# API reference\n\nWritten by the generator from the field tables (`make generate`). Group `lockkeeper.dev`, "
      "version "
      "`v1alpha1`; every kind is namespaced, has a status subresource and is in the category `lockkeeper`.\n\n"
      "| kind | resource | short | what it is |\n|---|---|---|---|\n";
  for (const KindInfo& kind : Kinds()) {
    if (!kind.ours) continue;
    out += "| [" + kind.kind + "](" + Lower(kind.kind) + ".md) | " + kind.plural + " | " +
           (kind.short_names.empty() ? "" : kind.short_names.front()) + " | " + Cell(kind.doc) + " |\n";
  }
  out +=
      "\n## Condition types\n\nEvery condition carries `observedGeneration`; `lastTransitionTime` moves only when its "
      "status does.\n\n| type | on | what it says |\n|---|---|---|\n";
  for (const ConditionTypeInfo& type : ConditionTypes()) {
    out +=
        "| " + std::string(type.name) + " | " + std::string(type.kinds) + " | " + Cell(std::string(type.doc)) + " |\n";
  }
  out += "\n## Reasons\n\n| reason | what it says |\n|---|---|\n";
  for (const ReasonInfo& reason : Reasons()) {
    out += "| " + std::string(reason.name) + " | " + Cell(std::string(reason.doc)) + " |\n";
  }
  return out;
}

}  // namespace

std::vector<GeneratedFile> GeneratedFiles() {
  std::vector<GeneratedFile> files;
  for (const KindInfo& kind : Kinds()) {
    if (!kind.ours) continue;
    files.push_back({"crd/" + kind.group + "_" + kind.plural + ".yaml",
                     "# Written by crdgen from api/types; make generate rewrites it.\n---\n" + ToYaml(CrdOf(kind))});
    files.push_back({"docs/reference/" + Lower(kind.kind) + ".md", KindPage(kind).Text()});
  }
  files.push_back({"docs/reference/api.md", IndexPage()});
  return files;
}

std::vector<GeneratedFolder> GeneratedFolders() { return {{"crd", ".yaml"}, {"docs/reference", ".md"}}; }

std::vector<std::string> StaleFiles(const std::string& root) {
  std::set<std::string> expected;
  std::vector<std::string> stale;
  for (const GeneratedFile& file : GeneratedFiles()) {
    expected.insert(file.path);
    const Result<std::string> found = ReadFile(JoinPath(root, file.path));
    if (!found.ok() || *found != file.content) stale.push_back(file.path);
  }
  for (const GeneratedFolder& folder : GeneratedFolders()) {
    const Result<std::vector<std::string>> names = ListDir(JoinPath(root, folder.path));
    if (!names.ok()) continue;
    for (const std::string& name : *names) {
      const std::string path = folder.path + "/" + name;
      if (name.ends_with(folder.ending) && !expected.contains(path)) stale.push_back(path);
    }
  }
  std::sort(stale.begin(), stale.end());
  return stale;
}

}  // namespace lockkeeper
