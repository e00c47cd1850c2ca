#include "reconcilers/server/status.h"

#include <algorithm>

#include "api/types/codec.h"
#include "api/types/conditions.h"
#include "api/types/reasons.h"
#include "reconcilers/server/rules.h"

namespace lockkeeper::roll {
namespace {

constexpr int64_t kManyRepairs = 3;  // from here on the active slot is said to be crash-looping

Condition Make(std::string_view type, ConditionStatus status, std::string_view why, std::string message) {
  Condition c;
  c.type = type;
  c.status = status;
  c.reason = why;
  c.message = std::move(message);
  return c;
}

ConditionStatus Of(bool yes) { return yes ? ConditionStatus::kTrue : ConditionStatus::kFalse; }

std::string OperationText(const OperationRecord& op) { return op.kind + " " + op.name; }

lockkeeper::SlotRecord SlotLine(const std::string& name, const SlotEntry& entry) {
  lockkeeper::SlotRecord line;
  const SlotIntent& intent = entry.intent;
  const SlotActual& actual = entry.actual;
  line.name = name;
  line.unit = intent.unit.name;
  line.incarnation = intent.incarnation;
  line.root = intent.root;
  line.version = intent.build.version;
  line.sha256 = intent.build.exec_sha256;
  line.exec = intent.unit.argv.empty() ? "" : intent.unit.argv[0];
  const bool current = actual.incarnation == intent.incarnation && actual.invocation == intent.invocation;
  // Of a process that has ended nobody wants a pid or an uptime.
  if (current && actual.exited_at != Time{}) return line;
  if (entry.ready_at != Time{}) line.ready_at = entry.ready_at;
  if (!current) return line;
  if (actual.id.pid != 0) {
    line.pid = actual.id.pid;
    line.invocation_id = actual.id.unit + "." + std::to_string(actual.id.invocation);
  }
  if (actual.port != 0) line.port = actual.port;
  if (actual.started_at != Time{}) line.started_at = actual.started_at;
  for (const CompanionActual& companion : actual.companions) {
    CompanionRecord out;
    out.name = companion.name;
    out.unit = companion.id.unit;
    if (companion.id.pid != 0) out.pid = companion.id.pid;
    if (companion.port != 0) out.port = companion.port;
    line.companions.push_back(std::move(out));
  }
  return line;
}

HistoryEntry HistoryLine(const OutcomeRecord& o) {
  HistoryEntry line;
  line.kind = o.kind;
  line.name = o.name;
  line.uid = o.uid;
  line.spec_hash = o.spec_hash;
  line.version = o.version;
  if (o.mode != OperationMode::kExecute) line.mode = o.mode;
  line.outcome = o.outcome;
  line.started_at = o.started_at;
  line.finished_at = o.finished_at;
  line.requested_by = o.requested_by;
  return line;
}

Progress ProgressOf(const Plan& plan, const OperationRecord& op, const Context& c) {
  Progress p;
  p.message = plan.message;
  p.updated_at = c.now.wall;
  // Before its Roll is made and after it has ended an Upgrade is at no step of a roll.
  if (op.kind == kKindUpgrade && (op.roll_name.empty() || op.roll_outcome)) return p;
  const std::string_view step = op.undoing ? std::string_view("Undo") : CurrentStep(op, c.spec.template_.stop.order);
  p.step = step;
  const auto steps = StepsOf(op, c.spec.template_.stop.order);
  const auto done = std::count_if(steps.begin(), steps.end(), [&](std::string_view s) { return Finished(op, s); });
  p.done = done;
  p.total = static_cast<int64_t>(steps.size());
  p.percent = steps.empty() ? 0 : done * 100 / static_cast<int64_t>(steps.size());
  p.unit = "steps";
  const auto deadline = op.deadlines.find(std::string(step));
  if (deadline != op.deadlines.end() && !op.waiting_since) {
    p.expected_seconds = std::max(0.0, ToSeconds(deadline->second.Left(c.now)));
  }
  return p;
}

// What keeps a plan from going on, where that is more than time.
bool StopsThePlan(const StatusInput& in) {
  return in.plan.stalled || (!in.last_error.ok() && DispositionOf(in.last_error.code()) == Disposition::kStalled);
}

class ServerConditions {
 public:
  ServerConditions(const StatusInput& in, const Context& c, const ServerStatus& before, int64_t generation)
      : in_(in), c_(c), before_(before), generation_(generation), active_(c.Active()) {}

