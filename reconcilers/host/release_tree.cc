#include "reconcilers/host/release_tree.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>

#include "api/base/file.h"
#include "api/base/json.h"
#include "api/base/unique_fd.h"

namespace lockkeeper::host_internal {
namespace {

enum class EntryKind { kFolder, kFile, kLink };

// Calls `each` for all below `root` (relative path, kind, stat), folders before what is in them.
Status Walk(const std::string& root, const std::string& below, const TreeLimits& limits, int64_t* entries,
            const std::function<Status(const std::string&, EntryKind, const struct stat&)>& each) {
  LK_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDir(below.empty() ? root : JoinPath(root, below)));
  for (const std::string& name : names) {
    const std::string path = below.empty() ? name : below + "/" + name;
    const std::string full = JoinPath(root, path);
    if (++*entries > limits.max_entries) {
      return Status(Code::kInvalid, root + " holds more than " + std::to_string(limits.max_entries) + " files");
    }
    struct stat st = {};
    if (lstat(full.c_str(), &st) != 0) return ErrnoStatus("look at", full, errno);
    if (S_ISDIR(st.st_mode)) {
      LK_RETURN_IF_ERROR(each(path, EntryKind::kFolder, st));
      LK_RETURN_IF_ERROR(Walk(root, path, limits, entries, each));
    } else if (S_ISREG(st.st_mode)) {
      LK_RETURN_IF_ERROR(each(path, EntryKind::kFile, st));
    } else if (S_ISLNK(st.st_mode)) {
      LK_RETURN_IF_ERROR(each(path, EntryKind::kLink, st));
    } else {
      return Status(Code::kInvalid, full + " is neither file, folder nor link: a release may not hold it");
    }
  }
  return Status::Ok();
}

}  // namespace

Status CopyFile(const std::string& from, const std::string& to, mode_t mode,
                const std::function<void(int64_t)>& copied) {
  const UniqueFd in(open(from.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!in) return ErrnoStatus("open", from, errno);
  const UniqueFd out(open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode));
  if (!out) return ErrnoStatus("create", to, errno);
  const auto buffer = std::make_unique<std::array<char, 256 << 10>>();
  while (true) {
    const ssize_t n = read(in.get(), buffer->data(), buffer->size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus("read", from, errno);
    if (n == 0) break;
    for (ssize_t at = 0; at < n;) {
      const ssize_t w = write(out.get(), buffer->data() + at, static_cast<size_t>(n - at));
      if (w < 0 && errno == EINTR) continue;
      if (w < 0) return ErrnoStatus("write", to, errno);
      at += w;
    }
    copied(n);
  }
  if (fchmod(out.get(), mode) != 0) return ErrnoStatus("set the mode of", to, errno);
  return Status::Ok();
}

Result<std::vector<TreeFile>> ListTree(const std::string& root, const TreeLimits& limits) {
  std::vector<TreeFile> files;
  int64_t entries = 0;
  int64_t bytes = 0;
  LK_RETURN_IF_ERROR(
      Walk(root, "", limits, &entries, [&](const std::string& path, EntryKind kind, const struct stat& st) -> Status {
        if (kind != EntryKind::kFile || path == kManifestFile) return Status::Ok();
        bytes += st.st_size;
        if (bytes > limits.max_bytes) {
          return Status(Code::kInvalid, root + " holds more than " + std::to_string(limits.max_bytes) + " bytes");
        }
        LK_ASSIGN_OR_RETURN(const std::string hash, Sha256File(JoinPath(root, path)));
        files.push_back({path, hash, st.st_size, (st.st_mode & 0100) != 0});
        return Status::Ok();
      }));
  std::sort(files.begin(), files.end(), [](const TreeFile& a, const TreeFile& b) { return a.path < b.path; });
  return files;
}

std::string TreeSha256(const std::vector<TreeFile>& files) {
  std::string text;
  for (const TreeFile& f : files) text += f.sha256 + (f.executable ? " x " : " - ") + f.path + "\n";
  return Sha256Hex(text);
}

Status CopyTree(const std::string& from, const std::string& to, const TreeLimits& limits, int64_t total,
                const ByteProgress& progress) {
  int64_t entries = 0;
  int64_t done = 0;
  return Walk(from, "", limits, &entries, [&](const std::string& path, EntryKind kind, const struct stat& st) {
    const std::string target = JoinPath(to, path);
    if (kind == EntryKind::kFolder) return MakeDirs(target, 0755);
    if (kind == EntryKind::kLink) {
      std::array<char, 4096> buffer;
      const ssize_t n = readlink(JoinPath(from, path).c_str(), buffer.data(), buffer.size());
      if (n < 0) return ErrnoStatus("read the link", JoinPath(from, path), errno);
      const std::string leads_to(buffer.data(), static_cast<size_t>(n));
      if (symlink(leads_to.c_str(), target.c_str()) != 0) return ErrnoStatus("make the link", target, errno);
      return Status::Ok();
    }
    if (path == kManifestFile) return Status::Ok();
    return CopyFile(JoinPath(from, path), target, (st.st_mode & 0100) != 0 ? 0755 : 0644, [&](int64_t n) {
      done += n;
      if (progress) progress(done, total);
    });
  });
}

Status CheckLinks(const std::string& root) {
  const std::unique_ptr<char, void (*)(void*)> real_root(realpath(root.c_str(), nullptr), free);
  if (real_root == nullptr) return ErrnoStatus("resolve", root, errno);
  const std::string prefix = std::string(real_root.get()) + "/";
  int64_t entries = 0;
  const TreeLimits none{INT64_MAX, INT64_MAX};
  return Walk(root, "", none, &entries, [&](const std::string& path, EntryKind kind, const struct stat&) -> Status {
    if (kind != EntryKind::kLink) return Status::Ok();
    const std::unique_ptr<char, void (*)(void*)> real(realpath(JoinPath(root, path).c_str(), nullptr), free);
    if (real != nullptr && (std::string(real.get()) + "/").starts_with(prefix)) return Status::Ok();
    return Status(Code::kInvalid, "the link " + path + " leads out of the release or nowhere");
  });
}

Status WriteManifest(const std::string& root, const std::vector<TreeFile>& files) {
  Json list = Json::MakeArray();
  for (const TreeFile& f : files) {
    list.Push(
        Json::MakeObject({{"path", f.path}, {"sha256", f.sha256}, {"size", f.size}, {"executable", f.executable}}));
  }
  return WriteFileAtomic(JoinPath(root, kManifestFile), Json::MakeObject({{"files", list}}).DumpPretty());
}

Result<std::vector<TreeFile>> ReadManifest(const std::string& root) {
  const std::string path = JoinPath(root, kManifestFile);
  LK_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  const Result<Json> json = Json::Parse(text);
  if (!json.ok()) return json.status().Annotate(path);
  std::vector<TreeFile> files;
  for (const Json& f : json->Get("files").AsArray()) {
    files.push_back(
        {f.Get("path").AsString(), f.Get("sha256").AsString(), f.Get("size").AsInt(), f.Get("executable").AsBool()});
  }
  return files;
}

}  // namespace lockkeeper::host_internal
