#include "reconcilers/slot/plan.h"

#include <algorithm>
#include <csignal>

namespace lockkeeper::slot {
namespace {

using State = UnitStatus::State;

constexpr Duration kSoon = Milliseconds(50);
constexpr Duration kUnknownPause = Milliseconds(500);
constexpr Duration kFallback = Seconds(1);  // when an event should come first
constexpr Duration kIdle = Seconds(30);
constexpr Duration kKillAgain = Seconds(5);

bool Running(const Fact<UnitStatus>& fact) { return fact.known() && fact->state == State::kRunning; }

// Gone or never executed: nothing of it can run.
bool Still(const Fact<UnitStatus>& fact) { return fact.absent() || (fact.known() && fact->state != State::kRunning); }

bool SameStart(const SlotIntent& intent, const SlotActual& actual) {
  return intent.incarnation == actual.incarnation && intent.invocation == actual.invocation;
}

std::string Placeholder(const std::string& companion) { return "{companion." + companion + ".port}"; }

bool Names(const UnitSpec& unit, const std::string& text) {
  for (const std::string& a : unit.argv) {
    if (a.find(text) != std::string::npos) return true;
  }
  for (const auto& [k, v] : unit.env) {
    if (v.find(text) != std::string::npos) return true;
  }
  return false;
}

// Whether the server's start waits for this companion to listen.
bool MustListen(const SlotIntent& intent, const CompanionIntent& companion) {
  return companion.port != 0 || Names(intent.unit, Placeholder(companion.name));
}

int PortOf(const CompanionIntent& companion, const UnitStatus& unit) {
  const std::vector<int>& ports = unit.listen_ports;
  if (companion.port == 0) return ports.empty() ? 0 : ports.front();
  return std::find(ports.begin(), ports.end(), companion.port) != ports.end() ? companion.port : 0;
}

std::string ExitText(const UnitStatus& unit) {
  if (!unit.failure.ok()) return "could not be started: " + unit.failure.message();
  if (!unit.exit) return "is gone without an exit record";
  if (unit.exit->oom) return "was killed: out of memory";
  if (unit.exit->signal != 0) return "ended by signal " + std::to_string(unit.exit->signal);
  return "ended with exit code " + std::to_string(unit.exit->code);
}

void NoteExit(const Fact<UnitStatus>& unit, const Now& now, SlotActual* a) {
  if (a->exited_at != Time{}) return;
  const bool other_boot = !a->id.boot_id.empty() && a->id.boot_id != now.boot_id;
  if (unit.known()) a->exit = unit->exit;
  a->exited_at = a->exit ? a->exit->at : now.wall;
  if (other_boot) {
    a->stop_reason = StopReason::kHostReboot;
  } else if (a->killed_at != Time{}) {
    a->stop_reason = StopReason::kTimeout;
  } else if (a->sigterm_at != Time{}) {
    a->stop_reason = StopReason::kRequested;
  } else if (a->exit && a->exit->oom) {
    a->stop_reason = StopReason::kOom;
  } else if (a->exit) {
    a->stop_reason = a->exit->signal != 0 ? StopReason::kSignal : StopReason::kExit;
  }
}

void NoteServer(const Snapshot& s, const Now& now, SlotActual* a) {
  const Fact<UnitStatus>& unit = s.unit;
  if (unit.unknown()) return;
  if (unit.absent() || unit->id.invocation != a->invocation) {
    // What once ran and left no trace is gone: the run folder did not survive a reboot.
    if (unit.absent() && a->id.pid != 0) NoteExit(unit, now, a);
    return;
  }
  if (!unit->failure.ok() && s.entry.intent.running) {
    a->error = unit->failure.message();
    a->error_code = std::string(CodeName(unit->failure.code()));
  }
  if (unit->state == State::kPrepared || !unit->failure.ok()) return;  // nothing was executed
  if (a->id.pid == 0 && unit->id.pid != 0) ++a->boots;
  a->id = unit->id;
  if (unit->started_at != Time{}) a->started_at = unit->started_at;
  if (unit->state == State::kExited) {
    NoteExit(unit, now, a);
    return;
  }
  if (!unit->executable.empty()) a->executable = unit->executable;
  if (s.exec_sha256.known()) a->exec_sha256 = *s.exec_sha256;
  if (a->port == 0 && !unit->listen_ports.empty()) {
    a->port = unit->listen_ports.front();
    a->listening_at = now.wall;
  }
  if (!s.entry.intent.running && a->stop_asked_at == Time{}) a->stop_asked_at = now.wall;
}

void NoteCompanions(const Snapshot& s, SlotActual* a) {
  std::vector<CompanionActual> noted;
  for (const CompanionIntent& c : s.entry.intent.companions) {
    const auto old = std::find_if(a->companions.begin(), a->companions.end(),
                                  [&](const CompanionActual& x) { return x.name == c.name; });
    CompanionActual next = old == a->companions.end() ? CompanionActual{} : *old;
    next.name = c.name;
    const auto fact = s.companions.find(c.name);
    if (fact != s.companions.end() && fact->second.known() && fact->second->id.pid != 0) {
      const UnitStatus& unit = *fact->second;
      if (unit.id != next.id) next.port = 0;
      next.id = unit.id;
      next.exit = unit.exit;
      if (next.port == 0) next.port = PortOf(c, unit);
    }
    if (next.id.pid != 0) noted.push_back(std::move(next));
  }
  a->companions = std::move(noted);
}

class Decider {
 public:
  Decider(const Snapshot& s, const Now& now) : s_(s), now_(now), intent_(s.entry.intent), noted_(Noted(s, now)) {}

