// Small file operations of the host's adapters.
//
// Ownership: none held. Threads: thread-safe. Failure: Status naming the path.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "api/base/status.h"

namespace lockkeeper::host_internal {

// A relative path that stays below its folder: no "..", no leading "/", not empty.
bool IsInnerPath(std::string_view path);
// Whole or not at all: written beside it, given `mode` and owner (-1: the process's), synced, renamed.
Status InstallFile(const std::string& path, std::string_view content, mode_t mode, uid_t uid, gid_t gid);
// fsync of every regular file and folder below, and of `root`.
Status SyncTree(const std::string& root);
// The temporary folders of a crash, by their prefix.
Status SweepTemporary(const std::string& dir, std::string_view prefix);

}  // namespace lockkeeper::host_internal