  std::vector<Condition> All() {
    const bool serves = active_.Ready() && c_.FrontOn(active_);
    Available(serves);
    Add(condition::kProgressing, c_.op != nullptr, c_.op ? reason::kOperationRunning : reason::kNoOperation,
        c_.op ? OperationText(*c_.op) + " is under way" + LastTry(in_.last_error) : "");
    Degraded();
    Upgradeable();
    Lease();
    if (c_.HasFront()) FrontInSync();
    Drift();
    Rollback();
    Add(condition::kStoreTouchedByNewBuild, c_.rec.store_touched_by_new_build,
        c_.rec.store_touched_by_new_build ? reason::kOldBootstrapNeeded : reason::kAsDesired,
        c_.rec.store_touched_by_new_build ? "a build that was undone wrote its bootstrap objects to the shared store"
                                          : "");
    SetReady(out_, Summary(serves), generation_, c_.now.wall);
    return CarryConditions(before_.conditions, std::move(out_), generation_, c_.now.wall);
  }

 private:
  void Add(std::string_view type, bool yes, std::string_view why, std::string message) {
    out_.push_back(Make(type, Of(yes), why, std::move(message)));
  }

  void Available(bool serves) {
    if (serves)
      return Add(condition::kAvailable, true, reason::kAsDesired, "the front answers through slot " + active_.name);
    if (c_.rec.active.empty())
      return Add(condition::kAvailable, false, reason::kNotInstalled, "nothing is installed yet");
    if (c_.rec.stopped) return Add(condition::kAvailable, false, reason::kServerStopped, StoppedText());
    if (active_.readiness == Readiness::kUnknown) {
      out_.push_back(Make(condition::kAvailable, ConditionStatus::kUnknown, reason::kActiveSlotDown,
                          "slot " + active_.name + " does not answer in time"));
      return;
    }
    if (!active_.Ready())
      return Add(condition::kAvailable, false, reason::kNoReadySlot, "slot " + active_.name + " is not ready");
    if (c_.FrontSilent()) return Add(condition::kAvailable, false, reason::kFrontSilent, FrontSilentText());
    Add(condition::kAvailable, false, reason::kFrontHolding, "the front is not seen on slot " + active_.name);
  }

  void Degraded() {
    if (c_.rec.degraded) {
      return Add(condition::kDegraded, true, c_.rec.degraded_reason, c_.rec.degraded_message);
    }
    if (c_.rec.repairs >= kManyRepairs) {
      return Add(condition::kDegraded, true, reason::kCrashLooping,
                 "slot " + c_.rec.active + " was started again " + std::to_string(c_.rec.repairs) + " times" +
                     (active_.exit_text.empty() ? "" : ", it ended last with " + active_.exit_text) +
                     "; pauses between tries grow to 60 s; `lockkeeper logs " + c_.rec.key.name + " -n " +
                     c_.rec.key.ns + "` shows its last words");
    }
    if (!c_.rec.member_token_error.empty()) {
      return Add(condition::kDegraded, true, "MemberTokenBehind",
                 "the members' token is behind: " + c_.rec.member_token_error);
    }
    Add(condition::kDegraded, false, reason::kAsDesired, "");
  }

  std::string FrontSilentText() const {
    return "the front " + c_.FrontName() + " does not answer; " + c_.LookAtFront() + " says more";
  }

  // What clients meet meanwhile is told, too.
  std::string StoppedText() const {
    return "stopped by lockkeeper stop" + (!c_.HasFront() ? std::string()
                                                          : "; the front " + c_.FrontName() +
                                                                " holds new connections for its hold.seconds, then "
                                                                "closes them");
  }