  Plan Run() {
    if (intent_.incarnation == 0) return Wait("NoIntent", "nothing is wanted of slot " + s_.slot + " yet", kIdle);
    if (noted_ != s_.entry.actual) return Note("Observed", "what was seen of slot " + s_.slot + " is recorded");
    if (!s_.forbidden.empty()) return Wait("HandsOff", s_.forbidden, kFallback);
    if (auto plan = ClearStale()) return *plan;
    return intent_.running ? KeepRunning() : KeepStopped();
  }

 private:
  Plan Wait(std::string reason, std::string message, Duration pause) const {
    Plan p;
    p.reason = std::move(reason);
    p.message = std::move(message);
    p.requeue_after = pause;
    return p;
  }
  Plan Note(std::string reason, std::string message) const {
    Plan p = Wait(std::move(reason), std::move(message), Milliseconds(1));
    p.step = StepKind::kNote;
    p.actual = noted_;
    return p;
  }
  Plan Unknown(const std::string& unit, const std::string& why) const {
    return Wait("UnitUnknown", unit + " could not be looked at: " + why, kUnknownPause);
  }
  Plan Reset(const std::string& unit) const {
    Plan p = Wait("Forgetting", unit + " is forgotten", Milliseconds(1));
    p.step = StepKind::kReset;
    p.unit = unit;
    return p;
  }

  // An earlier incarnation, or an earlier start of this one, goes before anything new comes.
  std::optional<Plan> ClearStale() {
    const SlotActual& a = s_.entry.actual;
    if (a.incarnation == 0 || a.incarnation == intent_.incarnation) return Renew();
    if (s_.stale.unknown() && !a.id.unit.empty()) return Unknown(a.id.unit, s_.stale.why());
    if (Running(s_.stale)) return Stop(*s_.stale, a);
    for (const auto& [unit, fact] : s_.stale_companions) {
      if (fact.unknown()) return Unknown(unit, fact.why());
      if (Running(fact)) return StopCompanion(unit, *fact);
    }
    if (s_.stale.known()) return Reset(a.id.unit);
    for (const auto& [unit, fact] : s_.stale_companions) {
      if (fact.known()) return Reset(unit);
    }
    return Renew();
  }

