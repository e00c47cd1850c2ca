// The roll, steps 12 to 14: record, flip, the members' token; and the harvest of a first install.
#include "reconcilers/server/draft.h"
#include "reconcilers/server/report.h"

namespace lockkeeper::roll {
namespace {

constexpr char kKubeconfigFile[] = "admin.kubeconfig";
constexpr Duration kTokenRetry = Seconds(5);

}  // namespace

HandlerResult DoRecord(const Context& c, Draft& d) {
  if (auto trouble = NewSlotTrouble(c, d, kStepRecord)) return std::move(*trouble);
  const SlotView fresh = c.Slot(c.op->to);
  if (!fresh.Ready()) return ReadyNoMore(c, d);
  OperationRecord& op = d.op();
  const SlotIntent& intent = fresh.intent();
  if (const auto old = c.rec.slots.find(op.from); old != c.rec.slots.end()) {
    const SlotEntry& entry = old->second;
    const HostBuild& was = op.from == op.to && entry.previous ? entry.previous->build : entry.intent.build;
    // A restart or a template update leaves no other build to go back to than the one before.
    if (was.exec_sha256 != intent.build.exec_sha256 || was.path != intent.build.path) {
      d.next.previous_build = was;
      d.next.previous_slot = op.from;
      op.notes[kReplacedBuild] = was.version;
    }
  }
  d.next.active = op.to;
  d.next.hold = false;
  // From here until it is written anew nobody can say whose token the members hold: a write whose reply was lost, or
  // that a crash followed, leaves the new slot's there, and an undo must write the old one's again.
  d.next.member_token_of.clear();
  d.next.version = intent.build.version;
  d.next.store_url = intent.store_url;
  d.next.installed = true;
  d.next.repairs = 0;
  d.next.repair_not_before = Deadline{};
  if (op.kind == kKindInstall) {
    op.failure_reason.clear();
    op.failure_message.clear();
    op.failed_step.clear();
  }
  op.deadlines.erase(kActiveRepair);
  c.SetDeadline(d.next, kStepFlip, Seconds(static_cast<double>(c.timeouts().flip_seconds)));
  op.report.persisted_at = c.now.wall;
  d.Say("Recorded", "slot " + op.to + " is the active slot: pid " + std::to_string(fresh.actual().id.pid) + ", port " +
                        std::to_string(fresh.port) + ", " + intent.build.version);
  c.FinishStep(d.next, kStepRecord);
  // The front is judged against what is in the ledger, so this is committed first.
  return NotYet(c.Wait("Flipping", d.message, Milliseconds(10)));
}

HandlerResult DoFlip(const Context& c, Draft& d) {
  const SlotView fresh = c.Slot(c.op->to);
  if (c.FrontOn(fresh)) {
    RollReport& report = d.op().report;
    report.flipped_at = c.now.wall;
    const auto hold = c.op->finished.find(kStepHold);
    if (hold != c.op->finished.end()) report.outage_seconds = ReportSeconds(c.now.wall - hold->second);
    d.Say("Flipped", c.HasFront() ? "the front sends new connections to slot " + fresh.name + " on port " +
                                        std::to_string(fresh.port)
                                  : "no front to flip: clients find slot " + fresh.name + " by themselves");
    return StepDone();
  }
  if (c.FrontSilent()) {
    if (c.DeadlinePassed(kStepFlip) && c.Note("frontSilent").empty()) {
      d.op().notes["frontSilent"] = "yes";
      d.Say("FrontSilent", "the front does not answer; the flip waits for it");
    }
    return NotYet(c.FrontSilentPlan());
  }
  if (!c.Note("frontSilent").empty()) {
    d.op().notes.erase("frontSilent");
    c.SetDeadline(d.next, kStepFlip, Seconds(static_cast<double>(c.timeouts().flip_seconds)));
    d.Say("FrontAnswers", "the front answers again");
    return NotYet(c.Wait("Flipping", d.message, Milliseconds(50)));
  }
  // A repair of the new slot is under way: the front rightly holds.
  const bool old_serves = c.op->outage || c.Slot(c.op->from).Ready();
  if (c.DeadlinePassed(kStepFlip) && fresh.Ready() && !c.rec.hold && old_serves && !IsInstall(*c.op)) {
    return Final(Fail(c, std::move(d.next), kStepFlip,
                      {"FrontNotObserved", "the front answers and does not send to slot " + fresh.name + " after " +
                                               std::to_string(c.timeouts().flip_seconds) + " s"}));
  }
  const std::string text = "the front is not yet seen on slot " + fresh.name;
  if (c.DeadlinePassed(kStepFlip)) return NotYet(c.Stall("FlipLate", text, {}, Milliseconds(200)));
  return NotYet(c.Wait("Flipping", text, Milliseconds(20)));
}

HandlerResult DoHarvest(const Context& c, Draft& d) {
  if (!c.spec.seed || !c.spec.seed->harvest || c.rec.harvested) return StepDone();
  ServerRecord done = c.rec;
  done.harvested = true;
  c.FinishStep(done, kStepHarvest);
  ServerRecord failed = c.rec;  // tried again once nothing rolls
  failed.operation->notes["harvest"] = "{error}";
  c.FinishStep(failed, kStepHarvest);
  Begin(c, d, kStepHarvest, std::nullopt, "the shared files are taken from slot " + c.op->to);
  HarvestShared effect{SeedOf(c, c.op->to)};
  effect.plan.files = c.spec.seed->files;
  return NotYet(c.Effect(std::move(effect), "Harvesting", "the shared files are taken from slot " + c.op->to,
                         std::move(done), std::move(failed)));
}

std::string TokenOwner(const std::string& slot, const SlotIntent& intent) {
  return slot + "#" + std::to_string(intent.incarnation) + "." + std::to_string(intent.invocation);
}

Plan RefreshMemberToken(const Context& c, const SlotView& active, ServerRecord next, std::string_view finish) {
  RefreshToken effect;
  effect.kubeconfig = active.intent().root + "/" + kKubeconfigFile;
  effect.context = c.spec.member_token->context;
  effect.file = c.spec.member_token->file;
  if (c.op != nullptr && c.op->from != c.op->to && c.rec.member_token_error.empty()) {
    if (const auto old = c.rec.slots.find(c.op->from); old != c.rec.slots.end() && c.op->to == active.name) {
      effect.differs_from = old->second.intent.root + "/" + kKubeconfigFile;
    }
  }
  ServerRecord failed = next;
  next.member_token_of = TokenOwner(active.name, active.intent());
  next.member_token_error.clear();
  next.member_token_retry = Deadline{};
  if (next.operation && !finish.empty()) next.operation->report.member_token_at = c.now.wall;
  failed.member_token_error = "{error}";
  failed.member_token_retry = Deadline::After(c.now, kTokenRetry);
  if (!finish.empty()) {
    c.FinishStep(next, finish);
    c.FinishStep(failed, finish);  // a warning: it is tried again beside the roll
  }
  return c.Effect(std::move(effect), "MemberToken", "the members' token follows slot " + active.name, std::move(next),
                  std::move(failed));
}

HandlerResult DoMemberToken(const Context& c, Draft& d) {
  if (!c.spec.member_token) return StepDone();
  const SlotView active = c.Active();
  if (active.entry == nullptr || c.rec.member_token_of == TokenOwner(active.name, active.intent())) return StepDone();
  if (!active.Ready()) {
    return NotYet(c.Wait("WaitingForReady", "the token is read only from a ready slot: " + active.readyz_text,
                         Milliseconds(100)));
  }
  // The flip that was observed in this pass is noted with the token: the effect rests on no note of it.
  return Final(RefreshMemberToken(c, active, d.next, kStepMemberToken));
}

}  // namespace lockkeeper::roll
