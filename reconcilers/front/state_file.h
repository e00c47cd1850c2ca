// StateFile: the front's memory of its target on disk.
//
// Purpose:   a target is on disk, whole and synced, before any connection goes to it; so a front that is killed at any
//            instruction starts again with the old target or the new one, never with neither.
// Ownership: a path; nothing is kept open.
// Threads:   one thread at a time.
// Failure:   Load never fails a start: a missing file is a first start, a damaged one is moved aside (".corrupt"),
//            said in `trouble`, and the front holds. Save: kExhausted on a full disk, nothing changed.
#pragma once

#include <string>

#include "reconcilers/front/target_rules.h"

namespace lockkeeper::front {

class StateFile {
 public:
  // `dir` is made 0700 when absent.
  explicit StateFile(std::string dir);

  // What to start with on boot `boot_id`. `trouble` says why it holds, or is empty.
  TargetState Load(const std::string& boot_id, std::string* trouble);
  Status Save(const TargetState& state);
  const std::string& path() const { return path_; }

 private:
  const std::string dir_;
  const std::string path_;
};

}  // namespace lockkeeper::front
