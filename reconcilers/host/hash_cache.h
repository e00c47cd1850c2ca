// HashCache: SHA-256 of files that are asked for on every pass, hashed once per change.
//
// Purpose:   a file is the same as long as device, inode, size and modification time are.
// Threads:   thread-safe; two askers at the same time may both hash. Failure: Status naming the file.
#pragma once

#include <sys/stat.h>

#include <map>
#include <string>
#include <tuple>

#include "api/base/status.h"
#include "api/base/sync.h"

namespace lockkeeper {

class HashCache {
 public:
  // Of the file that `fd` has open (the caller keeps it open); `name` is for the error.
  Result<std::string> OfOpenFile(int fd, const std::string& name);
  Result<std::string> OfPath(const std::string& path);

 private:
  using Key = std::tuple<dev_t, ino_t, time_t, long, off_t>;
  Mutex mutex_;
  std::map<Key, std::string> hashes_ LK_GUARDED_BY(mutex_);
};

}  // namespace lockkeeper
