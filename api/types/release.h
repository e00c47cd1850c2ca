// Release: one build wanted on one host: resolved, fetched, verified, unpacked.
// Ownership: values. Threads: values. Failure: none here.
#pragma once

#include "api/types/server_parts.h"

namespace lockkeeper {

struct ReleaseSpec {
  std::optional<LocalRef> server_ref;  // exactly one of server_ref and source
  std::optional<BuildSource> source;
  std::string host;
  std::string version;
  std::string artifact;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const ReleaseSpec&) const = default;
};

struct ReleaseFile {
  std::string path;
  std::string sha256;
  std::optional<int64_t> size;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const ReleaseFile&) const = default;
};

enum class VerifiedBy { kNothing, kChecksumFile, kChecksumValue, kSignature };
LK_TYPES_ENUM(VerifiedBy);

struct ReleaseStatus {
  int64_t observed_generation = -1;
  std::optional<ResolvedBuild> resolved;
  std::string sha256;  // of the main executable
  std::optional<int64_t> size;
  std::string path;        // the folder it was unpacked to
  std::string executable;  // within path
  std::optional<Progress> progress;
  std::vector<ReleaseFile> files;
  std::optional<VerifiedBy> verified_by;
  std::vector<Condition> conditions;
  std::vector<NextAction> next_actions;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const ReleaseStatus&) const = default;
};

struct Release {
  static constexpr std::string_view kApiVersion = lockkeeper::kApiVersion;
  static constexpr std::string_view kKind = "Release";
  static constexpr std::string_view kPlural = "releases";

  ObjectMeta metadata;
  ReleaseSpec spec;
  ReleaseStatus status;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const Release&) const = default;
};

}  // namespace lockkeeper
