#include "reconcilers/heartbeat/heartbeat.h"

#include "api/base/json.h"

namespace lockkeeper {
namespace {

constexpr char kLedgerId[] = "lockkeeper.dev/ledger-id";
constexpr char kLedgerRevision[] = "lockkeeper.dev/ledger-revision";
constexpr char kMachineId[] = "lockkeeper.dev/machine-id";
constexpr char kBootId[] = "lockkeeper.dev/boot-id";
constexpr char kPosted[] = "lockkeeper.dev/posted";

std::string Annotation(const Lease& lease, const char* key) {
  const auto it = lease.metadata.annotations.find(key);
  return it == lease.metadata.annotations.end() ? std::string() : it->second;
}

int64_t ParseRevision(const std::string& text) {
  const Result<Json> json = Json::Parse(text);
  return json.ok() ? json->AsInt() : 0;
}

}  // namespace

std::string HeartbeatName(const std::string& host) { return "host-" + host; }

Lease HeartbeatLease(const HeartbeatContent& content, const Lease* old, const Now& now) {
  Lease lease;
  if (old != nullptr) lease = *old;
  lease.metadata.name = HeartbeatName(content.host);
  lease.metadata.namespace_ = kSystemNamespace;
  if (lease.spec.holder_identity != content.identity) {
    lease.spec.acquire_time = now.wall;
    lease.spec.lease_transitions = old == nullptr ? 0 : lease.spec.lease_transitions.value_or(0) + 1;
  }
  lease.spec.holder_identity = content.identity;
  lease.spec.lease_duration_seconds = static_cast<int64_t>(ToSeconds(kHostLostAfter));
  lease.spec.renew_time = now.wall;
  Json posted = Json::MakeObject();
  for (const auto& [uid, revision] : content.posted) posted.Set(uid, revision);
  auto& annotations = lease.metadata.annotations;
  annotations[kLedgerId] = content.ledger_id;
  annotations[kLedgerRevision] = std::to_string(content.ledger_revision);
  annotations[kMachineId] = content.machine_id;
  annotations[kBootId] = content.boot_id;
  annotations[kPosted] = posted.Dump();
  return lease;
}

HeartbeatContent ParseHeartbeat(const Lease& lease) {
  HeartbeatContent content;
  const std::string prefix = HeartbeatName("");
  if (lease.metadata.name.starts_with(prefix)) content.host = lease.metadata.name.substr(prefix.size());
  content.identity = lease.spec.holder_identity;
  content.ledger_id = Annotation(lease, kLedgerId);
  content.ledger_revision = ParseRevision(Annotation(lease, kLedgerRevision));
  content.machine_id = Annotation(lease, kMachineId);
  content.boot_id = Annotation(lease, kBootId);
  const Result<Json> posted = Json::Parse(Annotation(lease, kPosted));
  if (posted.ok()) {
    for (const auto& [uid, revision] : posted->AsObject()) content.posted[uid] = revision.AsInt();
  }
  return content;
}

HeartbeatJudgement JudgeHeartbeat(const Fact<Lease>& lease, const HeartbeatContent& self, Duration silent_for,
                                  bool take_over) {
  if (lease.unknown()) return {HeartbeatVerdict::kUnknown, lease.why()};
  if (lease.absent()) return {HeartbeatVerdict::kOurs, ""};
  const HeartbeatContent other = ParseHeartbeat(*lease);
  if (other.ledger_id.empty()) return {HeartbeatVerdict::kOurs, ""};
  if (other.ledger_id == self.ledger_id) {
    if (other.ledger_revision > self.ledger_revision) {
      return {HeartbeatVerdict::kLedgerOlder,
              "the ledger is at revision " + std::to_string(self.ledger_revision) + ", but this host had posted " +
                  std::to_string(other.ledger_revision) + ": it was put back from an older copy"};
    }
    return {HeartbeatVerdict::kOurs, ""};
  }
  if (other.machine_id == self.machine_id && !self.machine_id.empty()) {
    return {HeartbeatVerdict::kLedgerLost, "host " + self.host + " posted with ledger " + other.ledger_id +
                                               ", but the ledger opened here is " + self.ledger_id};
  }
  if (take_over && silent_for >= kHostLostAfter) return {HeartbeatVerdict::kOurs, ""};
  return {HeartbeatVerdict::kHostNameTaken,
          "host name " + self.host + " is in use by " + other.identity + " with ledger " + other.ledger_id +
              "; give this agent another --host, or start it with --take-over once the other has been silent for 40 s"};
}

void HostTracker::Observe(const std::string& host, const Fact<Lease>& lease, Duration at) {
  if (lease.unknown()) return;
  auto [it, first] = hosts_.try_emplace(host);
  Seen& seen = it->second;
  const std::string fingerprint = lease.known() ? lease->metadata.uid + "/" + lease->metadata.resource_version : "";
  if (first) {
    seen.first = seen.last_change = at;
  } else if (fingerprint != seen.fingerprint) {
    seen.last_change = at;
    // The Lease going away is a change of the object, not a beat.
    seen.changed = lease.known();
  }
  seen.fingerprint = fingerprint;
  seen.present = lease.known();
  if (lease.known()) seen.content = ParseHeartbeat(*lease);
}

HostTracker::State HostTracker::Of(const std::string& host, Duration at) const {
  const auto it = hosts_.find(host);
  if (it == hosts_.end()) return State::kUndetermined;
  const Seen& seen = it->second;
  const Duration quiet = at - seen.last_change;
  if (!seen.present) return quiet >= kHostUnknownAfter ? State::kNeverSeen : State::kUndetermined;
  if (quiet >= kHostLostAfter) return State::kLost;
  return seen.changed ? State::kFresh : State::kUndetermined;
}

Duration HostTracker::ChangesIn(const std::string& host, Duration at) const {
  const auto it = hosts_.find(host);
  if (it == hosts_.end()) return {};
  const Seen& seen = it->second;
  const Duration limit = seen.present ? kHostLostAfter : kHostUnknownAfter;
  const Duration left = limit - (at - seen.last_change);
  return left > Duration::zero() ? left : Duration::zero();
}

int64_t HostTracker::Posted(const std::string& host, const std::string& server_uid) const {
  const auto it = hosts_.find(host);
  if (it == hosts_.end()) return 0;
  const auto posted = it->second.content.posted.find(server_uid);
  return posted == it->second.content.posted.end() ? 0 : posted->second;
}

const std::string& HostTracker::LedgerId(const std::string& host) const {
  static const std::string none;
  const auto it = hosts_.find(host);
  return it == hosts_.end() ? none : it->second.content.ledger_id;
}

}  // namespace lockkeeper
