// Plan of one Release on this host. Pure.
//
// Purpose:   document first (the ledger is the truth), then fetch, then the mirror in the API. A failed fetch is tried
//            again by itself: 2 s, doubled to 30 s.
// Threads:   pure. Failure: total.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/types/release.h"
#include "reconcilers/ports/documents.h"
#include "reconcilers/ports/fact.h"

namespace lockkeeper::release {

struct Snapshot {
  Fact<ReleaseDocument> document;
  Fact<Release> object;
  Fact<ServerRecord> server;     // of the document, else of the object
  Fact<bool> unpacked_is_there;  // of a Ready document
  std::string host;
  std::vector<ReleaseFile> files;  // of a Ready release, for the status
  std::optional<Progress> progress;
  bool operator==(const Snapshot&) const = default;
};

enum class StepKind {
  kNone,
  kAdopt,         // make the document from the object
  kFetch,         // resolve, fetch, verify, unpack, hash
  kFetchAgain,    // what was unpacked is gone
  kCreateObject,  // the mirror of a document that the agent made itself
};

struct Plan {
  StepKind step = StepKind::kNone;
  std::string message;
  Duration requeue_after{};
  bool operator==(const Plan&) const = default;
};

Plan Decide(const Snapshot& snapshot, const Now& now);
ReleaseStatus Summarize(const Snapshot& snapshot, const Now& now);

// The path of a command below its release, or "" for an absolute one.
std::string ExecutableOf(const ServerSpec& spec);
// After the nth failure in a row.
Duration RetryAfter(int64_t failures);
// The documented reason for an error of a fetch.
std::string ReasonOf(const Status& status);

}  // namespace lockkeeper::release