  void Upgradeable() {
    std::string_view why = reason::kAsDesired;
    std::string message;
    if (c_.op != nullptr) {
      why = reason::kBusy;
      message = OperationText(*c_.op) + " is under way";
    } else if (c_.rec.deleting) {
      why = reason::kDeleting;
      message = "the Server is being deleted";
    } else if (c_.rec.stopped) {
      why = reason::kServerStopped;
      message = "stopped; `lockkeeper start " + c_.rec.key.name + " -n " + c_.rec.key.ns + "` starts it";
    } else if (c_.spec.paused) {
      why = reason::kServerPaused;
      message = "spec.paused is true; set it to false to go on";
    } else if (c_.spec.maintenance.freeze) {
      why = reason::kFrozen;
      message = "spec.maintenance.freeze is true; set it to false to go on";
    } else if (in_.plan.stalled) {
      why = in_.plan.reason;
      message = in_.plan.message;
    }
    Add(condition::kUpgradeable, why == reason::kAsDesired, why, std::move(message));
  }

  void Lease() {
    if (!c_.spec.lease) return;
    const Fact<LeaseFact>& lease = in_.snapshot.lease.lease;
    if (lease.unknown()) {
      // Not every pass reads it: what stood goes on standing until a reading says otherwise.
      if (const Condition* was = FindCondition(before_.conditions, condition::kLeaseHeld)) return out_.push_back(*was);
      return out_.push_back(Make(condition::kLeaseHeld, ConditionStatus::kUnknown, reason::kLeaseUnreadable,
                                 "the controller lease was not read: " + lease.why()));
    }
    const bool held =
        lease.known() && !lease->holder.empty() &&
        in_.snapshot.lease.unchanged_for < Seconds(static_cast<double>(std::max<int64_t>(lease->duration_seconds, 5)));
    Add(condition::kLeaseHeld, held, held ? reason::kHeld : reason::kLeaseNotTaken,
        held ? "held by " + lease->holder : "nobody renews the controller lease");
  }

  void FrontInSync() {
    if (c_.FrontSilent()) {
      return out_.push_back(
          Make(condition::kFrontInSync, ConditionStatus::kUnknown, reason::kFrontSilent, FrontSilentText()));
    }
    const bool sync = c_.rec.hold ? c_.FrontHolds() : c_.FrontOn(active_);
    const std::string_view why = !sync         ? reason::kFrontNotObserved
                                 : c_.rec.hold ? reason::kFrontHolding
                                               : reason::kInSync;
    Add(condition::kFrontInSync, sync, why,
        c_.rec.hold ? "new connections are held"
        : sync      ? "new connections go to slot " + active_.name
                    : "the front " + c_.FrontName() + " is not seen on slot " + c_.rec.active +
                     "; it holds new connections meanwhile, or sends them where it did");
  }

  void Drift() {
    const bool drift = TemplateDrifts(c_);
    Add(condition::kTemplateDrift, drift, drift ? reason::kRenderedOlder : reason::kRenderedAsTemplate,
        drift ? "the template was edited after slot " + active_.name + " was rendered; the next operation takes it"
              : "");
  }

  void Rollback() {
    const bool ready = c_.rec.previous_build && !c_.rec.previous_build->path.empty();
    Add(condition::kRollbackReady, ready, ready ? reason::kRollbackPossible : reason::kNoPreviousRelease,
        ready ? "release " + c_.rec.previous_build->version + " is kept" : "");
  }

