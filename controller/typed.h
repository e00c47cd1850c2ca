// Typed: structs of api/types on top of Api.
//
// Purpose:   Get<Server>(api, {"ns", "kcp"}) and friends, for structs with kApiVersion, kKind, kPlural, metadata.
// Ownership, threads, failure: as Api; an object that does not decode is kInvalid and named.
#pragma once

#include <string>
#include <vector>

#include "api/types/codec.h"
#include "controller/api.h"

namespace lockkeeper {

template <typename T>
Resource ResourceOf(bool namespaced = true) {
  const std::string api_version(T::kApiVersion);
  const size_t slash = api_version.find('/');
  Resource out;
  if (slash != std::string::npos) out.group = api_version.substr(0, slash);
  out.version = slash != std::string::npos ? api_version.substr(slash + 1) : api_version;
  out.plural = std::string(T::kPlural);
  out.kind = std::string(T::kKind);
  out.namespaced = namespaced;
  return out;
}

template <typename T>
Result<T> Decode(const Json& object) {
  auto out = FromJson<T>(object);
  if (!out.ok()) {
    return out.status().Annotate("reading " + std::string(T::kKind) + " " + ObjectKey::Of(object).ToString());
  }
  return out;
}

template <typename T>
Result<T> DecodeAnswer(const Result<Json>& answer) {
  if (!answer.ok()) return answer.status();
  return Decode<T>(*answer);
}

template <typename T>
Result<T> Get(Api& api, const ObjectKey& key) {
  return DecodeAnswer<T>(api.Get(ResourceOf<T>(), key));
}

template <typename T>
Result<std::vector<T>> List(Api& api, const std::string& namespace_, const ListOptions& options = {}) {
  LK_ASSIGN_OR_RETURN(const ObjectList list, api.List(ResourceOf<T>(), namespace_, options));
  std::vector<T> out;
  for (const Json& item : list.items) {
    LK_ASSIGN_OR_RETURN(T object, Decode<T>(item));
    out.push_back(std::move(object));
  }
  return out;
}

template <typename T>
Result<T> Create(Api& api, const T& object) {
  return DecodeAnswer<T>(api.Create(ResourceOf<T>(), ToJson(object)));
}

template <typename T>
Result<T> Update(Api& api, const T& object) {
  return DecodeAnswer<T>(api.Update(ResourceOf<T>(), ToJson(object)));
}

template <typename T>
Result<T> UpdateStatus(Api& api, const T& object) {
  return DecodeAnswer<T>(api.UpdateStatus(ResourceOf<T>(), ToJson(object)));
}

template <typename T>
Status Delete(Api& api, const ObjectKey& key, const DeleteOptions& options = {}) {
  return api.Delete(ResourceOf<T>(), key, options).status();
}

}  // namespace lockkeeper
