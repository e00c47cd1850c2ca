#include <strings.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "api/base/file.h"
#include "api/base/id.h"
#include "api/base/json.h"
#include "api/base/sync.h"
#include "reconcilers/host/file_ops.h"
#include "reconcilers/host/hash_cache.h"
#include "reconcilers/host/host_files.h"
#include "reconcilers/host/release_archive.h"
#include "reconcilers/host/release_tree.h"

namespace lockkeeper {
namespace {

using host_internal::TreeFile;
using host_internal::TreeLimits;

constexpr char kTemporaryPrefix[] = ".part-";

std::string MachineArch() {
  utsname name = {};
  uname(&name);
  const std::string machine = name.machine;
  if (machine == "x86_64") return "amd64";
  if (machine == "aarch64") return "arm64";
  return machine;
}

void ReplaceAll(std::string* text, const std::string& what, const std::string& with) {
  for (size_t at = text->find(what); at != std::string::npos; at = text->find(what, at + with.size())) {
    text->replace(at, what.size(), with);
  }
}

Result<std::string> PathOfUrl(const std::string& url) {
  if (url.starts_with("file:///")) return url.substr(7);
  if (url.starts_with("/")) return url;
  if (url.find("://") != std::string::npos) {
    return Status(Code::kUnsupported, "\"" + url +
                                          "\": builds are fetched from an absolute path or file:// only; put " +
                                          "the artifact on this host and name its path");
  }
  return Status(Code::kInvalid, "\"" + url + "\" is neither an absolute path nor a file:// URL");
}

bool IsVersion(const std::string& version) {
  return !version.empty() && version[0] != '.' && version.find_first_of("/\\") == std::string::npos &&
         version.find("..") == std::string::npos;
}

// The hash of `name` in text as sha256sum prints it ("HEX  NAME" or "HEX *NAME"), or the only bare hash.
Result<std::string> FindChecksum(const std::string& text, const std::string& name, const std::string& source) {
  std::string bare;
  size_t at = 0;
  while (at < text.size()) {
    size_t end = text.find('\n', at);
    if (end == std::string::npos) end = text.size();
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    const size_t space = line.find(' ');
    const std::string hash = line.substr(0, space);
    if (hash.size() != 64 || hash.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos) continue;
    if (space == std::string::npos) {
      bare = hash;
      continue;
    }
    std::string named = line.substr(line.find_first_not_of(" *", space));
    if (named.starts_with("./")) named.erase(0, 2);
    if (named == name) return hash;
  }
  if (!bare.empty()) return bare;
  return Status(Code::kNotFound, source + " has no checksum of " + name);
}

std::string BaseName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

bool EqualHash(const std::string& a, const std::string& b) {
  return a.size() == b.size() && strcasecmp(a.c_str(), b.c_str()) == 0;
}

class LocalReleaseSource final : public ReleaseSource {
 public:
  explicit LocalReleaseSource(ReleaseSourceOptions options) : options_(std::move(options)) {
    if (options_.arch.empty()) options_.arch = MachineArch();
  }

  Result<ReleaseInfo> Resolve(const std::string& url_template, const std::string& version, const std::string& index,
                              const std::string& artifact) override {
    ReleaseInfo info;
    info.version = version;
    if (!index.empty()) LK_RETURN_IF_ERROR(AskIndex(index, &info));
    if (index.empty() && (version == "latest" || version == "main")) {
      return Status(Code::kInvalid, "\"" + version +
                                        "\" is resolved by an index, and spec.source.index is empty: name "
                                        "a version, or set the index");
    }
    if (!IsVersion(info.version)) {
      return Status(Code::kInvalid, "\"" + info.version + "\" is no version: it may hold no path characters");
    }
    if (info.url.empty()) info.url = url_template;
    ReplaceAll(&info.url, "{version}", info.version);
    ReplaceAll(&info.url, "{os}", options_.os);
    ReplaceAll(&info.url, "{arch}", options_.arch);
    ReplaceAll(&info.url, "{artifact}", artifact);
    LK_ASSIGN_OR_RETURN(const std::string path, PathOfUrl(info.url));
    struct stat st = {};
    if (stat(path.c_str(), &st) != 0) {
      if (errno == ENOENT || errno == ENOTDIR) {
        return Status(Code::kNotFound, "version " + info.version + ": there is no build at " + path);
      }
      return ErrnoStatus("look at", path, errno);
    }
    LK_ASSIGN_OR_RETURN(const Measured measured, Measure(path, S_ISDIR(st.st_mode)));
    info.size = measured.size;
    if (info.sha256.empty()) info.sha256 = measured.sha256;
    return info;
  }

