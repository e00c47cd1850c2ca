// The OpenAPI v3 part of Catalog: what kubectl apply, create, edit, diff and explain need (crd-idioms 10.4).
#include <utility>

#include "api/server/catalog.h"

namespace lockkeeper::apiserver {
namespace {

// "dev.lockkeeper.v1alpha1.Upgrade", as kube-apiserver names the schemas of CustomResources.
std::string SchemaName(const KindInfo& kind) {
  std::string name;
  std::string rest = kind.group.empty() ? "core.api.k8s.io" : kind.group;
  while (!rest.empty()) {
    const size_t dot = rest.rfind('.');
    name += (dot == std::string::npos ? rest : rest.substr(dot + 1)) + ".";
    rest = dot == std::string::npos ? "" : rest.substr(0, dot);
  }
  return name + kind.version + "." + kind.kind;
}

Json GvkOf(const KindInfo& kind) {
  return Json::MakeObject({{"group", kind.group}, {"kind", kind.kind}, {"version", kind.version}});
}

Json QueryParameter(const char* name, const char* description) {
  return Json::MakeObject({{"name", name},
                           {"in", "query"},
                           {"description", description},
                           {"schema", Json::MakeObject({{"type", "string"}, {"uniqueItems", true}})}});
}

Json Operation(const KindInfo& kind, const char* action, const std::string& schema_ref) {
  Json answer = Json::MakeObject(
      {{"description", "OK"},
       {"content", Json::MakeObject({{"application/json",
                                      Json::MakeObject({{"schema", Json::MakeObject({{"$ref", schema_ref}})}})}})}});
  return Json::MakeObject(
      {{"x-kubernetes-action", action},
       {"x-kubernetes-group-version-kind", GvkOf(kind)},
       {"parameters",
        Json::MakeArray(
            {QueryParameter("dryRun", "All: check and answer, store nothing."),
             QueryParameter("fieldManager", "Accepted and not recorded."),
             QueryParameter("fieldValidation", "Strict, Warn (the default) or Ignore: what unknown fields do.")})},
       {"responses", Json::MakeObject({{"200", std::move(answer)}})}});
}

}  // namespace

Json Catalog::OpenApiDocument(std::string_view path) const {
  Json paths = Json::MakeObject();
  Json schemas = Json::MakeObject();
  for (const ApiResource& r : resources_) {
    const KindInfo& kind = *r.kind;
    const std::string prefix = (kind.group.empty() ? "api/" : "apis/") + kind.ApiVersion();
    if (prefix != path) continue;
    const std::string name = SchemaName(kind);
    Json schema = SchemaOf(kind);
    if (!schema.IsObject()) schema = Json::MakeObject({{"type", "object"}});
    if (!schema.Has("description") && !kind.doc.empty()) schema["description"] = kind.doc;
    schema["x-kubernetes-group-version-kind"] = Json::MakeArray({GvkOf(kind)});
    schemas[name] = std::move(schema);
    const std::string ref = "#/components/schemas/" + name;
    const std::string collection = "/" + prefix + (kind.namespaced ? "/namespaces/{namespace}/" : "/") + kind.plural;
    paths[collection] =
        Json::MakeObject({{"get", Operation(kind, "list", ref)}, {"post", Operation(kind, "post", ref)}});
    Json item = Json::MakeObject({{"get", Operation(kind, "get", ref)},
                                  {"put", Operation(kind, "put", ref)},
                                  {"patch", Operation(kind, "patch", ref)},
                                  {"delete", Operation(kind, "delete", ref)}});
    if (kind.has_status) {
      paths[collection + "/{name}/status"] = Json::MakeObject({{"get", Operation(kind, "get", ref)},
                                                               {"put", Operation(kind, "put", ref)},
                                                               {"patch", Operation(kind, "patch", ref)}});
    }
    paths[collection + "/{name}"] = std::move(item);
  }
  return Json::MakeObject({{"openapi", "3.0.0"},
                           {"info", Json::MakeObject({{"title", "lockkeeper"}, {"version", "v1"}})},
                           {"paths", std::move(paths)},
                           {"components", Json::MakeObject({{"schemas", std::move(schemas)}})}});
}

std::string Catalog::OpenApiHash(std::string_view path) const {
  for (const auto& [known, hash] : hashes_) {
    if (known == path) return hash;
  }
  return "";
}

Json Catalog::OpenApiIndex(const std::string& prefix) const {
  Json paths = Json::MakeObject();
  for (const auto& [path, hash] : hashes_) {
    paths[path] = Json::MakeObject({{"serverRelativeURL", prefix + "/openapi/v3/" + path + "?hash=" + hash}});
  }
  return Json::MakeObject({{"paths", std::move(paths)}});
}

}  // namespace lockkeeper::apiserver
