#include "reconcilers/server/snapshot.h"

namespace lockkeeper::roll {
namespace {

template <typename T, typename Show>
std::string ShowFact(const Fact<T>& fact, Show show) {
  if (fact.known()) return show(*fact);
  return fact.absent() ? "absent" : "unknown(" + fact.why() + ")";
}

std::string ShowUnit(const UnitStatus& u) {
  const char* state = u.state == UnitStatus::State::kRunning    ? "running"
                      : u.state == UnitStatus::State::kPrepared ? "prepared"
                                                                : "exited";
  return std::string(state) + " #" + std::to_string(u.id.invocation) + " pid " + std::to_string(u.id.pid);
}

}  // namespace

std::string DebugString(const Snapshot& s) {
  std::string out = "Server " + s.key.ToString() + "\n";
  if (!s.record.known()) return out + "  record " + (s.record.absent() ? "absent" : s.record.why()) + "\n";
  const ServerRecord& r = *s.record;
  out += "  record rev " + std::to_string(r.revision) + " active=" + r.active + (r.hold ? " hold" : "") + "\n";
  for (const auto& [name, entry] : r.slots) {
    const SlotIntent& i = entry.intent;
    out += "  slot " + name + ": #" + std::to_string(i.incarnation) + "." + std::to_string(i.invocation) +
           (i.running ? " wanted" : " unwanted") + (i.forget ? " forget" : "") + " " + i.build.version;
    const auto facts = s.slots.find(name);
    if (facts != s.slots.end()) {
      out += " unit=" + ShowFact(facts->second.unit, ShowUnit) +
             " readyz=" + ShowFact(facts->second.readyz, [](const ReadyzFact& f) { return std::to_string(f.status); });
    }
    out += "\n";
  }
  if (r.operation) {
    const OperationRecord& op = *r.operation;
    out += "  operation " + op.kind + " " + op.name + " step=" + op.step + (op.undoing ? " undoing" : "") + "\n";
  }
  out += "  front " +
         ShowFact(s.front,
                  [](const FrontState& f) {
                    if (!f.target) return std::string("never set");
                    return f.target->hold ? std::string("hold") : f.target->slot + " " + f.target->address;
                  }) +
         "\n";
  out += "  lease " + ShowFact(s.lease.lease, [](const LeaseFact& l) { return l.holder; }) + "\n";
  return out;
}

}  // namespace lockkeeper::roll