  Result<ReleaseInfo> Fetch(const ReleaseInfo& release, const std::string& checksum_type, const std::string& checksum,
                            const std::string& releases_dir,
                            const std::function<void(int64_t, int64_t)>& progress) override {
    if (release.sha256.size() != 64) {
      return Status(Code::kInvalid, "the build " + release.version + " was not resolved: it has no SHA-256");
    }
    ReleaseInfo info = release;
    info.path = JoinPath(releases_dir, release.sha256);
    if (IsWhole(info.path)) return info;
    LK_ASSIGN_OR_RETURN(const std::string source, PathOfUrl(release.url));
    LK_RETURN_IF_ERROR(MakeDirs(releases_dir, 0755));
    LK_RETURN_IF_ERROR(CheckRoom(source, release, releases_dir));
    const std::string part = JoinPath(releases_dir, kTemporaryPrefix + release.sha256.substr(0, 12) + RandomHex(4));
    const Status fetched = FetchInto(info, source, part, checksum_type, checksum, progress);
    if (!fetched.ok()) {
      const Status swept = RemoveTree(part);
      return swept.ok() ? fetched : Status(fetched.code(), fetched.message() + "; and " + swept.message());
    }
    return info;
  }

  Result<std::vector<ReleaseFileInfo>> Files(const ReleaseInfo& release) override {
    return host_internal::ReadManifest(release.path);
  }

 private:
  struct Measured {
    std::string sha256;
    int64_t size = 0;
  };

  TreeLimits Limits() const { return {options_.max_bytes, options_.max_entries}; }

  Result<Measured> Measure(const std::string& path, bool folder) {
    Measured out;
    if (!folder) {
      struct stat st = {};
      LK_ASSIGN_OR_RETURN(out.sha256, hashes_.OfPath(path));
      if (stat(path.c_str(), &st) == 0) out.size = st.st_size;
      return out;
    }
    LK_ASSIGN_OR_RETURN(const std::vector<TreeFile> files, host_internal::ListTree(path, Limits()));
    if (files.empty()) return Status(Code::kNotFound, "the build at " + path + " is an empty folder");
    for (const TreeFile& f : files) out.size += f.size;
    out.sha256 = host_internal::TreeSha256(files);
    return out;
  }

  static Status AskIndex(const std::string& index, ReleaseInfo* info) {
    LK_ASSIGN_OR_RETURN(const std::string path, PathOfUrl(index));
    const Result<std::string> text = ReadFile(path);
    if (!text.ok()) return text.status().Annotate("read the index of builds");
    const Result<Json> json = Json::Parse(*text);
    if (!json.ok()) return Status(Code::kInvalid, "the index " + path + " is no JSON: " + json.status().message());
    const std::string of_channel = json->At({"channels", info->version}).AsString();
    if (!of_channel.empty()) {
      info->version = of_channel;
    } else if (info->version == "latest" || info->version == "main") {
      return Status(Code::kNotFound, "the index " + path + " names no build for \"" + info->version + "\"");
    }
    const Json& build = json->At({"builds", info->version});
    info->commit = build.Get("commit").AsString();
    info->sha256 = build.Get("sha256").AsString();
    info->url = build.Get("url").AsString();
    return Status::Ok();
  }

