// Yaml: prints a Json value as YAML, in the members' order.
//
// Purpose:   crd/ and the samples; printing only.
// Ownership: values. Threads: thread-safe. Failure: none.
#pragma once

#include <string>

#include "api/base/json.h"

namespace lockkeeper {

// Block style, indented by 2, lists not indented below their key; strings are quoted where YAML 1.1 would read them
// as something else; long text is folded at 110 columns. Ends with a line break.
std::string ToYaml(const Json& value);

}  // namespace lockkeeper
