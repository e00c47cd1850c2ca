#include "reconcilers/process/process_units.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "api/base/file.h"
#include "api/base/log.h"
#include "api/base/sync.h"
#include "api/base/unique_fd.h"
#include "reconcilers/host/hash_cache.h"
#include "reconcilers/process/proc_fs.h"
#include "reconcilers/process/process_watch.h"
#include "reconcilers/process/shim_client.h"
#include "reconcilers/process/shim_io.h"
#include "reconcilers/process/unit_folder.h"

namespace lockkeeper {
namespace {

constexpr size_t kUnitLocks = 16;
constexpr int64_t kTailBytes = 64 << 10;

Time TimeOf(int64_t micros) { return Time(Duration(micros)); }

std::string DefaultShimPath() { return JoinPath(DirName(ExecutableLink(getpid())), "slot-shim"); }

// The last `bytes` of a file; "" when there is none.
std::string Tail(const std::string& path, int64_t bytes) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat st = {};
  if (!fd || fstat(fd.get(), &st) != 0) return {};
  const int64_t from = std::max<int64_t>(0, st.st_size - bytes);
  std::string out(static_cast<size_t>(st.st_size - from), '\0');
  const ssize_t n = pread(fd.get(), out.data(), out.size(), from);
  out.resize(n < 0 ? 0 : static_cast<size_t>(n));
  return out;
}

class ProcessUnits final : public Units {
 public:
  explicit ProcessUnits(ProcessUnitsOptions options) : options_(std::move(options)) {}

  Status Begin() {
    if (options_.shim_path.empty()) options_.shim_path = DefaultShimPath();
    if (access(options_.shim_path.c_str(), X_OK) != 0) {
      return ErrnoStatus("run the shim", options_.shim_path, errno);
    }
    LK_RETURN_IF_ERROR(MakeDirs(options_.run_dir, 0700));
    ProcessWatch::Options watch;
    watch.run_dir = options_.run_dir;
    watch.shim_path = options_.shim_path;
    watch.port_poll = options_.port_poll;
    watch.changed = [this](const std::string& unit) { Notify(unit); };
    LK_ASSIGN_OR_RETURN(watch_, ProcessWatch::Start(std::move(watch)));
    return Status::Ok();
  }

  Result<UnitStatus> Inspect(const std::string& unit) override {
    LK_ASSIGN_OR_RETURN(const UnitView view, ReadUnit(options_.run_dir, unit));
    UnitStatus status;
    status.id = view.Id();
    status.state = view.State();
    status.shim_alive = view.shim_alive;
    if (view.failed) status.failure = FailureOf(*view.failed);
    if (view.started && !view.failed) {
      status.started_at = TimeOf(view.started->GetInt("at"));
      status.restarts = view.started->GetInt("restarts");
    }
    if (view.exit && view.exit->GetInt("unknown") == 0) {
      UnitExit exit;
      exit.at = TimeOf(view.exit->GetInt("at"));
      exit.code = static_cast<int>(view.exit->GetInt("code"));
      exit.signal = static_cast<int>(view.exit->GetInt("signal"));
      exit.killed_by_us = view.exit->GetInt("killed") != 0;
      exit.oom = view.exit->GetInt("oom") != 0;
      status.exit = exit;
    }
    if (view.process_alive) {
      status.listen_ports = ListenPorts(status.id.pid);
      status.executable = ExecutableLink(status.id.pid);
    }
    return status;
  }

  Status Start(const UnitSpec& spec, int64_t invocation) override {
    LK_RETURN_IF_ERROR(Check(spec, invocation));
    const MutexLock lock(LockOf(spec.name));
    const Status started = StartLocked(spec, invocation);
    watch_->Touch(spec.name);
    return started;
  }

  Status Terminate(const UnitIdentity& id, int signal) override {
    LK_ASSIGN_OR_RETURN(const UnitView view, Target(id));
    // A unit that its shim starts again is named by its invocation: its process may just have been replaced.
    if (view.restarts && view.shim_alive && view.invocation == id.invocation) {
      return AskShim(view.run_folder, "stop " + std::to_string(signal)).status();
    }
    return Signal(id, signal);
  }

