// Object rules: what a create, an update and a delete do to an object before it is stored. Pure.
//
// Purpose:   identity, generation, finalizers, status against spec, defaults, validation, field validation, as
//            kube-apiserver does them (crd-idioms 5 to 9).
// Ownership: values. Threads: pure; the caller gives the time and the random parts.
// Failure:   an ApiError for the client.
#pragma once

#include <string>
#include <vector>

#include "api/base/json.h"
#include "api/base/time.h"
#include "api/server/api_error.h"
#include "api/server/catalog.h"
#include "api/server/store.h"

namespace lockkeeper::apiserver {

enum class FieldValidation { kIgnore, kWarn, kStrict };

// How a client wants its body read.
struct BodyOptions {
  FieldValidation validation = FieldValidation::kWarn;
  std::vector<std::string> duplicates;  // paths of members that stood twice in the body
};

struct CreateFacts {
  std::string ns;  // of the URL, "" for cluster-scoped
  std::string user;
  Time now{};
  std::string uid;
  std::string name_suffix;  // five characters behind generateName
};

// The object to store. Warnings for the client are appended.
Outcome<Json> PrepareCreate(const ApiResource& resource, Json body, const CreateFacts& facts,
                            const BodyOptions& options, std::vector<std::string>* warnings);

enum class WriteKind { kPut, kPatch };

struct UpdateFacts {
  WriteKind kind = WriteKind::kPut;
  bool status = false;   // the write is to /status
  std::string name, ns;  // of the URL
};

struct Updated {
  Json object;
  bool unchanged = false;  // equals the old one: nothing to write
  bool gone = false;       // the last finalizer of a deleted object went: remove it
};

// `old` and `body` carry metadata.resourceVersion; a differing one in the body is a Conflict.
Outcome<Updated> PrepareUpdate(const ApiResource& resource, const Json& old, Json body, const UpdateFacts& facts,
                               const BodyOptions& options, std::vector<std::string>* warnings);

struct DeleteOptions {
  std::string uid, resource_version;  // preconditions, "" for none
  std::string propagation;            // Background, Foreground, Orphan, "" for the default (Background)
};

struct Deleting {
  Json object;
  bool unchanged = false;  // it is being deleted already
  bool gone = false;       // no finalizer: remove it now
};

Outcome<Deleting> PrepareDelete(const ApiResource& resource, const Json& old, const DeleteOptions& options, Time now);

// The stored record as this resource's version shows it, defaults of later schema versions filled in.
Json FromRecord(const ApiResource& resource, const Record& record);
Json FromStored(const ApiResource& resource, const std::string& value, int64_t revision);
// The text to store, and what the store indexes.
std::string ToStored(const ApiResource& resource, Json object, PutOptions* options);

// Checks apiVersion and kind against the resource and fills them in when absent.
Outcome<Json> CheckTypeMeta(const ApiResource& resource, Json body);

// Of built-in kinds: what kube-apiserver does beyond the schema (builtin_rules.cc).
void DefaultBuiltin(const KindInfo& kind, Json& object, bool creating);
std::vector<FieldError> ValidateBuiltin(const KindInfo& kind, const Json& object, const Json* old);

}  // namespace lockkeeper::apiserver
