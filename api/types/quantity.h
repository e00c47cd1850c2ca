// Quantities as Kubernetes writes them, in numbers.
// Ownership: values. Threads: thread-safe. Failure: kInvalid names the text.
#pragma once

#include <cstdint>
#include <string_view>

#include "api/base/status.h"

namespace lockkeeper {

// "2", "0.5", "500m": thousandths of a CPU.
Result<int64_t> ParseCpuMillis(std::string_view text);
// "1048576", "512Mi", "2G": bytes.
Result<int64_t> ParseByteQuantity(std::string_view text);

}  // namespace lockkeeper
