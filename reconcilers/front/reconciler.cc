#include "reconcilers/front/reconciler.h"

#include <algorithm>

#include "api/base/file.h"
#include "api/base/log.h"
#include "controller/typed.h"
#include "reconcilers/server/plan.h"

namespace lockkeeper::fronts {
namespace {

// More than a start, a target and a claim take; what is left comes with the next pass.
constexpr int kMaxSteps = 12;
// Counts of connections change all the time.
constexpr Duration kCountsEvery = Seconds(5);
constexpr int kTermSignal = 15;

std::string SeenOf(const Snapshot& s, const Plan& plan) {
  std::string seen = plan.verdict.reason + "|" + plan.verdict.message;
  if (const FrontState* f = s.state.get()) {
    seen += "|" + std::to_string(f->generation) + "|" + std::to_string(f->pid);
    seen += "|" + std::to_string(f->held) + "|" + std::to_string(f->drained_total);
    for (const auto& b : f->open) {
      seen += "|" + b.slot + "#" + std::to_string(b.incarnation) + "=" + std::to_string(b.open);
    }
  }
  return seen;
}

}  // namespace

Fact<std::vector<Claim>> Reconciler::ReadClaims(const ObjectKey& key, const LedgerInfo& ledger) {
  const Result<std::vector<ServerKey>> servers = deps_.ledger.Servers();
  if (!servers.ok()) return Unknown{servers.status().message()};
  std::vector<Claim> claims;
  for (const ServerKey& server : *servers) {
    if (server.ns != key.namespace_) continue;
    const Result<ServerRecord> record = deps_.ledger.Get(server);
    if (record.code() == Code::kNotFound) continue;
    if (!record.ok()) return Unknown{record.status().message()};
    if (record->released || !record->spec.front_ref || record->spec.front_ref->name != key.name) continue;
    claims.push_back(
        {server.name, record->uid, roll::WantedFrontTarget(*record, deps_.clock.Read(), ledger), record->stopped});
  }
  std::sort(claims.begin(), claims.end(), [](const Claim& a, const Claim& b) { return a.server < b.server; });
  return claims;
}

Snapshot Reconciler::Observe(const ObjectKey& key, Fact<Front> object) {
  Snapshot s;
  s.ns = key.namespace_;
  s.name = key.name;
  s.paths = deps_.paths;
  s.ledger = deps_.ledger.Info();  // first: see the snapshot
  s.object = std::move(object);
  const Result<std::string> text = deps_.ledger.GetDocument(kFrontDocument, key.ToString());
  s.document = Fact<FrontDocument>::Of(text.ok() ? FrontDocument::FromJson(*text) : text.status());
  s.claims = ReadClaims(key, s.ledger);
  if (!s.document.known()) return s;
  s.config = Fact<std::string>::Of(ReadFile(FrontConfigPath(s.paths, s.ns, s.name)));
  s.state = Fact<FrontState>::Of(deps_.admin.Get(key.ToString()));
  s.unit = InspectUnit(key, s);
  // Without a process its socket is nobody's.
  if (!s.unit.known() || s.unit->state != UnitStatus::State::kRunning) s.state = Absent{};
  return s;
}

// A look at a unit reads its folder and its process's sockets. A front that answers with the process seen before is the
// proof that it runs, so a flip does without.
Fact<UnitStatus> Reconciler::InspectUnit(const ObjectKey& key, const Snapshot& s) {
  {
    const MutexLock lock(mutex_);
    const auto it = units_.find(key);
    if (it != units_.end() && s.state.known() && s.state->pid == it->second.id.pid &&
        s.document->invocation == it->second.id.invocation) {
      return it->second;
    }
  }
  Fact<UnitStatus> unit = Fact<UnitStatus>::Of(deps_.units.Inspect(FrontUnitName(s.ns, s.name)));
  const MutexLock lock(mutex_);
  if (unit.known() && unit->state == UnitStatus::State::kRunning) {
    units_[key] = *unit;
  } else {
    units_.erase(key);
  }
  return unit;
}

Status Reconciler::Act(const ObjectKey& key, const Snapshot& s, const Plan& plan) {
  const std::string name = key.ToString();
  if (const auto* commit = std::get_if<Commit>(&plan.step)) {
    return deps_.ledger.PutDocument(kFrontDocument, name, commit->next.ToJson().Dump());
  }
  if (std::holds_alternative<ForgetDocument>(plan.step)) return deps_.ledger.RemoveDocument(kFrontDocument, name);
  if (const auto* config = std::get_if<WriteConfig>(&plan.step)) {
    LK_RETURN_IF_ERROR(MakeDirs(DirName(config->path), 0700));
    return WriteFileAtomic(config->path, config->text, 0600);
  }
  if (const auto* start = std::get_if<StartFront>(&plan.step)) {
    const Status status = deps_.units.Start(start->unit, start->invocation);
    if (status.ok()) return status;
    // A refused start is a fact of the unit from then on, and has its condition; only one that left none is an error.
    const Result<UnitStatus> unit = deps_.units.Inspect(start->unit.name);
    const bool told = unit.ok() && unit->id.invocation == start->invocation && !unit->failure.ok();
    return told ? Status::Ok() : status;
  }
  if (const auto* stop = std::get_if<StopFront>(&plan.step)) {
    return stop->kill ? deps_.units.Kill(stop->id) : deps_.units.Terminate(stop->id, kTermSignal);
  }
  if (const auto* reset = std::get_if<ResetFront>(&plan.step)) return deps_.units.Reset(reset->unit);
  if (const auto* set = std::get_if<SetTarget>(&plan.step)) {
    const Result<FrontState> state = deps_.admin.Set(name, set->target);
    if (!state.ok()) return state.status();
    deps_.event(key, false, set->target.hold ? "FrontHolding" : "Flipped",
                set->target.hold ? "new connections are held"
                                 : "new connections go to slot " + set->target.slot + " at " + set->target.address);
    return Status::Ok();
  }
  if (std::holds_alternative<RestartFront>(plan.step)) {
    deps_.event(key, false, "Restarted", "the front's process is restarted, as asked");
    return deps_.restart(name);
  }
  (void)s;
  return Status::Ok();
}

Result<Duration> Reconciler::Converge(const ObjectKey& key) {
  for (int i = 0; i < kMaxSteps; ++i) {
    const Snapshot s = Observe(key, deps_.object(key));
    const Plan plan = Decide(s, deps_.clock.Read());
    const std::string server = s.document.known() ? s.document->claimed_by : std::string();
    const std::string seen = SeenOf(s, plan);
    bool news = plan.object_step != ObjectStep::kNone;
    {
      const MutexLock lock(mutex_);
      std::string& before = seen_[key];
      news = news || before != seen;
      before = seen;
    }
    if (news) deps_.changed(key, server);
    if (std::holds_alternative<std::monostate>(plan.step)) return plan.requeue_after;
    LogInfo("front step", {{"front", key.ToString()}, {"step", plan.why}});
    LK_RETURN_IF_ERROR(Act(key, s, plan).Annotate(plan.why));
    // An ended process is waited for, not asked again.
    if (std::holds_alternative<StopFront>(plan.step) || std::holds_alternative<RestartFront>(plan.step)) {
      return plan.requeue_after;
    }
  }
  return Milliseconds(1);
}

Result<Duration> Reconciler::Mirror(const ObjectKey& key) {
  const Result<Front> object = Get<Front>(deps_.api, key);
  if (object.code() == Code::kNotFound) return Duration{};
  if (!object.ok()) return object.status();
  if (object->spec.host != deps_.paths.host) return Duration{};
  const Now now = deps_.clock.Read();
  const Snapshot s = Observe(key, *object);
  const Plan plan = Decide(s, now);
  if (plan.object_step != ObjectStep::kNone) {
    std::vector<std::string> finalizers = object->metadata.finalizers;
    if (plan.object_step == ObjectStep::kAddFinalizer) {
      finalizers.emplace_back(kFinalizer);
    } else {
      finalizers.erase(std::remove(finalizers.begin(), finalizers.end(), kFinalizer), finalizers.end());
    }
    Json list = Json::MakeArray();
    for (std::string& f : finalizers) list.Push(std::move(f));
    // The whole list under a resourceVersion: a stale write is refused.
    const Json patch =
        Json::MakeObject({{"metadata", Json::MakeObject({{"resourceVersion", object->metadata.resource_version},
                                                         {"finalizers", std::move(list)}})}});
    const Status status = deps_.api.Patch(ResourceOf<Front>(), key, PatchType::kMerge, patch, "").status();
    if (status.code() == Code::kNotFound) return Duration{};
    LK_RETURN_IF_ERROR(status.Annotate("write the front's finalizer"));
    if (plan.object_step == ObjectStep::kRemoveFinalizer) return Duration{};
    return Milliseconds(1);
  }
  FrontStatus after = Summarize(s, plan, now);
  if (after == object->status) return Duration{};
  if (!DiffersInSubstance(after, object->status)) {
    const MutexLock lock(mutex_);
    const auto it = written_.find(key);
    if (it != written_.end() && it->second.boot_id == now.boot_id && now.boot - it->second.boot < kCountsEvery) {
      return kCountsEvery - (now.boot - it->second.boot);
    }
  }
  const Condition* before = FindCondition(object->status.conditions, condition::kStalled);
  const Condition* stalled = FindCondition(after.conditions, condition::kStalled);
  const bool news = stalled != nullptr && (before == nullptr || before->reason != stalled->reason);
  const std::string reason = news ? stalled->reason : std::string();
  const std::string message = news ? stalled->message : std::string();
  Front updated = *object;
  updated.status = std::move(after);
  LK_RETURN_IF_ERROR(UpdateStatus<Front>(deps_.api, updated).status());
  {
    const MutexLock lock(mutex_);
    written_[key] = now;
  }
  if (news) deps_.event(key, true, reason, message);
  return Duration{};
}

std::vector<ObjectKey> Reconciler::FrontsOf(const ServerKey& server) {
  std::vector<ObjectKey> fronts;
  const Result<ServerRecord> record = deps_.ledger.Get(server);
  const MutexLock lock(mutex_);
  const auto last = last_front_.find(server.ToString());
  if (last != last_front_.end()) fronts.push_back(last->second);
  if (record.ok() && record->spec.front_ref) {
    const ObjectKey now{server.ns, record->spec.front_ref->name};
    if (fronts.empty() || fronts.front() != now) fronts.push_back(now);
    last_front_[server.ToString()] = now;
  }
  return fronts;
}

Result<std::vector<ObjectKey>> Reconciler::Known() {
  std::vector<ObjectKey> keys;
  LK_ASSIGN_OR_RETURN(const auto documents, deps_.ledger.ListDocuments(kFrontDocument));
  for (const auto& [name, text] : documents) {
    const size_t slash = name.find('/');
    if (slash != std::string::npos) keys.push_back({name.substr(0, slash), name.substr(slash + 1)});
  }
  return keys;
}

}  // namespace lockkeeper::fronts
