// ListCutter: the items of a Kubernetes list, cut out of its text one by one.
//
// Purpose:   a list of any size is parsed item by item, so that beside the text only one parsed object exists at a
//            time (a whole parsed list costs several times its text).
// Threads:   a function. Failure: kInvalid for text that is no JSON object.
#pragma once

#include <functional>
#include <string_view>

#include "api/base/json.h"

namespace lockkeeper {

// Calls `on_item` with the text of each member of the top-level array "items"; answers the rest of the object parsed,
// with "items" empty.
Result<Json> CutList(std::string_view text, const std::function<Status(std::string_view)>& on_item);

}  // namespace lockkeeper
