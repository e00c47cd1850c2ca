// Identifiers: UUIDs, ULIDs and random text from the kernel's generator.
// Threads: thread-safe. Failure: the kernel's generator failing aborts.
#pragma once

#include <string>
#include <string_view>

#include "api/base/time.h"

namespace lockkeeper {

std::string NewUuid();          // version 4, lower case
std::string NewUlid(Time now);  // 26 characters, sorts by time
bool IsUlid(std::string_view text);
std::string RandomHex(size_t bytes);    // 2 characters a byte
std::string RandomName(size_t length);  // lower-case letters and digits as generateName uses (no vowels)

}  // namespace lockkeeper