  ReadySummary Summary(bool serves) {
    ReadySummary sum;
    sum.reason = reason::kReconciling;
    sum.ready = Of(serves);
    if (SpecOlderThanHost(c_)) {
      sum.settling = Settling::kStalled;
      sum.reason = reason::kSpecOlderThanHost;
      sum.message = "the object is at generation " + std::to_string(in_.snapshot.object->generation) +
                    " and the host has loaded " + std::to_string(c_.rec.generation) + "; edit it to go on";
      return sum;
    }
    if (StopsThePlan(in_)) {
      sum.settling = Settling::kStalled;
      sum.reason = in_.plan.stalled ? in_.plan.reason : std::string(CodeName(in_.last_error.code()));
      sum.message = in_.plan.stalled ? in_.plan.message : in_.last_error.message();
      return sum;
    }
    if (const RejectedEntry* rejected = DeclaredAndRejected()) {
      sum.ready = ConditionStatus::kFalse;  // what serves is told by Available
      sum.settling = Settling::kStalled;
      const bool stopped = StoppedByAPerson(*rejected);
      const std::string how = stopped ? "given up by a person" : "rolled back";
      sum.reason = stopped ? std::string_view(rejected->reason) : reason::kVersionRejected;
      sum.message = "spec.version " + rejected->version + " was " + how + " at " + FormatTime(rejected->at) + " (" +
                    rejected->reason + ") and is not tried again by itself; " + c_.rec.version +
                    " serves on; set spec.version to another one, or " + RetryOf(rejected->version);
      return sum;
    }
    if (const OutcomeRecord* failed = DeclaredAndFailed()) {
      sum.ready = ConditionStatus::kFalse;
      sum.message = "spec.version " + failed->version + " does not run: Upgrade " + failed->name + " ended " +
                    std::string(EnumName(failed->outcome)) + " (" + failed->message + "); " + c_.rec.version +
                    " serves on, and it is tried again by itself";
      return sum;
    }
    // What a first install leaves for its users (the harvested kubeconfig) is there only once it has ended.
    const bool installing = c_.op != nullptr && IsInstall(*c_.op) && c_.op->to == c_.rec.active;
    if (serves && !installing) {
      sum.settling = Settling::kCurrent;
      sum.reason = reason::kAsDesired;
      sum.message = "slot " + active_.name + " serves " + c_.rec.version;
      return sum;
    }
    if (c_.rec.stopped) {
      sum.settling = Settling::kCurrent;
      sum.reason = reason::kServerStopped;
      sum.message = StoppedText();
      return sum;
    }
    if (c_.op != nullptr && (installing || c_.rec.active.empty())) {
      sum.ready = ConditionStatus::kFalse;
      sum.reason = reason::kInstalling;
      sum.message = OperationText(*c_.op) + " is under way" + LastTry(in_.last_error);
      return sum;
    }
    if (c_.op == nullptr && c_.rec.active.empty()) {
      sum.settling = Settling::kCurrent;
      sum.reason = reason::kNotInstalled;
      sum.message = "set version or installVersion, or make an Upgrade";
      return sum;
    }
    sum.reason = active_.Ready() ? reason::kFrontNotObserved : reason::kActiveSlotDown;
    sum.message =
        "slot " + active_.name + (active_.Ready() ? " is ready and the front is not seen on it" : " is not ready");
    return sum;
  }

  // The rejected build that spec.version asks for, while nothing is under way that could change it.
  const RejectedEntry* DeclaredAndRejected() const {
    if (c_.op != nullptr || c_.spec.version.empty() || c_.spec.version == c_.rec.version) return nullptr;
    for (const RejectedEntry& r : c_.rec.rejected) {
      if (r.version == c_.spec.version) return &r;
    }
    return nullptr;
  }

  static bool Executed(const OutcomeRecord& o) { return o.kind == kKindUpgrade && o.mode == OperationMode::kExecute; }

  // What does the last Upgrade to that version once more.
  std::string RetryOf(const std::string& version) const {
    for (const OutcomeRecord& o : c_.rec.history) {
      if (Executed(o) && o.version == version) {
        return "`lockkeeper retry " + o.name + " -n " + c_.rec.key.ns + "`";
      }
    }
    return "make an Upgrade to it by hand";
  }

  // How the last Upgrade to the version that spec.version asks for ended, while none is under way and it does not run.
  const OutcomeRecord* DeclaredAndFailed() const {
    if (c_.op != nullptr || c_.spec.paused || c_.rec.stopped || c_.spec.version.empty()) return nullptr;
    if (c_.spec.version == c_.rec.version) return nullptr;
    for (const OutcomeRecord& o : c_.rec.history) {
      if (Executed(o) && o.version == c_.spec.version) {
        return o.outcome == Outcome::kSucceeded ? nullptr : &o;
      }
    }
    return nullptr;
  }

