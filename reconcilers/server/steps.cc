#include "reconcilers/server/steps.h"

namespace lockkeeper::roll {

std::vector<std::string_view> StepsOf(const OperationRecord& op, StopOrder order) {
  if (IsInstall(op)) {
    return {kStepAdmit,  kStepPreflight, kStepRender,  kStepSeed,        kStepStart, kStepListen, kStepReady,
            kStepRecord, kStepFlip,      kStepHarvest, kStepMemberToken, kStepProbe, kStepRetire, kStepDone};
  }
  if (op.outage) {
    return {kStepAdmit, kStepPreflight,   kStepNoteHolder, kStepBackUp, kStepRender, kStepGates, kStepHold,
            kStepDrain, kStepStopOld,     kStepSeed,       kStepStart,  kStepListen, kStepReady, kStepRecord,
            kStepFlip,  kStepMemberToken, kStepLease,      kStepProbe,  kStepRetire, kStepDone};
  }
  if (order == StopOrder::kStopThenDrain) {
    return {kStepAdmit,   kStepPreflight, kStepNoteHolder, kStepBackUp, kStepRender, kStepSeed,        kStepStart,
            kStepListen,  kStepReady,     kStepGates,      kStepRecord, kStepFlip,   kStepMemberToken, kStepSoak,
            kStepStopOld, kStepLease,     kStepProbe,      kStepDrain,  kStepRetire, kStepDone};
  }
  return {kStepAdmit,  kStepPreflight, kStepNoteHolder, kStepBackUp, kStepRender, kStepSeed,        kStepStart,
          kStepListen, kStepReady,     kStepGates,      kStepRecord, kStepFlip,   kStepMemberToken, kStepDrain,
          kStepSoak,   kStepStopOld,   kStepLease,      kStepProbe,  kStepRetire, kStepDone};
}

bool StepApplies(std::string_view step, const OperationRecord& op, const ServerSpec& spec) {
  if (step == kStepBackUp) {
    return spec.backup.driver != BackupDriver::kNone && op.action != "Restart" &&
           op.spec.backup == RollBackup::kRequired;
  }
  if (step == kStepGates) return !op.spec.gates.empty();
  if (step == kStepSoak) return spec.soak_seconds != 0;
  if (step == kStepMemberToken) return spec.member_token.has_value();
  if (step == kStepHarvest) return spec.seed && spec.seed->harvest;
  if (step == kStepNoteHolder) return spec.lease.has_value();
  if (step == kStepLease) return spec.lease && spec.lease->expect_handover;
  if (step == kStepProbe) return spec.probe.type != ProbeType::kNone;
  if (step == kStepDrain || step == kStepFlip || step == kStepHold) return spec.front_ref.has_value();
  return true;
}

std::string_view CurrentStep(const OperationRecord& op, StopOrder order) {
  for (std::string_view step : StepsOf(op, order)) {
    if (!Finished(op, step)) return step;
  }
  return kStepDone;
}

std::string BackupOf(const OperationRecord& op) {
  const auto chosen = op.notes.find("backup");
  if (chosen != op.notes.end() && !chosen->second.empty()) return chosen->second;
  return op.spec.backup_ref ? op.spec.backup_ref->name : std::string();
}

bool PastReturn(const OperationRecord& op) { return op.outage ? Finished(op, kStepRecord) : Started(op, kStepStopOld); }

bool Touched(const OperationRecord& op) { return op.outage ? Started(op, kStepHold) : Started(op, kStepSeed); }

}  // namespace lockkeeper::roll
