// Cases: whole operations, each with what the world must look like at its end. Run in fixed order for the golden logs,
// in random orders, and with a fault at every call.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "tests/sequence/scenario.h"

namespace lockkeeper::sequence {

struct Case {
  std::string name;
  std::function<void(ServerSpec&)> spec;      // before the install; may be empty
  std::function<void(Scenario&)> begin;       // after it: builds, objects
  std::function<void(Scenario&)> each_round;  // a person, or the world, meanwhile; may be empty
  std::string operation = "r1";               // ended when it has an outcome
  Outcome outcome = Outcome::kSucceeded;
  std::string reason;  // of the outcome; "": any
  std::string active;  // slot at the end
  std::string version;
  bool faults = true;  // also run with a fault at every call
};

inline void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

const std::vector<Case>& Cases();

// Runs a case from an installed Server to its end, checks the end. "" when all is well, else what is not.
std::string RunCase(Scenario& s, const Case& c);
// A Server of the case, installed; made once.
const Scenario& InstalledFor(const Case& c);

// Compares with golden/NAME.txt; with LK_UPDATE_GOLDEN in the environment it is written instead.
std::string CompareGolden(const std::string& name, const std::string& text);

}  // namespace lockkeeper::sequence
