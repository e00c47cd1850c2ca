// Target rules: what a Set may do, as pure functions, and what of it is kept on disk.
//
// Purpose:   one place that decides whether a target is new, the same, or refused; and the JSON of the state file.
// Ownership: values. Threads: values.
// Failure:   kInvalid (a target that makes no sense), kPrecondition (a lower revision, another boot), kCorrupt (a
//            stored state that does not match its checksum).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "api/base/json.h"
#include "reconcilers/ports/front_admin.h"

namespace lockkeeper::front {

// What a front remembers over its own death.
struct TargetState {
  std::optional<FrontTarget> target;         // none: hold, and wait for the agent's word
  int64_t generation = 0;                    // counts changes of the target
  std::map<std::string, int64_t> revisions;  // highest revision seen, by ledger id
  bool operator==(const TargetState&) const = default;
};

// Shape alone: slot, incarnation and a numeric address where it does not hold; "" or the reason.
Status CheckTarget(const FrontTarget& target);

struct SetDecision {
  bool changed = false;  // another backend: the generation rises and connections move
  bool persist = false;  // something to remember, maybe only a revision
  TargetState next;
};

// `boot_id` is this machine's. The same backend is ok whatever its revision; another backend with a lower revision of
// the same ledger is kPrecondition; so is a backend of another boot. Revisions of different ledgers do not compare.
Result<SetDecision> DecideSet(const TargetState& now, const FrontTarget& wanted, const std::string& boot_id);

// What a front may go on with after its own start: a target of another boot is dropped (its port may be anybody's by
// now), revisions and generation stay.
TargetState Resume(TargetState stored, const std::string& boot_id);

// Whether slot#incarnation is where new connections go. On hold nothing is current.
bool IsCurrent(const std::optional<FrontTarget>& target, const std::string& slot, int64_t incarnation);

// The state file: {version, state, checksum}; the checksum is SHA-256 over the canonical JSON of `state`.
std::string EncodeState(const TargetState& state);
Result<TargetState> DecodeState(std::string_view text);

}  // namespace lockkeeper::front
