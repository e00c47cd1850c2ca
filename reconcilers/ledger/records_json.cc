#include "reconcilers/ledger/records_json.h"

#include <cstdlib>
#include <map>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "api/types/codec.h"

namespace lockkeeper {
namespace {

// Counts the members of an aggregate: the largest N for which it can be made from N things of any type.
struct Anything {
  size_t index;
  template <typename T>
  operator T() const {  // NOLINT(google-explicit-constructor)
    std::abort();       // only named in a requires, never called
  }
};
template <typename T, size_t... I>
constexpr bool TakesInit(std::index_sequence<I...>) {
  return requires { T{Anything{I}...}; };
}
template <typename T, size_t N = 1>
constexpr size_t CountMembers() {
  if constexpr (TakesInit<T>(std::make_index_sequence<N>{})) {
    return CountMembers<T, N + 1>();
  } else {
    return N - 1;
  }
}

template <typename S, typename M>
struct Field {
  const char* name;
  M S::*member;
};
template <typename S, typename M>
constexpr Field<S, M> MakeField(const char* name, M S::*member) {
  return {name, member};
}

template <typename S>
struct Table;  // Fields(): a tuple of Field<S, M>

#define F(m) MakeField(#m, &Self::m)
#define LK_RECORD(S, ...)                                                                         \
  template <>                                                                                     \
  struct Table<S> {                                                                               \
    using Self = S;                                                                               \
    static constexpr auto Fields() { return std::make_tuple(__VA_ARGS__); }                       \
    static_assert(CountMembers<S>() == std::tuple_size_v<decltype(std::make_tuple(__VA_ARGS__))>, \
                  "a member of " #S " has no line in this table: the ledger would forget it");    \
  };
LK_RECORD(Deadline, F(wall), F(boot), F(boot_id))
LK_RECORD(Now, F(wall), F(boot), F(boot_id))
LK_RECORD(UnitLimits, F(files), F(memory_bytes), F(cpu))
LK_RECORD(UnitSpec, F(name), F(argv), F(env), F(working_directory), F(user), F(group), F(limits), F(log_dir),
          F(log_max_bytes), F(log_keep), F(listen_address), F(restart))
LK_RECORD(UnitIdentity, F(unit), F(invocation), F(pid), F(start_ticks), F(boot_id))
LK_RECORD(UnitExit, F(at), F(code), F(signal), F(killed_by_us), F(oom))
LK_RECORD(ServerKey, F(ns), F(name))
LK_RECORD(HostBuild, F(version), F(commit), F(sha256), F(path), F(exec_sha256))
LK_RECORD(CompanionIntent, F(name), F(unit), F(port))
LK_RECORD(SlotIntent, F(incarnation), F(invocation), F(unit), F(companions), F(build), F(root), F(store_url),
          F(running), F(stop_signal), F(stop_seconds), F(forget))
LK_RECORD(CompanionActual, F(name), F(id), F(port), F(exit))
LK_RECORD(SlotActual, F(incarnation), F(invocation), F(id), F(port), F(executable), F(exec_sha256), F(started_at),
          F(listening_at), F(stop_asked_at), F(sigterm_at), F(kill_at), F(killed_at), F(exit), F(exited_at),
          F(stop_reason), F(companions), F(error), F(error_code), F(boots))
LK_RECORD(SlotEntry, F(intent), F(actual), F(previous), F(ready_at))
LK_RECORD(OperationRecord, F(kind), F(ns), F(name), F(uid), F(spec_hash), F(roll_name), F(roll_uid), F(action),
          F(requested_by), F(from), F(to), F(outage), F(target), F(spec), F(step), F(deadlines), F(started),
          F(finished), F(notes), F(approved), F(abort), F(abandon), F(paused), F(waiting_since), F(waited), F(undoing),
          F(failure_reason), F(failure_message), F(failure_is_the_builds), F(undo_errors), F(flipped_back),
          F(emergency_flip), F(checks), F(report), F(rendered), F(failed_step), F(roll_outcome), F(root_generation),
          F(roll_generation))
LK_RECORD(OutcomeRecord, F(kind), F(ns), F(name), F(uid), F(spec_hash), F(server), F(version), F(outcome), F(reason),
          F(message), F(requested_by), F(started_at), F(finished_at), F(report), F(failed_step), F(steps_started),
          F(steps_finished), F(previous_version), F(steps_skipped), F(checks), F(steps_ahead), F(mode))
LK_RECORD(RejectedEntry, F(version), F(exec_sha256), F(reason), F(at))
LK_RECORD(ServerRecord, F(key), F(uid), F(generation), F(spec), F(deleting), F(stopped), F(released), F(active),
          F(hold), F(incarnations), F(slots), F(store_url), F(member_token_of), F(installed), F(harvested),
          F(shared_hashes), F(version), F(operation), F(history), F(rejected), F(last_restarted_at),
          F(declared_attempts), F(store_touched_by_new_build), F(degraded), F(degraded_reason), F(degraded_message),
          F(probe_name), F(repairs), F(last_repair_at), F(repair_not_before), F(last_exit_at), F(member_token_error),
          F(member_token_retry), F(link_of), F(previous_build), F(previous_slot), F(open_outcome), F(posted_revision),
          F(revision))
#undef F
#undef LK_RECORD

template <typename T>
concept HasTable = requires {
  Table<T>::Fields();
};
template <typename T>
concept ApiType = requires {
  T::Type();
};

template <typename T>
struct Codec {
  static Json Encode(const T& value) {
    if constexpr (std::is_same_v<T, bool> || std::is_floating_point_v<T> || std::is_same_v<T, std::string>) {
      return Json(value);
    } else if constexpr (std::is_enum_v<T>) {
      return Json(EnumName(value));
    } else if constexpr (std::is_integral_v<T>) {
      return Json(static_cast<int64_t>(value));
    } else if constexpr (std::is_same_v<T, Time>) {
      return Json(static_cast<int64_t>(value.time_since_epoch().count()));
    } else if constexpr (std::is_same_v<T, Duration>) {
      return Json(static_cast<int64_t>(value.count()));
    } else if constexpr (HasTable<T>) {
      static const T fresh{};
      Json out = Json::MakeObject();
      std::apply(
          [&](const auto&... field) {
            (
                [&] {
                  const auto& member = value.*(field.member);
                  if (member == fresh.*(field.member)) return;
                  out.MutableObject().emplace_back(field.name, Codec<std::decay_t<decltype(member)>>::Encode(member));
                }(),
                ...);
          },
          Table<T>::Fields());
      return out;
    } else {
      static_assert(ApiType<T>);
      return ToJson(value);
    }
  }

