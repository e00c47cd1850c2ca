// BuildVersion: the version that an executable carries in its own bytes.
//
// Purpose:   a fixed-size section of the executable ("lk_version") holds a version and the faults of that build.
//            WriteBuild copies an executable with the section filled in, so builds of different versions differ
//            in their bytes (their SHA-256 tells them apart) without being compiled twice, and a release that
//            misbehaves can be made on purpose.
// Ownership: values.
// Threads:   thread-safe.
// Failure:   kInvalid for a version or faults that do not fit or are not known (faults.h), kCorrupt for a file without
// the section, and what
//            the file functions answer.
#pragma once

#include <string>

#include "api/base/status.h"

namespace lockkeeper::kcp {

// This executable's version; "v0.0.0-dev" where nothing was written.
std::string BuildVersion();
// This executable's faults (faults.h), "" for none.
std::string BuildFaults();

// The version in the section of the executable at `path`.
Result<std::string> ReadBuildVersion(const std::string& path);

// Copies `self_exe` to `out_path` (mode 0755, folders made, the old file replaced at once) with `version` (at
// most 63 characters of [A-Za-z0-9._+-]) and `faults` (at most 127) in its section.
Status WriteBuild(const std::string& self_exe, const std::string& version, const std::string& out_path,
                  const std::string& faults = "");

}  // namespace lockkeeper::kcp
