// Yaml: YAML text to Json, and the only door to the YAML library.
//
// Purpose:   read kubeconfigs and manifests as kubectl does: plain scalars by the YAML 1.1 rules that Go's library
//            uses for Kubernetes (yes/no/on/off are booleans, 0644 is octal), quoted ones are strings, "<<" merges.
// Ownership: values.
// Threads:   thread-safe.
// Failure:   kInvalid with line and column. A key that stands twice, nesting deeper than 100 and more than
//            100000 values (aliases of aliases) are refused. No exception leaves.
#pragma once

#include <string>
#include <vector>

#include "api/base/json.h"

namespace lockkeeper {

// One document; an empty text is null. `source` names the text in errors.
Result<Json> ParseYaml(const std::string& text, const std::string& source);
// All documents of a stream; empty ones are left out.
Result<std::vector<Json>> ParseYamlStream(const std::string& text, const std::string& source);

}  // namespace lockkeeper
