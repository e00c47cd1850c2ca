#include "reconcilers/host/file_ops.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "api/base/file.h"
#include "api/base/unique_fd.h"

namespace lockkeeper::host_internal {

bool IsInnerPath(std::string_view path) {
  if (path.empty() || path.front() == '/' || path.find('\0') != std::string_view::npos) return false;
  while (!path.empty()) {
    const size_t slash = path.find('/');
    if (path.substr(0, slash) == "..") return false;
    if (slash == std::string_view::npos) return true;
    path.remove_prefix(slash + 1);
  }
  return true;
}

Status InstallFile(const std::string& path, std::string_view content, mode_t mode, uid_t uid, gid_t gid) {
  const std::string part = path + ".part";
  LK_RETURN_IF_ERROR(WriteFileAtomic(part, content, mode));
  if (chmod(part.c_str(), mode) != 0) return ErrnoStatus("set the mode of", part, errno);
  if (uid != static_cast<uid_t>(-1) && lchown(part.c_str(), uid, gid) != 0) {
    return ErrnoStatus("set the owner of", part, errno);
  }
  if (rename(part.c_str(), path.c_str()) != 0) return ErrnoStatus("rename to", path, errno);
  return FsyncDir(DirName(path));
}

Status SyncTree(const std::string& root) {
  LK_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDir(root));
  for (const std::string& name : names) {
    const std::string path = JoinPath(root, name);
    struct stat st = {};
    if (lstat(path.c_str(), &st) != 0) return ErrnoStatus("look at", path, errno);
    if (S_ISDIR(st.st_mode)) {
      LK_RETURN_IF_ERROR(SyncTree(path));
    } else if (S_ISREG(st.st_mode)) {
      const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
      if (!fd || fsync(fd.get()) != 0) return ErrnoStatus("sync", path, errno);
    }
  }
  return FsyncDir(root);
}

Status SweepTemporary(const std::string& dir, std::string_view prefix) {
  const Result<std::vector<std::string>> names = ListDir(dir);
  if (names.code() == Code::kNotFound) return Status::Ok();
  if (!names.ok()) return names.status();
  for (const std::string& name : *names) {
    if (name.starts_with(prefix)) LK_RETURN_IF_ERROR(RemoveTree(JoinPath(dir, name)));
  }
  return Status::Ok();
}

}  // namespace lockkeeper::host_internal
