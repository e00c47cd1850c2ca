// Lease (coordination.k8s.io/v1): election in the rolled server, host heartbeats, the manager's leadership.
// Ownership: values. Threads: values. Failure: none here.
#pragma once

#include "api/types/meta.h"

namespace lockkeeper {

struct LeaseSpec {
  std::string holder_identity;
  std::optional<int64_t> lease_duration_seconds;
  std::optional<Time> acquire_time;  // microseconds
  std::optional<Time> renew_time;    // microseconds
  std::optional<int64_t> lease_transitions;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const LeaseSpec&) const = default;
};

struct Lease {
  static constexpr std::string_view kApiVersion = "coordination.k8s.io/v1";
  static constexpr std::string_view kKind = "Lease";
  static constexpr std::string_view kPlural = "leases";

  ObjectMeta metadata;
  LeaseSpec spec;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const Lease&) const = default;
};

}  // namespace lockkeeper
