#include "tests/unit/types/verdicts.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "api/base/file.h"
#include "api/types/field_errors.h"
#include "api/types/type_info.h"

namespace lockkeeper {

namespace {

FieldReason ReasonNamed(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(FieldReason::kForbidden); ++i) {
    if (FieldReasonName(static_cast<FieldReason>(i)) == name) return static_cast<FieldReason>(i);
  }
  Die(__FILE__, __LINE__, "no such reason: " + std::string(name));
}

Result<std::vector<Json>> LoadTables(const std::string& folder) {
  std::vector<Json> tables;
  LK_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDir(folder));
  for (const std::string& name : names) {
    LK_ASSIGN_OR_RETURN(const std::string text, ReadFile(JoinPath(folder, name)));
    Result<Json> parsed = Json::Parse(text);
    if (!parsed.ok()) return parsed.status().Annotate("reading " + name);
    if (!parsed->IsArray()) {
      tables.push_back(std::move(*parsed));
      continue;
    }
    for (const Json& table : parsed->AsArray()) tables.push_back(table);
  }
  return tables;
}

const KindInfo* OurKind(const Json& table) {
  return FindKind("lockkeeper.dev", "v1alpha1", table.Get("kind").AsString());
}

// ---- objects made from the tables

Json Sample(const ValueInfo& info);

Json SampleStruct(const TypeInfo& type) {
  Json out = Json::MakeObject();
  for (const FieldInfo& field : type.fields) {
    if (field.required) out.Set(field.name, Sample(field.value));
  }
  return out;
}

std::string SampleText(const ValueInfo& info) {
  if (info.enum_info != nullptr) return info.enum_info->values.front();
  if (info.pattern.empty())
    return std::string(static_cast<size_t>(std::max<int64_t>(1, info.min_length.value_or(1))), 'a');
  for (const char* text : {"a", "/a", "http://a", "127.0.0.1:1", "a.service", "0 0 * * *", "1"}) {
    if (types_internal::MatchesPattern(info.pattern, text)) return text;
  }
  return std::string(64, 'a');
}

Json Sample(const ValueInfo& info) {
  switch (info.kind) {
    case ValueKind::kString: return Json(SampleText(info));
    case ValueKind::kTime: return Json("2026-11-30T12:00:00Z");
    case ValueKind::kInteger: return Json(info.minimum.value_or(0));
    case ValueKind::kNumber: return Json(1.5);
    case ValueKind::kBoolean: return Json(true);
    case ValueKind::kObject: return SampleStruct(*info.type);
    case ValueKind::kList: return Json::MakeArray({Sample(*info.items)});
    case ValueKind::kMap: return Json::MakeObject({{"key", Sample(*info.items)}});
    case ValueKind::kAny: break;
  }
  return Json(1);
}

// Another value that is as good.
Json Other(const ValueInfo& info, const Json& than) {
  switch (info.kind) {
    case ValueKind::kString:
      if (info.enum_info != nullptr) {
        for (const std::string& value : info.enum_info->values) {
          if (value != than.AsString()) return Json(value);
        }
        return Json();  // an enum of one
      }
      return Json(than.AsString() + "a");
    case ValueKind::kTime: return Json("2026-11-30T13:00:00Z");
    case ValueKind::kInteger: return Json(than.AsInt() + 1);
    case ValueKind::kNumber: return Json(than.AsDouble() + 1);
    case ValueKind::kBoolean: return Json(!than.AsBool());
    case ValueKind::kList: return than.empty() ? Sample(info) : Json::MakeArray();
    default: break;
  }
  Json changed = than;
  if (info.kind == ValueKind::kObject && changed.IsObject()) {
    for (const FieldInfo& field : info.type->fields) {
      const Json* old = changed.Find(field.name);
      Json other = Other(field.value, old != nullptr ? *old : Sample(field.value));
      if (other.IsNull()) continue;
      changed.Set(field.name, std::move(other));
      return changed;
    }
  }
  return Json();
}

class Generator {
 public:
  Generator(const KindInfo& kind, Json base) : kind_(kind), base_(std::move(base)) { ApplyDefaults(kind_, base_); }

  std::vector<GeneratedVerdict> Run() {
    for (const FieldInfo& field : kind_.type->fields) {
      if (field.name == "metadata") continue;
      status_ = field.name == "status";
      path_ = {field.name};
      Struct(*field.value.type, field.name);
    }
    return std::move(out_);
  }

 private:
  void Struct(const TypeInfo& type, const std::string& path) {
    for (const FieldInfo& field : type.fields) {
      const std::string below = path + "." + field.name;
      path_.push_back(field.name);
      if (field.required) Add("without " + below, below, Absent());
      Bad(field.value, below);
      if (field.immutable && path == "spec") Changed(field, below);
      path_.pop_back();
    }
  }