  // Begins the actual of a new start.
  std::optional<Plan> Renew() {
    const SlotActual& a = s_.entry.actual;
    if (SameStart(intent_, a)) return std::nullopt;
    const bool same_incarnation = a.incarnation == intent_.incarnation;
    if (s_.unit.unknown()) return Unknown(intent_.unit.name, s_.unit.why());
    const bool earlier_runs = Running(s_.unit) && s_.unit->id.invocation < intent_.invocation;
    if (earlier_runs && intent_.running) return Stop(*s_.unit, a);
    if (!intent_.running && same_incarnation && a.invocation != 0) return std::nullopt;  // stopped as it is
    noted_ = SlotActual{};
    noted_.incarnation = intent_.incarnation;
    noted_.invocation = intent_.invocation;
    if (same_incarnation) {
      noted_.boots = a.boots;
      noted_.companions = a.companions;
    }
    return Note("NewStart", "start " + std::to_string(intent_.invocation) + " of " + intent_.unit.name + " begins");
  }

  Plan KeepRunning() {
    const SlotActual& a = s_.entry.actual;
    if (s_.unit.unknown()) return Unknown(intent_.unit.name, s_.unit.why());
    if (!a.error.empty()) return Wait("StartFailed", a.error, kIdle);
    const bool here = s_.unit.known() && s_.unit->id.invocation == intent_.invocation;
    if (s_.unit.known() && s_.unit->id.invocation > intent_.invocation) {
      return Wait("ForeignProcess",
                  intent_.unit.name + " is at start " + std::to_string(s_.unit->id.invocation) + ", and " +
                      std::to_string(intent_.invocation) + " is wanted",
                  kFallback);
    }
    const bool ended = (here && s_.unit->state == State::kExited) || a.exited_at != Time{};
    if (ended) return Wait("Ended", "slot " + s_.slot + " ended; a new start is the plan's to order", kIdle);
    const bool server_runs = here && s_.unit->state == State::kRunning;
    if (auto plan = KeepCompanions(server_runs)) return *plan;
    if (server_runs) {
      return a.port == 0 ? Wait("Starting", "slot " + s_.slot + " does not listen yet", kFallback)
                         : Wait("Running", "slot " + s_.slot + " runs", kIdle);
    }
    std::map<std::string, int> ports;
    for (const CompanionActual& c : a.companions) ports[c.name] = c.port;
    const std::optional<UnitSpec> spec = FillPorts(intent_, ports);
    if (!spec) return Wait("WaitingForCompanion", "a companion's port is not known yet", kFallback);
    Plan p = Wait("Starting", "slot " + s_.slot + " is started, number " + std::to_string(intent_.invocation),
                  Milliseconds(1));
    p.step = StepKind::kStart;
    p.spec = *spec;
    p.unit = spec->name;
    p.invocation = intent_.invocation;
    return p;
  }

  // A companion that is missing is started; the server waits for those it needs.
  std::optional<Plan> KeepCompanions(bool server_runs) {
    for (const CompanionIntent& c : intent_.companions) {
      const auto it = s_.companions.find(c.name);
      if (it == s_.companions.end() || it->second.unknown()) {
        return Unknown(c.unit.name, it == s_.companions.end() ? "not looked at" : it->second.why());
      }
      const Fact<UnitStatus>& fact = it->second;
      if (Running(fact)) {
        if (server_runs || !MustListen(intent_, c) || PortOf(c, *fact) != 0) continue;
        return Wait("WaitingForCompanion", "companion " + c.name + " of slot " + s_.slot + " does not listen yet",
                    kFallback);
      }
      const auto tried = s_.tries.find(c.unit.name);
      const CompanionTry t = tried == s_.tries.end() ? CompanionTry{} : tried->second;
      if (!server_runs && t.failures >= kCompanionTries && fact.known()) {
        noted_.error = "companion " + c.name + " of slot " + s_.slot + " does not stay up: it " + ExitText(*fact);
        noted_.error_code = std::string(CodeName(fact->failure.ok() ? Code::kUnavailable : fact->failure.code()));
        return Note("CompanionFailed", noted_.error);
      }
      if (const Duration left = BackOffLeft(t); left > Duration::zero()) {
        return Wait("CompanionBackOff", "companion " + c.name + " of slot " + s_.slot + " is started again soon", left);
      }
      const int64_t last = fact.known() ? fact->id.invocation : 0;
      Plan p =
          Wait("StartingCompanion", "companion " + c.name + " of slot " + s_.slot + " is started", Milliseconds(1));
      p.step = StepKind::kStartCompanion;
      p.spec = c.unit;
      p.unit = c.unit.name;
      // One that waits for its go keeps its number; one that ended gets the next.
      p.invocation = fact.known() && fact->state == State::kPrepared ? last : last + 1;
      return p;
    }
    return std::nullopt;
  }