  // A release is whole when all that its list names lies there in its size; bytes were verified when it was made.
  static bool IsWhole(const std::string& path) {
    const Result<std::vector<TreeFile>> files = host_internal::ReadManifest(path);
    if (!files.ok()) return false;
    for (const TreeFile& f : *files) {
      struct stat st = {};
      if (lstat(JoinPath(path, f.path).c_str(), &st) != 0 || !S_ISREG(st.st_mode) || st.st_size != f.size) return false;
    }
    return true;
  }

  static Status CheckRoom(const std::string& source, const ReleaseInfo& release, const std::string& dir) {
    struct statvfs fs = {};
    if (statvfs(dir.c_str(), &fs) != 0) return ErrnoStatus("ask for free space at", dir, errno);
    const int64_t left = static_cast<int64_t>(fs.f_bavail) * static_cast<int64_t>(fs.f_frsize);
    if (left >= release.size) return Status::Ok();
    return Status(Code::kExhausted, "the build " + release.version + " of " + std::to_string(release.size >> 20) +
                                        " MiB (" + source + ") does not fit into " + dir + ": " +
                                        std::to_string(left >> 20) + " MiB are left");
  }

  Status FetchInto(const ReleaseInfo& info, const std::string& source, const std::string& part,
                   const std::string& checksum_type, const std::string& checksum,
                   const host_internal::ByteProgress& progress) {
    struct stat st = {};
    if (stat(source.c_str(), &st) != 0) return ErrnoStatus("look at the build", source, errno);
    const std::string tree = part + "/tree";
    LK_RETURN_IF_ERROR(MakeDirs(tree, 0755));
    const bool folder = S_ISDIR(st.st_mode);
    // All that is verified is verified on our own copy: the source may change under us.
    std::string sha256;
    if (folder) {
      LK_RETURN_IF_ERROR(host_internal::CopyTree(source, tree, Limits(), info.size, progress));
      LK_RETURN_IF_ERROR(host_internal::CheckLinks(tree));
    } else {
      LK_RETURN_IF_ERROR(CopyArtifact(source, part, info.size, progress));
      LK_ASSIGN_OR_RETURN(sha256, Sha256File(part + "/artifact"));
      LK_RETURN_IF_ERROR(CheckHash(info, source, sha256));
      LK_RETURN_IF_ERROR(CheckFile(info, source, sha256, checksum_type, checksum));
      LK_RETURN_IF_ERROR(Unpack(source, part, tree));
    }
    LK_ASSIGN_OR_RETURN(const std::vector<TreeFile> files, host_internal::ListTree(tree, Limits()));
    if (files.empty()) return Status(Code::kInvalid, "the build " + source + " holds no file");
    if (folder) {
      sha256 = host_internal::TreeSha256(files);
      LK_RETURN_IF_ERROR(CheckHash(info, source, sha256));
      LK_RETURN_IF_ERROR(CheckFolder(source, files, sha256, checksum_type, checksum));
    }
    LK_RETURN_IF_ERROR(host_internal::WriteManifest(tree, files));
    LK_RETURN_IF_ERROR(host_internal::SyncTree(tree));
    // An incomplete release of an earlier day gives way; a process that runs from it keeps its open files.
    LK_RETURN_IF_ERROR(RemoveTree(info.path));
    if (rename(tree.c_str(), info.path.c_str()) != 0)
      return ErrnoStatus("put the release in place at", info.path, errno);
    LK_RETURN_IF_ERROR(FsyncDir(DirName(info.path)));
    return RemoveTree(part);
  }

  Status CopyArtifact(const std::string& source, const std::string& part, int64_t total,
                      const host_internal::ByteProgress& progress) {
    struct stat st = {};
    if (stat(source.c_str(), &st) == 0 && !S_ISREG(st.st_mode)) {
      return Status(Code::kInvalid, "the build " + source + " is neither a file nor a folder");
    }
    return host_internal::CopyFile(source, part + "/artifact", 0755, [&, done = int64_t{0}](int64_t n) mutable {
      done += n;
      if (progress) progress(done, total);
    });
  }

