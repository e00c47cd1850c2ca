#include "reconcilers/front/front_plan.h"

#include <algorithm>

#include "api/types/reasons.h"
#include "reconcilers/front/front_config.h"
#include "reconcilers/front/socket_ops.h"

namespace lockkeeper::fronts {
namespace {

constexpr Duration kSteady = Seconds(5);
constexpr Duration kSoon = Milliseconds(200);
// A front answers within 50 ms of its start; on a busy host it gets a hundred times that.
constexpr Duration kSilentAfter = Seconds(5);
// Its own drain takes at most 60 s.
constexpr Duration kStopPatience = Seconds(75);
constexpr int64_t kMaxFailures = 6;

front::FrontConfig ConfigOf(const HostPaths& paths, const FrontDocument& d) {
  front::FrontConfig c;
  c.name = d.Key();
  c.listen = d.listen;
  c.state_dir = paths.fronts_dir + "/" + d.ns + "." + d.name + "/state";
  c.admin_path = front::FrontAdminPath(paths.admin_dir, d.ns, d.name);
  c.limits.max_connections = static_cast<int>(d.spec.max_connections);
  // 0 means none: one at a time is the least a front can hold.
  c.limits.hold_connections = static_cast<int>(std::max<int64_t>(d.spec.hold.connections, 1));
  c.limits.hold_time = Seconds(static_cast<double>(std::max<int64_t>(d.spec.hold.seconds, 1)));
  c.limits.connect_timeout = Milliseconds(d.spec.connect_timeout_milliseconds);
  c.limits.idle_timeout = Seconds(static_cast<double>(d.spec.idle_timeout_seconds));
  c.limits.keepalive.idle_seconds = static_cast<int>(d.spec.keepalive.idle_seconds);
  c.limits.keepalive.interval_seconds = static_cast<int>(d.spec.keepalive.interval_seconds);
  c.limits.keepalive.count = static_cast<int>(d.spec.keepalive.count);
  c.limits.keepalive.user_timeout_seconds = static_cast<int>(d.spec.keepalive.user_timeout_seconds);
  return c;
}

Plan Say(Settling settling, ConditionStatus ready, std::string_view reason, std::string message,
         Duration requeue = kSteady) {
  Plan p;
  p.verdict = {ready, settling, std::string(reason), std::move(message)};
  p.requeue_after = requeue;
  return p;
}
Plan Underway(std::string_view reason, std::string message, Duration requeue = kSoon) {
  return Say(Settling::kReconciling, ConditionStatus::kFalse, reason, std::move(message), requeue);
}
Plan Stalled(std::string_view reason, std::string message) {
  return Say(Settling::kStalled, ConditionStatus::kFalse, reason, std::move(message));
}
Plan Unreadable(std::string message) {
  return Say(Settling::kReconciling, ConditionStatus::kUnknown, reason::kUnreadable, std::move(message), Seconds(1));
}

Plan WithStep(Plan p, HostStep step, std::string why) {
  p.step = std::move(step);
  p.why = std::move(why);
  return p;
}

// The facts of one pass, and what follows from them.
class Planner {
 public:
  Planner(const Snapshot& s, const Now& now) : s_(s), now_(now) {}

  Plan Decide() {
    if (s_.document.unknown()) {
      return Unreadable("the ledger's record of the front cannot be read: " + s_.document.why());
    }
    if (const Front* o = s_.object.get(); o != nullptr && o->spec.host != s_.paths.host) return {};
    if (s_.document.absent()) return WithoutDocument();
    doc_ = &*s_.document;
    Plan plan = WithDocument();
    const Front* o = s_.object.get();
    if (o != nullptr && plan.object_step == ObjectStep::kNone && !o->metadata.Deleting() &&
        !o->metadata.HasFinalizer(kFinalizer)) {
      plan.object_step = ObjectStep::kAddFinalizer;
    }
    return plan;
  }

