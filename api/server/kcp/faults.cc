#include "api/server/kcp/faults.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "api/base/file.h"
#include "api/base/log.h"
#include "api/server/kcp/build_version.h"
#include "api/server/kcp/durations.h"

namespace lockkeeper::kcp {
namespace {

enum class ValueKind { kNone, kTime, kTokenClass, kMode };

struct Knob {
  std::string_view name;
  ValueKind kind;
};

constexpr Knob kKnobs[] = {
    {"never-ready", ValueKind::kNone},          {"ready-delay", ValueKind::kTime},
    {"start-delay", ValueKind::kTime},          {"no-tls", ValueKind::kNone},
    {"crash-at-start", ValueKind::kNone},       {"crash-after-ready", ValueKind::kTime},
    {"hang-on-stop", ValueKind::kNone},         {"store-stall", ValueKind::kTime},
    {"idle-leader", ValueKind::kNone},          {"refuse-lease-create", ValueKind::kNone},
    {"refuse-lease-renew", ValueKind::kNone},   {"reject-token", ValueKind::kTokenClass},
    {"slow-admission", ValueKind::kTime},       {"shutdown-mode", ValueKind::kMode},
    {"workspace-step-delay", ValueKind::kTime}, {"watch-lag", ValueKind::kTime},
    {"storage-flip", ValueKind::kNone},
};

bool OneOf(std::string_view value, std::initializer_list<std::string_view> allowed) {
  return std::find(allowed.begin(), allowed.end(), value) != allowed.end();
}

Status CheckValue(const Knob& knob, const std::string& value) {
  const std::string name(knob.name);
  switch (knob.kind) {
    case ValueKind::kNone:
      if (value.empty()) return Status::Ok();
      return Status(Code::kInvalid, "fault " + name + " takes no value");
    case ValueKind::kTime: {
      const auto time = ParseGoDuration(value);
      return time.ok() ? Status::Ok() : time.status().Annotate("fault " + name);
    }
    case ValueKind::kTokenClass:
      if (OneOf(value, {"shard-admin", "kcp-admin", "token-file"})) return Status::Ok();
      return Status(Code::kInvalid, "fault " + name + " is one of shard-admin, kcp-admin, token-file");
    case ValueKind::kMode:
      if (OneOf(value, {"abort", "legacy"})) return Status::Ok();
      return Status(Code::kInvalid, "fault " + name + " is abort or legacy");
  }
  return Status::Ok();
}

std::string KnownFaults() {
  std::string text;
  for (const Knob& knob : kKnobs) {
    const char* const values[] = {"", "=TIME", "=CLASS", "=MODE"};
    text += std::string(text.empty() ? "" : ", ") + std::string(knob.name) + values[static_cast<int>(knob.kind)];
  }
  return text;
}

std::string_view Trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

// Tells one content of the file from the next without reading it.
std::string StampOf(const std::string& path) {
  struct stat st = {};
  if (::stat(path.c_str(), &st) != 0) return "absent";
  return std::to_string(st.st_ino) + "/" + std::to_string(st.st_size) + "/" + std::to_string(st.st_mtim.tv_sec) + "." +
         std::to_string(st.st_mtim.tv_nsec);
}

}  // namespace

Result<FaultSet> ParseFaults(std::string_view text) {
  FaultSet set;
  while (!text.empty()) {
    const size_t end = text.find_first_of(",\n");
    std::string_view item = Trim(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (item.empty() || item[0] == '#') continue;
    const size_t equals = item.find('=');
    const std::string_view name = item.substr(0, equals);
    const std::string value(equals == std::string_view::npos ? "" : item.substr(equals + 1));
    const auto* knob =
        std::find_if(std::begin(kKnobs), std::end(kKnobs), [&](const Knob& k) { return k.name == name; });
    if (knob == std::end(kKnobs)) {
      return Status(Code::kInvalid, "unknown fault \"" + std::string(name) + "\"; known are " + KnownFaults());
    }
    LK_RETURN_IF_ERROR(CheckValue(*knob, value));
    set[std::string(name)] = value;
  }
  return set;
}

Result<std::unique_ptr<Faults>> Faults::FromEnv() {
  const char* text = std::getenv("LOCKKEEPER_FAULTS");
  const char* path = std::getenv("LOCKKEEPER_FAULTS_FILE");
  return Make(BuildFaults() + "," + (text == nullptr ? "" : text), path == nullptr ? "" : path);
}

Result<std::unique_ptr<Faults>> Faults::Make(std::string_view fixed, std::string path) {
  LK_ASSIGN_OR_RETURN(FaultSet set, ParseFaults(fixed));
  std::unique_ptr<Faults> faults(new Faults(std::move(set), std::move(path)));
  MutexLock lock(faults->mutex_);
  faults->Merge({});
  if (!faults->path_.empty()) {
    faults->stamp_ = StampOf(faults->path_);
    LK_RETURN_IF_ERROR(faults->Load());
  }
  return faults;
}

Faults::Faults(FaultSet fixed, std::string path) : fixed_(std::move(fixed)), path_(std::move(path)) {}

Status Faults::Load() const {
  auto text = ReadFile(path_);
  if (!text.ok() && text.code() != Code::kNotFound) return text.status();
  LK_ASSIGN_OR_RETURN(const FaultSet live, ParseFaults(text.ok() ? *text : std::string()));
  Merge(live);
  return Status::Ok();
}

void Faults::Merge(const FaultSet& live) const {
  FaultSet all = fixed_;
  for (const auto& [name, value] : live) all[name] = value;
  const Duration now = SystemClock().Read().boot;
  decltype(now_) next;
  for (const auto& [name, value] : all) {
    const auto old = now_.find(name);
    const bool same = old != now_.end() && old->second.value == value;
    next[name] = {value, same ? old->second.since : now};
  }
  now_ = std::move(next);
}

void Faults::Refresh() const {
  if (path_.empty()) return;
  const std::string stamp = StampOf(path_);
  if (stamp == stamp_) return;
  stamp_ = stamp;
  const Status status = Load();
  if (!status.ok()) LogWarn("faults file not taken", {{"file", path_}, {"why", status.message()}});
}

bool Faults::Has(std::string_view name) const {
  MutexLock lock(mutex_);
  Refresh();
  return now_.find(name) != now_.end();
}

std::string Faults::Value(std::string_view name) const {
  MutexLock lock(mutex_);
  Refresh();
  const auto entry = now_.find(name);
  return entry == now_.end() ? std::string() : entry->second.value;
}

std::optional<Duration> Faults::Time(std::string_view name) const {
  const std::string value = Value(name);
  if (value.empty()) return std::nullopt;
  const auto time = ParseGoDuration(value);
  return time.ok() ? std::optional<Duration>(*time) : std::nullopt;
}

bool Faults::Within(std::string_view name) const {
  const auto time = Time(name);
  if (!time) return false;
  MutexLock lock(mutex_);
  const auto entry = now_.find(name);
  return entry != now_.end() && SystemClock().Read().boot - entry->second.since < *time;
}

}  // namespace lockkeeper::kcp
