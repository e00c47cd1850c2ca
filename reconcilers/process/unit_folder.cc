#include "reconcilers/process/unit_folder.h"

#include <algorithm>
#include <cstdlib>

#include "api/base/file.h"
#include "api/base/time.h"
#include "reconcilers/process/shim_client.h"
#include "reconcilers/process/shim_io.h"

namespace lockkeeper {
namespace {

Status ReadRecord(const std::string& run_folder, const char* name, std::optional<shim::Record>* out) {
  const Result<std::string> text = ReadFile(JoinPath(run_folder, name));
  if (text.code() == Code::kNotFound) return Status::Ok();
  if (!text.ok()) return text.status();
  shim::Record record;
  if (!shim::Record::Parse(*text, &record)) {
    return Status(Code::kCorrupt, "the record " + JoinPath(run_folder, name) + " is damaged");
  }
  *out = std::move(record);
  return Status::Ok();
}

}  // namespace

bool IsUnitName(const std::string& unit) {
  return !unit.empty() && unit.size() <= 200 && unit[0] != '.' &&
         unit.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
             std::string::npos;
}

bool IsAlive(const UnitIdentity& id) {
  return id.pid > 0 && id.boot_id == BootId() && id.start_ticks != 0 && shim::StartTicks(id.pid) == id.start_ticks;
}

std::vector<int64_t> InvocationsOf(const std::string& unit_folder) {
  std::vector<int64_t> out;
  const Result<std::vector<std::string>> names = ListDir(unit_folder);
  if (!names.ok()) return out;
  for (const std::string& name : *names) {
    if (name.find_first_not_of("0123456789") == std::string::npos) out.push_back(strtoll(name.c_str(), nullptr, 10));
  }
  std::sort(out.begin(), out.end());
  return out;
}

UnitIdentity UnitView::Id() const {
  UnitIdentity id;
  id.unit = unit;
  id.invocation = invocation;
  if (!started || failed) return id;
  id.pid = static_cast<pid_t>(started->GetInt("pid"));
  id.start_ticks = static_cast<uint64_t>(started->GetInt("ticks"));
  id.boot_id = started->Get("boot");
  return id;
}

UnitStatus::State UnitView::State() const {
  if (failed || exit) return UnitStatus::State::kExited;
  if (!started) return UnitStatus::State::kPrepared;
  // While the shim lives and wrote no exit, it still reaps, or is about to start the process again.
  if (process_alive || (shim_alive && started->Get("boot") == BootId())) return UnitStatus::State::kRunning;
  return UnitStatus::State::kExited;
}

Result<UnitView> ReadUnit(const std::string& run_dir, const std::string& unit) {
  if (!IsUnitName(unit)) return Status(Code::kInvalid, "\"" + unit + "\" is no unit name");
  UnitView view;
  view.unit = unit;
  view.folder = JoinPath(run_dir, unit);
  const std::vector<int64_t> invocations = InvocationsOf(view.folder);
  if (invocations.empty()) return Status(Code::kNotFound, "there is no unit " + unit + " on this host");
  view.invocation = invocations.back();
  view.run_folder = JoinPath(view.folder, std::to_string(view.invocation));
  // The shim first: one that is gone now has written all it will ever write.
  view.shim_alive = ShimAlive(view.folder);
  if (view.shim_alive) {
    const Result<std::string> pid = ReadFile(JoinPath(view.folder, shim::kLockFile));
    if (pid.ok()) view.shim_pid = static_cast<pid_t>(strtol(pid->c_str(), nullptr, 10));
  }
  LK_RETURN_IF_ERROR(ReadRecord(view.run_folder, shim::kStartedFile, &view.started));
  LK_RETURN_IF_ERROR(ReadRecord(view.run_folder, shim::kFailedFile, &view.failed));
  LK_RETURN_IF_ERROR(ReadRecord(view.run_folder, shim::kExitFile, &view.exit));
  std::optional<shim::Record> spec;
  LK_RETURN_IF_ERROR(ReadRecord(view.run_folder, shim::kSpecFile, &spec));
  view.restarts = spec && spec->GetInt("restart") != 0;
  if (!view.exit) view.process_alive = IsAlive(view.Id());
  return view;
}

}  // namespace lockkeeper
