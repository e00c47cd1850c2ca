// JSON of the front's admin socket: one form, written by the front and read by the adapter.
//
// Threads: values. Failure: kInvalid names the member that is missing or of another type.
#pragma once

#include "api/base/json.h"
#include "reconcilers/ports/front_admin.h"

namespace lockkeeper::front {

Json TargetToJson(const FrontTarget& target);
Result<FrontTarget> TargetFromJson(const Json& json);
Json StateToJson(const FrontState& state);
Result<FrontState> StateFromJson(const Json& json);

// {"error": {"code": "Precondition", "message": "…"}}
Json ErrorToJson(const Status& status);
// The Status that an answer of the front carries; kInternal when it carries none.
Status ErrorFromJson(const Json& json, int http_status);
int HttpStatusOf(Code code);

}  // namespace lockkeeper::front
