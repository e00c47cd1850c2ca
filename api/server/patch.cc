#include "api/server/patch.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lockkeeper::apiserver {
namespace {

constexpr size_t kMaxOperations = 10000;

// "/a~1b/0" -> {"a/b", "0"}; nullopt for a pointer that does not begin with a slash.
std::optional<std::vector<std::string>> ParsePointer(const std::string& text) {
  std::vector<std::string> parts;
  if (text.empty()) return parts;
  if (text[0] != '/') return std::nullopt;
  std::string part;
  for (size_t i = 1; i <= text.size(); ++i) {
    if (i == text.size() || text[i] == '/') {
      parts.push_back(std::move(part));
      part.clear();
    } else if (text[i] == '~' && i + 1 < text.size() && (text[i + 1] == '0' || text[i + 1] == '1')) {
      part += text[++i] == '0' ? '~' : '/';
    } else {
      part += text[i];
    }
  }
  return parts;
}

std::optional<size_t> ParseIndex(const std::string& text) {
  if (text.empty() || text.size() > 9 || (text.size() > 1 && text[0] == '0')) return std::nullopt;
  size_t value = 0;
  for (char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + static_cast<size_t>(c - '0');
  }
  return value;
}

// The value that `parts` (without its last `drop`) leads to, or nullptr.
Json* Resolve(Json& root, const std::vector<std::string>& parts, size_t drop) {
  Json* at = &root;
  for (size_t i = 0; i + drop < parts.size(); ++i) {
    if (at->IsArray()) {
      const std::optional<size_t> index = ParseIndex(parts[i]);
      if (!index || *index >= at->size()) return nullptr;
      at = &at->MutableArray()[*index];
    } else {
      at = at->Find(parts[i]);
      if (at == nullptr) return nullptr;
    }
  }
  return at;
}

Status Missing(const std::string& op, const std::string& path) {
  return {Code::kPrecondition, op + " operation does not apply: path " + path + " is missing"};
}

Status Add(Json& root, const std::string& op, const std::string& path, const std::vector<std::string>& parts,
           Json value) {
  if (parts.empty()) {
    root = std::move(value);
    return Status::Ok();
  }
  Json* parent = Resolve(root, parts, 1);
  if (parent == nullptr) return Missing(op, path);
  if (parent->IsArray()) {
    Json::Array& items = parent->MutableArray();
    if (parts.back() == "-") {
      items.push_back(std::move(value));
      return Status::Ok();
    }
    const std::optional<size_t> index = ParseIndex(parts.back());
    if (!index || *index > items.size()) return Missing(op, path);
    items.insert(items.begin() + static_cast<long>(*index), std::move(value));
    return Status::Ok();
  }
  if (!parent->IsObject()) return Missing(op, path);
  parent->Set(parts.back(), std::move(value));
  return Status::Ok();
}

Status Remove(Json& root, const std::string& op, const std::string& path, const std::vector<std::string>& parts,
              Json* taken) {
  Json* parent = parts.empty() ? nullptr : Resolve(root, parts, 1);
  if (parent == nullptr) return Missing(op, path);
  if (parent->IsArray()) {
    Json::Array& items = parent->MutableArray();
    const std::optional<size_t> index = ParseIndex(parts.back());
    if (!index || *index >= items.size()) return Missing(op, path);
    if (taken != nullptr) *taken = std::move(items[*index]);
    items.erase(items.begin() + static_cast<long>(*index));
    return Status::Ok();
  }
  Json* member = parent->Find(parts.back());
  if (member == nullptr) return Missing(op, path);
  if (taken != nullptr) *taken = std::move(*member);
  parent->Remove(parts.back());
  return Status::Ok();
}

Status Replace(Json& root, const std::string& op, const std::string& path, const std::vector<std::string>& parts,
               Json value) {
  if (parts.empty()) {
    root = std::move(value);
    return Status::Ok();
  }
  Json* parent = Resolve(root, parts, 1);
  if (parent == nullptr) return Missing(op, path);
  if (parent->IsArray()) {
    const std::optional<size_t> index = ParseIndex(parts.back());
    if (!index || *index >= parent->size()) return Missing(op, path);
    parent->MutableArray()[*index] = std::move(value);
    return Status::Ok();
  }
  if (!parent->IsObject()) return Missing(op, path);
  // An absent member passes, as with the JSON-patch library of kube-apiserver (crd-idioms 6).
  parent->Set(parts.back(), std::move(value));
  return Status::Ok();
}

Status ApplyOperation(Json& root, const Json& operation) {
  const std::string& op = operation.Get("op").AsString();
  const std::string& path = operation.Get("path").AsString();
  const std::optional<std::vector<std::string>> parts = ParsePointer(path);
  if (!operation.Get("path").IsString() || !parts) return {Code::kInvalid, "a JSON patch operation has no valid path"};
  if (op == "remove") return Remove(root, op, path, *parts, nullptr);
  if (op == "add" || op == "replace" || op == "test") {
    const Json* value = operation.Find("value");
    if (value == nullptr && op != "test") return {Code::kInvalid, op + " operation of path " + path + " has no value"};
    if (op == "add") return Add(root, op, path, *parts, *value);
    if (op == "replace") return Replace(root, op, path, *parts, *value);
    const Json* found = Resolve(root, *parts, 0);
    const Json null;
    // An absent member equals null, as with that library.
    if ((found == nullptr ? null : *found) == (value == nullptr ? null : *value)) return Status::Ok();
    return {Code::kPrecondition, "test operation does not hold: path " + path};
  }
  if (op == "move" || op == "copy") {
    const std::string& from = operation.Get("from").AsString();
    const std::optional<std::vector<std::string>> source = ParsePointer(from);
    if (!operation.Get("from").IsString() || !source) return {Code::kInvalid, op + " operation has no valid from"};
    Json value;
    if (op == "move") {
      if (path.rfind(from + "/", 0) == 0) return {Code::kInvalid, "move operation into a part of itself: " + path};
      LK_RETURN_IF_ERROR(Remove(root, op, from, *source, &value));
    } else {
      const Json* found = Resolve(root, *source, 0);
      if (found == nullptr) return Missing(op, from);
      value = *found;
    }
    return Add(root, op, path, *parts, std::move(value));
  }
  return {Code::kInvalid, "unknown JSON patch operation \"" + op + "\""};
}

bool IsDirective(std::string_view key) { return !key.empty() && key[0] == '$'; }

void MergeOwnerReferences(Json& target, const Json& patch) {
  if (!target.IsArray()) target = Json::MakeArray();
  Json::Array& items = target.MutableArray();
  for (const Json& item : patch.AsArray()) {
    const std::string& uid = item.Get("uid").AsString();
    auto same = std::find_if(items.begin(), items.end(), [&](const Json& i) { return i.Get("uid").AsString() == uid; });
    if (item.Get("$patch").AsString() == "delete") {
      if (same != items.end()) items.erase(same);
    } else if (same != items.end()) {
      ApplyMergePatch(*same, item);
    } else {
      items.push_back(item);
    }
  }
}

void MergeSet(Json& target, const Json& patch) {
  if (!target.IsArray()) target = Json::MakeArray();
  Json::Array& items = target.MutableArray();
  for (const Json& item : patch.AsArray()) {
    if (std::find(items.begin(), items.end(), item) == items.end()) items.push_back(item);
  }
}

void DeleteFromSet(Json& target, const Json& values) {
  if (!target.IsArray()) return;
  Json::Array& items = target.MutableArray();
  items.erase(std::remove_if(items.begin(), items.end(),
                             [&](const Json& item) {
                               const Json::Array& gone = values.AsArray();
                               return std::find(gone.begin(), gone.end(), item) != gone.end();
                             }),
              items.end());
}

Status MergeStrategic(Json& target, const Json& patch, const std::string& path) {
  const std::string& directive = patch.Get("$patch").AsString();
  if (!directive.empty() && directive != "merge" && directive != "replace" && directive != "delete") {
    return {Code::kInvalid, "unknown $patch directive \"" + directive + "\""};
  }
  if (directive == "delete") {
    target = Json::MakeObject();
    return Status::Ok();
  }
  if (directive == "replace" || !target.IsObject()) target = Json::MakeObject();
  if (const Json* retain = patch.Find("$retainKeys")) {
    Json::Object& members = target.MutableObject();
    members.erase(std::remove_if(members.begin(), members.end(),
                                 [&](const Json::Member& m) {
                                   const Json::Array& keys = retain->AsArray();
                                   return std::find(keys.begin(), keys.end(), Json(m.first)) == keys.end();
                                 }),
                  members.end());
  }
  constexpr std::string_view kDeleteFrom = "$deleteFromPrimitiveList/";
  for (const Json::Member& member : patch.AsObject()) {
    if (member.first.rfind(kDeleteFrom, 0) == 0) {
      if (Json* list = target.Find(member.first.substr(kDeleteFrom.size()))) DeleteFromSet(*list, member.second);
    }
  }
  for (const auto& [key, value] : patch.AsObject()) {
    if (IsDirective(key)) continue;
    if (value.IsNull()) {
      target.Remove(key);
    } else if (value.IsObject()) {
      Json& child = target[key];
      LK_RETURN_IF_ERROR(MergeStrategic(child, value, path + "." + key));
    } else if (path == ".metadata" && key == "ownerReferences" && value.IsArray()) {
      MergeOwnerReferences(target[key], value);
    } else if (path == ".metadata" && key == "finalizers" && value.IsArray()) {
      MergeSet(target[key], value);
    } else {
      target.Set(key, value);
    }
  }
  return Status::Ok();
}

}  // namespace

