#include "reconcilers/front/target_rules.h"

#include <algorithm>

#include "api/base/hash.h"
#include "reconcilers/front/front_json.h"
#include "reconcilers/front/socket_ops.h"

namespace lockkeeper::front {
namespace {

constexpr int kStateVersion = 1;
// Ledgers of one host: more than one only after a lost ledger was rebuilt.
constexpr size_t kMaxLedgers = 16;

std::string Describe(const FrontTarget& t) {
  return t.hold ? std::string("hold") : t.slot + "#" + std::to_string(t.incarnation) + " at " + t.address;
}

void Remember(std::map<std::string, int64_t>& revisions, const FrontTarget& t) {
  revisions[t.ledger_id] = std::max(revisions[t.ledger_id], t.revision);
  while (revisions.size() > kMaxLedgers) {
    auto oldest = revisions.end();
    for (auto it = revisions.begin(); it != revisions.end(); ++it) {
      if (it->first != t.ledger_id && (oldest == revisions.end() || it->second < oldest->second)) oldest = it;
    }
    revisions.erase(oldest);
  }
}

}  // namespace

Status CheckTarget(const FrontTarget& t) {
  if (t.ledger_id.empty()) return {Code::kInvalid, "target without ledgerID: its revision means nothing without it"};
  if (t.revision < 0) return {Code::kInvalid, "target with revision " + std::to_string(t.revision) + ", below 0"};
  if (t.hold) return Status::Ok();
  if (t.slot.empty() || t.incarnation <= 0) return {Code::kInvalid, "target without slot or incarnation"};
  const auto address = ParseAddress(t.address);
  if (!address.ok()) return address.status().Annotate("target's address");
  if (address->Port() == 0) return {Code::kInvalid, "target's address " + t.address + " has port 0"};
  return Status::Ok();
}

Result<SetDecision> DecideSet(const TargetState& now, const FrontTarget& wanted, const std::string& boot_id) {
  LK_RETURN_IF_ERROR(CheckTarget(wanted));
  if (!wanted.hold && wanted.boot_id != boot_id) {
    return Status(Code::kPrecondition, "set " + Describe(wanted) + ": made on boot " + wanted.boot_id +
                                           ", this is boot " + boot_id + "; observe the host again");
  }
  SetDecision d;
  d.next = now;
  const auto known = now.revisions.find(wanted.ledger_id);
  const int64_t seen = known == now.revisions.end() ? -1 : known->second;
  if (now.target && now.target->SameBackend(wanted)) {
    // A late repeat changes nothing and must not lower what was seen.
    if (now.target->ledger_id == wanted.ledger_id && wanted.revision <= seen) return d;
    d.next.target = wanted;
    Remember(d.next.revisions, wanted);
    d.next.target->revision = d.next.revisions[wanted.ledger_id];
    d.persist = true;
    return d;
  }
  if (wanted.revision < seen) {
    return Status(Code::kPrecondition, "set " + Describe(wanted) + ": revision " + std::to_string(wanted.revision) +
                                           " is older than " + std::to_string(seen) +
                                           " of the same ledger, which set " +
                                           (now.target ? Describe(*now.target) : std::string("nothing that is left")) +
                                           "; read the ledger again");
  }
  d.next.target = wanted;
  ++d.next.generation;
  Remember(d.next.revisions, wanted);
  d.changed = true;
  d.persist = true;
  return d;
}

TargetState Resume(TargetState stored, const std::string& boot_id) {
  // A hold is no backend that could have become somebody else's, but after a reboot nothing runs: the agent decides.
  if (stored.target && stored.target->boot_id != boot_id) stored.target.reset();
  return stored;
}

bool IsCurrent(const std::optional<FrontTarget>& target, const std::string& slot, int64_t incarnation) {
  return target && !target->hold && target->slot == slot && target->incarnation == incarnation;
}

std::string EncodeState(const TargetState& s) {
  Json state = Json::MakeObject();
  if (s.target) state.Set("target", TargetToJson(*s.target));
  state.Set("generation", s.generation);
  Json revisions = Json::MakeObject();
  for (const auto& [ledger, revision] : s.revisions) revisions.Set(ledger, revision);
  state.Set("revisions", std::move(revisions));
  const std::string checksum = Sha256Hex(state.DumpCanonical());
  return Json::MakeObject({{"version", kStateVersion}, {"state", std::move(state)}, {"checksum", checksum}})
             .DumpPretty() +
         "\n";
}

Result<TargetState> DecodeState(std::string_view text) {
  auto json = Json::Parse(text);
  if (!json.ok()) return Status(Code::kCorrupt, json.status().message());
  if (json->Get("version").AsInt() != kStateVersion) {
    return Status(Code::kCorrupt, "version " + json->Get("version").Dump() + " is unknown to this build, which knows " +
                                      std::to_string(kStateVersion));
  }
  const Json& state = json->Get("state");
  if (!state.IsObject() || json->Get("checksum").AsString() != Sha256Hex(state.DumpCanonical())) {
    return Status(Code::kCorrupt, "the checksum does not match");
  }
  TargetState s;
  if (const Json* target = state.Find("target")) {
    auto parsed = TargetFromJson(*target);
    if (!parsed.ok()) return Status(Code::kCorrupt, parsed.status().message());
    s.target = std::move(*parsed);
  }
  s.generation = state.Get("generation").AsInt();
  for (const auto& [ledger, revision] : state.Get("revisions").AsObject()) s.revisions[ledger] = revision.AsInt();
  return s;
}

}  // namespace lockkeeper::front
