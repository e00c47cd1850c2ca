// While nothing rolls: the end of a Server, and what follows the recorded active slot.
#include <algorithm>

#include "reconcilers/server/rules.h"

namespace lockkeeper::roll {
namespace {

// Stops whatever of the Server still runs; a plan until nothing is left.
RuleResult StopEverySlot(const Context& c, bool forget) {
  ServerRecord next = c.rec;
  std::string names;
  bool change = false;
  for (auto& [name, entry] : next.slots) {
    if (!entry.intent.running && (entry.intent.forget || !forget)) continue;
    entry.intent.running = false;
    entry.intent.forget = forget;
    names += (names.empty() ? "" : " and ") + name;
    change = true;
  }
  if (change) return c.Do(std::move(next), "Stopping", "slot " + names + " is stopped");
  for (const auto& [name, entry] : c.rec.slots) {
    const SlotView slot = c.Slot(name);
    if (forget ? slot.unit_absent : slot.life == Life::kGone || slot.life == Life::kNone) continue;
    return c.Wait("Stopping", "slot " + name + " has not ended yet", Milliseconds(200));
  }
  return {};
}

RuleResult StopForGood(const Context& c) {
  if (c.HasFront() && !c.rec.hold) {
    ServerRecord next = c.rec;
    next.hold = true;
    return c.Do(std::move(next), "Stopping", "the front takes nothing new for the Server");
  }
  const SlotView active = c.Active();
  if (c.HasFront() && c.s.front.known() && active.Live()) {
    if (!c.FrontHolds()) return c.Wait("Stopping", "waits until the front holds", Milliseconds(50));
    for (const FrontBackendOpen& b : c.s.front->open) {
      if (b.open == 0 || b.slot != active.name) continue;
      if (b.draining != 0) return c.Wait("Stopping", "connections are drained", Milliseconds(100));
      return c.Effect(
          DrainBackend{c.FrontName(), b.slot, b.incarnation, Seconds(static_cast<double>(c.timeouts().drain_seconds))},
          "Draining", std::to_string(b.open) + " connections of slot " + b.slot + " are drained");
    }
  }
  if (RuleResult stop = StopEverySlot(c, true)) return stop;
  Plan plan = c.Do(c.rec, "Removed", "nothing of the Server runs any more");
  std::get<Commit>(plan.step->action).remove = true;
  plan.step->kind = StepKind::kRelease;
  return plan;
}

}  // namespace

RuleResult EndTheServer(const Context& c) {
  if (c.op != nullptr) return {};  // it is settled first
  if (c.rec.deleting) {
    if (AnythingWaits(c)) return {};  // queued ones are ended first
    if (c.spec.deletion_policy == DeletionPolicy::kStop) return StopForGood(c);
    ServerRecord next = c.rec;
    next.released = true;
    return c.Do(std::move(next), "Released", "deleted with deletionPolicy Orphan: what runs is left as it is");
  }
  if (!c.rec.stopped) return {};
  if (c.HasFront() && !c.rec.hold) {
    ServerRecord next = c.rec;
    next.hold = true;
    return c.Do(std::move(next), "Stopping", "the front holds new connections until the Server is started again");
  }
  if (RuleResult stop = StopEverySlot(c, false)) return stop;
  return c.Wait("Stopped", "stopped by `lockkeeper stop`; `lockkeeper start " + c.rec.key.name + "` starts it again");
}

RuleResult FollowTheActiveSlot(const Context& c) {
  const SlotView active = c.Active();
  if (active.entry == nullptr || !active.Ready() || c.rec.stopped || !c.rec.installed) return {};
  const SlotIntent& intent = active.intent();
  if (c.rec.store_url != intent.store_url || c.rec.version != intent.build.version) {
    ServerRecord next = c.rec;
    next.store_url = intent.store_url;
    next.version = intent.build.version;
    return c.Do(std::move(next), "Followed", "version and store URL follow slot " + active.name);
  }
  if (c.spec.member_token && c.rec.member_token_of != TokenOwner(active.name, intent)) {
    const bool resting = !c.rec.member_token_error.empty() && c.rec.member_token_retry.IsSet() &&
                         !c.rec.member_token_retry.Passed(c.now);
    if (!resting) return RefreshMemberToken(c, active, c.rec, "");
  }
  if (c.spec.member_token && !c.rec.member_token_error.empty() &&
      c.rec.member_token_of == TokenOwner(active.name, intent)) {
    ServerRecord next = c.rec;  // the slot it was meant for is not the active one any more
    next.member_token_error.clear();
    next.member_token_retry = Deadline{};
    return c.Do(std::move(next), "MemberToken", "the members hold the token of slot " + active.name);
  }
  const std::string& path = intent.build.path;
  if (!path.empty() && c.rec.link_of != path) {
    ServerRecord done = c.rec;
    done.link_of = path;
    PointCurrent effect{c.layout.current, path, c.spec.layout.path_link,
                        intent.unit.argv.empty() ? "" : intent.unit.argv[0]};
    return c.Effect(std::move(effect), "PointingLink",
                    c.layout.current + " points to the release of slot " + active.name, std::move(done));
  }
  if (c.op == nullptr && c.spec.seed && c.spec.seed->harvest && !c.rec.harvested) {
    ServerRecord done = c.rec;
    done.harvested = true;
    SeedPlan plan{c.layout.shared, c.spec.seed->files, intent.root};
    return c.Effect(HarvestShared{std::move(plan)}, "Harvesting", "the shared files are taken from slot " + active.name,
                    std::move(done));
  }
  return {};
}

RuleResult WatchTheActiveSlot(const Context& c) {
  if (c.rec.active.empty() || c.rec.stopped) return {};
  const SlotView active = c.Active();
  if (active.Ready()) {
    if (!c.HasFront() || c.FrontOn(active)) return {};
    if (c.FrontSilent()) return c.FrontSilentPlan();
    return c.Wait("FrontNotInSync", "the front is not yet seen on slot " + active.name, Milliseconds(100));
  }
  // One that does not answer at all has cost its whole attempt: not more than half of the time goes into asking it.
  const bool hangs = active.life == Life::kRunning && active.port != 0 && active.readiness == Readiness::kUnknown;
  return c.Wait(
      "ActiveSlotNotReady", "slot " + active.name + " is not ready: " + active.readyz_text,
      hangs ? Milliseconds(c.spec.template_.readiness.attempt_timeout_milliseconds) : c.Poll(c.rec.last_repair_at));
}

}  // namespace lockkeeper::roll
