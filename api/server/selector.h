// Label and field selectors.
//
// Purpose:   `app=x,tier in (a,b),!gone` on labels; `metadata.name=x,involvedObject.kind!=Roll` on fields.
// Ownership: values. Threads: pure. Failure: kInvalid with a message for a 400.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/base/json.h"
#include "api/base/status.h"
#include "api/types/kind.h"

namespace lockkeeper::apiserver {

class LabelSelector {
 public:
  static Result<LabelSelector> Parse(std::string_view text);
  bool empty() const { return requirements_.empty(); }
  // `labels`: metadata.labels, or null.
  bool Matches(const Json& labels) const;

 private:
  enum class Op { kIn, kNotIn, kExists, kNotExists };
  struct Requirement {
    std::string key;
    Op op = Op::kIn;
    std::vector<std::string> values;
  };
  std::vector<Requirement> requirements_;
};

class FieldSelector {
 public:
  // metadata.name and metadata.namespace of all kinds; of Events, Secrets and Namespaces what kube-apiserver knows.
  static Result<FieldSelector> Parse(std::string_view text, const KindInfo& kind);
  bool empty() const { return requirements_.empty(); }
  bool Matches(const Json& object) const;
  // The value that metadata.name / metadata.namespace must have, or "": a list then reads one key.
  const std::string& name() const { return name_; }
  const std::string& ns() const { return ns_; }

 private:
  struct Requirement {
    std::vector<std::string> path;
    bool equals = true;
    std::string value;
  };
  std::vector<Requirement> requirements_;
  std::string name_;
  std::string ns_;
};

}  // namespace lockkeeper::apiserver