void ApplyMergePatch(Json& target, const Json& patch) {
  if (!patch.IsObject()) {
    target = patch;
    return;
  }
  if (!target.IsObject()) target = Json::MakeObject();
  for (const auto& [key, value] : patch.AsObject()) {
    if (value.IsNull()) {
      target.Remove(key);
    } else {
      ApplyMergePatch(target[key], value);
    }
  }
}

Status ApplyJsonPatch(Json& target, const Json& patch) {
  if (!patch.IsArray()) return {Code::kInvalid, "a JSON patch is a list of operations"};
  if (patch.size() > kMaxOperations) {
    return {Code::kExhausted, "The allowed maximum operations in a JSON patch is " + std::to_string(kMaxOperations) +
                                  ", got " + std::to_string(patch.size())};
  }
  Json changed = target;
  for (const Json& operation : patch.AsArray()) LK_RETURN_IF_ERROR(ApplyOperation(changed, operation));
  target = std::move(changed);
  return Status::Ok();
}

Status ApplyStrategicMergePatch(Json& target, const Json& patch) {
  if (!patch.IsObject()) return {Code::kInvalid, "a strategic merge patch is an object"};
  Json changed = target;
  LK_RETURN_IF_ERROR(MergeStrategic(changed, patch, ""));
  target = std::move(changed);
  return Status::Ok();
}

}  // namespace lockkeeper::apiserver
