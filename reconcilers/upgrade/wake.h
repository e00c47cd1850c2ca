// Whom a change of a Server concerns: most of what a roll tells of it is of no interest to the Upgrades that wait.
//
// Purpose:   with N waiting, a Server's forty statuses of one roll would be 40 N passes, for nothing. What holds the
//            place sees each; the others only what their own plan (plan.cc) reads while they wait. Who is in the place
//            is not of it: they look again by themselves (kHolderPoll), and the one that is admitted is named here.
// Threads:   pure. Failure: total.
#pragma once

#include <set>
#include <string>

#include "api/types/server.h"

namespace lockkeeper::upgrade {

struct Wake {
  bool all = false;             // every unfinished Upgrade of the Server
  std::set<std::string> names;  // else these
  bool operator==(const Wake&) const = default;
};

// `before`: as it was last told, nullptr where it was not.
Wake WokenBy(const Server* before, const Server& after);

}  // namespace lockkeeper::upgrade
