#include "reconcilers/front/state_file.h"

#include <cerrno>
#include <cstdio>
#include <utility>

#include "api/base/file.h"

namespace lockkeeper::front {

StateFile::StateFile(std::string dir) : dir_(std::move(dir)), path_(JoinPath(dir_, "front-state.json")) {}

TargetState StateFile::Load(const std::string& boot_id, std::string* trouble) {
  trouble->clear();
  const auto text = ReadFile(path_);
  if (!text.ok()) {
    *trouble = text.code() == Code::kNotFound ? "no state yet at " + path_ : text.status().message();
    return {};
  }
  auto state = DecodeState(*text);
  if (!state.ok()) {
    *trouble = path_ + ": " + state.status().message();
    // Kept for a person; the next Set writes a new one.
    if (std::rename(path_.c_str(), (path_ + ".corrupt").c_str()) != 0) {
      *trouble += "; " + ErrnoStatus("move aside", path_, errno).message();
    }
    return {};
  }
  TargetState resumed = Resume(*state, boot_id);
  if (state->target && !resumed.target) {
    *trouble = path_ + ": its target is of boot " + state->target->boot_id + ", this is boot " + boot_id;
  } else if (!resumed.target) {
    *trouble = path_ + ": no target was set yet";
  }
  return resumed;
}

Status StateFile::Save(const TargetState& state) {
  LK_RETURN_IF_ERROR(MakeDirs(dir_, 0700));
  return WriteFileAtomic(path_, EncodeState(state), 0600).Annotate("keep the front's target");
}

}  // namespace lockkeeper::front