  Status Kill(const UnitIdentity& id) override {
    LK_ASSIGN_OR_RETURN(const UnitView view, Target(id));
    // The shim knows descendants that left the session; without one the session is what can be named.
    if (view.State() != UnitStatus::State::kRunning || view.invocation != id.invocation) return Status::Ok();
    if (view.shim_alive && AskShim(view.run_folder, "kill").ok()) return Status::Ok();
    if (!IsAlive(id)) return Status::Ok();
    const UniqueFd pinned(shim::PidfdOpen(id.pid));
    if (!pinned || !IsAlive(id)) return Status::Ok();
    if (shim::SessionOf(id.pid) == id.pid) shim::KillSession(id.pid);
    if (shim::PidfdSignal(pinned.get(), SIGKILL) != 0 && errno != ESRCH) {
      return ErrnoStatus("kill the process of", id.unit, errno);
    }
    return Status::Ok();
  }

  Status Reset(const std::string& unit) override {
    const MutexLock lock(LockOf(unit));
    const Result<UnitView> view = ReadUnit(options_.run_dir, unit);
    if (view.code() == Code::kNotFound) return RemoveTree(JoinPath(options_.run_dir, unit));
    if (!view.ok()) return view.status();
    if (view->State() == UnitStatus::State::kRunning) {
      return Status(Code::kPrecondition, "unit " + unit + " still runs as process " + std::to_string(view->Id().pid));
    }
    LK_RETURN_IF_ERROR(EndPreparedShim(*view));
    LK_RETURN_IF_ERROR(RemoveTree(view->folder));
    RemoveCgroup(unit);
    watch_->Touch(unit);
    return Status::Ok();
  }

  Result<std::string> ExecutableSha256(const UnitIdentity& id) override {
    const std::string path = "/proc/" + std::to_string(id.pid) + "/exe";
    const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    const int error = errno;
    // The process is looked at after its executable was opened: it is still the one that is named.
    if (!IsAlive(id)) return Status(Code::kNotFound, "the process of unit " + id.unit + " is gone");
    if (!fd) return ErrnoStatus("open the executable of", id.unit, error);
    return hashes_.OfOpenFile(fd.get(), "the executable of " + id.unit);
  }

  Result<std::vector<std::string>> LastOutput(const UnitSpec& spec, int lines) override {
    std::string text;
    for (int i = 0; i <= spec.log_keep && std::count(text.begin(), text.end(), '\n') < lines; ++i) {
      const std::string name = i == 0 ? shim::kLogFile : shim::kLogFile + ("." + std::to_string(i));
      text = Tail(JoinPath(spec.log_dir, name), kTailBytes) + text;
    }
    text = MaskSecrets(text);
    std::vector<std::string> out;
    while (!text.empty() && static_cast<int>(out.size()) < lines) {
      if (text.back() == '\n') text.pop_back();
      const size_t nl = text.rfind('\n');
      out.insert(out.begin(), text.substr(nl == std::string::npos ? 0 : nl + 1));
      text.resize(nl == std::string::npos ? 0 : nl + 1);
    }
    return out;
  }

  Result<PortHolder> HolderOf(int port) override { return ListenerOn(port); }

  Result<std::vector<std::string>> List() override {
    LK_ASSIGN_OR_RETURN(std::vector<std::string> names, ListDir(options_.run_dir));
    std::erase_if(names, [](const std::string& name) { return !IsUnitName(name); });
    return names;
  }

  void SetListener(std::function<void(const std::string&)> listener) override {
    const MutexLock lock(mutex_);
    listener_ = std::move(listener);
  }

 private:
  static Status Check(const UnitSpec& spec, int64_t invocation) {
    if (!IsUnitName(spec.name)) return Status(Code::kInvalid, "\"" + spec.name + "\" is no unit name");
    if (invocation <= 0) return Status(Code::kInvalid, "unit " + spec.name + ": invocations are numbered from 1");
    if (spec.argv.empty() || spec.argv[0].empty() || spec.argv[0][0] != '/') {
      return Status(Code::kInvalid, "unit " + spec.name + ": the command must start with an absolute path, not \"" +
                                        (spec.argv.empty() ? "" : spec.argv[0]) + "\"");
    }
    return Status::Ok();
  }

