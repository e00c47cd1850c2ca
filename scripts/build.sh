#!/usr/bin/env bash
# Configures a preset when it was not yet, and builds targets of it.
#
#   scripts/build.sh PRESET [TARGET]...   (default: all; the target "configure" builds nothing)
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
preset=$1
shift
build=$root/build/$preset

cd "$root"
# The same tree in another folder finds what ccache has of this one.
# Sloppiness: without it nothing that uses the precompiled header would be cached.
export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros
# A folder that was configured elsewhere (a copied tree) or not to the end is configured anew.
if [[ ! -f $build/build.ninja ]] || ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$build/CMakeCache.txt"; then
  rm -rf "$build"
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  if ! cmake --preset "$preset" >"$log" 2>&1; then
    cat "$log" >&2
    exit 1
  fi
fi
[[ ${1:-} != configure ]] || exit 0
targets=()
(($#)) && targets=(--target "$@")
cmake --build "$build" "${targets[@]}"
