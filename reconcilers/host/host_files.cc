#include "reconcilers/host/host_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <map>

#include "api/base/file.h"
#include "controller/yaml.h"
#include "reconcilers/host/accounts.h"
#include "reconcilers/host/file_ops.h"
#include "reconcilers/host/hash_cache.h"

namespace lockkeeper {
namespace {

using host_internal::InstallFile;
using host_internal::IsInnerPath;

// The pair that a kcp-like server checks against each other at its start: the hash and the token (kcp.md 2.16).
constexpr char kTokenStore[] = ".admin-token-store";
constexpr char kAdminKubeconfig[] = "admin.kubeconfig";
constexpr mode_t kSecretMode = 0600;

bool IsFile(const std::string& path) {
  struct stat st = {};
  return stat(path.c_str(), &st) == 0 && S_ISREG(st.st_mode);
}

Status CheckPlan(const SeedPlan& plan) {
  if (plan.shared_dir.empty() || plan.root.empty()) {
    return Status(Code::kInvalid, "the shared folder and the slot's root must both be named");
  }
  for (const std::string& f : plan.files) {
    if (!IsInnerPath(f)) return Status(Code::kInvalid, "seed.files: \"" + f + "\" does not stay below its folder");
  }
  return Status::Ok();
}

// Puts `path` in place of nothing: answers false when somebody's file is there.
Result<bool> LinkNew(const std::string& from, const std::string& path) {
  if (link(from.c_str(), path.c_str()) == 0) return true;
  if (errno == EEXIST) return false;
  return ErrnoStatus("put in place", path, errno);
}

class LocalHostFiles final : public HostFiles {
 public:
  Result<std::vector<std::string>> MissingShared(const SeedPlan& plan) override {
    LK_RETURN_IF_ERROR(CheckPlan(plan));
    std::vector<std::string> missing;
    for (const std::string& f : plan.files) {
      const std::string path = JoinPath(plan.shared_dir, f);
      struct stat st = {};
      if (stat(path.c_str(), &st) != 0) {
        if (errno != ENOENT && errno != ENOTDIR) return ErrnoStatus("look at", path, errno);
        missing.push_back(f);
      } else if (!S_ISREG(st.st_mode)) {
        return Status(Code::kInvalid, "the shared file " + path + " is no regular file");
      }
    }
    return missing;
  }

  Result<bool> IsSeeded(const SeedPlan& plan) override {
    LK_RETURN_IF_ERROR(CheckPlan(plan));
    for (const std::string& f : plan.files) {
      LK_ASSIGN_OR_RETURN(const std::string wanted, ReadFile(JoinPath(plan.shared_dir, f)));
      LK_ASSIGN_OR_RETURN(const bool same, Holds(JoinPath(plan.root, f), wanted));
      if (!same) return false;
    }
    return true;
  }

  Status Seed(const SeedPlan& plan) override {
    LK_RETURN_IF_ERROR(CheckPlan(plan));
    LK_RETURN_IF_ERROR(MakeDirs(plan.root, 0700));
    struct stat root = {};
    if (stat(plan.root.c_str(), &root) != 0) return ErrnoStatus("look at", plan.root, errno);
    for (const std::string& f : plan.files) {
      const std::string path = JoinPath(plan.root, f);
      LK_ASSIGN_OR_RETURN(const std::string content, ReadFile(JoinPath(plan.shared_dir, f)));
      LK_ASSIGN_OR_RETURN(const bool same, Holds(path, content));
      if (same) continue;
      LK_RETURN_IF_ERROR(MakeDirs(DirName(path), 0700));
      // The slot's own user reads them: the owner of its root.
      LK_RETURN_IF_ERROR(InstallFile(path, content, kSecretMode, root.st_uid, root.st_gid));
    }
    return Status::Ok();
  }

  Status Harvest(const SeedPlan& plan) override {
    LK_RETURN_IF_ERROR(CheckPlan(plan));
    std::map<std::string, std::string> contents;
    for (const std::string& f : plan.files) {
      Result<std::string> content = ReadFile(JoinPath(plan.root, f));
      if (!content.ok()) return content.status().Annotate("harvest the shared files");
      contents[f] = std::move(*content);
    }
    const std::string temporary = plan.shared_dir + ".harvest";
    LK_RETURN_IF_ERROR(RemoveTree(temporary));
    LK_RETURN_IF_ERROR(MakeDirs(temporary, 0700));
    for (const auto& [f, content] : contents) {
      const std::string path = JoinPath(temporary, f);
      LK_RETURN_IF_ERROR(MakeDirs(DirName(path), 0700));
      LK_RETURN_IF_ERROR(InstallFile(path, content, kSecretMode, static_cast<uid_t>(-1), static_cast<gid_t>(-1)));
    }
    LK_RETURN_IF_ERROR(host_internal::SyncTree(temporary));
    LK_ASSIGN_OR_RETURN(const bool empty, IsEmptyDir(plan.shared_dir));
    if (empty) {
      // An empty folder gives way to a rename.
      if (rename(temporary.c_str(), plan.shared_dir.c_str()) != 0) {
        return ErrnoStatus("put the shared files in place at", plan.shared_dir, errno);
      }
      return FsyncDir(DirName(plan.shared_dir));
    }
    const Status filled = FillIn(plan, contents, temporary);
    const Status swept = RemoveTree(temporary);
    return filled.ok() ? swept : filled;
  }

