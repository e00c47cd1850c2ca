// Status of one Upgrade: a pure summary of what was observed and decided.
//
// Purpose:   conditions, phase, times, progress and the story's events, all recomputed on every pass; of the old
//            status only first-seen times are kept.
// Threads:   pure. Failure: total.
#pragma once

#include <string>
#include <vector>

#include "reconcilers/upgrade/plan.h"

namespace lockkeeper::upgrade {

UpgradeStatus Summarize(const Snapshot& snapshot, const Plan& plan, const Now& now);

struct StoryEvent {
  bool warning = false;
  std::string reason;
  std::string message;
  bool operator==(const StoryEvent&) const = default;
};
// What became true between two statuses, in the order it happened.
std::vector<StoryEvent> EventsBetween(const UpgradeStatus& before, const UpgradeStatus& after);

}  // namespace lockkeeper::upgrade
