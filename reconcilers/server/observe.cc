#include "reconcilers/server/observe.h"

#include <algorithm>

#include "api/types/conditions.h"
#include "reconcilers/ports/documents.h"
#include "reconcilers/server/plan.h"
#include "reconcilers/server/rules.h"

namespace lockkeeper::roll {
namespace {

ObjectKey KeyOf(const ServerKey& key) { return {key.ns, key.name}; }

const OperationRecord* OperationOf(const Snapshot& s) {
  return s.record.known() && s.record->operation ? &*s.record->operation : nullptr;
}

// As the API noted it; the status, which the manager writes, may come after the admission.
std::string RequestedBy(const ObjectMeta& meta, const std::string& hint) {
  const auto noted = meta.annotations.find("lockkeeper.dev/requested-by");
  return noted != meta.annotations.end() ? noted->second : hint;
}

Candidate FromUpgrade(const Upgrade& u) {
  Candidate x;
  x.kind = kKindUpgrade;
  x.action = u.spec.action;
  x.version = u.spec.version;
  x.closed = u.status.outcome;
  x.closed_message = u.status.error;
  const Condition* stalled = FindCondition(u.status.conditions, condition::kStalled);
  if (stalled != nullptr && stalled->status == ConditionStatus::kTrue) x.stalled = stalled->message;
  if (!x.closed) x.spec_hash = SpecHash(u);
  x.roll.controls = u.spec.controls;
  x.roll.when_busy = u.spec.when_busy;
  x.roll.mode = u.spec.mode;
  x.roll.requested_by = RequestedBy(u.metadata, u.spec.requested_by);
  return x;
}

Candidate FromRoll(const Roll& r) {
  Candidate x;
  x.kind = kKindRoll;
  x.closed = r.status.outcome;
  if (!x.closed) {  // of one that has ended nobody asks what it wanted
    x.roll = r.spec;
    x.spec_hash = SpecHash(r);
  }
  const OwnerReference* owner = r.metadata.ControllerRef();
  if (owner != nullptr && owner->kind == kKindUpgrade) {
    x.parent_uid = owner->uid;
  } else {
    x.roll.requested_by = RequestedBy(r.metadata, r.spec.requested_by);
  }
  return x;
}

void AddMeta(Candidate& x, const ObjectMeta& meta, Ledger& ledger) {
  x.ns = meta.namespace_;
  x.name = meta.name;
  x.uid = meta.uid;
  x.created = meta.creation_timestamp.value_or(Time{});
  x.generation = meta.generation;
  x.deleting = meta.Deleting();
  x.has_finalizer = meta.HasFinalizer(kFinalizer);
  // Its status says it has ended: there is nothing left to ask the ledger.
  x.recorded =
      x.closed ? Fact<OutcomeRecord>(Absent{}) : Fact<OutcomeRecord>::Of(ledger.FindOutcome(x.kind, x.ns, x.name));
}

template <typename Document>
Fact<Document> ReadDocument(Ledger& ledger, const char* kind, const std::string& ns, const std::string& name) {
  const Result<std::string> text = ledger.GetDocument(kind, ns + "/" + name);
  if (!text.ok()) return Fact<Document>::Of(text.status());
  return Fact<Document>::Of(Document::FromJson(*text));
}

// The Lease is read where the plan may need it; on hold nobody reaches it through the front.
bool WantsLease(const Context& c) {
  if (!c.spec.lease || c.rec.hold || !c.Active().Ready()) return false;
  if (c.HasFront() && !c.FrontOn(c.Active())) return false;
  if (c.op == nullptr || c.op->undoing || c.op->roll_outcome) return true;
  if (!Finished(*c.op, kStepAdmit)) return false;
  const std::string_view step = CurrentStep(*c.op, c.spec.template_.stop.order);
  if (step == kStepPreflight || step == kStepNoteHolder || step == kStepLease) return true;
  // The holder is noted in the pass that begins to stop the old slot, or to hold the front.
  const std::string_view before = c.op->outage ? kStepHold : kStepStopOld;
  if (Started(*c.op, before)) return false;
  return c.op->outage ? Finished(*c.op, kStepNoteHolder) : Finished(*c.op, kStepFlip);
}

// "lk-NS-NAME-SLOT-N" and its companions, of exactly this Server.
bool NamesASlotOf(const ServerKey& key, const std::string& unit, int64_t& incarnation) {
  for (const char* slot : {kBlue, kGreen}) {
    const std::string prefix = "lk-" + key.ns + "-" + key.name + "-" + slot + "-";
    if (unit.rfind(prefix, 0) != 0) continue;
    size_t end = prefix.size();
    while (end < unit.size() && unit[end] >= '0' && unit[end] <= '9') ++end;
    if (end == prefix.size() || (end < unit.size() && unit[end] != '-')) continue;
    incarnation = std::atoll(unit.c_str() + prefix.size());
    return true;
  }
  return false;
}

}  // namespace

Observer::Memory& Observer::MemoryOf(const ServerKey& key) {
  const MutexLock lock(mutex_);
  std::unique_ptr<Memory>& memory = memory_[key];
  if (!memory) memory = std::make_unique<Memory>();
  return *memory;
}

Snapshot Observer::Observe(const ServerKey& key, const Now& now) {
  Memory& memory = MemoryOf(key);
  Snapshot s;
  s.key = key;
  s.ledger = ledger_.Info();
  s.record = Fact<ServerRecord>::Of(ledger_.Get(key));
  s.host.name = host_.name;
  s.host.hostname = host_.hostname;
  s.host.data_dir = host_.data_dir;
  ReadObjects(key, s);
  if (!s.record.known()) return s;
  ReadSlots(s, memory);
  ReadFront(s);
  ReadDocuments(s);
  ReadFiles(s, now);
  ReadPeer(s, now, memory);
  ReadWitnesses(s, memory);
  return s;
}

void Observer::ReadObjects(const ServerKey& key, Snapshot& s) {
  const Result<Server> server = objects_.GetServer(KeyOf(key));
  if (server.ok()) {
    ServerObject object;
    object.uid = server->metadata.uid;
    object.generation = server->metadata.generation;
    object.deleting = server->metadata.Deleting();
    object.has_finalizer = server->metadata.HasFinalizer(kFinalizer);
    object.spec = server->spec;
    object.posted = server->status.ledger;
    s.object = std::move(object);
  } else {
    s.object = Fact<ServerObject>::Of(server.status());
  }
  const Result<std::vector<Upgrade>> upgrades = objects_.UpgradesOf(KeyOf(key));
  const Result<std::vector<Roll>> rolls = objects_.RollsOf(KeyOf(key));
  if (!upgrades.ok() || !rolls.ok()) {
    s.candidates = Unknown{upgrades.ok() ? rolls.status().message() : upgrades.status().message()};
    return;
  }
  std::vector<Candidate> all;
  for (const Upgrade& u : *upgrades) {
    all.push_back(FromUpgrade(u));
    AddMeta(all.back(), u.metadata, ledger_);
  }
  for (const Roll& r : *rolls) {
    all.push_back(FromRoll(r));
    AddMeta(all.back(), r.metadata, ledger_);
  }
  s.candidates = std::move(all);
}

void Observer::ReadSlots(Snapshot& s, Memory& memory) {
  const ServerRecord& rec = *s.record;
  for (const auto& [name, entry] : rec.slots) {
    SlotFacts& facts = s.slots[name];
    const SlotIntent& intent = entry.intent;
    if (intent.incarnation == 0) continue;
    facts.unit = Fact<UnitStatus>::Of(units_.Inspect(intent.unit.name));
    int left = 0;
    bool known = true;
    for (const CompanionIntent& companion : intent.companions) {
      const Result<UnitStatus> unit = units_.Inspect(companion.unit.name);
      if (unit.ok()) ++left;
      if (!unit.ok() && unit.code() != Code::kNotFound) known = false;
    }
    facts.companions = known ? Fact<int>(left) : Fact<int>(Unknown{"a companion could not be looked at"});
    const bool running = facts.unit.known() && facts.unit->state == UnitStatus::State::kRunning;
    const bool ours = entry.actual.incarnation == intent.incarnation && entry.actual.invocation == intent.invocation;
    const bool ending = !intent.running && entry.actual.sigterm_at != Time{};
    if (!running || !ours || ending || entry.actual.port == 0) continue;
    facts.readyz = Fact<ReadyzFact>::Of(peer_.Readyz(rec.spec, entry.actual.port));
    facts.exec_sha256 = Fact<std::string>::Of(units_.ExecutableSha256(facts.unit->id));
  }
  const auto ready = [&](const std::string& name) {
    const auto it = s.slots.find(name);
    return it != s.slots.end() && it->second.readyz.known() && it->second.readyz->status == 200 &&
           !it->second.readyz->shutting_down;
  };
  for (auto& [name, facts] : s.slots) {
    const bool asked = facts.readyz.known() || facts.readyz.why() != "not observed";
    int& tries = memory.unready_tries[name];
    tries = asked && !ready(name) && ready(OtherSlot(name)) ? tries + 1 : 0;
    facts.unready_tries = tries;
    // A try that ended without an answer is a known "not ready" once it has repeated.
    if (facts.readyz.unknown() && asked && tries >= 3) facts.readyz = ReadyzFact{0, false, facts.readyz.why()};
  }
}

void Observer::ReadFront(Snapshot& s) {
  const ServerSpec& spec = s.record->spec;
  if (!spec.front_ref) return;
  s.front = Fact<FrontState>::Of(fronts_.Get(s.key.ns + "/" + spec.front_ref->name));
  const OperationRecord* op = OperationOf(s);
  if (op == nullptr || Finished(*op, kStepPreflight)) return;
  const Result<Front> front = objects_.GetFront({s.key.ns, spec.front_ref->name});
  if (front.ok()) s.front_spec = front->spec;
  const Result<std::vector<ServerKey>> servers = ledger_.Servers();
  if (!servers.ok()) return;
  for (const ServerKey& other : *servers) {
    if (other == s.key || other.ns != s.key.ns) continue;
    const Result<ServerRecord> rec = ledger_.Get(other);
    if (!rec.ok() || rec->released || !rec->spec.front_ref || rec->spec.front_ref->name != spec.front_ref->name)
      continue;
    // The first to be installed keeps it; between two that are not, the name decides.
    const bool first = rec->installed && !s.record->installed;
    const bool tie = rec->installed == s.record->installed && other < s.key;
    if (first || tie) s.front_claimed_by = other.name;
  }
}

void Observer::ReadDocuments(Snapshot& s) {
  const OperationRecord* op = OperationOf(s);
  if (op == nullptr) return;
  const auto note = [&](const char* name) {
    const auto it = op->notes.find(name);
    return it == op->notes.end() ? std::string() : it->second;
  };
  const std::string release = op->spec.release_ref ? op->spec.release_ref->name : note("release");
  if (!release.empty() && !Finished(*op, kStepRender)) {
    const Fact<ReleaseDocument> doc = ReadDocument<ReleaseDocument>(ledger_, kReleaseDocument, s.key.ns, release);
    if (doc.known()) {
      ReleaseFact fact;
      fact.name = release;
      fact.state = static_cast<ReleaseFact::State>(doc->state);
      fact.build = doc->build;
      fact.reason = doc->reason;
      fact.message = doc->message;
      s.release = std::move(fact);
    } else {
      s.release = doc.absent() ? Fact<ReleaseFact>(Absent{}) : Fact<ReleaseFact>(Unknown{doc.why()});
    }
  }
  const std::string backup = BackupOf(*op);
  if (!backup.empty() && !Finished(*op, kStepStart)) {
    const Fact<BackupDocument> doc = ReadDocument<BackupDocument>(ledger_, kBackupDocument, s.key.ns, backup);
    if (doc.known()) {
      BackupFact fact;
      fact.name = backup;
      fact.state = static_cast<BackupFact::State>(doc->state);
      fact.reference = doc->reference;
      fact.started_at = doc->started_at;
      fact.finished_at = doc->finished_at;
      fact.writes_since = doc->writes_since;
      fact.message = doc->message;
      s.backup = std::move(fact);
    } else {
      s.backup = doc.absent() ? Fact<BackupFact>(Absent{}) : Fact<BackupFact>(Unknown{doc.why()});
    }
  }
}

void Observer::ReadFiles(Snapshot& s, const Now& now) {
  const ServerRecord& rec = *s.record;
  const Layout layout = LayoutOf(host_.data_dir, s.key, rec.spec);
  if (rec.incarnations == 0) s.files.base_empty = Fact<bool>::Of(files_.IsEmptyDir(layout.base + "/slots"));
  const OperationRecord* op = OperationOf(s);
  if (op == nullptr || Finished(*op, kStepSeed) || op->undoing) return;
  s.host.free_bytes = Fact<int64_t>::Of(files_.FreeBytes(host_.data_dir));
  if (rec.spec.seed) {
    SeedPlan plan{layout.shared, rec.spec.seed->files, layout.Root(op->to)};
    s.files.missing_shared = Fact<std::vector<std::string>>::Of(files_.MissingShared(plan));
    if (Started(*op, kStepSeed)) s.files.seeded = Fact<bool>::Of(files_.IsSeeded(plan));
  }
  if (Finished(*op, kStepRender) || !Finished(*op, kStepAdmit)) return;
  const Context c(s, now);
  const Result<SlotIntent> rendered = RenderTarget(c);
  if (!rendered.ok()) return;
  const auto look = [&](const UnitSpec& unit) {
    if (unit.argv.empty()) return;
    s.files.commands[unit.argv[0]] = Fact<std::string>::Of(files_.Sha256Executable(unit.argv[0]));
  };
  look(rendered->unit);
  for (const CompanionIntent& companion : rendered->companions) look(companion.unit);
  // In an outage the slot itself has them still.
  if (op->outage) return;
  const auto try_port = [&](const PortSpec& port) {
    if (port.type != PortType::kFixed || !port.fixed) return;
    const int number = static_cast<int>(op->to == kGreen ? port.fixed->green.value_or(0) : port.fixed->blue);
    if (number != 0) s.files.ports[number] = Fact<PortHolder>::Of(units_.HolderOf(number));
  };
  try_port(rec.spec.template_.port);
  for (const auto& companion : rec.spec.template_.companions) try_port(companion.port);
}

void Observer::ReadPeer(Snapshot& s, const Now& now, Memory& memory) {
  const ServerRecord& rec = *s.record;
  const Context c(s, now);
  if (WantsLease(c)) {
    s.lease.lease = Fact<LeaseFact>::Of(peer_.GetLease(rec.spec));
    if (s.lease.lease.known()) {
      const LeaseFact& lease = *s.lease.lease;
      const std::string mark =
          lease.uid + " " + lease.holder + " " + std::to_string(lease.renew_time.time_since_epoch().count());
      if (mark != memory.lease_mark || memory.lease_since.boot_id != now.boot_id) {
        memory.lease_mark = mark;
        memory.lease_since = now;
      }
      // Known to stand unchanged up to the reading, which may be of an earlier pass.
      const Duration age = std::max(Duration::zero(), now.wall - lease.read_at);
      s.lease.unchanged_for = std::max(Duration::zero(), now.boot - memory.lease_since.boot - age);
    }
  }
  const bool probing = c.op != nullptr && Started(*c.op, kStepProbe) && !Finished(*c.op, kStepProbe);
  if (probing && !rec.probe_name.empty()) s.probe = Fact<ProbeFact>::Of(peer_.GetProbe(rec.spec, rec.probe_name));
}

void Observer::ReadWitnesses(Snapshot& s, Memory& memory) {
  const ServerRecord& rec = *s.record;
  // Read again, after the witnesses: what they carry may have been committed meanwhile.
  s.ledger = ledger_.Info();
  if (s.object.known() && s.object->posted && s.object->uid == rec.uid) {
    s.witnesses.push_back({"Server.status", s.object->posted->id, s.object->posted->revision});
  }
  if (s.front.known() && s.front->target && !s.front->target->ledger_id.empty()) {
    s.witnesses.push_back(
        {"the front " + rec.spec.front_ref->name, s.front->target->ledger_id, s.front->target->revision});
  }
  if (memory.swept && rec.incarnations != 0) return;
  const Result<std::vector<std::string>> units = units_.List();
  if (!units.ok()) return;
  memory.swept = true;
  for (const std::string& unit : *units) {
    int64_t incarnation = 0;
    if (NamesASlotOf(s.key, unit, incarnation) && incarnation > rec.incarnations) s.unrecorded_units.push_back(unit);
  }
}

}  // namespace lockkeeper::roll
