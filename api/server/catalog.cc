#include "api/server/catalog.h"

#include <algorithm>
#include <utility>

#include "api/base/file.h"

namespace lockkeeper::apiserver {
namespace {

// SubjectAccessReview-like resources that have no kind of ours: create only, answered by the handler.
struct Review {
  const char* group;
  const char* version;
  const char* plural;
  const char* singular;
  const char* kind;
};
constexpr Review kReviews[] = {
    {"authentication.k8s.io", "v1", "selfsubjectreviews", "selfsubjectreview", "SelfSubjectReview"},
    {"authorization.k8s.io", "v1", "selfsubjectaccessreviews", "selfsubjectaccessreview", "SelfSubjectAccessReview"},
};

Json Verbs(const KindInfo& kind) {
  Json verbs = Json::MakeArray();
  for (const char* verb : {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}) {
    if (verb != std::string_view("deletecollection") || HasDeleteCollection(kind)) verbs.Push(verb);
  }
  return verbs;
}

Json Strings(const std::vector<std::string>& list) {
  Json json = Json::MakeArray();
  for (const std::string& item : list) json.Push(item);
  return json;
}

std::string GroupVersionText(std::string_view group, std::string_view version) {
  return group.empty() ? std::string(version) : std::string(group) + "/" + std::string(version);
}

Json Gvk(const std::string& group, const std::string& version, const std::string& kind) {
  return Json::MakeObject({{"group", group}, {"version", version}, {"kind", kind}});
}

std::string Singular(const KindInfo& kind) {
  if (!kind.singular.empty()) return kind.singular;
  std::string text = kind.kind;
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// Events have one storage and two groups that name their members differently.
constexpr std::pair<const char*, const char*> kEventNames[] = {
    {"involvedObject", "regarding"},
    {"message", "note"},
    {"source", "deprecatedSource"},
    {"firstTimestamp", "deprecatedFirstTimestamp"},
    {"lastTimestamp", "deprecatedLastTimestamp"},
    {"count", "deprecatedCount"},
    {"reportingComponent", "reportingController"},
};

void Rename(Json& object, const char* from, const char* to) {
  for (Json::Member& member : object.MutableObject()) {
    if (member.first == from) {
      member.first = to;
      return;
    }
  }
}

void EventFromStorage(Json& object) {
  for (const auto& [core, later] : kEventNames) Rename(object, core, later);
  object["apiVersion"] = "events.k8s.io/v1";
}

void EventToStorage(Json& object) {
  for (const auto& [core, later] : kEventNames) Rename(object, later, core);
  object["apiVersion"] = "v1";
}

}  // namespace

bool HasDeleteCollection(const KindInfo& kind) { return !(kind.group.empty() && kind.kind == "Namespace"); }

bool ServedByDefault(const KindInfo& kind) { return kind.group.find("kcp.io") == std::string::npos; }

Catalog::Catalog(bool (*serve)(const KindInfo&)) {
  for (const KindInfo& kind : Kinds()) {
    if (!serve(kind)) continue;
    ApiResource r;
    r.kind = &kind;
    r.storage = kind.group + "/" + kind.plural;
    r.custom = kind.ours || kind.group.find("kcp.io") != std::string::npos;
    r.create_on_update = kind.kind == "Lease" || kind.kind == "Event";
    r.record_requester = kind.ours && (kind.kind == "Upgrade" || kind.kind == "Roll");
    if (kind.group == "events.k8s.io") {
      r.storage = "/events";
      r.from_storage = EventFromStorage;
      r.to_storage = EventToStorage;
    }
    resources_.push_back(std::move(r));
  }
  namespaces_ = Find("", "v1", "namespaces");
  for (const auto& [group, version] : GroupVersions()) {
    const std::string path = group.empty() ? "api/" + version : "apis/" + GroupVersionText(group, version);
    hashes_.emplace_back(path, Sha256Hex(OpenApiDocument(path).DumpCanonical()).substr(0, 32));
  }
}

const ApiResource* Catalog::Find(std::string_view group, std::string_view version, std::string_view plural) const {
  for (const ApiResource& r : resources_) {
    if (r.kind->group == group && r.kind->version == version && r.kind->plural == plural) return &r;
  }
  return nullptr;
}

const ApiResource* Catalog::FindKindOf(std::string_view api_version, std::string_view kind) const {
  const size_t slash = api_version.find('/');
  const std::string_view group = slash == std::string_view::npos ? std::string_view() : api_version.substr(0, slash);
  for (const ApiResource& r : resources_) {
    if (r.kind->group == group && r.kind->kind == kind) return &r;
  }
  return nullptr;
}

const ApiResource* Catalog::FindStorage(std::string_view storage) const {
  for (const ApiResource& r : resources_) {
    if (r.storage == storage && r.to_storage == nullptr) return &r;
  }
  return nullptr;
}

std::vector<std::pair<std::string, std::string>> Catalog::GroupVersions() const {
  std::vector<std::pair<std::string, std::string>> list;
  auto add = [&](const std::string& group, const std::string& version) {
    std::pair<std::string, std::string> gv(group, version);
    if (std::find(list.begin(), list.end(), gv) == list.end()) list.push_back(std::move(gv));
  };
  for (const ApiResource& r : resources_) add(r.kind->group, r.kind->version);
  for (const Review& review : kReviews) add(review.group, review.version);
  return list;
}

bool Catalog::HasGroupVersion(std::string_view group, std::string_view version) const {
  const auto list = GroupVersions();
  return std::any_of(list.begin(), list.end(),
                     [&](const auto& gv) { return gv.first == group && gv.second == version; });
}

Json Catalog::AggregatedDiscovery(bool core, bool v2beta1) const {
  Json items = Json::MakeArray();
  for (const auto& [group, version] : GroupVersions()) {
    if (group.empty() != core) continue;
    Json list = Json::MakeArray();
    for (const ApiResource& r : resources_) {
      const KindInfo& kind = *r.kind;
      if (kind.group != group || kind.version != version) continue;
      Json entry = Json::MakeObject({{"resource", kind.plural},
                                     {"responseKind", Gvk(kind.group, kind.version, kind.kind)},
                                     {"scope", kind.namespaced ? "Namespaced" : "Cluster"},
                                     {"singularResource", Singular(kind)},
                                     {"verbs", Verbs(kind)}});
      if (!kind.short_names.empty()) entry["shortNames"] = Strings(kind.short_names);
      if (!kind.categories.empty()) entry["categories"] = Strings(kind.categories);
      if (kind.has_status) {
        entry["subresources"] =
            Json::MakeArray({Json::MakeObject({{"subresource", "status"},
                                               {"responseKind", Gvk(kind.group, kind.version, kind.kind)},
                                               {"verbs", Strings({"get", "patch", "update"})}})});
      }
      list.Push(std::move(entry));
    }
    for (const Review& review : kReviews) {
      if (review.group != group || review.version != version) continue;
      list.Push(Json::MakeObject({{"resource", review.plural},
                                  {"responseKind", Gvk(review.group, review.version, review.kind)},
                                  {"scope", "Cluster"},
                                  {"singularResource", review.singular},
                                  {"verbs", Strings({"create"})}}));
    }
    items.Push(Json::MakeObject(
        {{"metadata", core ? Json::MakeObject() : Json::MakeObject({{"name", group}})},
         {"versions", Json::MakeArray({Json::MakeObject(
                          {{"version", version}, {"resources", std::move(list)}, {"freshness", "Current"}})})}}));
  }
  return Json::MakeObject({{"kind", "APIGroupDiscoveryList"},
                           {"apiVersion", v2beta1 ? "apidiscovery.k8s.io/v2beta1" : "apidiscovery.k8s.io/v2"},
                           {"metadata", Json::MakeObject()},
                           {"items", std::move(items)}});
}

Json Catalog::CoreVersions() const {
  return Json::MakeObject({{"kind", "APIVersions"},
                           {"versions", HasGroupVersion("", "v1") ? Json::MakeArray({"v1"}) : Json::MakeArray()},
                           {"serverAddressByClientCIDRs", Json::MakeArray()}});
}

Json Catalog::Group(std::string_view group) const {
  Json versions = Json::MakeArray();
  for (const auto& [g, version] : GroupVersions()) {
    if (g != group || group.empty()) continue;
    versions.Push(Json::MakeObject({{"groupVersion", GroupVersionText(g, version)}, {"version", version}}));
  }
  if (versions.empty()) return nullptr;
  const Json preferred = versions.AsArray().front();
  return Json::MakeObject({{"kind", "APIGroup"},
                           {"apiVersion", "v1"},
                           {"name", group},
                           {"versions", std::move(versions)},
                           {"preferredVersion", preferred}});
}

Json Catalog::Groups() const {
  Json groups = Json::MakeArray();
  std::string last;
  for (const auto& [group, version] : GroupVersions()) {
    if (group.empty()) continue;
    Json entry = Group(group);
    entry.Remove("kind");
    entry.Remove("apiVersion");
    const Json::Array& sofar = groups.AsArray();
    const bool known =
        std::any_of(sofar.begin(), sofar.end(), [&](const Json& g) { return g.Get("name") == entry.Get("name"); });
    if (!known) groups.Push(std::move(entry));
  }
  return Json::MakeObject({{"kind", "APIGroupList"}, {"apiVersion", "v1"}, {"groups", std::move(groups)}});
}

Json Catalog::Resources(std::string_view group, std::string_view version) const {
  if (!HasGroupVersion(group, version)) return nullptr;
  Json list = Json::MakeArray();
  for (const ApiResource& r : resources_) {
    const KindInfo& kind = *r.kind;
    if (kind.group != group || kind.version != version) continue;
    Json entry = Json::MakeObject({{"name", kind.plural},
                                   {"singularName", Singular(kind)},
                                   {"namespaced", kind.namespaced},
                                   {"kind", kind.kind},
                                   {"verbs", Verbs(kind)}});
    if (!kind.short_names.empty()) entry["shortNames"] = Strings(kind.short_names);
    if (!kind.categories.empty()) entry["categories"] = Strings(kind.categories);
    list.Push(std::move(entry));
    if (kind.has_status) {
      list.Push(Json::MakeObject({{"name", kind.plural + "/status"},
                                  {"singularName", ""},
                                  {"namespaced", kind.namespaced},
                                  {"kind", kind.kind},
                                  {"verbs", Strings({"get", "patch", "update"})}}));
    }
  }
  for (const Review& review : kReviews) {
    if (review.group != group || review.version != version) continue;
    list.Push(Json::MakeObject({{"name", review.plural},
                                {"singularName", review.singular},
                                {"namespaced", false},
                                {"kind", review.kind},
                                {"verbs", Strings({"create"})}}));
  }
  return Json::MakeObject({{"kind", "APIResourceList"},
                           {"apiVersion", "v1"},
                           {"groupVersion", GroupVersionText(group, version)},
                           {"resources", std::move(list)}});
}

}  // namespace lockkeeper::apiserver
