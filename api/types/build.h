// Builds: whether two are the same, and which version is older.
//
// Purpose:   the one function used wherever two builds are compared.
// Ownership: values. Threads: thread-safe.
// Failure:   versions that cannot be ordered answer nullopt; they are never called a downgrade.
#pragma once

#include <optional>
#include <string_view>

#include "api/types/operation.h"

namespace lockkeeper {

// Commits decide when both are known (not empty, not "unknown"), even where versions are equal; else the version
// strings. Two builds of which nothing is known are not the same.
bool SameBuild(std::string_view version_a, std::string_view commit_a, std::string_view version_b,
               std::string_view commit_b);
// The executables' hashes decide when both are known; else as above.
bool SameBuild(const BuildRef& a, const BuildRef& b);

// Below, at or above zero as `a` is older than, as old as or newer than `b`, by semantic versioning: an optional v, one
// to three numbers, an optional -pre; what follows + does not count. nullopt when either is no such version (main,
// latest, a branch).
std::optional<int> CompareVersions(std::string_view a, std::string_view b);

// Whether going from `running` to `wanted` goes back. False when they cannot be ordered.
bool IsDowngrade(std::string_view running, std::string_view wanted);

// latest and main name another build each day; they are resolved once.
bool IsMovingTarget(std::string_view version);

}  // namespace lockkeeper
