#include "tests/fakes/world.h"

#include <algorithm>
#include <cstdlib>

namespace lockkeeper::fakes {
namespace {

constexpr Duration kTick = Milliseconds(5);
constexpr Duration kUnnoticed = Milliseconds(300);       // of a death, at most
constexpr double kLeaseDuration = 60, kRetryPeriod = 2;  // client-go's in kcp

std::string EnvOf(const UnitSpec& spec, const char* name) {
  const auto it = spec.env.find(name);
  return it == spec.env.end() ? std::string() : it->second;
}

std::string MarkOf(const LeaseFact& l) {
  return l.uid + l.holder + std::to_string(l.renew_time.time_since_epoch().count());
}

}  // namespace

World::World(uint64_t seed) {
  rng.seed(seed);
  front.state.pid = 77;
  front.state.listen = "127.0.0.1:6443";
}

Process* World::ProcessOfSlot(const std::string& slot) {
  Process* best = nullptr;
  for (auto& [name, p] : units) {
    if (!p.server || !p.alive() || p.slot != slot) continue;
    if (best == nullptr || p.incarnation > best->incarnation) best = &p;
  }
  return best;
}

Process* World::Listener(int port) {
  for (auto& [name, p] : units) {
    if (p.alive() && p.port == port && p.listens_at != Time{} && wall() >= p.listens_at) return &p;
  }
  return nullptr;
}

bool World::IsReady(const Process& p) const {
  return p.alive() && p.ready_at != Time{} && wall() >= p.ready_at && !p.sigterm && wall() >= p.unready_until;
}

bool World::Serves() {
  if (!front.answers && !front.state.target) return false;
  if (!front.state.target || front.state.target->hold) return false;
  const std::string& address = front.state.target->address;
  Process* p = Listener(std::atoi(address.substr(address.rfind(':') + 1).c_str()));
  return p != nullptr && IsReady(*p);
}

std::vector<std::string> World::Leaders() const {
  std::vector<std::string> out;
  for (const auto& [name, p] : units) {
    if (p.server && p.alive() && p.leading) out.push_back(name);
  }
  return out;
}

void World::Advance(Duration d) {
  while (d > Duration::zero()) {
    const Duration step = std::min(d, kTick);
    clock.Advance(step);
    d -= step;
    Tick();
  }
}

void World::EndProcess(Process& p, UnitExit exit) {
  exit.at = wall();
  p.exit = exit;
  p.leading = false;
  for (FrontBackendOpen& b : front.state.open) {
    if (b.slot != p.slot || b.incarnation != p.incarnation) continue;
    b.open = b.draining = 0;  // its server is gone, so are its connections
  }
}

void World::Tick() {
  for (auto& [name, p] : units) {
    if (!p.alive()) continue;
    if (p.dies_at != Time{} && wall() >= p.dies_at && !p.sigterm) EndProcess(p, {Time{}, 1, 0, false, false});
    if (p.alive() && p.sigterm && p.ends_at != Time{} && wall() >= p.ends_at)
      EndProcess(p, {Time{}, 0, 0, false, false});
    if (p.alive() && p.server && !p.wrote_files && p.ready_at != Time{} && wall() >= p.ready_at) {
      p.wrote_files = true;
      const std::string root = EnvOf(p.spec, "HOME");
      for (const char* file : {"apiserver.crt", "apiserver.key", "sa.key", ".admin-token-store"}) {
        files.emplace(root + "/" + file, std::string(file) + " made by " + name);
      }
      files[root + "/admin.kubeconfig"] = "token-of-" + name + "." + std::to_string(p.id.invocation);
    }
  }
  TickElection();
  TickFront();
  for (auto& [name, led] : probes) {
    for (const auto& [unit, p] : units) {
      const auto build = builds.find(p.build_path);
      if (p.alive() && p.leading && (build == builds.end() || !build->second.leads_idly)) led += kTick;
    }
  }
  if (Leaders().size() > 1) Violate("two processes lead at once");
}

void World::TickElection() {
  if (!election) return;
  const auto scaled = [&](double s) { return Seconds(s * election_scale); };
  for (auto& [name, p] : units) {
    if (!p.server || !p.alive() || p.sigterm || p.ready_at == Time{} || wall() < p.ready_at) {
      p.leading = p.leading && p.alive() && !p.sigterm;
      continue;
    }
    if (p.next_try != Time{} && wall() < p.next_try) continue;
    const double jitter = static_cast<double>(rng() % 1000) / 1000.0 * 1.2;
    LeaseFact fresh{"lease-" + std::to_string(next_uid_), "", p.holder, wall(), wall(), 60, Time{}};
    if (!lease) {
      lease = fresh;
      ++next_uid_;
      p.leading = true;
    } else if (lease->holder == p.holder) {
      lease->renew_time = wall();
      p.leading = true;
    } else {
      p.leading = false;
      const std::string mark = MarkOf(*lease);
      if (mark != p.seen_mark) {
        p.seen_mark = mark;
        p.seen_at = wall();
      } else if (wall() - p.seen_at > scaled(kLeaseDuration)) {
        fresh.uid = lease->uid;
        lease = fresh;
        p.leading = true;
      }
    }
    if (p.leading) lease->resource_version = std::to_string(next_uid_++);
    p.next_try = wall() + scaled(p.leading ? kRetryPeriod : kRetryPeriod * (1 + jitter));
  }
}

void World::TickFront() {
  const auto& target = front.state.target;
  if (target && !target->hold) {
    // Clients keep their number of connections: what is gone elsewhere comes back on the present backend.
    int open = 0;
    for (const FrontBackendOpen& b : front.state.open) open += b.open;
    const std::string& address = target->address;
    Process* p = Listener(std::atoi(address.substr(address.rfind(':') + 1).c_str()));
    if (p != nullptr && open < connections) {
      auto it = std::find_if(front.state.open.begin(), front.state.open.end(), [&](const FrontBackendOpen& b) {
        return b.slot == target->slot && b.incarnation == target->incarnation && b.invocation == target->invocation;
      });
      if (it == front.state.open.end()) {
        front.state.open.push_back({target->slot, target->incarnation, target->invocation, address, 0, 0, 0});
        it = std::prev(front.state.open.end());
      }
      it->open += connections - open;
    }
  }
  for (FrontBackendOpen& b : front.state.open) {
    const auto until = front.drain_until.find(b.slot + "#" + std::to_string(b.incarnation));
    if (until == front.drain_until.end() || b.draining == 0 || wall() < until->second) continue;
    front.state.drained_total += b.draining;
    b.open = std::max(0, b.open - b.draining);
    b.draining = 0;
  }
  std::erase_if(front.state.open, [&](const FrontBackendOpen& b) {
    return b.open == 0 && (!target || b.slot != target->slot || b.incarnation != target->incarnation);
  });
}

Status World::StartUnit(const UnitSpec& spec, int64_t invocation) {
  const auto it = units.find(spec.name);
  if (it != units.end()) {
    Process& there = it->second;
    if (there.id.invocation == invocation) return Status::Ok();
    if (there.alive())
      return Status(Code::kPrecondition, spec.name + ": invocation " + std::to_string(there.id.invocation) + " runs");
  }
  const Build* build = nullptr;
  for (const auto& [path, b] : builds) {
    if (!spec.argv.empty() && spec.argv[0].rfind(path + "/", 0) == 0) build = &b;
  }
  if (build != nullptr && build->missing) return Status(Code::kNotFound, spec.argv[0] + ": no such file");
  Process p;
  p.unit = spec.name;
  p.spec = spec;
  p.id = {spec.name, invocation, next_pid_++, static_cast<uint64_t>(wall().time_since_epoch().count()),
          clock.Read().boot_id};
  p.slot = EnvOf(spec, "LOCKKEEPER_SLOT");
  p.incarnation = std::atoll(EnvOf(spec, "LOCKKEEPER_INCARNATION").c_str());
  p.server = spec.name.ends_with("-" + p.slot + "-" + std::to_string(p.incarnation));
  p.started = wall();
  p.holder = hostname + "_" + std::to_string(next_uid_++);
  ++starts[{spec.name, invocation}];
  if (starts[{spec.name, invocation}] > 1)
    Violate(spec.name + " invocation " + std::to_string(invocation) + " was executed twice");
  if (build != nullptr) {
    p.build_path = build->path;
    if (!build->never_listens) {
      p.port = next_port_++;
      p.listens_at = wall() + build->listens_after;
    }
    if (!build->never_ready && !build->never_listens) p.ready_at = wall() + build->ready_after;
    if (build->dies_after && deaths_[build->path] < build->dies_times) {
      ++deaths_[build->path];
      p.dies_at = wall() + *build->dies_after;
    }
  } else {
    p.port = next_port_++;
    p.listens_at = wall() + Milliseconds(10);
  }
  units[spec.name] = std::move(p);
  return Status::Ok();
}

Status World::TerminateUnit(const UnitIdentity& id, int signal) {
  const auto it = units.find(id.unit);
  if (it == units.end() || !it->second.alive()) return Status::Ok();
  Process& p = it->second;
  if (p.id != id) return Status(Code::kPrecondition, id.unit + ": another process stands there");
  (void)signal;
  ++terms[id.unit];
  ++p.terms;
  const bool serves = p.server && IsReady(p);
  const auto& target = front.state.target;
  if (serves && target && !target->hold && target->slot == p.slot && target->incarnation == p.incarnation) {
    Violate("a ready slot that the front points at was stopped: " + id.unit);
  }
  if (serves && !outage_allowed) {
    bool other = false;
    for (const auto& [name, q] : units) {
      if (name == id.unit || !q.server) continue;
      // One that died in this very moment was ready when the stop was decided and noted; nobody can know sooner.
      const bool just_died =
          q.exit && q.ready_at != Time{} && q.exit->at >= q.ready_at && wall() - q.exit->at < kUnnoticed;
      other = other || IsReady(q) || just_died;
    }
    if (!other) Violate("the only ready slot was stopped: " + id.unit);
  }
  if (p.terms > 1) {  // kcp: a second signal ends it at once
    EndProcess(p, {Time{}, 1, 0, false, false});
    Violate("a second SIGTERM was sent to " + id.unit);
    return Status::Ok();
  }
  p.sigterm = wall();
  p.leading = false;
  const auto build = builds.find(p.build_path);
  const bool ignores = build != builds.end() && build->second.ignores_term;
  p.ends_at = ignores ? Time{} : wall() + (build == builds.end() ? Milliseconds(20) : build->second.stop_takes);
  return Status::Ok();
}

Status World::KillUnit(const UnitIdentity& id) {
  const auto it = units.find(id.unit);
  if (it == units.end() || it->second.id != id || !it->second.alive()) return Status::Ok();
  EndProcess(it->second, {Time{}, 0, 9, true, false});
  return Status::Ok();
}

void World::KillProcess(const std::string& unit, int signal) {
  const auto it = units.find(unit);
  if (it != units.end() && it->second.alive()) EndProcess(it->second, {Time{}, 0, signal, false, false});
}

void World::Reboot() {
  clock.Reboot(Seconds(20));
  for (auto& [name, p] : units) {  // what was started stays on record, as of an earlier boot
    if (p.exit) continue;
    p.exit = UnitExit{wall(), 0, 0, false, false};
    p.no_record = true;
    p.leading = false;
  }
  front.state.open.clear();
  front.drain_until.clear();
  if (front.state.target) {
    front.state.target.reset();  // its state file is of another boot: it holds and waits
  }
}

void World::MakeUnready(const std::string& slot, Duration d) {
  if (Process* p = ProcessOfSlot(slot)) p->unready_until = wall() + d;
}

Result<FrontState> World::SetFront(const FrontTarget& target) {
  if (!front.answers) return Status(Code::kUnavailable, "the front does not answer");
  if (front.state.target && target.revision < front.state.target->revision) {
    return Status(Code::kPrecondition, "revision " + std::to_string(target.revision) + " is lower than the front's");
  }
  if (front.ignores_set && !target.hold) return front.state;
  const bool same = front.state.target && front.state.target->SameBackend(target);
  if (!same) {
    flips.push_back(target.hold ? "hold" : Backend(target));
    ++front.state.generation;
    if (!target.hold) {
      Process* p = Listener(std::atoi(target.address.substr(target.address.rfind(':') + 1).c_str()));
      const bool ready = p != nullptr && IsReady(*p);
      bool another = false;
      for (const auto& [name, q] : units) another = another || (q.server && IsReady(q) && &q != p);
      if (!ready && another)
        Violate("the front was pointed at a slot that is not ready while another is: " + Backend(target));
      front.drain_until.erase(target.slot + "#" + std::to_string(target.incarnation));  // set back: its drain ends
    }
  }
  front.state.target = target;
  return front.state;
}

Result<int> World::DrainFront(const std::string& slot, int64_t incarnation, Duration deadline) {
  if (!front.answers) return Status(Code::kUnavailable, "the front does not answer");
  const auto& target = front.state.target;
  if (target && !target->hold && target->slot == slot && target->incarnation == incarnation) {
    return Status(Code::kInvalid, "CurrentBackend: " + slot);
  }
  int n = 0;
  for (FrontBackendOpen& b : front.state.open) {
    if (b.slot != slot || b.incarnation != incarnation) continue;
    b.draining = b.open;
    n += b.open;
  }
  const Time until = wall() + std::min(deadline, front.lingers);
  Time& known = front.drain_until[slot + "#" + std::to_string(incarnation)];
  known = known == Time{} ? until : std::min(known, until);
  return n;
}

}  // namespace lockkeeper::fakes
