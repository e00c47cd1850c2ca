#include "api/types/operation.h"

#include <algorithm>

#include "api/types/field_limits.h"

namespace lockkeeper {

using namespace types_internal;  // NOLINT(google-build-using-namespace)

const EnumInfo& EnumInfoOf(OperationPhase) {
  static const EnumInfo info{"OperationPhase",
                             {"Pending", "Downloading", "BackingUp", "Installing", "Restarting", "Verifying",
                              "UpgradingRunners", "RollingBack", "Succeeded", "Failed", "RolledBack", "Skipped"}};
  return info;
}
bool IsTerminal(OperationPhase phase) { return phase >= OperationPhase::kSucceeded; }

const EnumInfo& EnumInfoOf(Outcome) {
  static const EnumInfo info{"Outcome", {"Succeeded", "RolledBack", "Aborted", "Abandoned", "Failed"}};
  return info;
}
const EnumInfo& EnumInfoOf(WhenBusy) {
  static const EnumInfo info{"WhenBusy", {"Wait", "Fail"}};
  return info;
}
const EnumInfo& EnumInfoOf(OperationMode) {
  static const EnumInfo info{"OperationMode", {"Execute", "Preflight"}};
  return info;
}
const EnumInfo& EnumInfoOf(Gate) {
  static const EnumInfo info{"Gate", {"BeforeFlip"}};
  return info;
}
const EnumInfo& EnumInfoOf(OnRollback) {
  static const EnumInfo info{"OnRollback", {"WhenStopped", "Never"}};
  return info;
}
const EnumInfo& EnumInfoOf(CheckState) {
  static const EnumInfo info{"CheckState", {"Unknown", "Passed", "Failed"}};
  return info;
}

const TypeInfo& Controls::Type() {
  static const TypeInfo* type = [] {
    TypeBuilder<Controls> b("Controls", "The part of an operation's spec that may change while it runs.");
    b.Field(&Controls::paused, "paused",
            "Hold before the next point where a pause is safe: up to the start of the backup, at the gates, and while "
            "soaking. Deadlines stand still while it is paused.")
        .Default(false);
    b.Field(&Controls::approve, "approve", "Gates that a person approved. Names can be added, not removed.")
        .Set()
        .Items(0, 16)
        .Length(1, 64)
        .Default(Json::MakeArray())
        .Check("oldSelf.all(x, x in self)", "an approval cannot be taken back: names can only be added",
               [](const Json& self, const Json* old) {
                 const auto& now = self.AsArray();
                 return std::all_of(old->AsArray().begin(), old->AsArray().end(),
                                    [&](const Json& x) { return std::find(now.begin(), now.end(), x) != now.end(); });
               });
    b.Field(&Controls::abort, "abort",
            "Undo the operation. Works until the old slot is being stopped (in a planned outage: until the new one is "
            "recorded); after that condition AbortRefused says so. Once true it stays true.")
        .Default(false)
        .Check("!oldSelf || self", "an abort cannot be taken back",
               [](const Json& self, const Json* old) { return !old->AsBool() || self.AsBool(); });
    b.Field(&Controls::abandon, "abandon",
            "Stop waiting for an operation that nobody will finish: it ends Abandoned, its place is free, a pending "
            "StoreRestore is settled. What runs is repaired, not undone. Once true it stays true.")
        .Default(false)
        .Check("self || !oldSelf", "an abandon cannot be taken back",
               [](const Json& self, const Json* old) { return !old->AsBool() || self.AsBool(); });
    return b.Build();
  }();
  return *type;
}

const TypeInfo& BuildRef::Type() {
  static const TypeInfo* type = [] {
    TypeBuilder<BuildRef> b("BuildRef",
                            "Names one build. The executable's sha256 decides where known, then the "
                            "commit, then the version.");
    b.Field(&BuildRef::version, "version", "Version of the build.").Length(0, kVersionLength);
    b.Field(&BuildRef::commit, "commit", "Commit of the build.").Length(0, 64);
    b.Field(&BuildRef::sha256, "sha256", "SHA-256 of the executable.").Length(0, 64);
    return b.Build();
  }();
  return *type;
}

const TypeInfo& ResolvedBuild::Type() {
  static const TypeInfo* type = [] {
    TypeBuilder<ResolvedBuild> b("ResolvedBuild", "What was asked for, resolved once and never again.");
    b.Field(&ResolvedBuild::version, "version", "Version of the build.").Length(0, kVersionLength);
    b.Field(&ResolvedBuild::commit, "commit", "Commit of the build.").Length(0, 64);
    b.Field(&ResolvedBuild::sha256, "sha256", "SHA-256 of the executable.").Length(0, 64);
    b.Field(&ResolvedBuild::url, "url", "Where it is fetched from.").Length(0, kUrlLength);
    return b.Build();
  }();
  return *type;
}

const TypeInfo& PreflightCheck::Type() {
  static const TypeInfo* type = [] {
    TypeBuilder<PreflightCheck> b("PreflightCheck", "One precondition and whether it holds.");
    b.Field(&PreflightCheck::name, "name", "Which precondition, in CamelCase.").Required().Length(1, 64);
    b.Field(&PreflightCheck::state, "state", "Passed, Failed, or Unknown when it could not be looked at.").Required();
    b.Field(&PreflightCheck::field, "field", "The field path it is about.").Length(0, 256);
    b.Field(&PreflightCheck::message, "message", "What was found, and the way out.").Length(0, kTextLength);
    return b.Build();
  }();
  return *type;
}

const TypeInfo& PlanStep::Type() {
  static const TypeInfo* type = [] {
    TypeBuilder<PlanStep> b("PlanStep", "One step that would be taken.");
    b.Field(&PlanStep::name, "name", "Name of the step.").Required().Length(1, 64);
    b.Field(&PlanStep::description, "description", "What it does, for a person.").Length(0, kTextLength);
    b.Field(&PlanStep::expected_seconds, "expectedSeconds", "Seconds it is expected to take.");
    return b.Build();
  }();
  return *type;
}

}  // namespace lockkeeper
