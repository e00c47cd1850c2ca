// Files: whole-file reads and writes that survive a crash.
//
// Threads: all functions are thread-safe; two writers of one path are the caller's affair.
// Failure: a Status names the path, the call and errno's text; ENOSPC and EDQUOT are kExhausted, ENOENT is
//          kNotFound, EACCES and EPERM are kForbidden.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "api/base/hash.h"
#include "api/base/status.h"

namespace lockkeeper {

// "ATTEMPT PATH: errno text" with the code that errno maps to.
Status ErrnoStatus(std::string_view attempt, std::string_view path, int error);

Result<std::string> ReadFile(const std::string& path);
// Temporary file beside it, fsync, rename, fsync of the folder: a crash leaves the old or the new file whole.
Status WriteFileAtomic(const std::string& path, std::string_view content, mode_t mode = 0644);
// mkdir -p.
Status MakeDirs(const std::string& path, mode_t mode = 0755);
bool PathExists(const std::string& path);
Status FsyncDir(const std::string& path);
// Removes a file; absent is fine.
Status RemoveFile(const std::string& path);
// Removes a folder and all below it, never following links; absent is fine.
Status RemoveTree(const std::string& path);
// Names in a folder, sorted, without . and ..
Result<std::vector<std::string>> ListDir(const std::string& path);
std::string JoinPath(std::string_view a, std::string_view b);
std::string DirName(const std::string& path);

// Lower-case hexadecimal SHA-256 (of a text: api/base/hash.h).
Result<std::string> Sha256File(const std::string& path);

}  // namespace lockkeeper