  void Bad(const ValueInfo& info, const std::string& path) {
    Add("a wrong type in " + path, path,
        info.kind == ValueKind::kString || info.kind == ValueKind::kTime ? Json(5) : Json("x"));
    if (info.enum_info != nullptr) {
      Add("an unknown value in " + path, path, Json("Nonsense"));
    } else if (info.min_length) {
      Add("too short a text in " + path, path, Json(""));
    }
    if (!info.pattern.empty()) {
      Add("a pattern missed by " + path, path,
          Json(std::string(static_cast<size_t>(info.min_length.value_or(1)), '~')));
    }
    if (info.max_length)
      Add("too long a text in " + path, path, Json(std::string(static_cast<size_t>(*info.max_length) + 1, 'a')));
    if (info.minimum) Add("too small a number in " + path, path, Json(*info.minimum - 1));
    if (info.maximum && *info.maximum < kMaxSafeInteger)
      Add("too large a number in " + path, path, Json(*info.maximum + 1));
    if (info.kind == ValueKind::kInteger) Add("a fraction in " + path, path, Json(1.5));
    if (info.kind == ValueKind::kTime) {
      Add("no time in " + path, path, Json("noon"));
      Add("yes or no in " + path, path, Json(true));
      Add("a number with a fraction in " + path, path, Json(1.5));
      Add("an object in " + path, path, Json::MakeObject());
    }
    if (info.kind == ValueKind::kObject) Struct(*info.type, path);
    if (info.kind == ValueKind::kList) List(info, path);
    if (info.kind == ValueKind::kMap) Map(info, path);
  }

  void List(const ValueInfo& info, const std::string& path) {
    if (info.min_items) Add("too few items in " + path, path, Json::MakeArray());
    if (info.max_items) {
      Json many = Json::MakeArray();
      for (int64_t i = 0; i <= *info.max_items; ++i) many.Push(Item(info, static_cast<size_t>(i)));
      Add("too many items in " + path, path, std::move(many));
    }
    if (info.list_type != ListType::kAtomic) {
      Add("an item twice in " + path, path + "[1]", Json::MakeArray({Sample(*info.items), Sample(*info.items)}));
    }
    Add("a null item in " + path, path + "[0]", Json::MakeArray({Json()}));
    path_.push_back("");  // the first item
    Bad(*info.items, path + "[0]");
    path_.pop_back();
  }

  void Map(const ValueInfo& info, const std::string& path) {
    if (info.max_properties) {
      Json many = Json::MakeObject();
      for (int64_t i = 0; i <= *info.max_properties; ++i) many.Set("k" + std::to_string(i), Sample(*info.items));
      Add("too many keys in " + path, path, std::move(many));
    }
    path_.push_back("key");
    Bad(*info.items, path + ".key");
    path_.pop_back();
  }

  // Distinct where the list wants it.
  static Json Item(const ValueInfo& list, size_t index) {
    Json item = Sample(*list.items);
    if (list.list_type == ListType::kMap) item.Set(list.list_map_keys.front(), "a" + std::to_string(index));
    if (list.list_type == ListType::kSet && list.items->enum_info == nullptr) item = Json("a" + std::to_string(index));
    return item;
  }

  void Changed(const FieldInfo& field, const std::string& path) {
    const Json* now = base_.Get("spec").Find(field.name);
    Json stored = base_, object = base_;
    const Json value = now != nullptr ? *now : Sample(field.value);
    stored["spec"].Set(field.name, value);
    const Json other = Other(field.value, value);
    if (!other.IsNull()) {
      object["spec"].Set(field.name, other);
      Push("a change of " + path, "spec", stored, object);
    }
    if (!field.required && field.default_value.IsNull()) {
      object = stored;
      object["spec"].Remove(field.name);
      Push("a removal of " + path, "spec", stored, object);
      Push("an addition of " + path, "spec", object, stored);
    }
  }

  static Json Absent() { return Json("\x01 absent"); }

  // The base with `value` at path_; what is missing on the way is made.
  void Add(const std::string& name, const std::string& about, const Json& value) {
    Json object = base_;
    Json* at = &object;
    const TypeInfo* type = kind_.type;
    const ValueInfo* info = nullptr;
    for (size_t i = 0; i + 1 < path_.size(); ++i) {
      at = Step(at, path_[i], &type, &info);
    }
    const std::string& last = path_.back();
    if (value == Absent()) {
      at->Remove(last);
    } else if (last.empty()) {
      *at = Json::MakeArray({value});
    } else {
      at->Set(last, value);
    }
    Push(name, about, status_ ? base_ : Json(), object);
  }

  static Json* Step(Json* at, const std::string& name, const TypeInfo** type, const ValueInfo** info) {
    if (name.empty()) {  // the first item of a list
      *info = (*info)->items.get();
      if (at->empty()) *at = Json::MakeArray({Sample(**info)});
      *type = (*info)->type;
      return &at->MutableArray().front();
    }
    if (*info != nullptr && (*info)->kind == ValueKind::kMap) {
      *info = (*info)->items.get();
    } else {
      *info = &(*type)->Find(name)->value;
    }
    *type = (*info)->type;
    if (!at->Has(name)) at->Set(name, Sample(**info));
    return at->Find(name);
  }

