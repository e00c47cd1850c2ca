// The roll, step 2: every precondition by name, all false ones at once; and the plan that a preflight shows.
#include <algorithm>

#include "api/types/build.h"
#include "api/types/reasons.h"
#include "reconcilers/server/draft.h"
#include "reconcilers/server/render.h"

namespace lockkeeper::roll {
namespace {

constexpr size_t kKeptBytes = 400;        // of a check's message in the ledger, which keeps it for ever
constexpr int64_t kFreeBytes = 64 << 20;  // what a slot's logs and a ledger commit need to be safe

Check Make(std::string name, CheckState state, std::string field, std::string message) {
  Check c;
  c.check.name = std::move(name);
  c.check.state = state;
  c.check.field = std::move(field);
  c.check.message = std::move(message);
  return c;
}

Check Passed(const char* name, std::string message = "") {
  return Make(name, CheckState::kPassed, "", std::move(message));
}

Check BySpec(const char* name, std::string_view why, std::string field, std::string message) {
  Check c = Make(name, CheckState::kFailed, std::move(field), std::move(message));
  c.by_spec = true;
  c.reason = why;
  return c;
}

Check OnHost(const char* name, std::string_view why, std::string field, std::string message, NextAction action) {
  Check c = Make(name, CheckState::kFailed, std::move(field), std::move(message));
  c.reason = why;
  c.action = std::move(action);
  return c;
}

Check NotADowngrade(const Context& c, const HostBuild& build) {
  if (IsInstall(*c.op) || c.op->spec.allow_downgrade || c.spec.allow_downgrade ||
      !IsDowngrade(c.rec.version, build.version)) {
    return Passed("NotADowngrade");
  }
  return BySpec("NotADowngrade", reason::kDowngradeRefused, "spec.allowDowngrade",
                build.version + " is older than the running " + c.rec.version + ", and allowDowngrade is false");
}

Check Commands(const Context& c) {
  for (const auto& [path, sha] : c.s.files.commands) {
    if (sha.known()) continue;
    if (sha.unknown()) return Make("CommandsExist", CheckState::kUnknown, "spec.template.command", sha.why());
    return OnHost("CommandsExist", reason::kCommandNotFound, "spec.template.command",
                  path + " does not exist or is not executable",
                  c.MakeAction("ProvideCommand", "ls -l " + path, "none"));
  }
  return Passed("CommandsExist");
}

Check SharedFiles(const Context& c) {
  if (!c.spec.seed) return Passed("SharedFiles");
  if (IsInstall(*c.op) && c.spec.seed->harvest)
    return Passed("SharedFiles", "taken from the first slot once it is ready");
  const auto& missing = c.s.files.missing_shared;
  if (missing.unknown()) return Make("SharedFiles", CheckState::kUnknown, "spec.seed.files", missing.why());
  if (missing.absent() || missing->empty()) return Passed("SharedFiles");
  std::string names;
  for (const std::string& name : *missing) names += (names.empty() ? "" : ", ") + name;
  return OnHost("SharedFiles", reason::kSharedFileMissing, "spec.seed.files", names + " missing in " + c.layout.shared,
                c.MakeAction("ProvideSharedFiles", "ls -la " + c.layout.shared, "none"));
}

Check Front(const Context& c) {
  if (!c.HasFront()) return Passed("FrontAnswers", "no front");
  const NextAction look = c.MakeAction("InspectFront", "kubectl describe front " + c.spec.front_ref->name, "none");
  if (!c.s.front_claimed_by.empty()) {
    return OnHost("FrontAnswers", reason::kFrontClaimed, "spec.frontRef.name",
                  "the front is claimed by Server " + c.s.front_claimed_by + " already", look);
  }
  if (c.s.front.known()) return Passed("FrontAnswers");
  const std::string why = c.s.front.absent() ? "it does not exist on this host" : c.s.front.why();
  return OnHost("FrontAnswers", c.s.front.absent() ? reason::kFrontNotFound : reason::kFrontSilent,
                "spec.frontRef.name", "the front " + c.FrontName() + " does not answer: " + why, look);
}

Check HoldLongEnough(const Context& c) {
  if (!c.op->outage || !c.HasFront() || !c.s.front_spec.known()) return Passed("HoldLongEnough");
  const Timeouts t = c.timeouts();
  const int64_t needed = t.stop_seconds + t.ready_seconds;
  if (c.s.front_spec->hold.seconds >= needed) return Passed("HoldLongEnough");
  return BySpec("HoldLongEnough", reason::kHoldTooShort, "spec.hold.seconds",
                "the front holds connections for " + std::to_string(c.s.front_spec->hold.seconds) +
                    " s, and stop and start may take " + std::to_string(needed) + " s");
}

// A kine that starts beside a live one vacuums the shared SQLite file and stalls the server that serves.
Check KineLeavesTheStoreAlone(const Context& c) {
  if (c.op->outage || IsInstall(*c.op)) return Passed("KineLeavesTheStoreAlone");
  for (const auto& companion : c.spec.template_.companions) {
    if (companion.command.empty()) continue;
    const std::string& path = companion.command[0];
    if (path.substr(path.rfind('/') + 1) != "kine") continue;
    for (const std::string& arg : companion.command) {
      if (arg.find("sqlite://") == std::string::npos || arg.find("_kine_disable_startup_vacuum") != std::string::npos) {
        continue;
      }
      return BySpec("KineLeavesTheStoreAlone", reason::kStoreBusy, "spec.template.companions",
                    "companion " + companion.name +
                        " would vacuum the live store at its start: add "
                        "_kine_disable_startup_vacuum=true to its DSN, or roll with plannedOutage");
    }
  }
  return Passed("KineLeavesTheStoreAlone");
}

// A slot that publishes its own address re-points what clients are told before the flip.
Check ShardUrlsAreTheFronts(const Context& c) {
  for (const std::string& arg : c.spec.template_.command) {
    if (arg.rfind("--shard-", 0) != 0 || arg.find("-url") == std::string::npos) continue;
    if (arg.find("{port}") == std::string::npos) continue;
    return BySpec("ShardUrlsAreTheFronts", reason::kInvalidSpec, "spec.template.command",
                  arg.substr(0, arg.find('=')) + " carries the slot's own port; it must be the front's address");
  }
  return Passed("ShardUrlsAreTheFronts");
}

Check PortsDiffer(const Context& c) {
  const PortSpec& port = c.spec.template_.port;
  const bool clash = port.type == PortType::kFixed && c.spec.shape == ServerShape::kBlueGreen && port.fixed &&
                     port.fixed->green && *port.fixed->green == port.fixed->blue;
  if (!clash) return Passed("PortsDiffer");
  return BySpec("PortsDiffer", reason::kInvalidSpec, "spec.template.port.fixed", "blue and green have the same port");
}

// Known once there is a build to render; the slot's own unit of before is stopped later, and gives its port back.
Check PortsFree(const Context& c) {
  const auto before = c.rec.slots.find(c.op->to);
  const pid_t own = before == c.rec.slots.end() ? 0 : before->second.actual.id.pid;
  for (const auto& [port, holder] : c.s.files.ports) {
    if (!holder.known() || (own != 0 && holder->pid == own)) continue;
    const std::string who =
        holder->pid == 0 ? "another process" : "process " + std::to_string(holder->pid) + " (" + holder->command + ")";
    return OnHost("PortsFree", reason::kPortTaken, "spec.template.port.fixed",
                  "port " + std::to_string(port) + " of slot " + c.op->to + " is taken by " + who,
                  c.MakeAction("FreePort", "ss -ltnp sport = :" + std::to_string(port), "none"));
  }
  return Passed("PortsFree");
}

Check DiskSpace(const Context& c) {
  const Fact<int64_t>& free = c.s.host.free_bytes;
  if (!free.known()) return Passed("DiskSpace", "not known");
  if (*free >= kFreeBytes) return Passed("DiskSpace");
  return OnHost("DiskSpace", reason::kDiskFull, "",
                std::to_string(*free >> 20) + " MiB are free below " + c.s.host.data_dir + ", and 64 MiB are needed",
                c.MakeAction("FreeDisk", "df -h " + c.s.host.data_dir, "none"));
}

Check ActiveSlotKnown(const Context& c) {
  if (IsInstall(*c.op) || c.rec.slots.count(c.op->from) != 0) return Passed("ActiveSlotKnown");
  return OnHost("ActiveSlotKnown", reason::kLedgerLost, "", "the ledger does not record slot " + c.op->from, {});
}

// The checks as the ledger keeps them.
std::vector<PreflightCheck> Kept(std::vector<PreflightCheck> checks) {
  for (PreflightCheck& check : checks) {
    if (check.message.size() <= kKeptBytes) continue;
    size_t end = kKeptBytes - 3;
    while (end > 0 && (static_cast<unsigned char>(check.message[end]) & 0xC0) == 0x80) --end;
    check.message = check.message.substr(0, end) + "...";
  }
  return checks;
}

}  // namespace

Fact<HostBuild> TargetBuild(const Context& c) {
  const OperationRecord& op = *c.op;
  if (!op.target.path.empty()) return op.target;
  const std::string wanted = op.spec.release_ref ? op.spec.release_ref->name : c.Note("release");
  if (wanted.empty()) {
    const auto active = c.rec.slots.find(op.from);
    if (active == c.rec.slots.end()) return Absent{};
    return active->second.intent.build;
  }
  if (!c.s.release.known()) return c.s.release.absent() ? Fact<HostBuild>(Absent{}) : Unknown{c.s.release.why()};
  if (c.s.release->name != wanted) return Unknown{"Release " + wanted + " was not observed"};
  switch (c.s.release->state) {
    case ReleaseFact::State::kReady: return c.s.release->build;
    case ReleaseFact::State::kPending: return Unknown{"Release " + wanted + " is not ready: " + c.s.release->message};
    case ReleaseFact::State::kFailed: return Unknown{"Release " + wanted + " failed: " + c.s.release->message};
  }
  return Absent{};
}

Result<SlotIntent> RenderTarget(const Context& c) {
  const Fact<HostBuild> build = TargetBuild(c);
  if (!build.known()) return Status(Code::kUnavailable, build.absent() ? "no build to render" : build.why());
  return Render({c.s.key, c.spec, c.op->to, c.rec.incarnations + 1, *build, c.timeouts(), c.layout, c.s.ledger.id,
                 c.s.ledger.revision});
}

SeedPlan SeedOf(const Context& c, const std::string& slot) {
  SeedPlan plan;
  plan.root = c.layout.Root(slot);
  plan.shared_dir = c.layout.shared;
  if (!c.spec.seed) return plan;
  const std::vector<std::string>* missing =
      c.op != nullptr && IsInstall(*c.op) ? c.s.files.missing_shared.get() : nullptr;
  const auto is_missing = [&](const std::string& name) {
    return missing != nullptr && std::find(missing->begin(), missing->end(), name) != missing->end();
  };
  // kcp refuses a token store without its kubeconfig, and makes another token without the store.
  const bool pair_broken = is_missing(".admin-token-store") || is_missing("admin.kubeconfig");
  for (const std::string& name : c.spec.seed->files) {
    const bool of_pair = name == ".admin-token-store" || name == "admin.kubeconfig";
    if (!is_missing(name) && !(of_pair && pair_broken)) plan.files.push_back(name);
  }
  return plan;
}

std::vector<Check> RunPreflight(const Context& c) {
  std::vector<Check> checks;
  const Fact<HostBuild> build = TargetBuild(c);
  checks.push_back(ActiveSlotKnown(c));
  if (build.known()) {
    checks.push_back(Passed("ReleaseReady", build->version));
    checks.push_back(NotADowngrade(c, *build));
    const Result<SlotIntent> rendered = RenderTarget(c);
    checks.push_back(
        rendered.ok() ? Passed("TemplateRenders")
                      : BySpec("TemplateRenders", reason::kInvalidSpec, "spec.template", rendered.status().message()));
  } else {
    const bool failed = c.s.release.known() && c.s.release->state == ReleaseFact::State::kFailed;
    const std::string wanted = c.op->spec.release_ref ? c.op->spec.release_ref->name : c.Note("release");
    Check check = Make("ReleaseReady", failed || build.absent() ? CheckState::kFailed : CheckState::kUnknown,
                       "spec.releaseRef", build.absent() ? "Release " + wanted + " does not exist" : build.why());
    check.reason = build.absent()                           ? reason::kReleaseNotFound
                   : failed && !c.s.release->reason.empty() ? std::string_view(c.s.release->reason)
                                                            : reason::kReconciling;
    check.action = c.MakeAction("InspectRelease", "kubectl describe release " + wanted + " -n " + c.rec.key.ns, "none");
    checks.push_back(std::move(check));
  }
  checks.push_back(Commands(c));
  checks.push_back(SharedFiles(c));
  checks.push_back(Front(c));
  checks.push_back(HoldLongEnough(c));
  checks.push_back(PortsDiffer(c));
  checks.push_back(PortsFree(c));
  checks.push_back(KineLeavesTheStoreAlone(c));
  checks.push_back(ShardUrlsAreTheFronts(c));
  checks.push_back(DiskSpace(c));
  return checks;
}

std::vector<PlanStep> StepsAhead(const Context& c) {
  struct Line {
    const char* step;
    const char* text;
  };
  static constexpr Line kLines[] = {
      {kStepBackUp, "back the store up"},
      {kStepHold, "hold new connections in the front"},
      {kStepDrain, "drain the old slot"},
      {kStepStopOld, "stop the old slot"},
      {kStepSeed, "clear and seed the new slot"},
      {kStepStart, "start the new build"},
      {kStepReady, "wait until it is ready"},
      {kStepGates, "wait for approval"},
      {kStepRecord, "record the new slot as active"},
      {kStepFlip, "flip the front"},
      {kStepMemberToken, "hand the members' token over"},
      {kStepSoak, "run both slots on"},
      {kStepLease, "hand the controller lease over"},
      {kStepProbe, "make a probe object through the front"},
      {kStepRetire, "retire the old slot"},
  };
  const Timeouts t = c.timeouts();
  std::vector<PlanStep> steps;
  for (std::string_view step : StepsOf(*c.op, c.spec.template_.stop.order)) {
    const auto line = std::find_if(std::begin(kLines), std::end(kLines), [&](const Line& l) { return l.step == step; });
    if (line == std::end(kLines)) continue;
    if (!StepApplies(step, *c.op, c.spec)) continue;
    PlanStep out;
    out.name = step;
    out.description = line->text;
    // The most it may take; what has no limit of its own is a matter of milliseconds.
    if (step == kStepBackUp) out.expected_seconds = static_cast<double>(c.spec.backup.timeout_seconds);
    if (step == kStepReady) out.expected_seconds = static_cast<double>(t.ready_seconds);
    if (step == kStepFlip) out.expected_seconds = static_cast<double>(t.flip_seconds);
    if (step == kStepDrain) out.expected_seconds = static_cast<double>(t.drain_seconds);
    if (step == kStepSoak) out.expected_seconds = static_cast<double>(c.spec.soak_seconds);
    if (step == kStepStopOld) out.expected_seconds = static_cast<double>(t.stop_seconds);
    if (step == kStepLease) out.expected_seconds = static_cast<double>(t.lease_seconds);
    if (step == kStepProbe) out.expected_seconds = static_cast<double>(t.probe_seconds);
    steps.push_back(std::move(out));
  }
  return steps;
}

HandlerResult DoPreflight(const Context& c, Draft& d) {
  c.BeginStep(d.next, kStepPreflight);
  const std::vector<Check> checks = RunPreflight(c);
  std::vector<PreflightCheck> shown;
  std::vector<NextAction> actions;
  std::string failed, pending, first;
  bool by_spec = false;
  for (const Check& check : checks) {
    shown.push_back(check.check);
    if (check.check.state == CheckState::kPassed) continue;
    std::string& list = check.check.state == CheckState::kFailed ? failed : pending;
    list += (list.empty() ? "" : "; ") + check.check.name + ": " + check.check.message;
    if (check.check.state != CheckState::kFailed) continue;
    if (first.empty()) first = check.reason;
    by_spec = by_spec || check.by_spec;
    if (!check.action.code.empty()) actions.push_back(check.action);
  }
  const auto with_checks = [&](Plan plan) {
    plan.checks = shown;
    plan.steps_ahead = StepsAhead(c);
    return plan;
  };
  const auto keep = [&] { d.op().checks = Kept(shown); };
  const std::string release = c.Note("release");
  if (!release.empty() && c.s.release.absent()) {
    return NotYet(with_checks(
        c.Effect(RequestRelease{release, c.Note("version")}, "RequestingRelease", "requests Release " + release)));
  }
  if (c.op->spec.mode == OperationMode::kPreflight && (pending.empty() || by_spec)) {
    const bool good = failed.empty();
    keep();
    return Final(with_checks(Finish(c, std::move(d.next), good ? Outcome::kSucceeded : Outcome::kFailed,
                                    good ? "PreflightPassed" : "PreflightFailed",
                                    good ? "every precondition holds; nothing was changed" : failed)));
  }
  if (by_spec && c.op->kind != kKindInstall) {
    keep();
    return Final(with_checks(Fail(c, std::move(d.next), kStepPreflight, {"PreflightFailed", failed})));
  }
  if (!failed.empty()) return NotYet(with_checks(c.Stall(first, failed, std::move(actions))));
  if (!pending.empty()) return NotYet(with_checks(c.Wait("Preflight", pending, Milliseconds(200))));
  if (Paused(c)) {
    const std::string tail = " " + c.op->name + " -n " + c.rec.key.ns;
    HandlerResult wait = WaitAtGate(c, d, kStepPreflight, "Paused", "paused before anything is touched",
                                    {c.MakeAction("Resume", "lockkeeper resume" + tail, "none")});
    wait.plan = with_checks(std::move(*wait.plan));
    return wait;
  }
  LeaveGate(c, d);
  keep();
  return StepDone();
}

}  // namespace lockkeeper::roll