  Status Unpack(const std::string& source, const std::string& part, const std::string& tree) {
    const std::string artifact = part + "/artifact";
    if (host_internal::IsArchiveName(source)) {
      LK_RETURN_IF_ERROR(host_internal::UnpackArchive(artifact, tree, Limits(), nullptr));
      return RemoveFile(artifact);
    }
    LK_RETURN_IF_ERROR(MakeDirs(tree + "/bin"));
    const std::string path = tree + "/bin/" + BaseName(source);
    if (rename(artifact.c_str(), path.c_str()) != 0) return ErrnoStatus("put in place", path, errno);
    return Status::Ok();
  }

  static Status CheckHash(const ReleaseInfo& info, const std::string& source, const std::string& sha256) {
    if (EqualHash(info.sha256, sha256)) return Status::Ok();
    return Status(Code::kCorrupt, "the build " + source + " has SHA-256 " + sha256 + ", but " + info.sha256 +
                                      " was resolved for version " + info.version + ": it was changed or damaged");
  }

  static Status Differs(const std::string& what, const std::string& is, const std::string& wanted,
                        const std::string& says) {
    return Status(Code::kCorrupt, what + " has SHA-256 " + is + ", but " + says + " says " + wanted +
                                      ": the build is damaged or another one; nothing was installed");
  }

  static Result<std::pair<std::string, std::string>> ReadSums(const std::string& source, const std::string& checksum) {
    LK_ASSIGN_OR_RETURN(const std::string path, PathOfUrl(checksum.empty() ? source + ".sha256" : checksum));
    const Result<std::string> text = ReadFile(path);
    if (text.ok()) return std::make_pair(path, *text);
    if (text.code() != Code::kNotFound) return text.status();
    return Status(Code::kNotFound, "there is no checksum file " + path +
                                       ": put it there (sha256sum writes it), name it "
                                       "in spec.source.checksum, or allow the build unverified");
  }

  static Status CheckFile(const ReleaseInfo& info, const std::string& source, const std::string& sha256,
                          const std::string& type, const std::string& checksum) {
    if (type == "None") return Status::Ok();
    if (type == "Value") {
      return EqualHash(sha256, checksum) ? Status::Ok()
                                         : Differs(source, sha256, checksum, "spec.source.checksum.value");
    }
    std::string url = checksum;
    ReplaceAll(&url, "{version}", info.version);
    LK_ASSIGN_OR_RETURN(const auto sums, ReadSums(source, url));
    LK_ASSIGN_OR_RETURN(const std::string wanted, FindChecksum(sums.second, BaseName(source), sums.first));
    return EqualHash(sha256, wanted) ? Status::Ok() : Differs(source, sha256, wanted, sums.first);
  }

  // A folder: each file must be named by the checksum file; a value is the hash of the whole.
  static Status CheckFolder(const std::string& source, const std::vector<TreeFile>& files, const std::string& sha256,
                            const std::string& type, const std::string& checksum) {
    if (type == "None") return Status::Ok();
    if (type == "Value") {
      return EqualHash(sha256, checksum) ? Status::Ok()
                                         : Differs(source, sha256, checksum, "spec.source.checksum.value");
    }
    LK_ASSIGN_OR_RETURN(const auto sums, ReadSums(source, checksum));
    for (const TreeFile& f : files) {
      LK_ASSIGN_OR_RETURN(const std::string wanted, FindChecksum(sums.second, f.path, sums.first));
      if (!EqualHash(f.sha256, wanted)) return Differs(JoinPath(source, f.path), f.sha256, wanted, sums.first);
    }
    return Status::Ok();
  }

  ReleaseSourceOptions options_;
  HashCache hashes_;
};

}  // namespace

std::unique_ptr<ReleaseSource> NewReleaseSource(ReleaseSourceOptions options) {
  return std::make_unique<LocalReleaseSource>(std::move(options));
}

Status SweepReleases(const std::string& releases_dir) {
  return host_internal::SweepTemporary(releases_dir, kTemporaryPrefix);
}

}  // namespace lockkeeper
