#include <algorithm>
#include <cmath>

#include "reconcilers/front/front_plan.h"

namespace lockkeeper::fronts {
namespace {

constexpr size_t kMaxOpen = 16;  // as the schema says

// Whole seconds below a minute, minutes below an hour, then hours: an age that is written is not news each second.
double RoundAge(double seconds) {
  const double unit = seconds < 60 ? 1 : seconds < 3600 ? 60 : 3600;
  return std::floor(seconds / unit) * unit;
}

}  // namespace

FrontStatus Summarize(const Snapshot& s, const Plan& plan, const Now& now) {
  const Front* object = s.object.get();
  FrontStatus out;
  int64_t generation = 0;
  if (object != nullptr) {
    out.extra = object->status.extra;
    out.upgrade_generation = object->status.upgrade_generation;
    out.conditions = object->status.conditions;
    generation = object->metadata.generation;
  }
  out.observed_generation = generation;
  if (const FrontDocument* d = s.document.get(); d != nullptr && !d->claimed_by.empty()) {
    FrontClaim claim;
    claim.name = d->claimed_by;
    if (s.claims.known()) {
      for (const Claim& c : *s.claims) {
        if (c.server == d->claimed_by) claim.uid = c.uid;
      }
    }
    out.claimed_by = claim;
  }
  if (s.unit.known() && s.unit->state == UnitStatus::State::kRunning) {
    out.pid = s.unit->id.pid;
    out.started_at = s.unit->started_at;
  }
  if (const FrontState* f = s.state.get()) {
    out.held = f->held;
    out.drained = f->drained_total;
    out.holding = !f->target || f->target->hold;
    if (f->target) out.generation = f->target->revision;
    if (!out.holding) {
      FrontBackend backend;
      backend.slot = f->target->slot;
      backend.incarnation = f->target->incarnation;
      backend.address = f->target->address;
      out.backend = backend;
    }
    for (const FrontBackendOpen& b : f->open) {
      if (out.open.size() == kMaxOpen) break;
      FrontOpen open;
      open.slot = b.slot;
      open.incarnation = b.incarnation;
      open.connections = b.open;
      open.oldest_seconds = RoundAge(b.oldest_seconds);
      out.open.push_back(open);
    }
  } else if (object != nullptr) {
    // What was last seen; the condition says that it is not seen now.
    out.backend = object->status.backend;
    out.holding = object->status.holding;
    out.generation = object->status.generation;
  }
  if (plan.verdict.reason.empty()) return out;
  SetReady(out.conditions, plan.verdict, generation, now.wall);
  return out;
}

bool DiffersInSubstance(const FrontStatus& a, const FrontStatus& b) {
  const auto strip = [](FrontStatus s) {
    s.open.clear();
    s.held = 0;
    s.drained = 0;
    return s;
  };
  return strip(a) != strip(b);
}

}  // namespace lockkeeper::fronts
