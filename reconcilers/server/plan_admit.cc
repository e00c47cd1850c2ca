// Rule E: one operation a Server at a time. Admission, controls, what the agent begins by itself, and how one ends.
#include <algorithm>

#include "api/types/reasons.h"
#include "reconcilers/server/render.h"
#include "reconcilers/server/report.h"
#include "reconcilers/server/rules.h"

namespace lockkeeper::roll {
namespace {

constexpr size_t kHistory = 20;

// Terminal already, or answered from the ledger: under this name nothing is done twice.
bool HasOutcome(const Candidate& x) { return x.closed.has_value() || x.recorded.known(); }

// A root that may ever be admitted: an Upgrade, or a Roll that no Upgrade controls.
bool IsRoot(const Candidate& x) { return x.kind == kKindUpgrade || x.parent_uid.empty(); }

bool Waits(const Candidate& x) { return IsRoot(x) && x.has_finalizer && !x.deleting && !HasOutcome(x); }

bool Earlier(const Candidate* a, const Candidate* b) {
  return a->created != b->created ? a->created < b->created : a->name < b->name;
}

std::vector<const Candidate*> Queue(const Context& c) {
  std::vector<const Candidate*> queue;
  if (!c.s.candidates.known()) return queue;
  for (const Candidate& x : *c.s.candidates) {
    const bool in_flight =
        c.op != nullptr && (x.uid == c.op->uid || (x.kind == kKindRoll && x.name == c.op->roll_name));
    if (Waits(x) && !in_flight) queue.push_back(&x);
  }
  std::sort(queue.begin(), queue.end(), Earlier);
  return queue;
}

const Candidate* Find(const Context& c, const std::string& uid) {
  if (uid.empty() || !c.s.candidates.known()) return nullptr;
  for (const Candidate& x : *c.s.candidates) {
    if (x.uid == uid) return &x;
  }
  return nullptr;
}

// From, to and outage: what the order of the steps depends on.
void ChooseSlots(const Context& c, OperationRecord& op) {
  op.from = c.rec.active;
  const bool single = c.spec.shape == ServerShape::kSingle;
  if (op.from.empty()) {
    op.to = kBlue;
    op.outage = false;
  } else {
    op.to = single ? op.from : OtherSlot(op.from);
    op.outage = single || op.spec.planned_outage;
  }
}

// The roll's part of an operation begins: its timeouts are resolved once.
void BeginRoll(const Context& c, OperationRecord& op, const RollSpec& spec) {
  op.spec = spec;
  const Timeouts t = ResolveTimeouts(spec.timeouts, c.spec.timeouts);
  op.spec.timeouts.ready_seconds = t.ready_seconds;
  op.spec.timeouts.lease_seconds = t.lease_seconds;
  op.spec.timeouts.probe_seconds = t.probe_seconds;
  op.spec.timeouts.drain_seconds = t.drain_seconds;
  op.spec.timeouts.stop_seconds = t.stop_seconds;
  op.spec.timeouts.flip_seconds = t.flip_seconds;
  if (op.action.empty()) op.action = spec.release_ref ? "Upgrade" : "Restart";
  ChooseSlots(c, op);
  if (!c.rec.version.empty()) op.notes[kFromVersion] = c.rec.version;
  op.started[kStepAdmit] = c.now.wall;
  op.finished[kStepAdmit] = c.now.wall;
  op.step = kStepAdmit;
}

void AddApprovals(OperationRecord& op, const std::vector<Gate>& gates) {
  for (Gate gate : gates) {
    const std::string name(EnumName(gate));
    if (std::find(op.approved.begin(), op.approved.end(), name) == op.approved.end()) op.approved.push_back(name);
  }
}

void ReadControls(OperationRecord& op, const Candidate& x) {
  op.abort = op.abort || x.roll.controls.abort;
  op.abandon = op.abandon || x.roll.controls.abandon;
  op.paused = op.paused || x.roll.controls.paused;
  AddApprovals(op, x.roll.controls.approve);
  if (x.deleting) op.notes["deleted"] = "yes";
}

void AddHistory(ServerRecord& rec, OutcomeRecord outcome) {
  outcome.checks.clear();
  outcome.steps_ahead.clear();
  rec.history.insert(rec.history.begin(), std::move(outcome));
  if (rec.history.size() > kHistory) rec.history.resize(kHistory);
}

// What is left of an operation whose Roll has ended while its root still holds the place.
OperationRecord RootOf(const OperationRecord& op) {
  OperationRecord root;
  root.kind = op.kind;
  root.ns = op.ns;
  root.name = op.name;
  root.uid = op.uid;
  root.spec_hash = op.spec_hash;
  root.action = op.action;
  root.requested_by = op.requested_by;
  root.roll_name = op.roll_name;
  root.roll_uid = op.roll_uid;
  root.target.version = op.target.version;  // what its outcome will say; without a path it is no build to run
  root.abort = op.abort;
  root.abandon = op.abandon;
  root.spec.mode = op.spec.mode;
  return root;
}

// What a person gave up stands until spec.version changes: else the manager would make the next Upgrade for it a minute
// later.
void KeepStopped(const Context& c, ServerRecord& next, const OutcomeRecord& out) {
  const bool stopped = out.outcome == Outcome::kAborted || out.outcome == Outcome::kAbandoned;
  if (!stopped || out.mode == OperationMode::kPreflight) return;  // a look that was given up says nothing of the build
  if (out.kind != kKindUpgrade || out.version.empty() || out.version != c.spec.version) return;
  std::erase_if(next.rejected, StoppedByAPerson);
  next.rejected.push_back({out.version, "", std::string(EnumName(out.outcome)), c.now.wall});
}

Plan EndWaiting(const Context& c, const Candidate& x, Outcome outcome, const char* reason, const std::string& message) {
  OutcomeRecord out;
  out.kind = x.kind;
  out.ns = x.ns;
  out.name = x.name;
  out.uid = x.uid;
  out.spec_hash = x.spec_hash;
  out.server = c.rec.key.ToString();
  out.version = x.version;
  out.mode = x.roll.mode;
  out.outcome = outcome;
  out.reason = reason;
  out.message = message;
  out.requested_by = x.roll.requested_by;
  out.started_at = out.finished_at = c.now.wall;
  ServerRecord next = c.rec;
  AddHistory(next, out);
  KeepStopped(c, next, out);
  return c.Do(std::move(next), reason, x.kind + " " + x.name + ": " + message, out);
}

// The manager reads outcomes of what has no Roll in the history. What it has not closed yet must not be pushed out by
// the next: half of the history is left to what runs.
bool MayTellMore(const Context& c) {
  if (!c.s.candidates.known()) return false;
  const auto open = std::count_if(c.s.candidates->begin(), c.s.candidates->end(), [&](const Candidate& x) {
    return x.kind == kKindUpgrade && !x.closed &&
           std::any_of(c.rec.history.begin(), c.rec.history.end(),
                       [&](const OutcomeRecord& h) { return h.kind == x.kind && h.uid == x.uid; });
  });
  return static_cast<size_t>(open) < kHistory / 2;
}

std::string HolderText(const OperationRecord& op) {
  return op.kind + " " + op.name + (op.step.empty() ? "" : " (" + op.step + ")");
}

OperationRecord OwnOperation(const Context& c, std::string kind, std::string name, std::string action,
                             std::string requested_by) {
  OperationRecord op;
  op.kind = std::move(kind);
  op.ns = c.rec.key.ns;
  op.name = std::move(name);
  op.roll_name = op.name;
  op.action = std::move(action);
  op.requested_by = std::move(requested_by);
  op.root_generation = c.rec.generation;
  return op;
}

bool RanBefore(const Context& c, const std::string& name) {
  return std::any_of(c.rec.history.begin(), c.rec.history.end(),
                     [&](const OutcomeRecord& h) { return h.name == name; });
}

bool MayBegin(const Context& c) {
  if (SpecOlderThanHost(c)) return false;
  return c.op == nullptr && !c.rec.deleting && !c.rec.stopped && !c.spec.paused && !c.spec.maintenance.freeze;
}

// The Upgrade that the manager makes for a later spec.restartedAt.
std::string RestartName(const ServerKey& key, Time at) {
  return key.name + "-restart-" + std::to_string(at.time_since_epoch().count() / 1000000);
}

std::string InstallVersion(const ServerSpec& spec) {
  return spec.version.empty() ? spec.install_version : spec.version;
}

}  // namespace

bool SpecOlderThanHost(const Context& c) {
  const Fact<ServerObject>& object = c.s.object;
  return object.known() && object->uid == c.rec.uid && object->generation < c.rec.generation;
}

OutcomeRecord OutcomeOf(const Context& c, const OperationRecord& op, Outcome outcome, const std::string& reason,
                        const std::string& message) {
  OutcomeRecord out;
  const bool child = op.kind == kKindUpgrade && !op.roll_name.empty() && !op.roll_outcome;
  const bool renamed = op.kind == kKindRoll && op.roll_name != op.name;  // a reverse Roll under a root Roll
  out.kind = child ? kKindRoll : op.kind;
  out.ns = op.ns;
  out.name = child || renamed ? op.roll_name : op.name;
  out.uid = child || renamed ? op.roll_uid : op.uid;
  out.spec_hash = child ? "" : op.spec_hash;
  out.server = c.rec.key.ToString();
  out.version = op.target.version;
  out.mode = op.spec.mode;
  if (out.version.empty() && op.action == "Restart") out.version = c.rec.version;
  out.outcome = outcome;
  out.reason = reason;
  out.message = message;
  out.requested_by = op.requested_by;
  const auto started = op.started.find(kStepAdmit);
  out.started_at = started == op.started.end() ? c.now.wall : started->second;
  out.finished_at = c.now.wall;
  out.report = op.report;
  out.failed_step = op.failed_step;
  out.steps_started = op.started;
  out.steps_finished = op.finished;
  const auto from_version = op.notes.find(kFromVersion);
  if (from_version != op.notes.end()) out.previous_version = from_version->second;
  for (const auto& [step, at] : op.finished) {
    if (!StepApplies(step, op, c.spec)) out.steps_skipped.push_back(step);
  }
  out.checks = op.checks;
  if (op.spec.mode == OperationMode::kPreflight && out.kind == kKindRoll) out.steps_ahead = StepsAhead(c);
  return out;
}

Plan Finish(const Context& c, ServerRecord next, Outcome outcome, const std::string& reason,
            const std::string& message) {
  OperationRecord& op = *next.operation;
  c.EndWait(next);
  CloseReport(op, c.now.wall);
  const OutcomeRecord out = OutcomeOf(c, op, outcome, reason, message);
  if (c.spec.restarted_at && op.name == RestartName(c.rec.key, *c.spec.restarted_at)) {
    next.last_restarted_at = FormatTime(*c.spec.restarted_at);  // however it ended: it is not made twice
  }
  const bool reverse = next.open_outcome.has_value();
  const bool child = op.kind == kKindUpgrade && !op.roll_name.empty() && !op.roll_outcome;
  AddHistory(next, out);
  if (reverse) {
    OutcomeRecord& open = *next.open_outcome;
    open.outcome = outcome == Outcome::kSucceeded ? Outcome::kRolledBack : Outcome::kFailed;
    open.message += outcome == Outcome::kSucceeded ? "; rolled back by " + op.roll_name
                                                   : "; and " + op.roll_name + " did not bring it back: " + message;
    open.finished_at = c.now.wall;
    if (outcome == Outcome::kSucceeded) {
      // The reverse Roll's own Record made the rejected build the previous one.
      const std::string sha = c.rec.previous_build ? c.rec.previous_build->exec_sha256 : "";
      next.rejected.push_back({open.version, sha, open.reason, c.now.wall});
    }
  }
  KeepStopped(c, next, out);
  if (reverse || child) {
    OperationRecord root = RootOf(op);
    root.roll_outcome = reverse ? next.open_outcome->outcome : outcome;
    if (reverse) root.target.version = next.open_outcome->version;  // what was asked for, not what it went back to
    next.operation = std::move(root);
  } else {
    next.operation.reset();
  }
  return c.Do(std::move(next), reason, message, out);
}

RuleResult RecordControls(const Context& c) {
  if (c.op == nullptr) return {};
  // The object that mirrors an operation of the agent's own has been made.
  if (c.op->roll_uid.empty() && !c.op->roll_name.empty() && c.op->kind != kKindInstall && c.s.candidates.known()) {
    for (const Candidate& x : *c.s.candidates) {
      if (x.kind != kKindRoll || x.name != c.op->roll_name || x.recorded.known()) continue;
      ServerRecord next = c.rec;
      next.operation->roll_uid = x.uid;
      if (next.operation->kind == kKindRoll && next.operation->uid.empty()) next.operation->uid = x.uid;
      return c.Do(std::move(next), "Mirrored", "Roll " + x.name + " shows the operation");
    }
  }
  const Candidate* root = Find(c, c.op->uid);
  const Candidate* roll = Find(c, c.op->roll_uid);
  if (root == nullptr && roll == nullptr) return {};
  ServerRecord next = c.rec;
  OperationRecord& op = *next.operation;
  op.paused = false;  // a pause can be taken back; the rest only grows
  if (root != nullptr) ReadControls(op, *root);
  if (roll != nullptr) ReadControls(op, *roll);
  if (next == c.rec) return {};
  return c.Do(std::move(next), "ControlsChanged", "the controls of " + c.op->name + " were changed");
}

RuleResult CloseTheUpgrade(const Context& c) {
  // The outcome of a forward Roll that waited for its reverse.
  if (c.rec.open_outcome && (c.op == nullptr || c.op->roll_outcome)) {
    ServerRecord next = c.rec;
    const OutcomeRecord out = *next.open_outcome;
    next.open_outcome.reset();
    AddHistory(next, out);
    if (next.operation && next.operation->kind == kKindRoll) next.operation.reset();
    return c.Do(std::move(next), out.reason, out.message, out);
  }
  if (c.op != nullptr && c.op->kind == kKindUpgrade && (c.op->roll_name.empty() || c.op->roll_outcome)) {
    const Candidate* root = Find(c, c.op->uid);
    if (root != nullptr && root->closed) {
      ServerRecord next = c.rec;
      std::string message = root->closed_message;
      if (message.empty() && *root->closed == Outcome::kSucceeded) message = "the host runs " + c.rec.version;
      return Finish(c, std::move(next), *root->closed, std::string(EnumName(*root->closed)), message);
    }
    if (!c.s.candidates.known()) return {};
    for (const Candidate& x : *c.s.candidates) {
      if (x.kind != kKindRoll || x.parent_uid.empty() || x.parent_uid != c.op->uid || HasOutcome(x)) continue;
      if (x.uid == c.op->roll_uid) continue;
      ServerRecord next = c.rec;
      OperationRecord op = RootOf(*c.op);
      op.roll_name = x.name;
      op.roll_uid = x.uid;
      op.action.clear();
      ReadControls(op, x);
      BeginRoll(c, op, x.roll);
      next.operation = std::move(op);
      return c.Do(std::move(next), "RollFound", "Roll " + x.name + " runs under Upgrade " + c.op->name);
    }
  }
  // A re-created Upgrade is answered with what the ledger recorded.
  if (!c.s.candidates.known() || !MayTellMore(c)) return {};
  for (const Candidate& x : *c.s.candidates) {
    if (x.kind != kKindUpgrade || !x.has_finalizer || x.closed || !x.recorded.known()) continue;
    if (x.recorded->spec_hash != x.spec_hash || (c.op != nullptr && c.op->uid == x.uid)) continue;
    const bool shown = std::any_of(c.rec.history.begin(), c.rec.history.end(),
                                   [&](const OutcomeRecord& h) { return h.kind == x.kind && h.uid == x.uid; });
    if (shown) continue;
    ServerRecord next = c.rec;
    OutcomeRecord again = *x.recorded;
    again.uid = x.uid;
    AddHistory(next, std::move(again));
    return c.Do(std::move(next), "AlreadyApplied",
                "Upgrade " + x.name + " was applied before: " + std::string(EnumName(x.recorded->outcome)));
  }
  return {};
}

RuleResult AdmitTheNextOperation(const Context& c) {
  const std::vector<const Candidate*> queue = Queue(c);
  if (c.rec.deleting) {
    if (c.op != nullptr || queue.empty() || !MayTellMore(c)) return {};
    return EndWaiting(c, *queue.front(), Outcome::kFailed, "ServerDeleted",
                      "its Server is being deleted; nothing was changed");
  }
  if (!MayBegin(c)) return {};
  if (c.rec.active.empty() && !InstallVersion(c.spec).empty()) return {};  // the first install comes first
  for (const Candidate* x : queue) {
    if (x->recorded.unknown()) {
      return c.Wait("OutcomeUnknown", "the ledger's outcomes could not be read: " + x->recorded.why(), Seconds(1));
    }
    ServerRecord next = c.rec;
    OperationRecord op;
    op.kind = x->kind;
    op.ns = x->ns;
    op.name = x->name;
    op.uid = x->uid;
    op.spec_hash = x->spec_hash;
    op.requested_by = x->roll.requested_by;
    if (x->kind == kKindUpgrade) {
      op.action = x->action == UpgradeAction::kRestart ? "Restart" : "Upgrade";
      op.target.version = x->version;
    } else {
      op.roll_name = x->name;
      op.roll_uid = x->uid;
      BeginRoll(c, op, x->roll);
    }
    ReadControls(op, *x);
    next.operation = std::move(op);
    return c.Do(std::move(next), "Admitted", x->kind + " " + x->name + " is admitted");
  }
  return {};
}

RuleResult EndTheAbortedWhoWait(const Context& c) {
  if (!MayTellMore(c)) return {};
  for (const Candidate* x : Queue(c)) {
    const auto& controls = x->roll.controls;
    if (!controls.abort && !controls.abandon) continue;
    const bool abort = controls.abort;
    return EndWaiting(c, *x, abort ? Outcome::kAborted : Outcome::kAbandoned, abort ? "Aborted" : "Abandoned",
                      std::string(abort ? "aborted" : "abandoned") + " while it waited; nothing was changed");
  }
  return {};
}

RuleResult RefuseWhoWillNotWait(const Context& c) {
  if (c.op == nullptr || !MayTellMore(c)) return {};
  for (const Candidate* x : Queue(c)) {
    if (x->roll.when_busy != WhenBusy::kFail) continue;
    return EndWaiting(c, *x, Outcome::kFailed, "Busy",
                      "the Server is busy with " + HolderText(*c.op) + ", and whenBusy is Fail; make another one, " +
                          "under a new name, once that has ended");
  }
  return {};
}

RuleResult BeginTheInstall(const Context& c) {
  if (!MayBegin(c) || !c.rec.active.empty()) return {};
  const std::string version = InstallVersion(c.spec);
  if (version.empty()) return {};
  if (c.rec.incarnations == 0 && !c.s.files.base_empty.known()) {
    return c.Wait("DataDirUnknown", "the data directory could not be read: " + c.s.files.base_empty.why(), Seconds(1));
  }
  ServerRecord next = c.rec;
  OperationRecord op = OwnOperation(c, kKindInstall, c.rec.key.name + "-install", "Install", "spec");
  op.notes["version"] = version;
  op.notes["release"] = c.rec.key.name + "-" + version;
  RollSpec spec;
  spec.backup = RollBackup::kNone;
  BeginRoll(c, op, spec);
  next.operation = std::move(op);
  return c.Do(std::move(next), "Installing", "installs " + version + " in slot " + std::string(kBlue));
}

RuleResult SeeRestartedAt(const Context& c) {
  if (c.rec.active.empty() || c.rec.last_restarted_at) return {};
  ServerRecord next = c.rec;
  // With none given, any time after this first look is a later one.
  next.last_restarted_at = FormatTime(c.spec.restarted_at.value_or(c.now.wall));
  return c.Do(std::move(next), "RestartedAtSeen", "spec.restartedAt is recorded; a later time makes a restart");
}

RuleResult ApplyTheEditedTemplate(const Context& c) {
  if (!MayBegin(c) || c.rec.active.empty() || c.spec.update_policy != UpdatePolicy::kImmediately) return {};
  if (!TemplateDrifts(c)) return {};
  // Its outcome stands under this name: an update that was undone is not tried again before the next edit.
  std::string name = c.rec.key.name + "-update-" + std::to_string(c.rec.generation);
  if (RanBefore(c, name)) return {};
  ServerRecord next = c.rec;
  OperationRecord op = OwnOperation(c, kKindRoll, std::move(name), "Restart", "spec.updatePolicy");
  BeginRoll(c, op, RollSpec{});
  next.operation = std::move(op);
  return c.Do(std::move(next), "Admitted", "the edited template is applied by a roll");
}

bool TemplateDrifts(const Context& c) {
  const SlotView active = c.Active();
  if (active.entry == nullptr || active.intent().incarnation == 0) return false;
  const SlotIntent& was = active.intent();
  const Result<SlotIntent> now =
      Render({c.s.key, c.spec, active.name, was.incarnation, was.build, ResolveTimeouts({}, c.spec.timeouts), c.layout,
              c.s.ledger.id, c.s.ledger.revision});
  return now.ok() && !SameTemplate(*now, was);
}

bool StoppedByAPerson(const RejectedEntry& entry) {
  return entry.reason == reason::kAborted || entry.reason == reason::kAbandoned;
}

RuleResult ForgetWhatWasStopped(const Context& c) {
  const auto over = [&](const RejectedEntry& entry) {
    return StoppedByAPerson(entry) && (entry.version != c.spec.version || entry.version == c.rec.version);
  };
  if (std::none_of(c.rec.rejected.begin(), c.rec.rejected.end(), over)) return {};
  ServerRecord next = c.rec;
  std::erase_if(next.rejected, over);
  return c.Do(std::move(next), "SpecEdited", "what was aborted is not what spec.version asks for any more");
}

bool AnythingWaits(const Context& c) { return !Queue(c).empty(); }

bool RollbackReady(const Context& c, const OperationRecord& op) {
  // What it replaced is what it goes back to: a failed restart does not lead to the build before.
  const bool replaced = op.notes.count(kReplacedBuild) != 0;
  return replaced && c.rec.previous_build && !c.rec.previous_build->path.empty() && op.failure_is_the_builds &&
         !c.rec.open_outcome;
}

Plan ReverseRoll(const Context& c, ServerRecord next) {
  OperationRecord& failed = *next.operation;
  CloseReport(failed, c.now.wall);
  next.open_outcome = OutcomeOf(c, failed, Outcome::kFailed, failed.failure_reason, failed.failure_message);
  OperationRecord op = RootOf(failed);
  op.roll_name = failed.roll_name + "-rollback";
  op.roll_uid.clear();
  op.action = "Upgrade";
  op.target = *c.rec.previous_build;
  RollSpec spec;
  spec.backup = RollBackup::kNone;
  spec.allow_downgrade = true;
  BeginRoll(c, op, spec);
  const std::string message = failed.failure_message + "; rolls back to " + op.target.version + " as " + op.roll_name;
  next.operation = std::move(op);
  return c.Do(std::move(next), "RollingBack", message);
}

}  // namespace lockkeeper::roll