  static Status Decode(const Json& json, T* out) {
    if constexpr (std::is_same_v<T, bool>) {
      if (!json.IsBool()) return Mismatch("true or false");
      *out = json.AsBool();
    } else if constexpr (std::is_floating_point_v<T>) {
      if (!json.IsNumber()) return Mismatch("a number");
      *out = json.AsDouble();
    } else if constexpr (std::is_same_v<T, std::string>) {
      if (!json.IsString()) return Mismatch("a string");
      *out = json.AsString();
    } else if constexpr (std::is_enum_v<T>) {
      const auto value = ParseEnum<T>(json.AsString());
      if (!value) return Mismatch("one of its names");
      *out = *value;
    } else if constexpr (std::is_integral_v<T>) {
      if (!json.IsInt()) return Mismatch("an integer");
      *out = static_cast<T>(json.AsInt());
    } else if constexpr (std::is_same_v<T, Time>) {
      if (!json.IsInt()) return Mismatch("microseconds");
      *out = Time(Duration(json.AsInt()));
    } else if constexpr (std::is_same_v<T, Duration>) {
      if (!json.IsInt()) return Mismatch("microseconds");
      *out = Duration(json.AsInt());
    } else if constexpr (HasTable<T>) {
      if (!json.IsObject()) return Mismatch("an object");
      *out = T{};
      Status status;
      std::apply(
          [&](const auto&... field) {
            (
                [&] {
                  const Json* found = json.Find(field.name);
                  if (found == nullptr || !status.ok()) return;
                  auto& member = out->*(field.member);
                  status = Codec<std::decay_t<decltype(member)>>::Decode(*found, &member);
                  if (!status.ok()) status = Status(Code::kCorrupt, std::string(field.name) + "." + status.message());
                }(),
                ...);
          },
          Table<T>::Fields());
      return status;
    } else {
      Result<T> value = FromJson<T>(json);
      if (!value.ok()) return Status(Code::kCorrupt, value.status().message());
      *out = std::move(*value);
    }
    return Status::Ok();
  }

  static Status Mismatch(std::string_view expected) {
    return Status(Code::kCorrupt, ": expected " + std::string(expected));
  }
};

template <typename T>
struct Codec<std::optional<T>> {
  static Json Encode(const std::optional<T>& value) { return value ? Codec<T>::Encode(*value) : Json(); }
  static Status Decode(const Json& json, std::optional<T>* out) {
    if (json.IsNull()) {
      out->reset();
      return Status::Ok();
    }
    return Codec<T>::Decode(json, &out->emplace());
  }
};

template <typename T>
struct Codec<std::vector<T>> {
  static Json Encode(const std::vector<T>& value) {
    Json out = Json::MakeArray();
    for (const T& item : value) out.Push(Codec<T>::Encode(item));
    return out;
  }
  static Status Decode(const Json& json, std::vector<T>* out) {
    if (!json.IsArray()) return Codec<T>::Mismatch("a list");
    out->clear();
    for (const Json& item : json.AsArray()) LK_RETURN_IF_ERROR(Codec<T>::Decode(item, &out->emplace_back()));
    return Status::Ok();
  }
};

template <typename T>
struct Codec<std::map<std::string, T>> {
  static Json Encode(const std::map<std::string, T>& value) {
    Json out = Json::MakeObject();
    for (const auto& [key, item] : value) out.MutableObject().emplace_back(key, Codec<T>::Encode(item));
    return out;
  }
  static Status Decode(const Json& json, std::map<std::string, T>* out) {
    if (!json.IsObject()) return Codec<T>::Mismatch("an object");
    out->clear();
    for (const auto& [key, item] : json.AsObject()) LK_RETURN_IF_ERROR(Codec<T>::Decode(item, &(*out)[key]));
    return Status::Ok();
  }
};

template <typename T>
Result<T> DecodeWhole(const Json& json) {
  T value;
  LK_RETURN_IF_ERROR(Codec<T>::Decode(json, &value));
  return value;
}

}  // namespace

Json RecordToJson(const ServerRecord& record) { return Codec<ServerRecord>::Encode(record); }
Result<ServerRecord> RecordFromJson(const Json& json) { return DecodeWhole<ServerRecord>(json); }
Json OutcomeToJson(const OutcomeRecord& outcome) { return Codec<OutcomeRecord>::Encode(outcome); }
Result<OutcomeRecord> OutcomeFromJson(const Json& json) { return DecodeWhole<OutcomeRecord>(json); }
Json UnitSpecToJson(const UnitSpec& spec) { return Codec<UnitSpec>::Encode(spec); }
Result<UnitSpec> UnitSpecFromJson(const Json& json) { return DecodeWhole<UnitSpec>(json); }

}  // namespace lockkeeper
