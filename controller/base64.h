// Base64: the standard alphabet with padding, as Kubernetes writes bytes into JSON.
// Threads: thread-safe. Failure: kInvalid at the first character that does not belong; line breaks are skipped.
#pragma once

#include <string>
#include <string_view>

#include "api/base/status.h"

namespace lockkeeper {

std::string Base64Encode(std::string_view data);
Result<std::string> Base64Decode(std::string_view text);

}  // namespace lockkeeper