  Duration BackOffLeft(const CompanionTry& t) const {
    if (t.failures == 0) return Duration::zero();
    const Duration pause = std::min(Seconds(10), Milliseconds(200) * (int64_t{1} << std::min(t.failures - 1, 6)));
    return t.started + pause - now_.boot;
  }

  Plan KeepStopped() {
    if (s_.unit.unknown()) return Unknown(intent_.unit.name, s_.unit.why());
    if (Running(s_.unit)) return Stop(*s_.unit, s_.entry.actual);
    // Nothing was executed: there is no end to wait for and none to remember.
    if (s_.unit.known() && s_.unit->state == State::kPrepared) return Reset(intent_.unit.name);
    for (const CompanionIntent& c : intent_.companions) {
      const auto it = s_.companions.find(c.name);
      if (it == s_.companions.end() || it->second.unknown()) return Unknown(c.unit.name, "not looked at");
      if (Running(it->second)) return StopCompanion(c.unit.name, *it->second);
    }
    if (!intent_.forget) return Wait("Stopped", "slot " + s_.slot + " is stopped", kIdle);
    if (s_.unit.known()) return Reset(intent_.unit.name);
    for (const CompanionIntent& c : intent_.companions) {
      if (s_.companions.at(c.name).known()) return Reset(c.unit.name);
    }
    return Wait("Forgotten", "nothing of slot " + s_.slot + " is left", kIdle);
  }

  // One step of stopping a server's process: note and SIGTERM, wait, note and SIGKILL.
  Plan Stop(const UnitStatus& unit, const SlotActual& a) {
    Plan p = Wait("Stopping", "slot " + s_.slot + " is stopping", kFallback);
    p.target = unit.id;
    p.unit = unit.id.unit;
    if (unit.id.pid == 0) return Wait("Stopping", unit.id.unit + " has no process yet", kSoon);
    if (a.sigterm_at == Time{}) return Signal(std::move(p), "SIGTERM goes to " + unit.id.unit);
    const Duration left = a.kill_at.Left(now_);
    if (left <= Duration::zero()) {
      if (a.killed_at != Time{} && now_.wall < a.killed_at + kKillAgain) {
        return Wait("Killing", unit.id.unit + " was killed and is not gone yet", kSoon);
      }
      p.step = StepKind::kKill;
      p.actual = a;
      p.actual->killed_at = now_.wall;
      p.reason = "StopTimedOut";
      p.message = unit.id.unit + " did not end within " + std::to_string(intent_.stop_seconds) +
                  " s of SIGTERM: its whole session is killed";
      return p;
    }
    p.requeue_after = std::min(kFallback, left);
    if (s_.sigterm_sent) return p;
    // Noted by an agent that is gone: was it sent?
    const bool listener_closed =
        a.port != 0 && std::find(unit.listen_ports.begin(), unit.listen_ports.end(), a.port) == unit.listen_ports.end();
    if (listener_closed || (s_.says_shutting_down.known() && *s_.says_shutting_down)) return p;
    const Duration waited = now_.wall - a.sigterm_at;
    if (s_.says_shutting_down.unknown() && a.port != 0 && waited < std::min(kResumePatience, Patience() / 2)) {
      p.message = "whether " + unit.id.unit + " was told to stop is not known: " + s_.says_shutting_down.why();
      p.requeue_after = kUnknownPause;
      return p;
    }
    return Signal(std::move(p),
                  "SIGTERM goes to " + unit.id.unit + ": the agent that noted it ended before it was sent");
  }

  Duration Patience() const { return Seconds(static_cast<double>(intent_.stop_seconds)); }

