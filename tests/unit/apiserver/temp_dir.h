// TempDir: a folder of its own for one test, removed with all that is in it.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <string>

#include "api/base/file.h"
#include "api/base/status.h"

namespace lockkeeper {

class TempDir {
 public:
  TempDir() {
    // In memory where that exists: a unit test does not wait for a disk's syncs.
    const char* base = ::getenv("TMPDIR");
    if (base == nullptr) base = ::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    std::string pattern = JoinPath(base, "lk-test-XXXXXX");
    path_ = ::mkdtemp(pattern.data()) == nullptr ? "" : pattern;
    LK_CHECK(!path_.empty());
  }
  ~TempDir() { (void)RemoveTree(path_).ok(); }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return JoinPath(path_, name); }

 private:
  std::string path_;
};

}  // namespace lockkeeper
