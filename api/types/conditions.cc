#include "api/types/conditions.h"

#include <algorithm>

namespace lockkeeper {

namespace {

Time WholeSeconds(Time t) { return std::chrono::floor<std::chrono::seconds>(t); }

}  // namespace

const std::vector<ConditionTypeInfo>& ConditionTypes() {
#define LK_CONDITION_ROW(name, kinds, doc) {#name, kinds, doc},
  static const auto* types = new std::vector<ConditionTypeInfo>{LK_CONDITION_TYPES(LK_CONDITION_ROW)};
#undef LK_CONDITION_ROW
  return *types;
}

const Condition* FindCondition(const std::vector<Condition>& conditions, std::string_view type) {
  for (const Condition& c : conditions) {
    if (c.type == type) return &c;
  }
  return nullptr;
}

bool IsConditionTrue(const std::vector<Condition>& conditions, std::string_view type) {
  const Condition* c = FindCondition(conditions, type);
  return c != nullptr && c->status == ConditionStatus::kTrue;
}

bool SetCondition(std::vector<Condition>& conditions, Condition wanted, Time now) {
  for (Condition& c : conditions) {
    if (c.type != wanted.type) continue;
    const bool moved = c.status != wanted.status || !c.last_transition_time;
    const bool changed = moved || c.reason != wanted.reason || c.message != wanted.message;
    wanted.last_transition_time = moved ? WholeSeconds(now) : *c.last_transition_time;
    wanted.extra = c.extra;
    c = std::move(wanted);
    return changed;
  }
  wanted.last_transition_time = WholeSeconds(now);
  conditions.push_back(std::move(wanted));
  return true;
}

bool RemoveCondition(std::vector<Condition>& conditions, std::string_view type) {
  return std::erase_if(conditions, [&](const Condition& c) { return c.type == type; }) > 0;
}

std::vector<Condition> CarryConditions(const std::vector<Condition>& before, std::vector<Condition> computed,
                                       int64_t generation, Time now) {
  for (Condition& c : computed) {
    const Condition* old = FindCondition(before, c.type);
    const bool same = old != nullptr && old->status == c.status && old->last_transition_time;
    c.last_transition_time = same ? *old->last_transition_time : WholeSeconds(now);
    c.observed_generation = generation;
    if (old != nullptr) c.extra = old->extra;
  }
  return computed;
}

void SetReady(std::vector<Condition>& conditions, const ReadySummary& summary, int64_t generation, Time now) {
  Condition c;
  c.reason = summary.reason;
  c.message = summary.message;
  c.observed_generation = generation;
  const auto settle = [&](std::string_view type, bool stands) {
    if (!stands) {
      RemoveCondition(conditions, type);
      return;
    }
    c.type = type;
    c.status = ConditionStatus::kTrue;
    SetCondition(conditions, c, now);
  };
  c.type = condition::kReady;
  c.status = summary.ready;
  if (summary.settling == Settling::kStalled && summary.ready == ConditionStatus::kTrue) {
    c.status = ConditionStatus::kFalse;
  }
  SetCondition(conditions, c, now);
  settle(condition::kReconciling, summary.settling == Settling::kReconciling);
  settle(condition::kStalled, summary.settling == Settling::kStalled);
}

std::string_view KstatusOf(const Json& object) {
  if (object.Get("metadata").Has("deletionTimestamp")) return "Terminating";
  const Json& status = object.Get("status");
  const Json* observed = status.Find("observedGeneration");
  if (observed != nullptr && observed->AsInt() != object.At({"metadata", "generation"}).AsInt()) return "InProgress";
  const Json::Array& conditions = status.Get("conditions").AsArray();
  for (const Json& c : conditions) {
    if (c.Get("status").AsString() != "True") continue;
    if (c.Get("type").AsString() == condition::kReconciling) return "InProgress";
    if (c.Get("type").AsString() == condition::kStalled) return "Failed";
  }
  for (const Json& c : conditions) {
    if (c.Get("type").AsString() == condition::kReady && c.Get("status").AsString() != "True") return "InProgress";
  }
  return "Current";
}

}  // namespace lockkeeper
