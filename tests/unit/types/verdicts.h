// Verdicts: what a server must say of an object. Read from tests/data/verdicts, and made from the field tables.
//
// Purpose:   one table for the C++ twins, the embedded server and a real kube-apiserver.
// Ownership: values. Threads: none. Failure: a table that cannot be read is an error of the test.
#pragma once

#include <string>
#include <vector>

#include "api/types/kind.h"
#include "tests/unit/types/random_object.h"

namespace lockkeeper {

struct Verdict {
  const KindInfo* kind = nullptr;
  std::string name;                // a sentence
  Json stored;                     // null: a create; else what is stored before the write
  Json object;                     // what is written
  bool status = false;             // the write is to /status
  std::vector<FieldError> errors;  // in any order; none: accepted
};

// RFC 7386.
void MergePatch(Json& target, const Json& patch);

// The tables of a folder, by file name.
Result<std::vector<Verdict>> LoadVerdicts(const std::string& folder);
// The valid object that each kind's table begins with.
Result<std::vector<std::pair<const KindInfo*, Json>>> LoadBases(const std::string& folder);

// For every field of every kind: a value of the wrong type, outside its bounds, enum or pattern, too long a list, an
// item twice, a member that is missing, and a later change of it. `errors` is what Validate says; `about` names the
// field that an error must be about, "" where the change must pass.
struct GeneratedVerdict {
  Verdict verdict;
  std::string about;
};
std::vector<GeneratedVerdict> GenerateVerdicts(const KindInfo& kind, const Json& base);

// Random members of the spec on top of an object that is good: a create, or an update of that object. `errors` is what
// Validate says.
Verdict RandomWrite(const KindInfo& kind, const Json& base, RandomObject* random, int index);

// What the embedded server's checks say: defaults, pruning, schema and rules.
std::vector<FieldError> Judge(const Verdict& verdict);

// By field, reason, message.
void SortErrors(std::vector<FieldError>* errors);

}  // namespace lockkeeper
