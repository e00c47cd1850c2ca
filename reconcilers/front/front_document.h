// FrontDocument: what the ledger keeps of a Front, so that its process and target need no API.
//
// Purpose:   the Front's spec as last loaded, who claims it, and the invocation of its unit; one document a Front
//            under Ledger::PutDocument(kFrontDocument, "NAMESPACE/NAME"). Written by the Front reconciler alone.
// Threads:   values. Failure: FromJson answers kCorrupt for text that is no such document.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "api/types/front.h"
#include "reconcilers/ports/ledger.h"

namespace lockkeeper::fronts {

inline constexpr char kFrontDocument[] = "front";

struct FrontDocument {
  std::string ns, name;
  std::string uid;         // of the Front object last loaded
  int64_t generation = 0;  // highest loaded of that uid
  FrontSpec spec;
  bool deleting = false;   // a deletionTimestamp was seen
  std::string claimed_by;  // Server of the same namespace; keeps its claim as long as it makes it
  // Its process.
  int64_t invocation = 0;  // 0: never started
  std::string listen;      // numeric address of that invocation's listener
  int64_t failures = 0;    // starts in a row that failed
  Deadline not_before;     // of the next start
  Deadline stop_by;        // set while it is being stopped for good or to listen elsewhere
  // The explicit restart: kRestartAnnotation's value that was answered last, and the process it ended.
  std::string restart_seen;
  int64_t restart_pid = 0;
  bool operator==(const FrontDocument&) const = default;

  std::string Key() const { return ns + "/" + name; }
  Json ToJson() const;
  static Result<FrontDocument> FromJson(const std::string& text);
};

// The Server that holds the claim on a Front, or "": what a Server that wants it asks before its operation.
Result<std::string> FrontClaimedBy(Ledger& ledger, const std::string& ns, const std::string& front);

}  // namespace lockkeeper::fronts
