// The seconds of a roll's report. Pure.
#pragma once

#include "reconcilers/ports/records.h"

namespace lockkeeper::roll {

// Seconds, to the millisecond: what is below says more of the clock than of the roll.
double RoundedToMs(double seconds);
inline double ReportSeconds(Duration d) { return RoundedToMs(ToSeconds(d)); }

// Fills doneAt, totalSeconds and overheadSeconds: total less backup, start to ready, gates, drain, soak, the old slot's
// exit, the lease hand-over and the probe.
void CloseReport(OperationRecord& op, Time now);

}  // namespace lockkeeper::roll
