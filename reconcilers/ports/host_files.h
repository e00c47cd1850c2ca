// HostFiles, ReleaseSource, Snapshotter: the ports to files of the host that a roll needs.
//
// Threads: thread-safe. Failure: Status that names the file; kExhausted on a full disk; kNotFound when a source
// file is missing.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "api/base/time.h"

namespace lockkeeper {

// The shared files of a Server (certificates, keys, token store, kubeconfig) and where a slot finds them.
struct SeedPlan {
  std::string shared_dir;
  std::vector<std::string> files;  // names relative to shared_dir and to the slot's root
  std::string root;                // the slot's root
  bool operator==(const SeedPlan&) const = default;
};

class HostFiles {
 public:
  virtual ~HostFiles() = default;
  // Names of `files` that are missing in shared_dir.
  virtual Result<std::vector<std::string>> MissingShared(const SeedPlan& plan) = 0;
  // Whether root holds all of them with the same bytes and modes of at most 0600.
  virtual Result<bool> IsSeeded(const SeedPlan& plan) = 0;
  // Copies them, 0600, whole or not at all each. Only while the slot is stopped. Repeating is harmless.
  virtual Status Seed(const SeedPlan& plan) = 0;
  // First slot to shared_dir: temporary folder, fsync, rename; never over a file that is there. The token store
  // and the kubeconfig both or neither.
  virtual Status Harvest(const SeedPlan& plan) = 0;
  // An empty or absent folder.
  virtual Result<bool> IsEmptyDir(const std::string& path) = 0;
  virtual Status EnsureDir(const std::string& path, const std::string& user, const std::string& group) = 0;
  // Removes the files of a start that never became ready (not the store): everything in `root`.
  virtual Status ClearRoot(const std::string& root) = 0;
  // Whether argv[0] exists and is executable; its SHA-256.
  virtual Result<std::string> Sha256Executable(const std::string& path) = 0;
  // Token of `context` in the kubeconfig at `path`.
  virtual Result<std::string> ReadToken(const std::string& kubeconfig, const std::string& context) = 0;
  // SHA-256 of the file's bytes; kNotFound when absent.
  virtual Result<std::string> FileSha256(const std::string& path) = 0;
  // Atomic, 0600; unchanged when it holds this already.
  virtual Status WriteToken(const std::string& path, const std::string& token) = 0;
  // Atomic symlink swap.
  virtual Status PointLink(const std::string& link, const std::string& target) = 0;
  // Free bytes on the filesystem of `path`.
  virtual Result<int64_t> FreeBytes(const std::string& path) = 0;
};

struct ReleaseInfo {
  std::string version;
  std::string commit;
  std::string sha256;  // of the artifact
  std::string url;
  std::string path;  // folder with the unpacked release, content-addressed
  int64_t size = 0;
  bool operator==(const ReleaseInfo&) const = default;
};

// One file of an unpacked release.
struct ReleaseFileInfo {
  std::string path;  // below the release's folder
  std::string sha256;
  int64_t size = 0;
  bool executable = false;
  bool operator==(const ReleaseFileInfo&) const = default;
};

class ReleaseSource {
 public:
  virtual ~ReleaseSource() = default;
  // Resolves a version of a source (a template with {version}, {os}, {arch}, {artifact}; a path or file://) to one
  // build. With an index, a channel ("latest", "main") becomes the version it stands for, and what the index says of
  // the build (commit, url, sha256) is taken; without one a channel is kInvalid. `artifact` may be empty.
  virtual Result<ReleaseInfo> Resolve(const std::string& url_template, const std::string& version,
                                      const std::string& index, const std::string& artifact) = 0;
  // Fetches, verifies and unpacks into releases_dir/SHA256; present and whole: nothing is done. `checksum_type` is
  // File (`checksum` is its URL; empty: the artifact's with .sha256 behind it), Value (`checksum` is it) or None.
  // `progress` gets done and total bytes.
  virtual Result<ReleaseInfo> Fetch(const ReleaseInfo& release, const std::string& checksum_type,
                                    const std::string& checksum, const std::string& releases_dir,
                                    const std::function<void(int64_t, int64_t)>& progress) = 0;
  // What an unpacked release holds, sorted by path.
  virtual Result<std::vector<ReleaseFileInfo>> Files(const ReleaseInfo& release) = 0;
};

struct SnapshotInfo {
  std::string reference;  // path
  int64_t size = 0;
  std::string sha256;
  bool operator==(const SnapshotInfo&) const = default;
};

class Snapshotter {
 public:
  virtual ~Snapshotter() = default;
  // A consistent copy of a live store, verified (integrity check), whole or absent.
  virtual Result<SnapshotInfo> Take(const std::string& store_path, const std::string& into_dir,
                                    const std::string& name) = 0;
  // Writes to the store since the snapshot: -1 when it cannot be told.
  virtual Result<int64_t> WritesSince(const std::string& store_path, const SnapshotInfo& snapshot) = 0;
  // The revision the snapshot holds, 0 when it cannot be told.
  virtual Result<int64_t> RevisionOf(const SnapshotInfo& snapshot) = 0;
  virtual Status Delete(const SnapshotInfo& snapshot) = 0;
  // Removes what an interrupted Take left behind in the folder.
  virtual Status Sweep(const std::string& into_dir) = 0;
};

}  // namespace lockkeeper