  Status StartLocked(const UnitSpec& spec, int64_t invocation) {
    const Result<UnitView> seen = ReadUnit(options_.run_dir, spec.name);
    if (!seen.ok() && seen.code() != Code::kNotFound) return seen.status();
    LK_ASSIGN_OR_RETURN(const std::string cgroup, MakeCgroup(spec));
    LK_ASSIGN_OR_RETURN(const shim::Record record, RenderShimSpec(spec, invocation, cgroup));
    const std::string folder = JoinPath(options_.run_dir, spec.name);
    const std::string run_folder = JoinPath(folder, std::to_string(invocation));
    const std::string wanted = record.Format();
    if (seen.ok()) {
      if (seen->State() == UnitStatus::State::kRunning) {
        if (seen->invocation == invocation) return Status::Ok();
        return Status(Code::kPrecondition, "unit " + spec.name + " still runs invocation " +
                                               std::to_string(seen->invocation) + " as process " +
                                               std::to_string(seen->Id().pid));
      }
      if (seen->invocation > invocation) {
        return Status(Code::kPrecondition, "unit " + spec.name + " is at invocation " +
                                               std::to_string(seen->invocation) + ", past " +
                                               std::to_string(invocation));
      }
      if (seen->invocation == invocation && seen->failed) return FailureOf(*seen->failed);
      if (seen->invocation == invocation && seen->State() == UnitStatus::State::kExited) return Status::Ok();
      // A shim that waits for its go with another spec, or for another invocation, has nothing to wait for.
      const Result<std::string> old = ReadFile(JoinPath(seen->run_folder, shim::kSpecFile));
      if (seen->invocation != invocation || !old.ok() || *old != wanted) LK_RETURN_IF_ERROR(EndPreparedShim(*seen));
    }
    LK_RETURN_IF_ERROR(WriteSpec(spec, run_folder, record));
    AtStep("spec");
    LK_ASSIGN_OR_RETURN(const int code, SpawnShim(options_.shim_path, run_folder));
    AtStep("spawned");
    if (code != shim::kSpawnReady && code != shim::kSpawnLocked) return SpawnFailure(spec, run_folder, code);
    const Result<shim::Record> answer = AskShim(run_folder, "go");
    if (!answer.ok()) return answer.status();
    AtStep("started");
    if (answer->Get("state") == "failed") return FailureOf(*answer);
    RemoveOlder(folder, invocation);
    return Status::Ok();
  }

