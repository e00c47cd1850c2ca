// Front: one TCP front; its backend follows the recorded active slot of the Server that claims it.
// Ownership: values. Threads: values. Failure: none here.
#pragma once

#include "api/types/meta.h"

namespace lockkeeper {

// New connections are held, not refused, while there is no backend: bounded in number and time.
struct HoldPolicy {
  int64_t connections = 4096;
  int64_t seconds = 180;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const HoldPolicy&) const = default;
};

struct KeepaliveSpec {
  int64_t idle_seconds = 30;
  int64_t interval_seconds = 10;
  int64_t count = 3;
  int64_t user_timeout_seconds = 60;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const KeepaliveSpec&) const = default;
};

enum class ProxyProtocol { kNone, kV2 };
LK_TYPES_ENUM(ProxyProtocol);

struct FrontSpec {
  std::string host;
  std::string listen;  // address:port
  int64_t max_connections = 8192;
  HoldPolicy hold;
  KeepaliveSpec keepalive;
  int64_t connect_timeout_milliseconds = 1000;
  int64_t idle_timeout_seconds = 3600;  // 0: never
  ProxyProtocol proxy_protocol = ProxyProtocol::kNone;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const FrontSpec&) const = default;
};

struct FrontClaim {
  std::string name;
  std::string uid;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const FrontClaim&) const = default;
};

struct FrontBackend {
  std::string slot;
  std::optional<int64_t> incarnation;
  std::string address;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const FrontBackend&) const = default;
};

struct FrontOpen {
  std::string slot;
  std::optional<int64_t> incarnation;
  int64_t connections = 0;
  std::optional<double> oldest_seconds;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const FrontOpen&) const = default;
};

struct FrontStatus {
  int64_t observed_generation = -1;
  std::optional<FrontClaim> claimed_by;
  std::optional<FrontBackend> backend;  // unset on hold
  bool holding = false;
  int64_t generation = 0;  // the ledger's revision of the last Set
  std::vector<FrontOpen> open;
  int64_t held = 0;
  int64_t drained = 0;
  int64_t upgrade_generation = 0;
  std::optional<int64_t> pid;
  std::optional<Time> started_at;
  std::vector<Condition> conditions;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const FrontStatus&) const = default;
};

struct Front {
  static constexpr std::string_view kApiVersion = lockkeeper::kApiVersion;
  static constexpr std::string_view kKind = "Front";
  static constexpr std::string_view kPlural = "fronts";

  ObjectMeta metadata;
  FrontSpec spec;
  FrontStatus status;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const Front&) const = default;
};

}  // namespace lockkeeper
