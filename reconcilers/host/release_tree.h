// Release trees: copying, listing and checking the folder of an unpacked release.
//
// Ownership: none held. Threads: thread-safe. Failure: kInvalid for what a release may not hold (a device, a link that
//            leads out, more than the bounds); others name the file.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "reconcilers/ports/host_files.h"

namespace lockkeeper::host_internal {

using TreeFile = ReleaseFileInfo;

struct TreeLimits {
  int64_t max_bytes = 0;
  int64_t max_entries = 0;
};

using ByteProgress = std::function<void(int64_t done, int64_t total)>;

// Regular files below, sorted by path, with hashes. Symbolic links are followed by nobody and listed by nobody.
Result<std::vector<TreeFile>> ListTree(const std::string& root, const TreeLimits& limits);
// One hash for a folder: of its files' paths, rights to execute and hashes.
std::string TreeSha256(const std::vector<TreeFile>& files);
// Copies folders, regular files and relative links; rights are 0755 or 0644.
Status CopyTree(const std::string& from, const std::string& to, const TreeLimits& limits, int64_t total,
                const ByteProgress& progress);
// To a file that is not there yet. `copied` gets the bytes of each piece.
Status CopyFile(const std::string& from, const std::string& to, mode_t mode,
                const std::function<void(int64_t)>& copied);
// Every symbolic link below leads to something below.
Status CheckLinks(const std::string& root);

// The list of files that a whole release has, beside them; what ReleaseSource compares on a later fetch.
inline constexpr char kManifestFile[] = ".lockkeeper-files.json";
Status WriteManifest(const std::string& root, const std::vector<TreeFile>& files);
Result<std::vector<TreeFile>> ReadManifest(const std::string& root);

}  // namespace lockkeeper::host_internal
