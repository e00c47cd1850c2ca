#include "api/base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>

#include "api/base/unique_fd.h"

namespace lockkeeper {
namespace {

constexpr size_t kBufferBytes = 64u << 10;

Code CodeOfErrno(int error) {
  switch (error) {
    case ENOENT: return Code::kNotFound;
    case EEXIST: return Code::kAlreadyExists;
    case EACCES:
    case EPERM:
    case EROFS: return Code::kForbidden;
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case ENOMEM: return Code::kExhausted;
    case EBUSY:
    case EWOULDBLOCK: return Code::kBusy;
    case EINVAL:
    case EISDIR:
    case ENOTDIR:
    case ENAMETOOLONG:
    case ELOOP: return Code::kInvalid;
    case EIO: return Code::kCorrupt;
    default: return Code::kUnavailable;
  }
}

// Calls `f` again while a signal interrupts it.
template <typename F>
auto Again(F f) {
  auto r = f();
  while (r < 0 && errno == EINTR) r = f();
  return r;
}

Result<UniqueFd> Open(const std::string& path, int flags, mode_t mode = 0) {
  UniqueFd fd(Again([&] { return ::open(path.c_str(), flags | O_CLOEXEC, mode); }));
  if (!fd) return ErrnoStatus("open", path, errno);
  return fd;
}

// Hands the whole file to `sink` in pieces.
template <typename Sink>
Status ReadPieces(const std::string& path, Sink sink) {
  LK_ASSIGN_OR_RETURN(const UniqueFd fd, Open(path, O_RDONLY));
  const auto buffer = std::make_unique<std::array<char, kBufferBytes>>();
  while (true) {
    const ssize_t n = Again([&] { return ::read(fd.get(), buffer->data(), buffer->size()); });
    if (n < 0) return ErrnoStatus("read", path, errno);
    if (n == 0) return Status::Ok();
    sink(std::string_view(buffer->data(), static_cast<size_t>(n)));
  }
}

Status WriteAll(int fd, std::string_view content, const std::string& path) {
  while (!content.empty()) {
    const ssize_t n = Again([&] { return ::write(fd, content.data(), content.size()); });
    if (n < 0) return ErrnoStatus("write", path, errno);
    content.remove_prefix(static_cast<size_t>(n));
  }
  return Status::Ok();
}

struct CloseDir {
  void operator()(DIR* dir) const { ::closedir(dir); }
};

// The names in the open folder `fd`, without . and .. Leaves `fd` open.
Result<std::vector<std::string>> NamesIn(int fd, const std::string& path) {
  const int own = ::openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (own < 0) return ErrnoStatus("open", path, errno);
  const std::unique_ptr<DIR, CloseDir> dir(::fdopendir(own));
  if (dir == nullptr) return ErrnoStatus("read", path, errno);
  std::vector<std::string> names;
  while (true) {
    errno = 0;
    const dirent* entry = ::readdir(dir.get());
    if (entry == nullptr) {
      if (errno != 0) return ErrnoStatus("read", path, errno);
      return names;
    }
    const std::string_view name(entry->d_name);
    if (name != "." && name != "..") names.emplace_back(name);
  }
}

// Removes `name` of the folder `parent` and all below it. `path` is for the message. By descriptors, so that a
// folder swapped for a link meanwhile is not followed.
Status RemoveAt(int parent, const std::string& name, const std::string& path) {
  if (::unlinkat(parent, name.c_str(), 0) == 0 || errno == ENOENT) return Status::Ok();
  // A folder: Linux says EISDIR, POSIX EPERM.
  if (errno != EISDIR && errno != EPERM) return ErrnoStatus("remove", path, errno);
  const UniqueFd fd(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) return errno == ENOENT ? Status::Ok() : ErrnoStatus("remove", path, errno);
  LK_ASSIGN_OR_RETURN(const auto names, NamesIn(fd.get(), path));
  for (const auto& child : names) LK_RETURN_IF_ERROR(RemoveAt(fd.get(), child, JoinPath(path, child)));
  if (::unlinkat(parent, name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT) {
    return ErrnoStatus("remove", path, errno);
  }
  return Status::Ok();
}

}  // namespace

Status ErrnoStatus(std::string_view attempt, std::string_view path, int error) {
  std::string text(attempt);
  text += " ";
  text += path;
  text += ": ";
  text += std::strerror(error);
  return {CodeOfErrno(error), std::move(text)};
}

Result<std::string> ReadFile(const std::string& path) {
  std::string content;
  LK_RETURN_IF_ERROR(ReadPieces(path, [&](std::string_view piece) { content += piece; }));
  return content;
}

Status WriteFileAtomic(const std::string& path, std::string_view content, mode_t mode) {
  static std::atomic<uint64_t> counter{0};
  const std::string temporary = path + ".tmp." + std::to_string(::getpid()) + "." + std::to_string(counter++);
  const auto write = [&]() -> Status {
    // A name left by an earlier process with our pid is taken over; 0600 until the wanted mode is set, so that a
    // secret is never readable for others, not even for a moment.
    LK_RETURN_IF_ERROR(RemoveFile(temporary));
    LK_ASSIGN_OR_RETURN(const UniqueFd fd, Open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
    LK_RETURN_IF_ERROR(WriteAll(fd.get(), content, path));
    if (::fchmod(fd.get(), mode) != 0) return ErrnoStatus("chmod", path, errno);
    if (Again([&] { return ::fsync(fd.get()); }) != 0) return ErrnoStatus("fsync", path, errno);
    if (::rename(temporary.c_str(), path.c_str()) != 0) return ErrnoStatus("rename to", path, errno);
    return Status::Ok();
  };
  if (Status status = write(); !status.ok()) {
    ::unlink(temporary.c_str());
    return status;
  }
  return FsyncDir(DirName(path));
}

Status MakeDirs(const std::string& path, mode_t mode) {
  if (path.empty()) return {Code::kInvalid, "make folder: the path is empty"};
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    if (::mkdir(part.c_str(), mode) != 0 && errno != EEXIST) {
      // A parent that exists may answer EROFS or EACCES instead of EEXIST.
      const int error = errno;
      struct stat st {};
      if (::stat(part.c_str(), &st) != 0 || !S_ISDIR(st.st_mode)) return ErrnoStatus("make folder", part, error);
    }
    if (end == std::string::npos) break;
  }
  struct stat st {};
  if (::stat(path.c_str(), &st) != 0) return ErrnoStatus("make folder", path, errno);
  return S_ISDIR(st.st_mode) ? Status::Ok() : ErrnoStatus("make folder", path, ENOTDIR);
}

bool PathExists(const std::string& path) {
  struct stat st {};
  return ::stat(path.c_str(), &st) == 0;
}

Status FsyncDir(const std::string& path) {
  LK_ASSIGN_OR_RETURN(const UniqueFd fd, Open(path, O_RDONLY | O_DIRECTORY));
  if (Again([&] { return ::fsync(fd.get()); }) != 0) return ErrnoStatus("fsync", path, errno);
  return Status::Ok();
}

Status RemoveFile(const std::string& path) {
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return Status::Ok();
  return ErrnoStatus("remove", path, errno);
}

Status RemoveTree(const std::string& path) {
  std::string trimmed = path;
  while (trimmed.size() > 1 && trimmed.back() == '/') trimmed.pop_back();
  return RemoveAt(AT_FDCWD, trimmed, trimmed);
}

Result<std::vector<std::string>> ListDir(const std::string& path) {
  LK_ASSIGN_OR_RETURN(const UniqueFd fd, Open(path, O_RDONLY | O_DIRECTORY));
  LK_ASSIGN_OR_RETURN(auto names, NamesIn(fd.get(), path));
  std::sort(names.begin(), names.end());
  return names;
}

std::string JoinPath(std::string_view a, std::string_view b) {
  if (a.empty()) return std::string(b);
  if (b.empty()) return std::string(a);
  std::string path(a);
  if (path.back() != '/') path += '/';
  while (!b.empty() && b.front() == '/') b.remove_prefix(1);
  path += b;
  return path;
}

std::string DirName(const std::string& path) {
  const size_t last = path.find_last_not_of('/');
  if (last == std::string::npos) return path.empty() ? "." : "/";
  const size_t slash = path.find_last_of('/', last);
  if (slash == std::string::npos) return ".";
  const size_t end = path.find_last_not_of('/', slash);
  return end == std::string::npos ? "/" : path.substr(0, end + 1);
}

Result<std::string> Sha256File(const std::string& path) {
  Sha256 sha;
  LK_RETURN_IF_ERROR(ReadPieces(path, [&](std::string_view piece) { sha.Add(piece); }));
  return sha.Hex();
}

}  // namespace lockkeeper
