// Event (core/v1): the story of an object, as kubectl describe shows it.
// Ownership: values. Threads: values. Failure: none here.
#pragma once

#include "api/types/meta.h"

namespace lockkeeper {

struct ObjectReference {
  std::string api_version;
  std::string kind;
  std::string namespace_;
  std::string name;
  std::string uid;
  std::string resource_version;
  std::string field_path;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const ObjectReference&) const = default;
};

struct EventSource {
  std::string component;
  std::string host;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const EventSource&) const = default;
};

struct EventSeries {
  std::optional<int64_t> count;
  std::optional<Time> last_observed_time;  // microseconds
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const EventSeries&) const = default;
};

struct Event {
  static constexpr std::string_view kApiVersion = "v1";
  static constexpr std::string_view kKind = "Event";
  static constexpr std::string_view kPlural = "events";

  ObjectMeta metadata;
  ObjectReference involved_object;
  std::string reason;
  std::string message;
  std::string type;  // Normal or Warning
  EventSource source;
  std::optional<int64_t> count;
  std::optional<Time> first_timestamp;
  std::optional<Time> last_timestamp;
  std::optional<Time> event_time;  // microseconds
  std::string action;
  std::optional<EventSeries> series;
  std::optional<ObjectReference> related;
  std::string reporting_component;
  std::string reporting_instance;
  Json extra;

  static const TypeInfo& Type();
  bool operator==(const Event&) const = default;
};

}  // namespace lockkeeper
