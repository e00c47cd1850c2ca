// Steps of a roll: their names and their order for each kind of operation. Pure.
//
// Purpose:   the table of the roll as data. An operation's place in it is not remembered as a cursor: a step is done
//            when OperationRecord.finished names it, and the next one is the first that is not.
// Threads:   pure. Failure: none.
#pragma once

#include <string_view>
#include <vector>

#include "reconcilers/ports/records.h"

namespace lockkeeper::roll {

inline constexpr char kStepAdmit[] = "Admit";
inline constexpr char kStepPreflight[] = "Preflight";
inline constexpr char kStepNoteHolder[] = "NoteHolder";
inline constexpr char kStepBackUp[] = "BackUp";
inline constexpr char kStepRender[] = "Render";
inline constexpr char kStepGates[] = "Gates";
inline constexpr char kStepHold[] = "Hold";
inline constexpr char kStepDrain[] = "Drain";
inline constexpr char kStepStopOld[] = "StopOld";
inline constexpr char kStepSeed[] = "Seed";
inline constexpr char kStepStart[] = "Start";
inline constexpr char kStepListen[] = "Listen";
inline constexpr char kStepReady[] = "Ready";
inline constexpr char kStepRecord[] = "Record";
inline constexpr char kStepFlip[] = "Flip";
inline constexpr char kStepHarvest[] = "Harvest";
inline constexpr char kStepMemberToken[] = "MemberToken";
inline constexpr char kStepSoak[] = "Soak";
inline constexpr char kStepLease[] = "Lease";
inline constexpr char kStepProbe[] = "Probe";
inline constexpr char kStepRetire[] = "Retire";
inline constexpr char kStepDone[] = "Done";

// Deadlines that are no step of the table.
inline constexpr char kUndo[] = "Undo";
inline constexpr char kActiveRepair[] = "ActiveRepair";

// Notes of an operation that more than one file reads.
inline constexpr char kFromVersion[] = "fromVersion";      // what ran when the roll began
inline constexpr char kReplacedBuild[] = "replacedBuild";  // version of the build that its Record made the previous one

inline constexpr char kKindInstall[] = "Install";
inline constexpr char kKindUpgrade[] = "Upgrade";
inline constexpr char kKindRoll[] = "Roll";

// Blue/green: … Ready, Gates, Record, Flip, MemberToken, Drain, Soak, StopOld, Lease, Probe, Retire, Done.
// An outage takes Gates before Hold, Drain and StopOld, and all three before Seed.
// StopThenDrain drains after Probe. A first install (no slot to come from) has no old slot, lease or backup.
std::vector<std::string_view> StepsOf(const OperationRecord& op, StopOrder order);

inline bool Finished(const OperationRecord& op, std::string_view step) {
  return op.finished.count(std::string(step)) != 0;
}
inline bool Started(const OperationRecord& op, std::string_view step) {
  return op.started.count(std::string(step)) != 0;
}
// Whether a step has anything to do for this Server and operation; one that has not is shown as Skipped.
bool StepApplies(std::string_view step, const OperationRecord& op, const ServerSpec& spec);
// The first step that is not finished; kStepDone when all are.
std::string_view CurrentStep(const OperationRecord& op, StopOrder order);

// A first install by whatever kind: there is no slot to come from.
inline bool IsInstall(const OperationRecord& op) { return op.from.empty(); }

// The StoreBackup it rests on: chosen by it, else the one it was given; "" before it has one.
std::string BackupOf(const OperationRecord& op);

// No word can undo it any more: blue/green from StopOld on, an outage once the new slot is recorded.
bool PastReturn(const OperationRecord& op);
// Something on the host or in the front was touched on its behalf.
bool Touched(const OperationRecord& op);

}  // namespace lockkeeper::roll
