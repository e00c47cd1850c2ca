#include "reconcilers/host/hash_cache.h"

#include <fcntl.h>

#include <cerrno>

#include "api/base/file.h"
#include "api/base/unique_fd.h"

namespace lockkeeper {
namespace {
constexpr size_t kMost = 256;
}

Result<std::string> HashCache::OfOpenFile(int fd, const std::string& name) {
  struct stat st = {};
  if (fstat(fd, &st) != 0) return ErrnoStatus("look at", name, errno);
  const Key key{st.st_dev, st.st_ino, st.st_mtim.tv_sec, st.st_mtim.tv_nsec, st.st_size};
  {
    const MutexLock lock(mutex_);
    const auto it = hashes_.find(key);
    if (it != hashes_.end()) return it->second;
  }
  Result<std::string> hash = Sha256File("/proc/self/fd/" + std::to_string(fd));
  if (!hash.ok()) return hash.status().Annotate("hash " + name);
  const MutexLock lock(mutex_);
  if (hashes_.size() >= kMost) hashes_.clear();
  hashes_[key] = *hash;
  return hash;
}

Result<std::string> HashCache::OfPath(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return ErrnoStatus("open", path, errno);
  return OfOpenFile(fd.get(), path);
}

}  // namespace lockkeeper