 private:
  Plan WithoutDocument() {
    const Front* o = s_.object.get();
    if (o == nullptr) return {};
    if (o->metadata.Deleting()) {
      Plan p = Underway(reason::kDeleting, "nothing of it is left on the host");
      if (o->metadata.HasFinalizer(kFinalizer)) p.object_step = ObjectStep::kRemoveFinalizer;
      return p;
    }
    Plan p = Underway(reason::kReconciling, "it is being taken up by the host");
    // The finalizer first: what the host has taken up cannot vanish without it.
    if (!o->metadata.HasFinalizer(kFinalizer)) {
      p.object_step = ObjectStep::kAddFinalizer;
      return p;
    }
    FrontDocument d;
    d.ns = s_.ns;
    d.name = s_.name;
    Load(*o, &d);
    d.restart_seen = Annotation(*o);  // the first sight of it is no order
    return WithStep(std::move(p), Commit{d}, "take up the front");
  }

  static std::string Annotation(const Front& o) {
    const auto it = o.metadata.annotations.find(kRestartAnnotation);
    return it == o.metadata.annotations.end() ? std::string() : it->second;
  }

  static void Load(const Front& o, FrontDocument* d) {
    d->uid = o.metadata.uid;
    d->generation = o.metadata.generation;
    d->spec = o.spec;
    d->deleting = o.metadata.Deleting();
  }

  Plan WithDocument() {
    if (const Front* o = s_.object.get()) {
      const bool older = o->metadata.uid == doc_->uid && o->metadata.generation < doc_->generation;
      if (older) {
        older_ = "its generation " + std::to_string(o->metadata.generation) + " is older than " +
                 std::to_string(doc_->generation) + ", which the host loaded; edit it to go on";
      } else {
        FrontDocument d = *doc_;
        if (o->metadata.uid != d.uid) d.restart_seen = Annotation(*o);  // made anew: first seen now
        Load(*o, &d);
        if (d != *doc_) return WithStep(Loading(), Commit{d}, "load the front's spec");
      }
    }
    if (s_.claims.known()) {
      const std::string holder = ClaimHolder();
      if (holder != doc_->claimed_by) {
        FrontDocument d = *doc_;
        d.claimed_by = holder;
        return WithStep(Loading(), Commit{d}, holder.empty() ? "the claim is gone" : "claimed by Server " + holder);
      }
    }
    if (doc_->deleting && s_.claims.known() && doc_->claimed_by.empty()) return StopForGood();
    Plan plan = Keep();
    if (doc_->deleting && plan.verdict.settling != Settling::kStalled) {
      plan.verdict = {ConditionStatus::kFalse, Settling::kReconciling, std::string(reason::kDeleting),
                      "it ends once Server " + doc_->claimed_by + " is gone or points to another front"};
    } else if (!older_.empty()) {
      plan.verdict = {ConditionStatus::kFalse, Settling::kStalled, std::string(reason::kSpecOlderThanHost), older_};
    }
    return plan;
  }

  Plan Loading() const { return Underway(reason::kReconciling, "its spec is being loaded"); }

  // Who has the claim keeps it for as long as it makes it; else the first by name.
  std::string ClaimHolder() const {
    std::string first;
    for (const Claim& c : *s_.claims) {
      if (c.server == doc_->claimed_by) return c.server;
      if (first.empty() || c.server < first) first = c.server;
    }
    return first;
  }

  bool Running() const { return s_.unit.known() && s_.unit->state == UnitStatus::State::kRunning; }

