// HostFiles, ReleaseSource and Snapshotter on the files of this machine.
//
// Purpose:   the real adapters of reconcilers/ports/host_files.h.
// Ownership: the caller owns what is answered. Threads: thread-safe; calls on one path are the caller's affair.
// Failure:   as the ports say; every Status names the file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "reconcilers/ports/host_files.h"

namespace lockkeeper {

std::unique_ptr<HostFiles> NewHostFiles();

struct ReleaseSourceOptions {
  std::string os = "linux";
  std::string arch;                      // "" is this machine's, as Go names it (amd64, arm64)
  int64_t max_bytes = int64_t{8} << 30;  // of an unpacked release
  int64_t max_entries = 200000;
};
// Sources: an absolute path or file://. The artifact is a folder, a .tar.gz, .tgz, .tar.zst or .tar, or one executable
// file, which then lies at bin/NAME of the release.
//
// An index is JSON: {"channels": {"latest": "v1.2.0", "main": "v1.3.0-7"}, "builds": {"v1.2.0": {"commit": "…",
// "url": "…", "sha256": "…"}}}; builds is optional.
std::unique_ptr<ReleaseSource> NewReleaseSource(ReleaseSourceOptions options = {});

// Removes what interrupted fetches left behind. Before the first fetch of a process.
Status SweepReleases(const std::string& releases_dir);

// Online copies of a live SQLite database. WritesSince counts revisions when the store is lockkeeper's own.
std::unique_ptr<Snapshotter> NewSqliteSnapshotter();

}  // namespace lockkeeper