  Plan Signal(Plan p, std::string message) const {
    p.step = StepKind::kTerminate;
    p.signal = intent_.stop_signal != 0 ? intent_.stop_signal : SIGTERM;
    p.actual = s_.entry.actual;
    if (p.actual->sigterm_at == Time{}) {
      p.actual->sigterm_at = now_.wall;
      p.actual->kill_at = Deadline::After(now_, Patience());
    }
    if (p.actual->stop_asked_at == Time{}) p.actual->stop_asked_at = now_.wall;
    p.reason = "Terminating";
    p.message = std::move(message);
    p.requeue_after = Milliseconds(1);
    return p;
  }

  // Companions know nothing of leases or requests: SIGTERM, and SIGKILL after ten seconds.
  Plan StopCompanion(const std::string& unit, const UnitStatus& status) const {
    const auto tried = s_.tries.find(unit);
    const Duration sent = tried == s_.tries.end() ? Duration{} : tried->second.terminated;
    Plan p = Wait("StoppingCompanion", unit + " is stopping", kFallback);
    p.target = status.id;
    p.unit = unit;
    if (sent == Duration{}) {
      p.step = StepKind::kTerminate;
      p.signal = SIGTERM;
      p.message = "SIGTERM goes to " + unit;
      p.requeue_after = Milliseconds(1);
    } else if (now_.boot - sent >= kCompanionStop) {
      p.step = StepKind::kKill;
      p.message = unit + " did not end within 10 s of SIGTERM and is killed";
      p.requeue_after = kSoon;
    } else {
      p.requeue_after = std::min(kFallback, sent + kCompanionStop - now_.boot);
    }
    return p;
  }

  const Snapshot& s_;
  const Now& now_;
  const SlotIntent& intent_;
  SlotActual noted_;
};

}  // namespace

std::string_view StepKindName(StepKind kind) {
  switch (kind) {
    case StepKind::kNone: return "None";
    case StepKind::kNote: return "Note";
    case StepKind::kStart: return "Start";
    case StepKind::kStartCompanion: return "StartCompanion";
    case StepKind::kTerminate: return "Terminate";
    case StepKind::kKill: return "Kill";
    case StepKind::kReset: return "Reset";
  }
  return "";
}

SlotActual Noted(const Snapshot& s, const Now& now) {
  SlotActual a = s.entry.actual;
  if (a.incarnation == 0) return a;
  if (a.incarnation != s.entry.intent.incarnation) {
    // Of the earlier incarnation only its end is of interest.
    if (a.id.pid != 0 && Still(s.stale)) NoteExit(s.stale, now, &a);
    return a;
  }
  NoteServer(s, now, &a);
  NoteCompanions(s, &a);
  return a;
}

Plan Decide(const Snapshot& snapshot, const Now& now) { return Decider(snapshot, now).Run(); }

std::optional<UnitSpec> FillPorts(const SlotIntent& intent, const std::map<std::string, int>& ports) {
  UnitSpec unit = intent.unit;
  for (const CompanionIntent& c : intent.companions) {
    const std::string placeholder = Placeholder(c.name);
    if (!Names(unit, placeholder)) continue;
    const auto it = ports.find(c.name);
    const int port = c.port != 0 ? c.port : it == ports.end() ? 0 : it->second;
    if (port == 0) return std::nullopt;
    const auto fill = [&](std::string& text) {
      for (size_t at = text.find(placeholder); at != std::string::npos; at = text.find(placeholder)) {
        text.replace(at, placeholder.size(), std::to_string(port));
      }
    };
    for (std::string& a : unit.argv) fill(a);
    for (auto& [k, v] : unit.env) fill(v);
  }
  return unit;
}

bool EndsTheStart(Code code) {
  switch (code) {
    case Code::kInvalid:
    case Code::kNotFound:
    case Code::kForbidden:
    case Code::kUnsupported:
    case Code::kBusy:
    case Code::kExhausted:
    case Code::kCorrupt:
    case Code::kAlreadyExists: return true;
    default: return false;  // nobody answered, or the world moved: look again
  }
}

}  // namespace lockkeeper::slot