  // The process runs and its target is the wanted one.
  Plan Keep() {
    if (doc_->spec.proxy_protocol != ProxyProtocol::kNone && !Running()) {
      return Stalled(reason::kInvalidSpec, "spec.proxyProtocol: V2 is not supported by this version; set None");
    }
    const Result<std::string> listen = NumericListen(doc_->spec.listen);
    if (!listen.ok()) return Stalled(reason::kInvalidSpec, "spec.listen: " + listen.status().message());
    listen_ = *listen;
    if (s_.unit.unknown()) return Unreadable("its process cannot be looked at: " + s_.unit.why());
    if (!Running()) return Start();
    if (doc_->stop_by.IsSet()) return StopToListenElsewhere();
    if (NeedsConfig()) return WriteConfigStep(Loading());
    if (s_.state.known()) return Converge();
    const bool silent = now_.wall - s_.unit->started_at > kSilentAfter;
    const std::string why = s_.state.absent() ? "no such socket" : s_.state.why();
    if (!silent)
      return Underway(reason::kFrontDown, "its process was started and does not answer yet", Milliseconds(20));
    Plan p = Stalled(reason::kFrontSilent, "process " + std::to_string(s_.unit->id.pid) +
                                               " runs and does not answer on its admin socket: " + why +
                                               "; its connections are left alone");
    p.requeue_after = Seconds(1);
    return p;
  }

  bool NeedsConfig() const {
    return !s_.config.unknown() && (s_.config.absent() || *s_.config != RenderConfig(s_.paths, *doc_));
  }

  Plan WriteConfigStep(Plan p) const {
    return WithStep(std::move(p),
                    WriteConfig{FrontConfigPath(s_.paths, doc_->ns, doc_->name), RenderConfig(s_.paths, *doc_)},
                    "write the front's configuration");
  }

  Plan Start() {
    Plan p = Underway(reason::kFrontDown, "its process is being started");
    const bool ended =
        s_.unit.known() && s_.unit->state == UnitStatus::State::kExited && s_.unit->id.invocation >= doc_->invocation;
    if (ended && !s_.unit->failure.ok()) {
      // It goes on by itself once the address is free.
      const bool taken =
          s_.unit->failure.message().find(doc_->listen) != std::string::npos || s_.unit->failure.code() == Code::kBusy;
      const std::string& why = s_.unit->failure.message();
      const std::string prefix = !taken                                ? "cannot be started: "
                                 : why.starts_with("cannot listen on") ? ""
                                                                       : "cannot listen on " + doc_->listen + ": ";
      p = Stalled(taken ? reason::kListenFailed : reason::kStartFailed, prefix + why + "; it is tried again");
    } else if (ended) {
      p = Underway(reason::kFrontDown, "its process is gone; it is being started again");
    }
    if (doc_->invocation == 0 || ended) {
      if (doc_->invocation != 0 && doc_->not_before.IsSet() && !doc_->not_before.Passed(now_)) {
        p.requeue_after = std::max(doc_->not_before.Left(now_), Milliseconds(1));
        return p;
      }
      FrontDocument d = *doc_;
      ++d.invocation;
      d.listen = listen_;
      if (ended) d.failures = std::min(d.failures + 1, kMaxFailures);
      d.not_before = Deadline::After(now_, StartBackoff(d.failures));
      d.stop_by = {};
      return WithStep(std::move(p), Commit{d}, "start invocation " + std::to_string(d.invocation));
    }
    // A prepared one waits for its go: the same start gives it.
    if (NeedsConfig()) return WriteConfigStep(std::move(p));
    return WithStep(std::move(p), StartFront{RenderUnit(s_.paths, *doc_, doc_->listen), doc_->invocation},
                    "start the front's process");
  }

