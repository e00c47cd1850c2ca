// The kinds that the embedded server serves beside ours, without a schema of their own.
// Ownership: values. Threads: thread-safe. Failure: none.
#pragma once

#include "api/types/kind.h"

namespace lockkeeper::types_internal {

std::vector<KindInfo> BuiltinKinds();

}  // namespace lockkeeper::types_internal