  const StatusInput& in_;
  const Context& c_;
  const ServerStatus& before_;
  const int64_t generation_;
  const SlotView active_;
  std::vector<Condition> out_;
};

// Without a record there is no context: only what the plan says.
ServerStatus WithoutRecord(const StatusInput& in, ServerStatus status, int64_t generation) {
  ReadySummary sum;
  sum.ready = ConditionStatus::kUnknown;
  sum.settling = in.plan.stalled ? Settling::kStalled : Settling::kReconciling;
  sum.reason = in.plan.reason;
  sum.message = in.plan.message;
  std::vector<Condition> computed;
  SetReady(computed, sum, generation, in.now.wall);
  status.conditions = CarryConditions(status.conditions, std::move(computed), generation, in.now.wall);
  return status;
}

}  // namespace

std::string LastTry(const Status& error) {
  if (error.ok() || DispositionOf(error.code()) != Disposition::kRetry) return "";
  return "; the last step failed and is tried again: " + error.message();
}

ServerStatus SummarizeServer(const StatusInput& in, const ServerStatus& before, int64_t generation) {
  ServerStatus out;
  out.extra = before.extra;
  out.observed_generation = generation;
  out.next_actions = in.plan.next_actions;
  const Snapshot& s = in.snapshot;
  if (!s.record.known()) {
    out.conditions = before.conditions;
    return WithoutRecord(in, std::move(out), generation);
  }
  const ServerRecord& rec = *s.record;
  const Context c(s, in.now);
  out.ledger = LedgerRef{s.ledger.id, rec.revision, {}};
  out.declared_attempts = rec.declared_attempts;
  out.version = rec.version;
  out.active_slot = rec.active;
  out.store_url = rec.store_url;
  out.host_id = s.ledger.machine_id;
  switch (rec.spec.driver) {
    case ServerDriver::kProcess: out.install_kind = InstallKind::kProcess; break;
    case ServerDriver::kSystemd: out.install_kind = InstallKind::kSystemd; break;
    case ServerDriver::kContainer: out.install_kind = InstallKind::kContainer; break;
  }
  if (rec.last_restarted_at && !rec.last_restarted_at->empty()) {
    if (Result<Time> at = ParseTime(*rec.last_restarted_at); at.ok()) out.last_restarted_at = *at;
  }
  for (const auto& [name, entry] : rec.slots) {
    out.slots.push_back(SlotLine(name, entry));
    if (name != rec.active) continue;
    out.commit = entry.intent.build.commit;
    out.instance_id = out.slots.back().invocation_id;
  }
  if (s.lease.lease.known()) {
    LeaseView view;
    view.holder = s.lease.lease->holder;
    view.acquire_time = s.lease.lease->acquire_time;
    view.renew_time = s.lease.lease->renew_time;
    out.lease = view;
  } else {
    out.lease = before.lease;
  }
  if (rec.operation) {
    OperationRef ref;
    ref.kind = rec.operation->kind;
    ref.name = rec.operation->name;
    ref.uid = rec.operation->uid;
    ref.phase = PhaseOf(*rec.operation, rec.spec.template_.stop.order);
    const auto started = rec.operation->started.find(kStepAdmit);
    if (started != rec.operation->started.end()) ref.started_at = started->second;
    out.operation = ref;
    out.progress = ProgressOf(in.plan, *rec.operation, c);
  }
  for (const OutcomeRecord& o : rec.history) out.history.push_back(HistoryLine(o));
  for (const RejectedEntry& r : rec.rejected) {
    RejectedBuild line;
    line.version = r.version;
    line.sha256 = r.exec_sha256;
    line.reason = r.reason;
    line.at = r.at;
    out.rejected.push_back(std::move(line));
  }
  if (rec.repairs >= kManyRepairs && !rec.operation && rec.previous_build && !rec.previous_build->path.empty()) {
    out.next_actions.push_back(
        c.MakeAction("RollBack", "lockkeeper rollback " + rec.key.name + " -n " + rec.key.ns,
                     "a roll to " + rec.previous_build->version + ", the build before this one"));
  }
  if (rec.store_touched_by_new_build && !rec.operation) {
    out.next_actions.push_back(c.MakeAction("RerunOldBootstrap",
                                            "lockkeeper restart " + rec.key.name + " -n " + rec.key.ns,
                                            "one more roll; the old build writes its own bootstrap objects again"));
  }
  out.conditions = ServerConditions(in, c, before, generation).All();
  return out;
}

bool SameProgress(const std::optional<Progress>& a, const std::optional<Progress>& b) {
  if (!a || !b) return a.has_value() == b.has_value();
  return a->step == b->step && a->message == b->message && a->done == b->done;
}

bool SameButProgress(const ServerStatus& a, const ServerStatus& b) {
  ServerStatus x = a;
  x.progress = b.progress;
  x.lease = b.lease;  // its renewTime moves every two seconds
  return x == b || ToJson(x) == ToJson(b);
}

}  // namespace lockkeeper::roll