  // The running front answers.
  Plan Converge() {
    const FrontState& f = *s_.state;
    if (f.target && !f.target->ledger_id.empty()) {
      if (f.target->ledger_id != s_.ledger.id) {
        return Stalled(reason::kLedgerLost, "the front was pointed by ledger " + f.target->ledger_id +
                                                ", this host's ledger is " + s_.ledger.id + "; it is left alone");
      }
      if (f.target->revision > s_.ledger.revision) {
        return Stalled(reason::kLedgerOlderThanHost, "the front was pointed at revision " +
                                                         std::to_string(f.target->revision) +
                                                         " of the ledger, which is now at " +
                                                         std::to_string(s_.ledger.revision) + "; it is left alone");
      }
    }
    if (s_.claims.unknown()) return Unreadable("who claims it cannot be read: " + s_.claims.why());
    const Claim* claim = nullptr;
    for (const Claim& c : *s_.claims) claim = c.server == doc_->claimed_by ? &c : claim;
    if (claim != nullptr && claim->target) {
      const FrontTarget& want = *claim->target;
      if (!f.target || !f.target->SameBackend(want)) {
        return WithStep(Underway(reason::kReconciling, "it is being pointed to " + Describe(want)), SetTarget{want},
                        "point the front to " + Describe(want));
      }
    }
    // Behind the target: one that ends is pointed too, and its successor resumes from there.
    if (f.stopping) return Underway(reason::kFrontDown, "it drains and is started again on the same listener");
    if (doc_->failures > 0) {
      FrontDocument d = *doc_;
      d.failures = 0;
      d.not_before = {};
      return WithStep(Loading(), Commit{d}, "the front runs");
    }
    if (const Front* o = s_.object.get(); o != nullptr && older_.empty()) {
      const std::string order = Annotation(*o);
      if (!order.empty() && order != doc_->restart_seen) {
        FrontDocument d = *doc_;
        d.restart_seen = order;
        d.restart_pid = s_.unit->id.pid;
        if (doc_->listen != listen_) d.stop_by = Deadline::After(now_, kStopPatience);
        return WithStep(Loading(), Commit{d}, "restart, as asked by " + std::string(kRestartAnnotation) + "=" + order);
      }
    }
    if (doc_->restart_pid != 0 && doc_->restart_pid == s_.unit->id.pid) {
      return WithStep(Underway(reason::kFrontDown, "it is being restarted, as asked"), RestartFront{}, "restart");
    }
    return Settled(f, claim);
  }

  Plan Settled(const FrontState& f, const Claim* claim) const {
    const auto ready = [](std::string_view reason, std::string message) {
      return Say(Settling::kCurrent, ConditionStatus::kTrue, reason, std::move(message));
    };
    const std::string how = "; restart it when its connections may end: kubectl annotate front " + doc_->name + " -n " +
                            doc_->ns + " --overwrite " + kRestartAnnotation + "=\"$(date -u +%FT%TZ)\"";
    if (doc_->listen != listen_) {
      return ready(reason::kFrontOutdated, "it listens on " + doc_->listen + ", its spec says " + listen_ + how);
    }
    if (!f.version.empty() && !s_.paths.version.empty() && f.version != s_.paths.version) {
      return ready(reason::kFrontOutdated,
                   "it runs lockkeeper " + f.version + ", the host has " + s_.paths.version + how);
    }
    if (!f.settings.empty() && f.settings != front::SettingsHash(ConfigOf(s_.paths, *doc_))) {
      return ready(reason::kFrontOutdated, "it runs with settings from before its spec was edited" + how);
    }
    if (claim == nullptr) return ready(reason::kUnclaimed, "it listens on " + doc_->listen + "; no Server claims it");
    const std::string claimed = "for Server " + claim->server;
    if (claim->stopped && f.target && f.target->hold) {
      return Say(Settling::kCurrent, ConditionStatus::kFalse, reason::kServerStopped,
                 "Server " + claim->server + " is stopped: a new connection is held for " +
                     std::to_string(doc_->spec.hold.seconds) + " s, then closed; `lockkeeper start " + claim->server +
                     " -n " + doc_->ns + "` starts it");
    }
    if (!f.target || f.target->hold) {
      return ready(reason::kFrontHolding, "it holds new connections " + claimed + ", as wanted");
    }
    return ready(reason::kInSync, "it sends new connections to slot " + f.target->slot + " " + claimed);
  }

  static std::string Describe(const FrontTarget& t) {
    return t.hold ? std::string("hold") : "slot " + t.slot + " at " + t.address;
  }