  void Push(const std::string& name, const std::string& about, Json stored, Json object) {
    GeneratedVerdict generated;
    generated.verdict.kind = &kind_;
    generated.verdict.name = name;
    generated.verdict.stored = std::move(stored);
    generated.verdict.object = std::move(object);
    generated.verdict.status = status_;
    if (!generated.verdict.stored.IsNull()) {
      Verdict create = generated.verdict;
      create.object = std::exchange(create.stored, Json());
      if (!Judge(create).empty()) return;  // such an object cannot be stored, so it cannot change
    }
    generated.verdict.errors = Judge(generated.verdict);
    generated.about = about;
    out_.push_back(std::move(generated));
  }

  const KindInfo& kind_;
  Json base_;
  bool status_ = false;
  std::vector<std::string> path_;
  std::vector<GeneratedVerdict> out_;
};

}  // namespace

void MergePatch(Json& target, const Json& patch) {
  if (!patch.IsObject()) {
    target = patch;
    return;
  }
  if (!target.IsObject()) target = Json::MakeObject();
  for (const auto& [key, value] : patch.AsObject()) {
    if (value.IsNull()) {
      target.Remove(key);
    } else {
      MergePatch(target[key], value);
    }
  }
}

Result<std::vector<Verdict>> LoadVerdicts(const std::string& folder) {
  LK_ASSIGN_OR_RETURN(const std::vector<Json> tables, LoadTables(folder));
  std::vector<Verdict> verdicts;
  for (const Json& table : tables) {
    for (const Json& row : table.Get("cases").AsArray()) {
      Verdict verdict;
      verdict.kind = OurKind(table);
      if (verdict.kind == nullptr) return Status(Code::kInvalid, "no such kind: " + table.Get("kind").AsString());
      verdict.name = row.Get("name").AsString();
      verdict.status = row.Get("status").AsBool();
      Json before = table.Get("base");
      MergePatch(before, row.Has("before") ? row.Get("before") : Json::MakeObject());
      verdict.object = before;
      if (row.Has("change")) MergePatch(verdict.object, row.Get("change"));
      if (verdict.status || row.Get("update").AsBool()) verdict.stored = std::move(before);
      if (!row.Has("errors")) return Status(Code::kInvalid, "no errors given for: " + verdict.name);
      for (const Json& error : row.Get("errors").AsArray()) {
        FieldError expected;
        expected.reason = ReasonNamed(error.Get("reason").AsString());
        expected.field = error.Get("field").AsString();
        expected.message = error.Get("message").AsString();
        verdict.errors.push_back(std::move(expected));
      }
      verdicts.push_back(std::move(verdict));
    }
  }
  return verdicts;
}

Result<std::vector<std::pair<const KindInfo*, Json>>> LoadBases(const std::string& folder) {
  LK_ASSIGN_OR_RETURN(const std::vector<Json> tables, LoadTables(folder));
  std::vector<std::pair<const KindInfo*, Json>> bases;
  for (const Json& table : tables) {
    const KindInfo* kind = OurKind(table);
    if (kind == nullptr) return Status(Code::kInvalid, "no such kind: " + table.Get("kind").AsString());
    bases.emplace_back(kind, table.Get("base"));
  }
  return bases;
}

std::vector<GeneratedVerdict> GenerateVerdicts(const KindInfo& kind, const Json& base) {
  return Generator(kind, base).Run();
}

Verdict RandomWrite(const KindInfo& kind, const Json& base, RandomObject* random, int index) {
  Verdict verdict;
  verdict.kind = &kind;
  verdict.name = "random write " + std::to_string(index);
  verdict.object = base;
  const Json made = random->Make(*kind.type);
  int count = 0;
  for (const auto& [name, value] : made.Get("spec").AsObject()) {
    if ((++count + index) % 3 == 0) verdict.object["spec"].Set(name, value);
  }
  if (index % 2 == 0) verdict.stored = base;
  verdict.errors = Judge(verdict);
  return verdict;
}

std::vector<FieldError> Judge(const Verdict& verdict) {
  Json object = verdict.object, stored = verdict.stored;
  Prune(*verdict.kind, object, nullptr);
  ApplyDefaults(*verdict.kind, object);
  if (stored.IsNull()) return Validate(*verdict.kind, object, nullptr, false);
  ApplyDefaults(*verdict.kind, stored);
  return Validate(*verdict.kind, object, &stored, verdict.status);
}

void SortErrors(std::vector<FieldError>* errors) {
  std::sort(errors->begin(), errors->end(), [](const FieldError& a, const FieldError& b) {
    return std::tie(a.field, a.reason, a.message) < std::tie(b.field, b.reason, b.message);
  });
}

}  // namespace lockkeeper
