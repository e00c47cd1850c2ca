#include "reconcilers/host/release_archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <utility>
#include <vector>

#include "api/base/file.h"
#include "api/base/unique_fd.h"
#include "reconcilers/host/file_ops.h"

namespace lockkeeper::host_internal {
namespace {

struct FreeArchive {
  void operator()(archive* a) const { archive_read_free(a); }
};

class Unpacker {
 public:
  Unpacker(std::string archive, std::string into, const TreeLimits& limits, const ByteProgress& progress)
      : path_(std::move(archive)), into_(std::move(into)), limits_(limits), progress_(progress) {}

  Status Run() {
    struct stat st = {};
    if (stat(path_.c_str(), &st) != 0) return ErrnoStatus("look at", path_, errno);
    total_ = st.st_size;
    archive_.reset(archive_read_new());
    archive_read_support_format_tar(archive_.get());
    archive_read_support_filter_gzip(archive_.get());
    archive_read_support_filter_zstd(archive_.get());
    if (archive_read_open_filename(archive_.get(), path_.c_str(), 64 << 10) != ARCHIVE_OK) return Damaged();
    archive_entry* entry = nullptr;
    while (true) {
      const int rc = archive_read_next_header(archive_.get(), &entry);
      if (rc == ARCHIVE_EOF) break;
      if (rc != ARCHIVE_OK) return Damaged();
      LK_RETURN_IF_ERROR(Take(entry));
    }
    // Links last: no file is ever written through one.
    for (const auto& [link, target] : links_) {
      const std::string path = JoinPath(into_, link);
      LK_RETURN_IF_ERROR(MakeDirs(DirName(path)));
      if (symlink(target.c_str(), path.c_str()) != 0) return ErrnoStatus("make the link", path, errno);
    }
    return CheckLinks(into_);
  }

 private:
  Status Damaged() const {
    const char* text = archive_error_string(archive_.get());
    return Status(Code::kCorrupt,
                  "the archive " + path_ + " is damaged: " + (text != nullptr ? text : "no reason given"));
  }

  Status Refuse(const std::string& name, const std::string& why) const {
    return Status(Code::kInvalid, "the archive " + path_ + " is refused: its entry \"" + name + "\" " + why);
  }

  Status Take(archive_entry* entry) {
    const char* raw = archive_entry_pathname(entry);
    std::string name = raw == nullptr ? "" : raw;
    while (name.starts_with("./")) name.erase(0, 2);
    while (name.size() > 1 && name.ends_with('/')) name.pop_back();
    if (++entries_ > limits_.max_entries) {
      return Refuse(name, "is one of more than " + std::to_string(limits_.max_entries));
    }
    if (name.empty() || name == ".") return Status::Ok();
    if (!IsInnerPath(name)) return Refuse(name, "leads out of the release");
    const std::string path = JoinPath(into_, name);
    if (archive_entry_hardlink(entry) != nullptr) return HardLink(name, path, archive_entry_hardlink(entry));
    switch (archive_entry_filetype(entry)) {
      case AE_IFDIR: return MakeDirs(path);
      case AE_IFREG: return WriteFile(entry, name, path);
      case AE_IFLNK: {
        const char* target = archive_entry_symlink(entry);
        if (target == nullptr || target[0] == '/' || target[0] == '\0') return Refuse(name, "is an absolute link");
        links_.emplace_back(name, target);
        return Status::Ok();
      }
      default: return Refuse(name, "is neither file, folder nor link");
    }
  }

  Status HardLink(const std::string& name, const std::string& path, std::string target) {
    while (target.starts_with("./")) target.erase(0, 2);
    if (!IsInnerPath(target)) return Refuse(name, "is a link that leads out of the release");
    LK_RETURN_IF_ERROR(MakeDirs(DirName(path)));
    // No link is made before all files are there, so the target is a plain file of this archive.
    if (linkat(AT_FDCWD, JoinPath(into_, target).c_str(), AT_FDCWD, path.c_str(), 0) != 0) {
      return errno == ENOENT ? Refuse(name, "is a link to nothing") : ErrnoStatus("make the link", path, errno);
    }
    return Status::Ok();
  }

  Status WriteFile(archive_entry* entry, const std::string& name, const std::string& path) {
    LK_RETURN_IF_ERROR(MakeDirs(DirName(path)));
    const mode_t mode = (archive_entry_perm(entry) & 0100) != 0 ? 0755 : 0644;
    LK_RETURN_IF_ERROR(RemoveFile(path));  // a later entry of the same name holds, as tar has it
    const UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode));
    if (!fd) return ErrnoStatus("create", path, errno);
    if (fchmod(fd.get(), mode) != 0) return ErrnoStatus("set the mode of", path, errno);
    const void* data = nullptr;
    size_t size = 0;
    la_int64_t offset = 0;
    while (true) {
      const int rc = archive_read_data_block(archive_.get(), &data, &size, &offset);
      if (rc == ARCHIVE_EOF) return Status::Ok();
      if (rc != ARCHIVE_OK) return Damaged();
      bytes_ += static_cast<int64_t>(size);
      if (bytes_ > limits_.max_bytes || offset > limits_.max_bytes) {
        return Refuse(name, "makes the release larger than " + std::to_string(limits_.max_bytes) + " bytes");
      }
      const auto* at = static_cast<const char*>(data);
      while (size > 0) {
        const ssize_t n = pwrite(fd.get(), at, size, offset);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return ErrnoStatus("write", path, errno);
        at += n;
        size -= static_cast<size_t>(n);
        offset += n;
      }
      if (progress_) progress_(archive_filter_bytes(archive_.get(), -1), total_);
    }
  }

  const std::string path_;
  const std::string into_;
  const TreeLimits limits_;
  const ByteProgress& progress_;
  std::unique_ptr<archive, FreeArchive> archive_;
  std::vector<std::pair<std::string, std::string>> links_;
  int64_t total_ = 0;
  int64_t bytes_ = 0;
  int64_t entries_ = 0;
};

}  // namespace

Status UnpackArchive(const std::string& archive, const std::string& into, const TreeLimits& limits,
                     const ByteProgress& progress) {
  return Unpacker(archive, into, limits, progress).Run();
}

bool IsArchiveName(const std::string& path) {
  for (const char* suffix : {".tar", ".tar.gz", ".tgz", ".tar.zst"}) {
    if (path.ends_with(suffix)) return true;
  }
  return false;
}

}  // namespace lockkeeper::host_internal