  Status WriteSpec(const UnitSpec& spec, const std::string& run_folder, const shim::Record& record) {
    LK_RETURN_IF_ERROR(MakeDirs(run_folder, 0700));
    if (!spec.log_dir.empty()) LK_RETURN_IF_ERROR(MakeDirs(spec.log_dir, 0750));
    const Result<std::string> old = ReadFile(JoinPath(run_folder, shim::kSpecFile));
    if (old.ok() && *old == record.Format()) return Status::Ok();
    const UniqueFd dir(open(run_folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!dir || !shim::WriteRecordAt(dir.get(), shim::kSpecFile, record)) {
      return ErrnoStatus("write the spec of " + spec.name + " in", run_folder, errno);
    }
    return Status::Ok();
  }

  Status SpawnFailure(const UnitSpec& spec, const std::string& run_folder, int code) {
    const Result<UnitView> view = ReadUnit(options_.run_dir, spec.name);
    if (view.ok() && view->run_folder == run_folder) {
      if (view->failed) return FailureOf(*view->failed);
      if (code == shim::kSpawnNothing && view->started) return Status::Ok();  // it ended meanwhile
    }
    return Status(Code::kUnavailable, "the shim of unit " + spec.name + " did not come up in " + run_folder +
                                          " (code " + std::to_string(code) + ")");
  }

  Status EndPreparedShim(const UnitView& view) {
    if (view.shim_alive && view.State() == UnitStatus::State::kPrepared) {
      const Result<shim::Record> answer = AskShim(view.run_folder, "cancel");
      if (answer.ok() && answer->Get("state") == "running") {
        return Status(Code::kPrecondition, "unit " + view.unit + " was started meanwhile");
      }
    }
    return AwaitNoShim(view.folder, kShimPatience);
  }

  void RemoveOlder(const std::string& folder, int64_t invocation) {
    for (const int64_t n : InvocationsOf(folder)) {
      if (n >= invocation) continue;
      const Status removed = RemoveTree(JoinPath(folder, std::to_string(n)));
      if (!removed.ok()) LogWarn("an old run folder stays", {{"folder", folder}, {"why", removed.message()}});
    }
  }

  // The unit's records; kPrecondition when another process of the unit runs than the one that is named.
  Result<UnitView> Target(const UnitIdentity& id) {
    if (id.pid <= 0) return Status(Code::kInvalid, "unit " + id.unit + ": no process is named");
    Result<UnitView> view = ReadUnit(options_.run_dir, id.unit);
    if (view.code() == Code::kNotFound) {
      UnitView gone;
      gone.unit = id.unit;
      return gone;
    }
    if (!view.ok()) return view;
    const UnitIdentity now = view->Id();
    const bool restarted = view->restarts && now.invocation == id.invocation;
    if (view->process_alive && now != id && !restarted) {
      return Status(Code::kPrecondition, "unit " + id.unit + " runs as process " + std::to_string(now.pid) +
                                             " of invocation " + std::to_string(now.invocation) + ", not as process " +
                                             std::to_string(id.pid) + " of invocation " +
                                             std::to_string(id.invocation));
    }
    return view;
  }

  static Status Signal(const UnitIdentity& id, int signal) {
    const UniqueFd pinned(shim::PidfdOpen(id.pid));
    if (!pinned) return errno == ESRCH ? Status::Ok() : ErrnoStatus("signal the process of", id.unit, errno);
    if (!IsAlive(id)) return Status::Ok();  // judged after the pidfd was taken: the number is pinned
    if (shim::PidfdSignal(pinned.get(), signal) != 0 && errno != ESRCH) {
      return ErrnoStatus("signal the process of", id.unit, errno);
    }
    return Status::Ok();
  }

  Result<std::string> MakeCgroup(const UnitSpec& spec) {
    if (spec.limits.memory_bytes <= 0 && spec.limits.cpu <= 0) return std::string();
    if (options_.cgroup_root.empty()) {
      LogWarn("limits of memory and cpu need a delegated control group; they are ignored", {{"unit", spec.name}});
      return std::string();
    }
    const std::string path = JoinPath(options_.cgroup_root, spec.name);
    LK_RETURN_IF_ERROR(MakeDirs(path));
    const auto set = [&path](const char* file, const std::string& value) -> Status {
      const UniqueFd fd(open(JoinPath(path, file).c_str(), O_WRONLY | O_CLOEXEC));
      if (!fd || write(fd.get(), value.data(), value.size()) < 0) {
        return ErrnoStatus("set the limit " + value + " in", JoinPath(path, file), errno);
      }
      return Status::Ok();
    };
    if (spec.limits.memory_bytes > 0) {
      LK_RETURN_IF_ERROR(set("memory.max", std::to_string(spec.limits.memory_bytes)));
    }
    if (spec.limits.cpu > 0) {
      const auto quota = static_cast<int64_t>(spec.limits.cpu * 100000);  // of a period of 100 ms
      LK_RETURN_IF_ERROR(set("cpu.max", std::to_string(quota) + " 100000"));
    }
    return path;
  }

  void RemoveCgroup(const std::string& unit) {
    if (!options_.cgroup_root.empty()) rmdir(JoinPath(options_.cgroup_root, unit).c_str());
  }

  void AtStep(std::string_view step) {
    if (options_.at_step) options_.at_step(step);
  }

  void Notify(const std::string& unit) {
    // Called under the lock: once SetListener is back, nobody is inside the one before.
    const MutexLock lock(mutex_);
    if (listener_) listener_(unit);
  }

  Mutex& LockOf(const std::string& unit) { return unit_locks_[std::hash<std::string>{}(unit) % kUnitLocks]; }

  ProcessUnitsOptions options_;
  std::array<Mutex, kUnitLocks> unit_locks_;
  Mutex mutex_;
  std::function<void(const std::string&)> listener_ LK_GUARDED_BY(mutex_);
  HashCache hashes_;
  std::unique_ptr<ProcessWatch> watch_;  // last: ends before what its callback uses
};

}  // namespace

Result<std::unique_ptr<Units>> OpenProcessUnits(ProcessUnitsOptions options) {
  auto units = std::make_unique<ProcessUnits>(std::move(options));
  LK_RETURN_IF_ERROR(units->Begin());
  return std::unique_ptr<Units>(std::move(units));
}

}  // namespace lockkeeper
