// Status: what a Server's and a Roll's status say of one pass. Pure.
//
// Purpose:   a summary of snapshot and plan, recomputed whole on every pass, also after an error. Reasons come from the
//            documented list where they name a condition; messages are fixed per reason and object, numbers stand in
//            progress.
// Threads:   pure. Failure: none; total.
#pragma once

#include "reconcilers/server/plan.h"

namespace lockkeeper::roll {

struct StatusInput {
  const Snapshot& snapshot;
  const Plan& plan;
  const Now& now;
  Status last_error;  // of the last step that was taken, ok when it went well
};

ServerStatus SummarizeServer(const StatusInput& in, const ServerStatus& before, int64_t generation);

// Of the Roll that the operation in flight reports to. REQUIRES: the record is known and has an operation.
RollStatus SummarizeRoll(const StatusInput& in, const RollStatus& before, int64_t generation);
// Of a Roll that waits for its turn; the message names what holds the place.
RollStatus SummarizeWaiting(const StatusInput& in, const RollStatus& before, int64_t generation);
// Of a Roll that has ended, from the ledger. `applied_before`: another object of this name and spec ended so.
RollStatus SummarizeEnded(const OutcomeRecord& outcome, const RollStatus& before, int64_t generation, const Now& now,
                          bool applied_before);
// Of a Roll under a name that another spec has used up.
RollStatus SummarizeNameReused(const OutcomeRecord& outcome, const RollStatus& before, int64_t generation,
                               const Now& now);

// What a message adds after a step that failed and is tried again by itself; "" after any other.
std::string LastTry(const Status& error);

// The phase of the durable operation that a Roll is in.
OperationPhase PhaseOf(const OperationRecord& op, StopOrder order);
// Whether the API would hold the same of both, apart from progress: progress alone is written at most once a second.
// What was read back from the API has lost the fractions of some times.
bool SameButProgress(const ServerStatus& a, const ServerStatus& b);
bool SameButProgress(const RollStatus& a, const RollStatus& b);

// Whether a reader would see another progress: step, message or count, not the time that is left.
bool SameProgress(const std::optional<Progress>& a, const std::optional<Progress>& b);

// One line of the story, in order.
struct StoryEvent {
  bool warning = false;
  std::string reason;
  std::string message;
  bool operator==(const StoryEvent&) const = default;
};
// What one commit tells, from the record before to the record after it.
std::vector<StoryEvent> StoryOf(const ServerRecord& before, const ServerRecord& after);

}  // namespace lockkeeper::roll
