// View: what the command line prints of objects. Pure text, no terminal codes but in ProgressBar's caller.
//
// Threads: pure. Failure: total; what is missing prints as "-".
#pragma once

#include <string>
#include <vector>

#include "api/types/roll.h"
#include "api/types/server.h"
#include "api/types/upgrade.h"

namespace lockkeeper::cli {

// Columns padded to their widest cell, two spaces between, no trailing spaces; a line each, with a line end.
std::string Table(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows);

// "[##########..........]  50%"; `width` characters inside the brackets.
std::string ProgressBar(double fraction, int width);
// A line for a Progress: message, bar where there is a percentage, done of total, time left to what is expected.
std::string ProgressLine(const Progress& progress, Time now);

// What an operation says of itself, as far as `lockkeeper status` tells of it.
struct OperationNews {
  std::string uid;
  std::vector<Condition> conditions;
  std::vector<NextAction> next_actions;
};

// The table of `lockkeeper status`, and below it a line for each thing that wants attention with its way out.
std::string StatusText(const std::vector<Server>& servers, const std::vector<OperationNews>& news, Time now);
// Servers whose objects were deleted while their processes run on, of the agent's views (/v1/status); what each is, and
// how to take it back or stop it. "" for none.
std::string ReleasedText(const std::vector<Json>& views);
// One Server whole: slots, lease, operation, conditions that are not as they should be, next actions.
std::string ServerText(const Server& server, const std::vector<OperationNews>& news, Time now);

// A step that ended, is waiting or failed: "12:00:01.250  +0.82s  Ready        0.61s  message".
struct StepLine {
  std::string key;  // name and state: printed once
  std::string text;
  Time at{};
};
std::vector<StepLine> StepLines(const Roll& roll);
std::vector<StepLine> PhaseLines(const Upgrade& upgrade);
// How an operation ended, on a few lines with its figures.
std::string OutcomeText(const Roll& roll);
std::string OutcomeText(const Upgrade& upgrade);

}  // namespace lockkeeper::cli
