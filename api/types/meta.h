// ObjectMeta, Condition and the small structs that several kinds share.
//
// Purpose:   what every object carries. A kind is `struct Server { ObjectMeta metadata; ServerSpec spec;
//            ServerStatus status; }`; members are the JSON names in snake_case; `extra` keeps unknown members.
// Ownership: values. Type() is the struct's field table: static, never destroyed.
// Threads:   values; the tables are thread-safe.
// Failure:   none here; see codec.h and kind.h.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/json.h"
#include "api/base/time.h"
#include "api/types/codec.h"
#include "api/types/enums.h"

namespace lockkeeper {

struct TypeInfo;
struct KindInfo;

inline constexpr std::string_view kGroup = "lockkeeper.dev";
inline constexpr std::string_view kVersion = "v1alpha1";
inline constexpr std::string_view kApiVersion = "lockkeeper.dev/v1alpha1";

struct OwnerReference {
  std::string api_version;
  std::string kind;
  std::string name;
  std::string uid;
  std::optional<bool> controller;
  std::optional<bool> block_owner_deletion;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const OwnerReference&) const = default;
};

struct ObjectMeta {
  std::string name;
  std::string generate_name;
  std::string namespace_;
  std::string uid;
  std::string resource_version;
  int64_t generation = 0;
  std::optional<Time> creation_timestamp;
  std::optional<Time> deletion_timestamp;
  std::optional<int64_t> deletion_grace_period_seconds;
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
  std::vector<std::string> finalizers;
  std::vector<OwnerReference> owner_references;
  Json extra;  // managedFields and what later versions add

  bool HasFinalizer(std::string_view name) const;
  bool Deleting() const { return deletion_timestamp.has_value(); }
  // The owner reference with controller: true, or nullptr.
  const OwnerReference* ControllerRef() const;

  static const TypeInfo& Type();
  bool operator==(const ObjectMeta&) const = default;
};

enum class ConditionStatus { kUnknown, kTrue, kFalse };
LK_TYPES_ENUM(ConditionStatus);

struct Condition {
  std::string type;
  ConditionStatus status = ConditionStatus::kUnknown;
  int64_t observed_generation = 0;  // kubectl wait ignores a condition that is behind metadata.generation
  std::optional<Time> last_transition_time;
  std::string reason;
  std::string message;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const Condition&) const = default;
};

// A name in the same namespace.
struct LocalRef {
  std::string name;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const LocalRef&) const = default;
};

// What a person can do about a Stalled: one command and what it risks.
struct NextAction {
  std::string code;     // stable, CamelCase
  std::string command;  // as typed
  std::string risk;     // what it costs or may lose
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const NextAction&) const = default;
};

// The numbers that condition messages do not hold. Written at most once a second.
struct Progress {
  std::string step;     // the step or phase it speaks of
  std::string message;  // one line for a person
  std::optional<int64_t> percent;
  std::optional<int64_t> done;
  std::optional<int64_t> total;
  std::string unit;  // of done and total: bytes, connections, runners …
  std::optional<double> expected_seconds;
  std::optional<Time> updated_at;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const Progress&) const = default;
};

}  // namespace lockkeeper
