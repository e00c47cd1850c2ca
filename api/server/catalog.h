// Catalog: which kinds a server serves, how each behaves, and what discovery and OpenAPI say of them.
//
// Purpose:   look-up by group, version and plural; discovery documents in the old and the aggregated shape;
//            OpenAPI v3 index and documents, made when asked for.
// Ownership: borrows the static KindInfos. A Catalog outlives the handlers that use it.
// Threads:   immutable once built.
// Failure:   an unknown resource is nullptr.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/base/json.h"
#include "api/types/kind.h"

namespace lockkeeper::apiserver {

// A kind as this server serves it.
struct ApiResource {
  const KindInfo* kind = nullptr;
  std::string storage;            // Key::resource; two versions of one kind share it
  bool custom = false;            // behaves as a CustomResource: generation, no unconditional PUT, no strategic patch
  bool create_on_update = false;  // a PUT of an absent one creates it (Lease, Event)
  bool record_requester = false;  // the server notes who created it (Upgrade, Roll)
  // Between the stored form and this version's, for a kind that two groups show (Event).
  void (*from_storage)(Json& object) = nullptr;
  void (*to_storage)(Json& object) = nullptr;

  bool HasGeneration() const { return custom; }
};

inline constexpr std::string_view kRequestedByAnnotation = "lockkeeper.dev/requested-by";

class Catalog {
 public:
  // All kinds of Kinds() for which `serve` answers true.
  explicit Catalog(bool (*serve)(const KindInfo&));

  const std::vector<ApiResource>& resources() const { return resources_; }
  const ApiResource* Find(std::string_view group, std::string_view version, std::string_view plural) const;
  // Some version of the kind with this apiVersion and kind (an owner reference's).
  const ApiResource* FindKindOf(std::string_view api_version, std::string_view kind) const;
  const ApiResource* FindStorage(std::string_view storage) const;
  bool HasGroupVersion(std::string_view group, std::string_view version) const;
  // Namespaces, when served; namespaced objects then need theirs.
  const ApiResource* namespaces() const { return namespaces_; }

  // apidiscovery.k8s.io/v2 (or v2beta1) APIGroupDiscoveryList of /api (core) or /apis.
  Json AggregatedDiscovery(bool core, bool v2beta1) const;
  Json CoreVersions() const;                                               // /api
  Json Groups() const;                                                     // /apis
  Json Group(std::string_view group) const;                                // /apis/G; null when not served
  Json Resources(std::string_view group, std::string_view version) const;  // /apis/G/V; null when not served

  // {"paths": {"apis/G/V": {"serverRelativeURL": …?hash=H}}}
  Json OpenApiIndex(const std::string& prefix) const;
  // The document of "apis/G/V" or "api/v1". REQUIRES: OpenApiHash(path) is not empty.
  Json OpenApiDocument(std::string_view path) const;
  // "" when the path is not served.
  std::string OpenApiHash(std::string_view path) const;

 private:
  std::vector<std::pair<std::string, std::string>> GroupVersions() const;  // in order, without repeats

  std::vector<ApiResource> resources_;
  const ApiResource* namespaces_ = nullptr;
  // Hashes of the OpenAPI documents, by path: computed once, the documents themselves are not kept.
  std::vector<std::pair<std::string, std::string>> hashes_;
};

// The product's kinds and the built-in ones; not kcp's.
bool ServedByDefault(const KindInfo& kind);
// Namespaces go one by one.
bool HasDeleteCollection(const KindInfo& kind);

}  // namespace lockkeeper::apiserver
