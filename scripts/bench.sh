#!/usr/bin/env bash
# Builds the benchmarks, optimised, and runs each. What they print is kept in build/bench/results/NAME.txt.
#
#   scripts/bench.sh [NAME]...   (default: all)
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
build=build/bench
scripts/build.sh bench lk_benches
mkdir -p "$build/results"
mapfile -t known <"$build/benches.txt"
failed=0
for line in "${known[@]}"; do
  name=${line%% *} program=${line#* }
  if (($#)) && [[ " $* " != *" $name "* ]]; then
    continue
  fi
  printf '\n=== %s\n' "$name"
  "$program" 2>&1 | tee "$build/results/$name.txt" || {
    failed=1
    echo "=== $name FAILED" >&2
  }
done
exit "$failed"
