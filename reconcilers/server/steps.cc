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

std::string_view CurrentStep(const OperationRecord& op, StopOrder order) {
  for (std::string_view step : StepsOf(op, order)) {
    if (!Finished(op, step)) return step;
  }
  return kStepDone;
}

bool PastReturn(const OperationRecord& op) { return op.outage ? Finished(op, kStepRecord) : Started(op, kStepStopOld); }

bool Touched(const OperationRecord& op) { return op.outage ? Started(op, kStepHold) : Started(op, kStepSeed); }

}  // namespace lockkeeper::roll
