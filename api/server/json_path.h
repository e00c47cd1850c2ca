// JsonPath: the JSON paths of printer columns.
//
// Purpose:   `.status.conditions[?(@.type=="Ready")].status`, `[0]`, `[-1]`, `[*]`, `..type`, `.labels.a\.b/c`.
// Ownership: values; results point into the object. Threads: immutable. Failure: kInvalid; a caller then leaves its
// column out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/base/json.h"
#include "api/base/status.h"

namespace lockkeeper::apiserver {

class JsonPath {
 public:
  static Result<JsonPath> Parse(std::string_view text);
  // All values it leads to, in order.
  std::vector<const Json*> Find(const Json& object) const;

 private:
  struct Step {
    enum class Kind { kMember, kIndex, kAll, kDescend, kFilter } kind = Kind::kMember;
    std::string name;        // kMember, kDescend
    int64_t index = 0;       // kIndex
    std::vector<Step> left;  // kFilter: path behind @
    std::string op;          // "" : exists
    Json right;
  };
  class Parser;
  static void Apply(const std::vector<Step>& steps, size_t at, const Json& value, std::vector<const Json*>& out);
  static bool Holds(const Step& filter, const Json& item);

  std::vector<Step> steps_;
};

}  // namespace lockkeeper::apiserver
