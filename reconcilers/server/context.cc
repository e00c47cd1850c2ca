#include "reconcilers/server/context.h"

#include <algorithm>
#include <cstdio>

namespace lockkeeper::roll {

std::string_view LifeName(Life life) {
  switch (life) {
    case Life::kNone: return "None";
    case Life::kStarting: return "Starting";
    case Life::kRunning: return "Running";
    case Life::kDead: return "Dead";
    case Life::kNeverStarted: return "NeverStarted";
    case Life::kStartFailed: return "StartFailed";
    case Life::kForeign: return "Foreign";
    case Life::kStopping: return "Stopping";
    case Life::kGone: return "Gone";
    case Life::kUnknown: return "Unknown";
  }
  return "";
}

std::string SecondsText(Duration d) {
  char text[32];
  std::snprintf(text, sizeof text, d < Seconds(10) ? "%.1f s" : "%.0f s", ToSeconds(d));
  return text;
}

std::string ExitText(const SlotActual& actual, const UnitStatus* unit) {
  std::optional<UnitExit> exit = actual.exit;
  if (unit != nullptr && unit->exit && unit->id.invocation == actual.invocation) exit = unit->exit;
  if (actual.stop_reason == StopReason::kHostReboot) return "it ended with the host";
  if (!exit) return "it is gone without an exit record";
  if (exit->oom) return "killed: out of memory";
  if (exit->signal != 0) return "ended by signal " + std::to_string(exit->signal);
  return "exit code " + std::to_string(exit->code);
}

Context::Context(const Snapshot& snapshot, const Now& now_)
    : s(snapshot),
      now(now_),
      rec(*snapshot.record),
      spec(rec.spec),
      op(rec.operation ? &*rec.operation : nullptr),
      layout(LayoutOf(snapshot.host.data_dir, snapshot.key, rec.spec)) {}

namespace {

// Life of a slot that is wanted running, from its unit and from what the Slot reconciler recorded of this invocation.
Life WantedLife(const SlotEntry& entry, const SlotFacts& facts, const Now& now) {
  const SlotIntent& intent = entry.intent;
  const SlotActual& actual = entry.actual;
  const bool ours = actual.incarnation == intent.incarnation && actual.invocation == intent.invocation;
  const bool refused = ours && !actual.error.empty();
  if (facts.unit.unknown()) return Life::kUnknown;
  if (facts.unit.absent()) {
    if (refused) return Life::kStartFailed;
    if (!ours || actual.id.pid == 0) return Life::kStarting;
    return actual.id.boot_id == now.boot_id ? Life::kDead : Life::kNeverStarted;
  }
  const UnitStatus& unit = *facts.unit;
  if (unit.id.invocation > intent.invocation) return Life::kForeign;
  if (unit.id.invocation < intent.invocation) return refused ? Life::kStartFailed : Life::kStarting;
  switch (unit.state) {
    case UnitStatus::State::kRunning: return Life::kRunning;
    case UnitStatus::State::kPrepared: return refused ? Life::kStartFailed : Life::kStarting;
    case UnitStatus::State::kExited: break;
  }
  if (refused) return Life::kStartFailed;
  // Refused, but not on record yet: the Slot reconciler will say why.
  if (!unit.failure.ok()) return Life::kStarting;
  if (!unit.id.boot_id.empty() && unit.id.boot_id != now.boot_id) return Life::kNeverStarted;
  return unit.started_at == Time{} ? Life::kNeverStarted : Life::kDead;
}

Life UnwantedLife(const SlotFacts& facts) {
  if (facts.unit.unknown()) return Life::kUnknown;
  if (facts.unit.absent()) return Life::kGone;
  return facts.unit->state == UnitStatus::State::kExited ? Life::kGone : Life::kStopping;
}

std::string ReadyzText(const Fact<ReadyzFact>& readyz) {
  if (!readyz.known()) return readyz.why().empty() ? "no answer" : readyz.why();
  if (readyz->shutting_down) return std::to_string(readyz->status) + ", shutting down";
  std::string text = std::to_string(readyz->status);
  if (!readyz->failed_checks.empty()) text += ", failed: " + readyz->failed_checks;
  return text;
}

}  // namespace

SlotView Context::Slot(const std::string& name) const {
  SlotView v;
  v.name = name;
  const auto it = rec.slots.find(name);
  if (it == rec.slots.end()) {
    v.readiness = Readiness::kNo;
    return v;
  }
  static const SlotFacts kNoFacts;
  static const Fact<std::string> kNoSha;
  const auto facts_it = s.slots.find(name);
  const SlotFacts& facts = facts_it == s.slots.end() ? kNoFacts : facts_it->second;
  v.entry = &it->second;
  const SlotIntent& intent = v.entry->intent;
  const SlotActual& actual = v.entry->actual;
  v.exec_sha256 = facts_it == s.slots.end() ? &kNoSha : &facts_it->second.exec_sha256;
  v.unready_tries = facts.unready_tries;
  if (intent.incarnation != 0) v.life = intent.running ? WantedLife(*v.entry, facts, now) : UnwantedLife(facts);
  const bool no_companions = intent.companions.empty() || (facts.companions.known() && *facts.companions == 0);
  v.unit_absent = intent.incarnation == 0 || (facts.unit.absent() && no_companions);

  const bool ours = actual.incarnation == intent.incarnation && actual.invocation == intent.invocation;
  if (ours) v.port = actual.port;
  const UnitStatus* unit = facts.unit.get();
  if (v.life == Life::kDead || v.life == Life::kNeverStarted || v.life == Life::kGone) {
    if (ours && actual.exited_at != Time{}) {
      v.exited_at = actual.exited_at;
    } else if (unit != nullptr && unit->exit && unit->id.invocation == intent.invocation) {
      v.exited_at = unit->exit->at;
    }
    v.exit_text = ExitText(actual, unit);
  }
  v.readyz_text = v.port == 0 ? "nothing listens yet" : ReadyzText(facts.readyz);
  if (v.life == Life::kUnknown) return v;
  const bool asked = v.Live() && facts.readyz.known();
  if (asked && facts.readyz->status == 200 && !facts.readyz->shutting_down) {
    v.readiness = Readiness::kYes;
  } else if (asked || !v.Live() || v.port == 0) {
    v.readiness = Readiness::kNo;
  }
  return v;
}

bool Context::FrontHolds() const {
  if (!HasFront()) return true;
  return s.front.known() && s.front->target && s.front->target->hold;
}

bool Context::FrontOn(const SlotView& slot) const {
  if (!HasFront()) return true;
  if (!s.front.known() || !s.front->target || slot.entry == nullptr || slot.port == 0) return false;
  const FrontTarget& t = *s.front->target;
  return !t.hold && t.slot == slot.name && t.incarnation == slot.intent().incarnation &&
         t.invocation == slot.intent().invocation && t.address == "127.0.0.1:" + std::to_string(slot.port);
}

bool Context::FrontElsewhere(const SlotView& slot) const {
  if (!HasFront()) return true;
  if (!s.front.known() || !s.front->target || slot.entry == nullptr) return false;
  const FrontTarget& t = *s.front->target;
  return !t.hold && (t.slot != slot.name || t.incarnation != slot.intent().incarnation);
}

bool Context::MayStop(const SlotView& slot) const {
  if (!HasFront() || rec.stopped) return true;
  if (rec.deleting && spec.deletion_policy == DeletionPolicy::kStop) return true;
  if (slot.entry == nullptr || slot.NotReady()) return true;
  if (FrontElsewhere(slot)) return true;
  return op != nullptr && op->outage && FrontHolds();
}

Timeouts Context::timeouts() const {
  return ResolveTimeouts(op != nullptr ? op->spec.timeouts : TimeoutOverrides{}, spec.timeouts);
}

Duration Context::ReadyTimeout() const { return Seconds(static_cast<double>(timeouts().ready_seconds)); }

std::string Context::Unstoppable(const ServerRecord& next) const {
  for (const auto& [name, entry] : rec.slots) {
    const auto it = next.slots.find(name);
    const bool still = it != next.slots.end() && it->second.intent.running &&
                       it->second.intent.incarnation == entry.intent.incarnation &&
                       it->second.intent.invocation == entry.intent.invocation;
    if (!entry.intent.running || still) continue;
    if (!MayStop(Slot(name))) return name;
  }
  return "";
}

Plan Context::NotStoppedYet(const std::string& slot) const {
  return Wait("FrontNotObserved",
              "slot " + slot + " is ready and is not stopped before the front is seen on another one",
              Milliseconds(200));
}

Commit Context::MakeCommit(ServerRecord next, std::optional<OutcomeRecord> outcome) const {
  Commit commit;
  commit.base_revision = rec.revision;
  commit.record = std::move(next);
  commit.outcome = std::move(outcome);
  return commit;
}

Plan Context::Do(ServerRecord next, std::string reason, std::string message,
                 std::optional<OutcomeRecord> outcome) const {
  if (const std::string slot = Unstoppable(next); !slot.empty()) return NotStoppedYet(slot);
  Plan plan;
  Step step;
  Commit commit = MakeCommit(std::move(next), std::move(outcome));
  step.kind = KindOf(rec, commit);
  step.action = std::move(commit);
  step.reason = plan.reason = std::move(reason);
  step.message = plan.message = std::move(message);
  plan.step = std::move(step);
  plan.requeue_after = Duration::zero();
  return plan;
}

Plan Context::Effect(Action action, std::string reason, std::string message, std::optional<ServerRecord> then,
                     std::optional<ServerRecord> otherwise) const {
  for (const std::optional<ServerRecord>* next : {&then, &otherwise}) {
    if (!*next) continue;
    if (const std::string slot = Unstoppable(**next); !slot.empty()) return NotStoppedYet(slot);
  }
  Plan plan;
  Step step;
  step.kind = StepKind::kEffect;
  step.action = std::move(action);
  step.reason = plan.reason = std::move(reason);
  step.message = plan.message = std::move(message);
  if (then) step.then = MakeCommit(std::move(*then));
  if (otherwise) step.otherwise = MakeCommit(std::move(*otherwise));
  plan.step = std::move(step);
  plan.requeue_after = Duration::zero();
  return plan;
}

Plan Context::Wait(std::string reason, std::string message, std::optional<Duration> requeue) const {
  Plan plan;
  plan.waiting = true;
  plan.reason = std::move(reason);
  plan.message = std::move(message);
  plan.requeue_after = requeue;
  return plan;
}

Plan Context::WaitForPerson(std::string reason, std::string message, std::vector<NextAction> actions) const {
  Plan plan = Wait(std::move(reason), std::move(message), Seconds(1));
  plan.for_a_person = true;
  plan.next_actions = std::move(actions);
  return plan;
}

Plan Context::Stall(std::string reason, std::string message, std::vector<NextAction> actions,
                    std::optional<Duration> requeue) const {
  Plan plan = Wait(std::move(reason), std::move(message), requeue.value_or(Seconds(1)));
  plan.stalled = true;
  plan.next_actions = std::move(actions);
  return plan;
}

std::string Context::LookAtFront() const {
  return "kubectl describe front " + (spec.front_ref ? spec.front_ref->name : "") + " -n " + rec.key.ns;
}

Plan Context::FrontSilentPlan() const {
  const std::string why = s.front.absent() ? "it does not exist on this host" : s.front.why();
  return Stall("FrontSilent",
               "the front " + FrontName() + " does not answer: " + why + "; " + LookAtFront() + " says more",
               {MakeAction("InspectFront", LookAtFront(), "none")});
}

NextAction Context::MakeAction(std::string code, std::string command, std::string risk) const {
  NextAction action;
  action.code = std::move(code);
  action.command = std::move(command);
  action.risk = std::move(risk);
  return action;
}

Duration Context::Poll(std::optional<Time> since) const {
  if (!since || *since == Time{} || now.wall - *since < Seconds(2)) return Milliseconds(50);
  return Milliseconds(200);
}

void Context::BeginStep(ServerRecord& next, std::string_view step) const {
  next.operation->started.emplace(std::string(step), now.wall);
  next.operation->step = step;
}

void Context::FinishStep(ServerRecord& next, std::string_view step) const {
  BeginStep(next, step);
  next.operation->finished.emplace(std::string(step), now.wall);
}

void Context::SetDeadline(ServerRecord& next, std::string_view name, Duration after) const {
  next.operation->deadlines[std::string(name)] = Deadline::After(now, after);
}

bool Context::DeadlinePassed(std::string_view name) const {
  const auto it = op->deadlines.find(std::string(name));
  return it != op->deadlines.end() && it->second.Passed(now);
}

Duration Context::DeadlineLeft(std::string_view name) const {
  const auto it = op->deadlines.find(std::string(name));
  return it == op->deadlines.end() ? Duration::zero() : it->second.Left(now);
}

std::string Context::Note(const std::string& name) const {
  const auto it = op->notes.find(name);
  return it == op->notes.end() ? std::string() : it->second;
}

void Context::StartAgain(ServerRecord& next, const std::string& slot) const {
  SlotEntry& entry = next.slots[slot];
  if (const SlotView view = Slot(slot); view.exited_at && *view.exited_at > next.last_exit_at) {
    next.last_exit_at = *view.exited_at;
  }
  entry.intent.running = true;
  entry.intent.forget = false;
  ++entry.intent.invocation;
  entry.ready_at = Time{};
}

void Context::EndWait(ServerRecord& next) const {
  OperationRecord& o = *next.operation;
  if (!o.waiting_since) return;
  const bool same_boot = o.waiting_since->boot_id == now.boot_id;
  const Duration waited =
      std::max(Duration::zero(), same_boot ? now.boot - o.waiting_since->boot : now.wall - o.waiting_since->wall);
  o.waited += waited;
  o.waiting_since.reset();
  for (auto& [name, deadline] : o.deadlines) deadline = deadline.Shifted(waited);
}

}  // namespace lockkeeper::roll
