// Records to and from JSON: how the ledger keeps them.
//
// Purpose:   a compact form: members that are as a fresh record has them are left out; times are microseconds.
// Completeness: each struct's table is checked against the struct at compile time: a field added to records.h without
//            its line in records_json.cc does not build.
// Threads:   thread-safe. Failure: kCorrupt with the member's path and what was found.
#pragma once

#include "api/base/json.h"
#include "reconcilers/ports/records.h"

namespace lockkeeper {

Json RecordToJson(const ServerRecord& record);
Result<ServerRecord> RecordFromJson(const Json& json);
Json OutcomeToJson(const OutcomeRecord& outcome);
Result<OutcomeRecord> OutcomeFromJson(const Json& json);
Json UnitSpecToJson(const UnitSpec& spec);
Result<UnitSpec> UnitSpecFromJson(const Json& json);

}  // namespace lockkeeper