  Result<bool> IsEmptyDir(const std::string& path) override {
    const Result<std::vector<std::string>> names = ListDir(path);
    if (names.code() == Code::kNotFound) return true;
    if (!names.ok()) return names.status();
    return names->empty();
  }

  Status EnsureDir(const std::string& path, const std::string& user, const std::string& group) override {
    LK_RETURN_IF_ERROR(MakeDirs(path, 0700));
    if (user.empty() && group.empty()) return Status::Ok();
    struct stat st = {};
    if (stat(path.c_str(), &st) != 0) return ErrnoStatus("look at", path, errno);
    Account owner{st.st_uid, st.st_gid, {}};
    if (!user.empty()) {
      LK_ASSIGN_OR_RETURN(owner, FindUser(user));
    }
    if (!group.empty()) {
      LK_ASSIGN_OR_RETURN(owner.gid, FindGroup(group));
    }
    const bool same = st.st_uid == owner.uid && st.st_gid == owner.gid;
    if (same || chown(path.c_str(), owner.uid, owner.gid) == 0) return Status::Ok();
    return ErrnoStatus("give to user \"" + user + "\" the folder", path, errno);
  }

  Status ClearRoot(const std::string& root) override {
    // A mistake in a path must not clear a home or the machine.
    if (root.empty() || root[0] != '/' || std::count(root.begin(), root.end(), '/') < 2 ||
        root.find("/../") != std::string::npos) {
      return Status(Code::kInvalid, "\"" + root + "\" is no folder of a slot: it is not cleared");
    }
    const Result<std::vector<std::string>> names = ListDir(root);
    if (names.code() == Code::kNotFound) return Status::Ok();
    if (!names.ok()) return names.status();
    for (const std::string& name : *names) LK_RETURN_IF_ERROR(RemoveTree(JoinPath(root, name)));
    return FsyncDir(root);
  }

  Result<std::string> Sha256Executable(const std::string& path) override {
    struct stat st = {};
    if (stat(path.c_str(), &st) != 0) {
      if (errno == ENOENT || errno == ENOTDIR) return Status(Code::kNotFound, NothingAt(path));
      return ErrnoStatus("look at", path, errno);
    }
    if (!S_ISREG(st.st_mode)) return Status(Code::kInvalid, path + " is no file that could be executed");
    if (access(path.c_str(), X_OK) != 0) {
      return Status(Code::kForbidden, path + " is not executable: chmod +x it, or name another command");
    }
    return hashes_.OfPath(path);
  }

  Result<std::string> ReadToken(const std::string& kubeconfig, const std::string& context) override {
    LK_ASSIGN_OR_RETURN(const std::string text, ReadFile(kubeconfig));
    LK_ASSIGN_OR_RETURN(const Json config, ParseYaml(text, kubeconfig));
    const auto entry = [&config](const char* list, const std::string& name) -> const Json* {
      for (const Json& item : config.Get(list).AsArray()) {
        if (item.Get("name").AsString() == name) return &item;
      }
      return nullptr;
    };
    const std::string name = context.empty() ? config.Get("current-context").AsString() : context;
    const Json* found = entry("contexts", name);
    if (found == nullptr) return Status(Code::kNotFound, kubeconfig + " has no context \"" + name + "\"");
    const std::string user_name = found->At({"context", "user"}).AsString();
    const Json* user = entry("users", user_name);
    if (user == nullptr) return Status(Code::kNotFound, kubeconfig + " has no user \"" + user_name + "\"");
    const std::string token = user->At({"user", "token"}).AsString();
    if (token.empty()) {
      return Status(Code::kNotFound, "user \"" + user_name + "\" of " + kubeconfig + " has no token");
    }
    return token;
  }

  Result<std::string> FileSha256(const std::string& path) override { return Sha256File(path); }

