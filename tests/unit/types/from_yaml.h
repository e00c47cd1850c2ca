// FromYaml: YAML documents as Json, by yaml-cpp: another reader's view of what ToYaml wrote, and the samples.
// Ownership: values. Threads: thread-safe. Failure: broken YAML fails the test that asks.
#pragma once

#include <string>
#include <vector>

#include "api/base/json.h"

namespace lockkeeper {

std::vector<Json> FromYaml(const std::string& text);

}  // namespace lockkeeper
