// The totals of a roll's report. Pure.
#pragma once

#include "reconcilers/ports/records.h"

namespace lockkeeper::roll {

// Fills doneAt, totalSeconds and overheadSeconds: total less backup, start to ready, gates, drain, soak, the old slot's
// exit, the lease hand-over and the probe.
void CloseReport(OperationRecord& op, Time now);

}  // namespace lockkeeper::roll
