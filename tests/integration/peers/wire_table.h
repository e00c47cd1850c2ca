// WireTable: the commands of tests/data/wire, what their exchanges say once chance is taken out, and how two servers'
// exchanges differ.
//
// Purpose:   hold the embedded server's wire against kube-apiserver's, member by member, but for named differences.
// Ownership: values. Threads: none. Failure: a table that cannot be read is an error of the test.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/base/json.h"
#include "tests/support/peers/recorder.h"

namespace lockkeeper::peers {

struct WireStep {
  std::string name;
  std::vector<std::string> args;  // of kubectl
  std::string input;              // standard input; {uid} is the uid of upgrades/u1
  std::optional<int> exit = 0;    // nullopt: whatever it is, and the two need not be equal
  std::map<std::string, std::string> env;
  // While these run it watches; `until`: its output matches this, then it is ended. Without it ends by itself.
  std::vector<WireStep> during;
  std::string until;
};
Result<std::vector<WireStep>> LoadSteps(const std::string& file);

// A difference that is as it should be.
struct NamedDifference {
  std::string name, why;
  std::vector<std::string> steps;     // names; empty: all
  std::vector<std::string> requests;  // patterns (fnmatch) of KeyOf, one of which must match
  std::vector<std::string> paths;     // of members; one with "!" before it is an exception
  std::string only;                   // "real", "embedded": the member is there alone; "": whatever
  int used = 0;
};
Result<std::vector<NamedDifference>> LoadDifferences(const std::string& file);

// The request without what differs by chance: versions, uids, hashes, order of the query.
std::string KeyOf(const Exchange& exchange);
// Everything the exchange says, member by member: "status", "type", "warning.0", "request.spec.version",
// "body.items.0.metadata.name", "event.1.type". Items that have names stand under them. Chance is taken out: uids,
// resourceVersions, ages and times of the server are "<uid>", "<version>", "<age>", "<time>".
std::map<std::string, std::string> FactsOf(const Exchange& exchange);

struct WireDifference {
  std::string request, path;
  std::optional<std::string> real, embedded;
  std::string ToString() const;
};
// Requests are brought together by KeyOf, in their order.
std::vector<WireDifference> Compare(const std::vector<Exchange>& real, const std::vector<Exchange>& embedded);
// Leaves out what has a name, and counts it there.
std::vector<WireDifference> WithoutNamed(const std::string& step, const std::vector<WireDifference>& differences,
                                         std::vector<NamedDifference>* named);

}  // namespace lockkeeper::peers
