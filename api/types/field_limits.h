// Limits and patterns that several field tables share, and the conditions field of every status.
// Ownership: constants. Threads: thread-safe. Failure: none.
#pragma once

#include "api/types/type_builder.h"

namespace lockkeeper::types_internal {

inline constexpr int64_t kNameLength = 253;   // DNS-1123 subdomain
inline constexpr int64_t kPathLength = 4096;  // PATH_MAX
inline constexpr int64_t kUrlLength = 2048;
inline constexpr int64_t kTextLength = 4096;  // messages and errors
inline constexpr int64_t kVersionLength = 128;
inline constexpr int64_t kDaySeconds = 86400;
inline constexpr int64_t kMaxPid = 1 << 22;  // the kernel's PID_MAX_LIMIT

inline constexpr char kNamePattern[] = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
inline constexpr char kNameHint[] = "a lower-case RFC 1123 subdomain";
inline constexpr char kShortNamePattern[] = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";
inline constexpr char kShortNameHint[] = "a lower-case RFC 1123 label";
inline constexpr char kVersionPattern[] = "^[A-Za-z0-9][A-Za-z0-9._+-]*$";
inline constexpr char kVersionHint[] = "letters, digits and . _ + -, no path";
inline constexpr char kAbsolutePattern[] = "^/";
inline constexpr char kAbsoluteHint[] = "an absolute path";
inline constexpr char kSha256Pattern[] = "^[0-9a-f]{64}$";
inline constexpr char kSha256Hint[] = "a SHA-256, 64 lower-case hexadecimal digits";
// {data}, {dataDir} and {shared} are filled in by the agent.
inline constexpr char kHostPathPattern[] = "^(/|\\{(data|dataDir|shared)\\}(/|$))";
inline constexpr char kHostPathHint[] = "an absolute path, or one below {data}, {dataDir} or {shared}";
inline constexpr char kUrlPattern[] = "^(https?://|file:///|(file://)?\\{(data|dataDir|shared)\\}/|/)";
inline constexpr char kUrlHint[] = "an https, http or file URL, or a path on the host";
inline constexpr char kHttpPattern[] = "^https?://";
inline constexpr char kHttpHint[] = "an https or http URL";

// A version: pattern, bound and the rule that no two dots follow each other.
inline FieldRef Version(FieldRef field) {
  field.Length(1, kVersionLength)
      .Pattern(kVersionPattern, kVersionHint)
      .Check("!self.contains('..')", "a version must not contain '..'",
             [](const Json& self, const Json*) { return self.AsString().find("..") == std::string::npos; });
  return field;
}

inline FieldRef Name(FieldRef field) {
  field.Length(1, kNameLength).Pattern(kNamePattern, kNameHint);
  return field;
}

inline FieldRef HostPath(FieldRef field) {
  field.Length(1, kPathLength).Pattern(kHostPathPattern, kHostPathHint);
  return field;
}

inline FieldRef Count(FieldRef field) {
  field.Range(0, kMaxSafeInteger);
  return field;
}

template <typename Status>
void ObservedGeneration(TypeBuilder<Status>& b) {
  b.Field(&Status::observed_generation, "observedGeneration",
          "The metadata.generation that this status speaks of; -1 until it was looked at once.")
      .Range(-1, kMaxSafeInteger)
      .Default(-1);
}

template <typename Status>
void Conditions(TypeBuilder<Status>& b) {
  b.Field(&Status::conditions, "conditions",
          "What holds now, one entry a type. Ready on every kind; Reconciling and Stalled only while True, never both.")
      .ListMap({"type"})
      .Items(0, 32);
}

template <typename Status>
void NextActions(TypeBuilder<Status>& b) {
  b.Field(&Status::next_actions, "nextActions", "What a person can do about a Stalled, best first.").Items(0, 16);
}

// phase and outcome of an operation, which stay once they are final.
template <typename Status>
void FinalPhase(TypeBuilder<Status>& b) {
  b.Field(&Status::phase, "phase", "Where the operation stands. Succeeded, Failed and RolledBack are final.")
      .Check("!(oldSelf in ['Succeeded', 'Failed', 'RolledBack']) || self == oldSelf",
             "a finished operation stays finished", [](const Json& self, const Json* old) {
               const std::string& phase = old->AsString();
               const bool final = phase == "Succeeded" || phase == "Failed" || phase == "RolledBack";
               return !final || self == *old;
             });
  b.Field(&Status::outcome, "outcome", "How it ended; set once.")
      .Check("self == oldSelf", "an outcome stays as it is",
             [](const Json& self, const Json* old) { return self == *old; });
}

// Removing them is a change too, which rules on the fields do not see.
template <typename Status>
void FinalPhaseStays(TypeBuilder<Status>& b) {
  b.Check("!has(oldSelf.phase) || has(self.phase)", "phase cannot be removed",
          [](const Json& self, const Json* old) { return !old->Has("phase") || self.Has("phase"); });
  b.Check("!has(oldSelf.outcome) || has(self.outcome)", "outcome cannot be removed",
          [](const Json& self, const Json* old) { return !old->Has("outcome") || self.Has("outcome"); });
}

// The table of a kind: metadata, spec, status.
template <typename Kind>
void KindFields(TypeBuilder<Kind>& b, std::string spec_doc, std::string status_doc) {
  b.Field(&Kind::metadata, "metadata", "Standard object metadata.");
  b.Field(&Kind::spec, "spec", std::move(spec_doc)).Required();
  b.Field(&Kind::status, "status", std::move(status_doc)).Default(Json::MakeObject({{"observedGeneration", -1}}));
}

// Names that become label values and parts of unit names.
template <typename Kind>
void ShortName(TypeBuilder<Kind>& b) {
  b.Check("self.metadata.name.size() <= 63", "the name must be no more than 63 characters: it becomes a label value",
          [](const Json& self, const Json*) { return self.Get("metadata").Get("name").AsString().size() <= 63; });
}

}  // namespace lockkeeper::types_internal
