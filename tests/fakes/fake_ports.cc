#include "tests/fakes/fake_ports.h"

#include <algorithm>

namespace lockkeeper::fakes {

Result<UnitStatus> FakeUnits::Inspect(const std::string& unit) {
  return w_.faults.Call<Result<UnitStatus>>("units.inspect", false, [&]() -> Result<UnitStatus> {
    const auto it = w_.units.find(unit);
    if (it == w_.units.end()) return Status(Code::kNotFound, "no unit " + unit);
    const Process& p = it->second;
    UnitStatus s;
    s.id = p.id;
    s.state = p.prepared ? UnitStatus::State::kPrepared
              : p.exit   ? UnitStatus::State::kExited
                         : UnitStatus::State::kRunning;
    s.started_at = p.prepared ? Time{} : p.started;
    if (!p.no_record) s.exit = p.exit;
    s.shim_alive = !p.exit;
    if (p.alive() && p.listens_at != Time{} && w_.wall() >= p.listens_at) s.listen_ports = {p.port};
    s.executable = p.spec.argv.empty() ? "" : p.spec.argv[0];
    return s;
  });
}

Status FakeUnits::Start(const UnitSpec& spec, int64_t invocation) {
  return w_.faults.Call<Status>("units.start", true, [&] { return w_.StartUnit(spec, invocation); });
}

Status FakeUnits::Terminate(const UnitIdentity& id, int signal) {
  return w_.faults.Call<Status>("units.terminate", true, [&] { return w_.TerminateUnit(id, signal); });
}

Status FakeUnits::Kill(const UnitIdentity& id) {
  return w_.faults.Call<Status>("units.kill", true, [&] { return w_.KillUnit(id); });
}

Status FakeUnits::Reset(const std::string& unit) {
  return w_.faults.Call<Status>("units.reset", true, [&] {
    const auto it = w_.units.find(unit);
    if (it == w_.units.end()) return Status::Ok();
    if (it->second.alive()) return Status(Code::kPrecondition, unit + " runs");
    w_.units.erase(it);
    return Status::Ok();
  });
}

Result<std::string> FakeUnits::ExecutableSha256(const UnitIdentity& id) {
  const auto it = w_.units.find(id.unit);
  if (it == w_.units.end() || it->second.id != id || !it->second.alive())
    return Status(Code::kNotFound, id.unit + " is gone");
  const auto build = w_.builds.find(it->second.build_path);
  if (build == w_.builds.end()) return std::string("unknown");
  return build->second.runs_sha.empty() ? build->second.sha : build->second.runs_sha;
}

Result<std::vector<std::string>> FakeUnits::LastOutput(const UnitSpec&, int) { return std::vector<std::string>{}; }

Result<std::vector<std::string>> FakeUnits::List() {
  std::vector<std::string> names;
  for (const auto& [name, p] : w_.units) names.push_back(name);
  return names;
}

Result<FrontState> FakeFront::Get(const std::string&) {
  return w_.faults.Call<Result<FrontState>>("front.get", false, [&]() -> Result<FrontState> {
    if (!w_.front.answers) return Status(Code::kUnavailable, "the front does not answer");
    return w_.front.state;
  });
}

Result<FrontState> FakeFront::Set(const std::string&, const FrontTarget& target) {
  return w_.faults.Call<Result<FrontState>>("front.set", true, [&] { return w_.SetFront(target); });
}

Result<int> FakeFront::Drain(const std::string&, const std::string& slot, int64_t incarnation, Duration deadline) {
  return w_.faults.Call<Result<int>>("front.drain", true, [&] { return w_.DrainFront(slot, incarnation, deadline); });
}

Result<ReadyzFact> FakePeer::Readyz(const ServerSpec&, int port) {
  return w_.faults.Call<Result<ReadyzFact>>("peer.readyz", false, [&]() -> Result<ReadyzFact> {
    Process* p = w_.Listener(port);
    if (p == nullptr) return Status(Code::kUnavailable, "127.0.0.1:" + std::to_string(port) + ": connection refused");
    if (w_.IsReady(*p)) return ReadyzFact{200, false, ""};
    return ReadyzFact{500, p->sigterm.has_value(), p->sigterm ? "shutdown" : "poststarthook/kcp-start-informers"};
  });
}

Status FakePeer::Reachable() {
  return w_.Serves() ? Status::Ok() : Status(Code::kUnavailable, "no answer through the front");
}

Result<LeaseFact> FakePeer::GetLease(const ServerSpec&) {
  return w_.faults.Call<Result<LeaseFact>>("peer.getLease", false, [&]() -> Result<LeaseFact> {
    LK_RETURN_IF_ERROR(Reachable());
    if (!w_.lease) return Status(Code::kNotFound, "leases kcp-controllers not found");
    LeaseFact lease = *w_.lease;
    lease.read_at = w_.wall();
    return lease;
  });
}

Status FakePeer::DeleteLease(const ServerSpec&, const LeaseFact& lease) {
  return w_.faults.Call<Status>("peer.deleteLease", true, [&]() -> Status {
    LK_RETURN_IF_ERROR(Reachable());
    if (!w_.lease) return Status(Code::kNotFound, "leases kcp-controllers not found");
    if (w_.lease->uid != lease.uid || w_.lease->resource_version != lease.resource_version) {
      return Status(Code::kPrecondition, "the lease is another one now");
    }
    ++w_.lease_deletes;
    for (const auto& [name, p] : w_.units) {
      if (p.alive() && p.leading && p.holder == w_.lease->holder) {
        w_.Violate("the lease of a live holder was deleted: " + name);
      }
    }
    w_.lease.reset();
    return Status::Ok();
  });
}

Status FakePeer::CreateProbe(const ServerSpec&, const std::string& name) {
  return w_.faults.Call<Status>("peer.createProbe", true, [&]() -> Status {
    LK_RETURN_IF_ERROR(Reachable());
    w_.probes.emplace(name, Duration::zero());
    return Status::Ok();
  });
}

Result<ProbeFact> FakePeer::GetProbe(const ServerSpec&, const std::string& name) {
  return w_.faults.Call<Result<ProbeFact>>("peer.getProbe", false, [&]() -> Result<ProbeFact> {
    LK_RETURN_IF_ERROR(Reachable());
    const auto it = w_.probes.find(name);
    if (it == w_.probes.end()) return Status(Code::kNotFound, "workspaces " + name + " not found");
    const bool ready = it->second >= w_.probe_takes;
    return ProbeFact{name, ready, ready ? "Ready" : it->second > Duration::zero() ? "Initializing" : "Scheduling"};
  });
}

Status FakePeer::DeleteProbe(const ServerSpec&, const std::string& name) {
  return w_.faults.Call<Status>("peer.deleteProbe", true, [&]() -> Status {
    LK_RETURN_IF_ERROR(Reachable());
    if (w_.probes.erase(name) == 0) return Status(Code::kNotFound, "workspaces " + name + " not found");
    return Status::Ok();
  });
}

Result<std::vector<std::string>> FakePeer::ListProbes(const ServerSpec&) {
  LK_RETURN_IF_ERROR(Reachable());
  std::vector<std::string> names;
  for (const auto& [name, led] : w_.probes) names.push_back(name);
  return names;
}

Result<std::vector<std::string>> FakeHostFiles::MissingShared(const SeedPlan& plan) {
  std::vector<std::string> missing;
  for (const std::string& name : plan.files) {
    if (w_.files.count(plan.shared_dir + "/" + name) == 0) missing.push_back(name);
  }
  return missing;
}

Result<bool> FakeHostFiles::IsSeeded(const SeedPlan& plan) {
  for (const std::string& name : plan.files) {
    const auto shared = w_.files.find(plan.shared_dir + "/" + name);
    const auto own = w_.files.find(plan.root + "/" + name);
    if (shared == w_.files.end() || own == w_.files.end() || shared->second != own->second) return false;
  }
  return true;
}

Status FakeHostFiles::Seed(const SeedPlan& plan) {
  return w_.faults.Call<Status>("files.seed", true, [&]() -> Status {
    for (const auto& [name, p] : w_.units) {
      const auto home = p.spec.env.find("HOME");
      if (p.server && p.alive() && home != p.spec.env.end() && home->second == plan.root) {
        w_.Violate("a slot was seeded while its process ran: " + name);
      }
    }
    for (const std::string& name : plan.files) {
      const auto shared = w_.files.find(plan.shared_dir + "/" + name);
      if (shared == w_.files.end()) return Status(Code::kNotFound, plan.shared_dir + "/" + name + ": no such file");
      w_.files[plan.root + "/" + name] = shared->second;
    }
    return Status::Ok();
  });
}

Status FakeHostFiles::Harvest(const SeedPlan& plan) {
  return w_.faults.Call<Status>("files.harvest", true, [&] {
    for (const std::string& name : plan.files) {
      const auto own = w_.files.find(plan.root + "/" + name);
      if (own != w_.files.end()) w_.files.emplace(plan.shared_dir + "/" + name, own->second);
    }
    return Status::Ok();
  });
}

Result<bool> FakeHostFiles::IsEmptyDir(const std::string& path) {
  const auto it = w_.files.lower_bound(path + "/");
  return it == w_.files.end() || it->first.rfind(path + "/", 0) != 0;
}

Status FakeHostFiles::EnsureDir(const std::string&, const std::string&, const std::string&) { return Status::Ok(); }

Status FakeHostFiles::ClearRoot(const std::string& root) {
  std::erase_if(w_.files, [&](const auto& file) { return file.first.rfind(root + "/", 0) == 0; });
  return Status::Ok();
}

Result<std::string> FakeHostFiles::Sha256Executable(const std::string& path) {
  for (const auto& [dir, build] : w_.builds) {
    if (path.rfind(dir + "/", 0) == 0 && !build.missing) return build.sha;
  }
  if (w_.files.count(path) != 0) return w_.files[path];
  return Status(Code::kNotFound, path + ": no such file");
}

Result<std::string> FakeHostFiles::ReadToken(const std::string& kubeconfig, const std::string&) {
  const auto it = w_.files.find(kubeconfig);
  if (it == w_.files.end()) return Status(Code::kNotFound, kubeconfig + ": no such file");
  return it->second;
}

Result<std::string> FakeHostFiles::FileSha256(const std::string& path) {
  const auto it = w_.files.find(path);
  if (it == w_.files.end()) return Status(Code::kNotFound, path + ": no such file");
  return "sha-of-" + it->second;
}

Status FakeHostFiles::WriteToken(const std::string& path, const std::string& token) {
  return w_.faults.Call<Status>("files.writeToken", true, [&] {
    w_.files[path] = token;
    return Status::Ok();
  });
}

Status FakeHostFiles::PointLink(const std::string& link, const std::string& target) {
  return w_.faults.Call<Status>("files.pointLink", true, [&] {
    w_.files[link] = target;
    return Status::Ok();
  });
}

Result<int64_t> FakeHostFiles::FreeBytes(const std::string&) { return w_.free_bytes; }

}  // namespace lockkeeper::fakes
