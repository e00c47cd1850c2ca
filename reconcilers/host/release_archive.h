// Unpacking of a release archive that nobody has to trust.
//
// Purpose:   tar, plain or compressed with gzip or zstd. Files, folders and links only; no path and no link leads out;
//            no owner, no set-user bits; bounded in bytes and entries (a small archive may hold a huge one).
// Threads:   thread-safe. Failure: kInvalid names the entry; kCorrupt: the archive is cut short or damaged.
#pragma once

#include <string>

#include "api/base/status.h"
#include "reconcilers/host/release_tree.h"

namespace lockkeeper::host_internal {

// Into `into`, which is there and empty. `progress` counts bytes of the archive.
Status UnpackArchive(const std::string& archive, const std::string& into, const TreeLimits& limits,
                     const ByteProgress& progress);
// Whether the name is one of an archive.
bool IsArchiveName(const std::string& path);

}  // namespace lockkeeper::host_internal