  Status WriteToken(const std::string& path, const std::string& token) override {
    const Result<std::string> old = ReadFile(path);
    struct stat st = {};
    if (old.ok() && *old == token && stat(path.c_str(), &st) == 0 && (st.st_mode & 0177) == 0) return Status::Ok();
    LK_RETURN_IF_ERROR(MakeDirs(DirName(path), 0755));
    // Whose file it was, it stays.
    const bool there = stat(path.c_str(), &st) == 0 && geteuid() == 0;
    return InstallFile(path, token, kSecretMode, there ? st.st_uid : static_cast<uid_t>(-1),
                       there ? st.st_gid : static_cast<gid_t>(-1));
  }

  Status PointLink(const std::string& link, const std::string& target) override {
    std::array<char, 4096> buffer;
    const ssize_t n = readlink(link.c_str(), buffer.data(), buffer.size());
    if (n >= 0 && std::string(buffer.data(), static_cast<size_t>(n)) == target) return Status::Ok();
    if (n < 0 && errno == EINVAL) {
      return Status(Code::kPrecondition, link + " is no link: it belongs to somebody else and is left alone");
    }
    LK_RETURN_IF_ERROR(MakeDirs(DirName(link)));
    const std::string part = link + ".part";
    LK_RETURN_IF_ERROR(RemoveFile(part));
    if (symlink(target.c_str(), part.c_str()) != 0) return ErrnoStatus("make the link", part, errno);
    if (rename(part.c_str(), link.c_str()) != 0) return ErrnoStatus("put the link in place at", link, errno);
    return FsyncDir(DirName(link));
  }

  Result<int64_t> FreeBytes(const std::string& path) override {
    // The filesystem is that of the nearest folder that is there.
    std::string at = path;
    while (at.size() > 1 && !PathExists(at)) at = DirName(at);
    struct statvfs fs = {};
    if (statvfs(at.c_str(), &fs) != 0) return ErrnoStatus("ask for free space at", at, errno);
    return static_cast<int64_t>(fs.f_bavail) * static_cast<int64_t>(fs.f_frsize);
  }

 private:
  // Whether the file has these bytes and no rights but its owner's.
  static Result<bool> Holds(const std::string& path, const std::string& wanted) {
    struct stat st = {};
    if (lstat(path.c_str(), &st) != 0) {
      if (errno == ENOENT || errno == ENOTDIR) return false;
      return ErrnoStatus("look at", path, errno);
    }
    if (!S_ISREG(st.st_mode) || (st.st_mode & 0177) != 0 || st.st_size != static_cast<off_t>(wanted.size())) {
      return false;
    }
    LK_ASSIGN_OR_RETURN(const std::string content, ReadFile(path));
    return content == wanted;
  }

  // Adds what is missing to a folder that a user made. A crash between the two of the pair is mended by a repeat:
  // the half that stands has our bytes.
  static Status FillIn(const SeedPlan& plan, const std::map<std::string, std::string>& contents,
                       const std::string& temporary) {
    const auto theirs = [&](const std::string& f) {
      const Result<std::string> there = ReadFile(JoinPath(plan.shared_dir, f));
      const auto ours = contents.find(f);
      return there.ok() && (ours == contents.end() || *there != ours->second);
    };
    const auto absent = [&](const std::string& f) { return !IsFile(JoinPath(plan.shared_dir, f)); };
    if ((theirs(kTokenStore) && absent(kAdminKubeconfig)) || (theirs(kAdminKubeconfig) && absent(kTokenStore))) {
      return Status(Code::kPrecondition, "the shared folder " + plan.shared_dir + " holds only one of " + kTokenStore +
                                             " and " + kAdminKubeconfig + ": put both there or neither");
    }
    for (const auto& [f, content] : contents) {
      const std::string path = JoinPath(plan.shared_dir, f);
      LK_RETURN_IF_ERROR(MakeDirs(DirName(path), 0700));
      LK_ASSIGN_OR_RETURN(const bool placed, LinkNew(JoinPath(temporary, f), path));
      if (placed) LK_RETURN_IF_ERROR(FsyncDir(DirName(path)));
    }
    return Status::Ok();
  }

  // Names what does lie there, so that a wrong release is seen at a glance.
  static std::string NothingAt(const std::string& path) {
    std::string text = path + " does not exist";
    const Result<std::vector<std::string>> names = ListDir(DirName(path));
    if (!names.ok()) return text + " (nor does its folder)";
    text += names->empty() ? " (its folder is empty)" : " (its folder holds:";
    for (size_t i = 0; i < names->size() && i < 8; ++i) text += (i == 0 ? " " : ", ") + (*names)[i];
    if (names->size() > 8) text += ", …";
    return names->empty() ? text : text + ")";
  }

  HashCache hashes_;
};

}  // namespace

std::unique_ptr<HostFiles> NewHostFiles() { return std::make_unique<LocalHostFiles>(); }

}  // namespace lockkeeper
