#include "reconcilers/server/step.h"

#include <cstdio>

namespace lockkeeper::roll {

std::string_view StepKindName(StepKind kind) {
  switch (kind) {
    case StepKind::kNote: return "Note";
    case StepKind::kAdmitOperation: return "Admit";
    case StepKind::kStartSlot: return "StartSlot";
    case StepKind::kStopSlot: return "StopSlot";
    case StepKind::kForgetSlot: return "ForgetSlot";
    case StepKind::kRecordActive: return "RecordActive";
    case StepKind::kHoldFront: return "HoldFront";
    case StepKind::kPointFront: return "PointFront";
    case StepKind::kBeginUndo: return "BeginUndo";
    case StepKind::kFinish: return "Finish";
    case StepKind::kRelease: return "Release";
    case StepKind::kEffect: return "Effect";
  }
  return "";
}

StepKind KindOf(const ServerRecord& before, const Commit& commit) {
  const ServerRecord& after = commit.record;
  if (commit.remove || (after.released && !before.released)) return StepKind::kRelease;
  if (commit.outcome) return StepKind::kFinish;
  if (!before.operation && after.operation) return StepKind::kAdmitOperation;
  if (before.operation && after.operation && after.operation->undoing && !before.operation->undoing) {
    return StepKind::kBeginUndo;
  }
  if (after.active != before.active) return StepKind::kRecordActive;
  bool forgets = false;
  bool stops = false;
  for (const auto& [name, entry] : after.slots) {
    const auto was = before.slots.find(name);
    const SlotIntent none;
    const SlotIntent& old = was == before.slots.end() ? none : was->second.intent;
    if (entry.intent.running &&
        (!old.running || old.invocation != entry.intent.invocation || old.incarnation != entry.intent.incarnation)) {
      return StepKind::kStartSlot;
    }
    stops = stops || (old.running && !entry.intent.running);
    forgets = forgets || (entry.intent.forget && !old.forget);
  }
  if (stops) return StepKind::kStopSlot;
  if (forgets || after.slots.size() < before.slots.size()) return StepKind::kForgetSlot;
  if (after.hold != before.hold) return after.hold ? StepKind::kHoldFront : StepKind::kPointFront;
  return StepKind::kNote;
}

namespace {

struct Namer {
  std::string operator()(const Commit& c) const {
    std::string text = "commit";
    if (c.outcome) text += " outcome=" + std::string(EnumName(c.outcome->outcome));
    return text;
  }
  std::string operator()(const SeedSlot& e) const { return "seed " + e.plan.root; }
  std::string operator()(const HarvestShared& e) const { return "harvest " + e.plan.root; }
  std::string operator()(const RefreshToken& e) const { return "token " + e.kubeconfig; }
  std::string operator()(const PointCurrent& e) const { return "link " + e.link; }
  std::string operator()(const RequestRelease& e) const { return "release " + e.name; }
  std::string operator()(const RequestBackup& e) const { return "backup " + e.name; }
  std::string operator()(const DrainBackend& e) const {
    return "drain " + e.slot + "#" + std::to_string(e.incarnation);
  }
  std::string operator()(const DeleteLease& e) const { return "delete-lease " + e.lease.holder; }
  std::string operator()(const CreateProbe& e) const { return "create-probe " + e.name; }
  std::string operator()(const DeleteProbes& e) const { return "delete-probes " + e.name; }
};

}  // namespace

std::string DebugString(const Step& step) {
  return std::string(StepKindName(step.kind)) + " " + step.reason + " [" + std::visit(Namer{}, step.action) + "] " +
         step.message;
}

std::string DebugString(const Plan& plan) {
  std::string text = plan.rule + ": ";
  if (plan.step) return text + DebugString(*plan.step);
  text += plan.stalled ? "stalled " : plan.for_a_person ? "waits for a person " : plan.waiting ? "waits " : "";
  return text + plan.reason + (plan.message.empty() ? "" : " (" + plan.message + ")");
}

}  // namespace lockkeeper::roll
