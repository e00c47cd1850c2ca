// Texts of kube-apiserver's field errors, and the patterns they quote.
// Ownership: values. Threads: thread-safe. Failure: a broken pattern aborts: a defect of ours.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/types/kind.h"

namespace lockkeeper::types_internal {

// A value as kube-apiserver prints it in an error: strings as Go quotes them, the rest as JSON.
std::string GoValue(const Json& value);
std::string GoQuote(std::string_view text);

FieldError InvalidError(std::string field, const Json& value, std::string_view why);
FieldError TypeError(std::string field, const Json& value, std::string_view why);
FieldError RequiredError(std::string field);
FieldError NotSupportedError(std::string field, const Json& value, const std::vector<std::string>& supported);
FieldError DuplicateError(std::string field, const Json& value);
FieldError TooLongError(std::string field, int64_t maximum);
FieldError TooManyError(std::string field, int64_t found, int64_t maximum);

// POSIX extended expressions, compiled once each; matched anywhere in `text` unless anchored.
bool MatchesPattern(const std::string& pattern, std::string_view text);

}  // namespace lockkeeper::types_internal