  // SIGTERM lets it drain; what is left at the deadline is killed.
  Plan Stop(Plan p) const {
    if (doc_->stop_by.Passed(now_)) {
      return WithStep(std::move(p), StopFront{s_.unit->id, true}, "kill the front, which did not end");
    }
    if (s_.state.known() && s_.state->stopping) return p;
    return WithStep(std::move(p), StopFront{s_.unit->id, false}, "end the front");
  }

  Plan StopToListenElsewhere() const {
    return Stop(Underway(reason::kFrontDown, "it ends, to listen on " + listen_ + " instead of " + doc_->listen));
  }

  Plan StopForGood() {
    if (s_.unit.unknown()) return Unreadable("its process cannot be looked at: " + s_.unit.why());
    Plan p = Underway(reason::kDeleting, "its process is being ended");
    if (Running()) {
      if (!doc_->stop_by.IsSet()) {
        FrontDocument d = *doc_;
        d.stop_by = Deadline::After(now_, kStopPatience);
        return WithStep(std::move(p), Commit{d}, "the front is deleted and nobody claims it");
      }
      return Stop(std::move(p));
    }
    if (s_.unit.known()) {
      return WithStep(std::move(p), ResetFront{FrontUnitName(doc_->ns, doc_->name)}, "forget the front's unit");
    }
    return WithStep(std::move(p), ForgetDocument{}, "forget the front");
  }

  const Snapshot& s_;
  const Now& now_;
  const FrontDocument* doc_ = nullptr;
  std::string listen_;  // numeric, of the spec
  std::string older_;   // why the object is not loaded
};

}  // namespace

Plan Decide(const Snapshot& snapshot, const Now& now) { return Planner(snapshot, now).Decide(); }

std::string FrontUnitName(const std::string& ns, const std::string& name) {
  constexpr size_t kMaxUnit = 200;  // as the port says
  std::string unit = "lk-front-" + ns + "." + name;
  if (unit.size() <= kMaxUnit) return unit;
  // The hash tells two long names apart; the socket's is as good as any.
  const std::string hash = front::FrontAdminPath("", ns, name + std::string(120, '_'));
  return unit.substr(0, kMaxUnit - 20) + "-" + hash.substr(hash.rfind('/') + 1, 16);
}

std::string FrontConfigPath(const HostPaths& paths, const std::string& ns, const std::string& name) {
  return paths.fronts_dir + "/" + ns + "." + name + "/front.json";
}

std::string RenderConfig(const HostPaths& paths, const FrontDocument& document) {
  return front::FrontConfigToJson(ConfigOf(paths, document)).DumpPretty() + "\n";
}

UnitSpec RenderUnit(const HostPaths& paths, const FrontDocument& d, const std::string& listen) {
  UnitSpec unit;
  unit.name = FrontUnitName(d.ns, d.name);
  unit.argv = {paths.lockkeeper, "front", "--config", FrontConfigPath(paths, d.ns, d.name)};
  unit.env = {{"PATH", "/usr/bin:/bin"}};
  unit.working_directory = "/";
  unit.log_dir = paths.fronts_dir + "/" + d.ns + "." + d.name + "/log";
  unit.listen_address = listen;
  unit.restart = true;
  return unit;
}

Result<std::string> NumericListen(const std::string& listen) {
  const size_t colon = listen.rfind(':');
  std::string address = listen;
  if (colon == 0) address = "0.0.0.0" + listen;
  if (listen.substr(0, colon) == "localhost") address = "127.0.0.1" + listen.substr(colon);
  const auto parsed = front::ParseAddress(address);
  if (!parsed.ok()) return parsed.status();
  if (parsed->Port() == 0)
    return Status(Code::kInvalid, "\"" + listen + "\": clients need a port that stays; 0 is none");
  return address;
}

Duration StartBackoff(int64_t failures) {
  return std::min(Seconds(1) * (int64_t{1} << std::min(failures, kMaxFailures)), Duration(Seconds(30)));
}

}  // namespace lockkeeper::fronts
