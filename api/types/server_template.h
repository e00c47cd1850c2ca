// The template of a Server: how one slot's process is rendered, watched and stopped.
// Ownership: values. Threads: values. Failure: none here.
#pragma once

#include "api/types/meta.h"

namespace lockkeeper {

struct EnvVar {
  std::string name;
  std::string value;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const EnvVar&) const = default;
};

// Quantities as Kubernetes writes them; quantity.h turns them into numbers.
struct ResourceLimits {
  std::string cpu;     // "500m", "2"
  std::string memory;  // "512Mi", "2Gi"
  std::optional<int64_t> files;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const ResourceLimits&) const = default;
};

struct LogPolicy {
  int64_t max_bytes = 64 << 20;
  int64_t keep = 3;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const LogPolicy&) const = default;
};

enum class PortType { kFromProcess, kFixed };
LK_TYPES_ENUM(PortType);

struct FixedPorts {
  int64_t blue = 0;
  std::optional<int64_t> green;  // required where there are two slots
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const FixedPorts&) const = default;
};

// FromProcess: {port} is 0 and the port is read from the process's listening sockets.
struct PortSpec {
  PortType type = PortType::kFromProcess;
  std::optional<FixedPorts> fixed;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const PortSpec&) const = default;
};

// Runs beside each slot: started before it, retired with it.
struct CompanionSpec {
  std::string name;
  std::vector<std::string> command;
  std::vector<EnvVar> env;
  PortSpec port;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const CompanionSpec&) const = default;
};

enum class ReadinessScheme { kHttps, kHttp };
LK_TYPES_ENUM(ReadinessScheme);

struct ReadinessSpec {
  std::string path = "/readyz";
  ReadinessScheme scheme = ReadinessScheme::kHttps;
  std::string ca_file;
  bool insecure = false;
  int64_t attempt_timeout_milliseconds = 1000;
  int64_t min_ready_seconds = 0;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const ReadinessSpec&) const = default;
};

enum class IdentityType { kExecutable, kKubeVersion, kHealthPage };
LK_TYPES_ENUM(IdentityType);

// How the running build is told.
struct IdentitySpec {
  IdentityType type = IdentityType::kExecutable;
  std::string pattern;      // KubeVersion
  std::string url;          // HealthPage
  std::string server_name;  // HealthPage
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const IdentitySpec&) const = default;
};

enum class StopSignal { kTerm, kInt, kQuit };
LK_TYPES_ENUM(StopSignal);

enum class StopOrder { kDrainThenStop, kStopThenDrain };
LK_TYPES_ENUM(StopOrder);

struct StopPolicy {
  StopSignal signal = StopSignal::kTerm;
  StopOrder order = StopOrder::kDrainThenStop;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const StopPolicy&) const = default;
};

struct ServerTemplate {
  std::vector<std::string> command;
  std::vector<EnvVar> env;
  std::string working_directory;
  std::string user;
  std::string group;
  std::optional<ResourceLimits> limits;
  LogPolicy logs;
  std::vector<CompanionSpec> companions;
  PortSpec port;
  ReadinessSpec readiness;
  IdentitySpec identity;
  StopPolicy stop;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const ServerTemplate&) const = default;
};

}  // namespace lockkeeper
